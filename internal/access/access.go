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

// Package access lets only those read the manager's own HTTP endpoints whom the API server
// authenticates, by TokenReview, and authorizes, by SubjectAccessReview.
//
// It is built from the parts of k8s.io/apiserver that read and cache bearer tokens. That library's
// ready-made delegating filters bring gRPC, CEL and OpenTelemetry's exporters with them, which cost the
// manager 8 MB of resident memory. It promises that nothing passes unless both reviews allow it, and
// logs no token. It doesn't know what is served.
package access

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// validFor is how long an authenticated token is taken for good without asking again.
	validFor = time.Minute
	// invalidFor is how long a refused token is refused without asking again.
	invalidFor = 10 * time.Second
	// reviewTimeout is how long a review may take.
	reviewTimeout = 10 * time.Second
)

// Filter is a metricsserver.Options.FilterProvider. A request needs a bearer token (401 without), whose
// user may do the verb of its method on its path as a non-resource URL (403 if not).
func Filter(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the client of TokenReviews: %w", err)
	}
	permissions, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the client of SubjectAccessReviews: %w", err)
	}
	review := cache.New(&tokenReviewer{tokens.TokenReviews()}, false, validFor, invalidFor)
	g := &gate{authenticate: bearertoken.New(review), permissions: permissions.SubjectAccessReviews()}
	return g.filter, nil
}

type gate struct {
	authenticate authenticator.Request
	permissions  authorizationclient.SubjectAccessReviewInterface
}

func (g *gate) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok, err := g.authenticate.AuthenticateRequest(r)
		switch {
		case err != nil && !ok:
			log.V(1).Info("Refused a request: its token could not be authenticated", "path", r.URL.Path, "reason", err.Error())
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		case !ok:
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		allowed, err := g.allowed(r, who.User)
		switch {
		case err != nil:
			log.Error(err, "Failed to authorize a request", "path", r.URL.Path, "user", who.User.GetName())
			http.Error(w, "The API server could not be asked for authorization", http.StatusInternalServerError)
		case !allowed:
			http.Error(w, "Forbidden", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	}), nil
}

func (g *gate) allowed(r *http.Request, who user.Info) (bool, error) {
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range who.GetExtra() {
		extra[key] = values
	}
	review, err := g.permissions.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("reviewing access: %w", err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// tokenReviewer asks the API server whose token it is.
type tokenReviewer struct {
	reviews authenticationclient.TokenReviewInterface
}

// AuthenticateToken implements authenticator.Token.
func (t *tokenReviewer) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, err := t.reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, false, fmt.Errorf("reviewing a token: %w", err)
	}
	if !review.Status.Authenticated {
		return nil, false, nil
	}
	who := review.Status.User
	extra := map[string][]string{}
	for key, values := range who.Extra {
		extra[key] = values
	}
	return &authenticator.Response{
		User: &user.DefaultInfo{Name: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra},
	}, true, nil
}
