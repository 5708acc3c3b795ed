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
	"context"
	"sync"
)

// Member is an Informer, of whatever it keeps.
type Member interface {
	OnState(call func())
	OnReconnect(call func(Reconnect))
	Kind() string
	Settled() bool
	Run(ctx context.Context)
}

// Group is informers that start and end together. It is a manager's Runnable.
type Group []Member

// OnState calls the function when the health of one of them may have changed. It must be called before
// Start.
func (g Group) OnState(call func()) {
	for _, member := range g {
		member.OnState(call)
	}
}

// Settled tells whether everything has been read, or has turned out not to be readable.
func (g Group) Settled() bool {
	for _, member := range g {
		if !member.Settled() {
			return false
		}
	}
	return true
}

// Start runs them until the context is done.
func (g Group) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, member := range g {
		running.Go(func() { member.Run(ctx) })
	}
	running.Wait()
	return nil
}

// NeedLeaderElection is false: every replica keeps its copies fresh, so that it can take over at once.
func (g Group) NeedLeaderElection() bool {
	return false
}
