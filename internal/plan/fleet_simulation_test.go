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

package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// This simulation walks a fleet through hours of changes, rollouts that take time, fail, are paused, undone or
// made by others, edits of spec.rollout, approvals, requests, and passes that are cut short. Unlike the other
// one it knows the pods: each remembers the contents that it was started with. After every step it holds what
// the decision did and said against the rules:
//
//   - nothing lost: in the end, once all gates are open, every pod runs the present contents (E4 to E19);
//   - nothing doubled: no restart without a change, a request, or pods that may run something else (E9, E13);
//   - no restart that a rule forbids: within the quiet time (E12) or a cooldown (E14, E15), outside of windows,
//     unapproved (E14), beyond maxConcurrent or the operator's limit (E16, E18), halted (E17), or in another
//     mode than Active (E19);
//   - nobody waits without a reason that is true, and a time or an event that ends it (E27);
//   - a pass at LookAgain gets on, and otherwise nothing happens by itself (E28).
//
// Between passes nothing is kept but the status as JSON.

const (
	fleetSeeds = 150
	fleetSteps = 160
)

func TestFleetSimulationKeepsTheRulesOfRolling(t *testing.T) {
	eachSeed(t, fleetSeeds, func(t *testing.T, seed uint64) { simulateFleet(t, fleetScript(seed), false) },
		438, 1016, 1154, 2362, 3399, 3418, 5098, 6222, 6353)
}

// E14: the clock is set back and forth. What is restarted and what waits is the same, and nobody waits for longer
// than the spec says.
func TestFleetSimulationWithAClockThatJumps(t *testing.T) {
	eachSeed(t, fleetSeeds/2, func(t *testing.T, seed uint64) { simulateFleet(t, fleetScript(seed), true) })
}

func FuzzFleetSimulation(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(fleetScript(seed), seed%2 == 1)
	}
	f.Fuzz(simulateFleet)
}

func fleetScript(seed uint64) []byte {
	return randomBytes(seed, 12, fleetSteps*4)
}

func simulateFleet(t *testing.T, script []byte, jumps bool) {
	w := newWorld(t, script)
	w.jumps = jumps
	defer func() {
		if t.Failed() {
			t.Logf("the steps were:\n%s", strings.Join(w.trace, "\n"))
		}
	}()
	w.wake()
	for len(w.script) > 0 && !t.Failed() {
		w.step()
	}
	if !t.Failed() {
		w.finish()
	}
}

// passes makes passes until nothing is left to be done at this time.
func (w *world) passes() {
	for n := 0; w.woken && !w.t.Failed(); n++ {
		if n > 50 {
			w.fail("passes go on and on")
		}
		w.woken = false
		w.observeTruth()
		w.pass()
	}
}

// observeTruth keeps up what is true of pods that may run something else than what there is.
func (w *world) observeTruth() {
	for _, m := range w.members {
		if m.missing || !m.known {
			continue
		}
		switch {
		case len(w.stale(m)) == 0 && m.wait == nil:
			m.staleSince = 0
		case m.staleSince == 0:
			m.staleSince = m.generation
			fallthrough
		default:
			m.mixed = m.mixed || m.generation != m.staleSince || m.rollout.Progress != workload.Complete || m.cached != nil
		}
	}
}

// stale are the contents that a target is to be restarted for.
func (w *world) stale(m *member) map[*src]string {
	stale := map[*src]string{}
	for one, content := range w.contents(m) {
		if applied, ok := m.started[one]; ok && applied != content {
			stale[one] = content
		}
	}
	return stale
}

// course is how a pass goes.
type course struct {
	killed bool // after its restarts, or in the middle of them
	// wrong: one of so many restarts goes wrong, with the error, or isn't made if the pass is killed; 0: none.
	wrong   int
	err     error
	patched bool // it goes wrong, but is made
	unread  bool // no template can be read
}

func (w *world) course() course {
	switch w.pick(24) {
	case 23:
		return course{killed: true, wrong: 2}
	case 22:
		return course{killed: true}
	case 21:
		return course{err: errRefused, wrong: 2}
	case 20:
		return course{err: errRefused, wrong: 2, patched: true}
	case 19:
		return course{err: errBehind, wrong: 2}
	case 18:
		return course{unread: true}
	}
	return course{}
}

