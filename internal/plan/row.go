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

func (r *row) set(state v1alpha1.TargetState, reason, message string) {
	r.after.State, r.after.Reason, r.after.Message = state, reason, truncateTo(message, r.longest)
}

// mostMessages is how many bytes the messages of all rows may have.
const mostMessages = 150_000

// longestMessage is how long the message of each row may be, so that a status of so many fits an object.
func (o *Observation) longestMessage() int {
	return min(maxMessage, o.fitting(mostMessages)/max(1, len(o.Targets)))
}

// longestCause is how many bytes of a message the sources may take that it names.
func (r *row) longestCause() int {
	return r.longest * 2 / 3
}

// keep leaves the row as it is recorded; one that isn't is left out.
func (r *row) keep(recorded *v1alpha1.TargetStatus) {
	if recorded != nil {
		r.after = *recorded
	}
}

// keepAppearances adds the records of sources that appeared to a row that is left as it is recorded otherwise:
// they are known as new only until the status has them (E6).
func (r *row) keepAppearances() {
	for _, c := range r.stale {
		if r.record(c.Source) == nil {
			r.after.Sources = append(slices.Clone(r.after.Sources),
				v1alpha1.AppliedSource{Kind: c.Source.Kind, Name: c.Source.Name, Absent: true})
		}
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
	return r.before != nil && (r.before.State == v1alpha1.TargetPending || r.before.State == v1alpha1.TargetHalted)
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
		if before != nil && rebasedHash(before.AppliedHash, after.AppliedHash) {
			return true
		}
	}
	return false
}

func rebasedHash(before, after string) bool {
	return before != "" && !digest.Hash(before).SameMethod(digest.Hash(after))
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

// appliedNow is what is recorded once the target's pods are started for what is observed. A rollout that
// begins before another one is complete is for the changes of that one too, and content that has failed has until
// it is complete (E17).
func (r *row) appliedNow() []v1alpha1.AppliedSource {
	stale := make(map[source.Ref]bool, len(r.stale))
	for _, c := range r.stale {
		stale[c.Source] = true
	}
	applied := slices.Clone(r.applied)
	for i := range applied {
		unfinished := r.after.Rollout != nil && applied[i].Changed
		applied[i].Changed = unfinished || stale[source.Ref{Kind: applied[i].Kind, Name: applied[i].Name}]
		applied[i].Failed = r.after.Sources[i].Failed && contentOf(&applied[i]) == contentOf(&r.after.Sources[i])
	}
	return applied
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
