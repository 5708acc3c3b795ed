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

package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
)

// addSubscribers adds subscribers, and what is recorded of them and of others, none of which need fit together.
func (b *bytesOf) addSubscribers(in *plan.Input) {
	in.UID, in.Attempts = "watch-uid", map[string]plan.Attempt{}
	for _, name := range []string{"cache", "chat"} {
		if !b.flag() {
			continue
		}
		s := subscriberOf(name, choose(b, "AMD", "M", "AD", "TCF", "AMDTCF"))
		if b.flag() {
			in.Recorded.Subscribers = append(in.Recorded.Subscribers, b.subscriberRow(name))
		}
		if b.flag() {
			in.Attempts[name] = b.attemptOf(s, in.Recorded)
		}
		if b.next(8) == 1 {
			continue // it is removed
		}
		subscription := plan.Subscription{Subscriber: s, Pairs: b.pairs(in.Observed.Sources)}
		for i := range subscription.Pairs {
			if pair := &subscription.Pairs[i]; pair.State == v1alpha1.SourcePresent {
				pair.UID, pair.ResourceVersion = pair.Source.String(), choose(b, "1", "2")
			}
		}
		in.Observed.Subscriptions = append(in.Observed.Subscriptions, subscription)
	}
}

func (b *bytesOf) subscriberRow(name string) v1alpha1.SubscriberStatus {
	row := v1alpha1.SubscriberStatus{
		Name: name, Failures: int32(b.next(12)), Refusals: int32(b.next(7)), Message: choose(b, "", "it can't be reached"),
	}
	if b.flag() {
		row.NextAttemptTime = &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, b.next(10), 0, time.UTC)}
	}
	for _, ref := range b.sourceRefs() {
		row.Sources = append(row.Sources, v1alpha1.DeliveredSource{
			Kind: ref.Kind, Name: ref.Name, DeliveredHash: string(b.hash()), Absent: b.flag(),
		})
	}
	for _, ref := range b.sourceRefs() {
		row.Waiting = append(row.Waiting, b.waiting(ref))
	}
	if b.flag() {
		row.Waiting = append(row.Waiting, v1alpha1.WaitingEvent{
			ID: "watch-uid/1/3/triggered", Event: v1alpha1.SubscriberRestartTriggered, Kind: "Deployment", Name: "a", Message: "cause",
		})
	}
	return row
}

func (b *bytesOf) waiting(ref source.Ref) v1alpha1.WaitingEvent {
	return v1alpha1.WaitingEvent{
		ID:    fmt.Sprintf("%s/%s/%s", ref.Kind, ref.Name, choose(b, "1", "2")),
		Event: choose(b, v1alpha1.SubscriberAdded, v1alpha1.SubscriberModified, v1alpha1.SubscriberDeleted),
		Kind:  string(ref.Kind), Name: ref.Name, Hash: string(b.hash()),
	}
}

// attemptOf is how an attempt went: mostly one to tell what waits.
func (b *bytesOf) attemptOf(s v1alpha1.Subscriber, recorded *v1alpha1.ConfigWatchStatus) plan.Attempt {
	attempt := choose(b, taken, down, refuses, plan.Attempt{Hash: "1:bbbb"}, plan.Attempt{Message: "later", RetryAfter: time.Hour})
	attempt.Event = b.waiting(source.Ref{Kind: v1alpha1.ConfigMap, Name: "a"})
	for _, row := range recorded.Subscribers {
		if row.Name == s.Name && len(row.Waiting) > 0 && b.next(4) > 0 {
			attempt.Event = row.Waiting[0]
		}
	}
	attempt.Webhook, attempt.Time = s.Webhook, time.Date(2026, 1, 2, 3, 4, 4, 0, time.UTC)
	if b.next(8) == 1 {
		attempt.Webhook.URL = "https://elsewhere.example.com"
	}
	return attempt
}

