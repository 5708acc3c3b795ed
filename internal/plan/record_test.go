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
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/workload"
)

var errRefused = errors.New("refused")

func TestE4APairIsAdvancedOnlyOnceItsRestartIsMade(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	before := s.applied(web, config)

	config.set("B")
	s.refused(errRefused)
	g.Expect(s.applied(web, config)).To(Equal(before))
	g.Expect(s.status.Sources[0].Hash).To(Equal(string(config.content().Hash(nil))), "the observed hash is kept apart")

	s.pass()
	g.Expect(s.applied(web, config)).To(Equal(config.content().Hash(nil)))
}

func TestE4APairIsAdvancedWhenItsChangeCallsForNoRestart(t *testing.T) {
	g := NewWithT(t)
	quiet, loud, web := configMap("quiet", "A").when("D"), configMap("loud", "A"), deployment("web")
	s := settled(quiet, loud, web)

	quiet.set("B")
	loud.set("B")
	s.refused(errRefused)
	g.Expect(s.applied(web, quiet)).To(Equal(quiet.content().Hash(nil)))
	g.Expect(s.applied(web, loud)).NotTo(Equal(loud.content().Hash(nil)))
}

func TestE4TargetsAreAdvancedApart(t *testing.T) {
	g := NewWithT(t)
	config, one, other := configMap("config", "A"), deployment("one"), deployment("other")
	s := settled(config, one, other)

	config.set("B")
	s.refused(errRefused, one)
	g.Expect(s.applied(one, config)).NotTo(Equal(s.applied(other, config)))
	g.Expect(s.pass().restarted()).To(ConsistOf("one"))
	g.Expect(s.applied(one, config)).To(Equal(s.applied(other, config)))
}

// Each edit is made while everything is up to date, together with nothing else.
func TestE5NothingRestartsBecauseOf(t *testing.T) {
	config, other, third := configMap("config", "A"), configMap("other", "A"), configMap("third", "A").bySelector()
	web, api := deployment("web"), deployment("api")
	for name, change := range map[string]func(s *scene){
		"a new ConfigWatch":      func(s *scene) { s.status = v1alpha1.ConfigWatchStatus{} },
		"a new source":           func(s *scene) { s.edit(func() { s.sources = append(s.sources, other) }) },
		"a new selector":         func(s *scene) { s.edit(func() { s.sources = append(s.sources, third.when("AMD")) }) },
		"a new target":           func(s *scene) { s.edit(func() { s.targets = append(s.targets, api) }) },
		"another target":         func(s *scene) { s.edit(func() { s.targets = []*tgt{api} }) },
		"fewer sources":          func(s *scene) { s.edit(func() { s.sources = s.sources[:1] }) },
		"a target that appears":  func(s *scene) { s.targets = append(s.targets, api) },
		"a re-created target":    func(*scene) { web.recreate() },
		"keys":                   func(s *scene) { s.edit(func() { config.keys = []string{"KEY"} }) },
		"other keys":             func(s *scene) { s.edit(func() { config.keys = []string{"ELSE"} }) },
		"restartOn":              func(s *scene) { s.edit(func() { config.when("AD") }) },
		"DryRun":                 func(s *scene) { s.edit(func() { s.mode = v1alpha1.ModeDryRun }) },
		"Suspended":              func(s *scene) { s.edit(func() { s.mode = v1alpha1.ModeSuspended }) },
		"following all sources":  func(s *scene) { s.edit(func() { web.uses = nil }) },
		"following fewer":        func(s *scene) { s.edit(func() { web.uses = []*src{} }) },
		"a new reference":        func(*scene) { web.uses = append(web.uses, s2) },
		"a source that is known": func(*scene) { web.uses = append(web.uses, s3) },
		"ignoring a source":      func(*scene) { config.ignored = true },
		"ignoring a target":      func(*scene) { web.ignored = true },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			*config, *other, *third = *configMap("config", "A"), *configMap("other", "A"), *configMap("third", "A").bySelector().when("AMD")
			*s2, *s3 = *configMap("referenced", "A"), *configMap("selected", "A").bySelector().when("AMD")
			*web, *api = *deployment("web"), *deployment("api")
			web.uses = []*src{config}
			s := settled(config, s2, s3, web)

			change(s)
			for range 3 {
				g.Expect(s.pass().restarts).To(BeEmpty())
			}
			g.Expect(s.targets[0].mark()).To(BeEmpty())
		})
	}
}

