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
)

// What happens to a wave, or to one that waits, in the middle of it.

func TestE17TheSpecSaysHaltInTheMiddleOfAWave(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(4)
	s.rollout.MaxConcurrent, s.rollout.OnFailure = 1, v1alpha1.OnFailureContinue
	config.set("B")
	s.pass()
	d[0].fails()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
	s.edit(func() { s.rollout.OnFailure = v1alpha1.OnFailureHalt })
	d[1].done()
	s.reload()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(d[1])).To(Equal("UpToDate RolloutComplete"))
	g.Expect(s.said(d[2])).To(Equal("Halted Halted"))
	s.edit(func() { s.rollout.OnFailure = v1alpha1.OnFailureContinue })
	g.Expect(s.pass().restarted()).To(Equal([]string{"d2"}))
}

// reasonsToWait make the second target of a fleet wait for a change to B. Those for time are over in a day.
var reasonsToWait = map[string]func(s *scene, config *src, d []*tgt){
	v1alpha1.ReasonSettling: func(s *scene, config *src, _ []*tgt) {
		s.rollout.SettleSeconds = new(int32(3600))
		config.set("B")
	},
	v1alpha1.ReasonCoolingDown: func(s *scene, _ *src, _ []*tgt) {
		s.rollout.CooldownSeconds = new(int32(3600))
		s.requested = firstRequest
		s.pass()
		for _, one := range s.targets {
			one.done()
		}
		s.pass()
		s.sources[0].set("B")
	},
	v1alpha1.ReasonAwaitingApproval: func(s *scene, config *src, _ []*tgt) {
		s.rollout.Approval = v1alpha1.ApprovalManual
		config.set("B")
	},
	v1alpha1.ReasonOutsideWindow: func(s *scene, config *src, _ []*tgt) {
		s.now = s.now.Add(time.Hour)
		s.rollout.Windows = []v1alpha1.Window{nightly}
		config.set("B")
	},
	v1alpha1.ReasonAwaitingTurn: func(s *scene, config *src, _ []*tgt) {
		s.rollout.MaxConcurrent = 1
		config.set("B")
	},
	v1alpha1.ReasonHalted: func(s *scene, config *src, d []*tgt) {
		s.rollout.MaxConcurrent = 1
		config.set("B")
		s.pass()
		d[0].fails()
	},
	v1alpha1.ReasonSuspended: func(s *scene, config *src, _ []*tgt) {
		s.mode = v1alpha1.ModeSuspended
		config.set("B")
	},
}

// letGo opens whatever gate there is.
func letGo(s *scene, d []*tgt) {
	d[0].done()
	s.edit(func() {
		s.mode, s.rollout = v1alpha1.ModeActive, v1alpha1.RolloutSpec{SettleSeconds: new(int32(0)), MaxConcurrent: 1000}
	})
}

// eachReasonToWait runs a test with two targets, the second of which waits.
func eachReasonToWait(t *testing.T, test func(g *WithT, s *scene, config *src, d []*tgt)) {
	for reason, prepare := range reasonsToWait {
		t.Run(reason, func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(2)
			prepare(s, config, d)
			s.pass()
			g.Expect(s.row(d[1]).Reason).To(Equal(reason))
			s.reload()
			test(g, s, config, d)
		})
	}
}

// Its pods are new, and those of the next one would be.
func TestE5ATargetThatIsReplacedWhileItWaitsIsNew(t *testing.T) {
	eachReasonToWait(t, func(g *WithT, s *scene, config *src, d []*tgt) {
		d[1].missing = true
		s.after(time.Second)
		g.Expect(s.said(d[1])).To(Equal("Missing NotFound"))
		g.Expect(s.row(d[1]).Wait).To(BeNil())
		d[1].missing = false
		d[1].recreate()
		s.reload()
		s.after(time.Second)
		letGo(s, d)
		for range 3 {
			g.Expect(s.pass().restarted()).NotTo(ContainElement("d1"))
			d[0].done()
			d[1].done()
		}
		g.Expect(s.said(d[1])).To(Equal("UpToDate Baseline"))
		g.Expect(s.applied(d[1], config)).To(Equal(config.content().Hash(nil)))
	})
}

