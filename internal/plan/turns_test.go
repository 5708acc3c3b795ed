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
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/workload"
)

// fleet is n Deployments, d0 and so on, that use one source.
func fleet(n int) (config *src, targets []*tgt, s *scene) {
	config = configMap("config", "A")
	objects := []any{config}
	for i := range n {
		targets = append(targets, deployment(fmt.Sprintf("d%d", i)))
		objects = append(objects, targets[i])
	}
	return config, targets, settled(objects...)
}

// done completes the rollout of a target.
func (t *tgt) done() {
	t.rollout = workload.Rollout{Progress: workload.Complete}
}

// fails makes the target's own controller give up.
func (t *tgt) fails() {
	t.rollout = workload.Rollout{Progress: workload.Failed, Detail: "Progress deadline exceeded"}
}

func TestE16AtMostMaxConcurrentRollOutInTheOrderOfTheSpec(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(5)
	s.rollout.MaxConcurrent = 2
	config.set("B")
	first := s.pass()
	g.Expect(first.restarted()).To(Equal([]string{"d0", "d1"}))
	g.Expect(first.lookAgain).To(BeZero(), "no time ends it")
	g.Expect(s.said(d[2])).To(Equal("Pending AwaitingTurn"))
	g.Expect(s.row(d[2]).Message).To(Equal("ConfigMap config changed (KEY). " +
		"It waits for its turn: at most 2 targets roll out at once (spec.rollout.maxConcurrent)"))
	g.Expect(first.note(v1alpha1.EventRestartDelayed)).To(HavePrefix("Deployment shop/d2 and 2 more targets: not restarted yet"))

	s.reload()
	g.Expect(s.pass().restarts).To(BeEmpty(), "none is done: patched is not rolled out")
	d[1].done()
	s.reload()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d2"}), "in the pass that sees it done")
	g.Expect(s.pass().restarts).To(BeEmpty())
	d[0].done()
	d[2].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d3", "d4"}))
	d[3].done()
	d[4].done()
	s.pass()
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionReady, "True UpToDate"))
	for _, one := range d {
		g.Expect(one.mark()).To(HavePrefix("1-"))
	}
}

func TestE16TenRollOutAtOnceUnlessTheSpecSaysOtherwise(t *testing.T) {
	g := NewWithT(t)
	config, _, s := fleet(12)
	s.rollout = v1alpha1.RolloutSpec{SettleSeconds: new(int32(0))}
	config.set("B")
	g.Expect(s.pass().restarts).To(HaveLen(10))
}

func TestE16AnEditOfMaxConcurrent(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(5)
	s.rollout.MaxConcurrent = 3
	config.set("B")
	g.Expect(s.pass().restarts).To(HaveLen(3))
	s.edit(func() { s.rollout.MaxConcurrent = 1 })
	d[0].done()
	g.Expect(s.pass().restarts).To(BeEmpty(), "two roll out")
	d[1].done()
	g.Expect(s.pass().restarts).To(BeEmpty(), "one does")
	s.edit(func() { s.rollout.MaxConcurrent = 3 })
	g.Expect(s.pass().restarts).To(HaveLen(2))
}

// One that can't go on by itself takes no place; when it goes on it takes one again.
func TestE16WhoeverWaitsForAHumanTakesNoPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		rollout workload.Rollout
		said    string
	}{
		"paused":    {workload.Rollout{Progress: workload.InProgress, Paused: true}, "RollingOut RolloutPaused"},
		"OnDelete":  {workload.Rollout{Progress: workload.InProgress, Hold: workload.HeldByOnDelete}, "Blocked UpdateStrategyOnDelete"},
		"partition": {workload.Rollout{Progress: workload.Complete, Hold: workload.HeldByPartition}, "Blocked PartitionedRollout"},
		"no pods":   {workload.Rollout{Progress: workload.InProgress, NoPods: true}, "UpToDate ScaledToZero"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(3)
			s.rollout.MaxConcurrent = 1
			config.set("B")
			s.pass()
			d[0].rollout = tc.rollout
			g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
			g.Expect(s.said(d[0])).To(Equal(tc.said))

			d[1].done()
			d[0].rollout = workload.Rollout{Progress: workload.InProgress}
			went := s.pass()
			if tc.rollout.NoPods {
				g.Expect(went.restarts).To(HaveLen(1), "what happens to one that was done is nobody's business here")
				return
			}
			g.Expect(went.restarts).To(BeEmpty())
			d[0].done()
			g.Expect(s.pass().restarted()).To(Equal([]string{"d2"}))
		})
	}
}

