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
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ktechhub/configwatch/internal/turns"
)

// desk is turns, as the ConfigWatches of one namespace use them, and who was woken.
type desk struct {
	*turns.Turns
	woken []string
}

func newDesk(limit int) *desk {
	d := &desk{}
	d.Turns = turns.New(limit, func(key types.NamespacedName) { d.woken = append(d.woken, key.Name) })
	return d
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func (d *desk) take(name string, rolling, want int) int {
	return d.Take(named(name), rolling, want)
}

// pass is a whole one, which starts all that it may.
func (d *desk) pass(name string, rolling, want int) int {
	granted := d.take(name, rolling, want)
	d.report(name, rolling+granted)
	return granted
}

func (d *desk) report(name string, rolling int) {
	d.Report(named(name), rolling)
}

// wakes are those who were woken since it was asked last, in order.
func (d *desk) wakes() []string {
	woken := d.woken
	d.woken = nil
	return woken
}

// expectFree proves that so many places are free, and that nobody waits for them.
func (d *desk) expectFree(g Gomega, want int) {
	const many = 1 << 20
	g.ExpectWithOffset(1, d.take("who counts the free places", 0, many)).To(Equal(want))
	d.Forget(named("who counts the free places"))
	g.ExpectWithOffset(1, d.wakes()).To(BeEmpty())
}

func TestE18WhoComesWhileEnoughIsFreeGetsAllThatItWants(t *testing.T) {
	for name, tc := range map[string]struct {
		limit, others, want, granted int
	}{
		"all of the places":                  {limit: 50, want: 50, granted: 50},
		"more than there are":                {limit: 50, want: 300, granted: 50},
		"some, beside others":                {limit: 50, others: 20, want: 10, granted: 10},
		"just what others leave":             {limit: 50, others: 20, want: 30, granted: 30},
		"more than others leave":             {limit: 50, others: 20, want: 31, granted: 30},
		"when others have all":               {limit: 50, others: 50, want: 1, granted: 0},
		"when others have more than all":     {limit: 50, others: 60, want: 1, granted: 0},
		"nothing":                            {limit: 50, others: 20, want: 0, granted: 0},
		"nothing, when there is nothing":     {limit: 50, others: 60, want: 0, granted: 0},
		"without a limit":                    {limit: 0, others: 1000, want: 300, granted: 300},
		"without a limit, by a negative one": {limit: -1, others: 1000, want: 300, granted: 300},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := newDesk(tc.limit)
			d.take("others", tc.others, 0)
			g.Expect(d.take("web", 0, tc.want)).To(Equal(tc.granted))
			g.Expect(d.wakes()).To(BeEmpty())
		})
	}
}

func TestE18WithoutALimitNobodyWaits(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(0)
	d.Restore(map[types.NamespacedName]int{named("web"): 1000})
	g.Expect(d.take("web", 1000, 300)).To(Equal(300))
	d.report("web", 1200)
	d.Withdraw(named("web"), 1200)
	d.Forget(named("web"))
	g.Expect(d.wakes()).To(BeEmpty())
}

func TestE18WhatIsGrantedCountsAtOnce(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(5)
	g.Expect(d.take("a", 1, 3)).To(Equal(3))
	g.Expect(d.take("b", 0, 3)).To(Equal(1))
}

func TestE18TheNextPassSaysAnewWhatRollsOut(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(5)
	g.Expect(d.take("a", 0, 3)).To(Equal(3))
	g.Expect(d.take("a", 1, 0)).To(Equal(0), "its former pass was cut short after one restart")
	d.expectFree(g, 4)
}

func TestE18FreedPlacesGoToThoseThatWaitOneEachInTheOrderInWhichTheyCame(t *testing.T) {
	for name, tc := range map[string]struct {
		wants  map[string]int // of a, b and c, which come in this order
		freed  int
		woken  []string
		grants map[string]int
	}{
		"one place for the first": {
			wants: map[string]int{"a": 1, "b": 1, "c": 1}, freed: 1,
			woken: []string{"a"}, grants: map[string]int{"a": 1},
		},
		"one place for each": {
			wants: map[string]int{"a": 300, "b": 1, "c": 1}, freed: 3,
			woken: []string{"a", "b", "c"}, grants: map[string]int{"a": 1, "b": 1, "c": 1},
		},
		"a second one for who wants more, and no second call for it": {
			wants: map[string]int{"a": 300, "b": 1, "c": 2}, freed: 6,
			woken: []string{"a", "b", "c"}, grants: map[string]int{"a": 3, "b": 1, "c": 2},
		},
		"what is left for nobody stays free": {
			wants: map[string]int{"a": 1, "b": 2, "c": 0}, freed: 8,
			woken: []string{"a", "b"}, grants: map[string]int{"a": 1, "b": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := newDesk(10)
			d.pass("others", 0, 10)
			for _, name := range []string{"a", "b", "c"} {
				g.Expect(d.pass(name, 0, tc.wants[name])).To(Equal(0))
			}
			d.report("others", 10-tc.freed)
			g.Expect(d.wakes()).To(Equal(tc.woken))
			granted := 0
			for _, name := range []string{"c", "b", "a"} { // in whatever order they come
				g.Expect(d.pass(name, 0, tc.wants[name])).To(Equal(tc.grants[name]), name)
				granted += tc.grants[name]
			}
			g.Expect(d.wakes()).To(BeEmpty())
			if granted < tc.freed {
				d.expectFree(g, tc.freed-granted)
			}
		})
	}
}

