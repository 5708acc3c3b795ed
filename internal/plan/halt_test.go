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
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/workload"
)

// haltedFleet is n Deployments, of which the first was restarted for a change and failed, so that the others
// are halted.
func haltedFleet(n int) (config *src, targets []*tgt, s *scene) {
	config, targets, s = fleet(n)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	targets[0].fails()
	s.pass()
	return config, targets, s
}

func TestE17AFailedRolloutHaltsThoseThatWaitForTheSameChange(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(4)
	s.rollout.MaxConcurrent = 2
	config.set("B")
	s.pass()
	d[0].fails()
	halted := s.pass()
	g.Expect(halted.restarts).To(BeEmpty())
	g.Expect(s.said(d[0])).To(Equal("Failed RolloutFailed"))
	g.Expect(s.said(d[1])).To(Equal("RollingOut RolloutInProgress"), "what has begun goes on")
	for _, one := range d[2:] {
		g.Expect(s.said(one)).To(Equal("Halted Halted"))
		g.Expect(s.row(one).Message).To(Equal(
			"ConfigMap config changed (KEY). Halted, as Deployment d0 failed to roll out for the same change"))
	}
	hash := s.status.ApprovalHash
	g.Expect(hash).NotTo(BeEmpty())
	g.Expect(halted.reasons()).To(ConsistOf(v1alpha1.EventRolloutFailed, v1alpha1.EventHalted, v1alpha1.EventStalled))
	g.Expect(halted.note(v1alpha1.EventHalted)).To(Equal("Deployment shop/d2 and 1 more target: not restarted yet: " +
		"ConfigMap config changed (KEY). Halted, as Deployment d0 failed to roll out for the same change"))
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionStalled, "True RolloutFailed"))
	g.Expect(s.message(v1alpha1.ConditionStalled)).To(Equal("Deployment d0: ConfigMap config changed (KEY). Progress deadline exceeded" +
		". 2 targets are halted: mend the configuration, or to go on all the same, annotate the ConfigWatch with " +
		"configwatch.ktechhub.io/approve=" + hash))

	d[1].done()
	s.reload()
	again := s.pass()
	g.Expect(again.restarts).To(BeEmpty(), "there is a place, but that is not what they wait for")
	g.Expect(again.reasons()).To(ConsistOf(v1alpha1.EventRolloutCompleted))
	g.Expect(s.said(d[2])).To(Equal("Halted Halted"))
	g.Expect(s.pass().events).To(BeEmpty())
}

// The message names the first that failed, in the order of the spec.
func TestE17TheMessageNamesTheFirstFailure(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(3)
	s.rollout.MaxConcurrent = 2
	config.set("B")
	s.pass()
	d[1].fails()
	s.pass()
	g.Expect(s.row(d[2]).Message).To(HaveSuffix("Halted, as Deployment d1 failed to roll out for the same change"))
	d[0].fails()
	s.pass()
	g.Expect(s.row(d[2]).Message).To(HaveSuffix("Halted, as Deployment d0 failed to roll out for the same change"))
	g.Expect(s.message(v1alpha1.ConditionStalled)).To(HavePrefix(
		"Deployment d0: ConfigMap config changed (KEY). Progress deadline exceeded (and 1 more: see status.targets). 1 target is halted"))
}

func TestE17TheHaltedGoOnWhenTheFailedOneRecovers(t *testing.T) {
	g := NewWithT(t)
	_, d, s := haltedFleet(3)
	d[0].done()
	s.reload()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
	g.Expect(s.said(d[0])).To(Equal("UpToDate RolloutComplete"))
	g.Expect(s.said(d[2])).To(Equal("Pending AwaitingTurn"))
}

func TestE17TheHaltedGoOnWhenTheSourceChangesAgain(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(3)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	d[0].done()
	s.pass()
	d[1].fails()
	s.pass()
	g.Expect(s.said(d[2])).To(Equal("Halted Halted"))

	config.set("C")
	s.reload()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}), "the failed one goes first, though it isn't the first of the spec")
	g.Expect(s.said(d[0])).To(Equal("Pending AwaitingTurn"))
	g.Expect(s.said(d[2])).To(Equal("Pending AwaitingTurn"))
	d[1].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d0"}))
}

