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

package informer

import (
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// steps keeps what OnStep told, in short.
type steps struct {
	mu   sync.Mutex
	told []string
}

func (s *steps) add(step Step, before, after *kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := "to " + step.Version + ":"
	if step.Listed {
		line = "listed " + line
	}
	switch {
	case before == nil && after == nil:
		line += " nothing"
	case before == nil:
		line += " new " + after.Name
	case after == nil:
		line += " gone " + before.Name
	default:
		line += " other " + after.Name
	}
	if step.More {
		line += ", and more"
	}
	s.told = append(s.told, line)
}

func (s *steps) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.told...)
}

func TestF8EachStepOfAWatchIsToldInOrder(t *testing.T) {
	t.Parallel()
	for name, noStreams := range map[string]bool{"the list is streamed": false, "the list is paged": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			s := newServer()
			s.noStreams = noStreams
			s.put("a", "uid-a", "1", nil)
			s.put("b", "uid-b", "1", nil)
			i, _ := newInformer(t, map[string]*server{metav1.NamespaceAll: s})
			made := &steps{}
			g.Expect(i.OnStep(made.add)).To(Succeed())
			start(t, i)
			g.Eventually(func() error { return i.Health("shop") }).Should(Succeed())
			g.Expect(made.all()).To(ConsistOf(
				And(HavePrefix("listed to 2: new "), HaveSuffix(", and more")), MatchRegexp("^listed to 2: new .$")),
				"what is known has been told")

			s.put("a", "uid-a", "2", nil)
			s.remove("b")
			s.tellVersion("9")
			want := []string{"to 3: other a", "to 4: gone b", "to 9: nothing"}
			g.Eventually(func() []string { return made.all()[2:] }).Should(Equal(want))

			s.cut(func() {
				s.revision = 20
				s.remove("a")
				s.put("c", "uid-c", "1", nil)
			})
			want = append(want, "listed to 22: gone a, and more", "listed to 22: new c")
			g.Eventually(func() []string { return made.all()[2:] }, "10s").Should(Equal(want))
			s.cut(func() { s.revision = 30 })
			want = append(want, "listed to 30: nothing")
			g.Eventually(func() []string { return made.all()[2:] }, "10s").Should(Equal(want))
		})
	}
}

// tellVersion tells the watches how far the server is.
func (s *server) tellVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		if !w.IsStopped() {
			w.Action(watch.Bookmark, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}})
		}
	}
}

func TestChangesAreToldAfterTheyAreShown(t *testing.T) {
	g := NewWithT(t)
	s := newServer()
	i, _ := newInformer(t, map[string]*server{metav1.NamespaceAll: s})
	shown := make(chan bool, 1)
	g.Expect(i.OnChange(func(_, after *kept) {
		object, found := i.Get("shop", "a")
		shown <- found && object == after
	})).To(Succeed())
	start(t, i)
	s.put("a", "uid-a", "1", nil)
	g.Eventually(shown).Should(Receive(BeTrue()))
}

func TestOnlyBeforeItRunsSomeoneCanAskToBeTold(t *testing.T) {
	g := NewWithT(t)
	i, _ := started(t, newServer())
	g.Expect(i.OnChange(func(_, _ *kept) {})).To(MatchError("watching configmaps: the informer has been started"))
	g.Expect(i.OnStep(func(Step, *kept, *kept) {})).To(MatchError(errStarted))
	_, err := New(Options[*kept]{Resource: "configmaps"})
	g.Expect(err).To(MatchError("making the informer of configmaps: there is no namespace to read"))
}

func TestWhatIsNoObjectOfTheKindIsRefused(t *testing.T) {
	g := NewWithT(t)
	i, _ := newInformer(t, map[string]*server{metav1.NamespaceAll: newServer()})
	s := i.shards[metav1.NamespaceAll]
	g.Expect(i.process(s, "text")).To(MatchError("unexpected string in the queue of configmaps"))
	g.Expect(i.process(s, cache.Deltas{{Object: "text"}})).To(MatchError("taking in configmaps: unexpected string"))
	list := cache.ReplacedAllInfo{Objects: []any{"text"}}
	g.Expect(i.process(s, cache.Deltas{{Object: list}})).To(MatchError("taking in configmaps: unexpected string in a list"))
}
