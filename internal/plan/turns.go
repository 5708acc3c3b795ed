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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// Rolling is how many targets are rolling out by a record.
func Rolling(recorded *v1alpha1.ConfigWatchStatus) int {
	rolling := 0
	for i := range recorded.Targets {
		if isRolling(&recorded.Targets[i]) {
			rolling++
		}
	}
	return rolling
}

// isRolling tells whether a target is rolling out by its record. One that is owed another restart may be Pending, or
// Halted, whether or not the rollout of the one before has failed.
func isRolling(t *v1alpha1.TargetStatus) bool {
	return t.Rollout != nil && !t.Rollout.Failed && t.State != v1alpha1.TargetFailed && t.State != v1alpha1.TargetBlocked &&
		t.Reason != v1alpha1.ReasonRolloutPaused && t.Reason != v1alpha1.ReasonScaledToZero
}

// RollingUnrecorded tells whether a target is rolling out because of a restart whose record was lost, and isn't among
// those that Rolling counts by its record. The workload is nil if there is none.
func RollingUnrecorded(t *v1alpha1.TargetStatus, w *workload.Workload, configWatch string) bool {
	if w == nil || string(w.UID) != t.UID || isRolling(t) || workload.ParseMark(w.RestartMarks[configWatch]).Number <= t.Restarts {
		return false
	}
	return w.Rollout.Progress == workload.InProgress && !w.Rollout.Paused && !w.Rollout.NoPods
}

// Rolling is how many targets are rolling out because of this ConfigWatch.
func (d *Decision) Rolling() int {
	rolling := 0
	for _, r := range d.rows {
		if r.rolling() {
			rolling++
		}
	}
	return rolling
}

// Wants is how many of Restarts are of targets that aren't rolling out already.
func (d *Decision) Wants() int {
	wants := 0
	for _, r := range d.rows {
		if r.restart >= 0 && !r.rolling() {
			wants++
		}
	}
	return wants
}

// Limit lets only the first n of those that Wants counts be made: the operator as a whole may not roll out
// more (E18). The others await their turn.
func (d *Decision) Limit(n int) {
	if n >= d.Wants() {
		return
	}
	made := d.Restarts
	d.Restarts = nil
	restarting := make([]*row, len(made))
	for _, r := range d.rows {
		if r.restart >= 0 {
			restarting[r.restart], r.restart = r, -1
		}
	}
	for i, r := range restarting {
		switch {
		case r.rolling():
		case n > 0:
			n--
		default:
			d.awaitTurn(r, sharedTurnNote)
			continue
		}
		r.restart = len(d.Restarts)
		d.Restarts = append(d.Restarts, made[i])
	}
}

// takeTurns makes as many restarts as targets may roll out at once (E16). A target that is rolling out
// already takes nobody's place.
func (d *Decision) takeTurns(ready []*row) {
	most := int(cmp.Or(d.in.Rollout.MaxConcurrent, v1alpha1.DefaultMaxConcurrent))
	places := most - d.Rolling()
	for _, r := range d.inOrder(ready) {
		switch {
		case r.rolling():
		case places > 0:
			places--
		default:
			d.awaitTurn(r, turnNote(most))
			continue
		}
		r.restart = len(d.Restarts)
		d.Restarts = append(d.Restarts, Restart{
			Workload: r.target.Workload,
			Mark:     workload.Mark{Number: r.number + 1, Digest: d.digest(r), RequestedAt: ptr.Deref(r.request(), metav1.Time{}).Time},
			Cause:    r.cause,
			Unproven: r.unproven(),
		})
		r.after.Message = r.cause
	}
}

// awaitTurn makes a restart wait for a place. One that was refused has more to say than that it waits for
// another attempt.
func (d *Decision) awaitTurn(r *row, note string) {
	if r.refused() {
		r.set(r.before.State, r.before.Reason, r.before.Message)
		return
	}
	d.hold(r, gate{reason: v1alpha1.ReasonAwaitingTurn, note: note})
}

