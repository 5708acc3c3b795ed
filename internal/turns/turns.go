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

package turns

import (
	"container/list"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Turns shares out a limited number of places, each of which is for one rollout. It is safe for concurrent
// use by the passes of different ConfigWatches; those of one ConfigWatch come one after the other.
//
// A pass begins with Take, also if it wants nothing, and ends with one of Report, Withdraw and Forget. A
// place that becomes free is offered to the first in the queue, which is woken for it. The offer stands
// until that one comes and takes it, or doesn't want it any more, and then it goes on to the next. So a
// place is never idle for longer than it takes until a woken ConfigWatch has its pass.
type Turns struct {
	limit int
	wake  func(types.NamespacedName)

	mu sync.Mutex
	// accounts are those of ConfigWatches that have or want anything, or are in the middle of a pass.
	accounts map[types.NamespacedName]*account
	// queue has the accounts that want more than they have and are offered, the next one first.
	queue list.List
	// taken is how many places are held or on offer. It exceeds the limit where more rolls out than was
	// granted: as the limit was higher before, or a rollout was restarted by a pass whose record was lost.
	taken int
}

// account is what one ConfigWatch has of the places, and what it waits for.
type account struct {
	key types.NamespacedName
	// held is how many places its rollouts take up, and what it was granted for others.
	held int
	// offered is how many places are kept for its next Take.
	offered int
	// wanted is how many it would like beyond these.
	wanted int
	// waiting is where it is in the queue; nil if it wants nothing more.
	waiting *list.Element
}

// New makes turns for at most so many rollouts at once; 0 means that there is no limit.
//
// wake is called for a ConfigWatch that waits when there is something for it to take. It should enqueue a
// pass, no more, and may be called from any of the methods but Restore, by several goroutines at once, with
// no lock held. If the pass is lost, so is the place, until the ConfigWatch has another one.
func New(limit int, wake func(types.NamespacedName)) *Turns {
	return &Turns{limit: limit, wake: wake, accounts: map[types.NamespacedName]*account{}}
}

// Restore counts what rolls out already, by ConfigWatch, so that the limit holds from the first pass on. It
// must be called before the first Take, and when it is certain that each of these ConfigWatches has a pass,
// also if it is deleted meanwhile: the places of one that is never heard of again stay taken.
func (t *Turns) Restore(rolling map[types.NamespacedName]int) {
	if t.unlimited() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, n := range rolling {
		t.hold(t.account(key), n)
	}
}

// Take is asked by a pass before it decides: so many of the ConfigWatch's targets are rolling out, and it
// would like to restart so many more. It returns how many of these it may restart, from 0 to want. They
// count as rolling out until the pass ends.
//
// If it gets less than it wants, the ConfigWatch waits in the queue until it is woken. One that waits
// already stays where it is. If it wants nothing more, it leaves the queue, and what it was offered goes to
// the next.
func (t *Turns) Take(key types.NamespacedName, rolling, want int) (granted int) {
	if t.unlimited() {
		return want
	}
	granted, woken := t.take(key, rolling, want)
	t.wakeAll(woken)
	return granted
}

func (t *Turns) take(key types.NamespacedName, rolling, want int) (granted int, woken []types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.account(key)
	t.hold(a, rolling)
	due := min(a.offered, want)
	t.offer(a, max(0, min(due, t.free()+a.offered)))
	t.want(a, want-a.offered)
	if a.offered < due { // More rolls out than was known when the offer was made: the next place is its own.
		t.queue.MoveToFront(a.waiting)
	}
	woken = t.handOut(a)
	granted = a.offered
	t.offer(a, 0)
	t.hold(a, rolling+granted)
	return granted, woken
}

// Report ends a pass: so many of the ConfigWatch's targets are rolling out now. What it was granted and has
// not used is given back. It waits on for what it wanted and didn't get, and keeps what it was offered
// since its Take, for which it was woken.
func (t *Turns) Report(key types.NamespacedName, rolling int) {
	t.update(key, func(a *account) {
		t.hold(a, rolling)
	})
}

// Withdraw ends a pass that failed, or that could not be made, and that will be made again by itself. It is
// like Report, but the ConfigWatch leaves the queue, and what it was offered goes to the next: it must not
// be woken at once for the very place that it has just failed to use (E11), and no place is kept idle until
// it is tried again.
func (t *Turns) Withdraw(key types.NamespacedName, rolling int) {
	t.update(key, func(a *account) {
		t.hold(a, rolling)
		t.offer(a, 0)
		t.want(a, 0)
	})
}

// Forget ends the pass of a ConfigWatch that is gone. Nobody follows its rollouts any more, so that they
// don't count.
func (t *Turns) Forget(key types.NamespacedName) {
	t.Withdraw(key, 0)
}

// update changes the account of a ConfigWatch, hands out what that frees, and wakes whom it is for.
func (t *Turns) update(key types.NamespacedName, change func(*account)) {
	if t.unlimited() {
		return
	}
	t.wakeAll(t.updated(key, change))
}

func (t *Turns) updated(key types.NamespacedName, change func(*account)) (woken []types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.account(key)
	change(a)
	woken = t.handOut(nil)
	if a.held == 0 && a.offered == 0 && a.waiting == nil {
		delete(t.accounts, key)
	}
	return woken
}

// handOut offers the free places to those that wait, in turn: one place each, until there are no more. It
// returns who is to be woken: whoever had no offer before, as one that had is awake, and not the one that
// is taking.
func (t *Turns) handOut(taking *account) (woken []types.NamespacedName) {
	for t.free() > 0 && t.queue.Len() > 0 {
		a, _ := t.queue.Front().Value.(*account)
		if a.offered == 0 && a != taking {
			woken = append(woken, a.key)
		}
		t.offer(a, a.offered+1)
		t.queue.MoveToBack(a.waiting)
		t.want(a, a.wanted-1)
	}
	return woken
}

func (t *Turns) wakeAll(keys []types.NamespacedName) {
	for _, key := range keys {
		t.wake(key)
	}
}

func (t *Turns) unlimited() bool {
	return t.limit <= 0
}

// free is how many places are neither held nor on offer; negative if there are too many of these.
func (t *Turns) free() int {
	return t.limit - t.taken
}

func (t *Turns) hold(a *account, places int) {
	t.taken += places - a.held
	a.held = places
}

func (t *Turns) offer(a *account, places int) {
	t.taken += places - a.offered
	a.offered = places
}

// want puts an account that wants something at the end of the queue, unless it is there already, and takes
// one that wants nothing out of it.
func (t *Turns) want(a *account, places int) {
	a.wanted = places
	switch {
	case places > 0 && a.waiting == nil:
		a.waiting = t.queue.PushBack(a)
	case places <= 0 && a.waiting != nil:
		t.queue.Remove(a.waiting)
		a.waiting = nil
	}
}

// account is that of a ConfigWatch, a new one if there is none.
func (t *Turns) account(key types.NamespacedName) *account {
	a := t.accounts[key]
	if a == nil {
		a = &account{key: key}
		t.accounts[key] = a
	}
	return a
}
