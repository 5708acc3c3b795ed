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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/window"
	"github.com/ktechhub/configwatch/internal/workload"
)

// maxSettlingRestarts is how often the quiet time begins again because of further changes (E12).
const maxSettlingRestarts = 4

// mostAhead is how far ahead of this one the clock may be that a request was made by.
const mostAhead = 5 * time.Minute

// gate is what holds a restart back.
type gate struct {
	reason string
	note   string
	// until is when it opens by itself; zero: it can't be said.
	until time.Time
}

// requested is the time of a request to restart everything that has not been acted on, or nil. A request
// that is there when a ConfigWatch is seen for the first time is part of the baseline.
func (d *Decision) requested() *metav1.Time {
	if d.in.RestartRequestedAt == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, d.in.RestartRequestedAt)
	at = at.Truncate(time.Second)
	before, latest := d.in.Recorded.RestartRequestedAt, d.in.Now.Add(mostAhead)
	switch {
	case err != nil:
		d.problems = append(d.problems, invalidRequest(d.in.RestartRequestedAt, "is not a time"))
		return nil
	case before != nil && at.Equal(before.Time):
		return nil
	case at.After(latest): // every request until then would be ignored
		d.problems = append(d.problems, invalidRequest(d.in.RestartRequestedAt, "is in the future"))
		d.lookAgain(at.Add(-mostAhead)) // when it is a problem no more
		return nil
	case before != nil && at.Before(before.Time) && !before.After(latest): // else the clock was ahead then
		return nil
	}
	d.status.RestartRequestedAt = &metav1.Time{Time: at}
	if d.in.Recorded.ObservedGeneration == 0 {
		return nil
	}
	return d.status.RestartRequestedAt
}

// remember keeps a request that is new in a row that is left as it is recorded otherwise: the status says that it
// was acted on.
func (d *Decision) remember(r *row, at *metav1.Time) {
	if at == nil {
		return
	}
	w := r.after.Wait.DeepCopy()
	if w == nil {
		now := d.now()
		w = &v1alpha1.Wait{Digest: digest.Combine(nil), Since: now, SettlingSince: now}
	}
	w.RequestedAt, w.Template = at, nil
	r.after.Wait = w
}

// requested tells whether a restart was asked for, rather than owed for a change.
func (r *row) requested() bool {
	return r.request() != nil
}

// request is the time at which the restart was asked for that the target is owed, or that is resumed; or nil.
func (r *row) request() *metav1.Time {
	if r.laterRequest() == nil {
		return r.latestRequest()
	}
	if r.mark.RequestedAt.IsZero() {
		return nil
	}
	return &metav1.Time{Time: r.mark.RequestedAt}
}

// laterRequest is a request that came after the restart that is resumed: nobody has acted on it yet (E9).
func (r *row) laterRequest() *metav1.Time {
	if at := r.latestRequest(); r.resumed && at != nil && at.After(r.mark.RequestedAt) {
		return at
	}
	return nil
}

func (r *row) latestRequest() *metav1.Time {
	if r.target.Workload.Rollout.ReadsAtNextRun {
		return nil
	}
	if r.requestedAt != nil || r.wait() == nil {
		return r.requestedAt
	}
	return r.wait().RequestedAt
}

// owe makes a target whose restart was resumed owe another one, that was asked for later.
func (d *Decision) owe(r *row, requestedAt *metav1.Time) {
	if requestedAt == nil {
		return
	}
	r.before = r.after.DeepCopy() // which is now the record
	r.resumed, r.stale, r.owing, r.requestedAt = false, nil, true, requestedAt
	r.cause = d.cause(r)
}

// wait is what is recorded of the restart that the target is owed, or nil.
func (r *row) wait() *v1alpha1.Wait {
	if r.before == nil {
		return nil
	}
	return r.before.Wait
}

// superseded tells whether another rollout has started the target's pods after the changes that a restart
// is owed for (E13). The template was read after them, so one that is there since is newer. Where further
// changes came, or may have come and been taken back unseen, the order isn't known; and where it is the one of before
// a rollout that wasn't complete, pods of it may be left.
func (d *Decision) superseded(r *row) bool {
	w := r.wait()
	return w != nil && w.Digest == staleDigest(r) && w.SourceVersions == staleVersions(r) &&
		r.requestedAt == nil && r.replacedWhileWaiting() && r.phase != putBack
}