// s2 and s3 are sources that the target of TestE5NothingRestartsBecauseOf does not use at first.
var s2, s3 = &src{}, &src{}

func TestE5UnignoringRestartsNothing(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.ignored, web.ignored = true, true
	s.pass()
	config.set("B")
	s.pass()
	config.ignored, web.ignored = false, false
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetUpToDate))

	config.set("C")
	g.Expect(s.pass().restarted()).To(ConsistOf("web"))
}

// A source that was deleted while that called for no restart calls for none when the spec says
// otherwise later.
func TestE5AnEditOfRestartOnDoesNotActOnADeletionOfBefore(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("-")
	s.pass()

	s.edit(func() { config.when("MD") })
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.pass().restarts).To(BeEmpty())

	config.set("A")
	g.Expect(s.pass().restarts).To(BeEmpty(), "it comes back as it was")
	config.set("-")
	g.Expect(s.pass().restarts).To(HaveLen(1), "this deletion is one under the present spec")
}

func TestE5AnEditTogetherWithADeletionActsOnTheDeletion(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("-")
	s.edit(func() { config.when("MD") })
	g.Expect(s.pass().restarts).To(HaveLen(1))
}

// Helm and kubectl apply a changed ConfigMap and a changed ConfigWatch in one go.
func TestE4AChangeTogetherWithAnEditOfKeysIsNotLost(t *testing.T) {
	for name, tc := range map[string]struct {
		content  data
		restarts int
	}{
		"other content": {data{"KEY": "B"}, 1},
		"same content":  {data{"KEY": "A"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			config.write(tc.content)
			s.edit(func() { config.keys = []string{"KEY"} })
			g.Expect(s.pass().restarts).To(HaveLen(tc.restarts))
			g.Expect(s.pass().restarts).To(BeEmpty())
			g.Expect(s.applied(web, config)).To(Equal(config.content().Hash(config.keys)))
		})
	}
}

func TestE4AnEditOfKeysWhileARestartIsOwedLosesNothing(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.refused(errRefused)
	s.edit(func() { config.keys = []string{"KEY"} })
	s.refused(errRefused)
	g.Expect(s.pass().restarts).To(HaveLen(1))
	g.Expect(s.pass().restarts).To(BeEmpty())
}

// The columns are the restarts by restartOn: M for Modified, A for Added, D for Deleted.
func TestE6RestartOnSaysWhichTransitionsRestart(t *testing.T) {
	columns := []string{"M", "A", "D", "AM", "MD", "AD", "AMD"}
	for contents, restarts := range map[string][]int{
		"A":         {0, 0, 0, 0, 0, 0, 0},
		"-":         {0, 0, 0, 0, 0, 0, 0},
		"A A":       {0, 0, 0, 0, 0, 0, 0},
		"- -":       {0, 0, 0, 0, 0, 0, 0},
		"A B":       {1, 0, 0, 1, 1, 0, 1},
		"A -":       {0, 0, 1, 0, 1, 1, 1},
		"- A":       {0, 1, 0, 1, 0, 1, 1},
		"A B A":     {2, 0, 0, 2, 2, 0, 2},
		"A - A":     {0, 0, 1, 0, 1, 2, 2}, // unless the deletion restarted it, nothing has changed
		"A - - A":   {0, 0, 1, 0, 1, 2, 2},
		"A - B":     {1, 0, 1, 1, 2, 2, 2},
		"A - A B":   {1, 0, 1, 1, 2, 2, 3},
		"A - B A":   {2, 0, 1, 2, 3, 2, 3},
		"- A -":     {0, 1, 1, 1, 1, 2, 2},
		"- A B":     {1, 1, 0, 2, 1, 1, 2},
		"- A - A":   {0, 1, 1, 1, 1, 3, 3},
		"- A - B":   {1, 1, 1, 2, 2, 3, 3},
		"A - A - A": {0, 0, 2, 0, 2, 4, 4},
		"A B - B":   {1, 0, 1, 1, 2, 2, 3},
		"A B - A":   {2, 0, 1, 2, 3, 2, 3},
	} {
		for i, restartOn := range columns {
			t.Run(strings.ReplaceAll(contents, " ", "")+" on "+restartOn, func(t *testing.T) {
				g := NewWithT(t)
				steps := strings.Fields(contents)
				config, web := configMap("config", steps[0]).when(restartOn), deployment("web")
				s := settled(config, web)
				made := 0
				for _, content := range steps[1:] {
					config.set(content)
					made += len(s.pass().restarts)
					g.Expect(s.pass().restarts).To(BeEmpty())
				}
				g.Expect(made).To(Equal(restarts[i]))
			})
		}
	}
}

