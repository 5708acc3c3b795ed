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
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/workload"
)

func TestF6WhatIsThereAtFirstIsNoNews(t *testing.T) {
	g := NewWithT(t)
	config, gone, later := configMap("config", "A"), configMap("gone", "-"), configMap("later", "A")
	a := told(config, gone, deployment("web"))
	g.Expect(a.tells()).To(BeEmpty())

	a.edit(func() { a.sources = append(a.sources, later) })
	g.Expect(a.tells()).To(BeEmpty(), "a source that the spec lists newly")

	a.set(config, "B")
	a.edit(func() { a.subscribers = append(a.subscribers, subscriberOf("log", "AMD")) })
	a.pass()
	g.Expect(a.due("cache")).NotTo(BeNil())
	g.Expect(a.due("log")).To(BeNil(), "a subscriber that is new")
}

// Each row is what the source is at first, what becomes of it one after the other, and what subscribers are told
// that want all, and only some of it.
func TestF6EachSubscriberIsToldWhatItWants(t *testing.T) {
	for _, c := range []struct {
		from   string
		then   []string
		wanted map[string][]string
	}{
		{"A", []string{"B"}, map[string][]string{
			"AMD": {"Modified config=B"}, "M": {"Modified config=B"}, "A": nil, "D": nil, "AD": nil,
		}},
		{"A", []string{"-"}, map[string][]string{
			"AMD": {"Deleted config"}, "D": {"Deleted config"}, "M": nil, "A": nil, "AM": nil,
		}},
		{"-", []string{"A"}, map[string][]string{
			"AMD": {"Added config=A"}, "A": {"Added config=A"}, "M": nil, "D": nil, "MD": nil,
		}},
		{"A", []string{"-", "A"}, map[string][]string{
			"AMD": {"Deleted config", "Added config=A"}, "A": {"Added config=A"}, "M": nil, "D": {"Deleted config"}, "MD": {"Deleted config"},
		}},
		{"A", []string{"-", "B"}, map[string][]string{
			"AMD": {"Deleted config", "Added config=B"}, "A": {"Added config=B"}, "M": {"Modified config=B"},
			"D": {"Deleted config"}, "MD": {"Deleted config", "Modified config=B"}, "AM": {"Added config=B"},
		}},
		{"A", []string{"B", "A", "B"}, map[string][]string{
			"AMD": {"Modified config=B", "Modified config=A", "Modified config=B"}, "AD": nil,
		}},
		{"-", []string{"A", "-", "A", "-"}, map[string][]string{
			"AMD": {"Added config=A", "Deleted config", "Added config=A", "Deleted config"},
			"A":   {"Added config=A", "Added config=A"}, "D": {"Deleted config", "Deleted config"}, "M": nil,
		}},
	} {
		for letters, want := range c.wanted {
			t.Run(fmt.Sprintf("%s then %s, of %s", c.from, strings.Join(c.then, " "), letters), func(t *testing.T) {
				g := NewWithT(t)
				config := configMap("config", c.from)
				a := toldOf(letters, config, deployment("web"))
				var said []string
				for _, v := range c.then {
					a.set(config, v)
					said = append(said, a.tells()...)
				}
				g.Expect(said).To(Equal(want))
			})
		}
	}
}

func TestF6OnlyTheLatestContentOfEachSourceIsTold(t *testing.T) {
	g := NewWithT(t)
	one, two, three := configMap("one", "A"), configMap("two", "A"), configMap("three", "A")
	a := told(one, two, three, deployment("web"))
	a.set(one, "B")
	a.pass()
	a.answer(a.due("cache"), down)
	a.set(two, "B")
	a.pass()
	a.set(one, "C")
	a.set(two, "A")
	a.set(three, "-")
	a.pass()
	a.set(three, "D")
	g.Expect(a.tells()).To(Equal([]string{"Modified one=C", "Modified three=D"}), "two was not told of B, and has no news")
}