// takenBack tells whether the changes that a restart was owed for were taken back, rather than that the target no
// longer depends on them. Of a target that is owed nothing else. That the sources did so may be known already, of a
// target that could not be decided on then.
func (d *Decision) takenBack(r *row) bool {
	if !r.owed() || r.wait() == nil {
		return false
	}
	changed := slices.ContainsFunc(r.target.Pairs, func(p Pair) bool {
		before, now := d.records.sources[p.Source], d.observed[p.Source]
		return before != nil && now != nil && sourceChanged(before, now)
	})
	return changed || d.records.sameGeneration && !r.rebased() && r.hasAllPairs()
}

// hasAllPairs tells whether the target depends on all sources that it is recorded to depend on.
func (r *row) hasAllPairs() bool {
	for ref := range r.records {
		if !slices.ContainsFunc(r.target.Pairs, func(p Pair) bool { return p.Source == ref }) {
			return false
		}
	}
	return true
}

// takenBackTooLate tells whether pods may have been started before the changes were taken back: they may run what
// is no longer there (E13).
func (r *row) takenBackTooLate() bool {
	return r.wait().Renew || r.startingPods() || r.mayHaveStartedPods()
}

// startingPods tells whether pods are being started, whoever began that.
func (r *row) startingPods() bool {
	rollout := r.target.Workload.Rollout
	return rollout.Progress != workload.Complete && !rollout.NoPods
}

// mayHaveStartedPods tells whether it isn't certain that the workload is as it was when its template was read: if it
// was only scaled, pods may have been started too. One whose restart was refused has not been read.
func (r *row) mayHaveStartedPods() bool {
	read := r.wait().Template
	if read == nil {
		return !r.refused()
	}
	return r.target.Workload.Template.Generation != read.Generation
}

// renew makes the target owe a restart, whatever its sources are.
func (r *row) renew(cause string) {
	r.owing, r.renewed, r.cause = true, true, cause
}

// renewing tells whether the target owes a restart whatever its sources are, by its record: and not only if the
// changes are taken back that it is owed for.
func (r *row) renewing() bool {
	return r.wait() != nil && r.wait().Renew && len(r.stale) == 0 && r.wait().Digest == staleDigest(r)
}

// replacedWhileWaiting tells whether it is certain that the template was replaced since the wait began.
func (r *row) replacedWhileWaiting() bool {
	w := r.wait()
	return w != nil && w.Template != nil && r.target.Workload.Template.ReplacedSince(templateOf(w.Template))
}

// replaced is the template that the wait began with, if it is certain that there is another one now, or nil.
func (r *row) replaced() *v1alpha1.Template {
	if !r.replacedWhileWaiting() {
		return nil
	}
	return r.wait().Template.DeepCopy()
}

// undone tells whether a rollout that superseded a restart was undone before it was complete, so that pods of
// before are left (E13). No restart was made then.
func (r *row) undone() bool {
	return r.phase == putBack && (r.mark.Number >= r.after.Restarts || r.before.Reason == v1alpha1.ReasonSupersededByRollout)
}

// supersede takes the target for restarted: its pods are new.
func (d *Decision) supersede(r *row) {
	r.after.Restarts = r.number
	r.after.Sources = r.appliedNow()
	r.after.Rollout = d.newRollout(r, r.replaced())
	r.after.Message = r.cause
	d.progress(r)
	d.follow(r)
	if r.after.Reason == v1alpha1.ReasonRolloutInProgress || r.after.Reason == v1alpha1.ReasonRolloutComplete {
		r.set(r.after.State, v1alpha1.ReasonSupersededByRollout, r.cause)
	}
	r.events = append(r.events, supersededEvent(r))
}

// decideRestarts decides of all targets that are owed a restart which get it now, and says what the others
// wait for.
func (d *Decision) decideRestarts() {
	d.parseWindows()
	if !slices.ContainsFunc(d.rows, func(r *row) bool { return r.owing }) {
		return // as in most passes
	}
	d.failing = slices.DeleteFunc(slices.Clone(d.rows), func(r *row) bool { return !r.failing() })
	failed, approval := d.failedChanges(), d.approvalHash()
	var ready []*row
	for _, r := range d.rows {
		if !r.owing {
			continue
		}
		d.await(r, approval)
		if d.mayHalt() && d.halt(r, failed, approval) {
			continue
		}
		if g, held := d.gate(r); held {
			d.hold(r, g)
			continue
		}
		ready = append(ready, r)
	}
	d.takeTurns(d.afterFailed(ready))
	if slices.ContainsFunc(d.rows, func(r *row) bool { return r.awaitsApproval() }) {
		d.status.ApprovalHash = approval
		d.tellHowToApprove(approval)
	}
}

