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
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// Waiting are the workloads whose pod templates are to be read before Conclude, past the cache: they begin to
// wait for a restart, and have to be known again if another rollout comes first (E13). Not while pods are being
// started: if that is undone, there is another template, and pods of before. And not while the target is slowed down:
// its next change is near, after which nothing would be proven by what was read before (E15).
func (d *Decision) Waiting() []*workload.Workload {
	var waiting []*workload.Workload
	for _, r := range d.rows {
		if r.restart < 0 && r.owing && r.after.Wait.Template == nil && !r.startingPods() && r.after.Slowdown == nil {
			d.reading = append(d.reading, r)
			waiting = append(waiting, r.target.Workload)
		}
	}
	return waiting
}

// Conclude is what to record and what to tell, given how each of the restarts went: nil, or the error
// of its patch. And given the templates of those that Waiting told; empty where it could not be read: then it
// is read in a later pass.
func (d *Decision) Conclude(outcomes []error, templates []workload.Template) (v1alpha1.ConfigWatchStatus, []Event) {
	d.events = append(d.events, d.delays()...)
	for _, r := range d.rows {
		if r.restart < 0 {
			continue
		}
		restart := d.Restarts[r.restart]
		if err := outcomes[r.restart]; err != nil {
			d.failed(r, restart.Cause, err)
			continue
		}
		d.restarted(r, restart.Mark.Number, restart.Cause)
		d.begin(r)
	}
	for i, r := range d.reading[:min(len(d.reading), len(templates))] {
		if templates[i].Generation == r.target.Workload.Template.Generation { // else the cache is behind
			r.after.Wait.Template = recordOf(templates[i])
		}
	}
	d.summarize()
	d.tell()
	d.judge()
	if d.onlyFlaps() {
		d.status = *d.in.Recorded
	}
	return d.status, d.events
}

// restarted records that the target's pods are started for what was observed (E4).
func (d *Decision) restarted(r *row, number int64, cause string) {
	r.after.Restarts = number
	r.after.LastRestartTime = d.second()
	r.after.Sources = r.appliedNow()
	r.after.Wait = nil
	r.after.Message = cause
	r.slowFurther()
	d.events = append(d.events, restartedEvents(r, cause)...)
}

// begin begins to follow the rollout of a restart that was made now.
func (d *Decision) begin(r *row) {
	r.after.Rollout = d.newRollout(r, recordOf(r.target.Workload.Template))
	r.phase = rollingOut
	rollout := r.target.Workload.Rollout
	switch {
	case rollout.NoPods:
		r.complete()
		r.phase = rolledOut
		r.set(v1alpha1.TargetUpToDate, v1alpha1.ReasonScaledToZero, r.after.Message)
	case rollout.Paused:
		r.phase = onPause
		r.set(v1alpha1.TargetRollingOut, v1alpha1.ReasonRolloutPaused, sentences(r.after.Message, pausedNote))
	default:
		r.set(v1alpha1.TargetRollingOut, v1alpha1.ReasonRolloutInProgress, r.after.Message)
	}
}

// failed leaves the record as it is, so that the restart is tried again, and says why (E11). That the
// cache is behind for a moment is no news.
func (d *Decision) failed(r *row, cause string, err error) {
	if errors.Is(err, source.ErrBehind) {
		r.keep(r.before)
		r.keepAppearances()
		d.remember(r, r.requestedAt)
		return
	}
	reason, message := v1alpha1.ReasonRestartFailed, sentences(cause, "The restart is tried again: "+err.Error())
	if lacksPermission(err) {
		reason = v1alpha1.ReasonPermissionDenied
		message = sentences(cause, "The operator's role lacks a permission: "+err.Error())
	}
	r.set(v1alpha1.TargetPending, reason, message)
	if !r.saidBefore() {
		d.events = append(d.events, aboutTarget(r, corev1.EventTypeWarning, v1alpha1.EventRestartFailed, v1alpha1.ActionRestart,
			fmt.Sprintf("%s was not restarted: %s", r.name(), message)))
	}
}

// lacksPermission tells the refusals of an authorizer from those of admission, such as a quota's or a
// webhook's, which may have the same status code: only an authorizer says what a user can't do.
func lacksPermission(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot patch resource ")
}

// summarize makes the rows of the status and counts them.
func (d *Decision) summarize() {
	summary := &v1alpha1.Summary{Sources: int32(len(d.status.Sources)), Targets: int32(len(d.rows))}
	for _, r := range d.rows {
		d.status.Targets = append(d.status.Targets, r.after)
		if r.after.State == v1alpha1.TargetUpToDate {
			summary.UpToDate++
		}
		if t := r.after.LastRestartTime; t != nil && (summary.LastRestartTime == nil || summary.LastRestartTime.Before(t)) {
			summary.LastRestartTime = t
		}
	}
	d.status.Summary = summary
}

// judge sets the conditions.
func (d *Decision) judge() {
	stalled := d.stalled()
	reconciling := d.reconciling()
	d.condition(v1alpha1.ConditionStalled, stalled)
	d.condition(v1alpha1.ConditionReconciling, reconciling)
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	verdict := cmp.Or(stalled, reconciling)
	if verdict == nil {
		ready.Status = metav1.ConditionTrue
		verdict = d.well()
	}
	ready.Reason, ready.Message = verdict.Reason, verdict.Message
	d.setCondition(ready)
	// Of Stalled and Reconciling, kstatus goes by the one that it meets first: what only a human can mend is not to be
	// hidden by what goes on.
	inOrder := []string{v1alpha1.ConditionReady, v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling}
	slices.SortFunc(d.status.Conditions, func(a, b metav1.Condition) int {
		return cmp.Compare(slices.Index(inOrder, a.Type), slices.Index(inOrder, b.Type))
	})
}

