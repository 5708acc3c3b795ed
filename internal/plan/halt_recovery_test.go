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

// scale sets how many pods there should be: none, or some, which are not ready yet.
func (t *tgt) scale(pods int) {
	t.rollout.NoPods = pods == 0
	if pods > 0 {
		t.rollout.Progress = workload.InProgress
	}
	t.generation++
}

// Without pods nothing is proven of the content that made some fail.
func TestE17AFailedTargetDoesNotRecoverByBeingScaledToZero(t *testing.T) {
	g := NewWithT(t)
	config, d, s := haltedFleet(3)
	d[0].scale(0)
	s.reload()
	scaled := s.pass()
	g.Expect(scaled.restarts).To(BeEmpty())
	g.Expect(scaled.reasons()).To(ConsistOf(v1alpha1.EventStalled), "that is no rollout that is complete")
	g.Expect(s.said(d[0])).To(Equal("UpToDate ScaledToZero"))
	g.Expect(s.said(d[1])).To(Equal("Halted Halted"))
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionStalled, "True Halted"))
	g.Expect(s.pass().events).To(BeEmpty())

	d[0].scale(2)
	s.reload()
	again := s.pass()
	g.Expect(again.restarts).To(BeEmpty())
	g.Expect(again.reasons()).To(ConsistOf(v1alpha1.EventStalled), "its failure is known")
	g.Expect(s.said(d[0])).To(Equal("Failed RolloutFailed"), "its new pods aren't ready yet")
	g.Expect(s.said(d[1])).To(Equal("Halted Halted"))
	d[0].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
	g.Expect(s.said(d[0])).To(Equal("UpToDate RolloutComplete"))
	g.Expect(s.applied(d[1], config)).To(Equal(config.content().Hash(nil)))
}

func TestE17TheHaltedGoOnWithMendedContentThoughTheFailedOneHasNoPods(t *testing.T) {
	g := NewWithT(t)
	config, d, s := haltedFleet(2)
	d[0].scale(0)
	s.pass()
	config.set("C")
	s.reload()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d0"}), "the failed one goes first")
	g.Expect(s.said(d[0])).To(Equal("UpToDate ScaledToZero"))
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
	g.Expect(s.row(d[0]).Rollout).To(BeNil(), "nothing is blamed any more")
}

// It is restarted for another source, without pods; the content that failed is still what they would get.
func TestE17ARestartOfTheFailedOneWithoutPodsProvesNothing(t *testing.T) {
	g := NewWithT(t)
	config, other, web, api := configMap("config", "A"), configMap("other", "A"), deployment("web"), deployment("api")
	api.uses = []*src{config}
	s := settled(config, other, web, api)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	web.fails()
	s.pass()
	web.scale(0)
	s.pass()
	other.set("B")
	g.Expect(s.pass().restarted()).To(Equal([]string{"web"}))
	s.reload()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("UpToDate ScaledToZero"))
	g.Expect(s.said(api)).To(Equal("Halted Halted"))
	web.scale(1)
	web.done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"api"}))
}

// E14: mended content is proven where the broken one was found, though that has to wait longer.
func TestE17TheOthersWaitForTheCooldownOfTheFailedOne(t *testing.T) {
	g := NewWithT(t)
	config, d, s := haltedFleet(3)
	s.edit(func() { s.rollout.CooldownSeconds = new(int32(600)) })
	cooled := s.row(d[0]).LastRestartTime.Add(601 * time.Second)
	config.set("C")
	mended := s.pass()
	g.Expect(mended.restarts).To(BeEmpty())
	g.Expect(mended.lookAgain).To(Equal(cooled))
	g.Expect(s.said(d[0])).To(Equal("Pending CoolingDown"))
	for _, other := range d[1:] {
		g.Expect(s.said(other)).To(Equal("Pending AwaitingTurn"))
		g.Expect(s.row(other).Message).To(Equal(
			"ConfigMap config changed (KEY). Deployment d0, whose rollout failed, is restarted first, at " + cooled.UTC().Format(time.RFC3339)))
	}
	s.reload()
	g.Expect(s.at(cooled).restarted()).To(Equal([]string{"d0"}))
	d[0].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
}

// failedAndMended are a Deployment whose rollout failed, and another one that is halted, while their ConfigMap is mended.
// The first one has another ConfigMap too.
func failedAndMended(rollout v1alpha1.RolloutSpec) (own *src, web, api *tgt, s *scene) {
	config, own, web, api := configMap("config", "A"), configMap("own", "A"), deployment("web"), deployment("api")
	api.uses = []*src{config}
	s = settled(config, own, web, api)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	web.fails()
	s.pass()
	s.edit(func() { s.rollout = rollout })
	config.set("C")
	s.pass()
	return own, web, api, s
}

