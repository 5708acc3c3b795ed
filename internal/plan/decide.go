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
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// Decision is what a pass does. It is finished by Conclude.
type Decision struct {
	// Restarts are to be made now, in no order and independently of each other.
	Restarts []Restart
	// LookAgain is when a pass is due even if nothing happens; zero: never.
	LookAgain time.Time

	in       Input
	records  records
	observed map[source.Ref]*Source
	rows     []*row
	status   v1alpha1.ConfigWatchStatus
	events   []Event
}

// Restart is one restart of one target.
type Restart struct {
	Workload *workload.Workload
	Mark     workload.Mark
	// Cause says what changed, for a reader.
	Cause string
	// Unproven are the sources whose recorded content this process has never had in its cache, as they
	// were observed. That may be behind what another process restarted for, rather than ahead of it.
	Unproven []source.Version
}

// row is a target on its way through a pass.
type row struct {
	target  Target
	before  *v1alpha1.TargetStatus // nil: there is no record, or it is not of this workload
	records map[source.Ref]*v1alpha1.AppliedSource
	after   v1alpha1.TargetStatus
	stale   []change
	applied []v1alpha1.AppliedSource // what is recorded once the restart is made
	number  int64                    // of the latest restart: what is recorded, or what the template shows
	restart int                      // index in Decision.Restarts, or -1
	resumed bool                     // a restart was made by a pass whose record was lost
	// undecided: such a restart was made, and it can't be said for what, as a source is not readable.
	undecided bool
	events    []Event
}

// change is a difference between what is recorded of a pair and what is observed.
type change struct {
	Pair
	as v1alpha1.Change
}

// Decide says which restarts to make.
func Decide(in Input) *Decision {
	d := &Decision{in: in, records: newRecords(in.Recorded, in.Generation), observed: map[source.Ref]*Source{}}
	d.status.ObservedGeneration = in.Generation
	d.status.Conditions = slices.Clone(in.Recorded.Conditions)
	if in.Observed.Incomplete {
		d.status.Sources = in.Recorded.Sources
		for i := range in.Recorded.Targets {
			d.rows = append(d.rows, &row{after: in.Recorded.Targets[i], restart: -1})
		}
		return d
	}
	d.decideSources()
	for i := range in.Observed.Targets {
		r := d.decideTarget(in.Observed.Targets[i])
		if r.after.State != "" || r.restart >= 0 {
			d.rows = append(d.rows, r)
		}
		d.events = append(d.events, r.events...)
	}
	if slices.ContainsFunc(d.rows, func(r *row) bool { return r.rebased() }) {
		d.events = append(d.events, newBaseline())
	}
	return d
}

// decideSources makes the rows of the sources.
func (d *Decision) decideSources() {
	for i := range d.in.Observed.Sources {
		s := &d.in.Observed.Sources[i]
		d.observed[s.Ref] = s
		after := v1alpha1.SourceStatus{Kind: s.Kind, Name: s.Name, State: s.State, Hash: string(s.Hash)}
		if before := d.records.sources[s.Ref]; before != nil {
			after.LastChangeTime = before.LastChangeTime
			if s.State != v1alpha1.SourcePresent {
				after.Hash = before.Hash
			}
			if sourceChanged(before, s) {
				after.LastChangeTime = &metav1.Time{Time: d.in.Now}
			}
		}
		d.status.Sources = append(d.status.Sources, after)
		if !s.ForgetAt.IsZero() && (d.LookAgain.IsZero() || s.ForgetAt.Before(d.LookAgain)) {
			d.LookAgain = s.ForgetAt
		}
	}
}

// sourceChanged tells whether content changed, appeared or disappeared since the record was made.
func sourceChanged(before *v1alpha1.SourceStatus, now *Source) bool {
	switch before.State {
	case v1alpha1.SourcePresent:
		return now.State == v1alpha1.SourceMissing || contentDiffers(before, now)
	case v1alpha1.SourceMissing:
		return now.State == v1alpha1.SourcePresent
	case v1alpha1.SourceIgnored, v1alpha1.SourceUnreadable:
	}
	return false
}

// contentDiffers tells whether the content is known to be another than recorded.
func contentDiffers(before *v1alpha1.SourceStatus, now *Source) bool {
	recorded := digest.Hash(before.Hash)
	return now.State == v1alpha1.SourcePresent && recorded != "" && recorded.Comparable(now.Hash) && recorded != now.Hash
}

