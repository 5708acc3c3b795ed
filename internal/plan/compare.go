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
	"slices"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/source"
)

// compare finds the changes between what is recorded of each pair and what is observed.
func (d *Decision) compare(r *row) {
	for _, pair := range r.target.Pairs {
		record := r.record(pair.Source)
		if record == nil {
			record = d.firstRecord(r, pair)
		}
		if record == nil {
			continue // not readable, and never was
		}
		changes := changesOf(pair, record, r.owed() || d.contentChanged(pair.Source))
		as, calls := callsFor(pair, changes)
		advanced := advance(pair, *record)
		switch {
		case len(changes) == 0:
			r.after.Sources = append(r.after.Sources, rebase(pair, *record))
		case r.target.Workload.Rollout.ReadsAtNextRun: // E22
			r.events = append(r.events, readsAtNextRun(r, change{Pair: pair, as: as}))
			r.after.Sources = append(r.after.Sources, advanced)
		case calls && d.deletedBeforeEdit(r, pair): // E5: the present spec has only seen it absent
			r.after.Sources = append(r.after.Sources, advanced)
		case calls:
			r.stale = append(r.stale, change{Pair: pair, as: as})
			r.after.Sources = append(r.after.Sources, *record)
		default: // E4: the change calls for no restart
			d.noRestart(r, change{Pair: pair, as: as})
			r.after.Sources = append(r.after.Sources, unlessDeleted(pair, *record, advanced))
		}
		r.applied = append(r.applied, advanced)
	}
}

// firstRecord is the record of a pair that has none: a baseline, which never restarts anything (E5).
//
// A source that a selector newly matches was absent before as far as the pair goes, if the spec lists
// Added, and is the same, and the target isn't new (E6). One that was matched before is new to the
// target only, because its pod template begins to reference it.
func (d *Decision) firstRecord(r *row, pair Pair) *v1alpha1.AppliedSource {
	if pair.State == v1alpha1.SourceUnreadable {
		return nil
	}
	record := v1alpha1.AppliedSource{Kind: pair.Source.Kind, Name: pair.Source.Name}
	appeared := pair.Selected && pair.State == v1alpha1.SourcePresent && r.before != nil &&
		d.records.ofThisSpec && d.records.sources[pair.Source] == nil && slices.Contains(pair.RestartOn, v1alpha1.Added)
	if appeared {
		record.Absent = true
		return &record
	}
	record = advance(pair, record)
	return &record
}

// contentChanged tells whether any of a source's content changed since the record was made. Where an
// edit of the spec's keys makes the hashes of a pair incomparable, that tells a change that was made
// together with the edit from none (E4, E5).
func (d *Decision) contentChanged(ref source.Ref) bool {
	before, now := d.records.sources[ref], d.observed[ref]
	return before != nil && now != nil && contentDiffers(before, now)
}

// deletedBeforeEdit tells whether a source was deleted under a spec by which that called for no restart.
// That the spec was edited meanwhile changes nothing about it.
func (d *Decision) deletedBeforeEdit(r *row, pair Pair) bool {
	before := d.records.sources[pair.Source]
	return pair.State == v1alpha1.SourceMissing && !d.records.ofThisSpec && !r.owed() &&
		before != nil && before.State == v1alpha1.SourceMissing
}

// callsFor is the change that calls for a restart; if none does, the most telling one.
func callsFor(pair Pair, changes []v1alpha1.Change) (as v1alpha1.Change, calls bool) {
	for _, c := range changes {
		if slices.Contains(pair.RestartOn, c) {
			return c, true
		}
	}
	if len(changes) == 0 {
		return "", false
	}
	return changes[0], false
}

// changesOf tells in which ways the pair differs from its record (E6), most telling first. Hashes of
// different formats can't be compared: that is no change (E3, E5), unless there is another sign of one.
func changesOf(pair Pair, record *v1alpha1.AppliedSource, sign bool) []v1alpha1.Change {
	applied := digest.Hash(record.AppliedHash)
	present := pair.State == v1alpha1.SourcePresent
	switch {
	case pair.State == v1alpha1.SourceUnreadable:
		return nil
	case !present && !record.Absent:
		return []v1alpha1.Change{v1alpha1.Deleted}
	case !present:
		return nil
	}
	differs := applied != "" && applied != pair.Hash && (applied.Comparable(pair.Hash) || sign)
	switch {
	case record.Absent && differs:
		return []v1alpha1.Change{v1alpha1.Added, v1alpha1.Modified}
	case record.Absent:
		return []v1alpha1.Change{v1alpha1.Added}
	case differs:
		return []v1alpha1.Change{v1alpha1.Modified}
	}
	return nil
}

// advance is the record once the target's pods are started for what is observed. What was said of other content is not
// said of it (E17).
func advance(pair Pair, record v1alpha1.AppliedSource) v1alpha1.AppliedSource {
	before := contentOf(&record)
	switch pair.State {
	case v1alpha1.SourcePresent:
		record.AppliedHash, record.Absent = string(pair.Hash), false
	case v1alpha1.SourceMissing:
		record.Absent = true
	case v1alpha1.SourceUnreadable, v1alpha1.SourceIgnored:
	}
	if contentOf(&record) != before {
		record.Changed, record.Failed = false, false
	}
	return record
}

// rebase takes over a hash of another format as a baseline (E3).
func rebase(pair Pair, record v1alpha1.AppliedSource) v1alpha1.AppliedSource {
	if pair.State == v1alpha1.SourcePresent && !digest.Hash(record.AppliedHash).Comparable(pair.Hash) {
		changed, failed := record.Changed, record.Failed // as far as anybody knows, the content is the same
		record = advance(pair, record)
		record.Changed, record.Failed = changed, failed
	}
	return record
}

// unlessDeleted keeps the record of a source that is gone without a restart: when it comes back, it
// is compared with what it was before (E6).
func unlessDeleted(pair Pair, record, advanced v1alpha1.AppliedSource) v1alpha1.AppliedSource {
	if pair.State == v1alpha1.SourceMissing {
		return record
	}
	return advanced
}

// noRestart tells of a change that calls for no restart, when it is seen for the first time.
func (d *Decision) noRestart(r *row, c change) {
	if c.as == v1alpha1.Deleted {
		before := d.records.sources[c.Source]
		if before == nil || before.State == v1alpha1.SourceMissing {
			return // its pair isn't advanced, so the change is seen in every pass
		}
	}
	r.events = append(r.events, notRestarted(r, c))
}
