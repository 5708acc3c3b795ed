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
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
)

var (
	// ErrForgotten tells that a History doesn't reach back to a position.
	ErrForgotten = errors.New("what came after that is not kept any more")
	// ErrToReceive tells that a subscription has not received everything yet.
	ErrToReceive = errors.New("there is something to receive")
	// ErrNotFollowed tells that a filter is about a namespace that the broker doesn't follow.
	ErrNotFollowed = errors.New("the namespace is not watched by this operator")
	// ErrUnread tells that what a filter is about has not been read yet.
	ErrUnread = errors.New("not read yet")
	// ErrUnreadable tells that what a filter is about can't be read, as the operator's permission is missing.
	ErrUnreadable = errors.New("this operator has no permission to read it")
)

// namesPerChange is how many names of keys a History keeps for each change that it may keep, on average. So
// sources with thousands of keys that change often make it shorter, and not large.
const namesPerChange = 64

// History keeps the latest changes that its broker told, so that a subscription can go on where another one ended,
// whatever its filter, and whichever replica that one was with (F8). It is safe for concurrent use.
type History struct {
	broker *Broker
	limit  int

	// mu is held while the broker takes a change in, so that each moment of the broker's has a position.
	mu     sync.Mutex
	tracks []*track
	// told are the latest transitions, oldest first.
	told []*remembered
	// names is how many names of keys they have.
	names int
}

// track is how far a watch has come.
type track struct {
	scope
	// reached is the version of the last state; empty if there was none, or if it can't be compared with others.
	reached string
	// within tells that a step beyond that has been told in part, and silent that it began while nothing was told.
	within, silent bool
	// since is the oldest state after which every change is kept.
	since string
	// skipped are the states after that which this watch didn't see, as it had to list. Whoever was told of one of
	// them by another replica can't go on from it here: what became of it is not known.
	skipped []skip
}

// skip is the states between two, without these.
type skip struct {
	after, before string
}

// remembered is a transition without digests, that has the Changes which any filter could make of it.
type remembered struct {
	transition
	track *track
	names int
}

// StepSources are Sources that tell of each step of their watches; a source.Cache is some.
type StepSources interface {
	Sources
	// OnStep calls the function for each step of each watch, in order, with what OnChange has of it: nil and nil
	// if that is nothing.
	OnStep(call func(step source.Step, before, after *source.Source)) error
}

// NewHistory keeps as many changes of a broker as the limit says.
func NewHistory(b *Broker, limit int) *History {
	h := &History{broker: b, limit: limit}
	b.history = h
	return h
}

// Follow is to be called instead of the broker's Follow.
func (h *History) Follow(sources StepSources, namespaces []string) error {
	h.broker.await(namespaces)
	for _, namespace := range namespaces {
		for _, kind := range []v1alpha1.SourceKind{v1alpha1.ConfigMap, v1alpha1.Secret} {
			h.tracks = append(h.tracks, &track{scope: scope{kind, namespace}})
		}
	}
	if err := sources.OnStep(h.take); err != nil {
		return fmt.Errorf("following the sources: %w", err)
	}
	sources.OnState(func() {
		h.mu.Lock() // what the broker then takes in is no news
		defer h.mu.Unlock()
		h.broker.look(sources.Readable)
	})
	return nil
}

// take has the broker take in what was changed by a step.
func (h *History) take(step source.Step, before, after *source.Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trackOf(&step)
	if t == nil {
		return
	}
	if !t.within {
		t.begin(&step, h.broker.awaitsScope(t.scope))
	}
	h.broker.publish(&step, before, after)
	if !step.More {
		t.end(&step)
	}
}

func (t *track) begin(step *source.Step, silent bool) {
	t.within, t.silent = true, silent
	if step.Listed && Earlier(t.reached, step.Version) {
		t.skipped = append(t.skipped, skip{after: t.reached, before: step.Version})
	}
}

func (t *track) end(step *source.Step) {
	t.within, t.reached = false, ""
	if isVersion(step.Version) {
		t.reached = step.Version
	}
	if t.silent { // what is there at first is no news (F4)
		t.forgetUntil(step.Version)
	}
}

func (h *History) trackOf(step *source.Step) *track {
	for _, t := range h.tracks {
		if t.kind == step.Kind && t.namespace == step.Namespace {
			return t
		}
	}
	return nil
}

// forgetUntil takes in that changes up to a state are not kept.
func (t *track) forgetUntil(version string) {
	t.since = version
	t.skipped = slices.DeleteFunc(t.skipped, func(s skip) bool { return !Earlier(version, s.before) })
}

// reachesBack tells whether everything is kept that came after a state, and the state is one that was here.
func (t *track) reachesBack(version string) bool {
	if t.since == "" || !isVersion(version) || Earlier(version, t.since) {
		return false
	}
	for _, s := range t.skipped {
		if Earlier(s.after, version) && Earlier(version, s.before) {
			return false
		}
	}
	return true
}

// keep adds a transition that the broker tells, and drops the oldest ones that are too many.
func (h *History) keep(t *transition) {
	r := remember(t)
	if r == nil {
		return
	}
	r.track = h.trackOf(t.step)
	h.told = append(h.told, r)
	h.names += r.names
	for len(h.told) > h.limit || h.names > h.limit*namesPerChange {
		h.forget()
	}
}

func (h *History) forget() {
	oldest := h.told[0]
	oldest.track.forgetUntil(oldest.step.Version)
	h.names -= oldest.names
	h.told[0] = nil
	h.told = h.told[1:]
}