// condition sets one that is there only while True.
func (d *Decision) condition(conditionType string, problem *Problem) {
	before := meta.FindStatusCondition(d.status.Conditions, conditionType)
	if problem == nil {
		meta.RemoveStatusCondition(&d.status.Conditions, conditionType)
		return
	}
	if conditionType == v1alpha1.ConditionStalled && (before == nil || before.Reason != problem.Reason) {
		d.events = append(d.events, d.stalledEvent(problem))
	}
	d.setCondition(metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, Reason: problem.Reason, Message: problem.Message,
	})
}

func (d *Decision) setCondition(c metav1.Condition) {
	c.ObservedGeneration = d.in.Generation
	c.LastTransitionTime = *d.second()
	c.Message = truncate(c.Message)
	meta.SetStatusCondition(&d.status.Conditions, c)
}

// longestProblem is the length of the message of a problem in bytes, so that its Event can say the reason too.
const longestProblem = maxMessage - 50

// stalled is what only a human can mend, or nil.
func (d *Decision) stalled() *Problem {
	problems := slices.Clone(d.problems)
	if !d.isNew() {
		problems = append(problems, d.nothingSelected()...)
	}
	var halted []*row
	for _, r := range d.rows {
		switch {
		case r.after.State == v1alpha1.TargetFailed:
			problems = append(problems, Problem{v1alpha1.ReasonRolloutFailed, r.saying()})
		case r.after.State == v1alpha1.TargetBlocked:
			problems = append(problems, Problem{v1alpha1.ReasonBlocked, r.saying()})
		case r.after.State == v1alpha1.TargetPending && r.after.Reason == v1alpha1.ReasonPermissionDenied:
			problems = append(problems, Problem{v1alpha1.ReasonPermissionDenied, r.saying()})
		case r.after.State == v1alpha1.TargetHalted:
			halted = append(halted, r)
		}
	}
	problems = append(problems, d.refusedSubscribers()...)
	if len(problems) == 0 && len(halted) > 0 { // by one that is restarted again
		problems = append(problems, Problem{v1alpha1.ReasonHalted, halted[0].saying()})
	}
	if len(problems) == 0 {
		return nil
	}
	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more: see status.targets)", n)
	}
	if len(halted) > 0 {
		more += d.haltedSummary(len(halted))
	}
	first := problems[0]
	first.Message = truncateTo(first.Message, longestProblem-len(more)) + more
	return &first
}

// appearing is how long after its creation a ConfigWatch is not stalled as nothing of what it selects exists: what
// is made by the same command comes within seconds.
const appearing = 5 * time.Second

func (d *Decision) isNew() bool {
	age := d.in.Now.Sub(d.in.Created)
	return -appearing < age && age < appearing
}

// nothingSelected tells when no target or no source exists (E25).
func (d *Decision) nothingSelected() []Problem {
	if len(d.in.Observed.Problems) > 0 {
		return nil // it can't be said what there is
	}
	noTarget := Problem{v1alpha1.ReasonNoTargets, noTargets(d.in.Observed.Targets)}
	noSource := Problem{v1alpha1.ReasonNoSources, noSources(d.in.Observed.Sources)}
	targets, sources := d.anyTarget() || d.needsNoTarget() && len(d.rows) == 0, d.anySource()
	switch {
	case targets && sources:
		return nil
	case targets:
		return []Problem{noSource}
	case sources:
		return []Problem{noTarget}
	case len(d.in.Observed.Targets) == 0 && len(d.in.Observed.Sources) > 0: // nothing can use what doesn't exist
		return []Problem{noSource}
	case len(d.in.Observed.Sources) == 0 && len(d.in.Observed.Targets) > 0: // nor can what doesn't exist use anything
		return []Problem{noTarget}
	}
	return []Problem{noTarget, noSource}
}

// needsNoTarget tells whether it is no problem if there is no target.
func (d *Decision) needsNoTarget() bool {
	return d.in.Observed.OnlyTold || d.observing()
}

func (d *Decision) anyTarget() bool {
	for _, r := range d.rows {
		if r.after.State != v1alpha1.TargetMissing && r.after.State != v1alpha1.TargetIgnored {
			return true
		}
	}
	return false
}

func (d *Decision) anySource() bool {
	for i := range d.status.Sources {
		if d.status.Sources[i].State == v1alpha1.SourcePresent {
			return true
		}
	}
	return false
}

// reconciling is what is pending or rolling out, or may be about to appear; or nil.
func (d *Decision) reconciling() *Problem {
	if missing := d.nothingSelected(); d.isNew() && len(missing) > 0 {
		d.lookAgain(d.in.Created.Add(appearing))
		return &missing[0]
	}
	var first *row
	pending, rolling := 0, 0
	for _, r := range d.rows {
		switch {
		case r.after.State == v1alpha1.TargetPending && r.after.Reason != v1alpha1.ReasonPermissionDenied:
			pending++
		case r.after.State == v1alpha1.TargetRollingOut:
			rolling++
		default:
			continue
		}
		if first == nil || first.after.State == v1alpha1.TargetRollingOut && r.after.State == v1alpha1.TargetPending {
			first = r
		}
	}
	if first == nil {
		return nil
	}
	problem := &Problem{Reason: v1alpha1.ReasonRollingOut, Message: progressSaid(len(d.rows), pending, rolling) + ": " + first.saying()}
	if pending > 0 {
		problem.Reason = first.after.Reason
		if first.after.Reason == v1alpha1.ReasonRestartFailed {
			problem.Reason = v1alpha1.ReasonPending
		}
	}
	return problem
}
