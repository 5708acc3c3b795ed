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
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/workload"
)

// flap makes a pass for each of n changes, so long after one another.
func flap(s *scene, config *src, n int, apart time.Duration) (last result) {
	for range n {
		config.set(fmt.Sprint(len(config.former)))
		last = s.after(apart)
		s.targets[0].rollout.Progress = workload.Complete
	}
	return last
}

func TestE15MoreThanSixChangesWithinTenMinutesSlowATargetDown(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	config.writer = "flaky-operator"
	s := settled(config, web)

	g.Expect(flap(s, config, 6, time.Minute).restarts).To(HaveLen(1), "six are not too many")
	g.Expect(s.row(web).Slowdown).To(BeNil())
	first := s.row(web).RecentChanges[0].Time

	seventh := flap(s, config, 1, time.Minute)
	g.Expect(seventh.restarts).To(HaveLen(1), "the latest restart is more than 30 seconds ago")
	g.Expect(seventh.reasons()).To(ConsistOf(v1alpha1.EventRolloutCompleted, v1alpha1.EventRestartTriggered, v1alpha1.EventSlowedDown))
	g.Expect(seventh.note(v1alpha1.EventSlowedDown)).To(Equal("Deployment shop/web is restarted less often: " +
		"more than 6 changes within 10 minutes (ConfigMap config, last written by flaky-operator)"))
	g.Expect(s.row(web).Slowdown.CooldownSeconds).To(Equal(int32(60)), "it doubles with the restart")
	g.Expect(seventh.lookAgain).To(Equal(first.Add(10*time.Minute)), "when the changes may have become fewer")
	over := s.now.Add(time.Minute + time.Second)

	eighth := flap(s, config, 1, 20*time.Second)
	g.Expect(eighth.restarts).To(BeEmpty())
	g.Expect(eighth.lookAgain).To(Equal(over))
	g.Expect(s.said(web)).To(Equal("Pending CoolingDown"))
	g.Expect(s.row(web).Message).To(Equal("ConfigMap config changed (KEY). It is restarted at most every 60 seconds, next at " +
		over.Format(time.RFC3339) +
		": more than 6 changes within 10 minutes (ConfigMap config, last written by flaky-operator)"))
	g.Expect(s.message(v1alpha1.ConditionReconciling)).To(ContainSubstring("last written by flaky-operator"))

	s.reload()
	g.Expect(s.at(over).restarts).To(HaveLen(1))
	g.Expect(s.row(web).Slowdown.CooldownSeconds).To(Equal(int32(120)))
	g.Expect(s.row(web).RecentChanges).To(HaveLen(7), "no more are kept than tell")
}

func TestE15TheCooldownDoublesUpToTenMinutes(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	flap(s, config, 7, time.Second)
	var cooldowns []int32
	restarts := s.row(web).Restarts
	for s.now.Before(time.Date(2026, 1, 2, 5, 0, 0, 0, time.UTC)) {
		flap(s, config, 1, 10*time.Second)
		if now := s.row(web).Restarts; now > restarts {
			restarts = now
			cooldowns = append(cooldowns, s.row(web).Slowdown.CooldownSeconds)
		}
	}
	g.Expect(cooldowns[:6]).To(Equal([]int32{60, 120, 240, 480, 600, 600}))
	g.Expect(s.row(web).Restarts).To(BeNumerically("<", 6+5+7200/600))
	g.Expect(restarts).To(Equal(s.row(web).Restarts))
}

func TestE15TheSlowdownEndsWhenTheChangesBecomeFewer(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	slowed := flap(s, config, 7, 61*time.Second)
	g.Expect(s.row(web).Slowdown).NotTo(BeNil())

	s.reload()
	before := s.at(slowed.lookAgain.Add(-time.Second))
	g.Expect(s.row(web).Slowdown).NotTo(BeNil())
	g.Expect(before.lookAgain).To(BeTemporally("==", slowed.lookAgain))
	s.reload()
	g.Expect(s.at(slowed.lookAgain).events).To(BeEmpty())
	g.Expect(s.row(web).Slowdown).To(BeNil())
	g.Expect(flap(s, config, 1, time.Second).restarts).To(HaveLen(1))
}

