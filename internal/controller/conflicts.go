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
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// conflicts says how soon a pass is made again whose status write met a conflict: twice as late each time.
type conflicts struct {
	mu    sync.Mutex
	waits map[types.NamespacedName]time.Duration
}

func (c *conflicts) next(cw types.NamespacedName) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits == nil {
		c.waits = map[types.NamespacedName]time.Duration{}
	}
	wait := min(max(2*c.waits[cw], firstRetry), lastRetry)
	c.waits[cw] = wait
	return wait
}

func (c *conflicts) forget(cw types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, cw)
}
