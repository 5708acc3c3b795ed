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

package plan

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

const (
	// mostKeys is how many names of changed keys are kept with an event. Of more, none is: who is told of some
	// would take them for all.
	mostKeys = 16
	// mostKeyBytes bounds those of all events of a ConfigWatch.
	mostKeyBytes = 50_000
	// mostUnrepeatable is how many events wait for a subscriber that no later pass could make again: those of restarts
	// and rollouts, and deletions of sources that are no longer selected. The oldest go first.
	mostUnrepeatable = 200
	// mostUnrepeatableInAll bounds those of all subscribers of a ConfigWatch, which have the same share of it each.
	mostUnrepeatableInAll = 400
	// longestWaitingMessage is the length in bytes of the message of such an event.
	longestWaitingMessage = 400
	// mostRecords is how many sources are recorded for a subscriber.
	mostRecords = 1000
)

func ofSource(event v1alpha1.SubscriberEvent) bool {
	return event == v1alpha1.SubscriberAdded || event == v1alpha1.SubscriberModified || event == v1alpha1.SubscriberDeleted
}

func sourceOf(e *v1alpha1.WaitingEvent) source.Ref {
	return source.Ref{Kind: v1alpha1.SourceKind(e.Kind), Name: e.Name}
}

// record is what the subscriber was last told of a source, or nil.
func (t *telling) record(ref source.Ref) *v1alpha1.DeliveredSource {
	for i := range t.row.Sources {
		if s := &t.row.Sources[i]; s.Kind == ref.Kind && s.Name == ref.Name {
			return s
		}
	}
	return nil
}

// waitingFor is the index of the event of a source that waits, or -1. There is one at most, of the latest content.
func (t *telling) waitingFor(ref source.Ref) int {
	return slices.IndexFunc(t.row.Waiting, func(e v1alpha1.WaitingEvent) bool { return ofSource(e.Event) && sourceOf(&e) == ref })
}

// sources compares what the subscriber was told of with what is there.
func (t *telling) sources() {
	t.row.Waiting = slices.DeleteFunc(t.row.Waiting, func(e v1alpha1.WaitingEvent) bool { return !t.wants(e.Event) })
	records := make(map[source.Ref]v1alpha1.DeliveredSource, len(t.row.Sources))
	for _, s := range t.row.Sources {
		records[source.Ref{Kind: s.Kind, Name: s.Name}] = s
	}
	before := t.row.Sources
	t.row.Sources = nil
	selected := make(map[source.Ref]bool, len(t.subscription.Pairs))
	for i := range t.subscription.Pairs {
		pair := &t.subscription.Pairs[i]
		selected[pair.Source] = true
		if record, known := records[pair.Source]; known {
			t.compareWith(pair, record)
			t.rebased = t.rebased || rebasedHash(record.DeliveredHash, t.row.Sources[len(t.row.Sources)-1].DeliveredHash)
		} else {
			t.firstSight(pair)
		}
	}
	t.unselected(before, selected)
}

// unselected forgets sources that are no longer selected, unless that can't be said, because targets that may
// reference them can't be read. A deletion is told even if the source is forgotten since.
func (t *telling) unselected(before []v1alpha1.DeliveredSource, selected map[source.Ref]bool) {
	unsure := slices.ContainsFunc(t.in.Observed.Targets, func(target Target) bool { return target.Unreadable })
	for _, record := range before {
		if unsure && !selected[source.Ref{Kind: record.Kind, Name: record.Name}] && len(t.row.Sources) < mostRecords {
			t.row.Sources = append(t.row.Sources, record)
		}
	}
	t.row.Waiting = slices.DeleteFunc(t.row.Waiting, func(e v1alpha1.WaitingEvent) bool {
		return ofSource(e.Event) && e.Event != v1alpha1.SubscriberDeleted && t.record(sourceOf(&e)) == nil
	})
}

