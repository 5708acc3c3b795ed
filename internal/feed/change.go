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

package feed

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/source"
)

// EventType says what a Change is.
type EventType string

// What becomes of a source (F3).
const (
	// Added: a source appeared, or begins to match the selector.
	Added EventType = "Added"
	// Modified: its content is another. Metadata alone is no event.
	Modified EventType = "Modified"
	// Deleted: it is gone, or no longer matches the selector.
	Deleted EventType = "Deleted"
)

// Marks, which every subscription gets, whatever its filter.
const (
	// Gap stands for changes that were lost because they were not received in time (F2). What is there
	// has to be read again: see Subscription.Reread.
	Gap EventType = "Gap"
	// Synced follows the last of the present objects that a subscription asked for (F4).
	Synced EventType = "Synced"
)

// Change is one event of one source, or a mark. It is shared and must not be changed.
//
// A Change of a Secret has no more than that of a ConfigMap: names of keys, and hashes under a key that
// only the operator has (E2).
type Change struct {
	Type EventType
	// Namespace, Kind and Name are those of the source. A mark has those of its subscription's filter.
	Namespace string
	Kind      v1alpha1.SourceKind
	Name      string
	// UID is that of the object.
	UID types.UID
	// ResourceVersion is that of the object since the change. It is empty if the object was found to be
	// gone by a list, as the version of that deletion is not known.
	ResourceVersion string
	// Labels are those of the object; if it is gone, those that it had.
	Labels map[string]string
	// Hash is that of the content, empty if the object is gone.
	Hash digest.Hash
	// PreviousHash is that of the content before, empty if there was none.
	PreviousHash digest.Hash
	// ChangedKeys are the sorted names of the keys that were added, removed or changed: all that there
	// are if the object appeared, all that there were if it is gone.
	ChangedKeys []string
	// Time is when the change arrived here.
	Time time.Time
	// Initial tells that the object is no news: it was there when the subscription began.
	Initial bool
	// Lost is how many changes a Gap stands for.
	Lost int
	// Step is what of the kind's watch the change belongs to, if the broker is that of a History. Present objects
	// and marks have none.
	Step *source.Step
}

// transition is what became of a source, from which each subscription gets the Change that suits its
// filter. Each is made once, when it is first asked for, however many ask (F5).
type transition struct {
	// before and after are nil if the object was not there, or isn't.
	before, after *source.Source
	// version is the resource version at which it came to be.
	version string
	step    *source.Step
	time    time.Time

	added, modified, deleted *Change
}

// seenBy is the Change that a subscription with the filter gets, or nil. As in a watch of Kubernetes, an
// object that begins to match is Added, and one that no longer does is Deleted.
func (t *transition) seenBy(f *Filter) *Change {
	was, is := f.matches(t.before), f.matches(t.after)
	switch {
	case was && is:
		return t.asModified()
	case is:
		return t.asAdded()
	case was:
		return t.asDeleted()
	default:
		return nil
	}
}

func (t *transition) asAdded() *Change {
	if t.added == nil {
		t.added = added(t.after, t.time)
		t.added.Step = t.step
	}
	return t.added
}

// asModified is nil if the content is the same (F3).
func (t *transition) asModified() *Change {
	if t.modified == nil && !t.before.Content.Equal(t.after.Content) {
		c := about(Modified, t.after, t.time)
		c.Hash = t.after.Content.Hash(nil)
		c.PreviousHash = t.before.Content.Hash(nil)
		c.ChangedKeys = digest.ChangedKeys(t.before.Content, t.after.Content)
		c.Step = t.step
		t.modified = c
	}
	return t.modified
}

func (t *transition) asDeleted() *Change {
	if t.deleted == nil {
		c := about(Deleted, t.before, t.time)
		c.ResourceVersion = t.version
		c.PreviousHash = t.before.Content.Hash(nil)
		c.ChangedKeys = digest.ChangedKeys(t.before.Content, digest.Content{})
		c.Step = t.step
		t.deleted = c
	}
	return t.deleted
}

func added(s *source.Source, at time.Time) *Change {
	c := about(Added, s, at)
	c.Hash = s.Content.Hash(nil)
	c.ChangedKeys = digest.ChangedKeys(digest.Content{}, s.Content)
	return c
}

func about(event EventType, s *source.Source, at time.Time) *Change {
	return &Change{
		Type:            event,
		Namespace:       s.Namespace,
		Kind:            s.Kind,
		Name:            s.Name,
		UID:             s.UID,
		ResourceVersion: s.ResourceVersion,
		Labels:          s.Labels,
		Time:            at,
	}
}
