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

package plan

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

const (
	// firstRetry and lastRetry bound the time between two attempts to tell a subscriber; it doubles.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// mostRefusals is after how many refusals in a row only a human can help.
	mostRefusals = 5
)

// Delivery is an event that a subscriber is to be told of now, unless it is being told already.
type Delivery struct {
	Subscriber v1alpha1.Subscriber
	Event      v1alpha1.WaitingEvent
	// PreviousHash is that of the content that it was told of before; empty: none, or the same.
	PreviousHash string
	// Keys are the keys of the source that matter; empty: all.
	Keys []string
	// Retry tells that the last attempt to tell the subscriber something failed.
	Retry bool
}

// Attempt is how a Delivery went.
type Attempt struct {
	Event v1alpha1.WaitingEvent
	// Webhook is where it went, which may have been edited since.
	Webhook v1alpha1.Webhook
	// Time is when it ended, and Took how long it took, which nothing is decided by.
	Time time.Time
	Took time.Duration
	// Message says why it failed; empty: it was delivered.
	Message string
	// Refused tells that another attempt will hardly go better.
	Refused bool
	// RetryAfter is the least time until the next attempt that the endpoint asks for.
	RetryAfter time.Duration
	// Hash is that of the content that was sent, if that is newer than the event's.
	Hash string
}

// Subscription is what a subscriber may be told of: the pairs' ChangedKeys are those that differ from what
// it was told of last.
type Subscription struct {
	Subscriber v1alpha1.Subscriber
	Pairs      []Pair
}

// telling is a subscriber on its way through a pass.
type telling struct {
	*Decision
	subscription *Subscription
	before       *v1alpha1.SubscriberStatus // nil: it is new
	row          v1alpha1.SubscriberStatus
	// tried is the id of the event that the subscriber may have been told of without a record of that: the attempt
	// is under way, or its outcome was lost, or it took the event and its answer was lost. Empty: there is none.
	tried string
	// rebased tells that a hash was taken over as a baseline because the operator's key or the format version is another.
	rebased bool
}

// tell brings the rows of subscribers up to date, and says what they are to be told now (F6). That is so in every
// mode: a source changes whether its targets are restarted or not.
func (d *Decision) tell() {
	var tellings []*telling
	for i := range d.in.Observed.Subscriptions {
		t := d.newTelling(&d.in.Observed.Subscriptions[i])
		switch {
		case !d.in.Observed.Incomplete:
			t.attempted()
			t.sources()
			t.rollouts()
		case t.before == nil: // it can't be said what is no news to it
			continue
		default: // what it waits for is told all the same
			t.attempted()
		}
		tellings = append(tellings, t)
	}
	if !d.rebased() && slices.ContainsFunc(tellings, func(t *telling) bool { return t.rebased }) {
		d.events = append(d.events, newBaseline()) // E3
	}
	d.bound(tellings)
	d.status.Subscribers = nil
	for _, t := range tellings {
		t.due()
		d.status.Subscribers = append(d.status.Subscribers, t.row)
	}
}

func (d *Decision) newTelling(s *Subscription) *telling {
	t := &telling{Decision: d, subscription: s, row: v1alpha1.SubscriberStatus{Name: s.Subscriber.Name}}
	for i := range d.in.Recorded.Subscribers {
		if before := &d.in.Recorded.Subscribers[i]; before.Name == t.row.Name {
			t.before, t.row = before, *before.DeepCopy()
		}
	}
	if len(t.row.Waiting) > 0 {
		t.tried = t.row.Waiting[0].ID
	}
	return t
}

func (t *telling) wants(event v1alpha1.SubscriberEvent) bool {
	return slices.Contains(t.subscription.Subscriber.Events, event)
}