// E12: nor do they get it while it is quiet for them, but not for the failed one.
func TestE17TheOthersWaitUntilItIsQuietForTheFailedOne(t *testing.T) {
	g := NewWithT(t)
	own, web, api, s := failedAndMended(v1alpha1.RolloutSpec{SettleSeconds: new(int32(30))})
	own.set("B")
	s.after(20 * time.Second)
	quiet := s.now.Add(30 * time.Second)
	s.after(20 * time.Second)
	g.Expect(s.said(web)).To(Equal("Pending Settling"))
	g.Expect(s.said(api)).To(Equal("Pending AwaitingTurn"))
	g.Expect(s.row(api).Message).To(Equal(
		"ConfigMap config changed (KEY). Deployment web, whose rollout failed, is restarted first, at " + quiet.UTC().Format(time.RFC3339)))
	s.reload()
	g.Expect(s.at(quiet).restarted()).To(Equal([]string{"web", "api"}))
}

func TestE17TheOthersWaitForTheApprovalOfTheFailedOne(t *testing.T) {
	g := NewWithT(t)
	own, web, api, s := failedAndMended(v1alpha1.RolloutSpec{
		SettleSeconds: new(int32(0)), Approval: v1alpha1.ApprovalManual, Windows: []v1alpha1.Window{nightly},
	})
	s.approved = s.status.ApprovalHash
	opens := s.pass().lookAgain
	own.set("B")
	s.pass()
	g.Expect(s.said(web)).To(Equal("Pending AwaitingApproval"))
	g.Expect(s.said(api)).To(Equal("Pending OutsideWindow"))
	g.Expect(s.at(opens).restarts).To(BeEmpty())
	g.Expect(s.said(api)).To(Equal("Pending AwaitingTurn"))
	g.Expect(s.row(api).Message).To(HaveSuffix(". Deployment web, whose rollout failed, is restarted first"))
	s.reload()
	s.approved = s.status.ApprovalHash
	g.Expect(s.pass().restarted()).To(Equal([]string{"web", "api"}))
}

func TestE17NobodyWaitsForTheCooldownOfOneThatFailedIfTheSpecSaysContinue(t *testing.T) {
	g := NewWithT(t)
	config, d, s := haltedFleet(2)
	s.edit(func() { s.rollout.CooldownSeconds, s.rollout.OnFailure = new(int32(600)), v1alpha1.OnFailureContinue })
	config.set("C")
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
	g.Expect(s.said(d[0])).To(Equal("Pending CoolingDown"))
}

// What was asked for doesn't wait for it either.
func TestE17ARequestDoesNotWaitForTheCooldownOfTheFailedOne(t *testing.T) {
	g := NewWithT(t)
	config, d, s := haltedFleet(2)
	s.edit(func() { s.rollout.CooldownSeconds = new(int32(600)) })
	config.set("C")
	s.pass()
	s.requested = s.now.Format(time.RFC3339)
	g.Expect(s.pass().restarted()).To(Equal([]string{"d0"}))
	d[0].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
}

// A halt is what a human has to see, whatever else there is to wait for.
func TestE17AHaltIsSaidThoughThereIsAnotherThingToWaitFor(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.RolloutSpec){
		"the next window": func(r *v1alpha1.RolloutSpec) {
			r.Windows = []v1alpha1.Window{{Schedule: "0 12 * * *", DurationMinutes: 60, TimeZone: "UTC"}}
		},
		"approval":   func(r *v1alpha1.RolloutSpec) { r.Approval = v1alpha1.ApprovalManual },
		"quiet":      func(r *v1alpha1.RolloutSpec) { r.SettleSeconds = new(int32(3600)) },
		"a cooldown": func(r *v1alpha1.RolloutSpec) { r.CooldownSeconds = new(int32(3600)) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, d, s := haltedFleet(2)
			s.edit(func() { edit(&s.rollout) })
			g.Expect(s.pass().events).To(BeEmpty())
			g.Expect(s.said(d[1])).To(Equal("Halted Halted"))
			g.Expect(s.status.ApprovalHash).NotTo(BeEmpty())
			g.Expect(s.message(v1alpha1.ConditionStalled)).To(ContainSubstring("1 target is halted"))
		})
	}
}
