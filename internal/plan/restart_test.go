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
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/workload"
)

func forbidden() error {
	return fmt.Errorf("patching Deployment web: %w",
		apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web",
			errors.New(`User "operator" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`)))
}

func number(t *tgt) int64 {
	return workload.ParseMark(t.mark()).Number
}

func TestE8EachRestartHasItsOwnMark(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	marks := map[string]bool{}
	for i, content := range []string{"B", "A", "B"} {
		config.set(content)
		s.pass()
		marks[web.mark()] = true
		g.Expect(number(web)).To(Equal(int64(i + 1)))
		g.Expect(s.row(web).Restarts).To(Equal(int64(i + 1)))
	}
	g.Expect(marks).To(HaveLen(3), "each value is unique, so that each of them rolls")
}

func TestE8TheMarkIsComputedFromWhatIsRecorded(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	g.Expect(s.decide().Restarts[0].Mark).To(Equal(s.decide().Restarts[0].Mark))
	first := s.refused(errRefused).restarts[0].Mark
	g.Expect(s.refused(errRefused).restarts[0].Mark).To(Equal(first), "a retry is the same patch")
	g.Expect(s.pass().restarts[0].Mark).To(Equal(first))
}

func TestE8TheDigestIsOfAllPairs(t *testing.T) {
	g := NewWithT(t)
	config, other, web := configMap("config", "A"), configMap("other", "A"), deployment("web")
	s := settled(config, other, web)
	config.set("B")
	one := s.refused(errRefused).restarts[0].Mark
	other.set("B")
	g.Expect(s.refused(errRefused).restarts[0].Mark.Digest).NotTo(Equal(one.Digest))
}

func TestE8ANewRowStartsFromTheNumberOnTheTemplate(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	web.marks[watchName] = "7-0123456789abcdef"
	web.marks["another"] = "9-0123456789abcdef"
	s := newScene(config, web)
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.row(web).Restarts).To(Equal(int64(7)))
	config.set("B")
	s.pass()
	g.Expect(number(web)).To(Equal(int64(8)))
	g.Expect(web.marks["another"]).To(Equal("9-0123456789abcdef"))
}

func TestE8ARecreatedTargetGoesOnCounting(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.pass()
	web.missing = true
	s.pass()
	g.Expect(s.row(web).Restarts).To(Equal(int64(1)))
	web.missing = false
	web.recreate()
	s.pass()
	config.set("C")
	s.pass()
	g.Expect(number(web)).To(Equal(int64(2)))
}

func TestE9ALostStatusIsMadeUpFor(t *testing.T) {
	for name, tc := range map[string]struct {
		then     string
		restarts int
		number   int64
	}{
		"the content is still the same": {"B", 0, 1},
		"the content changed again":     {"C", 1, 2},
		"the change was taken back":     {"A", 1, 2},
		"the source was deleted":        {"-", 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			config.set("B")
			s.lost()

			config.set(tc.then)
			recovered := s.pass()
			g.Expect(recovered.restarts).To(HaveLen(tc.restarts))
			g.Expect(recovered.reasons()).To(ContainElement(v1alpha1.EventRestartTriggered))
			g.Expect(s.row(web).Restarts).To(Equal(tc.number))
			g.Expect(number(web)).To(Equal(tc.number))
			g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetRollingOut))
			g.Expect(s.row(web).LastRestartTime).NotTo(BeNil())
			g.Expect(s.pass().restarts).To(BeEmpty())

			config.set("D")
			g.Expect(s.pass().restarts).To(HaveLen(1))
		})
	}
}

func TestE9ARecordThatWasMadeUpForSaysWhatChanged(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.lost()
	g.Expect(s.pass().note(v1alpha1.EventRestartTriggered)).To(Equal("Restarted Deployment shop/web: ConfigMap config changed (KEY)"))
	g.Expect(s.row(web).Message).To(Equal("ConfigMap config changed (KEY)"))
	g.Expect(s.pass().events).To(BeEmpty())
}