// firstSight is no news, unless a selector newly matches a source and nothing else changed, or the subscriber has
// yet to be told that it was deleted.
func (t *telling) firstSight(pair *Pair) {
	if pair.State == v1alpha1.SourceUnreadable {
		return
	}
	record := v1alpha1.DeliveredSource{Kind: pair.Source.Kind, Name: pair.Source.Name}
	present := pair.State == v1alpha1.SourcePresent
	appeared := pair.Selected && present && t.before != nil && t.records.ofThisSpec && t.records.sources[pair.Source] == nil
	if appeared || t.waitingFor(pair.Source) >= 0 {
		record.Absent = present
		t.compareWith(pair, record)
		return
	}
	t.row.Sources = append(t.row.Sources, told(pair, record))
}

// told is the record once the subscriber knows what is there, or need not be told of it.
func told(pair *Pair, record v1alpha1.DeliveredSource) v1alpha1.DeliveredSource {
	after := advance(*pair, applied(record))
	record.DeliveredHash, record.Absent = after.AppliedHash, after.Absent
	return record
}

// applied is the record as it would be that of a target.
func applied(record v1alpha1.DeliveredSource) v1alpha1.AppliedSource {
	return v1alpha1.AppliedSource{AppliedHash: record.DeliveredHash, Absent: record.Absent}
}

// afterTelling is the record once the subscriber was told of the event.
func afterTelling(record v1alpha1.DeliveredSource, e *v1alpha1.WaitingEvent) v1alpha1.DeliveredSource {
	record.Absent = e.Event == v1alpha1.SubscriberDeleted
	if !record.Absent {
		record.DeliveredHash = e.Hash
	}
	return record
}

// compareWith makes an event wait if there is something to tell.
func (t *telling) compareWith(pair *Pair, record v1alpha1.DeliveredSource) {
	at := t.waitingFor(pair.Source)
	event := t.newsOf(pair, record, at)
	switch {
	case pair.State == v1alpha1.SourceUnreadable:
	case event != "":
		t.wait(at, t.eventOf(pair, event))
	case t.mayKnow(at) && pair.State == v1alpha1.SourceMissing && t.row.Waiting[at].Event != v1alpha1.SubscriberDeleted:
		// It doesn't want to know that the source is gone, and may know of the content before: the record must have that.
	default:
		if at >= 0 {
			t.row.Waiting = slices.Delete(t.row.Waiting, at, at+1)
		}
		record = told(pair, record)
	}
	t.row.Sources = append(t.row.Sources, record)
}

// mayKnow tells whether the subscriber may have been told of the event.
func (t *telling) mayKnow(at int) bool {
	return at >= 0 && t.row.Waiting[at].ID == t.tried
}

// newsOf is what the subscriber is to be told of a source, if it wants that. What it may have been told of is
// compared as well: if that was taken back, it is told of what is there, be it what is recorded.
func (t *telling) newsOf(pair *Pair, record v1alpha1.DeliveredSource, at int) v1alpha1.SubscriberEvent {
	before := applied(record)
	sign := at >= 0 || t.contentChanged(pair.Source)
	if event := t.wanted(changesOf(*pair, &before, sign)); event != "" || !t.mayKnow(at) {
		return event
	}
	waiting := &t.row.Waiting[at]
	before = applied(afterTelling(record, waiting))
	changes := changesOf(*pair, &before, true)
	if len(changes) == 0 && t.wants(waiting.Event) {
		return waiting.Event
	}
	if pair.State == v1alpha1.SourcePresent {
		changes = append(changes, v1alpha1.Modified) // as it may know of something yet earlier
	}
	return t.wanted(changes)
}

// wanted is the first of the changes that the subscriber wants to be told of, or empty.
func (t *telling) wanted(changes []v1alpha1.Change) v1alpha1.SubscriberEvent {
	for _, c := range changes {
		if event := v1alpha1.SubscriberEvent(c); t.wants(event) {
			return event
		}
	}
	return ""
}

func (t *telling) eventOf(pair *Pair, event v1alpha1.SubscriberEvent) v1alpha1.WaitingEvent {
	e := v1alpha1.WaitingEvent{Event: event, Kind: string(pair.Source.Kind), Name: pair.Source.Name, Time: *t.second()}
	if pair.State != v1alpha1.SourcePresent {
		e.ID = t.deletionID(pair.Source)
		return e
	}
	e.ID, e.Hash = pair.UID+"/"+pair.ResourceVersion, string(pair.Hash)
	if pair.KeysKnown && len(pair.ChangedKeys) <= mostKeys {
		e.ChangedKeys = pair.ChangedKeys
	}
	return e
}