// fleetPass is a pass on its way.
type fleetPass struct {
	course
	*plan.Decision
	observed map[*member]*workload.Workload // as the cache shows it
	request  bool                           // is new
	knew     map[*member]bool               // by a record
	rolling  map[*member]bool
	failing  map[*member]map[*src]string // for these changes
	places   int                         // that are taken after the decision
	limited  bool                        // by the operator as a whole
	// restarted, refused and behind are what came of the restarts.
	restarted map[*member]bool
	refused   map[*member]bool
	behind    map[*member]bool
	// superseded are the names of those that needn't be restarted.
	superseded map[string]bool
}

func (w *world) pass() {
	p := w.decide()
	for _, restart := range p.Restarts {
		w.check(p, w.member(restart.Workload.Ref()))
	}
	w.checkTurns(p)
	outcomes := w.act(p)
	if p.killed {
		w.did("  the process is killed")
		for _, m := range w.members {
			m.cached = nil
		}
		w.woken, w.quiet = true, false
		return
	}
	status, events := p.Conclude(outcomes, w.read(p))
	before := w.status
	w.status = status
	w.reload()
	w.learn(p, events)
	w.checkRows(p)
	w.schedule(p, &before, errors.Join(outcomes...))
}

func (w *world) decide() *fleetPass {
	p := &fleetPass{
		course: w.course(), observed: map[*member]*workload.Workload{}, request: w.newRequest(),
		rolling: map[*member]bool{}, failing: map[*member]map[*src]string{},
		refused: map[*member]bool{}, restarted: map[*member]bool{}, behind: map[*member]bool{},
		knew: map[*member]bool{}, superseded: map[string]bool{},
	}
	in := w.input()
	for i, m := range w.members {
		if m.cached != nil {
			in.Observed.Targets[i] = w.asCached(m, in.Observed.Targets[i])
		}
		p.observed[m] = in.Observed.Targets[i].Workload
		p.knew[m] = m.known
		p.rolling[m] = w.isRolling(m, p.observed[m])
		if failed := w.failed(m, p.observed[m]); failed != nil {
			p.failing[m] = failed
		}
	}
	p.Decision = plan.Decide(in)
	wants := p.Wants()
	p.Limit(w.free)
	p.limited = wants > w.free
	p.places = p.Rolling() + p.Wants()
	return p
}

// sees tells whether the cache shows a workload that is there.
func (p *fleetPass) sees(m *member) bool {
	return p.observed[m] != nil && string(p.observed[m].UID) == m.uid && !m.missing
}

// asCached is a target as the cache shows it.
func (w *world) asCached(m *member, target plan.Target) plan.Target {
	if target.Workload == nil {
		for _, one := range w.sources {
			if slices.Contains(m.uses, one) {
				target.Pairs = append(target.Pairs, one.pair(w.applied(m.tgt, one)))
			}
		}
	}
	target.Workload = m.cached
	return target
}

func (w *world) member(ref workload.Ref) *member {
	i := slices.IndexFunc(w.members, func(m *member) bool { return m.Ref == ref })
	return w.members[i]
}

// isRolling tells whether a rollout that is followed is to be seen as under way.
func (w *world) isRolling(m *member, seen *workload.Workload) bool {
	if !m.unfinished || seen == nil || string(seen.UID) != m.uid {
		return false
	}
	if seen.Template.Generation < m.generated {
		return true
	}
	r := seen.Rollout
	return !r.NoPods && !r.Paused && r.Progress == workload.InProgress && !w.isFailing(m, seen) && !w.isPutBack(m, seen)
}

// isPutBack tells whether the template is to be seen as put back.
func (w *world) isPutBack(m *member, seen *workload.Workload) bool {
	record := w.row(m.tgt).Rollout
	if record == nil {
		return false
	}
	return slices.ContainsFunc([]*v1alpha1.Template{record.Template, record.FirstTemplate}, func(t *v1alpha1.Template) bool {
		return t != nil && t.Hash == seen.Template.Hash && seen.Template.Generation > t.Generation+1
	})
}

