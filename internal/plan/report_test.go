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
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/workload"
)

// conditions are the recorded ones, as "status reason" by type.
func conditions(s *scene) map[string]string {
	said := map[string]string{}
	for _, c := range s.status.Conditions {
		said[c.Type] = string(c.Status) + " " + c.Reason
	}
	return said
}

func conditionOf(conditionType, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason}
}

func (s *scene) message(conditionType string) string {
	c := meta.FindStatusCondition(s.status.Conditions, conditionType)
	if c == nil {
		return ""
	}
	return c.Message
}

// longNamed is a ConfigMap with a name and keys at their limits.
func longNamed(i int) *src {
	s := configMap(fmt.Sprintf("%d%s", i, strings.Repeat("a", 252)), "A")
	s.data = data{}
	for k := range 4 {
		s.data[fmt.Sprintf("%d%s", k, strings.Repeat("K", 252))] = "A"
	}
	return s
}

func TestE22ACronJobNeedsNoRestart(t *testing.T) {
	g := NewWithT(t)
	config, job := configMap("config", "A").when("AMD"), workloadOf(workload.CronJob, "report")
	s := settled(config, job)
	g.Expect(s.row(job).State).To(Equal(v1alpha1.TargetUpToDate))
	g.Expect(s.row(job).Reason).To(Equal(v1alpha1.ReasonNoRestartNeeded))
	g.Expect(s.row(job).Message).To(Equal("a CronJob needs no restart: its next Job reads the present configuration"))

	for _, tc := range []struct{ content, note string }{
		{"B", "CronJob shop/report was not restarted: ConfigMap config changed (KEY), and a CronJob needs no restart: " +
			"its next Job reads the present configuration"},
		{"-", "CronJob shop/report was not restarted: ConfigMap config was deleted, and a CronJob needs no restart: " +
			"its next Job reads the present configuration"},
		{"B", "CronJob shop/report was not restarted: ConfigMap config appeared, and a CronJob needs no restart: " +
			"its next Job reads the present configuration"},
	} {
		config.set(tc.content)
		r := s.pass()
		g.Expect(r.restarts).To(BeEmpty())
		g.Expect(r.note(v1alpha1.EventNotRestarted)).To(Equal(tc.note))
		g.Expect(s.row(job).State).To(Equal(v1alpha1.TargetUpToDate))
		g.Expect(s.pass().events).To(BeEmpty())
	}
	g.Expect(conditions(s)).To(Equal(map[string]string{v1alpha1.ConditionReady: "True " + v1alpha1.ReasonUpToDate}))
}

func TestE22ACronJobsMarkIsNobodysBusiness(t *testing.T) {
	g := NewWithT(t)
	config, job := configMap("config", "A"), workloadOf(workload.CronJob, "report")
	s := settled(config, job)
	job.marks[watchName] = "3-0123456789abcdef"
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.row(job).Restarts).To(BeZero())
}

