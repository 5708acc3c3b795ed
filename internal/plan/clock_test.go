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

// setBack sets the clock back by an hour.
func (s *scene) setBack() {
	s.now = s.now.Add(-time.Hour)
}

// Each waits for a time, and the clock is set back by an hour.
func TestE14AClockThatIsSetBackMakesNobodyWaitLonger(t *testing.T) {
	for name, tc := range map[string]struct {
		most    time.Duration
		prepare func(s *scene, config *src, web *tgt)
	}{
		"for quiet": {30 * time.Second, func(s *scene, config *src, _ *tgt) {
			s.rollout.SettleSeconds = new(int32(30))
			config.set("B")
			s.pass()
		}},
		"for a cooldown": {31 * time.Second, func(s *scene, config *src, web *tgt) {
			s.rollout.CooldownSeconds = new(int32(30))
			config.set("B")
			s.pass()
			web.done()
			config.set("C")
			s.after(time.Second)
		}},
		"as it is slowed down": {61 * time.Second, func(s *scene, config *src, web *tgt) {
			flap(s, config, 7, 31*time.Second)
			flap(s, config, 1, time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			tc.prepare(s, config, web)
			g.Expect(s.row(web).Wait).NotTo(BeNil())
			restarts := s.row(web).Restarts
			s.setBack()
			set := s.after(0)
			until := s.now.Add(tc.most)
			for len(set.restarts) == 0 && !set.lookAgain.After(until) {
				s.reload()
				set = s.at(set.lookAgain)
			}
			g.Expect(s.now).To(BeTemporally("<=", until))
			g.Expect(s.row(web).Restarts).To(Equal(restarts+1), "once, and at most as long after as it would have been")
		})
	}
}

func TestE17AClockThatIsSetBackEndsNoDeadlineLater(t *testing.T) {
	g := NewWithT(t)
	config, db := configMap("config", "A"), workloadOf(workload.StatefulSet, "db")
	db.rollout.NoDeadline = true
	s := settled(config, db)
	s.rollout.ProgressDeadlineSeconds = 60
	config.set("B")
	s.pass()
	s.setBack()
	set := s.after(0)
	g.Expect(set.lookAgain).To(BeTemporally("<=", s.now.Add(61*time.Second)))
	g.Expect(s.at(set.lookAgain).reasons()).To(ContainElement(v1alpha1.EventRolloutFailed))
}

// E28: times that aren't ahead stay as they are, and those that are become the present time once.
func TestE28AClockThatIsSetBackIsRecordedOnce(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.pass()
	web.done()
	s.pass()
	before := s.status.DeepCopy()
	s.pass()
	g.Expect(&s.status).To(Equal(before))
	s.setBack()
	s.pass()
	set := s.status.DeepCopy()
	g.Expect(set.Targets[0].LastRestartTime.Time).To(Equal(s.now))
	s.pass()
	g.Expect(&s.status).To(Equal(set))
}

// An hour ahead, someone asked for a restart, and asks again once the clock is right.
func TestE14ARequestIsNotIgnoredAsTheClockWasAhead(t *testing.T) {
	g := NewWithT(t)
	_, d, s := fleet(1)
	s.now = s.now.Add(time.Hour)
	s.requested = s.now.Format(time.RFC3339)
	g.Expect(s.pass().restarts).To(HaveLen(1))
	d[0].done()
	s.setBack()
	for range 2 {
		g.Expect(s.pass().restarts).To(BeEmpty(), "the one from before the clock was set is the same as it was")
		g.Expect(conditions(s)).NotTo(HaveKey(v1alpha1.ConditionStalled))
	}
	s.requested = s.now.Format(time.RFC3339)
	g.Expect(s.pass().restarts).To(HaveLen(1))
	g.Expect(s.pass().restarts).To(BeEmpty())
}
