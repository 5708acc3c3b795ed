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

package feed

import (
	"sync"
	"time"

	"github.com/ktechhub/configwatch/internal/source"
)

// Subscription is a queue of the changes that a filter lets through. It is safe for concurrent use.
type Subscription struct {
	broker *Broker
	filter Filter

	events    chan Change
	withdrawn chan struct{} // tells the delivery that what it offers is no longer what comes next
	done      chan struct{}
	closing   sync.Once
	delivery  sync.WaitGroup
	deliver   func() // sendQueued, made once: a go statement then allocates nothing (F5)

	// These are the broker's, guarded by its lock.
	position int  // in the broker's list
	waiting  bool // for the present objects to be known

	// next is who begins to deliver after this one; see beginners.
	next *Subscription

	mu         sync.Mutex
	listening  bool // Events has been called
	delivering bool
	closed     bool
	queue      queue
	offered    offer     // what the delivery waits to send
	offering   sync.Cond // tells that it is another, or that there is none any more
}

// queue is what there is to receive, in this order: the present objects, the mark after them, the gap, and
// the changes. The gap is where the lost ones were, and these come after the objects that are present.
type queue struct {
	present     []*source.Source
	presentTime time.Time
	synced      bool
	lost        int
	changes     ring
	// renewals is how often it was emptied.
	renewals int
}

// part is one of the queue's.
type part int

const (
	nothing part = iota
	presentObject
	syncedMark
	gapMark
	liveChange
)

// offer is what comes next, as the place that it has in the queue.
type offer struct {
	part    part
	lost    int    // that a gap stands for
	passed  uint64 // by the ring, for a live change
	renewal int
}

// Events is the channel of the changes. It is closed when the subscription is. Nothing is on its way while
// it is not received: when changes are lost, the next thing received is a Gap (F2), but for present objects
// that are still to come.
func (s *Subscription) Events() <-chan Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listening = true
	if s.begin() {
		go s.deliver()
	}
	return s.events
}

// Close ends the subscription. What was not received is dropped. It may be called at any time, more than
// once, and by anyone; when it returns, nothing of the subscription is left (F1).
func (s *Subscription) Close() {
	s.closing.Do(func() {
		s.broker.remove(s)
		s.mu.Lock()
		s.closed = true
		s.queue.clear()
		s.offering.Broadcast()
		s.mu.Unlock()
		close(s.done)
		s.delivery.Wait()
		close(s.events)
	})
}

// Reread begins anew: what is queued is dropped, and the objects that are present now come instead, each as
// Added and marked initial, and then Synced, as if the subscription had been made now and asked for them.
// It is the answer to a Gap: nothing is missed and nothing comes twice. When it returns, nothing of before can
// be received any more.
func (s *Subscription) Reread() {
	s.broker.reread(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.delivering && !s.closed && s.offered.renewal != s.queue.renewals {
		s.offering.Wait()
	}
}

// push queues a change. If it tells to begin, the caller has to have deliver run.
func (s *Subscription) push(c *Change) (begin bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.changes.push(c) {
		s.queue.lost++
		if s.offered.part == liveChange || s.offered.part == gapMark {
			s.withdraw()
		}
	}
	return s.begin()
}

// drop empties the queue.
func (s *Subscription) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.clear()
	s.withdraw()
}

// start queues the present objects, and the mark after them. The queue is empty.
func (s *Subscription) start(present []*source.Source, at time.Time) (begin bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.queue.present, s.queue.presentTime, s.queue.synced = present, at, true
	return s.begin()
}

// complete queues present objects that could not be read when the others were. They come before any change
// of theirs, as there was none yet.
func (s *Subscription) complete(present []*source.Source, at time.Time) (begin bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.present, s.queue.presentTime = append(s.queue.present, present...), at
	return s.begin()
}

// begin tells whether a delivery has to be started, and then takes it for started.
func (s *Subscription) begin() bool {
	if !s.listening || s.delivering || s.closed || s.queue.empty() {
		return false
	}
	s.delivering = true
	s.delivery.Add(1)
	return true
}

// withdraw takes back what is offered and not received yet, as it is no longer what comes next.
func (s *Subscription) withdraw() {
	select {
	case s.withdrawn <- struct{}{}:
	default: // it has been told
	}
}

// sendQueued sends what is queued, and ends when there is nothing left: an idle subscription has no
// goroutine.
func (s *Subscription) sendQueued() {
	defer s.delivery.Done()
	for {
		change, o := s.offer()
		if o.part == nothing {
			return
		}
		select {
		case <-s.withdrawn:
			continue // rather than let a receiver that came in the meantime have it
		default:
		}
		select {
		case s.events <- change:
			s.received(o)
		case <-s.withdrawn:
		case <-s.done:
			return
		}
	}
}

// offer is what comes next. If that is nothing, the delivery has ended.
func (s *Subscription) offer() (Change, offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.withdrawn: // an earlier offer
	default:
	}
	var change Change
	change, s.offered = s.queue.next()
	switch s.offered.part {
	case nothing:
		s.delivering = false
	case syncedMark, gapMark:
		change.Namespace, change.Kind, change.Name = s.filter.Namespace, s.filter.Kind, s.filter.Name
		change.Time = s.broker.clock.Now()
	case presentObject, liveChange:
	}
	s.offering.Broadcast()
	return change, s.offered
}

// received takes from the queue what was sent.
func (s *Subscription) received(o offer) {
	if o.part == gapMark {
		s.broker.gaps.slow.Inc()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.take(o)
}

func (q *queue) empty() bool {
	return len(q.present) == 0 && !q.synced && q.lost == 0 && q.changes.size == 0
}

// clear drops everything. What is being sent is not in the queue any more.
func (q *queue) clear() {
	q.present, q.synced, q.lost = nil, false, 0
	q.changes.clear()
	q.renewals++
}

// next is what comes next, if there is anything.
func (q *queue) next() (Change, offer) {
	o := offer{renewal: q.renewals}
	switch {
	case len(q.present) > 0:
		o.part = presentObject
		change := *added(q.present[0], q.presentTime)
		change.Initial = true
		return change, o
	case q.synced:
		o.part = syncedMark
		return Change{Type: Synced}, o
	case q.lost > 0:
		o.part, o.lost = gapMark, q.lost
		return Change{Type: Gap, Lost: q.lost}, o
	case q.changes.size > 0:
		o.part, o.passed = liveChange, q.changes.passed
		return *q.changes.oldest(), o
	default:
		return Change{}, o
	}
}

// take takes away what was received, as far as it is still there.
func (q *queue) take(o offer) {
	if o.renewal != q.renewals {
		return
	}
	switch o.part {
	case presentObject:
		q.present[0] = nil
		if q.present = q.present[1:]; len(q.present) == 0 {
			q.present = nil
		}
	case syncedMark:
		q.synced = false
	case gapMark:
		q.lost -= o.lost
	case liveChange:
		if o.passed == q.changes.passed {
			q.changes.pop()
		} else {
			q.lost-- // it was dropped just when it was received
		}
	case nothing:
	}
}

// beginners are subscriptions whose delivery has to be started. They are linked to each other, so that the
// list takes no memory of its own (F5).
type beginners struct {
	first *Subscription
}

func (b *beginners) add(s *Subscription) {
	s.next, b.first = b.first, s
}

// start has them deliver, without the caller's having to start each of them.
func (b *beginners) start() {
	if b.first != nil {
		go deliverAll(b.first)
	}
}

func deliverAll(s *Subscription) {
	for s.next != nil {
		next := s.next
		s.next = nil
		go s.deliver()
		s = next
	}
	s.deliver()
}
