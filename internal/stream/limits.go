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

package stream

import (
	"fmt"
	"sync"
)

// limits counts the streams that are open, and refuses those that are too many.
type limits struct {
	most, mostPerUser int

	// present has those who have not left.
	present sync.WaitGroup

	mu     sync.Mutex
	closed bool
	total  int
	users  map[string]int
}

func newLimits(most, mostPerUser int) *limits {
	return &limits{most: most, mostPerUser: mostPerUser, users: map[string]int{}}
}

// enter counts a stream of a user, who has to leave again, unless it is refused.
func (l *limits) enter(user string) *refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return unavailable("this replica shuts down: connect again")
	case l.total >= l.most:
		return tooManyRequests(fmt.Sprintf("this replica has %d streams open, as many as it may", l.total))
	case l.users[user] >= l.mostPerUser:
		return tooManyRequests(fmt.Sprintf("User %q has %d streams open, as many as a user may", user, l.users[user]))
	}
	l.present.Add(1)
	l.total++
	l.users[user]++
	return nil
}

func (l *limits) leave(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.users[user]--; l.users[user] == 0 {
		delete(l.users, user)
	}
	l.present.Done()
}

// close has everyone refused from now on. Then it can be waited for until those who are present have left.
func (l *limits) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

func (l *limits) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}
