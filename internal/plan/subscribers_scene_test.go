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
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
)

// audience is a scene with subscribers.
type audience struct {
	*scene
	subscribers []v1alpha1.Subscriber
	versions    map[*src]int
	attempts    map[string]plan.Attempt
	onlyTold    bool
	// deliveries and lookAgain are those of the latest pass.
	deliveries []plan.Delivery
	lookAgain  time.Time
}

// subscriberOf is one of these events: letters as in on, and T, C and F for those of restarts.
func subscriberOf(name, letters string) v1alpha1.Subscriber {
	s := v1alpha1.Subscriber{Name: name, Webhook: v1alpha1.Webhook{URL: "https://" + name + ".example.com"}}
	for _, c := range on(letters) {
		s.Events = append(s.Events, v1alpha1.SubscriberEvent(c))
	}
	for letter, event := range map[string]v1alpha1.SubscriberEvent{
		"T": v1alpha1.SubscriberRestartTriggered, "C": v1alpha1.SubscriberRolloutCompleted, "F": v1alpha1.SubscriberRolloutFailed,
	} {
		if strings.Contains(letters, letter) {
			s.Events = append(s.Events, event)
		}
	}
	return s
}

// told are a ConfigWatch and one subscriber of all changes of sources, which know each other.
func told(objects ...any) *audience {
	return toldOf("AMD", objects...)
}

func toldOf(letters string, objects ...any) *audience {
	a := &audience{
		scene: newScene(objects...), versions: map[*src]int{}, subscribers: []v1alpha1.Subscriber{subscriberOf("cache", letters)},
	}
	a.pass()
	return a
}

// set changes a source's only value; "-" deletes it.
func (a *audience) set(one *src, v string) {
	one.set(v)
	a.versions[one]++
}

func (a *audience) input() plan.Input {
	in := a.scene.input()
	in.UID, in.Attempts = "watch-uid", a.attempts
	in.Observed.OnlyTold = a.onlyTold
	a.attempts = nil
	for _, s := range a.subscribers {
		subscription := plan.Subscription{Subscriber: s}
		for _, one := range a.sources {
			if !a.selects(one) || one.state() == v1alpha1.SourceIgnored {
				continue
			}
			recorded := digest.Hash("")
			if record := a.record(s.Name, one); record != nil {
				recorded = digest.Hash(record.DeliveredHash)
			}
			pair := one.pair(recorded)
			if pair.State == v1alpha1.SourcePresent {
				pair.UID, pair.ResourceVersion, pair.Keys = one.Name[max(0, len(one.Name)-36):], fmt.Sprint(a.versions[one]), one.keys
			}
			subscription.Pairs = append(subscription.Pairs, pair)
		}
		in.Observed.Subscriptions = append(in.Observed.Subscriptions, subscription)
	}
	return in
}

// pass makes a pass whose status is recorded. Nobody is told yet.
func (a *audience) pass() result {
	return a.scene.record(a.unrecorded())
}

// unrecorded makes a pass whose status is lost.
func (a *audience) unrecorded() result {
	a.now = a.now.Add(betweenPasses)
	decision := plan.Decide(a.input())
	r := a.carryOut(decision, a.patch)
	a.deliveries, a.lookAgain = decision.Deliveries, decision.LookAgain
	return r
}

// passAfter makes a pass that long after the one before.
func (a *audience) passAfter(d time.Duration) result {
	a.now = a.now.Add(d - betweenPasses)
	return a.pass()
}

// due is the delivery of a subscriber that the latest pass asks for, or nil.
func (a *audience) due(name string) *plan.Delivery {
	for i := range a.deliveries {
		if a.deliveries[i].Subscriber.Name == name {
			return &a.deliveries[i]
		}
	}
	return nil
}

// answer makes the attempt that is due end like this, as the next pass sees it.
func (a *audience) answer(d *plan.Delivery, how plan.Attempt) {
	how.Event, how.Webhook, how.Time = d.Event, d.Subscriber.Webhook, a.now
	if a.attempts == nil {
		a.attempts = map[string]plan.Attempt{}
	}
	a.attempts[d.Subscriber.Name] = how
}

var (
	taken   = plan.Attempt{}
	down    = plan.Attempt{Message: "it can't be reached"}
	refuses = plan.Attempt{Message: "it answered 404", Refused: true}
)

// tells makes passes in which everything that is due is taken, until nothing is, and says what it was.
func (a *audience) tells() []string {
	var said []string
	for a.pass(); len(a.deliveries) > 0; a.pass() {
		for i := range a.deliveries {
			d := &a.deliveries[i]
			said = append(said, a.say(d))
			a.answer(d, taken)
		}
	}
	return said
}

// say is such as "Modified config=B", or "Deleted config".
func (a *audience) say(d *plan.Delivery) string {
	said := string(d.Event.Event) + " " + d.Event.Name
	for _, one := range a.sources {
		if one.Name != d.Event.Name || string(one.Kind) != d.Event.Kind || d.Event.Hash == "" {
			continue
		}
		for _, v := range []string{"A", "B", "C", "D"} {
			if string(one.hasher.Content(value(v), nil).Hash(one.keys)) == d.Event.Hash {
				said += "=" + v
			}
		}
	}
	return said
}

// subscriber is the recorded row of the subscriber, which is empty if there is none.
func (a *audience) subscriber(name string) v1alpha1.SubscriberStatus {
	i := slices.IndexFunc(a.status.Subscribers, func(s v1alpha1.SubscriberStatus) bool { return s.Name == name })
	if i < 0 {
		return v1alpha1.SubscriberStatus{}
	}
	return a.status.Subscribers[i]
}

func (a *audience) record(name string, one *src) *v1alpha1.DeliveredSource {
	for _, record := range a.subscriber(name).Sources {
		if record.Kind == one.Kind && record.Name == one.Name {
			return &record
		}
	}
	return nil
}

// waiting says what waits for the subscriber.
func (a *audience) waiting() []string {
	var said []string
	for _, e := range a.subscriber("cache").Waiting {
		said = append(said, a.say(&plan.Delivery{Event: e}))
	}
	return said
}

// second is the time of the latest pass as the status has it.
func (a *audience) second() *metav1.Time {
	return &metav1.Time{Time: a.now.Truncate(time.Second)}
}

// statedCondition is a condition, or nil.
func statedCondition(a *audience, conditionType string) *metav1.Condition {
	for i := range a.status.Conditions {
		if a.status.Conditions[i].Type == conditionType {
			return &a.status.Conditions[i]
		}
	}
	return nil
}

func must(encoded []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return encoded
}