func TestE18OneThatWantsManyDoesNotStarveOneThatWantsOne(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(2)
	g.Expect(d.pass("fleet", 0, 300)).To(Equal(2))
	g.Expect(d.pass("web", 0, 1)).To(Equal(0))

	d.report("fleet", 1)
	g.Expect(d.wakes()).To(Equal([]string{"fleet"}), "it waits longer")
	g.Expect(d.pass("fleet", 1, 298)).To(Equal(1))
	d.report("fleet", 1)
	g.Expect(d.wakes()).To(Equal([]string{"web"}), "the next place is not for who just had one")
	g.Expect(d.pass("web", 0, 1)).To(Equal(1))
	d.report("web", 0)
	g.Expect(d.wakes()).To(Equal([]string{"fleet"}))
}

func TestE18APassThatSeesARolloutDoneDoesNotKeepThePlaceFromThoseThatWait(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(2)
	g.Expect(d.pass("fleet", 0, 2)).To(Equal(2))
	g.Expect(d.pass("web", 0, 1)).To(Equal(0))
	g.Expect(d.pass("fleet", 1, 298)).To(Equal(0))
	g.Expect(d.wakes()).To(Equal([]string{"web"}))
	g.Expect(d.pass("fleet", 0, 298)).To(Equal(1), "nobody waits before it for the second")
}

func TestE18ANewcomerDoesNotOvertake(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(3)
	d.pass("others", 0, 3)
	g.Expect(d.pass("web", 0, 3)).To(Equal(0))
	d.report("others", 1)
	g.Expect(d.wakes()).To(Equal([]string{"web"}))

	g.Expect(d.pass("newcomer", 0, 1)).To(Equal(0), "both places are kept for web, which is slow to come")
	d.report("others", 0)
	g.Expect(d.wakes()).To(BeEmpty(), "the third is web's too, which is awake")
	g.Expect(d.pass("newcomer", 0, 1)).To(Equal(0))
	g.Expect(d.pass("web", 0, 3)).To(Equal(3))

	d.report("web", 2)
	g.Expect(d.wakes()).To(Equal([]string{"newcomer"}))
}

func TestE18OneThatWaitsKeepsItsPlaceInTheQueueHoweverOftenItAsks(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(1)
	d.pass("others", 0, 1)
	d.pass("a", 0, 1)
	d.pass("b", 0, 1)
	for want := range 5 {
		g.Expect(d.pass("a", 0, 1+want)).To(Equal(0))
	}
	d.report("others", 0)
	g.Expect(d.wakes()).To(Equal([]string{"a"}))
}

// offered is a desk where one of two places has become free: web is woken for it, and next is in the queue.
func offered() *desk {
	d := newDesk(2)
	d.pass("others", 0, 2)
	d.pass("web", 0, 1)
	d.pass("next", 0, 1)
	d.report("others", 1)
	return d
}

func TestE18AnOfferThatIsNotTakenGoesToTheNext(t *testing.T) {
	for name, decline := range map[string]func(*desk){
		"its change was taken back":  func(d *desk) { d.pass("web", 0, 0) },
		"its pass could not be made": func(d *desk) { d.Withdraw(named("web"), 0) },
		"it is gone":                 func(d *desk) { d.Forget(named("web")) },
		"its restart failed": func(d *desk) {
			d.take("web", 0, 1)
			d.Withdraw(named("web"), 0)
		},
		"its restart turned out not to be needed": func(d *desk) {
			d.take("web", 0, 1)
			d.report("web", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := offered()
			g.Expect(d.wakes()).To(Equal([]string{"web"}))
			decline(d)
			g.Expect(d.wakes()).To(Equal([]string{"next"}))
			g.Expect(d.pass("next", 0, 1)).To(Equal(1))
			g.Expect(d.pass("others", 0, 0)).To(Equal(0))
			d.expectFree(g, 1)
		})
	}
}