// attempted takes note of how an attempt went. One that was delivered counts even if there is newer content
// to tell of. One that went elsewhere, as the webhook was edited, counts for nothing.
func (t *telling) attempted() {
	if !t.records.sameGeneration {
		t.row.NextAttemptTime = nil // who has mended the spec wants to see it work
	}
	attempt, ok := t.in.Attempts[t.row.Name]
	if !ok || t.before == nil || !reflect.DeepEqual(attempt.Webhook, t.subscription.Subscriber.Webhook) {
		return
	}
	if attempt.Message != "" {
		t.failed(attempt)
		return
	}
	t.row.Failures, t.row.Refusals, t.row.Message, t.row.NextAttemptTime = 0, 0, "", nil
	t.row.LastDeliveryTime = &metav1.Time{Time: attempt.Time.Truncate(time.Second)}
	t.row.Waiting = slices.DeleteFunc(t.row.Waiting, func(e v1alpha1.WaitingEvent) bool { return e.ID == attempt.Event.ID })
	t.tried = "" // one at a time: what is first now has been handed to nobody yet
	if e := &attempt.Event; ofSource(e.Event) {
		if record := t.record(sourceOf(e)); record != nil {
			*record = afterTelling(*record, e)
			record.DeliveredHash = cmp.Or(attempt.Hash, record.DeliveredHash)
		}
	}
}

func (t *telling) failed(attempt Attempt) {
	t.row.Failures++
	t.row.Refusals++
	if !attempt.Refused {
		t.row.Refusals = 0
	}
	t.row.Message = truncate(attempt.Message)
	wait := t.retryIn(t.row.Failures)
	if t.row.Refusals >= mostRefusals {
		wait = lastRetry
	}
	next := attempt.Time.Add(max(attempt.RetryAfter, wait))
	// The status has whole seconds: no sooner than that.
	t.row.NextAttemptTime = &metav1.Time{Time: next.Add(time.Second - 1).Truncate(time.Second)}
}

// retryIn is how long after the n-th failure in a row another attempt is made: from 1 to 2 seconds, then twice as
// long each time up to a limit. By how much it is less than the longest is in no order among the subscribers of one
// endpoint, so that they don't come all at once.
func (t *telling) retryIn(failures int32) time.Duration {
	longest := lastRetry
	if failures < 9 {
		longest = min(lastRetry, 2*firstRetry<<(failures-1))
	}
	sum := fnv.New32a()
	_, _ = fmt.Fprintf(sum, "%s %s %d", t.in.UID, t.row.Name, failures) // which can't fail
	return longest - time.Duration(sum.Sum32()%500)*longest/1000
}

// due says what the subscriber is to be told now: the first of what waits, so that the order is kept.
func (t *telling) due() {
	if len(t.row.Waiting) == 0 {
		return
	}
	if next := t.row.NextAttemptTime; next != nil && t.in.Now.Before(next.Time) {
		t.lookAgain(next.Time)
		return
	}
	first := t.row.Waiting[0]
	delivery := Delivery{Subscriber: t.subscription.Subscriber, Event: first, Retry: t.row.Failures > 0}
	if ofSource(first.Event) {
		ref := sourceOf(&first)
		if record := t.record(ref); record != nil && record.DeliveredHash != first.Hash {
			delivery.PreviousHash = record.DeliveredHash
		}
		delivery.Keys = t.keysOf(ref)
	}
	t.Deliveries = append(t.Deliveries, delivery)
}

func (t *telling) keysOf(ref source.Ref) []string {
	for i := range t.subscription.Pairs {
		if t.subscription.Pairs[i].Source == ref {
			return t.subscription.Pairs[i].Keys
		}
	}
	return nil
}

// refusedSubscribers are what a human has to mend, as what they are told is refused.
func (d *Decision) refusedSubscribers() []Problem {
	var problems []Problem
	for i := range d.status.Subscribers {
		if s := &d.status.Subscribers[i]; s.Refusals >= mostRefusals && len(s.Waiting) > 0 {
			problems = append(problems, Problem{v1alpha1.ReasonSubscriberRefuses, fmt.Sprintf(
				"subscriber %s could not be told of events in %d attempts, and is tried again every %d minutes: %s",
				s.Name, s.Refusals, int(lastRetry.Minutes()), s.Message)})
		}
	}
	return problems
}