func TestE17TheHaltedGoOnWhenItIsApproved(t *testing.T) {
	g := NewWithT(t)
	config, d, s := haltedFleet(4)
	s.approved = "0123456789abcdef"
	g.Expect(s.pass().restarts).To(BeEmpty())
	s.approved = s.status.ApprovalHash
	s.reload()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
	g.Expect(s.said(d[2])).To(Equal("Pending AwaitingTurn"))
	g.Expect(s.pass().restarts).To(BeEmpty())

	d[1].fails()
	g.Expect(s.pass().restarts).To(BeEmpty(), "another failure needs another approval")
	g.Expect(s.said(d[2])).To(Equal("Halted Halted"))
	g.Expect(s.status.ApprovalHash).NotTo(Equal(s.approved))
	s.approved = s.status.ApprovalHash
	g.Expect(s.pass().restarted()).To(Equal([]string{"d2"}))
	g.Expect(s.applied(d[2], config)).To(Equal(config.content().Hash(nil)))
}

// An approval of the change alone, of before the failure, is none in spite of it.
func TestE17AnApprovalFromBeforeTheFailureIsNotEnough(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(2)
	s.rollout.MaxConcurrent, s.rollout.Approval = 1, v1alpha1.ApprovalManual
	config.set("B")
	s.pass()
	s.approved = s.status.ApprovalHash
	g.Expect(s.pass().restarted()).To(Equal([]string{"d0"}))
	d[0].fails()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(d[1])).To(Equal("Halted Halted"))
	s.approved = s.status.ApprovalHash
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
}

func TestE17TheHaltedGoOnWhenTheSpecSaysContinue(t *testing.T) {
	g := NewWithT(t)
	_, d, s := haltedFleet(3)
	s.edit(func() { s.rollout.OnFailure = v1alpha1.OnFailureContinue })
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
	d[1].fails()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d2"}), "a failed one takes no place")
}

func TestE17TheHaltedGoOnWhenTheFailedOneIsGone(t *testing.T) {
	for name, change := range map[string]func(*scene, *tgt){
		"deleted":               func(_ *scene, d *tgt) { d.missing = true },
		"re-created":            func(_ *scene, d *tgt) { d.recreate() },
		"no longer in the spec": func(s *scene, _ *tgt) { s.edit(func() { s.targets = s.targets[1:] }) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, d, s := haltedFleet(2)
			change(s, d[0])
			g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
		})
	}
}

func TestE17TheHaltedAreOwedNothingWhenTheChangeIsTakenBack(t *testing.T) {
	g := NewWithT(t)
	config, d, s := haltedFleet(2)
	config.set("A")
	g.Expect(s.pass().restarted()).To(Equal([]string{"d0"}), "the failed one was started for what is gone")
	g.Expect(s.row(d[1]).Message).To(Equal("the change was taken back before a restart was made"))
	g.Expect(s.said(d[1])).To(Equal("UpToDate Baseline"))
}

func TestE17AFailureForAnotherChangeHaltsNobody(t *testing.T) {
	g := NewWithT(t)
	config, other, web, api := configMap("config", "A"), configMap("other", "A"), deployment("web"), deployment("api")
	s := settled(config, other, web, api)
	s.rollout.MaxConcurrent = 1
	web.uses = []*src{config}
	config.set("B")
	s.pass()
	web.fails()
	s.pass()
	g.Expect(s.said(api)).To(Equal("Halted Halted"))

	web.done()
	s.pass()
	api.done()
	s.pass()
	web.fails() // which is not of this operator's making any more
	config.set("C")
	g.Expect(s.pass().restarted()).To(Equal([]string{"web"}))
	web.fails()
	api.uses = []*src{other}
	other.set("B")
	g.Expect(s.pass().restarted()).To(Equal([]string{"api"}))
}

// The latest restart of the failed one was for one of its sources; others of it are not to blame.
func TestE17OnlyWhatTheRestartWasForIsToBlame(t *testing.T) {
	g := NewWithT(t)
	config, other, web, api := configMap("config", "A"), configMap("other", "A"), deployment("web"), deployment("api")
	api.uses = []*src{other}
	s := settled(config, other, web, api)
	other.set("B")
	g.Expect(s.refused(errRefused, api).restarted()).To(Equal([]string{"web", "api"}))
	web.done()
	s.refused(errRefused)
	g.Expect(s.said(web)).To(Equal("UpToDate RolloutComplete"))
	config.set("B")
	g.Expect(s.refused(errRefused, api).restarted()).To(Equal([]string{"web", "api"}))
	web.fails()
	g.Expect(s.pass().restarted()).To(Equal([]string{"api"}), "web has proven that it rolls out with the change of other")
	g.Expect(s.said(web)).To(Equal("Failed RolloutFailed"))
}

