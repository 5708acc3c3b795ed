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
	"github.com/ktechhub/configwatch/internal/workload"
)

// settling is a ConfigWatch of one target with so many seconds of quiet time. All that it says is kept.
func settling(seconds int32, objects ...any) *scene {
	s := settled(objects...)
	s.rollout.SettleSeconds = &seconds
	return s
}

func TestE12SeveralChangesAreOneRestart(t *testing.T) {
	g := NewWithT(t)
	config, password, web := configMap("config", "A"), secret("password", "A"), deployment("web")
	s := settling(10, config, password, web)

	config.set("B")
	first := s.pass()
	began := s.now
	g.Expect(first.restarts).To(BeEmpty())
	g.Expect(first.events).To(BeEmpty(), "that more changes may come within seconds is no news")
	g.Expect(first.lookAgain).To(Equal(began.Add(10 * time.Second)))
	g.Expect(s.said(web)).To(Equal("Pending Settling"))
	g.Expect(s.row(web).Message).To(Equal(
		"ConfigMap config changed (KEY). It is restarted once no more changes come, at 2026-01-02T03:06:15Z"))
	g.Expect(conditions(s)).To(Equal(map[string]string{
		v1alpha1.ConditionReady: "False Settling", v1alpha1.ConditionReconciling: "True Settling",
	}))

	password.set("B")
	second := s.after(4 * time.Second)
	g.Expect(second.restarts).To(BeEmpty())
	g.Expect(second.lookAgain).To(Equal(began.Add(14*time.Second)), "the timer starts again")

	made := s.after(10 * time.Second)
	g.Expect(made.cause()).To(Equal("ConfigMap config changed (KEY); Secret password changed (KEY)"))
	g.Expect(s.row(web).Restarts).To(Equal(int64(1)))
	g.Expect(s.row(web).Wait).To(BeNil())
	g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
}

func TestE12AWaitRemembersWhenItBegan(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settling(10, config, web)
	config.set("B")
	s.after(1500 * time.Millisecond)
	began := s.now
	config.set("C")
	s.after(1001 * time.Microsecond)
	s.reload()
	wait := s.row(web).Wait
	g.Expect(wait.Since.UTC()).To(Equal(began))
	g.Expect(wait.SettlingSince.UTC()).To(Equal(began.Add(1001*time.Microsecond)), "deadlines are as exact as the clock")
	g.Expect(wait.SettlingRestarts).To(Equal(int32(1)))
}

func TestE12TheTimerStartsAgainAtMostFourTimes(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "0"), deployment("web")
	s := settling(10, config, web)
	config.set("1")
	s.pass()
	began := s.now
	for i, content := range []string{"2", "3", "4", "5"} {
		config.set(content)
		g.Expect(s.after(6*time.Second).lookAgain).To(Equal(s.now.Add(10*time.Second)), "the %d. further change", i+1)
	}
	config.set("6")
	fifth := s.after(6 * time.Second)
	g.Expect(fifth.restarts).To(BeEmpty())
	g.Expect(fifth.lookAgain).To(Equal(began.Add(34*time.Second)), "the fifth further change doesn't put it off")
	g.Expect(s.row(web).Wait.SettlingRestarts).To(Equal(int32(4)))

	config.set("7")
	made := s.at(fifth.lookAgain)
	g.Expect(made.restarted()).To(ConsistOf("web"))
	g.Expect(s.applied(web, config)).To(Equal(config.content().Hash(nil)), "nor does one that comes just then")
}

// The second change comes that long after the first, while the quiet time is 10 seconds.
func TestE12AFurtherChangeAround(t *testing.T) {
	for name, tc := range map[string]struct {
		after    time.Duration
		restarts int
		next     time.Duration // when the pass after is due
	}{
		"the beginning":       {0, 0, 10 * time.Second},
		"just before the end": {10*time.Second - time.Microsecond, 0, 10 * time.Second},
		"the very end":        {10 * time.Second, 1, 0},
		"just after the end":  {10*time.Second + time.Microsecond, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, other, web := configMap("config", "A"), configMap("other", "A"), deployment("web")
			s := settling(10, config, other, web)
			config.set("B")
			s.pass()

			other.set("B")
			second := s.after(tc.after)
			g.Expect(second.restarts).To(HaveLen(tc.restarts))
			if tc.restarts > 0 {
				g.Expect(second.cause()).To(ContainSubstring("other"), "it is gathered")
				g.Expect(second.lookAgain).To(BeZero())
				return
			}
			g.Expect(second.lookAgain).To(Equal(s.now.Add(tc.next)))
			g.Expect(s.after(tc.next).restarts).To(HaveLen(1))
		})
	}
}

func TestE12WithoutAQuietTimeARestartIsMadeAtOnce(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	made := s.pass()
	g.Expect(made.restarts).To(HaveLen(1))
	g.Expect(made.lookAgain).To(BeZero())
}

func TestE12TheQuietTimeIsTwoSecondsUnlessTheSpecSaysOtherwise(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout = v1alpha1.RolloutSpec{}
	config.set("B")
	g.Expect(s.pass().lookAgain).To(Equal(s.now.Add(2 * time.Second)))
	g.Expect(s.after(2 * time.Second).restarts).To(HaveLen(1))
}

