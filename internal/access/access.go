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
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	expiring "k8s.io/apimachinery/pkg/util/cache"
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
	// validFor is how long an authenticated token, and what its user may do, is taken for good without
	// asking again.
	validFor = time.Minute
	// invalidFor is how long a refused token is refused without asking again.
	invalidFor = 10 * time.Second
	// reviewTimeout is how long a review may take.
	reviewTimeout = 10 * time.Second
	// allowances is how many answers to what users may do are kept.
	allowances = 1024
)

// Reviewer asks the API server whose a token is, and what that user may do. It is safe for concurrent use.
type Reviewer struct {
	tokens      authenticator.Token
	permissions authorizationclient.SubjectAccessReviewInterface
	allowed     *expiring.LRUExpireCache // by specification, as JSON; what is refused is asked again
}

// NewReviewer makes a Reviewer that makes its calls with the client.
func NewReviewer(config *rest.Config, httpClient *http.Client) (*Reviewer, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the client of TokenReviews: %w", err)
	}
	permissions, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the client of SubjectAccessReviews: %w", err)
	}
	return &Reviewer{
		tokens:      cache.New(&tokenReviewer{tokens.TokenReviews()}, false, validFor, invalidFor),
		permissions: permissions.SubjectAccessReviews(),
		allowed:     expiring.NewLRUExpireCache(allowances),
	}, nil
}

// Token is the bearer token of a request, empty if it has none.
func Token(request *http.Request) (token string) {
	read := authenticator.TokenFunc(func(_ context.Context, found string) (*authenticator.Response, bool, error) {
		token = found
		return nil, false, nil
	})
	_, _, _ = bearertoken.New(read).AuthenticateRequest(request) // it is authenticated by whoever asked for it
	return token
}

// Authenticate is the user whose token it is, or nil if it is nobody's. It fails if the API server can't be
// asked.
func (r *Reviewer) Authenticate(ctx context.Context, token string) (user.Info, error) {
	if token == "" {
		return nil, nil
	}
	response, ok, err := r.tokens.AuthenticateToken(ctx, token)
	if err != nil || !ok {
		return nil, err
	}
	return response.User, nil
}

// MayWatch tells whether a user may watch objects of a resource of the core group, such as secrets: in a
// namespace, or in all if that is empty; that of a name, or all if it is empty. It fails if the API server
// can't be asked.
func (r *Reviewer) MayWatch(ctx context.Context, who user.Info, resource, namespace, name string) (bool, error) {
	return r.may(ctx, who, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: "watch", Version: "v1", Resource: resource, Namespace: namespace, Name: name,
	}})
}

// may tells whether a user may do what the specification says, in which the user is left out.
func (r *Reviewer) may(ctx context.Context, who user.Info, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	spec.User, spec.UID, spec.Groups = who.GetName(), who.GetUID(), who.GetGroups()
	spec.Extra = map[string]authorizationv1.ExtraValue{}
	for key, values := range who.GetExtra() {
		spec.Extra[key] = values
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return false, fmt.Errorf("encoding a review of access: %w", err)
	}
	key := string(encoded)
	if _, known := r.allowed.Get(key); known {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, err := r.permissions.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("reviewing access: %w", err)
	}
	if !review.Status.Allowed || review.Status.Denied {
		return false, nil
	}
	r.allowed.Add(key, nil, validFor)
	return true, nil
}

// Filter is a metricsserver.Options.FilterProvider. A request needs a bearer token (401 without), whose
// user may do the verb of its method on its path as a non-resource URL (403 if not).
func Filter(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	reviewer, err := NewReviewer(config, httpClient)
	if err != nil {
		return nil, err
	}
	return reviewer.filter, nil
}

func (r *Reviewer) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		who, err := r.Authenticate(request.Context(), Token(request))
		if err != nil {
			log.V(1).Info("Refused a request: its token could not be authenticated", "path", request.URL.Path, "reason", err.Error())
		}
		if who == nil {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		request.Header.Del("Authorization") // nobody further on needs it
		allowed, err := r.may(request.Context(), who, authorizationv1.SubjectAccessReviewSpec{
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{
				Path: request.URL.Path, Verb: strings.ToLower(request.Method),
			},
		})
		switch {
		case err != nil:
			log.Error(err, "Failed to authorize a request", "path", request.URL.Path, "user", who.GetName())
			http.Error(w, "The API server could not be asked for authorization", http.StatusInternalServerError)
		case !allowed:
			http.Error(w, "Forbidden", http.StatusForbidden)
		default:
			next.ServeHTTP(w, request)
		}
	}), nil
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