// A rollout that covers two changes, one of which it had not got done before the other came, may fail for either.
func TestE17AnUnfinishedRolloutIsForTheChangesBeforeToo(t *testing.T) {
	g := NewWithT(t)
	config, other, web, api := configMap("config", "A"), configMap("other", "A"), deployment("web"), deployment("api")
	api.uses = []*src{config}
	s := settled(config, other, web, api)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	g.Expect(s.pass().restarted()).To(Equal([]string{"web"}))
	other.set("B")
	g.Expect(s.pass().restarted()).To(Equal([]string{"web"}))
	web.fails()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(api)).To(Equal("Halted Halted"))
}

// A StatefulSet has no deadline of its own: that of the spec counts from the latest new pod.
func TestE17AStatefulSetFailsWithoutProgress(t *testing.T) {
	g := NewWithT(t)
	config, db, web := configMap("config", "A"), workloadOf(workload.StatefulSet, "db"), deployment("web")
	db.rollout.NoDeadline = true
	s := settled(config, db, web)
	s.rollout.MaxConcurrent, s.rollout.ProgressDeadlineSeconds = 1, 300
	config.set("B")
	s.pass()
	restarted := s.now
	s.reload()
	g.Expect(s.pass().lookAgain).To(BeTemporally("==", restarted.Add(5*time.Minute+time.Second)), "the record has whole seconds")

	db.rollout.NewPods = 1
	progress := s.pass()
	g.Expect(progress.lookAgain).To(BeTemporally("==", s.now.Add(5*time.Minute+time.Second)), "another pod is new")
	s.reload()
	g.Expect(s.at(progress.lookAgain.Add(-time.Second)).events).To(BeEmpty())
	s.reload()
	failed := s.at(progress.lookAgain)
	g.Expect(failed.reasons()).To(ConsistOf(v1alpha1.EventRolloutFailed, v1alpha1.EventHalted, v1alpha1.EventStalled))
	g.Expect(s.said(db)).To(Equal("Failed RolloutFailed"))
	g.Expect(s.row(db).Message).To(Equal("ConfigMap config changed (KEY). " +
		"There was no other new pod for 300 seconds (spec.rollout.progressDeadlineSeconds); 1 new pod is ready"))
	g.Expect(s.said(web)).To(Equal("Halted Halted"))
	g.Expect(failed.lookAgain).To(BeZero(), "no time ends it")

	db.rollout.NewPods = 2
	g.Expect(s.pass().restarts).To(BeEmpty(), "another new pod after all proves nothing")
	g.Expect(s.said(db)).To(Equal("Failed RolloutFailed"))
	g.Expect(s.said(web)).To(Equal("Halted Halted"))
	db.done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"web"}))
}

func TestE17ADeadlineIsTenMinutesUnlessTheSpecSaysOtherwise(t *testing.T) {
	g := NewWithT(t)
	config, db := configMap("config", "A"), workloadOf(workload.DaemonSet, "proxy")
	db.rollout.NoDeadline = true
	s := settled(config, db)
	config.set("B")
	s.pass()
	restarted := s.now
	g.Expect(s.pass().lookAgain).To(Equal(restarted.Add(10*time.Minute + time.Second)))
	s.edit(func() { s.rollout.ProgressDeadlineSeconds = 60 })
	g.Expect(s.pass().reasons()).To(ContainElement(v1alpha1.EventRolloutFailed))
	g.Expect(s.row(db).Message).To(HaveSuffix("; 0 new pods are ready"))
}

// The restart whose record was lost began a rollout with a deadline of its own.
func TestE28TheDeadlineIsThatOfTheLatestRestart(t *testing.T) {
	g := NewWithT(t)
	config, db := configMap("config", "A"), workloadOf(workload.StatefulSet, "db")
	db.rollout.NoDeadline = true
	s := settled(config, db)
	config.set("B")
	s.pass()
	config.set("C")
	s.lost()
	resumed := s.pass()
	g.Expect(s.row(db).Restarts).To(Equal(int64(2)))
	g.Expect(resumed.lookAgain).To(Equal(s.now.Add(10*time.Minute + time.Second)))
}

// The failure is found by the pass that finds the restart, whose record was lost.
func TestE17AFailureHaltsAlsoWhereTheRecordOfItsRestartWasLost(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(2)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.lost()
	d[0].fails()
	s.reload()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(d[0])).To(Equal("Failed RolloutFailed"))
	g.Expect(s.said(d[1])).To(Equal("Halted Halted"))
}