func TestE12AnEditOfSettleSecondsCountsFromWhenTheQuietTimeBegan(t *testing.T) {
	for name, tc := range map[string]struct {
		to       int32
		restarts int
		until    time.Duration // since the change
	}{
		"to none":         {0, 1, 0},
		"to what is over": {5, 1, 0},
		"to less":         {8, 0, 8 * time.Second},
		"to more":         {3600, 0, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settling(10, config, web)
			config.set("B")
			s.pass()
			began := s.now

			s.edit(func() { s.rollout.SettleSeconds = &tc.to })
			edited := s.after(5 * time.Second)
			g.Expect(edited.restarts).To(HaveLen(tc.restarts))
			if tc.restarts == 0 {
				g.Expect(edited.lookAgain).To(Equal(began.Add(tc.until)))
				g.Expect(s.at(edited.lookAgain).restarts).To(HaveLen(1))
			}
		})
	}
}

// Whatever else a target waits for, what comes in the meantime has a quiet time of its own.
func TestE12AChangeWhileATargetWaitsForSomethingElseBeginsANewQuietTime(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settling(10, config, web)
	s.rollout.Approval = v1alpha1.ApprovalManual
	config.set("B")
	s.pass()
	s.after(10 * time.Second)
	g.Expect(s.said(web)).To(Equal("Pending AwaitingApproval"))

	config.set("C")
	g.Expect(s.after(time.Hour).lookAgain).To(Equal(s.now.Add(10 * time.Second)))
	g.Expect(s.said(web)).To(Equal("Pending Settling"))
	g.Expect(s.row(web).Wait.SettlingRestarts).To(BeZero(), "it may be put off four times again")
	g.Expect(s.row(web).Wait.Since.Time).To(Equal(s.now.Add(-time.Hour-10*time.Second)), "but it has waited for long")
	s.after(10 * time.Second)
	g.Expect(s.said(web)).To(Equal("Pending AwaitingApproval"))
}

func TestE12AChangeThatIsTakenBackWithinTheQuietTimeIsNoRestart(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settling(10, config, web)
	config.set("B")
	s.pass()
	config.set("A")
	back := s.after(5 * time.Second)
	g.Expect(back.events).To(BeEmpty())
	g.Expect(back.lookAgain).To(BeZero())
	g.Expect(s.row(web).Message).To(Equal("the change was taken back before a restart was made"))
	g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("UpToDate Baseline"))
}

func TestE12EachTargetHasItsOwnQuietTime(t *testing.T) {
	g := NewWithT(t)
	config, other, web, api := configMap("config", "A"), configMap("other", "A"), deployment("web"), deployment("api")
	web.uses, api.uses = []*src{config}, []*src{other}
	s := settling(10, config, other, web, api)
	config.set("B")
	s.pass()
	other.set("B")
	second := s.after(4 * time.Second)
	g.Expect(second.lookAgain).To(Equal(s.now.Add(6*time.Second)), "the first deadline of all")
	third := s.at(second.lookAgain)
	g.Expect(third.restarted()).To(ConsistOf("web"))
	g.Expect(third.lookAgain).To(Equal(s.now.Add(4 * time.Second)))
	g.Expect(s.at(third.lookAgain).restarted()).To(ConsistOf("api"))
}

func TestE12ANewKeyOfTheSpecIsAnotherChangeToWaitWith(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settling(10, config, web)
	config.set("B")
	s.pass()
	s.edit(func() { config.keys = []string{"KEY"} })
	g.Expect(s.after(5 * time.Second).restarts).To(BeEmpty())
	g.Expect(s.after(10 * time.Second).restarts).To(HaveLen(1))
}

// E19: what is gathered while nothing may be done is done once, and the quiet time is over by then.
func TestE19ModesAndTheQuietTime(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settling(10, config, web)
	s.mode = v1alpha1.ModeDryRun
	config.set("B")
	s.pass()
	g.Expect(s.said(web)).To(Equal("Pending Settling"), "DryRun does everything but the patch")
	g.Expect(s.after(10 * time.Second).reasons()).To(ConsistOf(v1alpha1.EventRestartHeld))
	g.Expect(s.said(web)).To(Equal("Pending DryRun"))

	s.mode = v1alpha1.ModeSuspended
	config.set("C")
	suspended := s.pass()
	g.Expect(suspended.lookAgain).To(BeZero(), "no time ends it")
	g.Expect(s.said(web)).To(Equal("Pending Suspended"))

	s.mode = v1alpha1.ModeActive
	g.Expect(s.after(4*time.Second).lookAgain).To(Equal(s.now.Add(6*time.Second)), "the quiet time went on")
	g.Expect(s.after(6 * time.Second).restarts).To(HaveLen(1))
	g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
}

func TestE12NothingWaitsForACronJob(t *testing.T) {
	g := NewWithT(t)
	config, job := configMap("config", "A"), workloadOf(workload.CronJob, "report")
	s := settling(10, config, job)
	config.set("B")
	g.Expect(s.pass().lookAgain).To(BeZero())
	g.Expect(s.row(job).Wait).To(BeNil())
	g.Expect(s.said(job)).To(Equal("UpToDate NoRestartNeeded"))
}
