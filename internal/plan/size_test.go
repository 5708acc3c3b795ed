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
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// mostOf is what etcd takes of an object. A ConfigWatch whose status may come to be larger is refused by selection.
const mostOf = 3 << 19

func nameOf(prefix string, length, i int) string {
	return fmt.Sprintf("%s-%s-%04d", prefix, strings.Repeat("x", length-len(prefix)-6), i)
}

// manyOf is many targets that use all sources.
func manyOf(targets, sources, length int) (objects []any, configs []*src) {
	for i := range sources {
		configs = append(configs, configMap(nameOf("config", length, i), "A"))
		objects = append(objects, configs[i])
	}
	for i := range targets {
		target := deployment(nameOf("web", length, i))
		target.uid = fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
		objects = append(objects, target)
	}
	return objects, configs
}

// stored is how many bytes a status has with its keys in managedFields, each of which is a row's.
func stored(g Gomega, status v1alpha1.ConfigWatchStatus) int {
	fields := map[string]any{}
	key := func(of map[string]string) { fields["k:"+string(must(json.Marshal(of)))] = map[string]any{} }
	for _, t := range status.Targets {
		key(map[string]string{"apiVersion": t.APIVersion, "kind": t.Kind, "name": t.Name})
	}
	for _, s := range status.Sources {
		key(map[string]string{"kind": string(s.Kind), "name": s.Name})
	}
	for _, s := range status.Subscribers {
		key(map[string]string{"name": s.Name})
	}
	all, err := json.Marshal([]any{status, fields})
	g.Expect(err).NotTo(HaveOccurred())
	return len(all)
}

// roomFor is how many bytes an object has for what gives way in the status, as selection counts them, if these are enough.
func roomFor(o plan.Observation) (room int, fits bool) {
	const least = 100_000
	var sources []source.Ref
	for _, s := range o.Sources {
		sources = append(sources, s.Ref)
	}
	room = mostOf - plan.StatusSize(sources, o.Targets, o.Subscriptions)
	return room, room >= least
}

func TestAStatusAtAllLimitsFitsAnObject(t *testing.T) {
	for _, c := range []struct {
		targets, sources, length int
		fits                     bool
	}{{1000, 3, 60, true}, {1000, 3, 100, false}, {500, 3, 253, true}, {3, 900, 200, true}} {
		t.Run(fmt.Sprintf("%d targets of %d sources with names of %d", c.targets, c.sources, c.length), func(t *testing.T) {
			g := NewWithT(t)
			objects, configs := manyOf(c.targets, c.sources, c.length)
			s := newScene(objects...)
			room, fits := roomFor(s.observe())
			s.room = room
			g.Expect(fits).To(Equal(c.fits))
			if !fits {
				return
			}
			s.pass()
			for change := range 10 { // so many that all are slowed down, roll out, and wait with the next
				for _, config := range configs {
					config.set(fmt.Sprint(change))
				}
				s.at(s.now.Add(time.Second))
			}
			row := s.status.Targets[c.targets-1]
			g.Expect(row.State).To(Equal(v1alpha1.TargetPending))
			g.Expect([]bool{row.Wait != nil, row.Rollout != nil, row.Slowdown != nil, row.Message != ""}).To(HaveEach(true))
			size := stored(g, s.status)
			t.Logf("%d bytes", size)
			g.Expect(size).To(BeNumerically("<=", mostOf))
		})
	}
}

func TestF6AStatusOfManySubscribersFitsAnObject(t *testing.T) {
	for _, c := range []struct {
		targets, sources, subscribers, length int
		fits                                  bool
	}{{0, 93, 16, 253, true}, {0, 1000, 1, 180, true}, {1000, 1, 16, 60, true}, {1000, 62, 16, 60, false}, {100, 62, 16, 150, true}} {
		t.Run(fmt.Sprintf("%d subscribers to %d sources of %d targets with names of %d", c.subscribers, c.sources, c.targets, c.length), func(t *testing.T) {
			g := NewWithT(t)
			a := toldOf("AMDTCF")
			objects, configs := manyOf(c.targets, c.sources, c.length)
			a.scene, a.subscribers = newScene(objects...), nil
			a.rollout.MaxConcurrent = 1000
			for i := range c.subscribers {
				a.subscribers = append(a.subscribers, subscriberOf(fmt.Sprintf("subscriber-%02d", i), "AMDTCF"))
			}
			for _, target := range a.targets {
				target.uses = configs[:1]
			}
			room, fits := roomFor(a.input().Observed)
			a.room = room
			g.Expect(fits).To(Equal(c.fits))
			if !fits {
				return
			}
			a.pass()
			for change := range 3 { // nobody is told of any
				for _, config := range configs {
					keys := data{}
					for k := range 15 {
						keys[fmt.Sprintf("%s-%d", strings.Repeat("K", 200), k)] = fmt.Sprint(change)
					}
					config.write(keys)
					a.versions[config] = 1_000_000_000 + change
				}
				a.pass()
				for _, s := range a.subscribers {
					if d := a.due(s.Name); d != nil {
						a.answer(d, plan.Attempt{Message: strings.Repeat("why ", 500)})
					}
				}
				for _, target := range a.targets {
					target.rollout = workload.Rollout{Progress: workload.Failed, Detail: strings.Repeat("no ", 200)}
				}
				a.pass()
			}
			g.Expect(len(a.subscriber("subscriber-00").Waiting)).To(BeNumerically(">=", c.sources))
			size := stored(g, a.status)
			t.Logf("%d bytes", size)
			g.Expect(size).To(BeNumerically("<=", mostOf))
		})
	}
}