// Each rollout is observed right before the restart, in the pass after it, and once it is over.
func TestE23ARestartIsFollowed(t *testing.T) {
	const changed = "ConfigMap config changed (KEY)"
	complete := workload.Rollout{Progress: workload.Complete}
	for name, tc := range map[string]struct {
		before, after workload.Rollout
		row, rowAfter string
		message       string
		event         string
	}{
		"that completes": {
			workload.Rollout{Progress: workload.Complete}, complete,
			"RollingOut RolloutInProgress", "UpToDate RolloutComplete", changed, v1alpha1.EventRolloutCompleted,
		},
		"that fails": {
			workload.Rollout{Progress: workload.Complete}, workload.Rollout{Progress: workload.Failed, Detail: "Progress deadline exceeded"},
			"RollingOut RolloutInProgress", "Failed RolloutFailed", changed + ". Progress deadline exceeded", v1alpha1.EventRolloutFailed,
		},
		"while it is paused": {
			workload.Rollout{Progress: workload.Complete, Paused: true}, workload.Rollout{Progress: workload.InProgress, Paused: true},
			"RollingOut RolloutPaused", "RollingOut RolloutPaused",
			changed + ". spec.paused is true: its pods stay old until that is false", "",
		},
		"while it is scaled to zero": {
			workload.Rollout{Progress: workload.Complete, NoPods: true}, workload.Rollout{Progress: workload.Complete, NoPods: true},
			"UpToDate ScaledToZero", "UpToDate ScaledToZero", changed, "",
		},
		"that is scaled to zero meanwhile": {
			workload.Rollout{Progress: workload.Complete}, workload.Rollout{Progress: workload.InProgress, NoPods: true},
			"RollingOut RolloutInProgress", "UpToDate ScaledToZero", changed, v1alpha1.EventRolloutCompleted,
		},
		"with OnDelete": {
			workload.Rollout{Progress: workload.Complete},
			workload.Rollout{Progress: workload.Complete, Hold: workload.HeldByOnDelete, Detail: "delete pods web-0 to web-2"},
			"RollingOut RolloutInProgress", "Blocked UpdateStrategyOnDelete",
			changed + ". delete pods web-0 to web-2", v1alpha1.EventRolloutBlocked,
		},
		"with a partition": {
			workload.Rollout{Progress: workload.Complete},
			workload.Rollout{Progress: workload.Complete, Hold: workload.HeldByPartition, Detail: "pods web-0 to web-2 stay old"},
			"RollingOut RolloutInProgress", "Blocked PartitionedRollout",
			changed + ". pods web-0 to web-2 stay old", v1alpha1.EventRolloutBlocked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), workloadOf(workload.StatefulSet, "web")
			s := settled(config, web)
			row := func() string { return string(s.row(web).State) + " " + s.row(web).Reason }

			web.rollout = tc.before
			config.set("B")
			g.Expect(s.pass().restarts).To(HaveLen(1), "it is patched in any case")
			g.Expect(row()).To(Equal(tc.row))

			web.rollout = tc.after
			followed := s.pass()
			g.Expect(followed.restarts).To(BeEmpty())
			g.Expect(row()).To(Equal(tc.rowAfter))
			g.Expect(s.row(web).Message).To(Equal(tc.message))
			if tc.event == "" {
				g.Expect(followed.events).To(BeEmpty())
			} else {
				g.Expect(followed.reasons()).To(ContainElement(tc.event))
			}
			g.Expect(s.pass().events).To(BeEmpty())

			web.rollout = complete
			s.pass()
			g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetUpToDate))
			g.Expect(s.row(web).Message).To(Equal(changed), "the cause is kept through it all")
			g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionReady, "True "+v1alpha1.ReasonUpToDate))
		})
	}
}

func TestE23WhatHoldsPodsBackIsNobodysBusinessWithoutARestart(t *testing.T) {
	for name, rollout := range map[string]workload.Rollout{
		"OnDelete":      {Progress: workload.InProgress, Hold: workload.HeldByOnDelete},
		"a partition":   {Progress: workload.Complete, Hold: workload.HeldByPartition},
		"zero replicas": {Progress: workload.InProgress, NoPods: true},
		"all well":      {Progress: workload.Complete},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			web := workloadOf(workload.StatefulSet, "web")
			web.rollout = rollout
			s := newScene(configMap("config", "A"), web)
			g.Expect(s.pass().events).To(BeEmpty())
			g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetUpToDate))
			g.Expect(s.row(web).Reason).To(Equal(v1alpha1.ReasonBaseline))
			g.Expect(s.row(web).Message).To(Equal("seen for the first time, nothing to restart for: it depends on 1 source"))
		})
	}
}

// One that this operator didn't start is followed until it is complete once, so that Ready is no lie.
func TestE23ARolloutUnderWayAtFirstSight(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	web.rollout.Progress = workload.InProgress
	s := settled(config, web)
	g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetRollingOut))
	web.rollout.Progress = workload.Failed
	g.Expect(s.pass().reasons()).To(ConsistOf(v1alpha1.EventStalled), "it is not one of this operator's rollouts")
	g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetFailed))
	web.rollout.Progress = workload.Complete
	g.Expect(s.pass().events).To(BeEmpty())
	g.Expect(s.row(web).Reason).To(Equal(v1alpha1.ReasonBaseline))

	web.rollout.Progress = workload.Failed
	s.pass()
	g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetUpToDate), "nor is what happens from then on")
}

