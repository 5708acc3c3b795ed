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
	"cmp"
	"slices"
	"time"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/workload"
)

// phase is how far a rollout is that is followed because of a restart; empty: there is none.
type phase string

const (
	rolledOut  phase = "rolled out"
	rollingOut phase = "rolling out"
	onPause    phase = "on pause"
	heldBack   phase = "held back"
	gaveUp     phase = "gave up"
	putBack    phase = "put back"
)

// newRollout is the record of a rollout of the target that begins now, and of the template before; nil: it isn't
// known. If another one isn't complete, there may be pods of what was before that as well (E24).
func (d *Decision) newRollout(r *row, before *v1alpha1.Template) *v1alpha1.RolloutStatus {
	rollout := &v1alpha1.RolloutStatus{Template: before, LastProgressTime: *d.second()}
	if unfinished := r.after.Rollout; unfinished != nil {
		rollout.FirstTemplate = cmp.Or(unfinished.FirstTemplate, unfinished.Template)
	}
	return rollout
}

// progress finds out how far the rollout is, and brings its record up to date. Once it is complete, what
// happens to the pods is not of this operator's making any more.
func (d *Decision) progress(r *row) {
	r.phase = ""
	record := r.after.Rollout
	if record == nil {
		return
	}
	if now := r.target.Workload.Rollout.NewPods; now > record.NewPods { // that one is ready again is no progress
		record.NewPods, record.LastProgressTime = now, *d.second()
	}
	r.phase = d.phaseOf(r)
	record.Failed = record.Failed || r.phase == gaveUp
	if record.Failed {
		r.blame()
	}
	if r.phase == rolledOut {
		r.complete()
	}
}

// blame records that the contents which the rollout is for have failed. They have until one is complete (E17).
func (r *row) blame() {
	for i := range r.after.Sources {
		if s := &r.after.Sources[i]; s.Changed {
			s.Failed = true
		}
	}
}

// complete records that the target is rolled out. Without pods, that proves nothing of what has failed (E17).
func (r *row) complete() {
	if r.target.Workload.Rollout.NoPods && r.failing() {
		return
	}
	r.after.Rollout = nil
	for i := range r.after.Sources {
		r.after.Sources[i].Failed = false
	}
}

func (d *Decision) phaseOf(r *row) phase {
	w, record := r.target.Workload, r.after.Rollout
	rollout := w.Rollout
	behind := record.Template != nil && w.Template.Generation <= record.Template.Generation
	deadline := noSooner(record.LastProgressTime, d.deadline())
	switch {
	case behind: // the cache doesn't show the restart yet
		return rollingOut
	case r.isPutBack():
		return putBack
	case rollout.NoPods:
		return rolledOut
	case rollout.Hold != "":
		return heldBack
	case rollout.Progress == workload.Complete:
		return rolledOut
	case rollout.Progress == workload.Failed || record.Failed: // a pod that got ready after all proves nothing (E17)
		return gaveUp
	case rollout.Paused:
		return onPause
	case rollout.NoDeadline && !d.in.Now.Before(deadline):
		return gaveUp
	}
	return rollingOut
}

// watchDeadline makes sure that there is a pass when the rollout has failed if it makes no progress.
func (d *Decision) watchDeadline(r *row) {
	if r.phase != rollingOut || r.after.Rollout == nil || !r.target.Workload.Rollout.NoDeadline {
		return
	}
	if deadline := noSooner(r.after.Rollout.LastProgressTime, d.deadline()); d.in.Now.Before(deadline) {
		d.lookAgain(deadline)
	}
}

func (d *Decision) deadline() time.Duration {
	return seconds(cmp.Or(d.in.Rollout.ProgressDeadlineSeconds, v1alpha1.DefaultProgressDeadlineSeconds))
}

// isPutBack tells whether someone put the template back to what it was before the restart, or before the rollout
// that superseded it, before that was complete (E24).
func (r *row) isPutBack() bool {
	now := r.target.Workload.Template
	before := []*v1alpha1.Template{r.after.Rollout.Template, r.after.Rollout.FirstTemplate}
	return slices.ContainsFunc(before, func(t *v1alpha1.Template) bool { return t != nil && now.PutBack(templateOf(t)) })
}

// triesAgain tells whether a target whose template was put back is restarted once more: only because the
// spec is another (E24).
func (d *Decision) triesAgain(r *row) bool {
	return r.phase == putBack && r.before.Reason == v1alpha1.ReasonTemplateReverted && !d.records.sameGeneration
}

// rolling tells whether the target is rolling out because of a restart. It may be owed another one already.
func (r *row) rolling() bool {
	if r.phase != "" {
		return r.phase == rollingOut
	}
	return isRolling(&r.after) || r.unrecorded && r.startingPods() && !r.target.Workload.Rollout.Paused // kept as it is recorded
}