// overdue tells whether a rollout without a deadline of its own has failed by that of the spec. That of a restart
// whose record was lost counts from when it is found.
func (w *world) overdue(m *member, seen *workload.Workload) bool {
	last := earlier(m.progressed, w.now)
	if seen.Rollout.NewPods > m.newPods {
		last = w.now
	}
	return seen.Rollout.NoDeadline && !m.lost && !w.now.Before(last.Truncate(time.Second).Add(w.deadline()+time.Second))
}

// isFailing tells whether a rollout that is followed is to be seen as failed.
func (w *world) isFailing(m *member, seen *workload.Workload) bool {
	if !m.unfinished || seen == nil || string(seen.UID) != m.uid || seen.Template.Generation < m.generated {
		return false
	}
	r := seen.Rollout
	fails := m.failed || r.Progress == workload.Failed || !r.Paused && w.overdue(m, seen)
	return fails && !r.NoPods && r.Progress != workload.Complete && !w.isPutBack(m, seen)
}

// isDone tells whether a rollout that is followed is to be seen as complete. Without pods, none is of what has failed.
func (w *world) isDone(m *member, seen *workload.Workload) bool {
	r := seen.Rollout
	done := r.Progress == workload.Complete && !r.NoPods || r.NoPods && !m.failed && m.blamed == nil
	return done && seen.Template.Generation >= m.generated && !w.isPutBack(m, seen)
}

// failed are the contents that the target is to be seen to have failed with, and not to have been rolled out with
// since; nil: it hasn't failed.
func (w *world) failed(m *member, seen *workload.Workload) map[*src]string {
	if !m.unfinished || seen == nil || string(seen.UID) != m.uid {
		return nil
	}
	if w.isDone(m, seen) {
		return nil
	}
	failed := maps.Clone(m.blamed)
	if m.failed || w.isFailing(m, seen) {
		failed = maps.Clone(m.changed)
		maps.Copy(failed, m.blamed)
	}
	return failed
}

// check holds a restart against the rules.
func (w *world) check(p *fleetPass, m *member) {
	stale := w.stale(m)
	if w.mode != v1alpha1.ModeActive {
		w.fail("E19: %s is restarted though the mode is %s", m.Name, w.mode)
	}
	if !p.sees(m) {
		return // the patch will fail
	}
	requested := p.request || m.requested
	if m.known && !m.lost && !requested {
		w.checkGates(p, m, stale)
	}
	w.checkJustified(p, m, stale, requested)
}

// slowed is how long a target that is recorded to be slowed down waits between restarts. It ends when the changes have
// become fewer.
func (w *world) slowed(m *member) time.Duration {
	if changes := w.row(m.tgt).RecentChanges; len(changes) > 0 && !w.now.Before(changes[0].Add(10*time.Minute)) {
		return 0
	}
	return m.slowedBy
}

func (w *world) checkGates(p *fleetPass, m *member, stale map[*src]string) {
	if w.settle() > 0 && (m.wait == nil || w.now.Before(m.wait.quiet.Add(w.settle()))) {
		if owed := w.owed(m); m.wait == nil || owed == m.wait.owed || w.now.Before(m.wait.since.Add(w.settle())) {
			w.fail("E12: %s is restarted within the quiet time", m.Name)
		}
	}
	if n := len(m.restarts); n > 0 && w.now.Before(earlier(m.restarts[n-1], w.now).Add(max(w.cooldown(), w.slowed(m)))) {
		w.fail("E14: %s is restarted within the cooldown", m.Name)
	}
	if !w.windowOpen() {
		w.fail("E14: %s is restarted outside of windows", m.Name)
	}
	if w.rollout.Approval == v1alpha1.ApprovalManual && !w.isApproved(stale) {
		w.fail("E14: %s is restarted without approval", m.Name)
	}
	if by := w.haltedBy(p, m, stale); by != nil && !w.isApprovedInSpite(p, stale) {
		w.fail("E17: %s is restarted though %s has failed for the same change", m.Name, by.Name)
	}
	if read := m.read(w); read != nil {
		now := p.observed[m].Template
		if now.Generation > read.Generation && now.Hash != read.Hash && !w.isPutBack(m, p.observed[m]) {
			w.fail("E13: %s is restarted though another rollout came after the change", m.Name)
		}
	}
}

