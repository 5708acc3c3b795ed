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
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

const (
	firstRequest  = "2026-01-02T03:04:30Z"
	secondRequest = "2026-01-02T03:04:31Z"
)

func TestE8ARequestRestartsAllTargetsOnce(t *testing.T) {
	g := NewWithT(t)
	config, web, api, job := configMap("config", "A"), deployment("web"), deployment("api"), workloadOf(workload.CronJob, "report")
	gone := deployment("gone")
	gone.missing = true
	s := settled(config, web, api, job, gone)
	s.requested = firstRequest
	made := s.pass()
	g.Expect(made.restarted()).To(Equal([]string{"web", "api"}))
	g.Expect(made.restarts[0].Cause).To(Equal("a restart was requested at 2026-01-02T03:04:30Z"))
	g.Expect(s.status.RestartRequestedAt.UTC().Format(time.RFC3339)).To(Equal(firstRequest))
	g.Expect(s.said(job)).To(Equal("UpToDate NoRestartNeeded"))
	g.Expect(s.row(web).Message).To(Equal("a restart was requested at 2026-01-02T03:04:30Z"))

	s.reload()
	gone.missing = false
	for range 3 {
		g.Expect(s.pass().restarts).To(BeEmpty(), "once, and not for one that is new since")
	}
	s.requested = secondRequest
	g.Expect(s.pass().restarted()).To(Equal([]string{"web", "api", "gone"}))
}

func TestE8ARequestIsActedOnIfItIsLaterThanTheOneBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		value    string
		restarts int
	}{
		"later":                                {secondRequest, 1},
		"later, in another time zone":          {"2026-01-02T05:04:31+02:00", 1},
		"long after now":                       {"2036-01-02T03:04:30Z", 0},
		"the same":                             {firstRequest, 0},
		"the same, in another time zone":       {"2026-01-02T04:04:30+01:00", 0},
		"the same second":                      {"2026-01-02T03:04:30.999Z", 0},
		"older":                                {"2026-01-02T03:04:29Z", 0},
		"older, though it looks later":         {"2026-01-02T05:04:30+04:00", 0},
		"nothing":                              {"", 0},
		"not a time":                           {"now", 0},
		"a time without a zone":                {"2026-01-02T03:04:31", 0},
		"a time as kubectl rollout writes not": {"1767323071", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := settled(configMap("config", "A"), deployment("web"))
			s.requested = firstRequest
			s.pass()
			s.targets[0].done()
			s.pass()
			s.reload()
			s.requested = tc.value
			g.Expect(s.pass().restarts).To(HaveLen(tc.restarts))
			g.Expect(s.pass().restarts).To(BeEmpty())
		})
	}
}

func TestE5ARequestFromBeforeAConfigWatchWasSeenIsPartOfTheBaseline(t *testing.T) {
	g := NewWithT(t)
	s := newScene(configMap("config", "A"), deployment("web"))
	s.requested = firstRequest
	for range 3 {
		g.Expect(s.pass().restarts).To(BeEmpty())
	}
	s.requested = secondRequest
	g.Expect(s.pass().restarts).To(HaveLen(1))
}

func TestAnInvalidRequestStalls(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.requested = "tomorrow"
	stalled := s.pass()
	g.Expect(stalled.restarts).To(BeEmpty())
	g.Expect(stalled.reasons()).To(ConsistOf(v1alpha1.EventStalled))
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionStalled, "True InvalidAnnotation"))
	g.Expect(s.message(v1alpha1.ConditionStalled)).To(Equal(`annotation configwatch.ktechhub.io/restart-requested-at: ` +
		`"tomorrow" is not a time: write the present time, such as 2026-01-02T15:04:05Z`))
	config.set("B")
	g.Expect(s.pass().restarts).To(HaveLen(1), "it is in the way of nothing else")
	web.done()
	s.requested = firstRequest
	g.Expect(s.pass().restarts).To(HaveLen(1))
	g.Expect(conditions(s)).NotTo(HaveKey(v1alpha1.ConditionStalled))
}

// Time makes it a request like any other, so that there has to be a pass then.
func TestE28ARequestFromTheFutureIsLookedAtWhenItIsTime(t *testing.T) {
	g := NewWithT(t)
	s := settled(configMap("config", "A"), deployment("web"))
	s.requested = "2026-01-02T04:00:00+00:00"
	stalled := s.pass()
	g.Expect(stalled.restarts).To(BeEmpty())
	g.Expect(conditions(s)).To(HaveKeyWithValue(v1alpha1.ConditionStalled, "True InvalidAnnotation"))
	g.Expect(stalled.lookAgain).To(BeTemporally("==", time.Date(2026, 1, 2, 3, 55, 0, 0, time.UTC)))
	s.reload()
	g.Expect(s.at(stalled.lookAgain.Add(-time.Microsecond)).restarts).To(BeEmpty())
	g.Expect(s.at(stalled.lookAgain).restarts).To(HaveLen(1))
	g.Expect(conditions(s)).NotTo(HaveKey(v1alpha1.ConditionStalled))
}