// E6: it is compared with what the pods run when it is back.
func TestE6ASourceThatIsAwayWhileATargetWaits(t *testing.T) {
	for content, restarts := range map[string]int{"A": 0, "B": 1, "C": 1} {
		t.Run("and comes back as "+content, func(t *testing.T) {
			eachReasonToWait(t, func(g *WithT, s *scene, config *src, d []*tgt) {
				config.set("-")
				g.Expect(s.after(time.Second).restarts).To(BeEmpty())
				s.reload()
				g.Expect(s.row(d[1]).State).To(Equal(v1alpha1.TargetUpToDate), "there is nothing to be restarted for")
				config.set(content)
				s.after(time.Second)
				before := s.row(d[1]).Restarts
				letGo(s, d)
				for range 3 {
					s.pass()
					d[0].done()
					d[1].done()
				}
				g.Expect(int(s.row(d[1]).Restarts - before)).To(Equal(restarts))
				g.Expect(s.row(d[1]).State).To(Equal(v1alpha1.TargetUpToDate))
				g.Expect(s.applied(d[1], config)).To(Equal(config.content().Hash(nil)))
			})
		})
	}
}

// E7, E14: whatever is edited, the change is acted on once in the end, and not before the gates that are left open.
func TestE14AnEditOfTheGatesWhileATargetWaits(t *testing.T) {
	eachReasonToWait(t, func(g *WithT, s *scene, config *src, d []*tgt) {
		before := s.row(d[1]).Restarts
		for _, edit := range []func(){
			func() { s.rollout.SettleSeconds = new(int32(3600)) },
			func() { s.rollout.CooldownSeconds = new(int32(86400)) },
			func() { s.rollout.Approval = v1alpha1.ApprovalManual },
			func() { s.rollout.Windows = []v1alpha1.Window{{Schedule: "0 0 29 2 *", DurationMinutes: 1}} },
			func() { s.rollout.MaxConcurrent = 1 },
			func() { s.mode = v1alpha1.ModeDryRun },
			func() { s.mode = v1alpha1.ModeSuspended },
		} {
			s.edit(edit)
			g.Expect(s.after(time.Second).restarted()).NotTo(ContainElement("d1"))
			g.Expect(s.row(d[1]).Wait).NotTo(BeNil())
			s.reload()
		}
		letGo(s, d)
		g.Expect(s.pass().restarted()).To(ContainElement("d1"))
		g.Expect(s.row(d[1]).Restarts).To(Equal(before + 1))
		g.Expect(s.applied(d[1], config)).To(Equal(config.content().Hash(nil)))
		g.Expect(s.pass().restarted()).NotTo(ContainElement("d1"))
	})
}

// The hash that is approved is one that was shown before the content changed once more.
func TestE14AnApprovalOfAnOldHashIsNoneOfWhatIsThere(t *testing.T) {
	for name, seen := range map[string]bool{"that was seen": true, "that comes together with it": false} {
		t.Run("before a change "+name, func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(1)
			s.rollout.Approval = v1alpha1.ApprovalManual
			config.set("B")
			s.pass()
			old := s.status.ApprovalHash
			config.set("C")
			if seen {
				s.pass()
			}
			s.approved = old
			for range 2 {
				s.reload()
				g.Expect(s.pass().restarts).To(BeEmpty())
				g.Expect(s.said(d[0])).To(Equal("Pending AwaitingApproval"))
			}
			g.Expect(s.row(d[0]).Message).To(HaveSuffix("(the annotation configwatch.ktechhub.io/approve names another hash)"))
			s.approved = s.status.ApprovalHash
			g.Expect(s.pass().restarts).To(HaveLen(1))
		})
	}
}
