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

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// resume brings the record up to date if the pod template shows that a restart was made by a pass
// whose record was lost (E9).
func (d *Decision) resume(r *row) {
	mark := workload.ParseMark(r.target.Workload.RestartMarks[d.in.Name])
	r.mark = mark
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
		r.unrecorded = true
	case r.unreadable():
		r.unrecorded, r.undecided = true, true
	default: // The record stays behind the template until the restart is made again.
		r.unrecorded = true
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
