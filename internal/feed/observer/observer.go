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

package observer

import (
	"context"

	"github.com/ktechhub/configwatch/internal/feed"
)

// Observer is told of changes, one after the other.
type Observer interface {
	// Observe takes a change, or a mark, in. An error ends the observation.
	Observe(change feed.Change) error
}

// Run tells an observer of all that a subscription brings, until the context is done, the subscription is
// closed or the observer fails. When changes were lost (F2), it has the present objects told anew.
func Run(ctx context.Context, subscription *feed.Subscription, observer Observer) error {
	events := subscription.Events()
	for {
		select {
		case <-ctx.Done():
			return nil
		case change, open := <-events:
			if !open {
				return nil
			}
			if err := observer.Observe(change); err != nil {
				return err
			}
			if change.Type == feed.Gap {
				subscription.Reread()
			}
		}
	}
}

// Each tells several observers of a change, in their order.
type Each []Observer

// Observe ends with the first that fails.
func (e Each) Observe(change feed.Change) error {
	for _, observer := range e {
		if err := observer.Observe(change); err != nil {
			return err
		}
	}
	return nil
}
