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

package turns_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ktechhub/configwatch/internal/turns"
)

// The simulation walks some ConfigWatches at random through changes, passes that overlap, failures,
// deletions, rollouts that end, and calls that are answered late. It knows nothing of the queue: it keeps
// a ledger of what each one holds by what it told and was granted. By that, nothing is granted beyond the
// limit (E18), and nobody is passed over again and again. Whenever all who were woken have come, no place is
// free while someone waits, and when all rollouts end, everyone has had its turn and nothing is taken.

const (
	simulatedSeeds = 300
	simulatedSteps = 400
)

func TestE18SimulationKeepsTheLimitAndLetsNobodyWaitInVain(t *testing.T) {
	seeds := simulatedSeeds
	if testing.Short() {
		seeds /= 4
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			simulate(t, randomScript(seed))
		})
	}
}

func FuzzSimulation(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(randomScript(seed))
	}
	f.Fuzz(simulate)
}

func randomScript(seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 18))
	script := make([]byte, simulatedSteps*3)
	for i := range script {
		script[i] = byte(random.Uint32())
	}
	return script
}

type simulation struct {
	*turns.Turns
	t       *testing.T
	script  []byte
	trace   []string
	limit   int
	watches []*watch
	passes  int
}

// watch is a ConfigWatch, as it is, and as its passes told it.
type watch struct {
	key            types.NamespacedName
	gone           bool
	stale, rolling int  // targets
	denied         bool // its restarts are refused

	due   bool // it is in the queue of passes
	retry bool // it comes into the queue of passes again by itself
	pass  *pass
	// holds is what it told last that rolls out, and what it was granted for the pass that is under way.
	holds int
	// waits: it wanted more than it got, and has not been woken. others is how many places were granted to
	// others since.
	waits  bool
	others int
}

// pass is one that is under way.
type pass struct {
	saw, granted int
}

func simulate(t *testing.T, script []byte) {
	s := newSimulation(t, script)
	defer func() {
		if t.Failed() {
			t.Logf("limit %d; the steps were:\n%s", s.limit, strings.Join(s.trace, "\n"))
		}
	}()
	for len(s.script) > 0 && !t.Failed() {
		s.step()
	}
	s.finish()
}

func newSimulation(t *testing.T, script []byte) *simulation {
	s := &simulation{t: t, script: script}
	s.limit = 1 + s.pick(9)
	s.Turns = turns.New(s.limit, s.woken)
	restored := map[types.NamespacedName]int{}
	for i := range 2 + s.pick(6) {
		w := &watch{key: named(string(rune('a' + i))), rolling: s.pick(3), due: true}
		w.holds = w.rolling
		restored[w.key] = w.rolling
		s.watches = append(s.watches, w)
		s.did("%s has %d that roll out", w.key.Name, w.rolling)
	}
	s.Restore(restored)
	return s
}

// pick is the script's next choice of n; 0 once it is over.
func (s *simulation) pick(n int) int {
	if len(s.script) == 0 {
		return 0
	}
	choice := int(s.script[0]) % n
	s.script = s.script[1:]
	return choice
}