// read is the template that was read for the changes that the target is owed a restart for.
func (m *member) read(w *world) *workload.Template {
	if m.wait == nil || m.wait.owed != w.owed(m) {
		return nil
	}
	return m.wait.read
}

func (w *world) owed(m *member) string {
	return said(w.stale(m))
}

// isApproved tells whether someone has approved the contents that the target is restarted for.
func (w *world) isApproved(stale map[*src]string) bool {
	for hash := range w.approved {
		if w.agrees(hash, stale) {
			return true
		}
	}
	return false
}

// agrees tells whether an approval is of these contents.
func (w *world) agrees(hash string, stale map[*src]string) bool {
	for one, content := range stale {
		if w.shown[hash].contents[one] != content {
			return false
		}
	}
	return true
}

// isApprovedInSpite tells whether someone has approved the contents, and knew of the failures.
func (w *world) isApprovedInSpite(p *fleetPass, stale map[*src]string) bool {
	for hash := range w.approved {
		if w.shown[hash].failing == w.failing(p) && w.agrees(hash, stale) {
			return true
		}
	}
	return false
}

// failing names those whose rollouts failed, and their restarts.
func (w *world) failing(p *fleetPass) string {
	var names []string
	for _, m := range w.members {
		if p.failing[m] != nil {
			mark := workload.ParseMark(p.observed[m].RestartMarks[watchName])
			names = append(names, fmt.Sprintf("%s %d", m.Name, max(mark.Number, w.row(m.tgt).Restarts)))
		}
	}
	return strings.Join(names, ",")
}

// haltedBy is a target whose rollout failed for one of the changes, or nil.
func (w *world) haltedBy(p *fleetPass, m *member, stale map[*src]string) *member {
	if w.rollout.OnFailure == v1alpha1.OnFailureContinue {
		return nil
	}
	for _, other := range w.members {
		for one, content := range stale {
			if failed, ok := p.failing[other][one]; ok && other != m && failed == content {
				return other
			}
		}
	}
	return nil
}

// checkJustified tells whether there is anything to restart a target for.
func (w *world) checkJustified(p *fleetPass, m *member, stale map[*src]string, requested bool) {
	now, contents := m.template().Hash, w.contents(m)
	other := slices.ContainsFunc(m.pods, func(one pod) bool {
		return one.template == now && differ(one.runs, contents)
	})
	switch {
	case len(stale) > 0 || other || m.mixed || m.reverted:
	case m.lost && m.lostFor != said(contents): // and with what there was then is not known
	case !requested:
		w.fail("E5: %s is restarted for nothing", m.Name)
	case m.answered == w.requested && p.request:
		w.fail("E9: %s is restarted for the same request again", m.Name)
	}
}

func differ(runs, contents map[*src]string) bool {
	for one, content := range contents {
		if run, ok := runs[one]; ok && run != content {
			return true
		}
	}
	return false
}

// checkTurns holds the number of restarts against the limits.
func (w *world) checkTurns(p *fleetPass) {
	var rolling, starting []string
	restarting := map[*member]bool{}
	for _, restart := range p.Restarts {
		restarting[w.member(restart.Workload.Ref())] = true
	}
	for _, m := range w.members {
		switch {
		case m.lost, p.observed[m] != nil && !p.sees(m):
			return // it isn't known what there is
		case p.rolling[m]:
			rolling = append(rolling, m.Name)
		case restarting[m]:
			starting = append(starting, m.Name)
		}
	}
	if len(starting) > 0 && len(rolling)+len(starting) > w.maxConcurrent() {
		w.fail("E16: %v roll out and %v are restarted, of at most %d", rolling, starting, w.maxConcurrent())
	}
	if len(starting) > w.free {
		w.fail("E18: %v are restarted, of at most %d", starting, w.free)
	}
}