func TestE6AReturnIsComparedWithWhatTheSourceWasBefore(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, configMap("other", "A"), web)
	config.set("-")
	deleted := s.pass()
	g.Expect(deleted.reasons()).To(ConsistOf(v1alpha1.EventNotRestarted))
	g.Expect(deleted.note(v1alpha1.EventNotRestarted)).To(Equal(
		"Deployment shop/web was not restarted: ConfigMap config was deleted, and restartOn is Modified"))
	g.Expect(s.pass().events).To(BeEmpty(), "it is told once")

	config.set("B")
	g.Expect(s.pass().cause()).To(Equal("ConfigMap config changed (KEY)"), "it says what calls for the restart")
}

func TestE6AReturnAfterARestartWithoutTheSource(t *testing.T) {
	for name, tc := range map[string]struct {
		restartOn, content string
		cause              types.GomegaMatcher
	}{
		"same content, Added is listed":         {"AD", "A", Equal("ConfigMap config appeared")},
		"same content, Added is not listed":     {"MD", "A", BeEmpty()},
		"other content, only Added is listed":   {"AD", "B", Equal("ConfigMap config appeared")},
		"other content, Modified is listed":     {"MD", "B", Equal("ConfigMap config changed (KEY)")},
		"other content, both are listed":        {"AMD", "B", Equal("ConfigMap config appeared")},
		"other content, neither of them listed": {"D", "B", BeEmpty()},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A").when(tc.restartOn), deployment("web")
			s := settled(config, web)
			config.set("-")
			g.Expect(s.pass().cause()).To(Equal("ConfigMap config was deleted"))
			config.set(tc.content)
			g.Expect(s.pass().cause()).To(tc.cause)
		})
	}
}

func TestE6ASourceThatASelectorNewlyMatches(t *testing.T) {
	for name, tc := range map[string]struct {
		restartOn string
		when      func(s *scene)
		restarts  int
	}{
		"Added is listed":                  {"AM", func(*scene) {}, 1},
		"Added is not listed":              {"MD", func(*scene) {}, 0},
		"because the selector was edited":  {"AM", func(s *scene) { s.generation++ }, 0},
		"while the target is new":          {"AM", func(s *scene) { s.targets[0].recreate() }, 0},
		"while it is by name in the spec":  {"AM", func(s *scene) { s.sources[1].selected = false }, 0},
		"while it can't be read":           {"AM", func(s *scene) { s.sources[1].unreadable = true }, 0},
		"after a selector was no good":     {"AM", stalledBy(v1alpha1.ReasonInvalidSelector), 0},
		"after there were too many":        {"AM", stalledBy(v1alpha1.ReasonTooManyMatches), 0},
		"after sources could not be read":  {"AM", stalledBy(v1alpha1.ReasonPermissionDenied), 0},
		"after none of the sources was to": {"AM", stalledBy(v1alpha1.ReasonNoSources), 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			s := settled(config, web)
			s.sources = append(s.sources, configMap("more", "A").bySelector().when(tc.restartOn))
			tc.when(s)
			g.Expect(s.pass().restarts).To(HaveLen(tc.restarts))
			g.Expect(s.pass().restarts).To(BeEmpty())
		})
	}
}

// stalledBy makes the recorded pass one that was stalled.
func stalledBy(reason string) func(*scene) {
	return func(s *scene) {
		s.status.Conditions = append(s.status.Conditions, conditionOf(v1alpha1.ConditionStalled, reason))
	}
}

// A refused patch is no sign that sources could not be read.
func TestE6ASourceThatAppearsWhileAPatchIsForbidden(t *testing.T) {
	g := NewWithT(t)
	config, web, api := configMap("config", "A"), deployment("web"), deployment("api")
	web.uses = []*src{config}
	s := settled(config, web, api)
	config.set("B")
	s.refused(forbidden(), web)
	s.sources = append(s.sources, configMap("more", "A").bySelector().when("A"))
	g.Expect(s.refused(forbidden(), web).restarted()).To(ConsistOf("web", "api"))
}

func TestE6AnAppearanceIsNotLostWhileItsRestartIsRefused(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.sources = append(s.sources, configMap("more", "A").bySelector().when("A"))
	s.refused(errRefused)
	s.edit(func() { s.mode = v1alpha1.ModeSuspended })
	s.pass()
	s.edit(func() { s.mode = v1alpha1.ModeActive })
	g.Expect(s.pass().restarts).To(HaveLen(1))
	g.Expect(s.pass().restarts).To(BeEmpty())
}

