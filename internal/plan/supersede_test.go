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

// waiting is a ConfigWatch of one target, that waits for a minute since a change to B.
func waiting() (config *src, web *tgt, s *scene) {
	config, web = configMap("config", "A"), deployment("web")
	s = settling(60, config, web)
	config.set("B")
	s.pass()
	return config, web, s
}

func TestE13AnotherRolloutSupersedesARestart(t *testing.T) {
	g := NewWithT(t)
	config, web, s := waiting()
	web.roll("new")
	s.reload()
	superseded := s.after(10 * time.Second)
	g.Expect(superseded.restarts).To(BeEmpty())
	g.Expect(superseded.lookAgain).To(BeZero())
	g.Expect(superseded.reasons()).To(ConsistOf(v1alpha1.EventRestartSuperseded))
	g.Expect(superseded.note(v1alpha1.EventRestartSuperseded)).To(Equal("Deployment shop/web was not restarted: " +
		"ConfigMap config changed (KEY), and another rollout has started its pods since"))
	g.Expect(s.said(web)).To(Equal("RollingOut SupersededByRollout"))
	g.Expect(s.row(web).Message).To(Equal("ConfigMap config changed (KEY)"))
	g.Expect(s.row(web).Wait).To(BeNil())
	g.Expect(s.row(web).Restarts).To(BeZero())
	g.Expect(s.row(web).LastRestartTime).To(BeNil(), "it is not this operator's")
	g.Expect(s.applied(web, config)).To(Equal(config.content().Hash(nil)))

	web.done()
	done := s.after(time.Hour)
	g.Expect(done.restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("UpToDate SupersededByRollout"))
	g.Expect(s.after(time.Hour).events).To(BeEmpty())
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionReady, "True UpToDate"))

	config.set("C")
	s.pass()
	g.Expect(s.after(time.Minute).restarts).To(HaveLen(1), "the next change is one")
}

// The rollout that took the place of a restart is followed like one.
func TestE13TheOtherRolloutIsFollowed(t *testing.T) {
	for name, tc := range map[string]struct {
		rollout workload.Rollout
		said    string
	}{
		"that is complete already": {workload.Rollout{Progress: workload.Complete}, "UpToDate SupersededByRollout"},
		"that fails":               {workload.Rollout{Progress: workload.Failed, Detail: "no"}, "Failed RolloutFailed"},
		"that is paused":           {workload.Rollout{Progress: workload.InProgress, Paused: true}, "RollingOut RolloutPaused"},
		"without pods":             {workload.Rollout{Progress: workload.Complete, NoPods: true}, "UpToDate ScaledToZero"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, web, s := waiting()
			web.roll("new")
			web.rollout = tc.rollout
			g.Expect(s.after(10 * time.Second).reasons()).To(ContainElement(v1alpha1.EventRestartSuperseded))
			g.Expect(s.said(web)).To(Equal(tc.said))
			g.Expect(s.after(10 * time.Second).events).To(BeEmpty())
		})
	}
}

// Each is between the pass that sees the change and the one in which the restart is due.
func TestE13WithoutProofThatTheOtherRolloutIsLaterATargetIsRestarted(t *testing.T) {
	for name, between := range map[string]func(s *scene, config *src, web *tgt){
		"nothing": func(*scene, *src, *tgt) {},
		"the template that was read is there": func(_ *scene, _ *src, web *tgt) {
			web.generation++ // scaled, say
		},
		"another operator version": func(s *scene, _ *src, web *tgt) {
			s.status.Targets[0].Wait.Template.Hash = "0.9:b"
			web.roll("new")
		},
		"the template could not be read": func(s *scene, _ *src, web *tgt) {
			s.status.Targets[0].Wait.Template = nil
			web.roll("new")
		},
		"a cache that is behind what was read": func(s *scene, _ *src, web *tgt) {
			s.status.Targets[0].Wait.Template.Generation = web.generation + 1
			web.image = "old"
		},
		"another generation that isn't later": func(_ *scene, _ *src, web *tgt) {
			web.image = "new"
		},
		"another content, unseen, while the rollout came": func(s *scene, config *src, web *tgt) {
			config.set("C") // which the pods of the rollout run
			web.roll("new")
			config.set("B")
			s.reload()
		},
		"a further change together with the rollout": func(s *scene, config *src, web *tgt) {
			web.roll("new")
			config.set("C")
			s.after(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web, s := waiting()
			between(s, config, web)
			g.Expect(s.after(time.Minute).restarts).To(HaveLen(1))
			g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
		})
	}
}

// The rollout came after the change, but before the operator saw the change. It can't know.
func TestE13ARolloutBeforeTheWaitBeganProvesNothing(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settling(60, config, web)
	config.set("B")
	web.roll("new")
	s.pass()
	g.Expect(s.after(time.Minute).restarts).To(HaveLen(1))
}

