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
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
)

// endpoint is that of a subscriber: it takes messages or not, and its answers arrive or not.
type endpoint struct {
	t    *testing.T
	name string
	// knows is the content of each source that it was told of; "-": that it is gone.
	knows map[string]string
	// told are the versions of the sources by the ids of the messages that it took.
	told map[string]int
	// latest is the version of each source of which it was told last.
	latest map[string]int
	log    []string
}

// takes is a message about the source as it was at that version.
func (e *endpoint) takes(id string, one *src, version int, content string) {
	e.log = append(e.log, fmt.Sprintf("%s is told %s=%s (%s, version %d)", e.name, one.Name, content, id, version))
	if before, again := e.told[id]; again {
		if before != version {
			e.t.Errorf("%s: the id %s stands for two versions", e.name, id)
		}
		return // which whoever knows ids leaves alone
	}
	for other, at := range e.told {
		if at == version && strings.HasPrefix(other, one.Name+"/") {
			e.t.Errorf("%s: told of version %d of %s by two ids, %s and %s", e.name, version, one.Name, other, id)
		}
	}
	if version < e.latest[one.Name] {
		e.t.Errorf("%s: told of version %d of %s after %d", e.name, version, one.Name, e.latest[one.Name])
	}
	e.told[id], e.latest[one.Name], e.knows[one.Name] = version, version, content
}

// underway is an attempt that is not over for some passes.
type underway struct {
	delivery plan.Delivery
	how      plan.Attempt
	passes   int
}

// wire is what is between the operator and the endpoints. It has at most one attempt under way for each, like the
// dispatcher.
type wire struct {
	*audience
	random    *rand.Rand
	endpoints map[string]*endpoint
	underway  map[string]*underway
	history   map[*src][]string // the content at each version
	good      bool              // everything goes well from now on
	data      bool              // messages have the data of the source as it is when they are sent
}