// The pods run B, which is neither recorded nor present, until the patch succeeds.
func TestE9AChangeThatWasTakenBackIsNotForgottenWhileItCanNotBeActedOn(t *testing.T) {
	for name, inTheWay := range map[string]func(s *scene) result{
		"a refused patch": func(s *scene) result { return s.refused(errRefused) },
		"Suspended": func(s *scene) result {
			s.mode = v1alpha1.ModeSuspended
			defer func() { s.mode = v1alpha1.ModeActive }()
			return s.pass()
		},
		"DryRun": func(s *scene) result {
			s.mode = v1alpha1.ModeDryRun
			defer func() { s.mode = v1alpha1.ModeActive }()
			return s.pass()
		},
		"an unreadable source": func(s *scene) result {
			s.sources[0].unreadable = true
			defer func() { s.sources[0].unreadable = false }()
			return s.pass()
		},
		"lost status again": func(s *scene) result { return s.refusedAndLost() },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			config.set("B")
			s.lost()
			config.set("A")

			for range 3 {
				inTheWay(s)
				g.Expect(number(web)).To(Equal(int64(1)))
				g.Expect(s.row(web).Restarts).To(BeZero())
			}
			g.Expect(s.pass().restarts).To(HaveLen(1))
			g.Expect(number(web)).To(Equal(int64(2)))
			g.Expect(s.row(web).Restarts).To(Equal(int64(2)))
			g.Expect(s.pass().restarts).To(BeEmpty())
		})
	}
}

func (s *scene) refusedAndLost() result {
	recorded := s.status
	defer func() { s.status = recorded }()
	return s.refused(errRefused)
}

func TestE9NothingIsDecidedWhileASourceIsUnreadable(t *testing.T) {
	g := NewWithT(t)
	config, other, quiet, web := configMap("config", "A"), configMap("other", "A"), configMap("quiet", "A").when("D"), deployment("web")
	s := settled(config, other, quiet, web)
	before := s.row(web)
	config.set("B")
	other.set("B")
	s.lost()

	config.set("A")
	quiet.set("B")
	other.unreadable = true
	for range 2 {
		r := s.pass()
		g.Expect(r.restarts).To(BeEmpty())
		g.Expect(r.events).To(BeEmpty())
		g.Expect(s.row(web)).To(Equal(before), "nothing is recorded, so nothing is lost")
	}

	other.unreadable = false
	g.Expect(s.pass().restarts).To(HaveLen(1), "the pods run B of config")
	g.Expect(number(web)).To(Equal(int64(2)))
}

func TestE9AnUnreadableSourceHoldsUpNoOther(t *testing.T) {
	for name, first := range map[string]func(*scene) result{"recorded": (*scene).pass, "lost": (*scene).lost} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, other, web := configMap("config", "A"), configMap("other", "A"), deployment("web")
			s := settled(config, other, web)
			other.unreadable = true
			for i, content := range []string{"B", "C"} {
				config.set(content)
				g.Expect(first(s).cause()).To(Equal("ConfigMap config changed (KEY)"))
				g.Expect(number(web)).To(Equal(int64(i + 1)))
			}
			g.Expect(s.pass().restarts).To(BeEmpty())
			g.Expect(s.row(web).Restarts).To(Equal(int64(2)))

			other.unreadable = false
			g.Expect(s.pass().restarts).To(BeEmpty())
			other.unreadable = true
			other.set("B")
			g.Expect(s.pass().restarts).To(BeEmpty())
			other.unreadable = false
			g.Expect(s.pass().restarts).To(HaveLen(1), "what changed unseen is acted on")
		})
	}
}