// pickOf picks one of those of which it is true, or returns nil.
func (s *simulation) pickOf(is func(*watch) bool) *watch {
	var some []*watch
	for _, w := range s.watches {
		if is(w) {
			some = append(some, w)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[s.pick(len(some))]
}

func (s *simulation) did(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf(format, args...))
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Errorf(format, args...)
	s.did("  here: "+format, args...)
}

func isThere(w *watch) bool   { return !w.gone }
func rollsOut(w *watch) bool  { return !w.gone && w.rolling > 0 }
func isInPass(w *watch) bool  { return w.pass != nil }
func mayStart(w *watch) bool  { return w.due && w.pass == nil }
func isRetried(w *watch) bool { return w.retry }

func (s *simulation) step() {
	switch s.pick(20) {
	case 0, 1, 2:
		s.change(s.pickOf(isThere))
	case 3, 4, 5:
		s.complete(s.pickOf(rollsOut))
	case 6, 7, 8, 9, 10:
		s.begin(s.pickOf(mayStart))
	case 11, 12, 13, 14:
		s.end(s.pickOf(isInPass))
	case 15:
		s.cannotObserve(s.pickOf(mayStart))
	case 16:
		s.deleteOrCreate(s.watches[s.pick(len(s.watches))])
	case 17:
		s.startUnasked(s.pickOf(isThere))
	case 18:
		w := s.watches[s.pick(len(s.watches))]
		w.denied = !w.denied
		s.did("the restarts of %s are denied: %t", w.key.Name, w.denied)
	case 19:
		if s.pick(2) == 0 {
			s.settle()
		} else if w := s.pickOf(isRetried); w != nil {
			w.retry, w.due = false, true
		}
	}
}

func (s *simulation) change(w *watch) {
	if w == nil {
		return
	}
	w.stale = []int{0, 1, 1, 2, 3, 30}[s.pick(6)]
	w.due = true
	s.did("%s has %d stale targets", w.key.Name, w.stale)
}

func (s *simulation) complete(w *watch) {
	if w == nil {
		return
	}
	n := 1 + s.pick(w.rolling)
	w.rolling -= n
	w.due = true
	s.did("%s has completed %d rollouts", w.key.Name, n)
}

// startUnasked is a restart whose record was lost, which is found by its mark.
func (s *simulation) startUnasked(w *watch) {
	if w == nil {
		return
	}
	w.rolling++
	w.due = true
	s.did("%s has one more that rolls out", w.key.Name)
}

func (s *simulation) deleteOrCreate(w *watch) {
	w.gone = !w.gone
	w.stale, w.rolling = 0, 0
	w.due = true
	s.did("%s is gone: %t", w.key.Name, w.gone)
}

// woken is what the turns call.
func (s *simulation) woken(key types.NamespacedName) {
	w := s.watches[slices.IndexFunc(s.watches, func(w *watch) bool { return w.key == key })]
	w.due, w.waits = true, false
	s.did("  %s is woken", key.Name)
}

func (s *simulation) begin(w *watch) {
	if w == nil {
		return
	}
	s.passes++
	w.due = false
	if w.gone {
		s.did("%s is forgotten", w.key.Name)
		w.holds, w.waits = 0, false
		s.Forget(w.key)
		return
	}
	saw, want := w.rolling, w.stale
	s.did("%s has %d that roll out, and wants %d", w.key.Name, saw, want)
	granted := s.Take(w.key, saw, want)
	s.did("  it is granted %d", granted)
	w.pass = &pass{saw: saw, granted: granted}
	w.holds = saw + granted
	s.granted(w, granted, want)
}

// granted checks what one was granted, and enters it in the ledger.
func (s *simulation) granted(w *watch, granted, want int) {
	if granted < 0 || granted > want {
		s.fail("%s is granted %d, and wants %d", w.key.Name, granted, want)
	}
	if taken := s.taken(); granted > 0 && taken > s.limit {
		s.fail("%s is granted %d, and that makes %d of %d", w.key.Name, granted, taken, s.limit)
	}
	if granted > 0 || !w.waits {
		w.others = 0
	}
	w.waits = granted < want
	for _, other := range s.watches {
		if other == w || !other.waits {
			continue
		}
		other.others += granted
		// Before it come those who had been offered places already, and each of the others once.
		if other.others > s.limit+len(s.watches) {
			s.fail("%s waits, and %d places were granted to others", other.key.Name, other.others)
		}
	}
}

func (s *simulation) taken() int {
	taken := 0
	for _, w := range s.watches {
		taken += w.holds
	}
	return taken
}

// end ends a pass. It tells what it saw when it began, and what it restarted.
func (s *simulation) end(w *watch) {
	if w == nil {
		return
	}
	this := w.pass
	w.pass = nil
	restarts := min(this.granted, w.stale)
	w.holds = this.saw
	if w.denied && this.granted > 0 {
		s.did("the restarts of %s fail", w.key.Name)
		w.waits, w.retry = false, true
		s.Withdraw(w.key, w.holds)
		return
	}
	rolling := restarts
	if restarts > 0 && s.pick(8) == 0 {
		rolling-- // another rollout has superseded one of them
	}
	w.stale -= restarts
	w.rolling += rolling
	w.holds += rolling
	s.did("%s has restarted %d", w.key.Name, rolling)
	s.Report(w.key, w.holds)
}

// cannotObserve is a pass that ends before it can say what it wants.
func (s *simulation) cannotObserve(w *watch) {
	if w == nil || w.gone {
		return
	}
	w.due, w.retry, w.waits = false, true, false
	s.did("%s can't be observed", w.key.Name)
	s.Withdraw(w.key, w.holds)
}

// settle lets all who were woken come, and all passes end.
func (s *simulation) settle() {
	s.did("all come")
	from := s.passes
	for {
		w := s.pickOf(func(w *watch) bool { return isInPass(w) || mayStart(w) })
		switch {
		case w == nil:
			s.checkSettled()
			return
		case w.pass != nil:
			s.end(w)
		default:
			s.begin(w)
		}
		if s.passes-from > 1000 {
			s.fail("they keep each other awake")
			return
		}
	}
}

func (s *simulation) checkSettled() {
	for _, w := range s.watches {
		if w.stale > 0 && !w.retry && s.taken() < s.limit {
			s.fail("%s waits for %d, and only %d of %d are taken", w.key.Name, w.stale, s.taken(), s.limit)
		}
	}
}

// finish lets all that fails succeed, and all rollouts end.
func (s *simulation) finish() {
	for _, w := range s.watches {
		w.denied, w.due, w.retry = false, w.due || w.retry, false
	}
	s.settle()
	for !s.t.Failed() {
		w := s.pickOf(rollsOut)
		if w == nil {
			break
		}
		s.complete(w)
		s.settle()
	}
	for _, w := range s.watches {
		if w.stale > 0 {
			s.fail("%s waits in vain for %d", w.key.Name, w.stale)
		}
	}
	if free := s.Take(named("last"), 0, s.limit+1); free != s.limit {
		s.fail("all is done, and %d of %d are free", free, s.limit)
	}
}