func TestE23AFailedRolloutIsRestartedByTheNextChange(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.pass()
	web.rollout = workload.Rollout{Progress: workload.Failed, Detail: "Progress deadline exceeded"}
	failed := s.pass()
	g.Expect(failed.note(v1alpha1.EventRolloutFailed)).To(Equal(
		"Deployment shop/web failed to roll out: ConfigMap config changed (KEY). Progress deadline exceeded"))
	g.Expect(conditions(s)).To(Equal(map[string]string{
		v1alpha1.ConditionReady: "False " + v1alpha1.ReasonRolloutFailed, v1alpha1.ConditionStalled: "True " + v1alpha1.ReasonRolloutFailed,
	}))
	config.set("C")
	g.Expect(s.pass().restarts).To(HaveLen(1))
	g.Expect(conditions(s)).To(Equal(map[string]string{
		v1alpha1.ConditionReady: "False " + v1alpha1.ReasonRollingOut, v1alpha1.ConditionReconciling: "True " + v1alpha1.ReasonRollingOut,
	}))
}

func TestE25WhatDoesNotExistIsMissingAndPickedUpLater(t *testing.T) {
	g := NewWithT(t)
	config, gone, web, api := configMap("config", "A"), configMap("gone", "-"), deployment("web"), deployment("api")
	gone.hint, api.hint, api.missing = "did you mean config?", "did you mean web?", true
	s := settled(config, gone, web, api)
	g.Expect(s.row(api).State).To(Equal(v1alpha1.TargetMissing))
	g.Expect(s.row(api).Reason).To(Equal(v1alpha1.ReasonNotFound))
	g.Expect(s.row(api).Message).To(Equal(
		"no such Deployment exists; it is picked up when it appears (did you mean web?)"))
	g.Expect(s.status.Sources[1].State).To(Equal(v1alpha1.SourceMissing))
	g.Expect(conditions(s)).To(Equal(map[string]string{v1alpha1.ConditionReady: "True " + v1alpha1.ReasonUpToDate}))
	g.Expect(s.message(v1alpha1.ConditionReady)).To(Equal("1 target up to date with 2 sources; " +
		"Deployment api does not exist (did you mean web?); ConfigMap gone does not exist (did you mean config?)"))

	api.missing = false
	gone.set("A")
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.row(api).State).To(Equal(v1alpha1.TargetUpToDate))
	config.set("B")
	g.Expect(s.pass().restarted()).To(ConsistOf("web", "api"))
}

