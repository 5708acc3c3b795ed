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
	"slices"

	"github.com/ktechhub/configwatch/internal/feed"
)

// Filter has another observer react to some events only, such as to Added.
type Filter struct {
	// Events are those that are passed on. Marks always are.
	Events []feed.EventType
	// News leaves out the objects that were there at first. Without, these are passed on, whatever Events has.
	News bool
	Next Observer
}

// Observe is that of the next observer.
func (f Filter) Observe(change feed.Change) error {
	pass := slices.Contains(f.Events, change.Type)
	if change.Initial {
		pass = !f.News
	}
	if pass || change.IsMark() {
		return f.Next.Observe(change)
	}
	return nil
}