// await begins the wait of a target, or goes on with it (E12). Each further change is another wait, but for
// the time at which it began.
func (d *Decision) await(r *row, approval string) {
	now := d.now()
	owed := staleDigest(r)
	w := r.wait().DeepCopy()
	switch {
	case w == nil:
		w = &v1alpha1.Wait{Digest: owed, SourceVersions: staleVersions(r), Since: now, SettlingSince: now}
		if len(r.stale) > 0 { // and not only asked for
			d.changed(r)
		}
	case w.Digest != owed:
		w.Renew = w.Renew || r.mayHaveStartedPods()
		w.Digest, w.SourceVersions, w.Template, w.ApprovedHash = owed, staleVersions(r), nil, ""
		d.settleAgain(r, w, now)
		d.changed(r)
	}
	if r.requestedAt != nil { // what came before it doesn't supersede it
		w.Template = nil
	}
	w.RequestedAt = r.request()
	w.Renew = w.Renew || r.renewed || r.startingPods()
	if d.in.Approved == approval {
		w.ApprovedHash = approval
	}
	r.after.Wait = w
}

// now is the time of the pass as waits have it.
func (d *Decision) now() metav1.MicroTime {
	return metav1.NewMicroTime(d.in.Now.Truncate(time.Microsecond))
}

// settleAgain begins the quiet time again, so often (E12). If it is over just now, the further change is
// gathered in the restart that it was for; if it has been over for long, because the target waits for
// something else, there is a new one. Sources that flap don't come to rest, so that nobody waits for that (E15).
func (d *Decision) settleAgain(r *row, w *v1alpha1.Wait, now metav1.MicroTime) {
	over := !d.in.Now.Before(d.settledAt(w))
	switch {
	case r.after.Slowdown != nil:
	case over && r.before.Reason != v1alpha1.ReasonSettling:
		w.SettlingSince, w.SettlingRestarts = now, 0
	case !over && w.SettlingRestarts < maxSettlingRestarts:
		w.SettlingSince, w.SettlingRestarts = now, w.SettlingRestarts+1
	}
}

func (d *Decision) settledAt(w *v1alpha1.Wait) time.Time {
	return w.SettlingSince.Add(seconds(ptr.Deref(d.in.Rollout.SettleSeconds, v1alpha1.DefaultSettleSeconds)))
}

// gate is what holds a restart back, as far as that can be said of the target alone: the first of what has
// to be passed. What a human asks for waits for no time (E14).
func (d *Decision) gate(r *row) (gate, bool) {
	w := r.after.Wait
	var gates []gate
	if d.in.Mode == v1alpha1.ModeSuspended {
		return gate{reason: v1alpha1.ReasonSuspended}, true
	}
	if w.RequestedAt == nil {
		gates = append(gates, d.settling(w), d.coolingDown(r), d.unapproved(w), d.outsideWindow())
	}
	if d.in.Mode == v1alpha1.ModeDryRun {
		gates = append(gates, gate{reason: v1alpha1.ReasonDryRun})
	}
	for _, g := range gates {
		if g.reason != "" {
			return g, true
		}
	}
	return gate{}, false
}

func (d *Decision) settling(w *v1alpha1.Wait) gate {
	until := d.settledAt(w)
	if !d.in.Now.Before(until) {
		return gate{}
	}
	return gate{reason: v1alpha1.ReasonSettling, until: until, note: settlingNote(until)}
}

func (d *Decision) coolingDown(r *row) gate {
	cooldown, why := d.cooldown(r)
	until := d.cooledDown(r)
	if !d.in.Now.Before(until) {
		return gate{}
	}
	return gate{reason: v1alpha1.ReasonCoolingDown, until: until, note: coolingNote(cooldown, until, why)}
}

// cooldown is the least time in seconds between two restarts of the target, and why it is more than the spec says.
func (d *Decision) cooldown(r *row) (cooldown int32, why string) {
	cooldown = ptr.Deref(d.in.Rollout.CooldownSeconds, v1alpha1.DefaultCooldownSeconds)
	if slow := r.after.Slowdown; slow != nil && slow.CooldownSeconds > cooldown {
		return slow.CooldownSeconds, slow.Message
	}
	return cooldown, ""
}

// cooledDown is when the target may be restarted again; zero: at any time.
func (d *Decision) cooledDown(r *row) time.Time {
	cooldown, _ := d.cooldown(r)
	last := r.after.LastRestartTime
	if last == nil || cooldown == 0 {
		return time.Time{}
	}
	return noSooner(*last, seconds(cooldown))
}