func TestE7AChangeWhileNoOperatorRanIsActedOnOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		content  string
		restarts []string
	}{
		"content differs at the first pass": {"B", []string{"web"}},
		"nothing differs at the first pass": {"A", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, web := configMap("config", "A"), deployment("web")
			status := settled(config, web).status

			config.set(tc.content)
			config.former = nil // nothing is remembered in memory
			s := newScene(config, web)
			s.status = status
			g.Expect(s.pass().restarted()).To(Equal(tc.restarts))
			g.Expect(s.pass().restarts).To(BeEmpty())
			g.Expect(s.pass().restarts).To(BeEmpty())
		})
	}
}

func TestE3HashesOfAnotherKeyOrVersionAreANewBaseline(t *testing.T) {
	for name, other := range map[string]*digest.Hasher{
		"another key": digest.Keyed([]byte("another key")),
		"another way": digest.Plain(),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			password, web, api := secret("password", "A"), deployment("web"), deployment("api")
			s := settled(password, web, api)

			password.hasher = other
			rebased := s.pass()
			g.Expect(rebased.restarts).To(BeEmpty())
			g.Expect(rebased.reasons()).To(ConsistOf(v1alpha1.EventNewBaseline), "one event, however many targets")
			g.Expect(rebased.events[0].Type).To(Equal("Warning"))
			g.Expect(s.applied(web, password)).To(Equal(password.content().Hash(nil)))
			g.Expect(s.pass().events).To(BeEmpty())

			password.set("B")
			g.Expect(s.pass().restarted()).To(ConsistOf("web", "api"))
		})
	}
}

func TestE3AHashOfAnotherVersionIsANewBaseline(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	s.status.Targets[0].Sources[0].AppliedHash = "0:0123456789abcdef"
	s.status.Sources[0].Hash = "0:0123456789abcdef"
	rebased := s.pass()
	g.Expect(rebased.restarts).To(BeEmpty())
	g.Expect(rebased.reasons()).To(ConsistOf(v1alpha1.EventNewBaseline))
	g.Expect(s.pass().events).To(BeEmpty())
}

func TestE3ANewKeyWhileARestartIsOwedLosesNothing(t *testing.T) {
	g := NewWithT(t)
	password, web := secret("password", "A"), deployment("web")
	s := settled(password, web)
	password.set("B")
	s.refused(errRefused)
	password.hasher = digest.Keyed([]byte("another key"))
	g.Expect(s.pass().restarted()).To(ConsistOf("web"))
	g.Expect(s.pass().restarts).To(BeEmpty())
}

func TestE3ANewKeyWhileASecretIsAway(t *testing.T) {
	g := NewWithT(t)
	password, web := secret("password", "A"), deployment("web")
	s := settled(password, web)
	password.set("-")
	s.pass()
	password.hasher = digest.Keyed([]byte("another key"))
	g.Expect(s.pass().restarts).To(BeEmpty())
	password.set("A")
	back := s.pass()
	g.Expect(back.restarts).To(BeEmpty())
	g.Expect(back.reasons()).To(ConsistOf(v1alpha1.EventNewBaseline))
}

// A scope tells which keys a hash is of: it is part of the format, but no other way of hashing.
func TestE3AnEditOfKeysIsNoWarning(t *testing.T) {
	g := NewWithT(t)
	password, web := secret("password", "A"), deployment("web")
	s := settled(password, web)
	s.edit(func() { password.keys = []string{"KEY"} })
	g.Expect(s.pass().events).To(BeEmpty())
	g.Expect(s.applied(web, password)).To(Equal(password.content().Hash(password.keys)))
}

func TestE5ARecreatedWorkloadsRolloutIsNotThisOperators(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("B")
	s.pass()
	web.rollout.Progress = workload.Complete
	s.pass()

	web.recreate()
	g.Expect(s.pass().events).To(BeEmpty())
	g.Expect(s.row(web).State).To(Equal(v1alpha1.TargetRollingOut))
	g.Expect(s.row(web).LastRestartTime).To(BeNil(), "it was another workload that was restarted")
	web.rollout.Progress = workload.Complete
	g.Expect(s.pass().events).To(BeEmpty())
	g.Expect(s.row(web).Reason).To(Equal(v1alpha1.ReasonBaseline))
}