// act makes the restarts, as far as they don't go wrong.
func (w *world) act(p *fleetPass) []error {
	outcomes := make([]error, len(p.Restarts))
	for i, restart := range p.Restarts {
		m := w.member(restart.Workload.Ref())
		wrong := p.wrong > 0 && w.pick(p.wrong) == 0
		made := (!wrong || p.patched) && w.restart(m, restart, p)
		switch {
		case made && !wrong && !p.killed:
			p.restarted[m] = true
			continue
		case wrong:
			outcomes[i] = p.err
		case !made:
			outcomes[i] = errRefused // by the API server, as the cache was behind
		}
		m.lost = m.lost || made
		p.refused[m], p.behind[m] = true, errors.Is(outcomes[i], source.ErrBehind)
		w.did("  the restart of %s: made %t, %v", m.Name, made, outcomes[i])
	}
	return outcomes
}

// restart patches a target.
func (w *world) restart(m *member, restart plan.Restart, p *fleetPass) bool {
	before := template{m.image, maps.Clone(m.marks)}
	stale := w.stale(m)
	m.unfinished = m.unfinished && !w.isDone(m, p.observed[m])
	if !m.patch(restart) {
		return false
	}
	w.did("  %s is restarted with %s: %s", m.Name, restart.Mark, restart.Cause)
	m.history = append(m.history, before)
	m.generated, m.lostFor = m.generation, said(w.contents(m))
	m.gaveUp = false
	if m.cached != nil {
		m.cached = nil // the answer is read
	}
	w.renewed(p, m, stale)
	switch {
	case p.request:
		m.answered = w.requested
	case m.requested:
		m.answered = w.status.RestartRequestedAt.UTC().Format(time.RFC3339)
	}
	m.requested = false
	m.restarts = append(m.restarts, w.now)
	if p.observed[m].Rollout.NoPods && m.blamed == nil { // which is not followed
		m.unfinished = false
	}
	w.refresh(m)
	return true
}

// renewed is true of a target whose pods are renewed for all that there is.
func (w *world) renewed(p *fleetPass, m *member, stale map[*src]string) {
	if !m.unfinished {
		m.changed = map[*src]string{}
	}
	maps.DeleteFunc(m.changed, func(one *src, content string) bool { return w.contents(m)[one] != content })
	m.blamed = maps.Clone(p.failing[m]) // until it is rolled out with that
	maps.DeleteFunc(m.blamed, func(one *src, content string) bool { return w.contents(m)[one] != content })
	if len(m.blamed) == 0 {
		m.blamed = nil
	}
	maps.Copy(m.changed, stale)
	m.started = maps.Clone(m.recorded) // which is what it is compared with when a source that is away comes back
	maps.Copy(m.started, w.contents(m))
	m.unfinished, m.failed, m.mixed, m.reverted, m.wait = true, false, false, false, nil
	m.newPods, m.progressed = 0, w.now
	m.staleSince = 0
}

// read reads templates, unless that goes wrong.
func (w *world) read(p *fleetPass) []workload.Template {
	var templates []workload.Template
	for _, one := range p.Waiting() {
		m := w.member(one.Ref())
		if p.unread || m.missing || string(one.UID) != m.uid {
			templates = append(templates, workload.Template{})
			continue
		}
		templates = append(templates, m.template())
	}
	return templates
}

// learn is what a record tells of what is true.
func (w *world) learn(p *fleetPass, events []plan.Event) {
	if hash := w.status.ApprovalHash; hash != "" {
		w.shown[hash] = approvable{w.allContents(), w.failing(p)}
	}
	for _, e := range events {
		if e.Reason == v1alpha1.EventRestartSuperseded {
			p.superseded[e.Target.Name] = true
		}
		if !e.OnTarget {
			w.did("  %s: %s", e.Reason, e.Note)
		}
	}
	for _, m := range w.members {
		m.setBack(w.now)
		switch {
		case !p.sees(m):
		case !m.known:
			w.learnBaseline(m)
		default:
			w.learnTarget(p, m, p.superseded[m.Name])
		}
	}
}

// allContents are those of all sources that exist.
func (w *world) allContents() map[*src]string {
	contents := map[*src]string{}
	for _, one := range w.sources {
		if one.data != nil {
			contents[one] = one.data["KEY"]
		}
	}
	return contents
}