// remember is nil if no filter makes a Change of the transition.
func remember(t *transition) *remembered {
	if hidden(t.before) && hidden(t.after) {
		return nil
	}
	// What filters match is the same before and after the change, unless it is other in what they look at.
	same := t.before != nil && t.after != nil &&
		t.before.Ignored == t.after.Ignored && labels.Equals(t.before.Labels, t.after.Labels)
	var changes []*Change
	if t.before != nil && t.after != nil {
		changes = appendChange(changes, t.asModified())
	}
	if t.after != nil && !same {
		changes = appendChange(changes, t.asAdded())
	}
	if t.before != nil && !same {
		changes = appendChange(changes, t.asDeleted())
	}
	if len(changes) == 0 {
		return nil
	}
	r := &remembered{transition: *t}
	for _, c := range changes {
		r.names += len(c.ChangedKeys)
	}
	r.before, r.after = withoutContent(t.before), withoutContent(t.after)
	if same {
		r.before = r.after
	}
	return r
}

func appendChange(changes []*Change, c *Change) []*Change {
	if c == nil {
		return changes
	}
	return append(changes, c)
}

// hidden tells whether no filter matches an object.
func hidden(s *source.Source) bool {
	return s == nil || s.Ignored
}

// withoutContent is as much of an object as filters look at.
func withoutContent(s *source.Source) *source.Source {
	if s == nil {
		return nil
	}
	return &source.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: s.Labels},
		Kind:       s.Kind,
		Ignored:    s.Ignored,
	}
}

// Ready is nil if everything that a filter is about is known. If not, it is ErrNotFollowed, ErrUnread or
// ErrUnreadable.
func (h *History) Ready(filter Filter) error {
	h.broker.mu.Lock()
	defer h.broker.mu.Unlock()
	if !h.broker.follows(filter.Namespace) {
		return ErrNotFollowed
	}
	if h.broker.awaits(&filter) {
		return ErrUnread
	}
	for s := range h.broker.unread {
		if s.overlaps(&filter) {
			return fmt.Errorf("%ss: %w", s.kind, ErrUnreadable)
		}
	}
	return nil
}

// Subscribe is the broker's Subscribe, and tells the position at which the subscription begins. Present objects
// are those at that position, if the filter is Ready.
func (h *History) Subscribe(filter Filter, buffer int) (*Subscription, Position, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.broker.Subscribe(filter, buffer)
	return s, h.position(&filter), err
}

// position is that of a subscription which has been told everything.
func (h *History) position(f *Filter) Position {
	var p Position
	for _, t := range h.tracks {
		if !t.overlaps(f) {
			continue
		}
		at := Reached{Kind: t.kind, Version: t.reached}
		if t.within {
			at.Version = ""
		}
		if f.Namespace == "" {
			at.Namespace = t.namespace
		}
		p = append(p, at)
	}
	return p
}

// Resumption is a subscription that goes on where another one ended.
type Resumption struct {
	*Subscription
	// Missed is what happened since then, oldest first. It comes before what the subscription receives.
	Missed []*Change
	// Position is where the other one ended, as far as it concerns the subscription.
	Position Position
	// Ahead is what of that is ahead of what this History has come to, and nil if nothing is.
	Ahead Position
}

// Resume begins a subscription that goes on after a position: no gap and no duplicate. It is ErrForgotten if some of
// what it missed may not be kept any more. There are no present objects, whatever the filter says.
//
// A replica may be behind another one, so that a position of that one is ahead here. Then changes are received that
// were told there: those of steps that lead to no later version than the position has.
func (h *History) Resume(filter Filter, buffer int, after Position) (*Resumption, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	filter.Initial = false
	r := &Resumption{Position: h.position(&filter)}
	for _, t := range h.tracks {
		if !t.overlaps(&filter) {
			continue
		}
		at := after.Of(t.step())
		if at == nil || !t.reachesBack(at.Version) {
			return nil, ErrForgotten
		}
		here := r.Position.Of(t.step())
		here.Version = at.Version
		if Earlier(t.reached, at.Version) {
			r.Ahead = append(r.Ahead, *here)
		}
	}
	for _, told := range h.told {
		if !told.track.overlaps(&filter) || !Earlier(after.Of(told.step).Version, told.step.Version) {
			continue
		}
		if c := told.seenBy(&filter); c != nil && filter.wants(c.Type) {
			r.Missed = append(r.Missed, c)
		}
	}
	var err error
	r.Subscription, err = h.broker.Subscribe(filter, buffer)
	return r, err
}

// step is one that the track makes, as far as positions are concerned.
func (t *track) step() *source.Step {
	return &source.Step{Step: informer.Step{Namespace: t.namespace}, Kind: t.kind}
}

// ReachesBack tells whether the watch that a step belongs to was at a version, and everything is kept that came after.
func (h *History) ReachesBack(step *source.Step, version string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trackOf(step)
	return t != nil && t.reachesBack(version)
}

// Passed is the position of a subscription that has received everything which concerns it; if not, ErrToReceive. If
// it went on from a position that was ahead, the position stays where that is still ahead, and what is no longer
// ahead is taken away from that. It is ErrForgotten if this replica has left out the state from which it went on.
func (h *History) Passed(s *Subscription, ahead Position) (position, still Position, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.broker.received(s) {
		return nil, nil, ErrToReceive
	}
	position = h.position(&s.filter)
	for _, t := range h.tracks {
		at := ahead.Of(t.step())
		switch {
		case at == nil || at.Version == "" || !t.overlaps(&s.filter):
		case Earlier(t.reached, at.Version):
			still = append(still, *at)
			position.Of(t.step()).Version = at.Version
		case !t.reachesBack(at.Version):
			return nil, nil, ErrForgotten
		}
	}
	return position, still, nil
}

// received tells whether a subscription has been given all that there is for it.
func (b *Broker) received(s *Subscription) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.waiting && s.queue.empty()
}