func TestE25NothingAtAll(t *testing.T) {
	missing := func(name, hint string) *tgt {
		target := deployment(name)
		target.missing, target.hint = true, hint
		return target
	}
	ignored := func(name string) *tgt {
		target := deployment(name)
		target.ignored = true
		return target
	}
	gone := func(name, hint string) *src {
		one := configMap(name, "-")
		one.hint = hint
		return one
	}
	left := configMap("left", "A")
	left.ignored = true
	for name, tc := range map[string]struct {
		scene           *scene
		reason, message string
	}{
		"no target": {newScene(configMap("config", "A")), v1alpha1.ReasonNoTargets,
			"no workload in this namespace matches spec.targets, or references a source"},
		"only a missing target": {newScene(configMap("config", "A"), missing("wbe", "did you mean web?")), v1alpha1.ReasonNoTargets,
			"Deployment wbe does not exist (did you mean web?)"},
		"only missing targets": {newScene(configMap("config", "A"), missing("a", ""), missing("b", ""), missing("c", "")),
			v1alpha1.ReasonNoTargets, "Deployment a does not exist, nor 2 other targets"},
		"missing and ignored targets": {newScene(configMap("config", "A"), ignored("a"), missing("b", "")), v1alpha1.ReasonNoTargets,
			"Deployment b does not exist"},
		"only ignored targets": {newScene(configMap("config", "A"), ignored("a")), v1alpha1.ReasonNoTargets,
			"every target is annotated configwatch.ktechhub.io/ignore"},
		"no source": {newScene(deployment("web")), v1alpha1.ReasonNoSources,
			"there is nothing to watch: spec.sources matches no ConfigMap or Secret of this namespace, or, where it is omitted, " +
				"no target references one"},
		"only a missing source": {newScene(deployment("web"), gone("confgi", "did you mean config?")), v1alpha1.ReasonNoSources,
			"ConfigMap confgi does not exist (did you mean config?)"},
		"only missing sources": {newScene(deployment("web"), gone("a", ""), gone("b", "")), v1alpha1.ReasonNoSources,
			"ConfigMap a does not exist, nor 1 other source"},
		"a missing source that nothing uses": {newScene(gone("confgi", "did you mean config?")), v1alpha1.ReasonNoSources,
			"ConfigMap confgi does not exist (did you mean config?)"},
		"a missing target, and so no source": {newScene(missing("wbe", "did you mean web?")), v1alpha1.ReasonNoTargets,
			"Deployment wbe does not exist (did you mean web?)"},
		"missing and ignored sources": {newScene(deployment("web"), left, gone("b", "")), v1alpha1.ReasonNoSources,
			"ConfigMap b does not exist"},
		"only ignored sources": {newScene(deployment("web"), left), v1alpha1.ReasonNoSources,
			"every source is annotated configwatch.ktechhub.io/ignore"},
		"neither": {newScene(), v1alpha1.ReasonNoTargets,
			"no workload in this namespace matches spec.targets, or references a source (and 1 more: see status.targets)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			first := tc.scene.pass()
			g.Expect(conditions(tc.scene)).To(Equal(map[string]string{
				v1alpha1.ConditionReady: "False " + tc.reason, v1alpha1.ConditionStalled: "True " + tc.reason,
			}))
			g.Expect(tc.scene.message(v1alpha1.ConditionReady)).To(Equal(tc.message))
			g.Expect(first.note(v1alpha1.EventStalled)).To(Equal(tc.reason + ": " + tc.message))
			g.Expect(tc.scene.pass().events).To(BeEmpty())
		})
	}
}

// What is made by the same command as the ConfigWatch comes within seconds, and an alarm until then would be noise.
func TestE25WhatMayBeAboutToAppearIsNotStalledYet(t *testing.T) {
	for name, objects := range map[string][]any{"no target": {configMap("config", "A")}, "no source": {deployment("web")}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newScene(objects...)
			s.created = s.now.Add(betweenPasses)
			first := s.pass()
			g.Expect(first.events).To(BeEmpty())
			reason := map[string]string{"no target": v1alpha1.ReasonNoTargets, "no source": v1alpha1.ReasonNoSources}[name]
			g.Expect(conditions(s)).To(Equal(map[string]string{
				v1alpha1.ConditionReady: "False " + reason, v1alpha1.ConditionReconciling: "True " + reason,
			}), "it is said at once all the same, for whoever misspelt a name")
			g.Expect(first.lookAgain).To(Equal(s.created.Add(5 * time.Second)))
			g.Expect(s.at(first.lookAgain.Add(-time.Microsecond)).events).To(BeEmpty())
			s.reload()
			stalled := s.at(first.lookAgain)
			g.Expect(stalled.reasons()).To(ConsistOf(v1alpha1.EventStalled))
			g.Expect(stalled.lookAgain).To(BeZero())
			g.Expect(conditions(s)).To(Equal(map[string]string{
				v1alpha1.ConditionReady: "False " + reason, v1alpha1.ConditionStalled: "True " + reason,
			}))
		})
	}
}

func TestE25WhatAppearsInTimeRaisesNoAlarm(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	web.missing = true
	s := newScene(config, web)
	s.created = s.now.Add(betweenPasses)
	s.pass()
	web.missing = false
	appeared := s.after(time.Second)
	g.Expect(appeared.events).To(BeEmpty())
	g.Expect(appeared.lookAgain).To(BeZero())
	g.Expect(conditions(s)).To(Equal(map[string]string{v1alpha1.ConditionReady: "True UpToDate"}))
}

