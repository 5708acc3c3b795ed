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
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

// Reviewer knows users, and what they may watch; an access.Reviewer is one. It is asked from many goroutines.
type Reviewer interface {
	// Authenticate is the user whose token it is, or nil if it is nobody's. It fails if that can't be told.
	Authenticate(ctx context.Context, token string) (user.Info, error)
	// MayWatch tells whether a user may watch objects of a resource such as secrets, in a namespace or, if
	// that is empty, in all; that of a name or, if it is empty, all. It fails if that can't be told.
	MayWatch(ctx context.Context, who user.Info, resource, namespace, name string) (bool, error)
}

// resources are what the user must be allowed to watch.
func (q *query) resources() []string {
	if q.filter.Kind != "" {
		return []string{source.Resource(q.filter.Kind)}
	}
	return []string{source.Resource(v1alpha1.ConfigMap), source.Resource(v1alpha1.Secret)}
}

// authenticate is the user whose token it is. If it is nobody's, the error is a refusal with 401.
func (s *Server) authenticate(ctx context.Context, token string) (user.Info, error) {
	if token == "" {
		return nil, refuse(apierrors.NewUnauthorized("Unauthorized: the header Authorization must have a bearer token"))
	}
	who, err := s.Reviewer.Authenticate(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("authenticating: %w", err)
	}
	if who == nil {
		return nil, refuse(apierrors.NewUnauthorized("Unauthorized: the token is not valid, or no longer"))
	}
	return who, nil
}

// authorize fails if the user may not watch all that the query is about: you may stream exactly what you may
// watch (F8). The error is then a refusal with 403 that says what is missing, in the API server's words.
func (s *Server) authorize(ctx context.Context, who user.Info, q *query) error {
	f := &q.filter
	for _, resource := range q.resources() {
		allowed, err := s.Reviewer.MayWatch(ctx, who, resource, f.Namespace, f.Name)
		if err != nil {
			return fmt.Errorf("authorizing: %w", err)
		}
		if allowed {
			continue
		}
		where := "at the cluster scope"
		if f.Namespace != "" {
			where = fmt.Sprintf("in the namespace %q", f.Namespace)
		}
		advice := ""
		if f.Kind == "" {
			advice = "; without a kind, both configmaps and secrets are streamed"
		}
		reason := fmt.Sprintf("User %q cannot watch resource %q in API group \"\" %s%s", who.GetName(), resource, where, advice)
		return refuse(apierrors.NewForbidden(schema.GroupResource{Resource: resource}, f.Name, errors.New(reason)))
	}
	return nil
}

// review fails with a refusal, of 401 or 403, if a stream may not go on; with another error if that can't be
// told.
func (s *Server) review(ctx context.Context, token string, q *query) error {
	who, err := s.authenticate(ctx, token)
	if err != nil {
		return err
	}
	return s.authorize(ctx, who, q)
}