func TestF6AnEventSaysWhatItIsAbout(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	config.keys = []string{"KEY"}
	a := told(config, deployment("web"))
	before := string(config.content().Hash(config.keys))

	config.write(data{"KEY": "A", "ELSE": "B"})
	g.Expect(a.tells()).To(BeEmpty(), "another key")
	a.set(config, "B")
	a.pass()
	d := a.due("cache")
	g.Expect(d.Event).To(Equal(v1alpha1.WaitingEvent{
		ID: "config/1", Event: v1alpha1.SubscriberModified, Kind: "ConfigMap", Name: "config",
		Hash: string(config.content().Hash(config.keys)), ChangedKeys: []string{"KEY"}, Time: *a.second(),
	}))
	g.Expect(d.PreviousHash).To(Equal(before))
	g.Expect(d.Keys).To(Equal(config.keys))
	g.Expect(d.Subscriber.Name).To(Equal("cache"))
}

// TestF6KeysAreNamedAllOrNone: some of them would be taken for all.
func TestF6KeysAreNamedAllOrNone(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	many := data{"KEY": "A"}
	for i := range 16 {
		many[fmt.Sprintf("KEY_%02d", i)] = "new"
	}
	config.write(many)
	a.tells()
	config.write(data{"KEY": "A"})
	a.pass()
	g.Expect(a.due("cache").Event.ChangedKeys).To(HaveLen(16))
	many["KEY"] = "B"
	config.write(many)
	a.tells()
	config.write(data{"KEY": "A"})
	a.pass()
	g.Expect(a.due("cache").Event.ChangedKeys).To(BeEmpty(), "17")
}

func TestF6TheIDOfADeletionIsItsOwnAndShort(t *testing.T) {
	g := NewWithT(t)
	config := configMap(strings.Repeat("x", 253), "A")
	a := told(config, deployment("web"))
	ids := map[string]bool{}
	for range 3 {
		a.set(config, "-")
		a.passAfter(time.Millisecond)
		ids[a.due("cache").Event.ID] = true
		a.answer(a.due("cache"), taken)
		a.set(config, "A")
		a.passAfter(time.Millisecond)
		a.answer(a.due("cache"), taken)
		a.passAfter(time.Millisecond)
	}
	g.Expect(ids).To(HaveLen(3), "within the same second")
	for id := range ids {
		g.Expect(len(id)).To(BeNumerically("<", 256-30), "the UID is longer elsewhere")
	}
}

// The attempt is under way, or its outcome was lost: the subscriber may know of it or not.
func TestF6WhatMayHaveBeenToldIsTakenBack(t *testing.T) {
	for _, c := range []struct{ letters, from, tried, now, want string }{
		{"AMD", "A", "B", "A", "Modified config=A"},
		{"AMD", "A", "B", "C", "Modified config=C"},
		{"AMD", "A", "B", "-", "Deleted config"},
		{"AMD", "A", "-", "A", "Added config=A"},
		{"AMD", "A", "-", "B", "Modified config=B"},
		{"AMD", "-", "A", "-", "Deleted config"},
		{"AMD", "-", "A", "B", "Added config=B"},
		{"M", "A", "B", "A", "Modified config=A"},
		{"M", "A", "B", "-", "Modified config=B"}, // so that it is known what to compare with if it comes back
		{"MD", "A", "-", "A", "Modified config=A"},
		{"AD", "A", "-", "B", "Added config=B"},
		{"D", "A", "-", "A", ""},
		{"D", "A", "-", "B", ""},
		{"A", "-", "A", "-", "Added config=A"},
	} {
		t.Run(fmt.Sprintf("%s: %s, %s, %s", c.letters, c.from, c.tried, c.now), func(t *testing.T) {
			for what, between := range map[string]func(*audience){
				"it is under way":            func(*audience) {},
				"the operator was restarted": func(a *audience) { a.reload() },
				"the endpoint failed":        func(a *audience) { a.answer(a.due("cache"), down) },
				"two passes":                 func(a *audience) { a.pass(); a.pass() },
			} {
				g := NewWithT(t)
				config := configMap("config", c.from)
				a := toldOf(c.letters, config, deployment("web"))
				a.set(config, c.tried)
				a.pass()
				g.Expect(a.due("cache")).NotTo(BeNil(), what)
				between(a)
				a.set(config, c.now)
				a.pass()
				var want []string
				if c.want != "" {
					want = append(want, c.want)
				}
				g.Expect(a.waiting()).To(Equal(want), what)
				g.Expect(a.tells()).To(Equal(want), what)
			}
		})
	}
}

