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
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/workload"
)

// world is a scene, the script that it goes by, and what is true of it.
type world struct {
	*scene
	t      *testing.T
	script []byte
	trace  []string

	members  []*member
	versions map[*src]int // of the contents
	down     int          // for so many steps no operator runs
	jumps    bool         // the clock does
	// free is how many more targets the operator as a whole lets roll out.
	free int

	woken     bool      // something happened that a pass has to be made for
	retry     time.Time // when a pass that failed is made again; zero: none failed
	lookAgain time.Time // what the latest pass asked for
	quiet     bool      // nothing has happened since the latest pass, and that was recorded and all went well
	// shown are the hashes that status asked to approve, with what they were of, and approved those that were
	// approved at any time.
	shown    map[string]approvable
	approved map[string]bool
}

// approvable is what an approval is of.
type approvable struct {
	contents map[*src]string
	failing  string
}

// member is a target, its pods, and what is true of them.
type member struct {
	*tgt
	pods    []pod
	broken  bool // new pods don't become ready
	gaveUp  bool // its controller has given up the rollout
	size    int
	history []template
	cached  *workload.Workload // what the cache shows, if it is behind

	truth
}

// truth is what is true of a target, and of its record, whoever knows it.
type truth struct {
	known    bool // by a record
	started  map[*src]string
	recorded map[*src]string // what the record has of that
	seen     map[*src]int    // the version of each content that a record is of
	restarts []time.Time
	// lost: it was restarted, and that is not recorded; lostFor these contents.
	lost    bool
	lostFor string
	// unfinished: a restart, or a rollout that superseded one, has not been seen complete. It was for changed.
	unfinished bool
	changed    map[*src]string
	failed     bool            // that rollout did, and has not been seen complete
	blamed     map[*src]string // contents that rollouts before it failed with
	// reverted: its template was put back before the rollout was complete.
	reverted   bool
	generated  int64 // the generation of the latest restart
	newPods    int32
	progressed time.Time
	// mixed: its pods may run contents that were neither applied nor are there.
	mixed      bool
	staleSince int64 // the generation when it became stale
	requested  bool
	answered   string // the latest request that it was restarted for
	wait       *fleetWait
	slowedBy   time.Duration
}

// fleetWait is what is known of a target that waits.
type fleetWait struct {
	owed     string // the contents that it waits for
	since    time.Time
	quiet    time.Time // when the quiet time began, at least
	prolongs int
	read     *workload.Template
}

// pod is one pod of a target.
type pod struct {
	template string
	ready    bool
	runs     map[*src]string
	// excused: nobody could know what it was started with.
	excused bool
}

// template is a pod template.
type template struct {
	image string
	marks map[string]string
}

func newWorld(t *testing.T, script []byte) *world {
	config, shared, password := configMap("config", "a"), configMap("shared", "a"), secret("password", "a")
	web, api := deployment("web"), deployment("api")
	db, proxy := workloadOf(workload.StatefulSet, "db"), workloadOf(workload.DaemonSet, "proxy")
	w := &world{
		scene: newScene(config, shared, password, web, api, db, proxy), t: t, script: script,
		versions: map[*src]int{}, free: 1000, shown: map[string]approvable{}, approved: map[string]bool{},
	}
	web.uses, api.uses = []*src{config, shared}, []*src{shared, password}
	db.uses, proxy.uses = []*src{config}, []*src{shared}
	w.rollout.SettleSeconds = nil
	w.rollout.MaxConcurrent = 2
	for _, one := range w.targets {
		one.owner = "Fleet all"
		m := &member{tgt: one, size: 2}
		one.rollout.NoDeadline = one.Kind != workload.Deployment
		w.members = append(w.members, m)
		w.create(m)
	}
	return w
}

// pick is the script's next choice of n; 0 once it is over.
func (w *world) pick(n int) int {
	if len(w.script) == 0 {
		return 0
	}
	choice := int(w.script[0]) % n
	w.script = w.script[1:]
	return choice
}