// The template is read past the cache when the wait begins, and again with each further change.
func TestE13TheTemplateIsReadWhenAWaitBeginsAndAfterAFurtherChange(t *testing.T) {
	g := NewWithT(t)
	config, web, s := waiting()
	waitingFor := func() []string {
		var names []string
		for _, w := range s.decide().Waiting() {
			names = append(names, w.Name)
		}
		return names
	}
	g.Expect(s.row(web).Wait.Template.Hash).To(Equal(web.template().Hash))
	s.now = s.now.Add(-2 * betweenPasses)
	g.Expect(waitingFor()).To(BeEmpty(), "once is enough")

	s.now = s.now.Add(-betweenPasses)
	config.set("C")
	g.Expect(waitingFor()).To(ConsistOf("web"))
	web.roll("new")
	web.done()
	s.now = s.now.Add(-betweenPasses)
	s.pass()
	g.Expect(s.row(web).Wait.Template.Hash).To(Equal(web.template().Hash))
	web.roll("newer")
	g.Expect(s.after(10 * time.Second).reasons()).To(ConsistOf(v1alpha1.EventRestartSuperseded))
	g.Expect(s.applied(web, config)).To(Equal(config.content().Hash(nil)))
}

// A template that could not be read is read later: from then on a rollout is known again.
func TestE13ATemplateThatCouldNotBeReadIsReadLater(t *testing.T) {
	for name, unread := range map[string]workload.Template{"not at all": {}, "without a hash": {Generation: 3}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settling(60, config, web)
			config.set("B")
			decision := s.decide()
			g.Expect(decision.Waiting()).To(HaveLen(1))
			status, events := decision.Conclude(nil, []workload.Template{unread})
			s.record(result{status: status, events: events})
			g.Expect(s.row(web).Wait.Template).To(BeNil())

			s.after(10 * time.Second)
			g.Expect(s.row(web).Wait.Template).NotTo(BeNil())
			web.roll("new")
			g.Expect(s.after(10 * time.Second).reasons()).To(ConsistOf(v1alpha1.EventRestartSuperseded))
		})
	}
}

func TestE13WhoeverIsRestartedAtOnceIsNotRead(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	g.Expect(s.decide().Waiting()).To(BeEmpty())
}

// Whatever a target waits for, a rollout in the meantime is as good as a restart.
func TestE13ARolloutSupersedesWhateverARestartWaitsFor(t *testing.T) {
	for said, change := range map[string]func(*scene){
		"Pending Settling":         func(s *scene) { s.rollout.SettleSeconds = new(int32(600)) },
		"Pending AwaitingApproval": func(s *scene) { s.rollout.Approval = v1alpha1.ApprovalManual },
		"Pending OutsideWindow":    func(s *scene) { s.rollout.Windows = []v1alpha1.Window{nightly} },
		"Pending DryRun":           func(s *scene) { s.mode = v1alpha1.ModeDryRun },
		"Pending Suspended":        func(s *scene) { s.mode = v1alpha1.ModeSuspended },
	} {
		t.Run(said, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			s.now = s.now.Add(time.Hour)
			change(s)
			config.set("B")
			s.pass()
			g.Expect(s.said(web)).To(Equal(said))
			web.roll("new")
			g.Expect(s.pass().reasons()).To(ConsistOf(v1alpha1.EventRestartSuperseded))
			web.done()
			s.pass()
			g.Expect(s.said(web)).To(Equal("UpToDate SupersededByRollout"))
		})
	}
}

// A rollout of one that waits for its turn lets it take a place: its pods are being replaced for the change.
func TestE16ARolloutThatSupersedesARestartTakesAPlace(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(3)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	d[1].roll("new")
	d[0].done()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(d[1])).To(Equal("RollingOut SupersededByRollout"))
	g.Expect(s.said(d[2])).To(Equal("Pending AwaitingTurn"))
	d[1].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d2"}))
}