func (w *world) learnTarget(p *fleetPass, m *member, superseded bool) {
	row := w.row(m.tgt)
	if m.lost && row.Restarts >= workload.ParseMark(m.mark()).Number {
		m.lost, m.progressed = false, w.now
	}
	if superseded {
		w.learnSuperseded(p, m)
	}
	if !p.restarted[m] {
		w.learnProgress(m, p.observed[m], &row)
	}
	if p.behind[m] {
		m.requested = m.requested || p.request
	} else {
		w.learnContents(m)
		w.learnWait(p, m, &row)
	}
	if !m.lost {
		m.recorded = maps.Clone(m.started)
	}
}

func (w *world) learnBaseline(m *member) {
	m.known = true
	m.started = w.contents(m)
	m.recorded = maps.Clone(m.started)
	for _, one := range m.uses {
		m.seen[one] = w.versions[one]
	}
	for i := range m.pods {
		m.pods[i].excused = m.pods[i].excused || differ(m.pods[i].runs, m.started)
	}
}

func (w *world) learnSuperseded(p *fleetPass, m *member) {
	w.did("  %s is superseded", m.Name)
	if m.wait == nil || m.wait.read == nil || m.wait.owed != w.owed(m) {
		w.fail("E13: %s is taken for restarted, though nobody knows what its pods run", m.Name)
	}
	stale := w.stale(m)
	m.unfinished = m.unfinished && !w.isDone(m, p.observed[m])
	w.renewed(p, m, stale)
	m.requested = false
	m.generated = 0
	if failed := w.failed(m, p.observed[m]); failed != nil { // by the time that it was found
		p.failing[m] = failed
	}
}

// learnProgress follows a rollout that is recorded.
func (w *world) learnProgress(m *member, seen *workload.Workload, row *v1alpha1.TargetStatus) {
	if seen.Rollout.NewPods > m.newPods {
		m.newPods, m.progressed = seen.Rollout.NewPods, w.now
	}
	m.failed = m.failed || w.isFailing(m, seen)
	if m.unfinished && row.Rollout == nil && !m.lost {
		m.unfinished, m.blamed = false, nil
		if !seen.Rollout.NoPods && (seen.Rollout.Progress != workload.Complete || seen.Template.Generation < m.generated) {
			w.fail("E16: the rollout of %s is taken for complete", m.Name)
		}
	}
	m.slowedBy = 0
	if row.Slowdown != nil {
		m.slowedBy = time.Duration(row.Slowdown.CooldownSeconds) * time.Second
	}
}

// learnContents keeps up what a record has seen.
func (w *world) learnContents(m *member) {
	for _, one := range m.uses {
		m.seen[one] = w.versions[one]
		if _, ok := m.started[one]; !ok && one.data != nil {
			m.started[one] = one.data["KEY"] // it appeared, which calls for no restart
		}
	}
}

// learnWait keeps up what is known of a target that waits.
func (w *world) learnWait(p *fleetPass, m *member, row *v1alpha1.TargetStatus) {
	if p.restarted[m] {
		return
	}
	if row.State != v1alpha1.TargetPending && row.State != v1alpha1.TargetHalted {
		if m.wait != nil && m.cached != nil { // a change was taken back, and pods may have been started unseen
			m.excuse()
		}
		m.requested, m.wait = false, nil
		return
	}
	m.requested = m.requested || p.request
	unread := p.unread || row.Slowdown != nil && row.Wait.Template == nil
	m.mixed = m.mixed || unread // nobody knows whether pods are started from now on
	w.prolong(m)
	if m.wait.read == nil && row.Wait != nil && row.Wait.Template != nil {
		m.wait.read = &workload.Template{Hash: row.Wait.Template.Hash, Generation: row.Wait.Template.Generation}
	}
}

// prolong begins the wait of a target, or goes on with it.
func (w *world) prolong(m *member) {
	owed := w.owed(m)
	if m.wait == nil {
		m.wait = &fleetWait{owed: owed, since: w.now, quiet: w.now}
	}
	if m.wait.owed == owed {
		return
	}
	m.wait.owed, m.wait.read = owed, nil
	if m.slowedBy == 0 && w.now.Before(m.wait.quiet.Add(w.settle())) && m.wait.prolongs < 4 {
		m.wait.quiet, m.wait.prolongs = w.now, m.wait.prolongs+1
	}
}