// decideTarget makes the row of a target, as far as that can be said before restarts are made.
func (d *Decision) decideTarget(target Target) *row {
	r := &row{target: target, restart: -1}
	recorded := d.records.targets[target.Ref]
	r.after = v1alpha1.TargetStatus{APIVersion: target.APIVersion, Kind: target.Kind, Name: target.Name}
	if recorded != nil {
		r.after.Restarts, r.after.LastRestartTime = recorded.Restarts, recorded.LastRestartTime
	}
	switch {
	case target.Unreadable:
		r.keep(recorded)
		return r
	case target.Workload == nil:
		r.set(v1alpha1.TargetMissing, v1alpha1.ReasonNotFound, missingTarget(target))
		return r
	case target.Workload.Ignored:
		r.set(v1alpha1.TargetIgnored, v1alpha1.ReasonIgnoredByAnnotation, ignoredTarget(target))
		return r
	}
	r.after.UID = string(target.Workload.UID)
	if recorded != nil && recorded.UID == r.after.UID && recorded.State != v1alpha1.TargetIgnored {
		r.before, r.records = recorded, pairRecords(recorded)
	} else {
		r.after.LastRestartTime = nil // that was another workload's
	}
	d.compare(r)
	d.resume(r)
	d.settle(r)
	return r
}

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

// advance is the record once the target's pods are started for what is observed.
func advance(pair Pair, record v1alpha1.AppliedSource) v1alpha1.AppliedSource {
	switch pair.State {
	case v1alpha1.SourcePresent:
		record.AppliedHash, record.Absent = string(pair.Hash), false
	case v1alpha1.SourceMissing:
		record.Absent = true
	case v1alpha1.SourceUnreadable, v1alpha1.SourceIgnored:
	}
	return record
}

