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
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/ktechhub/configwatch/internal/source"
)

// Broker takes changes in and hands them to every subscription that they concern. It is safe for concurrent
// use, and has no goroutine while there is nothing to receive.
type Broker struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// present is each object as subscribers know it, by namespace.
	present map[string]map[source.Ref]*source.Source
	// subscriptions are by the namespace of their filter, so that a change costs nothing where it doesn't
	// matter; the empty one is for all.
	subscriptions map[string][]*Subscription
	// namespaces are those that are followed, none for any.
	namespaces []string
	// unread is what of them has not been read yet. Nothing is told about it, as it is no news (F4).
	unread map[scope]access
	// history is told of each transition first, if there is one.
	history *History

	gaps gaps
}

// NewBroker makes a Broker that knows of no object.
func NewBroker(clk clock.PassiveClock) *Broker {
	return &Broker{
		clock:         clk,
		present:       map[string]map[source.Ref]*source.Source{},
		subscriptions: map[string][]*Subscription{},
		unread:        map[scope]access{},
		gaps:          newGaps(),
	}
}

// Subscribe begins a subscription, whose queue holds as many changes as the buffer says, at least one. It
// fails if the filter can't be used, or names a namespace that the broker doesn't follow.
func (b *Broker) Subscribe(filter Filter, buffer int) (*Subscription, error) {
	if err := filter.validate(); err != nil {
		return nil, fmt.Errorf("subscribing: %w", err)
	}
	if buffer < 1 {
		return nil, fmt.Errorf("subscribing: a buffer of %d changes holds none", buffer)
	}
	filter.Events = slices.Clone(filter.Events)
	s := &Subscription{
		broker:    b,
		filter:    filter,
		events:    make(chan Change),
		withdrawn: make(chan struct{}, 1),
		done:      make(chan struct{}),
		queue:     queue{changes: ring{limit: buffer}},
	}
	s.deliver = s.sendQueued
	s.offering.L = &s.mu
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.follows(filter.Namespace) {
		return nil, fmt.Errorf("subscribing: namespace %s is not watched by this operator", filter.Namespace)
	}
	b.add(s)
	if filter.Initial {
		s.waiting = true
		b.tryBegin(s, b.clock.Now()) // nobody listens yet
	}
	return s, nil
}

// Publish takes in that an object appeared (before is nil), changed, or is gone (after is nil), as a
// source.Cache tells it. It waits for no subscriber (F2). Calls for one object must come in the order of its
// changes; those for others may be concurrent.
//
// F3: what was published before, or is older, is dropped; an object that is another of the same name is a
// deletion and an addition.
func (b *Broker) Publish(before, after *source.Source) {
	b.publish(nil, before, after)
}

// publish takes in a change that belongs to a step, if that is known.
func (b *Broker) publish(step *source.Step, before, after *source.Source) {
	object := cmp.Or(after, before)
	if object == nil {
		return
	}
	var begin beginners
	b.take(step, object, after, &begin)
	begin.start()
}

func (b *Broker) take(step *source.Step, object, after *source.Source, begin *beginners) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.known(object)
	switch {
	case after == nil:
		if known != nil && known.UID == object.UID {
			b.forget(known)
			b.tell(&transition{step: step, before: known, version: versionOfDeletion(known, object)}, begin)
		}
	case known == nil:
		b.keep(after)
		b.tell(&transition{step: step, after: after}, begin)
	case !newer(after, known):
	case known.UID != after.UID:
		b.keep(after)
		b.tell(&transition{step: unfinished(step), before: known}, begin)
		b.tell(&transition{step: step, after: after}, begin)
	default:
		b.keep(after)
		b.tell(&transition{step: step, before: known, after: after, version: after.ResourceVersion}, begin)
	}
}

