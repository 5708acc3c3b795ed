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

package tail

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
)

// reporter tells the user how the watch goes, beside the changes.
type reporter struct {
	*Options
	watched *sources
	changed chan struct{}
}

// newReporter makes one before the sources are started.
func newReporter(o *Options, watched *sources) *reporter {
	r := &reporter{Options: o, watched: watched, changed: make(chan struct{}, 1)}
	watched.OnState(func() {
		select {
		case r.changed <- struct{}{}:
		default: // it has yet to look
		}
	})
	return r
}

// run tells when everything has been read, when the connection is lost, and when it is back. It ends with an
// error if a permission is missing, or if the API server can't be reached at the start.
func (r *reporter) run(ctx context.Context) error {
	const (
		starting = iota
		watching
		lost
	)
	state := starting
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
		}
		kind, err := r.problem()
		switch {
		case apierrors.IsForbidden(err):
			return r.explain(ctx, kind, err)
		case state == starting && hopeless(err):
			return fmt.Errorf("reading %s: %w", r.where(kind), err)
		case err == nil && state == starting:
			r.say(saidWatching, r.where(r.kinds...))
			state = watching
		case err == nil && state == lost:
			r.say(saidAgain)
			state = watching
		case err != nil && state == watching:
			r.say(saidLost, err)
			state = lost
		}
	}
}

// What is said of the connection, whatever it is to.
const (
	saidWatching = "Watching %s. Ctrl-C ends it."
	saidLost     = "Lost the connection, and trying again: %s"
	saidAgain    = "Connected again. What changed in the meantime is shown."
)

// say is beside the changes, so that these can be read by a program.
func (o *Options) say(format string, values ...any) {
	fmt.Fprintf(o.ErrOut, format+"\n", values...)
}

// problem is why a kind can't be read, nil if all can.
func (r *reporter) problem() (v1alpha1.SourceKind, error) {
	for _, kind := range r.kinds {
		if err := r.watched.Readable(kind, r.namespace); err != nil {
			return kind, err
		}
	}
	return "", nil
}

// hopeless tells whether to try again won't help: the user is not known, or there is no answer at all.
func hopeless(err error) bool {
	if err == nil || errors.Is(err, informer.ErrNotSynced) {
		return false
	}
	var answer apierrors.APIStatus
	return apierrors.IsUnauthorized(err) || !errors.As(err, &answer)
}

// explain is an error that names the verbs which the user lacks.
func (r *reporter) explain(ctx context.Context, kind v1alpha1.SourceKind, refusal error) error {
	verbs, err := r.missing(ctx, kind)
	if err != nil || len(verbs) == 0 {
		verbs = []string{"list", "watch"}
	}
	advice := ""
	if len(r.kinds) > 1 {
		other := r.kinds[0]
		if other == kind {
			other = r.kinds[1]
		}
		advice = fmt.Sprintf("; --kind %s leaves %ss out", other, kind)
	}
	return fmt.Errorf("no permission to %s %s%s: %w", strings.Join(verbs, " and "), r.where(kind), advice, refusal)
}

// missing are the verbs that the user lacks on the kind.
func (r *reporter) missing(ctx context.Context, kind v1alpha1.SourceKind) (verbs []string, err error) {
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: r.namespace, Verb: verb, Version: "v1", Resource: source.Resource(kind),
			},
		}}
		review, err = r.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("asking for permissions: %w", err)
		}
		if !review.Status.Allowed {
			verbs = append(verbs, verb)
		}
	}
	return verbs, nil
}

// where is such as "ConfigMaps and Secrets in namespace shop".
func (o *Options) where(kinds ...v1alpha1.SourceKind) string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind) + "s"
	}
	place := "all namespaces"
	if o.namespace != "" {
		place = "namespace " + o.namespace
	}
	return strings.Join(names, " and ") + " in " + place
}
