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
	"github.com/ktechhub/configwatch/internal/workload"
)

func TestE14ACooldownIsTheLeastTimeBetweenTwoRestarts(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout.CooldownSeconds = new(int32(300))
	config.set("B")
	g.Expect(s.pass().restarts).To(HaveLen(1), "the first restart has none before it")
	restarted := s.now
	over := restarted.Add(5*time.Minute + time.Second) // as the record has whole seconds
	web.rollout.Progress = workload.Complete
	s.pass()

	config.set("C")
	cooling := s.pass()
	g.Expect(cooling.restarts).To(BeEmpty())
	g.Expect(cooling.lookAgain).To(Equal(over))
	g.Expect(s.said(web)).To(Equal("Pending CoolingDown"))
	g.Expect(s.row(web).Message).To(Equal(
		"ConfigMap config changed (KEY). It is restarted at most every 300 seconds, next at 2026-01-02T03:11:06Z"))
	g.Expect(cooling.reasons()).To(ConsistOf(v1alpha1.EventRestartDelayed))
	g.Expect(cooling.note(v1alpha1.EventRestartDelayed)).To(Equal(
		"Deployment shop/web: not restarted yet: ConfigMap config changed (KEY). " +
			"It is restarted at most every 300 seconds, next at 2026-01-02T03:11:06Z"))

	config.set("D")
	g.Expect(s.pass().lookAgain).To(Equal(over), "a further change is gathered")
	s.reload()
	g.Expect(s.at(over.Add(-time.Microsecond)).restarts).To(BeEmpty())
	s.reload()
	g.Expect(s.at(over).restarts).To(HaveLen(1))
	g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
}

// The record of when it was restarted has whole seconds.
func TestE14ACooldownIsNeverShorterThanTheSpecSays(t *testing.T) {
	for _, fraction := range []time.Duration{0, time.Microsecond, 500 * time.Millisecond, time.Second - time.Microsecond} {
		t.Run(fraction.String(), func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			s.rollout.CooldownSeconds = new(int32(30))
			config.set("B")
			g.Expect(s.at(s.now.Add(time.Hour + fraction)).restarts).To(HaveLen(1))
			restarted := s.now
			web.done()
			config.set("C")
			s.reload()
			cooling := s.after(time.Second)
			g.Expect(cooling.lookAgain).To(BeTemporally(">=", restarted.Add(30*time.Second)))
			g.Expect(cooling.lookAgain).To(BeTemporally("<=", restarted.Add(31*time.Second)))
			g.Expect(s.at(restarted.Add(30*time.Second - time.Microsecond)).restarts).To(BeEmpty())
			g.Expect(s.at(cooling.lookAgain).restarts).To(HaveLen(1))
		})
	}
}

func TestE14AnEditOfTheCooldownCountsFromTheLatestRestart(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout.CooldownSeconds = new(int32(300))
	config.set("B")
	s.pass()
	restarted := s.now
	config.set("C")
	s.pass()
	s.edit(func() { s.rollout.CooldownSeconds = new(int32(3600)) })
	g.Expect(s.pass().lookAgain).To(Equal(restarted.Add(time.Hour + time.Second)))
	s.edit(func() { s.rollout.CooldownSeconds = nil })
	g.Expect(s.pass().restarts).To(HaveLen(1), "none is the default")
}

// nightly is a window from 02:00 to 04:00 in Berlin, which is from 01:00 to 03:00 UTC in January.
var nightly = v1alpha1.Window{Schedule: "0 2 * * *", DurationMinutes: 120, TimeZone: "Europe/Berlin"}

func TestE14RestartsBeginInWindowsOnly(t *testing.T) {
	g := NewWithT(t)
	config, web, api := configMap("config", "A"), deployment("web"), deployment("api")
	s := settled(config, web, api)
	s.rollout.Windows = []v1alpha1.Window{nightly}
	opening := time.Date(2026, 1, 3, 1, 0, 0, 0, time.UTC)

	config.set("B")
	outside := s.at(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	g.Expect(outside.restarts).To(BeEmpty(), "it closes at 03:00")
	g.Expect(outside.lookAgain).To(BeTemporally("==", opening))
	g.Expect(s.said(web)).To(Equal("Pending OutsideWindow"))
	g.Expect(s.row(web).Message).To(Equal("ConfigMap config changed (KEY). The next window opens 2026-01-03T02:00 Europe/Berlin"))
	g.Expect(outside.reasons()).To(ConsistOf(v1alpha1.EventRestartDelayed))
	g.Expect(outside.note(v1alpha1.EventRestartDelayed)).To(Equal("Deployment shop/web and 1 more target: not restarted yet: " +
		"ConfigMap config changed (KEY). The next window opens 2026-01-03T02:00 Europe/Berlin"))

	config.set("C")
	s.reload()
	g.Expect(s.pass().reasons()).To(ConsistOf(v1alpha1.EventRestartDelayed), "a further change waits too")
	g.Expect(s.pass().events).To(BeEmpty())
	s.reload()
	g.Expect(s.at(opening.Add(-time.Microsecond)).restarts).To(BeEmpty())
	s.reload()
	g.Expect(s.at(opening).restarted()).To(ConsistOf("web", "api"))
	g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
}

func TestE14AnyOpenWindowWillDo(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout.Windows = []v1alpha1.Window{nightly, {Schedule: "30 4 * * *", DurationMinutes: 10}}
	config.set("B")
	g.Expect(s.at(time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)).lookAgain).To(
		BeTemporally("==", time.Date(2026, 1, 2, 4, 30, 0, 0, time.UTC)), "the next of all")
	g.Expect(s.at(time.Date(2026, 1, 2, 4, 39, 59, 0, time.UTC)).restarts).To(HaveLen(1))
}

