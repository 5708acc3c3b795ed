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
	"github.com/ktechhub/configwatch/internal/workload"
)

func (r *row) set(state v1alpha1.TargetState, reason, message string) {
	r.after.State, r.after.Reason, r.after.Message = state, reason, truncate(message)
}

// keep leaves the row as it is recorded; one that isn't is left out.
func (r *row) keep(recorded *v1alpha1.TargetStatus) {
	if recorded != nil {
		r.after = *recorded
	}
}

// record is what is recorded of a pair, or nil.
func (r *row) record(ref source.Ref) *v1alpha1.AppliedSource {
	return r.records[ref]
}

// saidBefore tells whether the record says the same, so that it is no news.
func (r *row) saidBefore() bool {
	return r.before != nil && r.before.State == r.after.State &&
		r.before.Reason == r.after.Reason && r.before.Message == r.after.Message
}

// owed tells whether the record owes a restart.
func (r *row) owed() bool {
	return r.before != nil && r.before.State == v1alpha1.TargetPending
}

func (r *row) unreadable() bool {
	return slices.ContainsFunc(r.target.Pairs, func(p Pair) bool { return p.State == v1alpha1.SourceUnreadable })
}

// rebased tells whether a hash was taken over as a baseline because the operator's key or the format
// version is another.
func (r *row) rebased() bool {
	for i := range r.after.Sources {
		after := &r.after.Sources[i]
		before := r.record(source.Ref{Kind: after.Kind, Name: after.Name})
		if before != nil && before.AppliedHash != "" &&
			!digest.Hash(before.AppliedHash).SameMethod(digest.Hash(after.AppliedHash)) {
			return true
		}
	}
	return false
}

// everyPair stands for changes that can't be told apart any more: the pods run content that is
// neither recorded nor present.
func (r *row) everyPair() []change {
	changes := make([]change, 0, len(r.target.Pairs))
	for _, pair := range r.target.Pairs {
		changes = append(changes, change{Pair: pair, as: v1alpha1.Modified})
	}
	return changes
}

// follow says how the rollout stands. One that this operator didn't start is followed only until it
// is complete once, and what holds its pods back is nobody's business here.
func (r *row) follow(restarted bool) {
	rollout := r.target.Workload.Rollout
	cause := r.after.Message
	if r.before == nil && !restarted {
		cause = baseline(r.target)
	}
	switch {
	case rollout.ReadsAtNextRun: // E22
		r.set(v1alpha1.TargetUpToDate, v1alpha1.ReasonNoRestartNeeded, nextRun)
	case !restarted && (rollout.NoPods || rollout.Hold != "" || rollout.Progress == workload.Complete):
		r.set(v1alpha1.TargetUpToDate, v1alpha1.ReasonBaseline, cause)
	case rollout.NoPods: // E23
		r.set(v1alpha1.TargetUpToDate, v1alpha1.ReasonScaledToZero, cause)
	case rollout.Hold != "": // E23
		r.set(v1alpha1.TargetBlocked, holdReason(rollout.Hold), sentences(causeOf(cause), rollout.Detail))
	case rollout.Progress == workload.Complete:
		r.set(v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, causeOf(cause))
	case rollout.Progress == workload.Failed:
		r.set(v1alpha1.TargetFailed, v1alpha1.ReasonRolloutFailed, sentences(causeOf(cause), rollout.Detail))
	case rollout.Paused: // E23
		r.set(v1alpha1.TargetRollingOut, v1alpha1.ReasonRolloutPaused, sentences(causeOf(cause), pausedNote))
	default:
		r.set(v1alpha1.TargetRollingOut, v1alpha1.ReasonRolloutInProgress, causeOf(cause))
	}
}

// unproven are the sources of which it isn't known that the content observed is newer than the one
// recorded.
func (r *row) unproven() []source.Version {
	var versions []source.Version
	for _, c := range r.stale {
		if !c.KeysKnown {
			versions = append(versions, source.Version{Ref: c.Source, ResourceVersion: c.ResourceVersion})
		}
	}
	return versions
}
