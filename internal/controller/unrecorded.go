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
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
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

// maxSentStatuses bounds the statuses of which it isn't known whether they were written; the oldest go first.
// Writes are repeated with backoff, so that it takes hours to have as many.
const maxSentStatuses = 100

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
	// sent are statuses whose writes failed. An answer may be lost, so that any of them may have been written.
	sent []fingerprint
}

// fingerprint tells a status from others.
type fingerprint [sha256.Size]byte

func fingerprintOf(status *v1alpha1.ConfigWatchStatus) (fingerprint, error) {
	encoded, err := json.Marshal(status)
	if err != nil {
		return fingerprint{}, fmt.Errorf("encoding a status: %w", err)
	}
	return sha256.Sum256(encoded), nil
}

// latest is the conclusion that the next pass goes on from: the last one, as long as nobody else has written
// the status since. What a write left there whose answer was lost is no one else's, however many passes ago
// it was sent.
func (u *unrecorded) latest(cw *v1alpha1.ConfigWatch) conclusion {
	c := u.get(cw)
	if c.uid == cw.UID && c.mayHaveLed(&cw.Status) {
		c.written = cw.Status
		return c
	}
	return conclusion{written: cw.Status, status: cw.Status}
}

// mayHaveLed tells whether the status is one that this process had begun from or sent.
func (c *conclusion) mayHaveLed(status *v1alpha1.ConfigWatchStatus) bool {
	if equality.Semantic.DeepEqual(c.written, *status) || equality.Semantic.DeepEqual(c.status, *status) {
		return true
	}
	if len(c.sent) == 0 {
		return false
	}
	found, err := fingerprintOf(status)
	return err == nil && slices.Contains(c.sent, found)
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

// failed remembers that the write of what was concluded failed, and so may be there or not.
func (u *unrecorded) failed(cw *v1alpha1.ConfigWatch) error {
	c := u.get(cw)
	sent, err := fingerprintOf(&c.status)
	if err != nil || slices.Contains(c.sent, sent) {
		return err
	}
	c.sent = append(slices.Clone(c.sent), sent)
	c.sent = c.sent[max(0, len(c.sent)-maxSentStatuses):]
	u.keep(cw, c)
	return nil
}

// forget drops what has been written, or is of a ConfigWatch that is gone.
func (u *unrecorded) forget(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byKey, key)
}