// The rollout of somebody else that took a restart's place is a rollout of the change as well.
func TestE17ARolloutThatSupersededARestartHaltsToo(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(2)
	s.rollout.SettleSeconds = new(int32(60))
	config.set("B")
	s.pass()
	d[0].roll("new")
	d[0].fails()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(d[0])).To(Equal("Failed RolloutFailed"))
	g.Expect(s.said(d[1])).To(Equal("Halted Halted"))
}

// E11: a failed target whose next restart is refused has not recovered.
func TestE17ARefusedRestartOfTheFailedOneDoesNotLetTheOthersGo(t *testing.T) {
	g := NewWithT(t)
	config, other, web, api := configMap("config", "A"), configMap("other", "A"), deployment("web"), deployment("api")
	api.uses = []*src{config}
	s := settled(config, other, web, api)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	web.fails()
	s.pass()
	other.set("B")
	g.Expect(s.refused(errRefused).restarted()).To(Equal([]string{"web"}))
	g.Expect(s.said(web)).To(Equal("Pending RestartFailed"))
	g.Expect(s.refused(errRefused).restarted()).To(Equal([]string{"web"}))
	g.Expect(s.said(api)).To(Equal("Halted Halted"))
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionStalled, "True Halted"), "that is all there is to mend")
}

func TestE19NobodyIsHaltedInDryRun(t *testing.T) {
	g := NewWithT(t)
	_, d, s := haltedFleet(2)
	s.edit(func() { s.mode = v1alpha1.ModeDryRun })
	s.pass()
	g.Expect(s.said(d[1])).To(Equal("Pending DryRun"))
	s.edit(func() { s.mode = v1alpha1.ModeSuspended })
	s.pass()
	g.Expect(s.said(d[1])).To(Equal("Pending Suspended"))
	s.edit(func() { s.mode = v1alpha1.ModeActive })
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(d[1])).To(Equal("Halted Halted"))
}

// Without a limit all roll out at once, and there is nobody to halt.
func TestE17WhatHasBegunIsNotHalted(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(3)
	config.set("B")
	s.pass()
	d[0].fails()
	d[1].done()
	s.pass()
	g.Expect(s.said(d[1])).To(Equal("UpToDate RolloutComplete"))
	g.Expect(s.said(d[2])).To(Equal("RollingOut RolloutInProgress"))
	g.Expect(s.status.ApprovalHash).To(BeEmpty())
	g.Expect(s.message(v1alpha1.ConditionStalled)).NotTo(ContainSubstring("halted"))
}

// Kubernetes takes a failure back as soon as one more pod is ready, which a pod that crashes after that is too.
func TestE17AFailedTargetRecoversOnlyWhenItIsComplete(t *testing.T) {
	g := NewWithT(t)
	config, api, web := configMap("config", "A"), deployment("api"), deployment("web")
	s := settled(config, api, web)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	api.rollout.Progress, api.rollout.Detail = workload.Failed, "Progress deadline exceeded"
	s.pass()
	g.Expect(s.said(api)).To(Equal("Failed RolloutFailed"))

	api.rollout.Progress, api.rollout.Detail = workload.InProgress, ""
	s.reload()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(api)).To(Equal("Failed RolloutFailed"))
	g.Expect(s.row(api).Message).To(HaveSuffix("Progress deadline exceeded"))
	g.Expect(s.said(web)).To(Equal("Halted Halted"))
	api.done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"web"}))
}

// sharing are web, that uses both sources, and others that use one of them each. All were restarted for config,
// one after the other, of which web was the first, and failed.
func sharing() (config, other *src, web, api, db *tgt, s *scene) {
	config, other = configMap("config", "A"), configMap("other", "A")
	web, api, db = deployment("web"), deployment("api"), deployment("db")
	api.uses, db.uses = []*src{config}, []*src{other}
	s = settled(config, other, web, api, db)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	web.fails()
	s.pass()
	return config, other, web, api, db, s
}