// Six changes of 10 minutes ago, and one now.
func TestE15SlowChangesAreNoFlapping(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	flap(s, config, 30, 100*time.Second)
	g.Expect(s.row(web).Slowdown).To(BeNil())
	g.Expect(s.row(web).Restarts).To(Equal(int64(30)))
}

func TestE15ChangesCountThatWereGatheredOrTakenBack(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settling(3600, config, web)
	flapped := flapBetween(s, config, 7)
	g.Expect(flapped.reasons()).To(ConsistOf(v1alpha1.EventSlowedDown))
	g.Expect(s.row(web).Restarts).To(BeZero())
	g.Expect(s.row(web).Slowdown.CooldownSeconds).To(Equal(int32(30)))
}

// flapBetween makes a pass for each of n changes to and fro.
func flapBetween(s *scene, config *src, n int) (last result) {
	for i := range n {
		config.set([]string{"B", "A"}[i%2])
		last = s.after(time.Second)
	}
	return last
}

func TestE15TheLongerCooldownHolds(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.rollout.CooldownSeconds = new(int32(90))
	flap(s, config, 8, 30*time.Second)
	g.Expect(s.row(web).Slowdown).NotTo(BeNil())
	g.Expect(s.row(web).Message).To(ContainSubstring("at most every 90 seconds"))
	g.Expect(s.row(web).Message).NotTo(ContainSubstring("more than 6 changes"), "it isn't slowed down yet by that")
}

func TestE15OneTargetIsSlowedDownAndNoOther(t *testing.T) {
	g := NewWithT(t)
	config, other, web, api := configMap("config", "A"), configMap("other", "A"), deployment("web"), deployment("api")
	web.uses, api.uses = []*src{config}, []*src{other}
	s := settled(config, other, web, api)
	flap(s, config, 8, time.Second)
	other.set("B")
	g.Expect(s.after(time.Second).restarted()).To(ConsistOf("api"))
	g.Expect(s.row(api).Slowdown).To(BeNil())
}

func TestE15TheMessageNamesThreeSourcesAndCountsTheRest(t *testing.T) {
	g := NewWithT(t)
	sources := []any{deployment("web")}
	for i := range 5 {
		sources = append(sources, configMap(fmt.Sprintf("config-%d", i), "A"))
	}
	s := settled(sources...)
	s.sources[1].writer = "one"
	for i := range 7 {
		for _, one := range s.sources {
			one.set(fmt.Sprint(i))
		}
		s.after(time.Second)
	}
	g.Expect(s.row(s.targets[0]).Slowdown.Message).To(Equal("more than 6 changes within 10 minutes (" +
		"ConfigMap config-0; ConfigMap config-1, last written by one; ConfigMap config-2; and 2 more sources)"))
}

// With each further change, the oldest that counts is a later one.
func TestE28ASlowedTargetAsksForNoPassThatWouldDoNothing(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.mode = v1alpha1.ModeSuspended
	flap(s, config, 7, time.Minute)
	further := flap(s, config, 1, time.Minute)
	g.Expect(further.lookAgain).To(Equal(s.row(web).RecentChanges[0].Add(10 * time.Minute)))
	g.Expect(s.at(further.lookAgain).lookAgain).To(BeZero())
	g.Expect(s.row(web).Slowdown).To(BeNil())
}

// What a human asks for again and again is not a source that flaps.
func TestE15RequestsAreNoChanges(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	for i := range 9 {
		s.requested = fmt.Sprintf("2026-01-02T03:00:0%dZ", i)
		g.Expect(s.after(time.Second).reasons()).To(ConsistOf(v1alpha1.EventRestartTriggered))
	}
	g.Expect(s.row(web).RecentChanges).To(BeEmpty())
	g.Expect(s.row(web).Slowdown).To(BeNil())
}

// A restart that is refused is one change, however often it is tried.
func TestE15AttemptsAreNoChanges(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	for range 10 {
		s.refused(errRefused)
	}
	g.Expect(s.row(web).RecentChanges).To(HaveLen(1))
	g.Expect(strings.Join(s.pass().reasons(), " ")).To(Equal(v1alpha1.EventRestartTriggered))
}