// checkTelling holds the rows of subscribers, and what they are told, against F6.
func checkTelling(t *testing.T, in plan.Input, decision *plan.Decision, status *v1alpha1.ConfigWatchStatus) {
	due := map[string]v1alpha1.WaitingEvent{}
	for _, d := range decision.Deliveries {
		if _, twice := due[d.Subscriber.Name]; twice {
			t.Errorf("F6: %s is told two things at once", d.Subscriber.Name)
		}
		due[d.Subscriber.Name] = d.Event
	}
	for _, row := range status.Subscribers {
		checkSubscriberRow(t, &row)
		event, told := due[row.Name]
		delete(due, row.Name)
		later := row.NextAttemptTime != nil && in.Now.Before(row.NextAttemptTime.Time)
		switch {
		case told && later:
			t.Errorf("F6: %s is told before %s", row.Name, row.NextAttemptTime)
		case told && (len(row.Waiting) == 0 || event.ID != row.Waiting[0].ID):
			t.Errorf("F6: %s is told of %s, which is not what it is to be told first: %+v", row.Name, event.ID, row.Waiting)
		case !told && !later && len(row.Waiting) > 0:
			t.Errorf("F6: %s isn't told what waits for it: %+v", row.Name, row.Waiting)
		}
		if later && len(row.Waiting) > 0 && decision.LookAgain.After(row.NextAttemptTime.Time) {
			t.Errorf("F6: nobody looks again at %s", row.NextAttemptTime)
		}
	}
	if len(due) > 0 {
		t.Errorf("F6: who has no row is told: %v", due)
	}
	checkTold(t, in, status)
}

func checkSubscriberRow(t *testing.T, row *v1alpha1.SubscriberStatus) {
	seen := map[string]bool{}
	once := func(what string) {
		if seen[what] {
			t.Errorf("%s: twice: %s", row.Name, what)
		}
		seen[what] = true
	}
	for _, s := range row.Sources {
		once(fmt.Sprintf("the record of %s %s", s.Kind, s.Name))
	}
	for _, e := range row.Waiting {
		once("the event " + e.ID)
		if isChange(e.Event) {
			once(fmt.Sprintf("an event of %s %s", e.Kind, e.Name))
		}
	}
	if len(row.Message) > 1000 || !utf8.ValidString(row.Message) || row.Failures < 0 || row.Refusals < 0 {
		t.Errorf("no good row: %+v", row)
	}
}

func isChange(event v1alpha1.SubscriberEvent) bool {
	return slices.Contains([]v1alpha1.SubscriberEvent{
		v1alpha1.SubscriberAdded, v1alpha1.SubscriberModified, v1alpha1.SubscriberDeleted,
	}, event)
}

// checkTold tells whether a subscriber of everything knows what is there, or waits to be told: nothing is lost.
func checkTold(t *testing.T, in plan.Input, status *v1alpha1.ConfigWatchStatus) {
	if in.Observed.Incomplete {
		return
	}
	for _, subscription := range in.Observed.Subscriptions {
		i := slices.IndexFunc(status.Subscribers, func(row v1alpha1.SubscriberStatus) bool { return row.Name == subscription.Subscriber.Name })
		if i < 0 {
			t.Errorf("F6: %s has no row", subscription.Subscriber.Name)
			continue
		}
		if !slices.Contains(subscription.Subscriber.Events, v1alpha1.SubscriberModified) {
			continue
		}
		for _, pair := range subscription.Pairs {
			if pair.State == v1alpha1.SourcePresent && !knowsOrWaits(&status.Subscribers[i], &pair) {
				t.Errorf("F6: %s is never told of %s: %+v", subscription.Subscriber.Name, pair.Source, status.Subscribers[i])
			}
		}
	}
}

func knowsOrWaits(row *v1alpha1.SubscriberStatus, pair *plan.Pair) bool {
	for _, e := range row.Waiting {
		if isChange(e.Event) && e.Kind == string(pair.Source.Kind) && e.Name == pair.Source.Name && e.Hash == string(pair.Hash) {
			return true
		}
	}
	for _, s := range row.Sources {
		if s.Kind == pair.Source.Kind && s.Name == pair.Source.Name {
			return !s.Absent && s.DeliveredHash == string(pair.Hash) || !digest.Hash(s.DeliveredHash).Comparable(pair.Hash)
		}
	}
	return false
}