func TestE18OfTwoPlacesThatAreOfferedTheOneThatIsNotWantedGoesToTheNext(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(2)
	d.pass("others", 0, 2)
	d.pass("web", 0, 2)
	d.report("others", 0)
	d.pass("next", 0, 1)
	g.Expect(d.wakes()).To(Equal([]string{"web"}))
	g.Expect(d.pass("web", 0, 1)).To(Equal(1))
	g.Expect(d.wakes()).To(Equal([]string{"next"}))
}

func TestE18WhoWaitsWithoutAnOfferMayLeave(t *testing.T) {
	for name, leave := range map[string]func(*desk){
		"its change was taken back":  func(d *desk) { d.pass("next", 0, 0) },
		"its pass could not be made": func(d *desk) { d.Withdraw(named("next"), 0) },
		"it is gone":                 func(d *desk) { d.Forget(named("next")) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := offered()
			leave(d)
			d.report("others", 0)
			g.Expect(d.wakes()).To(Equal([]string{"web"}), "as before")
			d.expectFree(g, 1)
		})
	}
}

// A pass that asked in vain may be under way still when a place becomes free, which it is woken for. The
// end of that pass is no answer to the offer, or one whose passes are slow would lose each of its turns.
func TestE18AnOfferOutlivesThePassInWhichItIsMade(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(1)
	d.pass("others", 0, 1)
	g.Expect(d.take("web", 0, 1)).To(Equal(0))
	g.Expect(d.pass("next", 0, 1)).To(Equal(0))
	d.report("others", 0)
	g.Expect(d.wakes()).To(Equal([]string{"web"}))
	d.report("web", 0)
	g.Expect(d.wakes()).To(BeEmpty())
	g.Expect(d.pass("web", 0, 1)).To(Equal(1))
}

func TestE18WhatIsGrantedAndNotUsedIsGivenBack(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(4)
	g.Expect(d.take("web", 1, 3)).To(Equal(3))
	g.Expect(d.pass("a", 0, 1)).To(Equal(0))
	g.Expect(d.pass("b", 0, 1)).To(Equal(0))
	d.report("web", 2)
	g.Expect(d.wakes()).To(Equal([]string{"a", "b"}))
}

// Where some of the restarts turn out not to be needed, and nothing rolls out that could wake it, the
// ConfigWatch is woken for the places that it gave back itself.
func TestE18OneThatStillWantsIsWokenForWhatItGaveBack(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(2)
	g.Expect(d.take("web", 0, 5)).To(Equal(2))
	d.report("web", 0)
	g.Expect(d.wakes()).To(Equal([]string{"web"}))
	g.Expect(d.pass("web", 0, 3)).To(Equal(2))
}

// Its retry comes by itself, later each time. If it were woken for the place that it has just given back,
// it would fail without a pause, and two of its kind would keep each other awake.
func TestE11OneWhoseRestartsFailIsNotWokenForThePlaceThatItGivesBack(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(1)
	g.Expect(d.take("denied", 0, 2)).To(Equal(1))
	d.Withdraw(named("denied"), 0)
	g.Expect(d.wakes()).To(BeEmpty())
	d.expectFree(g, 1)

	g.Expect(d.take("denied", 0, 2)).To(Equal(1), "at its retry")
	g.Expect(d.take("denied as well", 0, 2)).To(Equal(0))
	d.Withdraw(named("denied as well"), 0)
	d.Withdraw(named("denied"), 0)
	g.Expect(d.wakes()).To(BeEmpty())
	d.expectFree(g, 1)
}

func TestE18RestoredRolloutsCount(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(50)
	d.Restore(map[types.NamespacedName]int{named("a"): 30, named("b"): 18, named("idle"): 0})
	g.Expect(d.wakes()).To(BeEmpty())
	g.Expect(d.pass("web", 0, 10)).To(Equal(2))
	g.Expect(d.pass("a", 30, 0)).To(Equal(0), "they are not counted twice")
	d.Forget(named("b"))
	g.Expect(d.wakes()).To(Equal([]string{"web"}), "one that is gone at its first pass gives up its places")
	g.Expect(d.pass("web", 2, 8)).To(Equal(8))
	g.Expect(d.pass("a", 0, 0)).To(Equal(0))
	d.expectFree(g, 40)
}

func TestE18NothingIsGrantedUntilThereAreFewerThanALimitThatWasLowered(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(2)
	d.Restore(map[types.NamespacedName]int{named("others"): 5})
	g.Expect(d.pass("web", 0, 1)).To(Equal(0))
	for rolling := 4; rolling >= 2; rolling-- {
		d.report("others", rolling)
		g.Expect(d.wakes()).To(BeEmpty(), "%d roll out", rolling)
		g.Expect(d.pass("web", 0, 1)).To(Equal(0), "%d roll out", rolling)
	}
	d.report("others", 1)
	g.Expect(d.wakes()).To(Equal([]string{"web"}))
	g.Expect(d.pass("web", 0, 1)).To(Equal(1))
}

