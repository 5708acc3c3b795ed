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
	"cmp"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/workload"
)

// putBack puts the pod template back to what it was before the restart. The old pods are there, so that the
// rollout is complete at once.
func (t *tgt) putBack(mark string) {
	delete(t.marks, watchName)
	if mark != "" {
		t.marks[watchName] = mark
	}
	t.generation++
	t.done()
}

// reverted is a target whose restart was reverted by its owner.
func reverted() (config *src, web *tgt, s *scene) {
	config, web = configMap("config", "A"), deployment("web")
	web.owner = "Database orders"
	s = settled(config, web)
	config.set("B")
	s.pass()
	web.putBack("")
	return config, web, s
}

func TestE24ATemplateThatIsPutBackBlocks(t *testing.T) {
	g := NewWithT(t)
	config, web, s := reverted()
	s.reload()
	blocked := s.pass()
	g.Expect(blocked.restarts).To(BeEmpty())
	g.Expect(blocked.reasons()).To(ConsistOf(v1alpha1.EventRolloutBlocked, v1alpha1.EventStalled))
	g.Expect(s.said(web)).To(Equal("Blocked TemplateReverted"))
	g.Expect(s.row(web).Message).To(Equal("ConfigMap config changed (KEY). Database orders put the pod template back before the " +
		"rollout was complete, so that old pods stay. It is not restarted again for this change: let Database orders restart it, " +
		"or leave the annotation restart.configwatch.ktechhub.io/... alone"))
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionStalled, "True Blocked"))
	for range 3 {
		s.reload()
		g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
	}
	g.Expect(s.pass().events).To(BeEmpty())

	config.set("C")
	g.Expect(s.pass().restarts).To(HaveLen(1), "it is tried again when the source changes")
	g.Expect(web.mark()).To(HavePrefix("2-"))
	web.putBack("")
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("Blocked TemplateReverted"))
}

func TestE24WithoutAnOwnerItIsAnotherClient(t *testing.T) {
	g := NewWithT(t)
	_, web, s := reverted()
	web.owner = ""
	s.pass()
	g.Expect(s.row(web).Message).To(ContainSubstring(". Another client put the pod template back"))
}

func TestE24AnEditOfTheSpecTriesAgainOnce(t *testing.T) {
	g := NewWithT(t)
	_, web, s := reverted()
	s.pass()
	s.edit(func() {})
	again := s.pass()
	g.Expect(again.cause()).To(Equal("the spec was edited, and the pod template had been put back"))
	g.Expect(s.said(web)).To(Equal("RollingOut RolloutInProgress"))
	web.putBack("")
	for range 3 {
		g.Expect(s.pass().restarts).To(BeEmpty())
		g.Expect(s.said(web)).To(Equal("Blocked TemplateReverted"))
	}
	s.edit(func() {})
	g.Expect(s.pass().restarts).To(HaveLen(1), "and once for each further edit")
	web.done()
	s.pass()
	g.Expect(s.said(web)).To(Equal("UpToDate RolloutComplete"))
}

// What the edit asks for waits like any restart, and is not forgotten meanwhile.
func TestE24TheSecondTryWaitsLikeTheFirst(t *testing.T) {
	g := NewWithT(t)
	_, web, s := reverted()
	s.pass()
	s.edit(func() { s.rollout.SettleSeconds = new(int32(60)) })
	s.pass()
	g.Expect(s.said(web)).To(Equal("Pending Settling"))
	s.edit(func() {})
	s.reload()
	g.Expect(s.after(time.Minute).restarts).To(HaveLen(1))
	g.Expect(s.after(time.Minute).restarts).To(BeEmpty())
}

// A restart is refused, and the next pass is one of the same spec.
func TestE24ASecondTryThatIsRefusedIsNotForgotten(t *testing.T) {
	g := NewWithT(t)
	_, web, s := reverted()
	s.pass()
	s.edit(func() {})
	s.refused(errRefused)
	g.Expect(s.said(web)).To(Equal("Pending RestartFailed"))
	made := s.pass()
	g.Expect(made.cause()).To(Equal("the spec was edited, and the pod template had been put back"))
	g.Expect(s.pass().restarts).To(BeEmpty())
}

