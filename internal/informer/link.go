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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// Reconnect tells that objects are watched again, after the watch of them had broken off.
type Reconnect struct {
	// Kind is theirs, such as ConfigMap.
	Kind string
	// Namespace is the one that is watched, empty for all.
	Namespace string
	// Away is how long there was no watch.
	Away time.Duration
	// Reread tells that all objects were read again, and not only what had changed meanwhile.
	Reread bool
	// Cause is the error of the last call that failed meanwhile, nil if none did.
	Cause error
}

// link is a watch, through all the calls that it takes. The API server ends a call when the time is over for which
// it was asked, and the next one goes on from there. A call that ends before has broken off (F11).
type link struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// made tells that there has been a call.
	made bool
	// lost is since when there is none that there should be; zero while all is well.
	lost   time.Time
	reread bool
	cause  error
}

// failed takes in that a call could not be made.
func (l *link) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = err
	l.lose()
}

// listed takes in that all objects were read.
func (l *link) listed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reread = true
}

// opened takes in a call that began at a time. If that mends what was broken, it tells so.
func (l *link) opened(w watch.Interface, began time.Time, o *metav1.ListOptions) (watch.Interface, *Reconnect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var again *Reconnect
	if l.made && !l.lost.IsZero() {
		streamed := o.SendInitialEvents != nil && *o.SendInitialEvents
		again = &Reconnect{Away: l.clock.Since(l.lost), Reread: l.reread || streamed, Cause: l.cause}
	}
	l.made, l.lost, l.reread, l.cause = true, time.Time{}, false, nil
	ended := sync.OnceFunc(func() { l.ended(began, o.TimeoutSeconds) })
	return &watched{Interface: w, ended: ended}, again
}

// ended takes in that a call is over, which began at a time and was to last for so many seconds.
func (l *link) ended(began time.Time, seconds *int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seconds == nil || l.clock.Since(began) < time.Duration(*seconds)*time.Second {
		l.lose()
	}
}

func (l *link) lose() {
	if l.lost.IsZero() {
		l.lost = l.clock.Now()
	}
}

// watched is a call that tells when it is over: whoever receives from it stops it then.
type watched struct {
	watch.Interface
	ended func()
}

// Stop implements watch.Interface.
func (w *watched) Stop() {
	w.ended()
	w.Interface.Stop()
}