// chance tells whether one of n choices was made.
func (w *world) chance(n int) bool {
	return w.pick(n) == n-1
}

func oneOf[T any](w *world, from ...T) T {
	return from[w.pick(len(from))]
}

func (w *world) did(format string, args ...any) {
	w.trace = append(w.trace, w.now.Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Errorf(format, args...)
	w.did("  here: "+format, args...)
}

// wake is what an event does: there is a pass, or that is still to come.
func (w *world) wake() {
	w.woken, w.quiet = true, false
}

func (w *world) step() {
	w.down = max(0, w.down-1)
	if w.jumps && w.chance(8) {
		w.jump(oneOf(w, -time.Hour, -time.Hour, -90*time.Second, time.Hour, 7*time.Hour))
	}
	switch w.pick(16) {
	case 0, 1:
		w.write()
	case 2, 3, 4:
		w.work(oneOf(w, w.members...))
	case 5:
		w.touch(oneOf(w, w.members...))
	case 6:
		w.breakOrMend(oneOf(w, w.members...))
	case 7:
		w.editRollout()
	case 8:
		w.approve()
	case 9:
		w.ask()
	case 10:
		w.lag(oneOf(w, w.members...))
	case 11, 12, 13:
		w.goOn(oneOf(w, 300*time.Millisecond, time.Second, 3*time.Second, 20*time.Second, 2*time.Minute,
			11*time.Minute, time.Hour))
	case 14:
		w.limit()
	case 15:
		if w.chance(4) {
			w.down = 1 + w.pick(6)
			w.woken = true
			w.did("no operator runs for %d steps", w.down)
		}
	}
	w.observeTruth()
	if w.woken && w.down == 0 && !w.chance(8) {
		w.passes()
	}
}

// write changes the content of a source, or deletes it.
func (w *world) write() {
	one := oneOf(w, w.sources...)
	content := oneOf(w, "a", "a", "b", "b", "c", "c", "-", "d")
	if one.data == nil && content == "-" {
		return
	}
	one.set(content)
	w.versions[one]++
	w.did("%s is %s", one.Ref, content)
	w.wake()
}

// work lets the target's controller go on for a bit.
func (w *world) work(m *member) {
	for range 1 + w.pick(3) {
		w.workOnce(m)
	}
	w.refresh(m)
}

func (w *world) workOnce(m *member) {
	if m.missing || m.rollout.Paused {
		return
	}
	now := m.template().Hash
	for i := range m.pods {
		if p := &m.pods[i]; p.template == now && !p.ready && !m.broken {
			p.ready = true
			w.did("a pod of %s is ready", m.Name)
			return
		}
	}
	if slices.ContainsFunc(m.pods, func(p pod) bool { return p.template == now && !p.ready }) {
		return
	}
	if i := slices.IndexFunc(m.pods, func(p pod) bool { return p.template != now }); i >= 0 {
		m.pods[i] = w.start(m)
		w.did("a pod of %s starts with %s", m.Name, said(m.pods[i].runs))
	}
}

// start starts a pod of the present template. It reads the contents that there are.
func (w *world) start(m *member) pod {
	p := pod{template: m.template().Hash, ready: !m.broken, runs: w.contents(m)}
	row := w.row(m.tgt)
	unread := row.Wait != nil && row.Wait.Template == nil && row.Reason == v1alpha1.ReasonRestartFailed
	unseen := slices.ContainsFunc(m.uses, func(one *src) bool { return m.seen[one] != w.versions[one] })
	p.excused = !m.known || unread || unseen
	return p
}

// contents are those that a target's pods would start with now, without what is absent.
func (w *world) contents(m *member) map[*src]string {
	contents := map[*src]string{}
	for _, one := range m.uses {
		if one.data != nil {
			contents[one] = one.data["KEY"]
		}
	}
	return contents
}

func said(contents map[*src]string) string {
	var parts []string
	for one, content := range contents {
		parts = append(parts, one.Name+"="+content)
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// refresh makes the target's controller report.
func (w *world) refresh(m *member) {
	before, now := m.rollout, m.template().Hash
	r := &m.rollout
	r.Progress, r.Detail, r.NewPods, r.NoPods = workload.Complete, "", 0, m.size == 0
	for _, p := range m.pods {
		switch {
		case p.template != now || !p.ready:
			r.Progress = workload.InProgress
		default:
			r.NewPods++
		}
	}
	if r.Progress == workload.Complete {
		m.gaveUp = false
	}
	if m.gaveUp {
		r.Progress, r.Detail = workload.Failed, "Progress deadline exceeded"
	}
	if *r != before && m.cached == nil {
		w.wake()
	}
}

// create makes a workload, and its pods.
func (w *world) create(m *member) {
	m.uid += "1"
	m.missing, m.marks, m.history = false, map[string]string{}, nil
	m.generation++
	m.pods = nil
	m.gaveUp = false
	m.truth = truth{seen: map[*src]int{}}
	for range m.size {
		m.pods = append(m.pods, w.start(m))
	}
	w.refresh(m)
	if m.cached == nil {
		w.wake()
	}
}

// touch is what others do to a workload.
func (w *world) touch(m *member) {
	switch w.pick(8) {
	case 0, 1, 2:
		w.replace(m, template{oneOf(w, "x", "y", "z"), maps.Clone(m.marks)}, "rolls")
	case 3:
		if n := len(m.history); n > 0 {
			w.replace(m, m.history[n-1], "is undone")
		}
	case 4:
		w.replace(m, template{m.image, map[string]string{}}, "is put back")
	case 5:
		if m.Kind == workload.Deployment && !m.missing {
			m.rollout.Paused = !m.rollout.Paused
			m.generation++
			w.did("%s is paused: %t", m.Name, m.rollout.Paused)
			w.refresh(m)
			w.woken, w.quiet = w.woken || m.cached == nil, false
		}
	case 6:
		w.scale(m, oneOf(w, 0, 1, 2, 3))
	case 7:
		w.deleteOrCreate(m)
	}
}

// replace puts another pod template in place of the present one.
func (w *world) replace(m *member, t template, how string) {
	if m.missing || t.image == m.image && maps.Equal(t.marks, m.marks) {
		return
	}
	m.history = append(m.history, template{m.image, maps.Clone(m.marks)})
	m.image, m.marks = t.image, maps.Clone(t.marks)
	m.generation++
	m.gaveUp = false
	now := m.template().Hash
	w.did("%s %s to %s", m.Name, how, now)
	record := w.row(m.tgt).Rollout
	m.reverted = m.reverted || m.unfinished
	for i := range m.pods {
		if p := &m.pods[i]; p.template == now {
			p.excused = p.excused || record == nil || record.Template == nil || record.Template.Hash != now
		}
	}
	w.refresh(m)
	w.woken, w.quiet = w.woken || m.cached == nil, false
}

func (w *world) scale(m *member, size int) {
	if m.missing || size == m.size {
		return
	}
	m.size = size
	m.generation++
	m.pods = m.pods[:min(size, len(m.pods))]
	for len(m.pods) < size {
		m.pods = append(m.pods, w.start(m))
	}
	w.did("%s has %d pods", m.Name, size)
	w.refresh(m)
	w.woken, w.quiet = w.woken || m.cached == nil, false
}

func (w *world) deleteOrCreate(m *member) {
	if m.missing || w.chance(2) {
		w.did("%s is created", m.Name)
		w.create(m)
		return
	}
	w.did("%s is deleted", m.Name)
	m.missing = true
	m.truth = truth{seen: map[*src]int{}}
	w.woken, w.quiet = w.woken || m.cached == nil, false
}

func (w *world) breakOrMend(m *member) {
	switch w.pick(4) {
	case 0:
		m.broken = true
		w.did("new pods of %s don't become ready", m.Name)
	case 1:
		m.broken, m.gaveUp = false, false
		w.did("pods of %s become ready", m.Name)
		w.workOnce(m)
	default:
		if m.Kind == workload.Deployment && !m.missing && m.rollout.Progress == workload.InProgress && !m.rollout.Paused {
			m.gaveUp = true
			w.did("%s is given up", m.Name)
		}
	}
	w.refresh(m)
}

// fleetWindow is a window, and when it is open.
type fleetWindow struct {
	v1alpha1.Window
	isOpen func(time.Time) bool
}

func fleetWindows() []fleetWindow {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return []fleetWindow{
		{v1alpha1.Window{Schedule: "0 * * * *", DurationMinutes: 20}, func(t time.Time) bool { return t.Minute() < 20 }},
		{v1alpha1.Window{Schedule: "*/30 * * * *", DurationMinutes: 3}, func(t time.Time) bool { return t.Minute()%30 < 3 }},
		{v1alpha1.Window{Schedule: "30 5 * * *", DurationMinutes: 90, TimeZone: "Europe/Berlin"}, func(t time.Time) bool {
			t = t.In(berlin)
			minute := t.Hour()*60 + t.Minute()
			return minute >= 5*60+30 && minute < 7*60
		}},
		{v1alpha1.Window{Schedule: "0 2 30 2 *", DurationMinutes: 90}, func(time.Time) bool { return false }},
	}
}

func (w *world) windowOpen() bool {
	for _, window := range w.rollout.Windows {
		for _, one := range fleetWindows() {
			if window == one.Window && one.isOpen(w.now) {
				return true
			}
		}
	}
	return len(w.rollout.Windows) == 0
}

// opens tells whether any of the windows ever opens.
func (w *world) opens() bool {
	return slices.ContainsFunc(w.rollout.Windows, func(v v1alpha1.Window) bool { return v.Schedule != "0 2 30 2 *" })
}

func (w *world) editRollout() {
	r := &w.rollout
	switch w.pick(10) {
	case 0:
		r.SettleSeconds = oneOf(w, nil, new(int32(0)), new(int32(0)), new(int32(1)), new(int32(30)), new(int32(3600)))
	case 1:
		r.CooldownSeconds = oneOf(w, nil, new(int32(0)), new(int32(45)), new(int32(600)))
	case 2, 3:
		r.MaxConcurrent = oneOf[int32](w, 0, 1, 1, 2, 3)
	case 4:
		r.OnFailure = oneOf(w, v1alpha1.OnFailureHalt, "", v1alpha1.OnFailureContinue)
	case 5:
		r.ProgressDeadlineSeconds = oneOf[int32](w, 0, 30, 90)
	case 6:
		r.Approval = oneOf(w, v1alpha1.ApprovalAutomatic, "", v1alpha1.ApprovalManual)
	case 7:
		r.Windows = nil
		for _, window := range fleetWindows() {
			if w.chance(4) {
				r.Windows = append(r.Windows, window.Window)
			}
		}
	default:
		w.mode = oneOf(w, v1alpha1.ModeActive, v1alpha1.ModeActive, v1alpha1.ModeDryRun, v1alpha1.ModeSuspended)
	}
	w.edited()
}

func (w *world) edited() {
	r := &w.rollout
	windows := make([]string, len(r.Windows))
	for i := range r.Windows {
		windows[i] = r.Windows[i].Schedule
	}
	w.generation++
	w.did("the spec: %s settle %d cooldown %d max %d %s deadline %d %s windows %v", w.mode, w.settle()/time.Second,
		w.cooldown()/time.Second, r.MaxConcurrent, r.OnFailure, r.ProgressDeadlineSeconds, r.Approval, windows)
	w.wake()
}

func (w *world) settle() time.Duration {
	if w.rollout.SettleSeconds == nil {
		return 2 * time.Second
	}
	return time.Duration(*w.rollout.SettleSeconds) * time.Second
}

func (w *world) cooldown() time.Duration {
	if w.rollout.CooldownSeconds == nil {
		return 0
	}
	return time.Duration(*w.rollout.CooldownSeconds) * time.Second
}

func (w *world) maxConcurrent() int {
	if w.rollout.MaxConcurrent == 0 {
		return 10
	}
	return int(w.rollout.MaxConcurrent)
}

func (w *world) deadline() time.Duration {
	if w.rollout.ProgressDeadlineSeconds == 0 {
		return 10 * time.Minute
	}
	return time.Duration(w.rollout.ProgressDeadlineSeconds) * time.Second
}

func (w *world) approve() {
	switch {
	case w.chance(3):
		w.scene.approved = "0123456789abcdef"
	case w.status.ApprovalHash != "":
		w.scene.approved = w.status.ApprovalHash
		w.approved[w.scene.approved] = true
	default:
		return
	}
	w.did("the annotation approves %s", w.scene.approved)
	w.wake()
}

func (w *world) ask() {
	if !w.chance(2) {
		return
	}
	w.requested = oneOf(w, w.now.Format(time.RFC3339), w.now.Format(time.RFC3339), "soon", "",
		w.now.Add(-time.Hour).Format(time.RFC3339), w.now.Add(time.Hour).Format(time.RFC3339))
	w.did("a restart is requested at %q", w.requested)
	w.wake()
}

// newRequest tells whether there is a request that the status doesn't know.
func (w *world) newRequest() bool {
	at, err := time.Parse(time.RFC3339, w.requested)
	before := w.status.RestartRequestedAt
	ahead := w.now.Add(5 * time.Minute)
	if err != nil || at.After(ahead) || w.status.ObservedGeneration == 0 {
		return false
	}
	return before == nil || at.After(before.Time) || before.After(ahead) && !at.Equal(before.Time)
}

// lag makes the cache of a target fall behind, or catch up.
func (w *world) lag(m *member) {
	switch {
	case m.cached != nil:
		w.catchUp(m)
		w.did("the cache shows what %s is like", m.Name)
	case !m.missing && w.chance(2):
		m.cached = m.workload()
		w.did("the cache goes on showing %s as it is", m.Name)
	}
}

func (w *world) catchUp(m *member) {
	if m.cached != nil {
		m.cached = nil
		w.wake()
	}
}

func (w *world) limit() {
	w.free = oneOf(w, 1000, 1000, 0, 1, 2)
	w.did("the operator as a whole lets %d more roll out", w.free)
	w.wake()
}

// jump sets the clock. The queue counts the time that passes, for ten minutes at most.
func (w *world) jump(by time.Duration) {
	w.now = w.now.Add(by)
	for _, due := range []*time.Time{&w.lookAgain, &w.retry} {
		if !due.IsZero() {
			*due = earlier(due.Add(by), w.now.Add(10*time.Minute))
		}
	}
	w.quiet = false
	w.did("the clock is set by %s", by)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// setBack takes times that are yet to come for the present one.
func (m *member) setBack(now time.Time) {
	for i := range m.restarts {
		m.restarts[i] = earlier(m.restarts[i], now)
	}
	m.progressed = earlier(m.progressed, now)
	if m.wait != nil {
		m.wait.since, m.wait.quiet = earlier(m.wait.since, now), earlier(m.wait.quiet, now)
	}
}

// goOn lets time go by. All passes are made that are due until then.
func (w *world) goOn(d time.Duration) {
	until := w.now.Add(d)
	for range 1000 {
		if w.t.Failed() || w.down > 0 {
			break
		}
		w.passes()
		next := w.lookAgain
		if !w.retry.IsZero() && (next.IsZero() || w.retry.Before(next)) {
			next = w.retry
		}
		if next.IsZero() || next.After(until) {
			break
		}
		w.now = next
		w.did("a pass is due")
		w.woken = true
	}
	w.now = until
}