func TestF6AResultThatComesAfterNewerContentCounts(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	a.set(config, "B")
	a.pass()
	first := a.due("cache")
	a.set(config, "C")
	a.pass()
	g.Expect(a.due("cache").Event.ID).NotTo(Equal(first.Event.ID))

	a.answer(first, taken)
	a.pass()
	g.Expect(a.due("cache").PreviousHash).To(Equal(first.Event.Hash))
	g.Expect(a.tells()).To(Equal([]string{"Modified config=C"}))

	a.set(config, "D")
	a.pass()
	first = a.due("cache")
	a.set(config, "C")
	a.answer(first, taken)
	g.Expect(a.tells()).To(Equal([]string{"Modified config=C"}), "which it knew before D")
}

// F6: with data, the subscriber may be told of newer content than the event's. The next event is not repeated.
func TestF6NewerContentThatWasSentIsNotToldAgain(t *testing.T) {
	for what, seenBefore := range map[string]bool{"the change is seen before the result": true, "the result comes first": false} {
		g := NewWithT(t)
		config := configMap("config", "A")
		a := told(config, deployment("web"))
		a.set(config, "B")
		a.pass()
		first := a.due("cache")
		a.set(config, "C")
		if seenBefore {
			a.pass()
		}
		a.answer(first, plan.Attempt{Hash: string(config.content().Hash(nil))})
		g.Expect(a.tells()).To(BeEmpty(), what)
		g.Expect(a.record("cache", config).DeliveredHash).To(Equal(string(config.content().Hash(nil))), what)
	}
}

// The scenario of an endpoint that is down for an hour, and an operator that is restarted meanwhile.
func TestF6AnEndpointThatWasDownForAnHourIsToldTheLatestOfEach(t *testing.T) {
	g := NewWithT(t)
	one, two, three, same := configMap("one", "A"), secret("two", "A"), configMap("three", "A"), configMap("same", "A")
	gone := configMap("gone", "A").bySelector()
	a := told(one, two, three, same, gone, deployment("web"))
	begin := a.now
	a.set(one, "B")
	a.set(two, "B")
	a.set(gone, "-")
	attempts, ids := 0, map[string]bool{}
	for minute := 0; a.now.Before(begin.Add(61 * time.Minute)); minute++ {
		switch minute {
		case 10:
			a.set(three, "-")
			a.set(same, "B")
		case 20:
			a.reload()
			a.attempts = nil
		case 25: // while no operator runs
			a.set(two, "C")
			a.now = a.now.Add(5 * time.Minute)
			a.set(same, "A")
		case 40:
			a.set(three, "C")
		case 59:
			a.sources = a.sources[:4] // an hour after its deletion it is forgotten
		}
		a.pass()
		if d := a.due("cache"); d != nil {
			attempts++
			ids[d.Event.ID] = true
			a.answer(d, down)
		}
	}
	g.Expect(attempts).To(BeNumerically("~", 20, 8), "with a backoff of up to 5 minutes")
	g.Expect(ids).To(Equal(map[string]bool{"one/1": true}), "the same id in each attempt")
	g.Expect(a.subscriber("cache").Message).To(Equal(down.Message))
	g.Expect(a.tellsOnceDue()).To(Equal([]string{"Modified one=B", "Modified two=C", "Deleted gone", "Modified three=C"}))
	g.Expect(a.subscriber("cache")).To(SatisfyAll(HaveField("Failures", int32(0)), HaveField("Message", ""), HaveField("Waiting", BeEmpty())))
}