// E14: what a human asks for waits for no time, no approval, and no failure.
func TestE14ARequestPassesWhatIsForChanges(t *testing.T) {
	for name, prepare := range map[string]func(s *scene, config *src, d []*tgt){
		"settling": func(s *scene, config *src, _ []*tgt) {
			s.rollout.SettleSeconds = new(int32(3600))
			config.set("B")
		},
		"a cooldown": func(s *scene, config *src, d []*tgt) {
			s.rollout.CooldownSeconds = new(int32(3600))
			config.set("B")
			s.pass()
			d[0].done()
			d[1].done()
			config.set("C")
		},
		"approval": func(s *scene, config *src, _ []*tgt) {
			s.rollout.Approval = v1alpha1.ApprovalManual
			config.set("B")
		},
		"windows": func(s *scene, config *src, _ []*tgt) {
			s.now = s.now.Add(time.Hour)
			s.rollout.Windows = []v1alpha1.Window{nightly}
			config.set("B")
		},
		"a halt": func(s *scene, config *src, d []*tgt) {
			s.rollout.MaxConcurrent = 1
			config.set("B")
			s.pass()
			d[0].fails()
			s.pass()
			s.rollout.MaxConcurrent = 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(2)
			prepare(s, config, d)
			g.Expect(s.pass().restarts).To(BeEmpty())
			s.requested = firstRequest
			made := s.pass()
			g.Expect(made.restarted()).To(Equal([]string{"d0", "d1"}))
			g.Expect(made.restarts[1].Cause).To(Equal("ConfigMap config changed (KEY); a restart was requested at 2026-01-02T03:04:30Z"))
			g.Expect(s.applied(d[1], config)).To(Equal(config.content().Hash(nil)), "it is for the change as well")
			g.Expect(s.row(d[1]).Wait).To(BeNil())
			g.Expect(s.pass().restarts).To(BeEmpty())
		})
	}
}

func TestE16ARequestWaitsForItsTurn(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(3)
	s.rollout.MaxConcurrent, s.rollout.Approval = 1, v1alpha1.ApprovalManual
	s.requested = firstRequest
	g.Expect(s.pass().restarted()).To(Equal([]string{"d0"}))
	g.Expect(s.said(d[1])).To(Equal("Pending AwaitingTurn"))
	g.Expect(s.row(d[1]).Message).To(HavePrefix("a restart was requested at 2026-01-02T03:04:30Z. It waits for its turn"))

	s.reload()
	d[0].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d1"}), "it is remembered that it was asked for")
	config.set("B")
	d[1].done()
	g.Expect(s.pass().restarted()).To(Equal([]string{"d2"}), "also when there is a change besides")
	g.Expect(s.said(d[0])).To(Equal("Pending AwaitingApproval"), "which is another matter for those that were restarted")
	d[2].done()
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(d[2])).To(Equal("UpToDate RolloutComplete"))
}

// Only the latest of several requests is said.
func TestE27AFurtherRequestTakesThePlaceOfTheOneBefore(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(1)
	s.mode = v1alpha1.ModeSuspended
	config.set("B")
	s.pass()
	for _, request := range []string{firstRequest, secondRequest} {
		s.requested = request
		for range 2 {
			s.pass()
			g.Expect(s.row(d[0]).Message).To(Equal("ConfigMap config changed (KEY); a restart was requested at " + request))
		}
	}
}

func TestE19ARequestWaitsForTheMode(t *testing.T) {
	for _, mode := range []v1alpha1.Mode{v1alpha1.ModeDryRun, v1alpha1.ModeSuspended} {
		t.Run(string(mode), func(t *testing.T) {
			g := NewWithT(t)
			_, d, s := fleet(1)
			s.mode = mode
			s.requested = firstRequest
			g.Expect(s.pass().reasons()).To(ConsistOf(v1alpha1.EventRestartHeld))
			g.Expect(s.said(d[0])).To(Equal("Pending " + string(mode)))
			s.requested = ""
			s.reload()
			g.Expect(s.pass().restarts).To(BeEmpty())
			s.mode = v1alpha1.ModeActive
			made := s.pass()
			g.Expect(made.cause()).To(Equal("a restart was requested at 2026-01-02T03:04:30Z"), "though the annotation is gone")
			g.Expect(s.pass().restarts).To(BeEmpty())
		})
	}
}