// Pods may have been started for a change before it was taken back: the target is restarted for what is
// recorded. Each is what happens between the pass that sees the change and the one that sees it gone.
func TestE13AChangeThatIsTakenBackAfterPodsWereStarted(t *testing.T) {
	for name, tc := range map[string]struct {
		between  func(s *scene, config *src, web *tgt)
		restarts int
	}{
		"none were": {func(*scene, *src, *tgt) {}, 0},
		"by another rollout": {func(_ *scene, _ *src, web *tgt) {
			web.roll("new")
		}, 1},
		"by another rollout that is complete": {func(_ *scene, _ *src, web *tgt) {
			web.roll("new")
			web.done()
		}, 1},
		"by another rollout before a further change": {func(s *scene, config *src, web *tgt) {
			web.roll("new")
			web.done()
			config.set("C")
			s.after(time.Second)
		}, 1},
		"by a rollout that was under way": {func(s *scene, _ *src, web *tgt) {
			web.rollout.Progress = workload.InProgress
			s.after(time.Second)
			web.done()
		}, 1},
		"because there are more of them": {func(_ *scene, _ *src, web *tgt) {
			web.generation++ // scaled up
		}, 1},
		"or not, as the template could not be read": {func(s *scene, _ *src, _ *tgt) {
			s.status.Targets[0].Wait.Template = nil
		}, 1},
		"by a rollout that the cache had not shown": {func(s *scene, config *src, web *tgt) {
			config.set("C")
			behind := s.input()
			web.roll("new")
			web.done()
			behind.Now = s.now.Add(time.Second)
			s.record(s.carryOut(plan.Decide(behind), s.patch))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web, s := waiting()
			tc.between(s, config, web)
			config.set("A")
			s.reload()
			back := s.after(time.Second)
			g.Expect(back.restarts).To(BeEmpty())
			if tc.restarts == 0 {
				g.Expect(s.said(web)).To(Equal("UpToDate Baseline"))
				g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
				return
			}
			g.Expect(s.said(web)).To(Equal("Pending Settling"))
			g.Expect(s.row(web).Message).To(HavePrefix(
				"a change was taken back, and pods may have been started before it was. It is restarted"))
			s.reload()
			made := s.after(time.Minute)
			g.Expect(made.cause()).To(Equal("a change was taken back, and pods may have been started before it was"))
			g.Expect(s.row(web).Restarts).To(Equal(int64(1)))
			g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
		})
	}
}

// It is taken back while nothing can be decided of the target, and pods are started before that.
func TestE13AChangeThatIsTakenBackUnseenAfterPodsWereStarted(t *testing.T) {
	for name, tc := range map[string]struct {
		blind, see func(config, other *src, web *tgt)
	}{
		"the source can't be read": {
			func(config, _ *src, _ *tgt) { config.unreadable = true }, func(config, _ *src, _ *tgt) { config.unreadable = false },
		},
		"another source can't be read": {
			func(_, other *src, _ *tgt) { other.unreadable = true }, func(_, other *src, _ *tgt) { other.unreadable = false },
		},
		"the target can't be read": {
			func(_, _ *src, web *tgt) { web.unreadable = true }, func(_, _ *src, web *tgt) { web.unreadable = false },
		},
	} {
		for what, restarts := range map[string]int{"pods are started": 1, "none are": 0} {
			t.Run(name+", and "+what, func(t *testing.T) {
				g := NewWithT(t)
				config, other, web := configMap("config", "A"), configMap("other", "A"), deployment("web")
				s := settling(60, config, other, web)
				config.set("B")
				s.pass()
				web.generation += int64(restarts) // scaled up
				tc.blind(config, other, web)
				s.after(time.Second)
				config.set("A")
				for range 2 {
					s.reload()
					g.Expect(s.after(time.Second).restarts).To(BeEmpty())
				}
				tc.see(config, other, web)
				s.reload()
				s.after(time.Second)
				g.Expect(s.after(time.Hour).restarts).To(HaveLen(restarts))
				g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
				g.Expect(s.row(web).Wait).To(BeNil())
			})
		}
	}
}

// A change that doesn't matter any more is not taken back, whatever pods were started meanwhile (E5).
func TestE5AnEditThatEndsAWaitRestartsNothing(t *testing.T) {
	for name, edit := range map[string]func(s *scene, config *src, web *tgt){
		"of the sources":   func(s *scene, _ *src, _ *tgt) { s.edit(func() { s.sources = s.sources[1:] }) },
		"of restartOn":     func(s *scene, config *src, _ *tgt) { s.edit(func() { config.when("AD") }) },
		"that ignores one": func(_ *scene, config *src, _ *tgt) { config.ignored = true },
		"of the template":  func(s *scene, _ *src, web *tgt) { web.uses = s.sources[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, other, web := configMap("config", "A"), configMap("other", "A"), deployment("web")
			s := settling(60, config, other, web)
			config.set("B")
			s.pass()
			web.roll("new")
			web.rollout.Progress = workload.InProgress
			s.status.Targets[0].Wait.Template = nil
			s.after(time.Second)
			edit(s, config, web)
			for range 3 {
				g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
			}
			g.Expect(s.row(web).Wait).To(BeNil())
		})
	}
}

// The restart for B was under way when C came and went: some of its pods may run C.
func TestE13AChangeThatIsTakenBackDuringARestart(t *testing.T) {
	g := NewWithT(t)
	config, web, s := waiting()
	g.Expect(s.after(time.Minute).restarts).To(HaveLen(1))
	config.set("C")
	s.after(10 * time.Second)
	web.done()
	s.after(10 * time.Second)
	config.set("B")
	g.Expect(s.after(10 * time.Second).restarts).To(BeEmpty())
	g.Expect(s.after(time.Minute).restarts).To(HaveLen(1))
	web.done()
	g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("UpToDate RolloutComplete"))
}