// Of those that are paused, or have no pods, when they are restarted, the same is true at once.
func TestE16APausedTargetIsPatchedAndTakesNoPlace(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(3)
	s.rollout.MaxConcurrent = 1
	d[0].rollout.Paused, d[1].rollout.NoPods = true, true
	config.set("B")
	var restarted []string
	for range 3 {
		restarted = append(restarted, s.pass().restarted()...)
		d[0].rollout.Paused, d[1].rollout.NoPods = true, true
	}
	g.Expect(restarted).To(Equal([]string{"d0", "d1", "d2"}))
}

// A target that rolls out already has a place.
func TestE16ATargetThatIsRestartedAgainTakesNoOtherPlace(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(2)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	config.set("C")
	again := s.pass()
	g.Expect(again.restarted()).To(Equal([]string{"d0"}))
	g.Expect(s.said(d[1])).To(Equal("Pending AwaitingTurn"))
	d[0].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
	g.Expect(s.applied(d[1], config)).To(Equal(config.content().Hash(nil)), "one restart for both changes")
}

func TestE16ARestartWhoseRecordWasLostTakesItsPlace(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(3)
	s.rollout.MaxConcurrent = 2
	config.set("B")
	g.Expect(s.lost().restarted()).To(Equal([]string{"d0", "d1"}))
	s.reload()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(d[2])).To(Equal("Pending AwaitingTurn"))
	d[0].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d2"}))
}

// The cache may not show the restart yet, and so that all pods are new: of the template before.
func TestE16ACacheThatIsBehindShowsNoCompletion(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(2)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.record(s.attempt(func(plan.Restart) error { return nil })) // made, but not seen
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(d[0])).To(Equal("RollingOut RolloutInProgress"))
}

func TestE16ATargetThatCanNotBeReadKeepsItsPlace(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(2)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	d[0].unreadable = true
	g.Expect(s.pass().restarts).To(BeEmpty())
	d[0].unreadable = false
	d[0].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
}

func TestE16ATargetThatIsGoneGivesItsPlaceBack(t *testing.T) {
	for name, change := range map[string]func(*scene, *tgt){
		"deleted":               func(_ *scene, d *tgt) { d.missing = true },
		"re-created":            func(_ *scene, d *tgt) { d.recreate() },
		"ignored":               func(_ *scene, d *tgt) { d.ignored = true },
		"no longer in the spec": func(s *scene, _ *tgt) { s.edit(func() { s.targets = s.targets[1:] }) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(2)
			s.rollout.MaxConcurrent = 1
			config.set("B")
			s.pass()
			change(s, d[0])
			g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
		})
	}
}

// E11: whose patch is refused comes last from then on, so that it holds up no other.
func TestE11ATargetThatIsRefusedHoldsUpNoOther(t *testing.T) {
	for name, err := range map[string]error{"by admission": errRefused, "by the authorizer": forbidden()} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(3)
			s.rollout.MaxConcurrent = 1
			config.set("B")
			g.Expect(s.refused(err, d[0]).restarted()).To(Equal([]string{"d0"}))
			said, message := s.said(d[0]), s.row(d[0]).Message
			for _, next := range []string{"d1", "d2"} {
				g.Expect(s.refused(err, d[0]).restarted()).To(Equal([]string{next}))
				g.Expect(s.said(d[0])).To(Equal(said))
				g.Expect(s.row(d[0]).Message).To(Equal(message), "it says why, and not that it waits for another attempt")
				d[1].done()
				d[2].done()
			}
			g.Expect(s.refused(err, d[0]).restarted()).To(Equal([]string{"d0"}))
			g.Expect(s.pass().restarted()).To(Equal([]string{"d0"}))
		})
	}
}

