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
	"encoding/json"
	"fmt"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
)

// Counter keeps how many objects there are, and how many changes there were. It needs a subscription that asks
// for the present objects.
type Counter struct {
	// Present is how many objects there are.
	Present struct{ ConfigMaps, Secrets int }
	// Added, Modified and Deleted are how many such changes there were.
	Added, Modified, Deleted int
	// Lost is how many changes were lost; what they were is not known.
	Lost int
}

// Observe never fails.
func (c *Counter) Observe(change feed.Change) error {
	switch {
	case change.Type == feed.Gap:
		c.Lost += change.Lost
		c.Present.ConfigMaps, c.Present.Secrets = 0, 0 // they are told anew
	case change.Initial:
		*c.present(change.Kind)++
	case change.Type == feed.Added:
		*c.present(change.Kind)++
		c.Added++
	case change.Type == feed.Modified:
		c.Modified++
	case change.Type == feed.Deleted:
		*c.present(change.Kind)--
		c.Deleted++
	}
	return nil
}

func (c *Counter) present(kind v1alpha1.SourceKind) *int {
	if kind == v1alpha1.Secret {
		return &c.Present.Secrets
	}
	return &c.Present.ConfigMaps
}

// Text is the counts for people. It is a Line of a Logger that comes after the Counter.
func (c *Counter) Text(change feed.Change) (string, error) {
	at := change.Time.Local().Format(timeOfDay)
	return fmt.Sprintf("%s %d ConfigMaps, %d Secrets; %d added, %d modified, %d deleted, %d lost",
		at, c.Present.ConfigMaps, c.Present.Secrets, c.Added, c.Modified, c.Deleted, c.Lost), nil
}

// JSON is the counts as JSON. It is a Line of a Logger that comes after the Counter.
func (c *Counter) JSON(feed.Change) (string, error) {
	line, err := json.Marshal(map[string]any{
		"present": map[v1alpha1.SourceKind]int{v1alpha1.ConfigMap: c.Present.ConfigMaps, v1alpha1.Secret: c.Present.Secrets},
		"events":  map[feed.EventType]int{feed.Added: c.Added, feed.Modified: c.Modified, feed.Deleted: c.Deleted},
		"lost":    c.Lost,
	})
	if err != nil {
		return "", fmt.Errorf("encoding the counts: %w", err)
	}
	return string(line), nil
}