// A restart whose record was lost is found by its mark, and nobody had granted a place for it in this
// process. What is on offer then is one too many.
func TestE18AnOfferThatTurnsOutToBeTooManyIsTakenBackAndItsOwnerIsTheNext(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(2)
	d.pass("others", 0, 2)
	d.pass("web", 0, 2)
	d.pass("next", 0, 1)
	d.report("others", 1)
	g.Expect(d.wakes()).To(Equal([]string{"web"}))
	d.pass("others", 2, 0)
	g.Expect(d.pass("web", 0, 2)).To(Equal(0), "two others roll out")

	d.report("others", 1)
	g.Expect(d.wakes()).To(Equal([]string{"web"}), "not the one that came after it")
	g.Expect(d.pass("web", 0, 2)).To(Equal(1))
	d.report("others", 0)
	g.Expect(d.wakes()).To(Equal([]string{"next"}))
}

func TestE18WhatNeedNotBeKnownTakesNoMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		limit int
		pass  func(*desk, string)
	}{
		"of one that has and wants nothing": {limit: 1, pass: func(d *desk, name string) {
			d.pass(name, 0, 2)
			d.pass(name, 0, 0)
		}},
		"without a limit": {limit: 0, pass: func(d *desk, name string) {
			d.Restore(map[types.NamespacedName]int{named(name): 1})
			d.pass(name, 1, 2)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			const watches, perWatch = 50_000, 10 // bytes; an account has more than 100
			g := NewWithT(t)
			d := newDesk(tc.limit)
			before := heap()
			for i := range watches {
				tc.pass(d, strconv.Itoa(i))
			}
			g.Expect(heap()).To(BeNumerically("<", before+watches*perWatch))
			runtime.KeepAlive(d)
		})
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestE18EveryNamespaceHasItsOwn(t *testing.T) {
	g := NewWithT(t)
	d := newDesk(2)
	shop, bank := named("web"), types.NamespacedName{Namespace: "bank", Name: "web"}
	g.Expect(d.Take(shop, 0, 1)).To(Equal(1))
	g.Expect(d.Take(bank, 0, 2)).To(Equal(1))
}

func TestE18WhoIsWokenMayComeAtOnce(t *testing.T) {
	g := NewWithT(t)
	var granted int
	var own *turns.Turns
	own = turns.New(1, func(key types.NamespacedName) { granted = own.Take(key, 0, 1) })
	g.Expect(own.Take(named("others"), 0, 1)).To(Equal(1))
	g.Expect(own.Take(named("web"), 0, 1)).To(Equal(0))
	own.Report(named("others"), 0)
	g.Expect(granted).To(Equal(1))
}

// Many ConfigWatches have their passes at once, each in a goroutine of its own, and restart all of their
// targets, of which never more roll out than the limit allows.
func TestE18TheLimitHoldsForPassesInParallel(t *testing.T) {
	const limit, watches, targets = 7, 40, 50
	g := NewWithT(t)
	wakes := make(map[types.NamespacedName]chan struct{}, watches)
	for i := range watches {
		wakes[named(strconv.Itoa(i))] = make(chan struct{}, 1)
	}
	enqueue := func(key types.NamespacedName) {
		select {
		case wakes[key] <- struct{}{}:
		default: // one pass is enqueued already
		}
	}
	own := turns.New(limit, enqueue)
	var rollouts, most atomic.Int64
	restartAll := func(key types.NamespacedName, random *rand.Rand) {
		rolling := 0
		for stale := targets; stale > 0 || rolling > 0; {
			if done := random.IntN(rolling + 1); done > 0 {
				rollouts.Add(-int64(done))
				rolling -= done
			}
			granted := own.Take(key, rolling, stale)
			now := rollouts.Add(int64(granted))
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			stale, rolling = stale-granted, rolling+granted
			own.Report(key, rolling)
			if stale > 0 && rolling == 0 {
				<-wakes[key]
			}
		}
		own.Take(key, 0, 0)
	}
	var running sync.WaitGroup
	for i := range watches {
		running.Go(func() { restartAll(named(strconv.Itoa(i)), rand.New(rand.NewPCG(uint64(i), 18))) })
	}
	running.Wait()
	g.Expect(most.Load()).To(BeNumerically("==", limit))
	g.Expect(own.Take(named("last"), 0, watches)).To(Equal(limit))
}
