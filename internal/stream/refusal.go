/*
Copyright 2026 The ConfigWatch Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

	http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package stream

import (
	"encoding/json"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// retryAfter is how many seconds a client that is refused for now should wait.
const retryAfter = 10

// refusal is why a client gets no stream, or no more of it. It is a type of its own, as the errors of the API
// server's answers to the operator, which are Statuses too, are no business of the client's.
type refusal struct {
	metav1.Status
}

func (r *refusal) Error() string {
	return r.Message
}

func refuse(err *apierrors.StatusError) *refusal {
	return &refusal{err.ErrStatus}
}

func badRequest(err error) *refusal {
	return refuse(apierrors.NewBadRequest(err.Error()))
}

func tooManyRequests(message string) *refusal {
	return refuse(apierrors.NewTooManyRequests(message, retryAfter))
}

func unavailable(message string) *refusal {
	r := refuse(apierrors.NewServiceUnavailable(message))
	r.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	return r
}

func notFound(message string) *refusal {
	return &refusal{metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: message,
	}}
}

func methodNotAllowed() *refusal {
	return &refusal{metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: "a stream is read with GET",
	}}
}

// write answers a request with a Status of Kubernetes.
func (r *refusal) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	switch {
	case r.Code == http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	case r.Code == http.StatusMethodNotAllowed:
		header.Set("Allow", http.MethodGet)
	case r.Details != nil && r.Details.RetryAfterSeconds > 0:
		header.Set("Retry-After", strconv.Itoa(int(r.Details.RetryAfterSeconds)))
	}
	status := r.Status
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.WriteHeader(int(r.Code))
	_ = json.NewEncoder(w).Encode(status) // whoever has gone doesn't read it
}