// deletionID is by which a deletion that is told twice is known. What the object was is not known any more; its
// name may be longer than an id.
func (t *telling) deletionID(ref source.Ref) string {
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%s/%s", ref.Kind, ref.Name) // which can't fail
	return fmt.Sprintf("%s/%016x/deleted/%d", t.in.UID, sum.Sum64(), t.in.Now.UnixMicro())
}

// wait puts an event where the one of the same source waits, or at the end. What is known of content that
// waits already stays as it is: its id is the same in each attempt.
func (t *telling) wait(at int, e v1alpha1.WaitingEvent) {
	switch {
	case at < 0:
		t.row.Waiting = append(t.row.Waiting, e)
	case t.row.Waiting[at].Hash != e.Hash || t.row.Waiting[at].Event != e.Event:
		t.row.Waiting[at] = e
	}
}

// rollouts makes the events of this pass wait that are about restarts and rollouts.
func (t *telling) rollouts() {
	if t.before == nil {
		return
	}
	for _, e := range t.events {
		event := v1alpha1.SubscriberEvent(e.Reason)
		if e.Target == nil || e.OnTarget || !t.wants(event) {
			continue
		}
		r := t.rowOf(e.Target)
		if r == nil {
			continue
		}
		waiting := v1alpha1.WaitingEvent{
			ID: fmt.Sprintf("%s/%s/%d/%s", t.in.UID, r.after.UID, e.Restart, step(event)), Event: event,
			Kind: r.after.Kind, Name: r.after.Name, Message: truncateTo(e.Said, longestWaitingMessage), Time: *t.second(),
		}
		if !slices.ContainsFunc(t.row.Waiting, func(other v1alpha1.WaitingEvent) bool { return other.ID == waiting.ID }) {
			t.row.Waiting = append(t.row.Waiting, waiting)
		}
	}
}

// step is the last part of the id of a target's event.
func step(event v1alpha1.SubscriberEvent) string {
	switch event {
	case v1alpha1.SubscriberRolloutCompleted:
		return "completed"
	case v1alpha1.SubscriberRolloutFailed:
		return "failed"
	case v1alpha1.SubscriberRestartTriggered, v1alpha1.SubscriberAdded, v1alpha1.SubscriberModified, v1alpha1.SubscriberDeleted:
	}
	return "triggered"
}

// rowOf is the row of a workload, or nil.
func (d *Decision) rowOf(w *workload.Workload) *row {
	i := slices.IndexFunc(d.rows, func(r *row) bool { return r.target.Workload == w })
	if i < 0 {
		return nil
	}
	return d.rows[i]
}

// bound keeps what waits so small that the status fits an object.
func (d *Decision) bound(tellings []*telling) {
	keys, unrepeatable := d.in.Observed.fitting(mostKeyBytes), d.in.Observed.fitting(mostUnrepeatableInAll)
	for _, t := range tellings {
		t.dropOldest(min(mostUnrepeatable, unrepeatable/len(tellings)))
		for i := range t.row.Waiting {
			e := &t.row.Waiting[i]
			size := 0
			for _, key := range e.ChangedKeys {
				size += len(key)
			}
			if size > keys {
				e.ChangedKeys, size = nil, 0
			}
			keys -= size
		}
	}
}

// dropOldest drops the oldest of the events that can't be made again, but for so many.
func (t *telling) dropOldest(most int) {
	unrepeatable := func(e v1alpha1.WaitingEvent) bool { return !ofSource(e.Event) || t.record(sourceOf(&e)) == nil }
	excess := -most
	for _, e := range t.row.Waiting {
		if unrepeatable(e) {
			excess++
		}
	}
	t.row.Waiting = slices.DeleteFunc(t.row.Waiting, func(e v1alpha1.WaitingEvent) bool {
		if excess <= 0 || !unrepeatable(e) {
			return false
		}
		excess--
		t.row.Dropped++
		return true
	})
}