// That it would be the first, as its rollout failed, doesn't help if it can't be restarted.
func TestE11AFailedTargetThatIsRefusedHoldsUpNoOther(t *testing.T) {
	g := NewWithT(t)
	config, d, s := haltedFleet(3)
	config.set("C")
	g.Expect(s.refused(errRefused, d[0]).restarted()).To(Equal([]string{"d0"}))
	for i, next := range []string{"d1", "d2"} {
		g.Expect(s.refused(errRefused, d[0]).restarted()).To(Equal([]string{next}))
		d[i+1].done()
	}
	g.Expect(s.pass().restarted()).To(Equal([]string{"d0"}))
}

// There are two of them and one place: each is tried, as time goes by.
func TestE11EachOfTheRefusedIsTriedAgain(t *testing.T) {
	g := NewWithT(t)
	config, _, s := fleet(3)
	config.set("B")
	s.refused(errRefused)
	s.rollout.MaxConcurrent = 1
	tried := map[string]int{}
	for range 30 {
		s.now = s.now.Add(time.Millisecond)
		tried[s.refused(errRefused).restarted()[0]]++
	}
	g.Expect(tried).To(Equal(map[string]int{"d0": 10, "d1": 10, "d2": 10}))
}

// limited makes a pass in which the operator as a whole lets n more targets roll out.
func (s *scene) limited(n int) (r result, wants int) {
	decision := s.decide()
	wants = decision.Wants()
	decision.Limit(n)
	return s.record(s.carryOut(decision, s.patch)), wants
}

func TestE18TheOperatorAsAWholeLetsSoManyRollOut(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(4)
	config.set("B")
	first, wants := s.limited(2)
	g.Expect(wants).To(Equal(4))
	g.Expect(first.restarted()).To(Equal([]string{"d0", "d1"}))
	g.Expect(s.said(d[2])).To(Equal("Pending AwaitingTurn"))
	g.Expect(s.row(d[2]).Message).To(Equal("ConfigMap config changed (KEY). " +
		"It waits for its turn: as many targets of all ConfigWatches roll out as --max-concurrent-rollouts allows"))
	g.Expect(s.row(d[2]).Wait.Template).NotTo(BeNil(), "it is read, so that another rollout is recognized")
	g.Expect(first.note(v1alpha1.EventRestartDelayed)).To(HavePrefix("Deployment shop/d2 and 1 more target: not restarted yet"))

	s.reload()
	none, wants := s.limited(0)
	g.Expect(wants).To(Equal(2))
	g.Expect(none.restarts).To(BeEmpty())
	g.Expect(none.events).To(BeEmpty())
	last, _ := s.limited(2)
	g.Expect(last.restarted()).To(Equal([]string{"d2", "d3"}))
}

func TestE18WhoeverRollsOutAlreadyIsNotLimited(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(3)
	config.set("B")
	s.limited(1)
	config.set("C")
	again, wants := s.limited(0)
	g.Expect(wants).To(Equal(2))
	g.Expect(again.restarted()).To(Equal([]string{"d0"}))
	g.Expect(s.said(d[1])).To(Equal("Pending AwaitingTurn"))
}

func TestE18MoreThanIsWantedChangesNothing(t *testing.T) {
	g := NewWithT(t)
	config, _, s := fleet(3)
	config.set("B")
	decision := s.decide()
	before := slices.Clone(decision.Restarts)
	decision.Limit(100)
	g.Expect(decision.Restarts).To(Equal(before))
}

// E11: a target that is refused has its say also where the operator as a whole has no place for it.
func TestE11ARefusalIsSaidWhileThereIsNoPlace(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(2)
	config.set("B")
	s.refused(errRefused, d[0])
	said, message := s.said(d[0]), s.row(d[0]).Message
	limited, _ := s.limited(0)
	g.Expect(limited.events).To(BeEmpty())
	g.Expect(s.said(d[0])).To(Equal(said))
	g.Expect(s.row(d[0]).Message).To(Equal(message))
}