// Each is done to a target whose restart isn't complete.
func TestE24WhatIsNoReversion(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*tgt)
		said   string
	}{
		"another image, without the mark": {func(web *tgt) {
			web.putBack("")
			web.roll("new")
		}, "RollingOut RolloutInProgress"},
		"another image, with the mark":                   {func(web *tgt) { web.roll("new") }, "RollingOut RolloutInProgress"},
		"the old template, once the rollout is complete": {func(web *tgt) {}, "UpToDate RolloutComplete"},
		"a cache that doesn't show the restart yet": {func(web *tgt) {
			delete(web.marks, watchName)
			web.generation--
			web.done()
		}, "RollingOut RolloutInProgress"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			config.set("B")
			s.pass()
			if tc.said == "UpToDate RolloutComplete" {
				web.done()
				s.pass()
				web.putBack("")
			}
			tc.change(web)
			g.Expect(s.pass().restarts).To(BeEmpty())
			g.Expect(s.said(web)).To(Equal(tc.said))
		})
	}
}

// The mark of the restart before is there again: it is an older template, as by kubectl rollout undo.
func TestE24AnUndoneRestartIsPutBackToTheMarkBefore(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.pass()
	web.done()
	s.pass()
	before := web.mark()
	config.set("C")
	s.pass()
	web.putBack(before)
	s.pass()
	g.Expect(s.said(web)).To(Equal("Blocked TemplateReverted"))
	web.roll("new")
	s.pass()
	g.Expect(s.said(web)).To(Equal("RollingOut RolloutInProgress"), "somebody restarts it")
	web.done()
	s.pass()
	g.Expect(s.said(web)).To(Equal("UpToDate RolloutComplete"))
	g.Expect(s.pass().restarts).To(BeEmpty())
}

// The process ended after the patch: the template of before is in the record of the wait.
func TestE24AReversionIsFoundAlsoWhereTheRecordOfTheRestartWasLost(t *testing.T) {
	g := NewWithT(t)
	_, web, s := waiting()
	s.now = s.now.Add(time.Minute)
	g.Expect(s.lost().restarts).To(HaveLen(1))
	s.reload()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("RollingOut RolloutInProgress"))
	web.putBack("")
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("Blocked TemplateReverted"))
}

// If it is put back before anybody has seen the restart whose record was lost, it is as if there had been none.
func TestE24AReversionOfALostRestartIsNotKnown(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.lost()
	web.putBack("")
	g.Expect(s.pass().restarts).To(HaveLen(1))
}

func TestE24ABlockedTargetTakesNoPlaceAndHaltsNobody(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(2)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	d[0].putBack("")
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}))
	g.Expect(s.said(d[0])).To(Equal("Blocked TemplateReverted"))
}

// Each kind of workload has its template.
func TestE24AStatefulSetIsPutBackToo(t *testing.T) {
	g := NewWithT(t)
	config, db := configMap("config", "A"), workloadOf(workload.StatefulSet, "db")
	s := settled(config, db)
	config.set("B")
	s.pass()
	db.putBack("")
	s.pass()
	g.Expect(s.said(db)).To(Equal("Blocked TemplateReverted"))
}

// An owner knows nothing of restarts, so that it puts back what was there before the first of them, however many
// were made before a rollout was complete.
func TestE24AnOwnerPutsBackTheTemplateFromBeforeTheFirstOfSeveralRestarts(t *testing.T) {
	for name, tc := range map[string]struct {
		restarts int
		mark     func(first string) string
	}{
		"two restarts":                          {2, func(string) string { return "" }},
		"three restarts":                        {3, func(string) string { return "" }},
		"two, and the second of them is undone": {2, func(first string) string { return first }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			web.owner = "Database orders"
			s := settled(config, web)
			first := ""
			for i := range tc.restarts {
				config.set(fmt.Sprint(i))
				g.Expect(s.pass().restarts).To(HaveLen(1))
				first = cmp.Or(first, web.mark())
				s.reload()
			}
			web.putBack(tc.mark(first))
			g.Expect(s.pass().restarts).To(BeEmpty())
			g.Expect(s.said(web)).To(Equal("Blocked TemplateReverted"))

			config.set("X")
			g.Expect(s.pass().restarts).To(HaveLen(1), "it is tried again when the source changes")
			web.putBack("")
			g.Expect(s.pass().restarts).To(BeEmpty())
			g.Expect(s.said(web)).To(Equal("Blocked TemplateReverted"))
		})
	}
}

// Pods of before are gone once a rollout was complete.
func TestE24WhatWasBeforeACompleteRolloutIsNotPutBack(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.pass()
	web.done()
	s.pass()
	config.set("C")
	s.pass()
	web.putBack("")
	s.pass()
	g.Expect(s.said(web)).To(Equal("UpToDate RolloutComplete"))
}
