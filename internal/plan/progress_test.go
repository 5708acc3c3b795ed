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
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/workload"
)

// aSetAndAnother is a StatefulSet that was restarted for a change, and a Deployment that waits for its turn.
func aSetAndAnother() (s *scene, set, waiting *tgt) {
	config := configMap("app-config", "1")
	set, waiting = workloadOf(workload.StatefulSet, "db"), deployment("web")
	set.rollout.NoDeadline = true
	s = settled(config, set, waiting)
	s.rollout.MaxConcurrent = 1
	config.set("2")
	s.pass()
	return s, set, waiting
}

// A pod that breaks and starts again, again and again, is ready now and then.
func TestE17APodThatIsReadyNowAndThenIsProgressOnce(t *testing.T) {
	g := NewWithT(t)
	s, set, waiting := aSetAndAnother()
	for minute := range 9 {
		set.rollout.NewPods = int32(minute % 2)
		s.pass()
		g.Expect(s.row(set).State).To(Equal(v1alpha1.TargetRollingOut), "minute %d", minute)
		g.Expect(s.row(waiting).Reason).To(Equal(v1alpha1.ReasonAwaitingTurn))
	}
	began := s.row(set).LastRestartTime.Time
	g.Expect(s.row(set).Rollout.LastProgressTime.Sub(began)).To(Equal(2*time.Minute), "when it was ready for the first time")

	for minute := range 20 {
		set.rollout.NewPods = int32(minute % 2)
		s.pass()
	}
	g.Expect(s.row(set).State).To(Equal(v1alpha1.TargetFailed))
	g.Expect(s.row(waiting).State).To(Equal(v1alpha1.TargetHalted), "what broke the first one breaks no other")
	g.Expect(s.row(waiting).Restarts).To(BeZero())
}

func TestE17EachFurtherNewPodIsProgress(t *testing.T) {
	g := NewWithT(t)
	s, set, waiting := aSetAndAnother()
	for pod := range 10 {
		for range 5 {
			set.rollout.NewPods = int32(pod)
			s.pass()
			g.Expect(s.row(set).State).To(Equal(v1alpha1.TargetRollingOut), "with %d new pods", pod)
		}
	}
	set.rollout.Progress = workload.Complete
	s.pass()
	g.Expect(s.row(set).State).To(Equal(v1alpha1.TargetUpToDate))
	g.Expect(s.row(waiting).State).To(Equal(v1alpha1.TargetRollingOut))
}

// The next restart is another template: it has no new pods at first.
func TestE17ARestartBeginsToCountAnew(t *testing.T) {
	g := NewWithT(t)
	s, set, _ := aSetAndAnother()
	set.rollout.NewPods = 2
	s.pass()
	s.sources[0].set("3")
	s.pass()
	g.Expect(s.row(set).Rollout.NewPods).To(BeZero())
	for pod := range 3 {
		set.rollout.NewPods = int32(pod)
		s.pass()
		g.Expect(s.row(set).Rollout.NewPods).To(BeEquivalentTo(pod))
	}
	g.Expect(s.row(set).Rollout.LastProgressTime.Time).To(Equal(s.now))
}

func TestE24E16MessagesAreSentences(t *testing.T) {
	const told = " put the pod template back before the rollout was complete, so that old pods stay. It is not restarted again " +
		"for this change: let %s restart it, or leave the annotation restart.configwatch.ktechhub.io/... alone"
	for owner, want := range map[string]string{
		"":                "Another client" + fmt.Sprintf(told, "that client"),
		"Database orders": "Database orders" + fmt.Sprintf(told, "Database orders"),
	} {
		g := NewWithT(t)
		s, set, waiting := aSetAndAnother()
		g.Expect(s.row(waiting).Message).To(Equal("ConfigMap app-config changed (KEY). " +
			"It waits for its turn: one target rolls out at a time (spec.rollout.maxConcurrent)"))
		set.owner = owner
		clear(set.marks)
		set.generation++
		s.pass()
		g.Expect(s.row(set).Message).To(Equal("ConfigMap app-config changed (KEY). " + want))
	}
}

// Its row says what the next restart waits for; that the one before went well, or didn't, is news all the same.
func TestE27HowARolloutWentIsToldThoughAnotherRestartIsOwed(t *testing.T) {
	for name, tc := range map[string]struct {
		ends           func(*tgt)
		reason, noteIs string
	}{
		"completed": {(*tgt).done, v1alpha1.EventRolloutCompleted,
			"Deployment shop/d0 is rolled out: restart 1, after which there was another change"},
		"failed": {(*tgt).fails, v1alpha1.EventRolloutFailed,
			"Deployment shop/d0 failed to roll out: restart 1, after which there was another change. Progress deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(1)
			s.rollout.CooldownSeconds = new(int32(3600))
			config.set("B")
			s.pass()
			config.set("C")
			s.pass()
			g.Expect(s.said(d[0])).To(Equal("Pending CoolingDown"))

			tc.ends(d[0])
			s.reload()
			ended := s.pass()
			g.Expect(ended.note(tc.reason)).To(Equal(tc.noteIs))
			g.Expect(s.said(d[0])).To(Equal("Pending CoolingDown"))
			s.reload()
			g.Expect(s.pass().events).To(BeEmpty(), "it is told once")
		})
	}
}

// The pass that sees it complete makes the next restart, which has a number of its own.
func TestE27ARolloutIsToldByTheNumberOfItsRestart(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(1)
	config.set("B")
	s.pass()
	d[0].done()
	config.set("C")
	r := s.pass()
	g.Expect(r.note(v1alpha1.EventRolloutCompleted)).To(Equal("Deployment shop/d0 is rolled out: ConfigMap config changed (KEY)"))
	numbers := map[string]int64{}
	for _, e := range r.events {
		numbers[e.Reason] = e.Restart
	}
	g.Expect(numbers).To(Equal(map[string]int64{v1alpha1.EventRolloutCompleted: 1, v1alpha1.EventRestartTriggered: 2}))
}
