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

package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
)

// maxUnreportedEvents bounds the Events that wait for a status write; the oldest go first. It is more than
// one pass can have of restarts: two each, of as many targets as a ConfigWatch may have.
const maxUnreportedEvents = 4000

// unrecorded is what passes concluded and has not been written yet: restarts are made before they are
// recorded, and writes fail. It spares the passes in between the guess from the marks on the pod
// templates, which are for when it is lost with its process (E9).
type unrecorded struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]conclusion
}

// conclusion is what the passes concluded since the status was written.
type conclusion struct {
	uid     types.UID
	written v1alpha1.ConfigWatchStatus
	status  v1alpha1.ConfigWatchStatus
	news    []plan.Event
}

// latest is the status that the next pass goes on from, and the news that go with it: what was concluded
// last, as long as nobody else has written the status since. That of a write whose answer was lost is there.
func (u *unrecorded) latest(cw *v1alpha1.ConfigWatch) (v1alpha1.ConfigWatchStatus, []plan.Event) {
	c := u.get(cw)
	switch {
	case c.uid != cw.UID:
		return cw.Status, nil
	case equality.Semantic.DeepEqual(c.written, cw.Status), equality.Semantic.DeepEqual(c.status, cw.Status):
		return c.status, c.news
	}
	return cw.Status, nil
}

func (u *unrecorded) get(cw *v1alpha1.ConfigWatch) conclusion {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.byKey[client.ObjectKeyFromObject(cw)]
}

func (u *unrecorded) keep(cw *v1alpha1.ConfigWatch, c conclusion) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey == nil {
		u.byKey = map[types.NamespacedName]conclusion{}
	}
	c.uid = cw.UID
	c.news = c.news[max(0, len(c.news)-maxUnreportedEvents):]
	u.byKey[client.ObjectKeyFromObject(cw)] = c
}

// forget drops what has been written, or is of a ConfigWatch that is gone.
func (u *unrecorded) forget(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byKey, key)
}
