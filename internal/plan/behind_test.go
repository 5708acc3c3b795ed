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
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

// errBehind is what comes of confirming two sources, one of which the cache is behind.
var errBehind = errors.Join(fmt.Errorf("ConfigMap config: %w", source.ErrBehind), nil)

func TestE11ACacheThatIsBehindLeavesTheRowAsItIsAndTheOthersGoOn(t *testing.T) {
	for name, prepare := range map[string]func(s *scene, web *tgt){
		"up to date": func(*scene, *tgt) {},
		"refused before": func(s *scene, web *tgt) {
			s.sources[0].set("0")
			s.refused(errRefused, web)
		},
		"rolling out": func(s *scene, _ *tgt) {
			s.sources[0].set("0")
			s.pass()
			s.pass()
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, other, web, api := configMap("config", "A"), configMap("other", "A"), deployment("web"), deployment("api")
			web.uses, api.uses = []*src{config}, []*src{other}
			s := settled(config, other, web, api)
			prepare(s, web)
			before := s.row(web)
			config.set("B")
			other.set("B")
			behind := s.refused(errBehind, web)
			g.Expect(behind.restarted()).To(ConsistOf("web", "api"))
			g.Expect(behind.reasons()).To(ConsistOf(v1alpha1.EventRestartTriggered), "that the cache is behind is no news")
			g.Expect(s.row(web)).To(Equal(before))
			g.Expect(s.row(api).Restarts).To(Equal(int64(1)))

			s.reload()
			made := s.pass()
			g.Expect(made.restarted()).To(ConsistOf("web"))
			g.Expect(made.restarts[0].Mark.Number).To(Equal(before.Restarts + 1))
			g.Expect(s.pass().restarts).To(BeEmpty())
		})
	}
}

// What the cache showed was old: nothing has changed.
func TestE9OldNewsIsNoRestart(t *testing.T) {
	g := NewWithT(t)
	config, web := configMap("config", "A"), deployment("web")
	s := settled(config, web)
	config.set("0")
	s.refused(errBehind)
	config.set("A")
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.said(web)).To(Equal("UpToDate Baseline"))
	g.Expect(s.row(web).RecentChanges).To(BeEmpty())
}

// A source that a selector newly matches is known by its absence from the record. That must not be lost.
func TestE6AnAppearanceIsNotLostWhileTheCacheIsBehind(t *testing.T) {
	g := NewWithT(t)
	config, more, web := configMap("config", "A"), configMap("more", "-").bySelector().when("AM"), deployment("web")
	s := settled(config, more, web)
	more.set("A")
	behind := s.refused(errBehind)
	g.Expect(behind.restarts).To(HaveLen(1))
	s.reload()
	g.Expect(s.pass().cause()).To(Equal("ConfigMap more appeared"))
	g.Expect(s.pass().restarts).To(BeEmpty())
}

// E16: it is tried again at once, and takes a place as soon as it can.
func TestE16ATargetWhoseCacheIsBehindIsFirstAgain(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(2)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	g.Expect(s.refused(errBehind).restarted()).To(Equal([]string{"d0"}))
	g.Expect(s.said(d[0])).To(Equal("UpToDate Baseline"))
	g.Expect(s.said(d[1])).To(Equal("Pending AwaitingTurn"))
	g.Expect(s.after(time.Second).restarted()).To(Equal([]string{"d0"}))
}

// A wait that has begun goes on where it was.
func TestE12ACacheThatIsBehindEndsNoWait(t *testing.T) {
	g := NewWithT(t)
	_, web, s := waiting()
	before := s.row(web)
	s.now = s.now.Add(time.Minute)
	g.Expect(s.refused(errBehind).restarts).To(HaveLen(1))
	g.Expect(s.row(web)).To(Equal(before))
	g.Expect(s.after(time.Second).restarts).To(HaveLen(1))
}