func TestE14AnEditOfTheWindowsIsEnough(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout.Windows = []v1alpha1.Window{nightly}
	config.set("B")
	s.at(time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC))
	s.edit(func() { s.rollout.Windows = nil })
	g.Expect(s.pass().restarts).To(HaveLen(1))
}

func TestE14AWindowThatCanNotBeUsedNeverOpensAndSaysSo(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout.Windows = []v1alpha1.Window{{Schedule: "0 2 30 2 *", DurationMinutes: 120}}
	g.Expect(s.pass().reasons()).To(ConsistOf(v1alpha1.EventStalled), "before there is anything to restart")
	g.Expect(s.pass().events).To(BeEmpty())
	config.set("B")
	held := s.pass()
	g.Expect(held.restarts).To(BeEmpty())
	g.Expect(held.lookAgain).To(BeZero())
	g.Expect(s.said(web)).To(Equal("Pending OutsideWindow"))
	g.Expect(s.row(web).Message).To(Equal(
		"ConfigMap config changed (KEY). No window of spec.rollout.windows can be used: see the Stalled condition"))
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionStalled, "True InvalidWindow"))
	g.Expect(s.message(v1alpha1.ConditionStalled)).To(HavePrefix(`spec.rollout.windows[0] can't be used: schedule "0 2 30 2 *"`))

	s.edit(func() { s.rollout.Windows = append(s.rollout.Windows, nightly) })
	g.Expect(s.at(time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)).lookAgain).To(
		BeTemporally("==", time.Date(2026, 1, 3, 1, 0, 0, 0, time.UTC)), "others open all the same")
	g.Expect(s.at(time.Date(2026, 1, 3, 1, 0, 0, 0, time.UTC)).restarts).To(HaveLen(1))
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionStalled, "True InvalidWindow"))
}

func TestE14WithManualApprovalAChangeWaitsForItsHash(t *testing.T) {
	g := NewWithT(t)
	config, web, api := configMap("config", "A"), deployment("web"), deployment("api")
	s := settled(config, web, api)
	s.rollout.Approval = v1alpha1.ApprovalManual
	g.Expect(s.pass().status.ApprovalHash).To(BeEmpty(), "there is nothing to approve")

	config.set("B")
	waiting := s.pass()
	hash := s.status.ApprovalHash
	g.Expect(waiting.restarts).To(BeEmpty())
	g.Expect(waiting.lookAgain).To(BeZero(), "no time ends it")
	g.Expect(hash).NotTo(BeEmpty())
	g.Expect(s.said(web)).To(Equal("Pending AwaitingApproval"))
	g.Expect(s.row(web).Message).To(Equal("ConfigMap config changed (KEY). It awaits approval: " +
		"annotate the ConfigWatch with configwatch.ktechhub.io/approve=" + hash))
	g.Expect(waiting.reasons()).To(ConsistOf(v1alpha1.EventRestartDelayed))

	s.approved = "0123456789abcdef"
	wrong := s.pass()
	g.Expect(wrong.restarts).To(BeEmpty())
	g.Expect(wrong.events).To(BeEmpty())
	g.Expect(s.row(web).Message).To(HaveSuffix("approve=" + hash + " (the annotation configwatch.ktechhub.io/approve names another hash)"))

	s.approved = hash
	s.reload()
	g.Expect(s.pass().restarted()).To(ConsistOf("web", "api"))
	g.Expect(s.status.ApprovalHash).To(BeEmpty())

	config.set("C")
	g.Expect(s.pass().restarts).To(BeEmpty(), "a later change needs another approval")
	g.Expect(s.status.ApprovalHash).NotTo(Or(BeEmpty(), Equal(hash)))
}