// The API server's clock is not the operator's.
func TestE25AConfigWatchFromTheFutureIsNotNewForLong(t *testing.T) {
	g := NewWithT(t)
	s := newScene(configMap("config", "A"))
	s.created = s.now.Add(time.Hour)
	g.Expect(s.pass().reasons()).To(ConsistOf(v1alpha1.EventStalled))
}

func TestE25AnIgnoredTargetSaysSo(t *testing.T) {
	g := NewWithT(t)
	web := deployment("web")
	web.ignored = true
	s := settled(configMap("config", "A"), web, deployment("api"))
	g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetIgnored))
	g.Expect(s.row(web).Reason).To(Equal(v1alpha1.ReasonIgnoredByAnnotation))
	g.Expect(s.row(web).Message).To(Equal(`left out: the Deployment is annotated configwatch.ktechhub.io/ignore: "true"`))
}

func TestE25AnUnreadableTargetKeepsItsRow(t *testing.T) {
	g := NewWithT(t)
	config, web, api := configMap("config", "A"), deployment("web"), deployment("api")
	s := settled(config, web)
	config.set("B")
	s.refused(errRefused)
	before := s.row(web)

	web.unreadable, api.unreadable = true, true
	s.targets = append(s.targets, api)
	s.problems = []plan.Problem{{Reason: v1alpha1.ReasonPermissionDenied, Message: "the operator may not read Deployments"}}
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.row(web)).To(Equal(before))
	g.Expect(s.status.Targets).To(HaveLen(1), "of one that was never seen there is nothing to say")
	g.Expect(s.message(v1alpha1.ConditionReady)).To(Equal("the operator may not read Deployments"))

	web.unreadable, api.unreadable, s.problems = false, false, nil
	g.Expect(s.pass().restarted()).To(ConsistOf("web"))
}

func TestE27ACauseNamesSourcesAndKeys(t *testing.T) {
	keys := func(names ...string) data {
		content := data{}
		for _, name := range names {
			content[name] = "B"
		}
		return content
	}
	before := configMap("app-config", "-")
	for name, tc := range map[string]struct {
		before, after data
		keys          []string
		cause         string
	}{
		"one key":     {keys(), keys("LOG_LEVEL"), nil, "ConfigMap app-config changed (LOG_LEVEL)"},
		"three keys":  {keys(), keys("C", "A", "B"), nil, "ConfigMap app-config changed (A, B, C)"},
		"four keys":   {keys(), keys("A", "B", "C", "D"), nil, "ConfigMap app-config changed (A, B, C, +1 key)"},
		"five keys":   {keys(), keys("E", "LOG_LEVEL", "F", "A", "B"), nil, "ConfigMap app-config changed (A, B, E, +2 keys)"},
		"removed":     {keys("A", "B"), keys("A"), nil, "ConfigMap app-config changed (B)"},
		"some of the": {keys(), keys("A", "B"), []string{"B"}, "ConfigMap app-config changed (B)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			*before = *configMap("app-config", "-")
			before.data, before.keys = tc.before, tc.keys
			s := settled(before, deployment("web"))
			before.write(tc.after)
			g.Expect(s.pass().cause()).To(Equal(tc.cause))
		})
	}
}

func TestE27KeysOfBeforeTheOperatorsStartAreUnknown(t *testing.T) {
	g := NewWithT(t)
	config := configMap("app-config", "A")
	s := settled(config, deployment("web"))
	config.set("B")
	config.former = nil
	r := s.pass()
	g.Expect(r.cause()).To(Equal("ConfigMap app-config changed"))
	g.Expect(r.note(v1alpha1.EventRestartTriggered)).To(Equal("Restarted Deployment shop/web: ConfigMap app-config changed"))
}

func TestE27ACauseNamesThreeSourcesAndCountsTheRest(t *testing.T) {
	for n, want := range map[int]string{
		2: "ConfigMap c0 changed (KEY); ConfigMap c1 changed (KEY)",
		4: "ConfigMap c0 changed (KEY); ConfigMap c1 changed (KEY); ConfigMap c2 changed (KEY); and 1 more source",
		5: "ConfigMap c0 changed (KEY); ConfigMap c1 changed (KEY); ConfigMap c2 changed (KEY); and 2 more sources",
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			g := NewWithT(t)
			s := newScene(deployment("web"))
			for i := range n {
				s.sources = slices.Insert(s.sources, 0, configMap(fmt.Sprintf("c%d", i), "A"))
			}
			s.pass()
			for _, one := range s.sources {
				one.set("B")
			}
			g.Expect(s.pass().cause()).To(Equal(want))
		})
	}
}