// The restart was made for config's B. What happens before it is recorded calls for no other.
func TestE9ALostRestartIsKnownAgainAfter(t *testing.T) {
	for name, then := range map[string]func(s *scene, config, other, quiet *src){
		"an edit of the changed source's keys": func(s *scene, config, _, _ *src) { s.edit(func() { config.keys = []string{"KEY"} }) },
		"an edit of another source's keys":     func(s *scene, _, other, _ *src) { s.edit(func() { other.keys = []string{"KEY"} }) },
		"an edit that drops keys":              func(s *scene, _, _, quiet *src) { s.edit(func() { quiet.keys = nil }) },
		"an edit of restartOn":                 func(s *scene, config, _, _ *src) { s.edit(func() { config.when("D") }) },
		"an edit that adds a source": func(s *scene, _, _, _ *src) {
			s.edit(func() {
				more := configMap("more", "A")
				s.sources, s.targets[0].uses = append(s.sources, more), append(s.targets[0].uses, more)
			})
		},
		"an edit that drops a source": func(s *scene, config, _, quiet *src) { s.edit(func() { s.sources = []*src{config, quiet} }) },
		"a new reference": func(s *scene, _, _, _ *src) {
			more := configMap("more", "A")
			s.sources = append(s.sources, more)
			s.targets[0].uses = append(s.targets[0].uses, more)
		},
		"a reference less":                  func(s *scene, config, other, _ *src) { s.targets[0].uses = []*src{config, other} },
		"a deletion that calls for nothing": func(_ *scene, _, other, _ *src) { other.set("-") },
		"a change that calls for nothing":   func(_ *scene, _, _, quiet *src) { quiet.set("B") },
		"an edit and such a change": func(s *scene, _, other, quiet *src) {
			quiet.set("B")
			s.edit(func() { other.keys = []string{"KEY"} })
		},
		"a source that can't be read": func(_ *scene, _, other, _ *src) { other.unreadable = true },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, other, quiet, gone := configMap("config", "A"), configMap("other", "A"), configMap("quiet", "A"), configMap("gone", "A")
			web := deployment("web")
			quiet.keys = []string{"KEY"}
			quiet.when("D")
			web.uses = []*src{config, other, quiet, gone}
			s := settled(config, other, quiet, gone, web)
			gone.set("-")
			s.pass()
			config.set("B")
			g.Expect(s.lost().restarts).To(HaveLen(1))

			then(s, config, other, quiet)
			g.Expect(s.pass().restarts).To(BeEmpty())
			g.Expect(number(web)).To(Equal(int64(1)))
			g.Expect(s.row(web).Restarts).To(Equal(int64(1)))
			g.Expect(s.pass().restarts).To(BeEmpty())

			config.when("M")
			config.set("C")
			g.Expect(s.pass().restarted()).To(ConsistOf("web"), "the next change is acted on")
		})
	}
}