// excuse accepts what the pods of a target run.
func (m *member) excuse() {
	for i := range m.pods {
		m.pods[i].excused = true
	}
}

// checkRows holds what the rows say against what is true.
func (w *world) checkRows(p *fleetPass) {
	for _, m := range w.members {
		row := w.row(m.tgt)
		if !p.sees(m) || m.lost || p.behind[m] || p.restarted[m] {
			continue
		}
		waits := row.State == v1alpha1.TargetPending || row.State == v1alpha1.TargetHalted
		if p.request && p.knew[m] && !waits && !p.superseded[m.Name] && m.answered != w.requested {
			w.fail("E9: %s is %s %s, and nobody has acted on the request", m.Name, row.State, row.Reason)
		}
		if stale := w.stale(m); len(stale) > 0 && !waits {
			w.fail("E4: %s is %s %s, and its pods are to be started for %s", m.Name, row.State, row.Reason, said(stale))
		}
		if waits {
			w.checkReason(p, m, &row)
		}
	}
}

// checkReason holds what a target is said to wait for against what is true, and whether there will be a pass
// when that is over.
func (w *world) checkReason(p *fleetPass, m *member, row *v1alpha1.TargetStatus) {
	until, ok := w.waitsForTime(m, row)
	if !ok && !w.waitsForOthers(p, m, row) {
		w.fail("E27: %s waits for no reason: %s %s: %s", m.Name, row.State, row.Reason, row.Message)
	}
	if !until.IsZero() && (p.LookAgain.IsZero() || p.LookAgain.After(until)) {
		w.fail("E14: %s waits until %s, and the next pass is due at %s", m.Name, until.Format(time.TimeOnly), p.LookAgain)
	}
}

// waitsForTime tells whether a target waits for what is for changes only, and until when at the latest, if time
// ends it.
func (w *world) waitsForTime(m *member, row *v1alpha1.TargetStatus) (until time.Time, ok bool) {
	if m.requested {
		return time.Time{}, false
	}
	switch row.Reason {
	case v1alpha1.ReasonSettling:
		until = row.Wait.SettlingSince.Add(w.settle())
		return until, w.now.Before(until) && until.Sub(w.now) <= w.settle()
	case v1alpha1.ReasonCoolingDown:
		until = row.LastRestartTime.Add(max(w.cooldown(), m.slowedBy) + time.Second)
		return until, w.now.Before(until) && until.Sub(w.now) <= max(w.cooldown(), m.slowedBy)+time.Second
	case v1alpha1.ReasonAwaitingApproval:
		return until, w.rollout.Approval == v1alpha1.ApprovalManual && w.status.ApprovalHash != ""
	case v1alpha1.ReasonOutsideWindow:
		if w.opens() {
			until = w.now.Add(24 * time.Hour)
		}
		return until, !w.windowOpen()
	}
	return until, false
}

// waitsForOthers tells whether a target waits for the mode, for other targets, or for another attempt.
func (w *world) waitsForOthers(p *fleetPass, m *member, row *v1alpha1.TargetStatus) bool {
	full := p.limited || p.places >= w.maxConcurrent()
	switch row.Reason {
	case v1alpha1.ReasonSuspended, v1alpha1.ReasonDryRun:
		return string(w.mode) == row.Reason
	case v1alpha1.ReasonAwaitingTurn:
		return (full || w.isBehind(p)) && !p.rolling[m] || w.waitsForFailed(p, m)
	case v1alpha1.ReasonHalted:
		return !m.requested && w.status.ApprovalHash != "" && (w.haltedBy(p, m, w.stale(m)) != nil || w.isBehind(p))
	case v1alpha1.ReasonRestartFailed:
		return p.refused[m] || full
	}
	return false
}

// waitsForFailed tells whether another target goes first, which failed with another content of a source than the target
// is owed a restart for, and is to be restarted later.
func (w *world) waitsForFailed(p *fleetPass, m *member) bool {
	untilItGoes := []string{
		v1alpha1.ReasonSettling, v1alpha1.ReasonCoolingDown, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonOutsideWindow,
	}
	return slices.ContainsFunc(w.members, func(other *member) bool {
		if other == m || p.failing[other] == nil || !slices.Contains(untilItGoes, w.row(other.tgt).Reason) {
			return false
		}
		for one := range w.stale(m) {
			_, failed := p.failing[other][one]
			if _, mended := w.stale(other)[one]; failed && mended {
				return true
			}
		}
		return false
	})
}