// What was approved stays approved while it waits for something else, and nothing else is.
func TestE14AnApprovalIsOfWhatWasThere(t *testing.T) {
	g := NewWithT(t)
	config, other, web := configMap("config", "A"), configMap("other", "A"), deployment("web")
	web.uses = []*src{config}
	s := settled(config, other, web)
	s.rollout.Approval, s.rollout.Windows = v1alpha1.ApprovalManual, []v1alpha1.Window{nightly}
	config.set("B")
	s.at(time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC))
	s.approved = s.status.ApprovalHash
	s.pass()
	g.Expect(s.said(web)).To(Equal("Pending OutsideWindow"))
	g.Expect(s.status.ApprovalHash).To(BeEmpty())

	s.approved = ""
	other.set("B")
	s.reload()
	s.pass()
	g.Expect(s.said(web)).To(Equal("Pending OutsideWindow"), "it is recorded, and the target doesn't use the other source")

	config.set("C")
	s.pass()
	g.Expect(s.said(web)).To(Equal("Pending AwaitingApproval"), "that is another change")
	config.set("B")
	s.pass()
	g.Expect(s.said(web)).To(Equal("Pending AwaitingApproval"), "and so is a return")
	s.approved = s.status.ApprovalHash
	g.Expect(s.at(time.Date(2026, 1, 3, 1, 0, 0, 0, time.UTC)).restarts).To(HaveLen(1))
}

func TestE14AutomaticApprovalLetsGoOn(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout.Approval = v1alpha1.ApprovalManual
	config.set("B")
	s.pass()
	s.edit(func() { s.rollout.Approval = v1alpha1.ApprovalAutomatic })
	g.Expect(s.pass().restarts).To(HaveLen(1))
}

// The first of the gates is what the row says; each opens in its time, in one process or another.
func TestE14GatesAreFollowedFromStatusAlone(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout = v1alpha1.RolloutSpec{
		SettleSeconds: new(int32(60)), CooldownSeconds: new(int32(7200)), Approval: v1alpha1.ApprovalManual,
		Windows: []v1alpha1.Window{nightly},
	}
	s.requested = "2026-01-02T03:00:00Z"
	g.Expect(s.at(time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)).restarts).To(HaveLen(1))
	web.rollout.Progress = workload.Complete
	s.pass()
	config.set("B")
	s.pass()
	for _, tc := range []struct {
		said string
		next time.Time
	}{
		{"Pending Settling", time.Date(2026, 1, 2, 4, 3, 0, 0, time.UTC)},
		{"Pending CoolingDown", time.Date(2026, 1, 2, 6, 0, 1, 0, time.UTC)},
		{"Pending AwaitingApproval", time.Time{}},
	} {
		s.reload()
		again := s.after(0)
		g.Expect(again.restarts).To(BeEmpty())
		g.Expect(s.said(web)).To(Equal(tc.said))
		g.Expect(again.lookAgain).To(BeTemporally("==", tc.next))
		if !tc.next.IsZero() {
			s.reload()
			s.at(tc.next)
		}
	}
	s.approved = s.status.ApprovalHash
	s.reload()
	opening := s.pass().lookAgain
	g.Expect(s.said(web)).To(Equal("Pending OutsideWindow"))
	g.Expect(opening).To(BeTemporally("==", time.Date(2026, 1, 3, 1, 0, 0, 0, time.UTC)))
	s.reload()
	g.Expect(s.at(opening).restarts).To(HaveLen(1))
	g.Expect(s.applied(web, config)).To(Equal(digest.Plain().Content(value("B"), nil).Hash(nil)))
}

// E19: neither mode loses what was gathered, be there windows and approvals or not.
func TestE19ModesComeBeforeAndAfterTheOtherGates(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout.Approval, s.rollout.Windows = v1alpha1.ApprovalManual, []v1alpha1.Window{nightly}
	for _, tc := range []struct {
		mode v1alpha1.Mode
		said string
	}{
		{v1alpha1.ModeSuspended, "Pending Suspended"},
		{v1alpha1.ModeDryRun, "Pending AwaitingApproval"},
		{v1alpha1.ModeActive, "Pending AwaitingApproval"},
	} {
		s.edit(func() { s.mode = tc.mode })
		config.set("B")
		s.at(s.now.Add(time.Hour))
		g.Expect(s.said(web)).To(Equal(tc.said))
	}
	s.mode, s.approved = v1alpha1.ModeDryRun, s.status.ApprovalHash
	s.pass()
	g.Expect(s.said(web)).To(Equal("Pending OutsideWindow"))
	g.Expect(s.at(time.Date(2026, 1, 3, 1, 0, 0, 0, time.UTC)).restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("Pending DryRun"))
	s.mode = v1alpha1.ModeActive
	g.Expect(s.pass().restarts).To(HaveLen(1))
}