// The template may be one of before, whose pods are still there: as when a rollout that was under way is undone.
func TestE13ARolloutDuringAnotherOneSupersedesNothing(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settling(60, config, web)
	web.roll("new")
	s.pass()
	config.set("B")
	s.pass()
	web.roll("")
	web.done() // the old pods were there all the time
	g.Expect(s.after(10 * time.Second).events).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("Pending Settling"))
	g.Expect(s.after(time.Minute).restarts).To(HaveLen(1))
	g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
}

// From when that other one is complete, all pods are of one template.
func TestE13TheTemplateIsReadWhenNoPodsAreBeingStarted(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settling(60, config, web)
	web.roll("new")
	s.pass()
	config.set("B")
	s.pass()
	g.Expect(s.row(web).Wait.Template).To(BeNil())
	web.done()
	s.after(10 * time.Second)
	g.Expect(s.row(web).Wait.Template).NotTo(BeNil())
	web.roll("newer")
	g.Expect(s.after(10 * time.Second).reasons()).To(ConsistOf(v1alpha1.EventRestartSuperseded))
}

// What was read is newer than what the cache shows of the rollout, so that nobody knows how that stands.
func TestE13ATemplateThatIsNewerThanTheCacheIsReadAgain(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settling(60, config, web)
	config.set("B")
	behind := s.input()
	web.roll("new")
	web.done()
	s.record(s.carryOut(plan.Decide(behind), s.patch))
	g.Expect(s.row(web).Wait.Template).To(BeNil())
	s.after(10 * time.Second)
	g.Expect(s.row(web).Wait.Template.Generation).To(Equal(web.generation))
	g.Expect(s.after(time.Minute).restarts).To(HaveLen(1), "the order of the two isn't known")
}

// A rollout that superseded a restart, and is undone before it is complete, leaves pods of before.
func TestE13ARolloutThatIsUndoneSupersedesNothing(t *testing.T) {
	g := NewWithT(t)
	config, web, s := waiting()
	before := web.image
	web.roll("new")
	g.Expect(s.after(10 * time.Second).reasons()).To(ConsistOf(v1alpha1.EventRestartSuperseded))
	web.roll(before)
	web.done() // the old pods were there all the time
	undone := s.after(10 * time.Second)
	g.Expect(undone.restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("Pending Settling"))
	made := s.after(time.Minute)
	g.Expect(made.cause()).To(Equal("another rollout that had started pods for a change was undone before it was complete"))
	g.Expect(s.after(time.Hour).restarts).To(BeEmpty())
	g.Expect(s.applied(web, config)).To(Equal(config.content().Hash(nil)))
}

// E26: two ConfigWatches, each with its own mark and record, restart one target for the same change. The one
// that waits for longer sees the other's restart.
func TestE26OverlappingConfigWatchesRestartATargetOnceForAChange(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	one, other := settling(10, config, web), settling(20, config, web)
	other.name = "other"
	other.pass()
	config.set("B")
	one.pass()
	other.pass()

	g.Expect(one.after(10 * time.Second).restarts).To(HaveLen(1))
	g.Expect(other.after(10 * time.Second).reasons()).To(ConsistOf(v1alpha1.EventRestartSuperseded))
	g.Expect(other.said(web)).To(Equal("RollingOut SupersededByRollout"))
	web.done()
	one.pass()
	other.pass()
	g.Expect(one.said(web)).To(Equal("UpToDate RolloutComplete"))
	g.Expect(other.said(web)).To(Equal("UpToDate SupersededByRollout"))
	g.Expect(web.marks).To(HaveLen(1))

	for range 3 {
		g.Expect(one.after(time.Hour).restarts).To(BeEmpty())
		g.Expect(other.after(time.Hour).restarts).To(BeEmpty())
	}
}

// Where neither waits, both restart it: each has its own mark, and neither is in the other's way.
func TestE26MarksAreApart(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	one, other := settled(config, web), newScene(config, web)
	other.name = "other"
	other.pass()
	for _, content := range []string{"B", "C"} {
		config.set(content)
		g.Expect(one.pass().restarts).To(HaveLen(1))
		g.Expect(other.pass().restarts).To(HaveLen(1))
		g.Expect(one.pass().restarts).To(BeEmpty())
		web.done()
		one.pass()
		other.pass()
	}
	g.Expect(web.marks).To(HaveLen(2))
	g.Expect(one.said(web)).To(Equal("UpToDate RolloutComplete"))
	g.Expect(other.said(web)).To(Equal("UpToDate RolloutComplete"))
}
