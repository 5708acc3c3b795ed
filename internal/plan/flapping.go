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

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

// A target of which more changes than mostChanges are seen within flappingTime is slowed down: it has a
// cooldown, which doubles with each restart (E15).
const (
	mostChanges    = 6
	flappingTime   = 10 * time.Minute
	firstSlowdown  = int32(30)
	longerSlowdown = 2
	lastSlowdown   = int32(600)
)

// flapsRecorded is how often it is recorded that a target which is slowed down is owed a restart for something else by
// now. It is often enough to go on seeing more than mostChanges within flappingTime.
const flapsRecorded = time.Minute

// changed counts a change of what the target is to be started for.
func (d *Decision) changed(r *row) {
	changes := append(slices.Clone(r.after.RecentChanges), *d.second())
	r.after.RecentChanges = changes[max(0, len(changes)-mostChanges-1):]
	if d.flapping(r) && r.after.Slowdown == nil {
		r.after.Slowdown = &v1alpha1.Slowdown{CooldownSeconds: firstSlowdown, Message: truncateTo(d.culprits(r), r.longest/2)}
		r.events = append(r.events, slowedDownEvent(r))
	}
}

// slowdown ends when the changes have become fewer.
func (d *Decision) slowdown(r *row) {
	if r.after.Slowdown != nil && !d.flapping(r) {
		r.after.Slowdown = nil
	}
}

// watchSlowdown makes sure that there is a pass when the changes may have become fewer.
func (d *Decision) watchSlowdown(r *row) {
	if r.after.Slowdown != nil && d.flapping(r) {
		d.lookAgain(r.after.RecentChanges[0].Add(flappingTime))
	}
}

func (d *Decision) flapping(r *row) bool {
	changes := r.after.RecentChanges
	return len(changes) > mostChanges && d.in.Now.Before(changes[0].Add(flappingTime))
}

// slowFurther makes the cooldown longer after a restart in spite of it.
func (r *row) slowFurther() {
	if slow := r.after.Slowdown; slow != nil {
		r.after.Slowdown = &v1alpha1.Slowdown{
			CooldownSeconds: min(lastSlowdown, slow.CooldownSeconds*longerSlowdown), Message: slow.Message,
		}
	}
}

// culprits names the sources that changed just now, and who wrote them.
func (d *Decision) culprits(r *row) string {
	var changed []*Source
	for _, pair := range r.target.Pairs {
		if d.news(pair.Source) {
			changed = append(changed, d.observed[pair.Source])
		}
	}
	return flappingNote(changed, r.longestCause()/2)
}

// onlyFlaps tells whether nothing is new but that sources have changed again which targets wait for that are slowed
// down because of it. Then the status stays as it is, for a minute at most: what isn't recorded of a change is found
// again by the next pass, and to write each of them would cost the most where it is worth the least (E15, E28).
func (d *Decision) onlyFlaps() bool {
	var due time.Time
	for _, r := range d.rows {
		if latest := r.latestFlap(); !latest.IsZero() && (due.IsZero() || latest.Add(flapsRecorded).Before(due)) {
			due = latest.Add(flapsRecorded)
		}
	}
	if len(d.events) > 0 || !d.in.Now.Before(due) || equality.Semantic.DeepEqual(*d.in.Recorded, d.status) ||
		!equality.Semantic.DeepEqual(*d.in.Recorded, d.withoutFlaps()) {
		return false
	}
	d.lookAgain(due)
	return true
}

// latestFlap is when a change of what the target waits for was last recorded, if it is slowed down and waits on; or zero.
func (r *row) latestFlap() time.Time {
	if r.wait() == nil || r.after.Wait == nil || r.before.Slowdown == nil || len(r.before.RecentChanges) == 0 {
		return time.Time{}
	}
	return r.before.RecentChanges[len(r.before.RecentChanges)-1].Time
}

// withoutFlaps is the status as it would be if the sources of targets that are slowed down had not changed again.
func (d *Decision) withoutFlaps() v1alpha1.ConfigWatchStatus {
	status := d.status.DeepCopy()
	flapping := map[source.Ref]bool{}
	for i, r := range d.rows {
		if r.latestFlap().IsZero() {
			continue
		}
		row, before := &status.Targets[i], r.before
		row.Message, row.RecentChanges = before.Message, before.RecentChanges
		row.Wait.Digest, row.Wait.SourceVersions = before.Wait.Digest, before.Wait.SourceVersions
		for _, pair := range r.target.Pairs {
			flapping[pair.Source] = true
		}
	}
	for i := range status.Sources {
		s := &status.Sources[i]
		ref := source.Ref{Kind: s.Kind, Name: s.Name}
		if before := d.records.sources[ref]; before != nil && flapping[ref] {
			s.Hash, s.LastChangeTime = before.Hash, before.LastChangeTime
		}
	}
	if status.ApprovalHash != "" {
		status.ApprovalHash = d.in.Recorded.ApprovalHash
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if before := meta.FindStatusCondition(d.in.Recorded.Conditions, c.Type); before != nil {
			c.Message = before.Message
		}
	}
	return *status
}