func TestE27ARestartIsToldOnBothObjects(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	r := s.pass()
	g.Expect(r.events).To(HaveLen(2))
	for i, e := range r.events {
		g.Expect(e.Type).To(Equal("Normal"))
		g.Expect(e.Reason).To(Equal(v1alpha1.EventRestartTriggered))
		g.Expect(e.Action).To(Equal(v1alpha1.ActionRestart))
		g.Expect(e.Note).To(Equal("Restarted Deployment shop/web: ConfigMap config changed (KEY)"))
		g.Expect(e.Target.Name).To(Equal("web"))
		g.Expect(e.OnTarget).To(Equal(i == 1))
	}
}

func TestE27MessagesAreCutAtTheEndOfACharacter(t *testing.T) {
	for shift := range 4 {
		t.Run(fmt.Sprint(shift), func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			config.set("B")
			r := s.refused(errors.New(strings.Repeat("a", shift) + strings.Repeat("é€😀", 400)))
			for _, message := range []string{s.row(web).Message, r.note(v1alpha1.EventRestartFailed), s.message(v1alpha1.ConditionReady)} {
				g.Expect(len(message)).To(And(BeNumerically("<=", 1000), BeNumerically(">", 1000-8)))
				g.Expect(utf8.ValidString(message)).To(BeTrue())
				g.Expect(message).To(HaveSuffix("…"))
			}
		})
	}
}

func TestE27ABaselineSaysWhatIsNotWatched(t *testing.T) {
	g := NewWithT(t)
	web := deployment("web")
	web.classes = []string{"vault", "azure"}
	s := settled(configMap("config", "A"), secret("password", "A"), web)
	g.Expect(s.row(web).Message).To(Equal("seen for the first time, nothing to restart for: it depends on 2 sources; " +
		"SecretProviderClass vault, azure is not watched"))
}

func TestReadyReconcilingAndStalledAreThereWhileTrue(t *testing.T) {
	g := NewWithT(t)
	config, web, api, job := configMap("config", "A"), deployment("web"), deployment("api"), deployment("job")
	s := settled(config, web, api, job)
	g.Expect(conditions(s)).To(Equal(map[string]string{"Ready": "True UpToDate"}))
	g.Expect(s.message("Ready")).To(Equal("3 targets up to date with 1 source"))

	config.set("B")
	s.refused(errRefused, api)
	g.Expect(conditions(s)).To(Equal(map[string]string{"Ready": "False Pending", "Reconciling": "True Pending"}))
	g.Expect(s.message("Reconciling")).To(Equal("1 pending and 2 rolling out of 3 targets: " +
		"Deployment api: ConfigMap config changed (KEY). The restart is tried again: refused"))
	g.Expect(s.message("Ready")).To(Equal(s.message("Reconciling")))

	s.refused(forbidden(), api)
	g.Expect(conditions(s)).To(Equal(map[string]string{
		"Ready": "False PermissionDenied", "Reconciling": "True RollingOut", "Stalled": "True PermissionDenied",
	}))
	g.Expect(s.message("Reconciling")).To(HavePrefix("2 rolling out of 3 targets: Deployment web: "))

	s.pass()
	g.Expect(conditions(s)).To(Equal(map[string]string{"Ready": "False RollingOut", "Reconciling": "True RollingOut"}))
	g.Expect(s.message("Ready")).To(Equal("3 rolling out of 3 targets: Deployment web: ConfigMap config changed (KEY)"))

	web.rollout = workload.Rollout{Progress: workload.Failed, Detail: "Progress deadline exceeded"}
	api.rollout = workload.Rollout{Hold: workload.HeldByOnDelete, Detail: "delete pods"}
	job.rollout.Progress = workload.Complete
	s.pass()
	g.Expect(conditions(s)).To(Equal(map[string]string{"Ready": "False RolloutFailed", "Stalled": "True RolloutFailed"}))
	g.Expect(s.message("Stalled")).To(Equal(
		"Deployment web: ConfigMap config changed (KEY). Progress deadline exceeded (and 1 more: see status.targets)"))

	web.rollout = workload.Rollout{Progress: workload.Complete}
	s.pass()
	g.Expect(conditions(s)).To(Equal(map[string]string{"Ready": "False Blocked", "Stalled": "True Blocked"}))

	api.rollout = workload.Rollout{Progress: workload.Complete}
	s.pass()
	g.Expect(conditions(s)).To(Equal(map[string]string{"Ready": "True UpToDate"}))
}