// Rolling is counted before a pass, after it, and by the next process: it must come to the same.
func TestE18WhatRollsOutIsCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		rollout workload.Rollout
		rolling int
	}{
		"in progress": {workload.Rollout{Progress: workload.InProgress}, 1},
		"complete":    {workload.Rollout{Progress: workload.Complete}, 0},
		"failed":      {workload.Rollout{Progress: workload.Failed}, 0},
		"paused":      {workload.Rollout{Progress: workload.InProgress, Paused: true}, 0},
		"no pods":     {workload.Rollout{Progress: workload.InProgress, NoPods: true}, 0},
		"held":        {workload.Rollout{Progress: workload.InProgress, Hold: workload.HeldByOnDelete}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(1)
			config.set("B")
			decision := s.decide()
			g.Expect(decision.Rolling()).To(BeZero())
			g.Expect(decision.Wants()).To(Equal(1))
			s.record(s.carryOut(decision, s.patch))
			g.Expect(decision.Rolling()).To(Equal(1), "what was restarted in the pass counts when it is over")
			g.Expect(plan.Rolling(&s.status)).To(Equal(1))

			d[0].rollout = tc.rollout
			decision = s.decide()
			g.Expect(decision.Rolling()).To(Equal(tc.rolling))
			s.record(s.carryOut(decision, s.patch))
			g.Expect(decision.Rolling()).To(Equal(tc.rolling))
			g.Expect(plan.Rolling(&s.status)).To(Equal(tc.rolling))
		})
	}
}

// E19: in neither mode does anything await its turn.
func TestE19ModesComeBeforeTurns(t *testing.T) {
	for _, mode := range []v1alpha1.Mode{v1alpha1.ModeDryRun, v1alpha1.ModeSuspended} {
		t.Run(string(mode), func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(3)
			s.rollout.MaxConcurrent = 1
			s.mode = mode
			config.set("B")
			held := s.pass()
			g.Expect(held.restarts).To(BeEmpty())
			for _, one := range d {
				g.Expect(s.said(one)).To(Equal("Pending " + string(mode)))
			}
			s.mode = v1alpha1.ModeActive
			g.Expect(s.pass().restarted()).To(Equal([]string{"d0"}))
		})
	}
}

// A restart that was made for what is gone by now, and whose record was lost, started pods all the same.
func TestE16ARolloutWithoutARecordTakesAPlace(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(2)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	g.Expect(s.lost().restarted()).To(Equal([]string{"d0"}))
	config.set("C")
	g.Expect(s.refused(errRefused).restarted()).To(Equal([]string{"d0"}))
	s.reload()
	g.Expect(s.refused(errRefused).restarted()).To(Equal([]string{"d0"}), "which is tried last, but takes the only place")
	d[0].done()
	g.Expect(s.refused(errRefused, d[0]).restarted()).To(Equal([]string{"d1"}))
}

// A new leader counts them before it has made a pass over each ConfigWatch.
func TestE18RolloutsWithoutARecordAreCounted(t *testing.T) {
	_, d, s := haltedFleet(1)
	failed := s.row(d[0])
	g := NewWithT(t)
	g.Expect(failed.Rollout.Failed).To(BeTrue())
	config := s.sources[0]
	config.set("C")
	s.lost() // the failed one is restarted once more
	for name, tc := range map[string]struct {
		change func(*tgt)
		want   bool
	}{
		"a failed one":          {func(*tgt) {}, true},
		"that is complete":      {(*tgt).done, false},
		"that is paused":        {func(t *tgt) { t.rollout.Paused = true }, false},
		"without pods":          {func(t *tgt) { t.scale(0) }, false},
		"of another workload":   {(*tgt).recreate, false},
		"that doesn't exist":    {func(t *tgt) { t.missing = true }, false},
		"whose mark is no news": {func(t *tgt) { t.marks[watchName] = "1-x" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			one := *d[0]
			one.marks, one.rollout.Progress = maps.Clone(one.marks), workload.InProgress
			tc.change(&one)
			NewWithT(t).Expect(plan.RollingUnrecorded(&failed, one.workload(), watchName)).To(Equal(tc.want))
		})
	}
}