// tellsOnceDue is tells from when the next attempt is due.
func (a *audience) tellsOnceDue() []string {
	a.now = a.now.Add(lastRetry)
	return a.tells()
}

const lastRetry = 5 * time.Minute

func TestF6BackoffDoublesFromASecondToFiveMinutes(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	a.set(config, "B")
	a.pass()
	longest := 2 * time.Second
	for range 12 {
		a.answer(a.due("cache"), down)
		a.passAfter(0)
		g.Expect(a.due("cache")).To(BeNil())
		g.Expect(a.lookAgain).To(Equal(a.subscriber("cache").NextAttemptTime.Time))
		wait := a.lookAgain.Sub(a.now)
		g.Expect(wait).To(SatisfyAll(BeNumerically(">=", longest/2), BeNumerically("<=", longest+time.Second)))
		a.passAfter(wait - time.Millisecond)
		g.Expect(a.due("cache")).To(BeNil())
		a.passAfter(time.Millisecond)
		g.Expect(a.due("cache").Event.ID).To(Equal("config/1"))
		longest = min(2*longest, lastRetry)
	}
	g.Expect(a.subscriber("cache").Failures).To(Equal(int32(12)))
}

func TestF6RetryAfterIsHonoured(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	a.set(config, "B")
	a.pass()
	a.answer(a.due("cache"), plan.Attempt{Message: "it answered 429", RetryAfter: 40 * time.Minute})
	a.passAfter(0)
	a.passAfter(40*time.Minute - time.Second)
	g.Expect(a.due("cache")).To(BeNil())
	a.passAfter(2 * time.Second)
	g.Expect(a.due("cache")).NotTo(BeNil())
}

func TestF6RefusalsStallUntilTheyEnd(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	a.rolledOut()
	a.set(config, "B")
	a.pass()
	a.rolledOut()
	var last result
	for refusal := range 7 {
		g.Expect(a.due("cache")).NotTo(BeNil(), "refusal %d", refusal)
		a.answer(a.due("cache"), refuses)
		last = a.passAfter(0)
		stalled := statedCondition(a, v1alpha1.ConditionStalled)
		if refusal < 4 {
			g.Expect(stalled).To(BeNil(), "refusal %d", refusal)
		} else {
			g.Expect(stalled.Reason).To(Equal(v1alpha1.ReasonSubscriberRefuses))
			g.Expect(stalled.Message).To(Equal(fmt.Sprintf("subscriber cache could not be told of events in %d attempts, "+
				"and is tried again every 5 minutes: it answered 404", refusal+1)))
			g.Expect(statedCondition(a, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonSubscriberRefuses))
			g.Expect(a.lookAgain.Sub(a.now)).To(BeNumerically("~", lastRetry, time.Second))
		}
		if refusal == 4 {
			g.Expect(last.note(v1alpha1.EventStalled)).To(HavePrefix("SubscriberRefuses: subscriber cache could not be told"))
		} else {
			g.Expect(last.events).To(BeEmpty(), "refusal %d", refusal)
		}
		a.passAt(a.lookAgain)
	}
	a.answer(a.due("cache"), taken)
	a.pass()
	g.Expect(statedCondition(a, v1alpha1.ConditionStalled)).To(BeNil())
	g.Expect(statedCondition(a, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonUpToDate))
}

func TestF6OtherFailuresAreNoRefusals(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	a.set(config, "B")
	a.pass()
	for _, how := range []plan.Attempt{refuses, refuses, refuses, refuses, down, refuses} {
		a.answer(a.due("cache"), how)
		a.pass()
		a.passAt(a.lookAgain)
	}
	g.Expect(a.subscriber("cache")).To(SatisfyAll(HaveField("Failures", int32(6)), HaveField("Refusals", int32(1))))
	g.Expect(statedCondition(a, v1alpha1.ConditionStalled)).To(BeNil())
}

