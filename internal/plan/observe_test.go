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
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/workload"
)

// observeOnly switches to mode Observe, or back.
func (a *audience) observeOnly(on bool) {
	a.edit(func() {
		a.mode = v1alpha1.ModeActive
		if on {
			a.mode = v1alpha1.ModeObserve
		}
	})
}

func TestF6InModeObserveSubscribersAreToldAndNothingIsRestarted(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	a := told(config, web)
	a.observeOnly(true)
	a.pass()
	g.Expect(a.status.Targets).To(BeEmpty())
	g.Expect(a.status.Summary).To(HaveValue(Equal(v1alpha1.Summary{Sources: 1})))
	a.set(config, "B")
	g.Expect(a.tells()).To(Equal([]string{"Modified config=B"}))
	g.Expect(web.mark()).To(BeEmpty())
	g.Expect(a.status.Sources).To(HaveExactElements(HaveField("Hash", string(config.content().Hash(nil)))), "which is recorded")
}

func TestE19ModeObserveIsReady(t *testing.T) {
	config, other := configMap("config", "A"), configMap("other", "A")
	a := told(config, other)
	a.observeOnly(true)
	for _, c := range []struct {
		what            string
		change          func()
		ready           string
		reason, message string
	}{
		{"all is well", func() {}, "True", v1alpha1.ReasonObserving,
			"2 sources watched, 1 subscriber told of changes; nothing is restarted, as spec.mode is Observe"},
		{"a source is missing", func() { a.set(other, "-"); other.hint = "did you mean others?" }, "True", v1alpha1.ReasonObserving,
			"2 sources watched, 1 subscriber told of changes; nothing is restarted, as spec.mode is Observe; " +
				"ConfigMap other does not exist (did you mean others?)"},
		{"all sources are", func() { a.set(config, "-") }, "False", v1alpha1.ReasonNoSources,
			"ConfigMap config does not exist, nor 1 other source"},
		{"nobody is told", func() { a.set(config, "A"); a.set(other, "A"); a.subscribers = nil }, "True", v1alpha1.ReasonObserving,
			"2 sources watched; nothing is restarted, as spec.mode is Observe"},
	} {
		g := NewWithT(t)
		c.change()
		a.pass()
		ready := statedCondition(a, v1alpha1.ConditionReady)
		g.Expect([]string{string(ready.Status), ready.Reason, ready.Message}).To(Equal([]string{c.ready, c.reason, c.message}), c.what)
		g.Expect(statedCondition(a, v1alpha1.ConditionReconciling)).To(BeNil(), c.what)
	}
}

func TestE5AfterModeObserveTargetsAreNew(t *testing.T) {
	for what, meanwhile := range map[string]func(*audience, *src){
		"with nothing changed": func(*audience, *src) {},
		"with a change":        func(a *audience, config *src) { a.set(config, "B") },
		"with a change while it could not be said what is selected": func(a *audience, config *src) {
			a.incomplete, a.problems = true, []plan.Problem{{Reason: v1alpha1.ReasonTooManyMatches, Message: "too many"}}
			a.pass()
			a.set(config, "B")
			a.incomplete, a.problems = false, nil
		},
		"with a restart asked for": func(a *audience, _ *src) { a.requested = a.now.Format(time.RFC3339) },
		"with a deletion":          func(a *audience, config *src) { a.set(config, "-") },
	} {
		g := NewWithT(t)
		config, web := configMap("config", "A"), deployment("web")
		a := told(config, web)
		a.set(config, "B")
		g.Expect(a.pass().restarts).To(HaveLen(1))
		a.observeOnly(true)
		a.pass()
		meanwhile(a, config)
		a.tells()
		a.observeOnly(false)
		g.Expect(a.pass().restarts).To(BeEmpty(), what)
		g.Expect(a.pass().restarts).To(BeEmpty(), what)
		g.Expect(a.row(web).Restarts).To(Equal(int64(1)), "it goes on counting (E8)")
		a.set(config, "C")
		if what == "with a deletion" { // so that it is Added
			continue
		}
		g.Expect(a.pass().restarts).To(HaveLen(1), what)
	}
}

func TestF6AnIncompleteObservationKeepsNoTargetsInModeObserve(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	a := told(config, web)
	a.observeOnly(true)
	a.incomplete, a.problems = true, []plan.Problem{{Reason: v1alpha1.ReasonTooManyMatches, Message: "too many"}}
	a.pass()
	g.Expect(a.status.Targets).To(BeEmpty())
	g.Expect(a.status.Sources).To(HaveLen(1), "these stay as they are recorded")
	a.set(config, "B")
	a.incomplete, a.problems = false, nil
	a.observeOnly(false)
	g.Expect(a.pass().restarts).To(BeEmpty())
}

func TestF6NoDeliveryIsLostByModeObserve(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	a := toldOf("AMDTC", config, web)
	a.set(config, "B")
	a.pass()
	first := a.due("cache").Event
	a.answer(a.due("cache"), down)
	a.rollout.MaxConcurrent = 1
	a.pass()
	waiting := a.waiting()
	g.Expect(waiting).To(Equal([]string{"Modified config=B", "RestartTriggered web"}))
	a.observeOnly(true)
	a.pass()
	g.Expect(a.waiting()).To(Equal(waiting))
	g.Expect(a.due("cache").Event.ID).To(Equal(first.ID), "the same id at each attempt")
	web.rollout.Progress = workload.Complete
	g.Expect(a.tells()).To(Equal(waiting))
	a.set(config, "C")
	a.pass()
	a.observeOnly(false)
	g.Expect(a.tells()).To(Equal([]string{"Modified config=C"}), "nor by the way back")
}

func TestE18NoTurnIsKeptInModeObserve(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	a := told(config, web)
	a.set(config, "B")
	a.pass()
	g.Expect(plan.Rolling(&a.status)).To(Equal(1))
	a.observeOnly(true)
	decision := plan.Decide(a.input())
	g.Expect(decision.Rolling()).To(BeZero())
	g.Expect(decision.Waiting()).To(BeEmpty())
}

func TestE3WithoutTargetsANewBaselineIsSaidToo(t *testing.T) {
	for what, observe := range map[string]bool{"in mode Observe": true, "where a target has it too": false} {
		g := NewWithT(t)
		credentials := secret("credentials", "A")
		a := told(credentials, deployment("web"))
		a.observeOnly(observe)
		a.pass()
		credentials.hasher = digest.Keyed([]byte("another"))
		g.Expect(a.pass().events).To(HaveExactElements(HaveField("Reason", v1alpha1.EventNewBaseline)), what)
		g.Expect(a.pass().events).To(BeEmpty(), "it is said once")
	}
}
