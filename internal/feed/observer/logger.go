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
	"io"
	"strings"

	"github.com/ktechhub/configwatch/internal/feed"
)

const (
	// namedKeys is how many keys a line of text names before the rest is counted.
	namedKeys = 10
	// timeOfDay is how a line of text begins.
	timeOfDay = "15:04:05"
)

// Logger writes a line for every change.
type Logger struct {
	Out io.Writer
	// Line makes the line, without its end: Text, or JSON.
	Line func(change feed.Change) (string, error)
}

// Observe fails if the line can't be written.
func (l Logger) Observe(change feed.Change) error {
	line, err := l.Line(change)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(l.Out, line); err != nil {
		return fmt.Errorf("writing a change: %w", err)
	}
	return nil
}

// JSON is a change as a CloudEvent.
func JSON(change feed.Change) (string, error) {
	event, err := change.CloudEvent()
	if err != nil {
		return "", err
	}
	line, err := json.Marshal(event)
	if err != nil {
		return "", fmt.Errorf("encoding a CloudEvent: %w", err)
	}
	return string(line), nil
}

// Text is a change for people, in their time zone:
//
//	15:04:05 Modified ConfigMap shop/app-config (LOG_LEVEL)
func Text(change feed.Change) (string, error) {
	at := change.Time.Local().Format(timeOfDay)
	switch change.Type {
	case feed.Gap:
		lost := "changes"
		if change.Lost > 0 {
			lost = fmt.Sprintf("%d changes", change.Lost)
		}
		return at + " Gap      " + lost + " were lost, and what they were is not known", nil
	case feed.Synced:
		return at + " Synced   all that is there has been read", nil
	case feed.Added, feed.Modified, feed.Deleted:
	}
	event := string(change.Type)
	if change.Initial {
		event = "Present"
	}
	return fmt.Sprintf("%s %-8s %-9s %s/%s%s",
		at, event, change.Kind, change.Namespace, change.Name, keys(change.ChangedKeys)), nil
}

// keys is such as " (LOG_LEVEL, +2 keys)".
func keys(names []string) string {
	if len(names) == 0 {
		return ""
	}
	named := names[:min(namedKeys, len(names))]
	said := strings.Join(named, ", ")
	switch more := len(names) - len(named); more {
	case 0:
	case 1:
		said += ", +1 key"
	default:
		said += fmt.Sprintf(", +%d keys", more)
	}
	return " (" + said + ")"
}
