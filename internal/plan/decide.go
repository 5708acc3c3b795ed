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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/window"
	"github.com/ktechhub/configwatch/internal/workload"
)

// Decision is what a pass does. Limit may cut it down; it is finished by Conclude.
type Decision struct {
	// Restarts are to be made now, independently of each other. They are in the order in which they matter,
	// for when not all can be made.
	Restarts []Restart
	// Deliveries are what subscribers are to be told, once the status that Conclude returns is written.
	Deliveries []Delivery
	// LookAgain is when a pass is due even if nothing happens; zero: never.
	LookAgain time.Time

	in       Input
	records  records
	observed map[source.Ref]*Source
	rows     []*row
	status   v1alpha1.ConfigWatchStatus
	problems []Problem
	windows  window.Windows
	failing  []*row // their rollouts failed
	reading  []*row // their templates are read
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
	longest int                      // that its message may be, in bytes
	restart int                      // index in Decision.Restarts, or -1
	resumed bool                     // a restart was made by a pass whose record was lost
	// undecided: such a restart was made, and it can't be said for what, as a source is not readable.
	undecided bool
	// unrecorded: the template shows a restart that was made for other content than there is, by a pass whose record
	// was lost.
	unrecorded bool
	mark       workload.Mark // of the restart that the template shows
	phase      phase         // of the rollout of the latest restart
	owing      bool          // a restart is owed
	cause      string        // of the restart
	// requestedAt is a request to restart it that is new.
	requestedAt *metav1.Time
	// renewed tells that the restart is owed whatever the content is.
	renewed bool
	events  []Event
}

// change is a difference between what is recorded of a pair and what is observed.
type change struct {
	Pair
	as v1alpha1.Change
}

// Decide says which restarts to make.
func Decide(in Input) *Decision {
	in.Recorded = notAhead(in.Recorded, in.Now)
	d := &Decision{in: in, records: newRecords(in.Recorded, in.Generation), observed: map[source.Ref]*Source{}}
	d.status.ObservedGeneration = in.Generation
	d.status.Conditions = slices.Clone(in.Recorded.Conditions)
	d.status.RestartRequestedAt = in.Recorded.RestartRequestedAt
	d.problems = slices.Clone(in.Observed.Problems)
	if in.Observed.Incomplete {
		d.keepAll()
		return d
	}
	d.decideSources()
	if d.observing() {
		return d
	}
	requested := d.requested()
	for i := range in.Observed.Targets {
		r := d.decideTarget(in.Observed.Targets[i], requested)
		if r.after.State != "" || r.owing {
			d.rows = append(d.rows, r)
		}
	}
	d.decideRestarts()
	for _, r := range d.rows {
		d.watchSlowdown(r)
		d.events = append(d.events, r.events...)
	}
	if d.rebased() {
		d.events = append(d.events, newBaseline())
	}
	return d
}

// rebased tells whether hashes of targets were taken over as a baseline (E3).
func (d *Decision) rebased() bool {
	return slices.ContainsFunc(d.rows, func(r *row) bool { return r.rebased() })
}

// observing tells whether there are no targets, whatever is selected: nothing is restarted, and no record of a target is
// kept, so that all are new if there are some again (E5).
func (d *Decision) observing() bool {
	return d.in.Mode == v1alpha1.ModeObserve
}

// keepAll leaves everything as it is recorded.
func (d *Decision) keepAll() {
	d.status.Sources = d.in.Recorded.Sources
	if d.observing() {
		return
	}
	d.status.ApprovalHash = d.in.Recorded.ApprovalHash
	for i := range d.in.Recorded.Targets {
		d.rows = append(d.rows, &row{after: d.in.Recorded.Targets[i], restart: -1})
	}
}

// lookAgain makes sure that there is a pass at that time.
func (d *Decision) lookAgain(at time.Time) {
	if d.LookAgain.IsZero() || at.Before(d.LookAgain) {
		d.LookAgain = at
	}
}

// second is the time of the pass as most of the status has it.
func (d *Decision) second() *metav1.Time {
	return &metav1.Time{Time: d.in.Now.Truncate(time.Second)}
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
				after.LastChangeTime = d.second()
			}
		}
		d.status.Sources = append(d.status.Sources, after)
		if !s.ForgetAt.IsZero() {
			d.lookAgain(s.ForgetAt)
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
	case v1alpha1.SourceUnreadable: // whatever it was in the meantime
		return now.State == v1alpha1.SourceMissing && before.Hash != "" || contentDiffers(before, now)
	case v1alpha1.SourceIgnored:
	}
	return false
}

// contentDiffers tells whether the content is known to be another than recorded.
func contentDiffers(before *v1alpha1.SourceStatus, now *Source) bool {
	recorded := digest.Hash(before.Hash)
	return now.State == v1alpha1.SourcePresent && recorded != "" && recorded.Comparable(now.Hash) && recorded != now.Hash
}

// decideTarget makes the row of a target, as far as that can be said of it alone.
func (d *Decision) decideTarget(target Target, requested *metav1.Time) *row {
	r := &row{target: target, restart: -1, longest: d.in.Observed.longestMessage()}
	recorded := d.records.targets[target.Ref]
	r.after = v1alpha1.TargetStatus{APIVersion: target.APIVersion, Kind: target.Kind, Name: target.Name}
	if recorded != nil {
		r.after.Restarts, r.after.LastRestartTime = recorded.Restarts, recorded.LastRestartTime
	}
	switch {
	case target.Unreadable:
		r.keep(recorded)
		if recorded != nil && recorded.UID != "" {
			d.remember(r, requested)
		}
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
		r.after.Rollout, r.after.Slowdown = recorded.Rollout.DeepCopy(), recorded.Slowdown
		r.after.RecentChanges = recorded.RecentChanges
	} else {
		r.after.LastRestartTime = nil // that was another workload's
	}
	d.compare(r)
	d.resume(r)
	if r.before != nil {
		r.requestedAt = requested
	}
	d.assess(r)
	return r
}

// assess decides the state of a target that is owed nothing, and why one that is is owed a restart.
func (d *Decision) assess(r *row) {
	d.progress(r)
	d.slowdown(r)
	r.cause = d.cause(r)
	switch {
	case r.undecided:
		d.keepUndecided(r)
		return
	case r.resumed:
		d.restarted(r, r.number, r.cause)
		r.after.Rollout = d.newRollout(r, r.replaced())
		d.progress(r)
		d.follow(r)
		d.owe(r, r.laterRequest())
	case d.superseded(r): // E13
		d.supersede(r)
	case len(r.stale) == 0 && r.owed() && r.unreadable(): // what it is owed for may be what can't be read
		d.keepUndecided(r)
		return
	case len(r.stale) > 0 || r.requested() || r.renewing():
		r.owing = true
	case d.takenBack(r) && r.takenBackTooLate():
		r.renew(takenBackTooLateNote)
	case r.undone():
		r.renew(undoneNote)
	case d.triesAgain(r): // E24
		r.renew(triesAgainNote)
	default:
		d.settled(r)
	}
	if r.owing {
		d.tellProgress(r)
	}
	d.watchDeadline(r)
}

// keepUndecided leaves the row as it is recorded. The events are told once it is decided.
func (d *Decision) keepUndecided(r *row) {
	r.keep(r.before)
	r.events = nil
	d.remember(r, r.requestedAt)
}