func TestF6NobodyIsStalledWithNothingToBeTold(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, configMap("other", "A"), deployment("web"))
	a.rolledOut()
	a.set(config, "B")
	a.pass()
	for range 5 {
		a.answer(a.due("cache"), refuses)
		a.pass()
		a.passAt(a.lookAgain)
	}
	g.Expect(statedCondition(a, v1alpha1.ConditionStalled)).NotTo(BeNil())
	a.edit(func() { a.sources = a.sources[1:] })
	a.pass()
	g.Expect(statedCondition(a, v1alpha1.ConditionStalled)).To(BeNil())
}

func TestF6AnEditOfTheWebhook(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	a.set(config, "B")
	a.pass()
	a.answer(a.due("cache"), plan.Attempt{Message: "it answered 503", RetryAfter: time.Hour})
	a.passAfter(0)
	g.Expect(a.due("cache")).To(BeNil())

	a.edit(func() { a.subscribers[0].Webhook.URL = "https://mended.example.com" })
	a.passAfter(0)
	tried := a.due("cache")
	g.Expect(tried.Subscriber.Webhook.URL).To(Equal("https://mended.example.com"), "it is tried at once")

	a.edit(func() { a.subscribers[0].Webhook.URL = "https://other.example.com" })
	a.answer(tried, taken)
	a.passAfter(0)
	g.Expect(a.due("cache").Event.ID).To(Equal(tried.Event.ID), "who took it is another subscriber")
	g.Expect(a.due("cache").Subscriber.Webhook.URL).To(Equal("https://other.example.com"))
}

func TestF6AnEditOfTheEvents(t *testing.T) {
	g := NewWithT(t)
	config, other := configMap("config", "A"), configMap("other", "A")
	a := toldOf("MT", config, other, deployment("web"))
	a.set(config, "B")
	a.pass()
	g.Expect(a.waiting()).To(Equal([]string{"Modified config=B", "RestartTriggered web"}))
	a.edit(func() { a.subscribers[0].Events = subscriberOf("", "D").Events })
	g.Expect(a.tells()).To(BeEmpty(), "it wants none of it any more")
	a.edit(func() { a.subscribers[0].Events = subscriberOf("", "AMD").Events })
	g.Expect(a.tells()).To(BeEmpty(), "nor is that news later")
	a.set(config, "C")
	g.Expect(a.tells()).To(Equal([]string{"Modified config=C"}))
}

func TestF6ASubscriberThatIsRemovedAndAddedAgainIsNew(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	a.set(config, "B")
	a.pass()
	tried := a.due("cache")
	kept := a.subscribers
	a.edit(func() { a.subscribers = nil })
	a.pass()
	g.Expect(a.status.Subscribers).To(BeEmpty())
	a.edit(func() { a.subscribers = kept })
	a.answer(tried, down)
	g.Expect(a.tells()).To(BeEmpty())
	g.Expect(a.subscriber("cache").Failures).To(BeZero(), "that was another's attempt")
}

func TestF6AnEditOfKeysIsNoNewsAndLosesNone(t *testing.T) {
	g := NewWithT(t)
	config, other := configMap("config", "A"), configMap("other", "A")
	a := told(config, other, deployment("web"))
	a.edit(func() { config.keys = []string{"KEY"} })
	g.Expect(a.tells()).To(BeEmpty())

	a.set(other, "B")
	a.pass()
	a.answer(a.due("cache"), down)
	a.set(config, "B")
	a.pass()
	a.edit(func() { config.keys, other.keys = nil, []string{"KEY"} })
	a.now = a.now.Add(lastRetry)
	g.Expect(a.tells()).To(Equal([]string{"Modified other=B", "Modified config=B"}))

	a.edit(func() { config.keys = []string{"KEY"} })
	a.set(config, "C")
	g.Expect(a.tells()).To(Equal([]string{"Modified config=C"}), "changed together with the edit")
}