// failing tells whether the rollout of a restart failed, and none has been complete since: that the template was put
// back, or that it is restarted for something else, proves nothing of what failed (E17).
func (r *row) failing() bool {
	return r.after.Rollout != nil && (r.after.Rollout.Failed ||
		slices.ContainsFunc(r.after.Sources, func(s v1alpha1.AppliedSource) bool { return s.Failed }))
}

// follow says how the rollout stands. One that this operator didn't start is followed only until it
// is complete once, and what holds its pods back is nobody's business here.
func (d *Decision) follow(r *row) {
	rollout := r.target.Workload.Rollout
	cause := causeOf(r.after.Message)
	switch {
	case rollout.ReadsAtNextRun: // E22
		r.set(v1alpha1.TargetUpToDate, v1alpha1.ReasonNoRestartNeeded, nextRun)
	case r.phase == "":
		r.followAsFound()
	case r.phase == putBack: // E24
		r.set(v1alpha1.TargetBlocked, v1alpha1.ReasonTemplateReverted, sentences(cause, revertedNote(r.target.Workload)))
	case r.phase == heldBack: // E23
		r.set(v1alpha1.TargetBlocked, holdReason(rollout.Hold), sentences(cause, rollout.Detail))
	case r.phase == gaveUp && r.after.State == v1alpha1.TargetFailed: // which it says the reason of
	case r.phase == gaveUp:
		r.set(v1alpha1.TargetFailed, v1alpha1.ReasonRolloutFailed, sentences(cause, d.failureNote(rollout)))
	case r.phase == onPause: // E23
		r.set(v1alpha1.TargetRollingOut, v1alpha1.ReasonRolloutPaused, sentences(cause, pausedNote))
	case r.phase == rolledOut && rollout.NoPods: // E23
		r.set(v1alpha1.TargetUpToDate, v1alpha1.ReasonScaledToZero, cause)
	case r.phase == rolledOut:
		r.set(v1alpha1.TargetUpToDate, r.unlessSuperseded(v1alpha1.ReasonRolloutComplete), cause)
	default:
		r.set(v1alpha1.TargetRollingOut, r.unlessSuperseded(v1alpha1.ReasonRolloutInProgress), cause)
	}
}

// unlessSuperseded is the reason, unless the rollout that is followed superseded a restart.
func (r *row) unlessSuperseded(reason string) string {
	if r.after.Reason == v1alpha1.ReasonSupersededByRollout {
		return r.after.Reason
	}
	return reason
}

func (r *row) followAsFound() {
	rollout, message := r.target.Workload.Rollout, r.after.Message
	if r.before == nil {
		message = baseline(r.target)
	}
	switch {
	case rollout.NoPods || rollout.Hold != "" || rollout.Progress == workload.Complete:
		r.set(v1alpha1.TargetUpToDate, v1alpha1.ReasonBaseline, message)
	case rollout.Progress == workload.Failed:
		r.set(v1alpha1.TargetFailed, v1alpha1.ReasonRolloutFailed, sentences(causeOf(message), rollout.Detail))
	case rollout.Paused:
		r.set(v1alpha1.TargetRollingOut, v1alpha1.ReasonRolloutPaused, sentences(causeOf(message), pausedNote))
	default:
		r.set(v1alpha1.TargetRollingOut, v1alpha1.ReasonRolloutInProgress, causeOf(message))
	}
}

// settled follows the rollout of a target that is owed nothing.
func (d *Decision) settled(r *row) {
	if r.before == nil {
		d.follow(r)
		return
	}
	r.set(r.before.State, r.before.Reason, r.before.Message)
	takenBack := r.owed()
	switch {
	case r.before.State == v1alpha1.TargetUpToDate && r.after.Rollout == nil:
		return
	case takenBack:
		r.after.Message = takenBackNote
		d.changed(r)
	}
	d.follow(r)
	switch {
	case takenBack:
		d.tellProgress(r)
	case r.phase == "" || r.after.State == r.before.State:
	case r.after.State == v1alpha1.TargetUpToDate && r.after.Rollout != nil: // it has failed, and has no pods now
	case r.after.State == v1alpha1.TargetFailed && r.before.Rollout.Failed: // it has pods again
	default:
		r.events = append(r.events, rolloutChanged(r, r.after.State, r.after.Message)...)
	}
}

// tellProgress tells how the rollout went of a target that is owed another restart, or was: its row says what that one
// waits for (E27).
func (d *Decision) tellProgress(r *row) {
	if r.before == nil || r.before.Rollout == nil {
		return
	}
	said := restartSaid(r.before.Restarts)
	if !r.owed() {
		said = causeOf(r.before.Message)
	}
	switch after := r.after.Rollout; {
	case after == nil:
		r.events = append(r.events, rolloutChanged(r, v1alpha1.TargetUpToDate, said)...)
	case after.Failed && !r.before.Rollout.Failed:
		r.events = append(r.events, rolloutChanged(r, v1alpha1.TargetFailed, sentences(said, d.failureNote(r.target.Workload.Rollout)))...)
	}
}