// Whether it was made for the present content can't be told, so it is made again.
func TestE9ALostRestartIsMadeAgainIfItCanNotBeKnown(t *testing.T) {
	for name, then := range map[string]func(s *scene, config, other *src){
		"another change": func(_ *scene, _, other *src) { other.set("B") },
		"an edit of keys that were keys": func(s *scene, config, _ *src) {
			s.edit(func() { config.keys = []string{"KEY"} })
		},
		"an edit of keys with a change": func(s *scene, config, _ *src) {
			config.set("C")
			s.edit(func() { config.keys = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, other, web := configMap("config", "A"), configMap("other", "A"), deployment("web")
			config.keys = []string{"KEY", "ELSE"}
			s := settled(config, other, web)
			config.set("B")
			s.lost()
			then(s, config, other)
			g.Expect(s.pass().restarts).To(HaveLen(1))
			g.Expect(s.pass().restarts).To(BeEmpty())
			g.Expect(s.row(web).Restarts).To(Equal(int64(2)))
		})
	}
}

// A deletion that called for no restart came after the one that was made: the pods had the source.
func TestE9AReturnAfterALostRestart(t *testing.T) {
	g := NewWithT(t)
	config, other, web := configMap("config", "A"), configMap("other", "A").when("AM"), deployment("web")
	s := settled(config, other, web)
	config.set("B")
	s.lost()
	other.set("-")
	s.pass()
	other.set("A")
	g.Expect(s.pass().restarts).To(BeEmpty())
}

// The pods were started without config, so they don't have it, although the record says that they do.
func TestE9AReturnAfterALostRestartWithoutTheSource(t *testing.T) {
	g := NewWithT(t)
	config, other, web := configMap("config", "A").when("AMD"), configMap("other", "A"), deployment("web")
	s := settled(config, other, web)
	config.set("-")
	other.set("B")
	s.refused(errRefused)
	s.lost()
	config.set("A")
	g.Expect(s.pass().restarts).To(HaveLen(1))
	g.Expect(s.pass().restarts).To(BeEmpty())
}

// The deletion called for no restart, but the one that was made for other left the pods without config.
func TestE9AnAbsenceThatALostRestartWasMadeInIsRecorded(t *testing.T) {
	g := NewWithT(t)
	config, other, web := configMap("config", "A").when("A"), configMap("other", "A"), deployment("web")
	s := settled(config, other, web)
	config.set("-")
	s.pass()
	other.set("B")
	s.lost()
	s.edit(func() { s.sources = append(s.sources, configMap("more", "A")) })
	g.Expect(s.pass().restarts).To(BeEmpty())
	config.set("A")
	g.Expect(s.pass().restarts).To(HaveLen(1))
}

// The response was lost, not the patch: the pass takes it for refused.
func TestE9ALostResponseIsNoSecondRestart(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	decision := s.decide()
	web.patch(decision.Restarts[0])
	status, events := decision.Conclude([]error{errRefused}, nil)
	s.record(result{status: status, events: events})
	g.Expect(s.row(web).Reason).To(Equal(v1alpha1.ReasonRestartFailed))

	recovered := s.pass()
	g.Expect(recovered.restarts).To(BeEmpty())
	g.Expect(recovered.reasons()).To(ConsistOf(v1alpha1.EventRestartTriggered))
	g.Expect(s.row(web).Restarts).To(Equal(int64(1)))
	g.Expect(s.row(web).Message).To(Equal("ConfigMap config changed (KEY)"))
}

func TestE9TheSameMarkTwiceIsOneRestart(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	one, other := s.decide().Restarts[0], s.decide().Restarts[0]
	g.Expect(web.patch(one)).To(BeTrue())
	g.Expect(web.patch(other)).To(BeFalse(), "the other replica comes late")
	g.Expect(web.mark()).To(Equal(other.Mark.String()))
}

func TestE9ATargetWithoutSourcesOnlyTakesTheNumber(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	web.marks[watchName] = "3-0123456789abcdef"
	web.uses = []*src{}
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.row(web).Restarts).To(Equal(int64(3)))
	web.uses = nil
	g.Expect(s.pass().restarts).To(BeEmpty())
}

func TestE10AMarkThatIsGoneIsNoChange(t *testing.T) {
	for name, mark := range map[string]string{
		"missing":             "",
		"older":               "1-0123456789abcdef",
		"with another digest": "2-0123456789abcdef",
		"without a digest":    "9",
		"not a number":        "nine-0123456789abcdef",
		"negative":            "-9-0123456789abcdef",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			config.set("B")
			s.pass()
			config.set("C")
			s.pass()
			web.rollout.Progress = workload.Complete
			s.pass()

			web.marks[watchName] = mark
			if mark == "" {
				delete(web.marks, watchName)
			}
			g.Expect(s.pass().restarts).To(BeEmpty())
			g.Expect(s.pass().events).To(BeEmpty())
			g.Expect(s.row(web).Restarts).To(Equal(int64(2)))

			config.set("D")
			s.pass()
			g.Expect(number(web)).To(Equal(int64(3)), "the next change numbers on")
		})
	}
}