func TestF6AnotherHashKeyIsANewBaseline(t *testing.T) {
	g := NewWithT(t)
	credentials := secret("credentials", "A")
	a := told(credentials, deployment("web"))
	credentials.hasher = digest.Keyed([]byte("another"))
	g.Expect(a.tells()).To(BeEmpty())
	g.Expect(a.record("cache", credentials).DeliveredHash).To(Equal(string(credentials.content().Hash(nil))))
	a.set(credentials, "B")
	g.Expect(a.tells()).To(Equal([]string{"Modified credentials=B"}))
}

func TestF6WhileASourceCantBeReadWhatIsKnownStays(t *testing.T) {
	g := NewWithT(t)
	config, never := configMap("config", "A"), configMap("never", "A")
	never.unreadable = true
	a := told(config, never, deployment("web"))
	a.set(config, "B")
	a.pass()
	a.answer(a.due("cache"), down)
	config.unreadable = true
	a.pass()
	a.passAt(a.lookAgain)
	g.Expect(a.due("cache").Event.ID).To(Equal("config/1"), "what waits is told")
	a.set(config, "C")
	config.unreadable, never.unreadable = false, false
	g.Expect(a.tells()).To(Equal([]string{"Modified config=C"}), "never is seen for the first time")
}

func TestF6WhileTargetsCantBeReadSourcesThatTheyMayReferenceAreKept(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	a := told(config, web)
	a.set(config, "B")
	a.pass()
	web.unreadable = true
	sources := a.sources
	a.sources = nil
	a.pass()
	g.Expect(a.waiting()).To(HaveLen(1))
	g.Expect(a.subscriber("cache").Sources).To(HaveLen(1))
	web.unreadable, a.sources = false, sources
	a.set(config, "C")
	g.Expect(a.tells()).To(Equal([]string{"Modified config=C"}))
}

func TestF6ASourceThatASelectorNewlyMatchesIsAdded(t *testing.T) {
	g := NewWithT(t)
	a := told(configMap("config", "A"), deployment("web"))
	a.sources = append(a.sources, configMap("new", "A").bySelector())
	g.Expect(a.tells()).To(Equal([]string{"Added new=A"}))
	a.sources = append(a.sources, configMap("other", "A").bySelector())
	a.edit(func() {})
	g.Expect(a.tells()).To(BeEmpty(), "it may be the edit that selects it")
}

func TestF6WhatIsNoLongerSelectedIsForgotten(t *testing.T) {
	g := NewWithT(t)
	config, other := configMap("config", "A").bySelector(), configMap("other", "A")
	a := told(other, config, deployment("web"))
	a.set(config, "B")
	a.pass()
	a.sources = []*src{other}
	g.Expect(a.tells()).To(BeEmpty())
	g.Expect(a.subscriber("cache").Sources).To(HaveLen(1))
	a.sources = append(a.sources, config)
	g.Expect(a.tells()).To(Equal([]string{"Added config=B"}))
	config.ignored = true
	g.Expect(a.tells()).To(BeEmpty(), "nor is it told of what is annotated to be left out")
	a.set(config, "C")
	g.Expect(a.tells()).To(BeEmpty())
}

// TestF6ADeletionIsToldEvenIfItIsForgottenSince: a selector's record of it is kept for an hour.
func TestF6ADeletionIsToldEvenIfItIsForgottenSince(t *testing.T) {
	g := NewWithT(t)
	config, other := configMap("config", "A").bySelector(), configMap("other", "A")
	a := told(other, config, deployment("web"))
	a.set(config, "-")
	a.set(other, "B")
	a.pass()
	a.answer(a.due("cache"), down)
	a.pass()
	a.sources = []*src{other}
	a.reload()
	a.pass()
	g.Expect(a.waiting()).To(Equal([]string{"Modified other=B", "Deleted config"}))

	a.sources = append(a.sources, config)
	a.set(config, "B")
	a.pass()
	g.Expect(a.waiting()).To(Equal([]string{"Modified other=B", "Added config=B"}), "it is back")
	a.set(config, "-")
	a.pass()
	a.sources = []*src{other}
	a.pass()
	a.edit(func() { a.sources = []*src{other, config.named()} })
	a.now = a.now.Add(lastRetry)
	g.Expect(a.tells()).To(Equal([]string{"Modified other=B"}), "that it was back was never told, nor that it was gone")
}