// rebase takes over a hash of another format as a baseline (E3).
func rebase(pair Pair, record v1alpha1.AppliedSource) v1alpha1.AppliedSource {
	if pair.State == v1alpha1.SourcePresent && !digest.Hash(record.AppliedHash).Comparable(pair.Hash) {
		return advance(pair, record)
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

// resume brings the record up to date if the pod template shows that a restart was made by a pass
// whose record was lost (E9).
func (d *Decision) resume(r *row) {
	mark := workload.ParseMark(r.target.Workload.RestartMarks[d.in.Name])
	r.number = max(r.after.Restarts, mark.Number)
	switch {
	case r.target.Workload.Rollout.ReadsAtNextRun:
	case r.before == nil, len(r.target.Pairs) == 0: // E8: a new row starts its count from the number it finds
		r.after.Restarts = r.number
	case mark.Number <= r.after.Restarts: // E10: a missing or older mark is no change
	case mark.Digest == d.digest(r):
		r.resumed = true
	case mark.Digest == d.owedDigest(r):
		r.resumed = true
		r.applied = d.onlyOwed(r)
	case len(r.stale) > 0: // made for content that is no longer there, and owed anyway
	case r.unreadable():
		r.undecided = true
	default: // The record stays behind the template until the restart is made again.
		r.stale = r.everyPair()
	}
}

// digest is that of the content that a restart made now is for. A source that can't be read counts as
// it is recorded.
func (d *Decision) digest(r *row) string {
	parts := make([]digest.Part, 0, len(r.target.Pairs))
	for _, pair := range r.target.Pairs {
		record := r.record(pair.Source)
		switch {
		case pair.State != v1alpha1.SourceUnreadable:
			parts = append(parts, presentPart(pair))
		case record != nil:
			parts = append(parts, d.recordedPart(pair.Source, record))
		}
	}
	return digest.Combine(parts)
}

func presentPart(pair Pair) digest.Part {
	return digest.Part{
		Kind: string(pair.Source.Kind), Name: pair.Source.Name,
		Hash: pair.Hash, Absent: pair.State == v1alpha1.SourceMissing,
	}
}

// recordedPart is what is recorded of a pair. A source whose deletion called for no restart is recorded
// as missing in its own row only, and is so until it is back.
func (d *Decision) recordedPart(ref source.Ref, record *v1alpha1.AppliedSource) digest.Part {
	seen, now := d.records.sources[ref], d.observed[ref]
	away := seen != nil && seen.State == v1alpha1.SourceMissing && (now == nil || now.State != v1alpha1.SourcePresent)
	return digest.Part{
		Kind: string(ref.Kind), Name: ref.Name, Hash: digest.Hash(record.AppliedHash), Absent: record.Absent || away,
	}
}

// owedDigest is that of a restart that was made for the record and the changes that call for one, and
// for nothing else. By it a restart is known again although the spec, the pod template's references or
// another source changed since. It is empty if that can't be told.
func (d *Decision) owedDigest(r *row) string {
	parts := make(map[source.Ref]digest.Part, len(r.records))
	for ref, record := range r.records {
		parts[ref] = d.recordedPart(ref, record)
	}
	for _, c := range r.stale {
		hash, ok := d.hashLike(parts[c.Source].Hash, c.Pair)
		if !ok {
			return ""
		}
		part := presentPart(c.Pair)
		part.Hash = hash
		parts[c.Source] = part
	}
	return digest.Combine(slices.Collect(maps.Values(parts)))
}

// onlyOwed is what is recorded of a restart that was made for what the record owes.
func (d *Decision) onlyOwed(r *row) []v1alpha1.AppliedSource {
	stale := make(map[source.Ref]bool, len(r.stale))
	for _, c := range r.stale {
		stale[c.Source] = true
	}
	applied := slices.Clone(r.after.Sources) // in the order of r.applied
	for i := range applied {
		ref := source.Ref{Kind: applied[i].Kind, Name: applied[i].Name}
		seen, now := d.records.sources[ref], d.observed[ref]
		missed := seen != nil && seen.State == v1alpha1.SourceMissing && now != nil && now.State == v1alpha1.SourceMissing
		if missed || stale[ref] {
			applied[i] = r.applied[i]
		}
	}
	return applied
}

// hashLike is the hash of a pair's content in the format of another.
func (d *Decision) hashLike(other digest.Hash, pair Pair) (digest.Hash, bool) {
	if other == "" || other.Comparable(pair.Hash) || pair.State == v1alpha1.SourceMissing {
		return pair.Hash, true
	}
	whole := d.observed[pair.Source]
	if whole == nil {
		return "", false
	}
	return whole.Hash, other.Comparable(whole.Hash)
}

// settle decides the state of the row.
func (d *Decision) settle(r *row) {
	cause := d.cause(r)
	switch {
	case r.undecided:
		r.keep(r.before)
		r.events = nil // they are told once it is decided
	case r.resumed:
		d.restarted(r, r.number, cause)
		r.follow(true)
	case len(r.stale) == 0 && r.owed() && r.unreadable(): // what it is owed for may be what can't be read
		r.keep(r.before)
		r.events = nil
	case len(r.stale) == 0:
		d.follow(r)
	case d.in.Mode == v1alpha1.ModeDryRun:
		d.hold(r, v1alpha1.ReasonDryRun, cause)
	case d.in.Mode == v1alpha1.ModeSuspended:
		d.hold(r, v1alpha1.ReasonSuspended, cause)
	default:
		r.restart = len(d.Restarts)
		d.Restarts = append(d.Restarts, Restart{
			Workload: r.target.Workload,
			Mark:     workload.Mark{Number: r.number + 1, Digest: d.digest(r)},
			Cause:    cause,
			Unproven: r.unproven(),
		})
		r.after.Message = cause
	}
}

// hold makes a restart wait for another mode (E19). The pairs stay as they are, so nothing is lost.
func (d *Decision) hold(r *row, reason, cause string) {
	r.set(v1alpha1.TargetPending, reason, cause)
	if !r.saidBefore() {
		r.events = append(r.events, held(r, d.in.Mode, cause))
	}
}

// follow follows the rollout of a target that is not stale.
func (d *Decision) follow(r *row) {
	if r.before == nil {
		r.follow(false)
		return
	}
	r.set(r.before.State, r.before.Reason, r.before.Message)
	switch r.before.State {
	case v1alpha1.TargetUpToDate:
		return // what happens to its pods from now on is not of this operator's making
	case v1alpha1.TargetPending:
		r.after.Message = "the change was taken back before a restart was made"
	case v1alpha1.TargetRollingOut, v1alpha1.TargetFailed, v1alpha1.TargetBlocked, v1alpha1.TargetMissing, v1alpha1.TargetIgnored:
	}
	restarted := r.after.LastRestartTime != nil
	r.follow(restarted)
	takenBack := r.before.State == v1alpha1.TargetPending && r.after.State == v1alpha1.TargetUpToDate
	if restarted && !takenBack && r.after.State != r.before.State {
		r.events = append(r.events, rolloutChanged(r)...)
	}
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