func TestConditionsBearTheGenerationAndTheTimeOfTheirTransition(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	ready := func() metav1.Condition { return *meta.FindStatusCondition(s.status.Conditions, "Ready") }
	since := ready().LastTransitionTime
	g.Expect(since.Time).To(Equal(s.now))
	g.Expect(ready().ObservedGeneration).To(Equal(int64(1)))
	g.Expect(s.status.ObservedGeneration).To(Equal(int64(1)))

	s.edit(func() { config.keys = []string{"KEY"} })
	s.pass()
	g.Expect(ready().ObservedGeneration).To(Equal(int64(2)))
	g.Expect(s.status.ObservedGeneration).To(Equal(int64(2)))
	g.Expect(ready().LastTransitionTime).To(Equal(since), "it is still True")

	config.set("B")
	s.pass()
	g.Expect(ready().LastTransitionTime.Time).To(Equal(s.now))
	since = ready().LastTransitionTime
	web.rollout.Progress = workload.Failed
	s.pass()
	g.Expect(ready().LastTransitionTime).To(Equal(since), "it is still False")
}

func TestStalledIsToldOncePerReason(t *testing.T) {
	g := NewWithT(t)
	web := deployment("web")
	s := newScene(configMap("config", "A"), web)
	s.problems = []plan.Problem{{Reason: v1alpha1.ReasonPermissionDenied, Message: "the operator may not read every Secret"}}
	first := s.pass()
	g.Expect(first.reasons()).To(ConsistOf(v1alpha1.EventStalled))
	g.Expect(first.events[0].Type).To(Equal("Warning"))
	g.Expect(first.events[0].Note).To(Equal("PermissionDenied: the operator may not read every Secret"))
	s.problems[0].Message = "the operator may not read every ConfigMap"
	g.Expect(s.pass().events).To(BeEmpty())
	g.Expect(s.message("Stalled")).To(Equal("the operator may not read every ConfigMap"))
	s.problems[0].Reason = v1alpha1.ReasonInvalidSelector
	g.Expect(s.pass().reasons()).To(ConsistOf(v1alpha1.EventStalled))
}

func TestTheSummaryCounts(t *testing.T) {
	g := NewWithT(t)
	config, gone := configMap("config", "A"), configMap("gone", "-")
	web, api, job := deployment("web"), deployment("api"), deployment("job")
	job.missing = true
	s := settled(config, gone, web, api, job)
	g.Expect(*s.status.Summary).To(Equal(v1alpha1.Summary{Sources: 2, Targets: 3, UpToDate: 2}))

	config.set("B")
	s.refused(errRefused, api)
	first := metav1.Time{Time: s.now}
	g.Expect(*s.status.Summary).To(Equal(v1alpha1.Summary{Sources: 2, Targets: 3, LastRestartTime: &first}))
	s.pass()
	last := metav1.Time{Time: s.now}
	web.rollout.Progress = workload.Complete
	s.pass()
	g.Expect(*s.status.Summary).To(Equal(v1alpha1.Summary{Sources: 2, Targets: 3, UpToDate: 1, LastRestartTime: &last}))
	g.Expect(*s.row(web).LastRestartTime).To(Equal(first))
}