func (s *src) named() *src {
	s.selected = false
	return s
}

func TestF6WhileItCantBeSaidWhatIsSelectedWhatWaitsIsTold(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	a.set(config, "B")
	a.pass()
	a.answer(a.due("cache"), down)
	a.pass()
	a.incomplete = true
	a.problems = []plan.Problem{{Reason: v1alpha1.ReasonTooManyMatches, Message: "too many"}}
	a.subscribers = append(a.subscribers, subscriberOf("log", "AMD"))
	a.set(config, "C")
	a.now = a.now.Add(lastRetry)
	g.Expect(a.tells()).To(Equal([]string{"Modified config=B"}))
	g.Expect(a.status.Subscribers).To(HaveLen(1), "a new one can't be told yet what is no news to it")
	a.incomplete, a.problems = false, nil
	g.Expect(a.tells()).To(Equal([]string{"Modified config=C"}))
}

func TestF6ChangesAreToldInEveryMode(t *testing.T) {
	for _, mode := range []v1alpha1.Mode{
		v1alpha1.ModeActive, v1alpha1.ModeDryRun, v1alpha1.ModeSuspended, v1alpha1.ModeObserve,
	} {
		g := NewWithT(t)
		config := configMap("config", "A")
		a := toldOf("AMDT", config, deployment("web"))
		a.edit(func() { a.mode = mode })
		a.pass()
		a.set(config, "B")
		want := []string{"Modified config=B"}
		if mode == v1alpha1.ModeActive {
			want = []string{"Modified config=B", "RestartTriggered web"}
		}
		g.Expect(a.tells()).To(Equal(want), string(mode))
	}
}

func TestE25WithSubscribersAloneNothingIsMissing(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config)
	a.onlyTold = true
	a.pass()
	g.Expect(statedCondition(a, v1alpha1.ConditionReady).Message).To(Equal("0 targets up to date with 1 source"))
	a.set(config, "-")
	a.pass()
	g.Expect(statedCondition(a, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonNoSources))
	a.onlyTold = false
	a.pass()
	g.Expect(statedCondition(a, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonNoSources))
	a.set(config, "A")
	a.pass()
	g.Expect(statedCondition(a, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonNoTargets))
}

func TestF6RestartsAndRolloutsAreTold(t *testing.T) {
	g := NewWithT(t)
	config, web, api := configMap("config", "A"), deployment("web"), deployment("api")
	api.uses = []*src{}
	a := toldOf("TCF", config, web, api)
	a.rolledOut()
	a.set(config, "B")
	a.pass()
	d := a.due("cache")
	g.Expect(d.Event).To(Equal(v1alpha1.WaitingEvent{
		ID: "watch-uid/web-1/1/triggered", Event: v1alpha1.SubscriberRestartTriggered, Kind: "Deployment", Name: "web",
		Message: "ConfigMap config changed (KEY)", Time: *a.second(),
	}))
	web.rollout.Progress = workload.Failed
	web.rollout.Detail = "no image"
	a.pass()
	web.rollout = workload.Rollout{Progress: workload.Complete}
	a.reload()
	g.Expect(a.tells()).To(Equal([]string{"RestartTriggered web", "RolloutFailed web", "RolloutCompleted web"}))
	a.set(config, "C")
	g.Expect(a.tells()).To(Equal([]string{"RestartTriggered web"}))
}