func TestE11OneFailingTargetTouchesNoOther(t *testing.T) {
	g := NewWithT(t)
	config, web, api, job := configMap("config", "A"), deployment("web"), deployment("api"), deployment("job")
	s := settled(config, web, api, job)
	config.set("B")
	failed := s.refused(errRefused, api)
	g.Expect(failed.restarted()).To(Equal([]string{"web", "api", "job"}))
	g.Expect(failed.reasons()).To(Equal([]string{
		v1alpha1.EventRestartFailed, v1alpha1.EventRestartTriggered, v1alpha1.EventRestartTriggered,
	}))
	g.Expect(failed.note(v1alpha1.EventRestartFailed)).To(Equal(
		"Deployment shop/api was not restarted: ConfigMap config changed (KEY). The restart is tried again: refused"))
	g.Expect(s.row(api).State).To(Equal(v1alpha1.TargetPending))
	g.Expect(s.row(api).Reason).To(Equal(v1alpha1.ReasonRestartFailed))
	g.Expect(s.row(api).Message).To(Equal("ConfigMap config changed (KEY). The restart is tried again: refused"))
	g.Expect(s.row(api).Restarts).To(BeZero())
	g.Expect(s.row(web).Restarts).To(Equal(int64(1)))
	g.Expect(s.row(job).Restarts).To(Equal(int64(1)))

	again := s.refused(errRefused, api)
	g.Expect(again.restarted()).To(ConsistOf("api"))
	g.Expect(again.restarts[0].Mark).To(Equal(failed.restarts[1].Mark))
	g.Expect(again.events).To(BeEmpty(), "the same failure is told once")

	config.former = nil
	made := s.pass()
	g.Expect(made.restarted()).To(ConsistOf("api"))
	g.Expect(made.cause()).To(Equal("ConfigMap config changed (KEY)"), "the cause is remembered, though the keys aren't known any more")
	g.Expect(made.reasons()).To(ConsistOf(v1alpha1.EventRestartTriggered))
}

// A quota or a webhook may refuse with the same code; no role could mend that.
func TestE11ARefusalByAdmissionIsNoMissingPermission(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.refused(apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web",
		errors.New("exceeded quota: restarts")))
	g.Expect(s.row(web).Reason).To(Equal(v1alpha1.ReasonRestartFailed))
	g.Expect(s.row(web).Message).To(HaveSuffix("exceeded quota: restarts"))
	g.Expect(conditions(s)).NotTo(HaveKey(v1alpha1.ConditionStalled))
}

func TestE11AForbiddenPatchStalls(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	failed := s.refused(forbidden())
	g.Expect(failed.reasons()).To(ConsistOf(v1alpha1.EventRestartFailed, v1alpha1.EventStalled))
	g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetPending))
	g.Expect(s.row(web).Reason).To(Equal(v1alpha1.ReasonPermissionDenied))
	g.Expect(s.row(web).Message).To(HavePrefix(
		"ConfigMap config changed (KEY). The operator's role lacks a permission: patching Deployment web: deployments.apps \"web\" is forbidden"))
	g.Expect(conditions(s)).To(Equal(map[string]string{
		v1alpha1.ConditionReady: "False " + v1alpha1.ReasonPermissionDenied, v1alpha1.ConditionStalled: "True " + v1alpha1.ReasonPermissionDenied,
	}))
	g.Expect(s.refused(forbidden()).events).To(BeEmpty())

	made := s.pass()
	g.Expect(made.restarts[0].Mark).To(Equal(failed.restarts[0].Mark))
	g.Expect(conditions(s)).NotTo(HaveKey(v1alpha1.ConditionStalled))
}

func TestE19DryRunAndSuspendedLoseNothing(t *testing.T) {
	for mode, tc := range map[v1alpha1.Mode]struct{ reason, note string }{
		v1alpha1.ModeDryRun: {v1alpha1.ReasonDryRun,
			"Deployment shop/web would be restarted (spec.mode is DryRun): ConfigMap config changed (KEY)"},
		v1alpha1.ModeSuspended: {v1alpha1.ReasonSuspended,
			"Deployment shop/web is restarted once spec.mode is Active again: ConfigMap config changed (KEY)"},
	} {
		t.Run(string(mode), func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			s.edit(func() { s.mode = mode })
			g.Expect(s.pass().events).To(BeEmpty())

			config.set("B")
			held := s.pass()
			g.Expect(held.restarts).To(BeEmpty())
			g.Expect(held.reasons()).To(ConsistOf(v1alpha1.EventRestartHeld))
			g.Expect(held.note(v1alpha1.EventRestartHeld)).To(Equal(tc.note))
			g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetPending))
			g.Expect(s.row(web).Reason).To(Equal(tc.reason))
			g.Expect(s.row(web).Message).To(Equal("ConfigMap config changed (KEY)"))
			g.Expect(conditions(s)).To(Equal(map[string]string{
				v1alpha1.ConditionReady: "False " + tc.reason, v1alpha1.ConditionReconciling: "True " + tc.reason,
			}))
			g.Expect(s.pass().events).To(BeEmpty(), "it is told once, not in each pass")

			s.edit(func() { s.mode = v1alpha1.ModeActive })
			config.former = nil
			made := s.pass()
			g.Expect(made.cause()).To(Equal("ConfigMap config changed (KEY)"))
			g.Expect(s.row(web).Restarts).To(Equal(int64(1)))
			g.Expect(s.pass().restarts).To(BeEmpty())
		})
	}
}

