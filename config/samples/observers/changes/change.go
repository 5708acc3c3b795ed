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

package changes

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event says what a Change is.
type Event string

// What becomes of a ConfigMap or Secret.
const (
	// Added: it appeared, or begins to match the selector. With Initial, it was there before.
	Added Event = "Added"
	// Modified: its content is another. Labels and other metadata alone are no event.
	Modified Event = "Modified"
	// Deleted: it is gone, or no longer matches the selector.
	Deleted Event = "Deleted"
)

// Marks of the stream.
const (
	// Gap: changes were lost, or may have been, so that what is known has to be forgotten. If Query.Initial asks
	// for it, what is there comes next, and then Synced; if not, it has to be read.
	Gap Event = "Gap"
	// Synced: all that is there has come.
	Synced Event = "Synced"
)

// Marks that are made here.
const (
	// Connected: changes are heard of from now on. What was missed meanwhile comes next, or a Gap has come.
	Connected Event = "Connected"
	// Interrupted: the connection is lost, and what happens now is not heard of until the next Connected.
	Interrupted Event = "Interrupted"
)

// Change is one event of one object, or a mark.
type Change struct {
	// ID is the same if an event comes twice.
	ID string `json:"-"`
	// Time is when the operator saw the change.
	Time time.Time `json:"-"`

	Event     Event  `json:"event"`
	Namespace string `json:"namespace"`
	// Kind is ConfigMap or Secret.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Labels are those of the object; if it is gone, those that it had.
	Labels map[string]string `json:"labels"`
	// Hash is that of the content, and PreviousHash that of the content before. Either is empty if there is none.
	Hash         string `json:"hash"`
	PreviousHash string `json:"previousHash"`
	// ChangedKeys are the names of the keys that were added, removed or changed.
	ChangedKeys []string `json:"changedKeys"`
	// Initial tells that the object is no news.
	Initial bool `json:"initial"`
	// Lost is how many changes a Gap stands for, if that is known.
	Lost int `json:"lost"`
	// Data and BinaryData are the content of a ConfigMap, if Query.Data asks for it. Data is nil if the object was
	// gone when it was to be read; its Deleted comes next.
	Data       map[string]string `json:"data"`
	BinaryData map[string][]byte `json:"binaryData"`
}

// parseChange reads a CloudEvent.
func parseChange(text string) (Change, error) {
	var event struct {
		ID   string    `json:"id"`
		Time time.Time `json:"time"`
		Data Change    `json:"data"`
	}
	if err := json.Unmarshal([]byte(text), &event); err != nil {
		return Change{}, fmt.Errorf("reading an event: %w", err)
	}
	c := event.Data
	c.ID, c.Time = event.ID, event.Time
	return c, nil
}