// E13: another rollout is as good as the one that was asked for.
func TestE13ARolloutSupersedesARequestThatWaits(t *testing.T) {
	g := NewWithT(t)
	_, d, s := fleet(2)
	s.rollout.MaxConcurrent = 1
	s.requested = firstRequest
	s.pass()
	d[1].roll("new")
	d[0].done()
	g.Expect(s.pass().reasons()).To(ContainElement(v1alpha1.EventRestartSuperseded))
	g.Expect(s.pass().restarts).To(BeEmpty())
}

// But not one from before it was asked for.
func TestE13ARequestIsNotSupersededByWhatCameBeforeIt(t *testing.T) {
	g := NewWithT(t)
	_, web, s := waiting()
	web.roll("new")
	s.requested = secondRequest
	g.Expect(s.after(10 * time.Second).restarts).To(HaveLen(1))
}

// It waits for something else, and so did the change before the rollout that came before the request.
func TestE13ARequestThatWaitsIsNotSupersededByWhatCameBeforeIt(t *testing.T) {
	g := NewWithT(t)
	_, web, s := waiting()
	s.mode = v1alpha1.ModeSuspended
	s.after(time.Second)
	web.roll("new")
	web.done()
	s.requested = secondRequest
	g.Expect(s.after(time.Second).restarts).To(BeEmpty())
	g.Expect(s.after(time.Second).events).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("Pending Suspended"))
	s.mode = v1alpha1.ModeActive
	g.Expect(s.after(time.Second).restarts).To(HaveLen(1))
}

func TestE9ARequestWhoseRestartIsNotRecordedIsNoSecondRestart(t *testing.T) {
	for name, waits := range map[string]bool{"made at once": false, "made after it had to wait": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, d, s := fleet(1)
			if waits {
				s.mode = v1alpha1.ModeSuspended
			}
			s.requested = firstRequest
			if waits {
				s.pass()
				s.mode = v1alpha1.ModeActive
			}
			g.Expect(s.lost().restarts).To(HaveLen(1))
			s.reload()
			g.Expect(s.pass().restarts).To(BeEmpty())
			g.Expect(s.status.RestartRequestedAt).NotTo(BeNil())
			g.Expect(s.row(d[0]).Restarts).To(Equal(int64(1)))
			g.Expect(s.row(d[0]).Message).To(Equal("a restart was requested at 2026-01-02T03:04:30Z"))
			d[0].done()
			for range 3 {
				g.Expect(s.pass().restarts).To(BeEmpty())
			}
		})
	}
}

// E11: a request is tried until it succeeds.
func TestE11ARequestThatIsRefusedIsNotForgotten(t *testing.T) {
	g := NewWithT(t)
	_, d, s := fleet(2)
	s.requested = firstRequest
	s.refused(errRefused, d[0])
	g.Expect(s.said(d[0])).To(Equal("Pending RestartFailed"))
	s.reload()
	made := s.pass()
	g.Expect(made.restarted()).To(Equal([]string{"d0"}))
	g.Expect(made.cause()).To(Equal("a restart was requested at 2026-01-02T03:04:30Z"))
}

// The status says that the request was acted on, so that each target has to remember it.
func TestE11ARequestIsNotForgottenWhile(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare, during, after func(s *scene, config *src, web *tgt)
	}{
		"the target can't be read": {
			func(*scene, *src, *tgt) {},
			func(_ *scene, _ *src, web *tgt) { web.unreadable = true },
			func(_ *scene, _ *src, web *tgt) { web.unreadable = false },
		},
		"a source of a change that is owed can't be read": {
			func(s *scene, config *src, _ *tgt) {
				s.mode = v1alpha1.ModeSuspended
				config.set("B")
				s.pass()
				s.mode = v1alpha1.ModeActive
			},
			func(_ *scene, config *src, _ *tgt) { config.unreadable = true },
			func(_ *scene, config *src, _ *tgt) {
				config.unreadable = false
				config.set("A")
			},
		},
		"it can't be said what is selected": {
			func(*scene, *src, *tgt) {},
			func(s *scene, _ *src, _ *tgt) {
				s.incomplete, s.problems = true, []plan.Problem{{Reason: v1alpha1.ReasonTooManyMatches, Message: "too many"}}
			},
			func(s *scene, _ *src, _ *tgt) { s.incomplete, s.problems = false, nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			tc.prepare(s, config, web)
			tc.during(s, config, web)
			s.requested = firstRequest
			for range 2 {
				g.Expect(s.pass().restarts).To(BeEmpty())
			}
			tc.after(s, config, web)
			s.reload()
			g.Expect(s.pass().restarts).To(HaveLen(1))
			g.Expect(s.pass().restarts).To(BeEmpty())
		})
	}
}