func TestAnIncompleteObservationKeepsEverythingRecorded(t *testing.T) {
	g := NewWithT(t)
	config, web, api := configMap("config", "A"), deployment("web"), deployment("api")
	s := settled(config, web, api)
	config.set("B")
	s.refused(errRefused, api)
	before := s.status.DeepCopy()

	s.edit(func() { s.incomplete = true })
	s.problems = []plan.Problem{{Reason: v1alpha1.ReasonTooManyMatches, Message: "narrow the selector"}}
	config.set("C")
	sources, targets := s.sources, s.targets
	s.sources, s.targets = nil, nil
	r := s.pass()
	g.Expect(r.restarts).To(BeEmpty())
	g.Expect(r.reasons()).To(ConsistOf(v1alpha1.EventStalled))
	g.Expect(s.status.Sources).To(Equal(before.Sources))
	g.Expect(s.status.Targets).To(Equal(before.Targets))
	g.Expect(s.status.Summary).To(Equal(before.Summary))
	g.Expect(s.status.ObservedGeneration).To(Equal(s.generation))
	g.Expect(conditions(s)).To(HaveKeyWithValue("Stalled", "True TooManyMatches"))
	g.Expect(s.message("Stalled")).To(Equal("narrow the selector"))

	s.sources, s.targets, s.problems, s.incomplete = sources, targets, nil, false
	g.Expect(s.pass().restarted()).To(ConsistOf("web", "api"))
	g.Expect(s.pass().restarts).To(BeEmpty())
}

func TestASourcesRow(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	row := func() v1alpha1.SourceStatus { return s.status.Sources[0] }
	hashA := string(config.content().Hash(nil))
	g.Expect(row()).To(Equal(v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "config", State: v1alpha1.SourcePresent, Hash: hashA}))

	config.set("B")
	s.pass()
	hashB, changed := string(config.content().Hash(nil)), metav1.Time{Time: s.now}
	g.Expect(row().Hash).To(Equal(hashB))
	g.Expect(*row().LastChangeTime).To(Equal(changed))
	s.pass()
	g.Expect(*row().LastChangeTime).To(Equal(changed))

	config.unreadable = true
	s.pass()
	g.Expect(row().State).To(Equal(v1alpha1.SourceUnreadable))
	g.Expect(row().Hash).To(Equal(hashB))
	g.Expect(*row().LastChangeTime).To(Equal(changed))
	config.unreadable = false
	s.pass()

	config.set("-")
	s.pass()
	g.Expect(row().State).To(Equal(v1alpha1.SourceMissing))
	g.Expect(row().Hash).To(Equal(hashB), "it is of the content that it last had")
	g.Expect(row().LastChangeTime.Time).To(Equal(s.now))
	config.set("B")
	s.pass()
	g.Expect(row().LastChangeTime.Time).To(Equal(s.now))
}

// What became of a source while it could not be read is a change of when that is seen.
func TestASourceThatChangedWhileItCouldNotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after string
		changed       bool
	}{
		"the same":    {"A", "A", false},
		"changed":     {"A", "B", true},
		"deleted":     {"A", "-", true},
		"appeared":    {"-", "A", false}, // or it was there before it could not be read
		"never there": {"-", "-", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config := configMap("config", tc.before)
			s := settled(config, deployment("web"))
			config.unreadable = true
			s.pass()
			config.unreadable = false
			config.set(tc.after)
			for range 2 {
				s.reload()
				s.pass()
				g.Expect(s.status.Sources[0].LastChangeTime != nil).To(Equal(tc.changed))
			}
			if tc.changed {
				g.Expect(s.status.Sources[0].LastChangeTime.Time).To(BeTemporally("==", s.now.Add(-betweenPasses)))
			}
		})
	}
}

func TestAPassIsDueWhenTheFirstSourceIsForgotten(t *testing.T) {
	g := NewWithT(t)
	one, other, config := configMap("one", "-"), configMap("other", "-"), configMap("config", "A")
	s := newScene(one, other, config, deployment("web"))
	g.Expect(s.pass().lookAgain).To(BeZero())
	one.forgetAt, other.forgetAt = s.now.Add(2*time.Hour), s.now.Add(time.Hour)
	g.Expect(s.pass().lookAgain).To(Equal(other.forgetAt))
}