func TestF6InTheEndEverySubscriberKnowsWhatIsThere(t *testing.T) {
	for seed := range uint64(few(300)) {
		simulateTelling(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func simulateTelling(t *testing.T, seed uint64) {
	w := newWire(t, seed)
	for range 40 {
		w.happen()
	}
	w.good = true
	for range 30 {
		w.now = w.now.Add(time.Hour)
		w.step()
	}
	w.check(t)
}

func newWire(t *testing.T, seed uint64) *wire {
	random := rand.New(rand.NewPCG(seed, 6))
	a := told(configMap("one", "A"), configMap("two", "-"), secret("three", "B"), deployment("web"))
	// The others want only some of it. What they know is not compared: it is enough that they are never misled.
	a.subscribers = append(a.subscribers, subscriberOf("modified", "M"), subscriberOf("gone", "AD"))
	w := &wire{
		audience: a, random: random, endpoints: map[string]*endpoint{}, underway: map[string]*underway{},
		history: map[*src][]string{}, data: random.IntN(2) == 0,
	}
	for _, s := range a.subscribers {
		w.endpoints[s.Name] = &endpoint{
			t: t, name: s.Name, knows: map[string]string{}, told: map[string]int{}, latest: map[string]int{},
		}
		for _, one := range a.sources {
			w.endpoints[s.Name].knows[one.Name] = content(one)
		}
	}
	for _, one := range a.sources {
		w.history[one] = []string{content(one)}
	}
	a.pass()
	return w
}

// content is the only value of a source, or "-".
func content(one *src) string {
	if one.data == nil {
		return "-"
	}
	return one.data["KEY"]
}

// happen is one of the things that happen at random.
func (w *wire) happen() {
	one := w.sources[w.random.IntN(len(w.sources))]
	switch w.random.IntN(7) {
	case 0, 1:
		if v := []string{"A", "B", "-"}[w.random.IntN(3)]; v != content(one) {
			w.set(one, v)
			w.history[one] = append(w.history[one], v)
		}
	case 2:
		w.now = w.now.Add(time.Duration(w.random.IntN(400)) * time.Second)
	case 3: // the operator is killed
		w.reload()
		w.attempts = nil
		w.underway = map[string]*underway{}
	case 4:
		w.unrecorded()
	case 5:
		modes := []v1alpha1.Mode{v1alpha1.ModeActive, v1alpha1.ModeDryRun, v1alpha1.ModeSuspended, v1alpha1.ModeObserve}
		w.edit(func() { w.mode = modes[w.random.IntN(len(modes))] })
	default:
		w.step()
	}
}

// step is a pass and what becomes of what it asks for.
func (w *wire) step() {
	for name, u := range w.underway {
		if u.passes--; u.passes < 0 || w.good {
			w.answer(&u.delivery, u.how)
			delete(w.underway, name)
		}
	}
	w.passAfter(time.Second)
	for i := range w.deliveries {
		if d := w.deliveries[i]; w.underway[d.Subscriber.Name] == nil {
			w.underway[d.Subscriber.Name] = w.send(d)
		}
	}
}

// send makes an attempt, of which the answer comes later.
func (w *wire) send(d plan.Delivery) *underway {
	u := &underway{delivery: d, passes: w.random.IntN(3)}
	arrives, answers := w.random.IntN(3) > 0, w.random.IntN(3) > 0
	if arrives || w.good {
		u.how.Hash = w.arrive(d)
	}
	switch {
	case w.good, arrives && answers:
	case w.random.IntN(4) == 0:
		u.how = refuses
	default:
		u.how = down
	}
	return u
}

// arrive is a message that its endpoint takes. It returns the hash of the data, if it has any.
func (w *wire) arrive(d plan.Delivery) (hash string) {
	to, one := w.endpoints[d.Subscriber.Name], w.sourceOf(d)
	id := d.Event.ID
	if d.Event.Event == v1alpha1.SubscriberDeleted {
		to.takes(id, one, w.gone(one, to.latest[one.Name]), "-")
		return ""
	}
	version := 0
	if _, err := fmt.Sscanf(id, one.Name+"/%d", &version); err != nil {
		to.t.Errorf("the id %q: %v", id, err)
	}
	if live := content(one); w.data && live != "-" {
		hash = string(one.content().Hash(nil))
		if hash != d.Event.Hash {
			version = len(w.history[one]) - 1
			id = fmt.Sprintf("%s/%d", one.Name, version)
		}
	}
	to.takes(id, one, version, w.history[one][version])
	return hash
}

// gone is the first version from that on at which the source was gone: it can't be said which is meant.
func (w *wire) gone(one *src, from int) int {
	for version, c := range w.history[one] {
		if version >= from && c == "-" {
			return version
		}
	}
	return -1
}

func (w *wire) sourceOf(d plan.Delivery) *src {
	for _, one := range w.sources {
		if one.Name == d.Event.Name {
			return one
		}
	}
	return nil
}

func (w *wire) check(t *testing.T) {
	for _, one := range w.sources {
		if known := w.endpoints["cache"].knows[one.Name]; known != content(one) {
			t.Errorf("F6: it takes %s for %s, and it is %s: %s", one.Name, known, content(one), strings.Join(w.endpoints["cache"].log, "\n"))
		}
		always := true
		for _, c := range w.history[one] {
			always = always && c != "-"
		}
		if known := w.endpoints["modified"].knows[one.Name]; always && known != content(one) {
			t.Errorf("F6: who wants Modified takes %s for %s, and it is %s", one.Name, known, content(one))
		}
	}
	for _, row := range w.status.Subscribers {
		if len(row.Waiting) > 0 {
			t.Errorf("%s is still to be told: %+v", row.Name, row)
		}
	}
	before := w.status
	if r := w.passAfter(time.Minute); len(w.deliveries) > 0 || fmt.Sprint(r.status.Subscribers) != fmt.Sprint(before.Subscribers) {
		t.Error("E28: it goes on")
	}
}