// E22: that goes for a CronJob which can't be read just then as well.
func TestE22ARequestIsNothingToACronJob(t *testing.T) {
	g := NewWithT(t)
	job := workloadOf(workload.CronJob, "report")
	s := settled(configMap("config", "A"), job)
	job.unreadable = true
	s.requested = firstRequest
	s.pass()
	job.unreadable = false
	for range 2 {
		g.Expect(s.pass().restarts).To(BeEmpty())
		g.Expect(s.said(job)).To(Equal("UpToDate NoRestartNeeded"))
		g.Expect(s.row(job).Wait).To(BeNil())
	}
}

// A change that turns out to be old news doesn't take the request with it.
func TestE11ARequestIsNotForgottenWhileTheCacheIsBehind(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	config.former = nil
	s.requested = firstRequest
	behind := s.refused(source.ErrBehind)
	g.Expect(behind.restarts).To(HaveLen(1))
	g.Expect(behind.events).To(BeEmpty())
	config.set("A")
	s.reload()
	g.Expect(s.pass().restarts).To(HaveLen(1))
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("RollingOut RolloutInProgress"))
}

// The manager is killed between a restart and its record, and a request is made before there is another one.
func TestE9ARequestThatComesAfterARestartWhoseRecordWasLostIsServedOnce(t *testing.T) {
	for name, first := range map[string]func(s *scene, config *src){
		"a restart for a change": func(_ *scene, config *src) { config.set("B") },
		"a restart that had to wait": func(s *scene, config *src) {
			s.mode = v1alpha1.ModeSuspended
			config.set("B")
			s.pass()
			s.mode = v1alpha1.ModeActive
		},
		"a restart that was asked for": func(s *scene, _ *src) { s.requested = firstRequest },
		"a restart for both":           func(s *scene, config *src) { s.requested = firstRequest; config.set("B") },
		"a restart that was asked for and had to wait": func(s *scene, _ *src) {
			s.mode = v1alpha1.ModeSuspended
			s.requested = firstRequest
			s.pass()
			s.mode = v1alpha1.ModeActive
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, d, s := fleet(1)
			first(s, config)
			g.Expect(s.lost().restarts).To(HaveLen(1))
			s.requested = secondRequest
			s.reload()
			made := s.pass()
			g.Expect(made.cause()).To(Equal("a restart was requested at " + secondRequest))
			g.Expect(made.reasons()).To(Equal([]string{v1alpha1.EventRestartTriggered, v1alpha1.EventRestartTriggered}), "the one that was lost, too")
			g.Expect(s.row(d[0]).Restarts).To(Equal(int64(2)))
			g.Expect(s.applied(d[0], config)).To(Equal(config.content().Hash(nil)))
			d[0].done()
			for range 3 {
				s.reload()
				g.Expect(s.pass().restarts).To(BeEmpty())
			}
			g.Expect(s.said(d[0])).To(Equal("UpToDate RolloutComplete"))
		})
	}
}

func TestE9ALaterRequestIsNotForgottenWhile(t *testing.T) {
	for name, tc := range map[string]struct{ during, after func(s *scene, config *src) }{
		"the mode is Suspended": {
			func(s *scene, _ *src) { s.mode = v1alpha1.ModeSuspended },
			func(s *scene, _ *src) { s.mode = v1alpha1.ModeActive },
		},
		"it is killed once more": {
			func(s *scene, _ *src) { s.lost() },
			func(*scene, *src) {},
		},
		"it can't be said what was restarted": {
			func(_ *scene, config *src) { config.unreadable = true },
			func(_ *scene, config *src) { config.unreadable = false },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, other, web := configMap("config", "A"), configMap("other", "A"), deployment("web")
			s := settled(config, other, web)
			config.set("B")
			g.Expect(s.lost().restarts).To(HaveLen(1))
			s.requested = secondRequest
			tc.during(s, config)
			s.reload()
			s.pass()
			s.reload()
			tc.after(s, config)
			s.pass()
			web.done()
			for range 3 {
				s.reload()
				g.Expect(s.pass().restarts).To(BeEmpty())
			}
			g.Expect(s.row(web).Restarts).To(Equal(int64(2)))
			g.Expect(web.mark()).To(MatchRegexp("^2-[0-9a-f]{16}-" + secondRequest + "$"))
			g.Expect(s.said(web)).To(Equal("UpToDate RolloutComplete"))
		})
	}
}
