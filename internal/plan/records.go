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
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// records finds the rows of the recorded status.
type records struct {
	sources map[source.Ref]*v1alpha1.SourceStatus
	targets map[workload.Ref]*v1alpha1.TargetStatus
	// ofThisSpec tells that they are of all that the present spec selects: it wasn't edited since, and
	// everything could be read.
	ofThisSpec bool
	// sameGeneration tells that the spec wasn't edited since they were made.
	sameGeneration bool
}

func newRecords(status *v1alpha1.ConfigWatchStatus, generation int64) records {
	r := records{
		sources:    make(map[source.Ref]*v1alpha1.SourceStatus, len(status.Sources)),
		targets:    make(map[workload.Ref]*v1alpha1.TargetStatus, len(status.Targets)),
		ofThisSpec: status.ObservedGeneration == generation && !incomplete(status),

		sameGeneration: status.ObservedGeneration == generation,
	}
	for i := range status.Sources {
		s := &status.Sources[i]
		r.sources[source.Ref{Kind: s.Kind, Name: s.Name}] = s
	}
	for i := range status.Targets {
		t := &status.Targets[i]
		r.targets[workload.Ref{APIVersion: t.APIVersion, Kind: t.Kind, Name: t.Name}] = t
	}
	return r
}

// incomplete tells whether the pass that made the record could not see all that the spec selects.
func incomplete(status *v1alpha1.ConfigWatchStatus) bool {
	stalled := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled)
	if stalled == nil {
		return false
	}
	switch stalled.Reason {
	case v1alpha1.ReasonTooManyMatches, v1alpha1.ReasonInvalidSelector:
		return true
	case v1alpha1.ReasonPermissionDenied: // to read, unless it is to restart a target
		for i := range status.Targets {
			if status.Targets[i].Reason == v1alpha1.ReasonPermissionDenied {
				return false
			}
		}
		return true
	}
	return false
}

// pairRecords finds what is recorded of a target's pairs.
func pairRecords(target *v1alpha1.TargetStatus) map[source.Ref]*v1alpha1.AppliedSource {
	pairs := make(map[source.Ref]*v1alpha1.AppliedSource, len(target.Sources))
	for i := range target.Sources {
		s := &target.Sources[i]
		pairs[source.Ref{Kind: s.Kind, Name: s.Name}] = s
	}
	return pairs
}
