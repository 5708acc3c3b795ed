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
	"time"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// Input is all that a decision depends on.
type Input struct {
	// Name is the name of the ConfigWatch, by which its restarts are marked.
	Name string
	// Generation is its metadata.generation.
	Generation int64
	// Created is its metadata.creationTimestamp.
	Created time.Time
	// Mode is its spec.mode.
	Mode v1alpha1.Mode
	// UID is its metadata.uid.
	UID string
	// Attempts are how attempts to tell subscribers went, by their names, since the pass before.
	Attempts map[string]Attempt
	// Rollout is its spec.rollout.
	Rollout v1alpha1.RolloutSpec
	// Approved and RestartRequestedAt are the values of the annotations approve and restart-requested-at.
	Approved           string
	RestartRequestedAt string
	// Recorded is its status.
	Recorded *v1alpha1.ConfigWatchStatus
	// Observed is what its spec selects, as it is now.
	Observed Observation
	// Now is the time of the pass.
	Now time.Time
}

// Observation is what a ConfigWatch selects. Sources and targets are in the order of the spec, then
// by kind and name, each only once.
type Observation struct {
	Sources []Source
	Targets []Target
	// Subscriptions are those of its subscribers, in the order of the spec.
	Subscriptions []Subscription
	// OnlyTold tells that the spec lists subscribers and no targets: it is no problem if nothing uses a source.
	OnlyTold bool
	// Problems are what only a human can mend.
	Problems []Problem
	// Incomplete tells that it can't be said what the spec selects, because of a problem. Everything
	// then stays as it is recorded.
	Incomplete bool
	// Room is how many bytes there are for that part of the status which gives way if there is little; 0: plenty.
	Room int
}

// Source is a ConfigMap or Secret that the ConfigWatch watches.
type Source struct {
	source.Ref
	State v1alpha1.SourceState
	// Hash is that of the whole content, if it is present.
	Hash digest.Hash
	// Writer is the field manager that wrote it last, or empty.
	Writer string
	// Hint helps the user if it is missing, such as `did you mean app-config?`.
	Hint string
	// ForgetAt is when the record of a source that is missing is dropped; zero: never.
	ForgetAt time.Time
}

// Target is a workload that the ConfigWatch restarts.
type Target struct {
	workload.Ref
	// Workload is nil if it doesn't exist.
	Workload *workload.Workload
	// Unreadable tells that it can't be said whether it exists. Its row stays as it is.
	Unreadable bool
	// Pairs are the sources that it depends on. Those that are ignored are not among them.
	Pairs []Pair
	// Hint helps the user if it is missing.
	Hint string
}

// Pair is a target's dependence on one source.
type Pair struct {
	Source source.Ref
	// State is Present, Missing or Unreadable.
	State v1alpha1.SourceState
	// Hash is that of the content as far as the keys of the spec go, if it is present.
	Hash digest.Hash
	// UID and ResourceVersion are the source's, if it is present.
	UID             string
	ResourceVersion string
	// Keys are the keys of the spec; empty: all.
	Keys []string
	// RestartOn are the changes that call for a restart.
	RestartOn []v1alpha1.Change
	// Selected tells that the spec selects the source by labels rather than by name.
	Selected bool
	// ChangedKeys are the keys that differ from the recorded content, if KeysKnown.
	ChangedKeys []string
	KeysKnown   bool
}

// Problem is something in the way that only a human can mend.
type Problem struct {
	// Reason is a reason of the Stalled condition.
	Reason string
	// Message is one sentence that says what to do.
	Message string
}
