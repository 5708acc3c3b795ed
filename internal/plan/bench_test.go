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

	"github.com/ktechhub/configwatch/internal/plan"
)

// BenchmarkPass is a whole pass of the decision. What grows with targets and sources must grow no faster
// than their pairs: ns/pair must not rise.
func BenchmarkPass(b *testing.B) {
	for _, size := range []struct{ targets, sources, each int }{
		{1, 1, 1}, {100, 100, 1}, {1000, 1000, 1}, {1, 1000, 1000}, {5, 1000, 1000}, {1000, 5, 5},
	} {
		for name, prepare := range map[string]func(*scene){
			"steady": func(*scene) {},
			"stale":  changeAll,
			"owed": func(s *scene) {
				changeAll(s)
				s.refused(errRefused)
			},
		} {
			b.Run(fmt.Sprintf("%s/%d targets of %d sources, %d each", name, size.targets, size.sources, size.each), func(b *testing.B) {
				s := benchmarkScene(size.targets, size.sources, size.each)
				prepare(s)
				input := plan.Input{
					Name: watchName, Generation: s.generation, Mode: s.mode, Rollout: s.rollout, Recorded: &s.status, Observed: s.observe(), Now: s.now,
				}
				b.ReportAllocs()
				for b.Loop() {
					decision := plan.Decide(input)
					decision.Conclude(make([]error, len(decision.Restarts)), nil)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size.targets*size.each), "ns/pair")
			})
		}
	}
}

// benchmarkScene has targets that use so many of the sources each, in turn.
func benchmarkScene(targets, sources, each int) *scene {
	s := newScene()
	for i := range sources {
		s.sources = append(s.sources, configMap(fmt.Sprintf("config-%d", i), "A"))
	}
	for i := range targets {
		t := deployment(fmt.Sprintf("web-%d", i))
		for j := range each {
			t.uses = append(t.uses, s.sources[(i*each+j)%sources])
		}
		s.targets = append(s.targets, t)
	}
	s.pass()
	return s
}

func changeAll(s *scene) {
	for _, one := range s.sources {
		one.set("B")
	}
}