func TestE19SeveralChangesWhileSuspendedAreOneRestart(t *testing.T) {
	g := NewWithT(t)
	config, other, web := configMap("config", "A"), configMap("other", "A"), deployment("web")
	s := settled(config, other, web)
	s.mode = v1alpha1.ModeSuspended
	config.set("B")
	s.pass()
	other.set("B")
	more := s.pass()
	g.Expect(more.note(v1alpha1.EventRestartHeld)).To(HaveSuffix("ConfigMap config changed (KEY); ConfigMap other changed (KEY)"))
	config.set("C")
	s.pass()
	s.mode = v1alpha1.ModeActive
	g.Expect(s.pass().restarts).To(HaveLen(1))
	g.Expect(s.pass().restarts).To(BeEmpty())
}

func TestE19AChangeThatWasTakenBackIsNoRestart(t *testing.T) {
	for _, restartedBefore := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted before: %t", restartedBefore), func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "0"), deployment("web")
			s := settled(config, web)
			if restartedBefore {
				config.set("A")
				s.pass()
				web.rollout.Progress = workload.Complete
			}
			s.mode = v1alpha1.ModeSuspended
			before := config.data["KEY"]
			s.pass()
			config.set("B")
			s.pass()

			config.set(before)
			back := s.pass()
			g.Expect(back.events).To(BeEmpty(), "nothing was rolled out")
			g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetUpToDate))
			g.Expect(s.row(web).Message).To(Equal("the change was taken back before a restart was made"))

			s.mode = v1alpha1.ModeActive
			g.Expect(s.pass().restarts).To(BeEmpty())
		})
	}
}

func TestE19ASourceThatCanNotBeReadIsNotTakenForAChangeTakenBack(t *testing.T) {
	g := NewWithT(t)
	config, quiet, web := configMap("config", "A"), configMap("quiet", "A").when("D"), deployment("web")
	s := settled(config, quiet, web)
	s.mode = v1alpha1.ModeSuspended
	config.set("B")
	s.pass()
	before := s.row(web)
	config.unreadable = true
	quiet.set("B")
	for range 2 {
		g.Expect(s.pass().events).To(BeEmpty())
		g.Expect(s.row(web)).To(Equal(before))
	}
	config.unreadable = false
	s.edit(func() { s.mode, config.keys = v1alpha1.ModeActive, []string{"KEY"} })
	g.Expect(s.pass().restarts).To(HaveLen(1))
}

func TestE19ASourceThatIsAwayWhileSuspended(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.mode = v1alpha1.ModeSuspended
	for _, content := range []string{"B", "-", "B"} {
		config.set(content)
		s.pass()
	}
	s.mode = v1alpha1.ModeActive
	g.Expect(s.pass().restarts).To(HaveLen(1))
}

// Names at their limits make a message that is too long for a row.
func TestE19ALongCauseIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	s := newScene(configMap("config", "A"), deployment("web"))
	for i := range 5 {
		s.sources = append(s.sources, longNamed(i).when("MD"))
	}
	s.pass()
	s.mode = v1alpha1.ModeSuspended
	for _, one := range s.sources[1:] {
		one.write(nil)
	}
	g.Expect(s.pass().reasons()).To(ConsistOf(v1alpha1.EventRestartHeld))
	g.Expect(s.pass().events).To(BeEmpty())
}