// TestF6ARestartWhoseRecordIsLostIsToldByTheSameID: the pass that finds its mark on the pod template tells it.
func TestF6ARestartWhoseRecordIsLostIsToldByTheSameID(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := toldOf("T", config, deployment("web"))
	a.set(config, "B")
	a.unrecorded()
	lost := a.due("cache").Event.ID
	a.pass()
	g.Expect(a.due("cache").Event.ID).To(Equal(lost))
}

func TestF6TheOldestOfTooManyRolloutsAreDroppedAndCounted(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	a := toldOf("MT", config, web)
	for i := range 203 {
		a.set(config, fmt.Sprint("content ", i))
		a.pass()
		web.rollout.Progress = workload.Complete
		a.passAt(a.now.Add(time.Hour)) // it is slowed down
	}
	row := a.subscriber("cache")
	g.Expect(row.Dropped).To(Equal(int32(a.row(web).Restarts - 200)))
	g.Expect(row.Dropped).To(BeNumerically(">", 0))
	g.Expect(row.Waiting).To(HaveLen(201))
	g.Expect(row.Waiting[0].Event).To(Equal(v1alpha1.SubscriberModified), "a change is never dropped")
	g.Expect(row.Waiting[200].ID).To(HaveSuffix(fmt.Sprintf("/%d/triggered", a.row(web).Restarts)))
}

func TestF6AStatusThatIsLostIsDecidedAgain(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	a.set(config, "B")
	a.unrecorded()
	a.pass()
	d := a.due("cache")
	a.answer(d, taken)
	a.unrecorded() // it was delivered, which nobody knows
	a.pass()
	g.Expect(a.due("cache").Event).To(Equal(d.Event), "told twice, by the same id")
}

func TestE28NothingIsWrittenWhileASubscriberIsWaitedFor(t *testing.T) {
	g := NewWithT(t)
	one, two, web := configMap("one", "A"), configMap("two", "A"), deployment("web")
	a := toldOf("AMDTCF", one, two, web)
	a.set(one, "B")
	a.set(two, "-")
	a.pass()
	web.rollout.Progress = workload.Complete
	a.pass()
	for what, prepare := range map[string]func(){
		"an attempt is under way": func() {},
		"the next one isn't due": func() {
			a.answer(a.due("cache"), plan.Attempt{Message: "down", RetryAfter: time.Hour})
			a.pass()
		},
	} {
		prepare()
		before := a.status
		for range 3 {
			r := a.passAfter(time.Second)
			g.Expect(r.status).To(Equal(before), what)
			g.Expect(r.events).To(BeEmpty(), what)
		}
		a.reload()
		a.passAfter(time.Second)
		g.Expect(json.Marshal(a.status)).To(MatchJSON(must(json.Marshal(before))), what)
	}
}

func TestF6TheFirstWaitsForNoOtherSubscriber(t *testing.T) {
	g := NewWithT(t)
	config := configMap("config", "A")
	a := told(config, deployment("web"))
	a.edit(func() { a.subscribers = append(a.subscribers, subscriberOf("log", "AMD")) })
	a.pass()
	a.set(config, "B")
	a.pass()
	a.answer(a.due("cache"), down)
	a.answer(a.due("log"), taken)
	a.passAfter(0)
	g.Expect(a.subscriber("log").Waiting).To(BeEmpty())
	g.Expect(a.subscriber("cache").Waiting).To(HaveLen(1))
	a.set(config, "C")
	a.passAfter(0)
	g.Expect(a.due("log")).NotTo(BeNil())
	g.Expect(a.due("cache")).To(BeNil())
}

// passAt makes a pass at that time.
func (a *audience) passAt(t time.Time) result {
	return a.passAfter(t.Sub(a.now))
}

// rolledOut lets every rollout be complete.
func (a *audience) rolledOut() {
	for _, target := range a.targets {
		target.rollout.Progress = workload.Complete
	}
	a.pass()
}