// inOrder is the order of restarts: that of the spec, but for two kinds. First are those whose rollouts
// failed, so that a mended configuration is proven where the broken one was found (E17). Last are those that could
// not be restarted, failed or not, so that they hold up no other; each of them is the first of these at some time (E11).
func (d *Decision) inOrder(ready []*row) []*row {
	var first, rest, last []*row
	for _, r := range ready {
		switch {
		case r.refused():
			last = append(last, r)
		case r.failing():
			first = append(first, r)
		default:
			rest = append(rest, r)
		}
	}
	if len(last) > 0 {
		begin := int(d.in.Now.UnixMilli() % int64(len(last)))
		last = slices.Concat(last[begin:], last[:begin])
	}
	return slices.Concat(first, rest, last)
}

// refused tells whether the latest attempt to restart the target failed.
func (r *row) refused() bool {
	return r.before != nil && (r.before.Reason == v1alpha1.ReasonRestartFailed || r.before.Reason == v1alpha1.ReasonPermissionDenied)
}

// content is what a target is started for, as far as one source goes.
type content struct {
	source source.Ref
	hash   string // if it is not absent
	absent bool
}

func contentOf(applied *v1alpha1.AppliedSource) content {
	c := content{source: source.Ref{Kind: applied.Kind, Name: applied.Name}, absent: applied.Absent}
	if !c.absent {
		c.hash = applied.AppliedHash
	}
	return c
}

// mayHalt tells whether a failure halts others: where nothing is restarted anyway, that is what there is to say.
func (d *Decision) mayHalt() bool {
	return d.in.Rollout.OnFailure != v1alpha1.OnFailureContinue &&
		d.in.Mode != v1alpha1.ModeDryRun && d.in.Mode != v1alpha1.ModeSuspended
}

// halt halts a target that is owed a restart for a change that made another target's rollout fail (E17), whatever
// else it would wait for. What a human asks for, or approves with knowledge of the failures, goes on.
func (d *Decision) halt(r *row, failed map[content][]*row, approval string) (halted bool) {
	if r.request() != nil || r.after.Wait.ApprovedHash == approval {
		return false
	}
	for _, c := range r.stale {
		after := advance(c.Pair, v1alpha1.AppliedSource{Kind: c.Source.Kind, Name: c.Source.Name})
		for _, failure := range failed[contentOf(&after)] {
			if failure != r {
				r.set(v1alpha1.TargetHalted, v1alpha1.ReasonHalted, sentences(r.cause, haltedNote(failure)))
				return true
			}
		}
	}
	return false
}

// afterFailed holds back those that are owed a restart for a source whose content made another target's rollout fail,
// and that is restarted for its new content later, whatever it waits for: that is proven there first (E17).
func (d *Decision) afterFailed(ready []*row) []*row {
	if !d.mayHalt() {
		return ready
	}
	return slices.DeleteFunc(ready, func(r *row) bool {
		if r.request() != nil || r.failing() {
			return false
		}
		for _, failed := range d.failing {
			if !failed.owing || failed.after.State == v1alpha1.TargetHalted || !r.owedForMended(failed) {
				continue
			}
			if g, held := d.gate(failed); held {
				d.hold(r, gate{reason: v1alpha1.ReasonAwaitingTurn, note: failedFirstNote(failed, g.until)})
				return true
			}
		}
		return false
	})
}

// owedForMended tells whether the target is owed a restart for a source with whose former content another one failed,
// which is owed one for it as well.
func (r *row) owedForMended(failed *row) bool {
	return slices.ContainsFunc(failed.stale, func(mended change) bool {
		blamed := slices.ContainsFunc(failed.after.Sources, func(s v1alpha1.AppliedSource) bool {
			return s.Failed && s.Kind == mended.Source.Kind && s.Name == mended.Source.Name
		})
		return blamed && slices.ContainsFunc(r.stale, func(c change) bool { return c.Source == mended.Source })
	})
}

// failedChanges are the changes for which rollouts were started that failed, and the targets of these.
func (d *Decision) failedChanges() map[content][]*row {
	failed := map[content][]*row{}
	for _, r := range d.failing {
		for i := range r.after.Sources {
			if s := &r.after.Sources[i]; s.Failed {
				failed[contentOf(s)] = append(failed[contentOf(s)], r)
			}
		}
	}
	return failed
}
