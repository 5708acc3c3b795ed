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
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// Conclude is what to record and what to tell, given how each of the restarts went: nil, or the error
// of its patch.
func (d *Decision) Conclude(outcomes []error) (v1alpha1.ConfigWatchStatus, []Event) {
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
	}
	d.summarize()
	d.judge()
	return d.status, d.events
}

// restarted records that the target's pods are started for what was observed (E4).
func (d *Decision) restarted(r *row, number int64, cause string) {
	r.after.Restarts = number
	r.after.LastRestartTime = &metav1.Time{Time: d.in.Now}
	r.after.Sources = r.applied
	rollout := r.target.Workload.Rollout
	switch {
	case rollout.NoPods:
		r.set(v1alpha1.TargetUpToDate, v1alpha1.ReasonScaledToZero, cause)
	case rollout.Paused:
		r.set(v1alpha1.TargetRollingOut, v1alpha1.ReasonRolloutPaused, sentences(cause, pausedNote))
	default:
		r.set(v1alpha1.TargetRollingOut, v1alpha1.ReasonRolloutInProgress, cause)
	}
	d.events = append(d.events, restartedEvents(r, cause)...)
}

// failed leaves the record as it is, so that the restart is tried again, and says why (E11).
func (d *Decision) failed(r *row, cause string, err error) {
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
		verdict = &Problem{Reason: v1alpha1.ReasonUpToDate, Message: d.allWell()}
	}
	ready.Reason, ready.Message = verdict.Reason, verdict.Message
	d.setCondition(ready)
}

// condition sets one that is there only while True.
func (d *Decision) condition(conditionType string, problem *Problem) {
	before := meta.FindStatusCondition(d.status.Conditions, conditionType)
	if problem == nil {
		meta.RemoveStatusCondition(&d.status.Conditions, conditionType)
		return
	}
	if conditionType == v1alpha1.ConditionStalled && (before == nil || before.Reason != problem.Reason) {
		d.events = append(d.events, stalledEvent(problem))
	}
	d.setCondition(metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, Reason: problem.Reason, Message: problem.Message,
	})
}

func (d *Decision) setCondition(c metav1.Condition) {
	c.ObservedGeneration = d.in.Generation
	c.LastTransitionTime = metav1.Time{Time: d.in.Now}
	c.Message = truncate(c.Message)
	meta.SetStatusCondition(&d.status.Conditions, c)
}

// stalled is what only a human can mend, or nil.
func (d *Decision) stalled() *Problem {
	problems := append([]Problem(nil), d.in.Observed.Problems...)
	if len(problems) == 0 { // else it can't be said what there is
		problems = append(problems, d.nothingSelected()...)
	}
	for _, r := range d.rows {
		switch {
		case r.after.State == v1alpha1.TargetFailed:
			problems = append(problems, Problem{v1alpha1.ReasonRolloutFailed, r.saying()})
		case r.after.State == v1alpha1.TargetBlocked:
			problems = append(problems, Problem{v1alpha1.ReasonBlocked, r.saying()})
		case r.after.State == v1alpha1.TargetPending && r.after.Reason == v1alpha1.ReasonPermissionDenied:
			problems = append(problems, Problem{v1alpha1.ReasonPermissionDenied, r.saying()})
		}
	}
	if len(problems) == 0 {
		return nil
	}
	first := problems[0]
	if more := len(problems) - 1; more > 0 {
		first.Message = fmt.Sprintf("%s (and %d more: see status.targets)", first.Message, more)
	}
	return &first
}

// nothingSelected tells when no target or no source exists (E25).
func (d *Decision) nothingSelected() []Problem {
	noTarget := Problem{v1alpha1.ReasonNoTargets, noTargets(d.in.Observed.Targets)}
	noSource := Problem{v1alpha1.ReasonNoSources, noSources(d.in.Observed.Sources)}
	targets, sources := d.anyTarget(), d.anySource()
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

// reconciling is what is pending or rolling out, or nil.
func (d *Decision) reconciling() *Problem {
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
	problem := &Problem{Reason: v1alpha1.ReasonRollingOut, Message: progress(len(d.rows), pending, rolling) + ": " + first.saying()}
	if pending > 0 {
		problem.Reason = first.after.Reason
		if first.after.Reason == v1alpha1.ReasonRestartFailed {
			problem.Reason = v1alpha1.ReasonPending
		}
	}
	return problem
}