// tell queues a transition with every subscription that it concerns.
func (b *Broker) tell(t *transition, begin *beginners) {
	object := cmp.Or(t.after, t.before)
	if b.isUnread(object) {
		return
	}
	t.time = b.clock.Now()
	if b.history != nil && t.step != nil {
		b.history.keep(t)
	}
	b.tellAll(b.subscriptions[object.Namespace], t, begin)
	b.tellAll(b.subscriptions[""], t, begin)
}

func (b *Broker) tellAll(subscriptions []*Subscription, t *transition, begin *beginners) {
	for _, s := range subscriptions {
		if s.waiting {
			continue // the present objects will show it
		}
		if c := t.seenBy(&s.filter); c != nil && s.filter.wants(c.Type) && s.push(c) {
			begin.add(s)
		}
	}
}

// reread has a subscription begin anew.
func (b *Broker) reread(s *Subscription) {
	var begin beginners
	defer begin.start()
	b.mu.Lock()
	defer b.mu.Unlock()
	s.filter.Initial, s.waiting = true, true
	s.drop()
	if b.tryBegin(s, b.clock.Now()) {
		begin.add(s)
	}
}

// tryBegin gives a subscription that waits for them the present objects, once they are known. All changes
// until now are in what it gets, and all from now on come after it: no gap, and no duplicate (F4).
func (b *Broker) tryBegin(s *Subscription, at time.Time) (begin bool) {
	if !s.waiting || b.awaits(&s.filter) {
		return false
	}
	s.waiting = false
	return s.start(b.matching(&s.filter), at)
}

// matching are the present objects that match a filter, in the order of their names.
func (b *Broker) matching(f *Filter) []*source.Source {
	var found []*source.Source
	collect := func(objects map[source.Ref]*source.Source) {
		for _, object := range objects {
			if f.matches(object) {
				found = append(found, object)
			}
		}
	}
	if f.Namespace != "" {
		collect(b.present[f.Namespace])
	} else {
		for _, objects := range b.present {
			collect(objects)
		}
	}
	slices.SortFunc(found, func(x, y *source.Source) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name), cmp.Compare(x.Kind, y.Kind))
	})
	return found
}

func (b *Broker) known(object *source.Source) *source.Source {
	return b.present[object.Namespace][object.Ref()]
}

func (b *Broker) keep(object *source.Source) {
	objects := b.present[object.Namespace]
	if objects == nil {
		objects = map[source.Ref]*source.Source{}
		b.present[object.Namespace] = objects
	}
	objects[object.Ref()] = object
}

func (b *Broker) forget(object *source.Source) {
	objects := b.present[object.Namespace]
	delete(objects, object.Ref())
	if len(objects) == 0 {
		delete(b.present, object.Namespace)
	}
}

func (b *Broker) add(s *Subscription) {
	namespace := s.filter.Namespace
	s.position = len(b.subscriptions[namespace])
	b.subscriptions[namespace] = append(b.subscriptions[namespace], s)
}

// remove takes a subscription out, by putting the last one in its place.
func (b *Broker) remove(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	namespace := s.filter.Namespace
	subscriptions := b.subscriptions[namespace]
	last := len(subscriptions) - 1
	subscriptions[s.position] = subscriptions[last]
	subscriptions[s.position].position = s.position
	subscriptions[last] = nil
	b.subscriptions[namespace] = subscriptions[:last]
	if last == 0 {
		delete(b.subscriptions, namespace)
	}
}

// newer tells whether an object is a later version than the one known. Versions that can't be compared are
// taken as they come.
func newer(object, known *source.Source) bool {
	order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, known.ResourceVersion)
	return err != nil || order > 0
}

// unfinished is a step of which something is still to be told.
func unfinished(step *source.Step) *source.Step {
	if step == nil || step.More {
		return step
	}
	more := *step
	more.More = true
	return &more
}

// versionOfDeletion is the resource version that a watch brings with a deletion. An object that a list found
// to be gone still has the one that it was known by.
func versionOfDeletion(known, object *source.Source) string {
	if object.ResourceVersion == known.ResourceVersion {
		return ""
	}
	return object.ResourceVersion
}