func (d *Decision) unapproved(w *v1alpha1.Wait) gate {
	if d.in.Rollout.Approval != v1alpha1.ApprovalManual || w.ApprovedHash != "" {
		return gate{}
	}
	return gate{reason: v1alpha1.ReasonAwaitingApproval}
}

func (d *Decision) outsideWindow() gate {
	if len(d.in.Rollout.Windows) == 0 || len(d.windows) > 0 && d.windows.Open(d.in.Now) {
		return gate{}
	}
	opening, ok := d.windows.Next(d.in.Now)
	if !ok { // none of them can be used
		return gate{reason: v1alpha1.ReasonOutsideWindow, note: neverOpensNote}
	}
	return gate{reason: v1alpha1.ReasonOutsideWindow, until: opening, note: windowNote(opening)}
}

// parseWindows reads the windows. One that can't be used never opens, and says so.
func (d *Decision) parseWindows() {
	for i := range d.in.Rollout.Windows {
		w := &d.in.Rollout.Windows[i]
		parsed, err := window.Parse(w.Schedule, time.Duration(w.DurationMinutes)*time.Minute, w.TimeZone)
		if err != nil {
			d.problems = append(d.problems, invalidWindow(i, err))
			continue
		}
		d.windows = append(d.windows, parsed)
	}
}

// hold makes a restart wait. The pairs stay as they are, so nothing is lost (E4, E14, E19).
func (d *Decision) hold(r *row, g gate) {
	message := r.cause
	if g.note != "" {
		message = sentences(r.cause, g.note)
	}
	r.set(v1alpha1.TargetPending, g.reason, message)
	if !g.until.IsZero() {
		d.lookAgain(g.until)
	}
	if (g.reason == v1alpha1.ReasonDryRun || g.reason == v1alpha1.ReasonSuspended) && !r.saidBefore() {
		r.events = append(r.events, held(r, d.in.Mode, r.cause))
	}
}

// approvalHash stands for what is approved: the content that there is, and the failures in spite of which
// to go on.
func (d *Decision) approvalHash() string {
	parts := make([]digest.Part, 0, len(d.in.Observed.Sources)+len(d.failing))
	for i := range d.in.Observed.Sources {
		s := &d.in.Observed.Sources[i]
		parts = append(parts, digest.Part{
			Kind: string(s.Kind), Name: s.Name, Hash: s.Hash, Absent: s.State != v1alpha1.SourcePresent,
		})
	}
	for _, r := range d.failing {
		parts = append(parts, digest.Part{
			Kind: "failed " + r.target.Kind, Name: r.target.Name,
			Hash: digest.Hash(workload.Mark{Number: max(r.number, r.after.Restarts)}.String()),
		})
	}
	return digest.Combine(parts)
}

// awaitsApproval tells whether an approval would let the target go on.
func (r *row) awaitsApproval() bool {
	return r.owing && (r.after.Reason == v1alpha1.ReasonAwaitingApproval || r.after.Reason == v1alpha1.ReasonHalted)
}

// staleDigest is that of the changes that a restart is owed for.
func staleDigest(r *row) string {
	parts := make([]digest.Part, 0, len(r.stale))
	for _, c := range r.stale {
		parts = append(parts, presentPart(c.Pair))
	}
	return digest.Combine(parts)
}

// staleVersions is that of the versions of the sources that the changes are of.
func staleVersions(r *row) string {
	parts := make([]digest.Part, 0, len(r.stale))
	for _, c := range r.stale {
		parts = append(parts, digest.Part{
			Kind: string(c.Source.Kind), Name: c.Source.Name, Hash: digest.Hash(c.UID + "/" + c.ResourceVersion),
		})
	}
	return digest.Combine(parts)
}

func templateOf(t *v1alpha1.Template) workload.Template {
	return workload.Template{Hash: t.Hash, Generation: t.Generation}
}

// recordOf is the record of a template, or nil if it isn't known.
func recordOf(t workload.Template) *v1alpha1.Template {
	if t.Hash == "" || t.Generation == 0 {
		return nil
	}
	return &v1alpha1.Template{Hash: t.Hash, Generation: t.Generation}
}

// noSooner is when it is certainly that long after a time that status has in whole seconds, which are rounded down
// (E14).
func noSooner(t metav1.Time, duration time.Duration) time.Time {
	return t.Add(duration + time.Second)
}

func seconds(n int32) time.Duration {
	return time.Duration(n) * time.Second
}
