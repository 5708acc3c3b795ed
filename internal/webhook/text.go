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

package webhook

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/ktechhub/configwatch/internal/feed"
)

const (
	// shownKeys is how many names of keys a text has.
	shownKeys = 10
	// longestQuote is how many characters of a name or message it has. A name of Kubernetes, and its kind, are
	// shorter.
	longestQuote = 500
)

// text is a message for people: one short line.
type text []passage

// passage is either words of ours, or quoted: something from the cluster that is to be shown as it is, and in which a
// chat must find no markup. Whatever is quoted is clean and of limited length.
type passage struct {
	text   string
	quoted bool
}

func say(words string) passage {
	return passage{text: words}
}

func quote(value string) passage {
	return passage{text: clean(value), quoted: true}
}

// clean makes one line of readable characters: none that control, hide or reorder others.
func clean(value string) string {
	value = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(value, "\uFFFD"))
	value = strings.Join(strings.Fields(value), " ")
	if characters := []rune(value); len(characters) > longestQuote {
		value = string(characters[:longestQuote-1]) + "…"
	}
	return value
}

// changeText is such as: `ConfigMap app-config` in namespace `shop` was modified. Keys: `LOG_LEVEL`.
func changeText(c feed.Change) text {
	t := about(string(c.Kind), c.Name, c.Namespace)
	words := " was " + strings.ToLower(string(c.Type))
	for n, key := range c.ChangedKeys {
		switch n {
		case 0:
			words += ". Keys: "
		case shownKeys:
			return append(t, say(fmt.Sprintf(" and %d more.", len(c.ChangedKeys)-shownKeys)))
		default:
			words = ", "
		}
		t = append(t, say(words), quote(key))
		words = ""
	}
	return append(t, say(words+"."))
}

// rolloutText is such as: `Deployment web` in namespace `shop` was restarted by ConfigWatch `web`. Cause: `…`.
func rolloutText(r Rollout) text {
	t := about(r.Target.Kind, r.Target.Name, r.Namespace)
	switch r.Event {
	case RestartTriggered:
		t = append(t, say(" was restarted by ConfigWatch "))
	case RolloutCompleted:
		t = append(t, say(" is rolled out, after its restart by ConfigWatch "))
	case RolloutFailed:
		t = append(t, say(" failed to roll out, after its restart by ConfigWatch "))
	}
	t = append(t, quote(r.ConfigWatch))
	if cause := quote(r.Cause); cause.text != "" {
		t = append(t, say(". Cause: "), cause)
	}
	if outcome := quote(r.Outcome); outcome.text != "" {
		t = append(t, say(". Outcome: "), outcome)
	}
	return append(t, say("."))
}

// about names an object.
func about(kind, name, namespace string) text {
	return text{quote(kind + " " + name), say(" in namespace "), quote(namespace)}
}