// isBehind tells whether the cache shows a workload that is no longer there.
func (w *world) isBehind(p *fleetPass) bool {
	return slices.ContainsFunc(w.members, func(m *member) bool { return p.observed[m] != nil && !p.sees(m) })
}

// schedule takes care of the next pass, and checks that this one has got on, or that the next would not.
func (w *world) schedule(p *fleetPass, before *v1alpha1.ConfigWatchStatus, failed error) {
	due := w.quiet && !w.lookAgain.IsZero() && !w.now.Before(w.lookAgain)
	if due && len(p.Restarts) == 0 && equality.Semantic.DeepEqual(*before, w.status) {
		w.fail("E28: a pass was due, and did nothing")
	}
	if !p.LookAgain.IsZero() && !p.LookAgain.After(w.now) {
		w.fail("E28: the next pass is due at %s, and that is over", p.LookAgain)
	}
	w.lookAgain, w.retry, w.quiet = p.LookAgain, time.Time{}, true
	switch {
	case failed != nil:
		w.retry, w.lookAgain, w.quiet = w.now.Add(10*time.Second), time.Time{}, false
	case len(p.Restarts) > 0:
		w.woken = true
	default:
		w.holdStill(p)
	}
}

// holdStill makes a pass right after another one.
func (w *world) holdStill(p *fleetPass) {
	script := w.script
	again := w.decide()
	w.script = script
	again.course = p.course
	status, events := again.Conclude(make([]error, len(again.Restarts)), w.read(again))
	if len(again.Restarts) > 0 || len(events) > 0 || !again.LookAgain.Equal(p.LookAgain) ||
		!equality.Semantic.DeepEqual(w.status, status) {
		w.fail("E28: it goes on: %d restarts, events %v, look again %s and %s\n%+v\n%+v", len(again.Restarts), events,
			again.LookAgain, p.LookAgain, status, w.status)
	}
}

// finish opens all gates, lets all rollouts complete, and looks what the pods run.
func (w *world) finish() {
	w.mode, w.free, w.down = v1alpha1.ModeActive, 1000, 0
	w.rollout.Windows, w.rollout.Approval = nil, v1alpha1.ApprovalAutomatic
	w.rollout.OnFailure = v1alpha1.OnFailureContinue
	for _, m := range w.members {
		w.catchUp(m)
		m.broken, m.gaveUp, m.rollout.Paused = false, false, false
		if m.missing {
			w.create(m)
		}
		w.scale(m, max(1, m.size))
		w.refresh(m)
	}
	w.edited()
	w.goOn(time.Hour)
	w.edited() // for those whose templates had been put back unseen
	for range 200 {
		if w.goOn(time.Minute); w.settledDown() {
			break
		}
		for _, m := range w.members {
			for range 20 {
				w.workOnce(m)
			}
			w.refresh(m)
			w.observeTruth()
		}
	}
	w.passes()
	for _, m := range w.members {
		w.checkEnd(m)
	}
}

// settledDown tells whether nothing is left to be done.
func (w *world) settledDown() bool {
	return !w.woken && w.quiet && w.lookAgain.IsZero() && !slices.ContainsFunc(w.members, func(m *member) bool {
		return m.rollout.Progress != workload.Complete || w.row(m.tgt).State != v1alpha1.TargetUpToDate
	})
}

func (w *world) checkEnd(m *member) {
	if row := w.row(m.tgt); row.State != v1alpha1.TargetUpToDate || row.Wait != nil || m.requested {
		w.fail("E4: %s is %s %s in the end: %s", m.Name, row.State, row.Reason, row.Message)
	}
	contents := w.contents(m)
	for _, p := range m.pods {
		if !p.excused && differ(p.runs, contents) {
			w.fail("E4: a pod of %s runs %s for good, and not %s", m.Name, said(p.runs), said(contents))
		}
	}
}