// Nothing is proven of what failed until a rollout with it is complete.
func TestE17AFailedTargetThatIsRestartedForAnotherSourceHasNotRecovered(t *testing.T) {
	g := NewWithT(t)
	_, other, web, api, db, s := sharing()
	g.Expect(s.said(api)).To(Equal("Halted Halted"))
	other.set("B")
	g.Expect(s.pass().restarted()).To(Equal([]string{"web"}), "the failed one goes first")
	g.Expect(s.said(web)).To(Equal("RollingOut RolloutInProgress"))
	g.Expect(s.said(db)).To(Equal("Pending AwaitingTurn"))
	s.edit(func() { s.rollout.MaxConcurrent = 2 })
	for range 2 {
		s.reload()
		g.Expect(s.pass().restarted()).NotTo(ContainElement("api"))
		g.Expect(s.said(api)).To(Equal("Halted Halted"))
		g.Expect(s.row(api).Message).To(HaveSuffix("Halted, as Deployment web failed to roll out for the same change"))
	}
	g.Expect(s.said(db)).To(Equal("RollingOut RolloutInProgress"), "the other change has not failed")
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionStalled, "True Halted"))
	db.done()
	web.done()
	s.reload()
	g.Expect(s.pass().restarted()).To(Equal([]string{"api"}))
	web.roll("new")
	web.fails()
	s.pass()
	api.done()
	s.pass()
	g.Expect(s.said(api)).To(Equal("UpToDate RolloutComplete"))
}

func TestE17ATargetThatFailsOnceMoreHasFailedForBothChanges(t *testing.T) {
	g := NewWithT(t)
	_, other, web, api, db, s := sharing()
	other.set("B")
	s.pass()
	web.fails()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(api)).To(Equal("Halted Halted"))
	g.Expect(s.said(db)).To(Equal("Halted Halted"))
	s.approved = s.status.ApprovalHash
	g.Expect(s.pass().restarted()).To(Equal([]string{"api"}))
}

// The rollout of the other change is somebody else's, or its record was lost.
func TestE17AFailureIsNotForgottenWhile(t *testing.T) {
	for name, change := range map[string]func(s *scene, other *src, web *tgt){
		"a restart for another change is not recorded": func(s *scene, other *src, web *tgt) {
			other.set("B")
			s.lost()
		},
		"a rollout supersedes a restart for another change": func(s *scene, other *src, web *tgt) {
			other.set("B")
			s.rollout.CooldownSeconds = new(int32(3600))
			s.pass()
			s.status.Targets[0].Wait.Template = &v1alpha1.Template{Hash: web.template().Hash, Generation: web.generation}
			web.roll("new")
		},
		"it is restarted by request": func(s *scene, _ *src, web *tgt) {
			s.requested = firstRequest
			s.refused(errRefused, s.targets[1:]...)
			s.status.Targets[1].Wait.RequestedAt = nil
		},
		"its template is put back":         func(_ *scene, _ *src, web *tgt) { web.putBack("") },
		"its template is put back halfway": func(_ *scene, _ *src, web *tgt) { web.putBack(""); web.fails() },
		"a partition holds its pods": func(_ *scene, _ *src, web *tgt) {
			web.rollout.Hold, web.rollout.Progress = workload.HeldByPartition, workload.Complete
		},
		"it can't be read": func(_ *scene, _ *src, web *tgt) { web.unreadable = true },
		"a source of it can't be read": func(s *scene, other *src, web *tgt) {
			other.unreadable = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, other, web, api, _, s := sharing()
			approval := s.status.ApprovalHash
			change(s, other, web)
			for range 2 {
				s.reload()
				g.Expect(s.pass().restarted()).NotTo(ContainElement("api"))
				g.Expect(s.said(api)).To(Equal("Halted Halted"))
			}
			if web.unreadable {
				g.Expect(s.status.ApprovalHash).To(Equal(approval), "it is the same failure")
			}
		})
	}
}

// Its own failure is no reason to leave a target with pods that nobody knows (E9).
func TestE17ATargetIsNotHaltedByItself(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.pass()
	web.fails()
	s.pass()
	config.set("C")
	g.Expect(s.lost().restarts).To(HaveLen(1))
	config.set("B")
	web.fails()
	g.Expect(s.pass().restarts).To(HaveLen(1), "its pods run C")
}

// E18: what a record tells of a fleet that nobody has looked at yet.
func TestE18AFailedRolloutHoldsNoTurnByItsRecord(t *testing.T) {
	for name, prepare := range map[string]func(s *scene, config *src, web *tgt){
		"failed":                        func(*scene, *src, *tgt) {},
		"failed, and a restart is owed": func(s *scene, config *src, _ *tgt) { s.mode = v1alpha1.ModeSuspended; config.set("C") },
		"failed, and can't be read":     func(_ *scene, _ *src, web *tgt) { web.unreadable = true },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			config.set("B")
			s.pass()
			g.Expect(plan.Rolling(&s.status)).To(Equal(1))
			web.fails()
			s.pass()
			prepare(s, config, web)
			s.pass()
			g.Expect(plan.Rolling(&s.status)).To(BeZero())
			g.Expect(s.decide().Rolling()).To(BeZero())
		})
	}
}
