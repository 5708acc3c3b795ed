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
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// A source that is written ten times a second would make ten Events and log lines a second.
func TestE15FurtherChangesOfATargetThatIsSlowedDownAreNoNews(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	told := map[string]int{}
	for i := range 100 {
		config.set(fmt.Sprint(i))
		s.now = s.now.Add(100*time.Millisecond - time.Minute) // that pass adds
		for _, reason := range s.pass().reasons() {
			told[reason]++
		}
	}
	g.Expect(told).To(Equal(map[string]int{
		v1alpha1.EventRestartTriggered: 6, v1alpha1.EventSlowedDown: 1, v1alpha1.EventRestartDelayed: 1,
	}))
	g.Expect(s.row(web)).To(HaveField("Reason", v1alpha1.ReasonCoolingDown))
}

// flood makes a pass for each of n changes, a second apart, and counts what they cost.
func flood(s *scene, n int, change func(i int)) (reads, writes int) {
	for i := range n {
		change(i)
		s.now = s.now.Add(time.Second - betweenPasses)
		decision := s.decide()
		before := s.status.DeepCopy()
		s.record(s.carryOut(decision, s.patch))
		reads += len(decision.Waiting())
		if !equality.Semantic.DeepEqual(before, &s.status) {
			writes++
		}
		s.reload()
	}
	return reads, writes
}

// E28: what is the same for the user isn't written, and what is read proves nothing after the next change.
func TestE15ChangesOfASourceThatFlapsCostNoCallsEach(t *testing.T) {
	const targets = 10
	changes := few(600)
	for name, tc := range map[string]struct {
		rollout v1alpha1.RolloutSpec
		content func(i int) data
	}{
		"waiting for a cooldown, always another content": {
			v1alpha1.RolloutSpec{CooldownSeconds: new(int32(3600))}, func(i int) data { return data{"KEY": fmt.Sprint(i)} },
		},
		"waiting for a cooldown, to and fro": {
			v1alpha1.RolloutSpec{CooldownSeconds: new(int32(3600))}, func(i int) data { return data{"KEY": fmt.Sprint(i % 2)} },
		},
		"waiting for a window, now one key and now another": {
			v1alpha1.RolloutSpec{Windows: []v1alpha1.Window{nightly}},
			func(i int) data { return data{"KEY": "A", fmt.Sprint(i % 3): fmt.Sprint(i)} },
		},
		"waiting for approval": {
			v1alpha1.RolloutSpec{Approval: v1alpha1.ApprovalManual},
			func(i int) data { return data{"KEY": fmt.Sprint(i)} },
		},
		"waiting for a turn": {
			v1alpha1.RolloutSpec{MaxConcurrent: 1}, func(i int) data { return data{"KEY": fmt.Sprint(i)} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(targets)
			s.now = s.now.Add(2 * time.Hour)
			config.set("restarted")
			s.pass()
			for _, one := range d {
				one.done()
			}
			s.pass()
			s.rollout = tc.rollout
			restarts := s.row(d[0]).Restarts
			reads, writes := flood(s, changes, func(i int) { config.write(tc.content(i)) })
			g.Expect(reads).To(BeNumerically("<=", targets*7))
			waits := s.row(d[targets-1])
			g.Expect(writes).To(BeNumerically("<=", 7+1+changes/60+2+2*int(s.row(d[0]).Restarts)),
				"of those that make it flap, one a minute, and those of restarts")
			g.Expect(waits.Restarts).To(Equal(restarts))
			g.Expect(waits.Slowdown).NotTo(BeNil(), "it goes on being seen to flap")
			g.Expect(waits.Slowdown.Message).To(Equal("more than 6 changes within 10 minutes (ConfigMap config)"))
			g.Expect(waits.Message).To(HavePrefix("ConfigMap config changed"))
		})
	}
}

// It is known within a minute what there is, also if that is the last change.
func TestE15TheLastChangeOfASourceThatFlapsIsRecordedWithinAMinute(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout.CooldownSeconds = new(int32(3600))
	config.set("B")
	s.pass()
	web.done()
	flood(s, 30, func(i int) { config.set(fmt.Sprint(i)) })
	last := string(config.content().Hash(nil))
	g.Expect(s.sourceRow(config).Hash).NotTo(Equal(last))
	again := s.after(time.Second)
	g.Expect(again.lookAgain).To(BeTemporally("<=", s.now.Add(time.Minute)))
	g.Expect(s.at(again.lookAgain).events).To(BeEmpty())
	g.Expect(s.sourceRow(config).Hash).To(Equal(last))
	g.Expect(s.row(web).RecentChanges).To(HaveLen(7))
}

// In the end it is the last content that runs, whatever was recorded of the changes before.
func TestE15TheLastContentOfASourceThatFlapsIsWhatRuns(t *testing.T) {
	for _, last := range []string{"last", "B"} {
		t.Run(last, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			s.rollout.CooldownSeconds = new(int32(120))
			config.set("B")
			s.pass()
			web.done()
			flood(s, 30, func(i int) {
				config.set(fmt.Sprint(i))
				if i == 20 {
					web.rollout.NoPods = false
					web.generation++ // pods are started, and nobody reads that
				}
			})
			config.set(last)
			at := s.after(time.Second).lookAgain
			for s.row(web).Wait != nil {
				g.Expect(at).NotTo(BeZero())
				at = s.at(at).lookAgain
				s.reload()
			}
			g.Expect(s.row(web).Restarts).To(Equal(int64(2)), "also for what it was started for: pods may have been started since")
			g.Expect(s.applied(web, config)).To(Equal(config.content().Hash(nil)))
		})
	}
}

// Whatever else happens is recorded at once.
func TestE15WhatIsNewOfATargetThatIsSlowedDownIsRecordedAtOnce(t *testing.T) {
	for name, change := range map[string]func(s *scene, config *src, web *tgt){
		"an approval":          func(s *scene, _ *src, _ *tgt) { s.approved = s.status.ApprovalHash },
		"a request":            func(s *scene, _ *src, _ *tgt) { s.requested, s.mode = firstRequest, v1alpha1.ModeSuspended },
		"an edit":              func(s *scene, _ *src, _ *tgt) { s.edit(func() {}) },
		"a window":             func(s *scene, _ *src, _ *tgt) { s.rollout.Windows = []v1alpha1.Window{{Schedule: "no"}} },
		"a target":             func(s *scene, _ *src, _ *tgt) { s.targets = append(s.targets, deployment("api")) },
		"a source":             func(s *scene, _ *src, _ *tgt) { s.sources = append(s.sources, configMap("other", "A")) },
		"a deletion":           func(_ *scene, config *src, _ *tgt) { config.set("-") },
		"the target's absence": func(_ *scene, _ *src, web *tgt) { web.missing = true },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			s.rollout.Approval = v1alpha1.ApprovalManual
			flood(s, 30, func(i int) { config.set(fmt.Sprint(i % 10)) })
			s.after(time.Minute)
			_, writes := flood(s, 1, func(int) {})
			g.Expect(writes).To(BeZero())
			_, writes = flood(s, 1, func(int) { change(s, config, web) })
			g.Expect(writes).To(Equal(1))
		})
	}
}
