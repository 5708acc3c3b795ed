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

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// notAhead is what is recorded, with the present time in the place of times of targets that are yet to come: the clock
// was set back, or is another replica's. No target waits longer for that than it is to wait (E14).
func notAhead(recorded *v1alpha1.ConfigWatchStatus, now time.Time) *v1alpha1.ConfigWatchStatus {
	if !slices.ContainsFunc(recorded.Targets, func(t v1alpha1.TargetStatus) bool { return setBack(&t, now, false) }) {
		return recorded
	}
	recorded = recorded.DeepCopy()
	for i := range recorded.Targets {
		setBack(&recorded.Targets[i], now, true)
	}
	return recorded
}

// setBack tells whether any time of a target is yet to come, and may set it to the present one.
func setBack(t *v1alpha1.TargetStatus, now time.Time, set bool) (ahead bool) {
	check := func(at *time.Time, precision time.Duration) {
		if !at.After(now) {
			return
		}
		ahead = true
		if set {
			*at = now.Truncate(precision)
		}
	}
	if t.LastRestartTime != nil {
		check(&t.LastRestartTime.Time, time.Second)
	}
	if t.Wait != nil {
		check(&t.Wait.Since.Time, time.Microsecond)
		check(&t.Wait.SettlingSince.Time, time.Microsecond)
	}
	if t.Rollout != nil {
		check(&t.Rollout.LastProgressTime.Time, time.Second)
	}
	for i := range t.RecentChanges {
		check(&t.RecentChanges[i].Time, time.Second)
	}
	return ahead
}
