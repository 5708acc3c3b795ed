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

package feed

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

// Sources are what a Broker follows; a source.Cache is some.
type Sources interface {
	// OnChange calls the function for every change of an object, in their order; of objects that are there at
	// first too.
	OnChange(call func(before, after *source.Source)) error
	// OnState calls the function when what Readable says may have changed.
	OnState(call func())
	// Readable is nil while all objects of the kind in the namespace are known, and OnChange has told of them. An
	// empty namespace asks for all.
	Readable(kind v1alpha1.SourceKind, namespace string) error
}

// scope is what is read at once.
type scope struct {
	kind      v1alpha1.SourceKind
	namespace string // empty for all
}

// access tells what is known of a scope that has not been read.
type access int

const (
	// awaited: it will be read soon.
	awaited access = iota
	// refused: the permission is missing. It holds up nothing else.
	refused
)

// Follow has the broker publish what becomes of the sources in the namespaces; one empty string stands for
// all. It must be called once, before the sources are started.
//
// F4: the broker is silent about a kind in a namespace until it has been read, as what is there at first is
// no news. Where the permission is missing, what is there when it is granted is no news either:
// subscriptions that ask for the present objects then get these, without another Synced.
func (b *Broker) Follow(sources Sources, namespaces []string) error {
	b.await(namespaces)
	if err := sources.OnChange(b.Publish); err != nil {
		return fmt.Errorf("following the sources: %w", err)
	}
	sources.OnState(func() { b.look(sources.Readable) })
	return nil
}

// await makes everything in the namespaces unread.
func (b *Broker) await(namespaces []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.namespaces = slices.Clone(namespaces)
	for _, namespace := range namespaces {
		for _, kind := range []v1alpha1.SourceKind{v1alpha1.ConfigMap, v1alpha1.Secret} {
			b.unread[scope{kind, namespace}] = awaited
		}
	}
}

// look takes in what has been read since it last looked.
func (b *Broker) look(readable func(kind v1alpha1.SourceKind, namespace string) error) {
	var begin beginners
	defer begin.start()
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.unread {
		switch err := readable(s.kind, s.namespace); {
		case err == nil:
			b.read(s, &begin)
		case apierrors.IsForbidden(err):
			b.unread[s] = refused
		default:
			b.unread[s] = awaited
		}
	}
	now := b.clock.Now()
	for _, subscriptions := range b.subscriptions {
		for _, s := range subscriptions {
			if b.tryBegin(s, now) {
				begin.add(s)
			}
		}
	}
}

// read takes in that a scope has been read. Its objects have been published.
func (b *Broker) read(s scope, begin *beginners) {
	delete(b.unread, s)
	now := b.clock.Now()
	for _, subscriptions := range b.subscriptions {
		for _, sub := range subscriptions {
			if sub.waiting || !sub.filter.Initial || !s.overlaps(&sub.filter) {
				continue
			}
			if sub.complete(b.matching(s.within(sub.filter)), now) {
				begin.add(sub)
			}
		}
	}
}

// follows tells whether the namespace is followed.
func (b *Broker) follows(namespace string) bool {
	return namespace == "" || len(b.namespaces) == 0 ||
		slices.Contains(b.namespaces, "") || slices.Contains(b.namespaces, namespace)
}

// isUnread tells whether an object is in a scope that has not been read.
func (b *Broker) isUnread(object *source.Source) bool {
	if len(b.unread) == 0 {
		return false
	}
	_, one := b.unread[scope{object.Kind, object.Namespace}]
	_, all := b.unread[scope{object.Kind, ""}]
	return one || all
}

// awaitsScope tells whether nothing is told of a scope, as it has not been read.
func (b *Broker) awaitsScope(s scope) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, unread := b.unread[s]
	return unread
}

// awaits tells whether something that the filter is about has not been read, and will be.
func (b *Broker) awaits(f *Filter) bool {
	for s, access := range b.unread {
		if access == awaited && s.overlaps(f) {
			return true
		}
	}
	return false
}

// overlaps tells whether there may be objects in the scope that the filter matches.
func (s scope) overlaps(f *Filter) bool {
	return (f.Kind == "" || f.Kind == s.kind) &&
		(f.Namespace == "" || s.namespace == "" || f.Namespace == s.namespace)
}

// within is the filter, limited to the scope.
func (s scope) within(f Filter) *Filter {
	f.Kind = s.kind
	if s.namespace != "" {
		f.Namespace = s.namespace
	}
	return &f
}
