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

// ring is a queue of changes with a limit. It grows as it fills, so that an idle subscription costs next to
// nothing.
type ring struct {
	changes []*Change
	limit   int
	// first is where the oldest is, and size how many there are.
	first, size int
	// passed is how many have left the ring, which numbers the oldest.
	passed uint64
}

const ringStart = 8

// push adds a change, and tells whether the oldest had to go for it.
func (r *ring) push(c *Change) (overflow bool) {
	if r.size == r.limit {
		r.pop()
		overflow = true
	}
	if r.size == len(r.changes) {
		r.grow()
	}
	r.changes[(r.first+r.size)%len(r.changes)] = c
	r.size++
	return overflow
}

func (r *ring) grow() {
	changes := make([]*Change, min(r.limit, max(ringStart, 2*len(r.changes))))
	n := copy(changes, r.changes[r.first:])
	copy(changes[n:], r.changes[:r.first])
	r.changes, r.first = changes, 0
}

// oldest is the first that was pushed. There must be one.
func (r *ring) oldest() *Change {
	return r.changes[r.first]
}

// pop takes the oldest away. There must be one.
func (r *ring) pop() {
	r.changes[r.first] = nil
	r.first = (r.first + 1) % len(r.changes)
	r.size--
	r.passed++
}

// clear takes all away, and the memory with it.
func (r *ring) clear() {
	r.changes, r.first, r.size = nil, 0, 0
}
