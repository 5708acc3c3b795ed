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

package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/config/samples/observers/changes"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
)

// view is what an observer knows, by nothing but what it was told. It finds whatever it must not be told.
type view struct {
	name string
	// of is the kind that it sees; empty: both.
	of v1alpha1.SourceKind
	// repeated tells that it is told at least once: an event may come again, with the same id; and of what it may have
	// been told, and wasn't, as far as the operator knows, it is told that it is gone (F6).
	repeated bool
	// hold keeps it from taking in anything until it is closed; nil: it takes everything in at once.
	hold <-chan struct{}

	mu       sync.Mutex
	known    map[source.Ref]changes.Change
	story    map[source.Ref][]string // what it was told of each, for whoever wonders
	last     map[source.Ref]string   // the ids of what it was told last
	synced   bool
	gaps     int // that it was told of
	cuts     int // of its own connection
	mistakes []string
}

func (v *view) observe(c changes.Change) {
	if v.hold != nil {
		<-v.hold
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch c.Event {
	case changes.Gap:
		v.gaps++
		v.known, v.synced = nil, false
	case changes.Synced:
		v.synced = true
	case changes.Interrupted:
		v.cuts++
	case changes.Connected:
	case changes.Added, changes.Modified, changes.Deleted:
		v.take(c)
	}
}

// take takes in what became of a source.
func (v *view) take(c changes.Change) {
	ref := source.Ref{Kind: v1alpha1.SourceKind(c.Kind), Name: c.Name}
	if v.repeated && v.last[ref] == c.ID {
		return
	}
	if v.known == nil {
		v.known = map[source.Ref]changes.Change{}
	}
	if v.last == nil {
		v.last, v.story = map[source.Ref]string{}, map[source.Ref][]string{}
	}
	v.story[ref] = append(v.story[ref], fmt.Sprintf("%s %s at %s", c.Event, c.ID, time.Now().Format(time.StampMilli)))
	before, there := v.known[ref]
	switch {
	case v.repeated && c.Event == changes.Deleted && !there:
	case there == (c.Event == changes.Added):
		v.mistake(c, fmt.Sprintf("there before: %v", there))
	case there && c.PreviousHash != before.Hash:
		v.mistake(c, "it changed from what was not told: before, it was "+before.ID)
	case c.Event == changes.Modified && c.Hash == before.Hash:
		v.mistake(c, "its content didn't change")
	case c.Data != nil && string(digest.Plain().Content(c.Data, c.BinaryData).Hash(nil)) != c.Hash:
		v.mistake(c, "its hash is not that of its data")
	}
	v.last[ref], v.known[ref] = c.ID, c
	if c.Event == changes.Deleted {
		delete(v.known, ref)
	}
}

func (v *view) mistake(c changes.Change, what string) {
	v.mistakes = append(v.mistakes, fmt.Sprintf("%s %s %s/%s (%s): %s", v.name, c.Event, c.Kind, c.Name, c.ID, what))
}

// check is nil if it knows what is there, and nothing else.
func (v *view) check(there map[source.Ref]digest.Hash) error {
	want := maps.Clone(there)
	maps.DeleteFunc(want, func(ref source.Ref, _ digest.Hash) bool { return v.of != "" && v.of != ref.Kind })
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.synced {
		return fmt.Errorf("%s has not been told all", v.name)
	}
	var wrong []source.Ref
	for ref, hash := range want {
		if v.known[ref].Hash != string(hash) {
			wrong = append(wrong, ref)
		}
	}
	for ref := range v.known {
		if want[ref] == "" {
			wrong = append(wrong, ref)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	first := slices.MinFunc(wrong, func(a, b source.Ref) int { return strings.Compare(a.String(), b.String()) })
	return fmt.Errorf("%s is wrong about %d of %d sources, such as %s, of which it has been told:\n\t%s",
		v.name, len(wrong), len(want), first, strings.Join(v.story[first], "\n\t"))
}

// state is how it went so far.
func (v *view) state() (gaps, cuts int, mistakes []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gaps, v.cuts, slices.Clone(v.mistakes)
}

// Observe implements observer.Observer.
func (v *view) Observe(c feed.Change) error {
	v.observe(changes.Change{
		ID: c.ID(), Event: changes.Event(c.Type), Namespace: c.Namespace, Kind: string(c.Kind), Name: c.Name,
		Hash: string(c.Hash), PreviousHash: string(c.PreviousHash), Initial: c.Initial, Lost: c.Lost,
	})
	return nil
}
