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
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/workload"
)

// The simulation walks a cluster and its ConfigWatch at random through changes, edits, faults and
// passes, and keeps a model beside it that knows all: what content each target's pods were last started
// for, or first seen with. At each pass the restarts must be those that the model calls for (E4 to E11,
// E19): not one less, and not one more but where a lost record can't be told from a change.

const (
	simulatedSeeds = 200
	simulatedSteps = 120
)

func TestSimulationRestartsWhatChangedAndNothingElse(t *testing.T) {
	eachSeed(t, simulatedSeeds, func(t *testing.T, seed uint64) { simulate(t, randomScript(seed)) })
}

func FuzzSimulation(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(randomScript(seed))
	}
	f.Fuzz(simulate)
}

func randomScript(seed uint64) []byte {
	return randomBytes(seed, 0, simulatedSteps*4)
}

// moreSeeds is an environment variable that has simulations run for so many seeds, rather than for a few that are
// done soon.
const moreSeeds = "SIMULATION_SEEDS"

// few are some of so many things to try, where all would take too long.
func few(n int) int {
	if raceDetector || testing.Short() {
		return n / 5
	}
	return n
}

// eachSeed runs a simulation for each of so many seeds, and for those that have found something once, each as a test of
// its own.
func eachSeed(t *testing.T, seeds int, simulate func(t *testing.T, seed uint64), found ...uint64) {
	t.Helper()
	seeds = few(seeds)
	if more := os.Getenv(moreSeeds); more != "" {
		var err error
		if seeds, err = strconv.Atoi(more); err != nil {
			t.Fatalf("%s: %v", moreSeeds, err)
		}
	}
	for seed := range uint64(seeds) {
		found = append(found, seed)
	}
	for _, seed := range found {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { simulate(t, seed) })
	}
}

// simulation is a scene, the script that it goes by, and the model.
type simulation struct {
	*scene
	t      testing.TB
	script []byte
	trace  []string

	listed  []*src // those that the spec may list
	running []*tgt
	model   map[*tgt]*podModel
	late    []plan.Restart // of a leader that was stopped in the middle of a pass
	edited  bool           // the spec was edited since the last record
}

// podModel is what a target's pods were started for, or first seen with.
type podModel struct {
	uid     string
	pairs   map[*src]*pairModel
	numbers []int64 // of the restarts
	// excused, until all is quiet: a restart that the model doesn't call for is not wrong, as nobody
	// could know better.
	excused bool
	// touched: its mark was stripped or rolled back.
	touched bool
}

type pairModel struct {
	content data // that it last had
	absent  bool
	keys    []string
}

// fate is what becomes of the restarts of a pass, and of its status.
type fate struct {
	name     string
	patched  func() bool
	err      error
	recorded bool
}

func simulate(t *testing.T, script []byte) {
	s := newSimulation(t, script)
	defer func() {
		if t.Failed() {
			t.Logf("the steps were:\n%s", strings.Join(s.trace, "\n"))
		}
	}()
	for len(s.script) > 0 && !t.Failed() {
		s.step()
		if len(s.script) == 0 || s.pick(12) == 0 {
			s.quiesce()
		}
	}
}

func newSimulation(t testing.TB, script []byte) *simulation {
	config, more, password := configMap("config", "a"), configMap("more", "a").bySelector(), secret("password", "a")
	web, api, report := deployment("web"), workloadOf(workload.StatefulSet, "api"), workloadOf(workload.CronJob, "report")
	s := &simulation{
		scene: newScene(config, more, password, web, api, report), t: t, script: script,
		listed: []*src{config, more, password}, running: []*tgt{web, api, report},
		model: map[*tgt]*podModel{},
	}
	for _, one := range s.listed {
		one.data = data{"x": "a", "y": "a"}
	}
	api.uses = []*src{config, password}
	s.rollout.OnFailure = v1alpha1.OnFailureContinue
	return s
}

// pick is the script's next choice of n; 0 once it is over.
func (s *simulation) pick(n int) int {
	if len(s.script) == 0 {
		return 0
	}
	choice := int(s.script[0]) % n
	s.script = s.script[1:]
	return choice
}

func pickOf[T any](s *simulation, from []T) T {
	return from[s.pick(len(from))]
}

func (s *simulation) did(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf(format, args...))
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Errorf(format, args...)
	s.did("  here: "+format, args...)
}

func (s *simulation) step() {
	always, sometimes := func() bool { return true }, func() bool { return s.pick(2) == 0 }
	switch s.pick(16) {
	case 0, 1, 2, 3:
		s.changeSource()
	case 4:
		s.changeTarget()
	case 5, 6:
		s.editSpec()
	case 7:
		s.changeSight()
	case 8:
		s.leaderComesLate()
	case 9, 10:
		s.pass(fate{"pass whose status is lost", always, nil, false})
	case 11:
		s.pass(fate{"pass that stops in the middle", sometimes, nil, false})
	case 12:
		s.pass(fate{"pass with refused restarts", sometimes, errRefused, true})
	case 13:
		s.pass(fate{"pass with lost responses", always, errRefused, true})
	default:
		s.pass(fate{"pass", always, nil, true})
	}
}

func (s *simulation) changeSource() {
	one := pickOf(s, s.listed)
	switch s.pick(5) {
	case 0:
		one.write(nil)
	default:
		content := maps.Clone(one.data)
		if content == nil {
			content = data{"x": "a", "y": "a"}
		}
		content[pickOf(s, []string{"x", "y"})] = pickOf(s, []string{"a", "b", "c"})
		one.write(content)
	}
	s.excuseUnrecorded()
	s.did("%s is %v", one.Ref, one.data)
}

// excuseUnrecorded allows restarts whose record was lost to be made again: whether they were made for
// the present content can't always be told once a source or the spec is another.
func (s *simulation) excuseUnrecorded() {
	for _, t := range s.running {
		m := s.modelOf(t)
		m.excused = m.excused || s.unrecorded(t)
	}
}

// excuseOwed allows restarts that are owed to be made even if the change is taken back later: whether it
// is can't be told, as hashes can't be compared any more.
func (s *simulation) excuseOwed() {
	for _, t := range s.running {
		m := s.modelOf(t)
		m.excused = m.excused || s.row(t).State == v1alpha1.TargetPending
	}
}

func (s *simulation) changeTarget() {
	t := pickOf(s, s.running)
	switch s.pick(7) {
	case 0:
		t.recreate()
		s.did("%s is re-created", t.Ref)
	case 1:
		t.missing = !t.missing
		if !t.missing {
			t.recreate()
		}
		s.did("%s is missing: %t", t.Ref, t.missing)
	case 2:
		s.touch(t)
		delete(t.marks, watchName)
		s.did("the mark of %s is stripped", t.Ref)
	case 3:
		if numbers := s.modelOf(t).numbers; len(numbers) > 0 {
			s.touch(t)
			t.marks[watchName] = workload.Mark{Number: pickOf(s, numbers), Digest: "0123456789abcdef"}.String()
			s.did("%s is rolled back to %s", t.Ref, t.mark())
		}
	case 4:
		t.uses = s.subset()
		s.excuseUnrecorded()
		s.did("%s uses %s", t.Ref, names(t.uses))
	case 5:
		t.ignored = !t.ignored
		s.did("%s is ignored: %t", t.Ref, t.ignored)
	case 6:
		t.rollout.Progress = pickOf(s, []workload.Progress{workload.Complete, workload.Failed, workload.InProgress})
		s.did("%s is %s", t.Ref, t.rollout.Progress)
	}
}

func (s *simulation) subset() []*src {
	subset := []*src{}
	for _, one := range s.listed {
		if s.pick(2) == 0 {
			subset = append(subset, one)
		}
	}
	return subset
}

func names(sources []*src) string {
	var said []string
	for _, one := range sources {
		said = append(said, one.Name)
	}
	return strings.Join(said, ", ")
}

func (s *simulation) editSpec() {
	one := pickOf(s, s.listed)
	switch s.pick(6) {
	case 0, 1:
		s.mode = pickOf(s, []v1alpha1.Mode{v1alpha1.ModeActive, v1alpha1.ModeDryRun, v1alpha1.ModeSuspended, v1alpha1.ModeObserve})
		s.did("the mode is %s", s.mode)
	case 2:
		one.keys = pickOf(s, [][]string{nil, {"x"}, {"x", "y"}})
		s.excuseOwed()
		s.did("the keys of %s are %v", one.Ref, one.keys)
	case 3:
		one.when(pickOf(s, []string{"M", "M", "A", "D", "AM", "MD", "AMD"}))
		s.did("restartOn of %s is %v", one.Ref, one.restartOn)
	case 4:
		s.sources = s.subset()
		s.did("the spec lists %s", names(s.sources))
	case 5:
		t := pickOf(s, s.running)
		if i := slices.Index(s.targets, t); i >= 0 {
			s.targets = slices.Delete(s.targets, i, i+1)
		} else {
			s.targets = append(s.targets, t)
		}
		s.did("the spec lists %d targets", len(s.targets))
	}
	s.edited = true
	s.generation++
	s.excuseUnrecorded()
}

// changeSight makes Secrets unreadable, replaces the operator's key, or ignores a source.
func (s *simulation) changeSight() {
	password := s.listed[2]
	switch s.pick(4) {
	case 0, 1:
		password.unreadable = !password.unreadable
		s.did("Secrets are unreadable: %t", password.unreadable)
	case 2:
		password.hasher = digest.Keyed([]byte{byte(s.pick(256)), byte(s.pick(256))})
		s.excuseOwed()
		s.did("the operator has another key")
	case 3:
		one := pickOf(s, s.listed)
		one.ignored = !one.ignored
		s.did("%s is ignored: %t", one.Ref, one.ignored)
	}
	s.excuseUnrecorded()
}

// leaderComesLate lets one that has decided long ago make its restarts now.
func (s *simulation) leaderComesLate() {
	for _, restart := range s.late {
		if t := s.targetNamed(restart.Workload.Ref()); s.start(t, restart, s.contents()) {
			s.modelOf(t).excused = true
			s.did("a late leader restarts %s with %s", t.Ref, restart.Mark)
		}
	}
	s.late = s.decide().Restarts
	s.did("a leader is stopped before %d restarts", len(s.late))
}

func (s *simulation) targetNamed(ref workload.Ref) *tgt {
	i := slices.IndexFunc(s.running, func(t *tgt) bool { return t.Ref == ref })
	return s.running[i]
}

func (s *simulation) sourceOf(pair plan.Pair) *src {
	i := slices.IndexFunc(s.listed, func(one *src) bool { return one.Ref == pair.Source })
	return s.listed[i]
}

func (s *simulation) contents() map[*src]data {
	contents := map[*src]data{}
	for _, one := range s.listed {
		contents[one] = maps.Clone(one.data)
	}
	return contents
}

// modelOf is the model of a target. Of a workload that is new it knows nothing yet.
func (s *simulation) modelOf(t *tgt) *podModel {
	if m := s.model[t]; m == nil || m.uid != t.uid {
		s.model[t] = &podModel{uid: t.uid, pairs: map[*src]*pairModel{}}
	}
	return s.model[t]
}

func (s *simulation) touch(t *tgt) {
	m := s.modelOf(t)
	m.touched = true
	m.excused = m.excused || s.unrecorded(t)
}

// unrecorded tells whether a restart was made that is not recorded.
func (s *simulation) unrecorded(t *tgt) bool {
	return workload.ParseMark(t.mark()).Number > s.row(t).Restarts
}

// start makes a restart. Its pods read the contents that there are then.
func (s *simulation) start(t *tgt, restart plan.Restart, contents map[*src]data) bool {
	if !t.patch(restart) {
		return false
	}
	m := s.modelOf(t)
	if n := restart.Mark.Number; !m.touched && slices.ContainsFunc(m.numbers, func(before int64) bool { return before >= n }) {
		s.fail("E8: restart %d of %s comes after %v", n, t.Ref, m.numbers)
	}
	m.numbers = append(m.numbers, restart.Mark.Number)
	for one, pair := range m.pairs {
		if one.unreadable {
			continue
		}
		pair.advance(contents[one])
	}
	return true
}

func (p *pairModel) advance(content data) {
	p.absent = content == nil
	if !p.absent {
		p.content = maps.Clone(content)
	}
}

// changes are the transitions of a pair, as far as both the recorded and the present keys go.
func (p *pairModel) changes(now data, keys []string) []v1alpha1.Change {
	var changes []v1alpha1.Change
	switch {
	case now == nil && p.absent:
		return nil
	case now == nil:
		return []v1alpha1.Change{v1alpha1.Deleted}
	case p.absent:
		changes = append(changes, v1alpha1.Added)
	}
	for _, key := range []string{"x", "y"} {
		if p.content != nil && p.content[key] != now[key] && within(key, keys) && within(key, p.keys) {
			return append(changes, v1alpha1.Modified)
		}
	}
	return changes
}

// certain are the changes without those that a lost record can hide: after an absence that a restart
// was made in, what the source was before is what was recorded, not what it was last.
func (p *pairModel) certain(changes []v1alpha1.Change) []v1alpha1.Change {
	if p.absent && len(changes) > 1 {
		return changes[:1]
	}
	return changes
}

func within(key string, keys []string) bool {
	return len(keys) == 0 || slices.Contains(keys, key)
}

func calls(pair plan.Pair, changes []v1alpha1.Change) bool {
	return slices.ContainsFunc(changes, func(c v1alpha1.Change) bool { return slices.Contains(pair.RestartOn, c) })
}

// wanted tells whether a target's pods are older than what the spec calls for.
func (s *simulation) wanted(target plan.Target, t *tgt) bool {
	row, m := s.row(t), s.modelOf(t)
	if target.Workload == nil || t.ignored || t.rollout.ReadsAtNextRun || row.UID != t.uid || row.State == v1alpha1.TargetIgnored {
		return false
	}
	for _, pair := range target.Pairs {
		one := s.sourceOf(pair)
		known := m.pairs[one]
		if known == nil || pair.State == v1alpha1.SourceUnreadable || s.deletedBefore(one, t) {
			continue
		}
		changes := known.certain(known.changes(one.data, one.keys))
		if recorded := s.applied(t, one); recorded != "" && !recorded.SameMethod(pair.Hash) && row.State != v1alpha1.TargetPending { // E3
			changes = slices.DeleteFunc(changes, func(c v1alpha1.Change) bool { return c == v1alpha1.Modified })
		}
		if calls(pair, changes) {
			return true
		}
	}
	return false
}

// deletedBefore tells whether a source was seen deleted before the spec was edited (E5).
func (s *simulation) deletedBefore(one *src, t *tgt) bool {
	row := s.sourceRow(one)
	return one.data == nil && s.edited && row != nil && row.State == v1alpha1.SourceMissing && s.row(t).State != v1alpha1.TargetPending
}

// pass makes one, holds what it decides against the model, and keeps the model up.
func (s *simulation) pass(f fate) {
	observed, contents, decision := s.observe(), s.contents(), s.decide()
	restarts := map[*tgt]bool{}
	for _, restart := range decision.Restarts {
		restarts[s.targetNamed(restart.Workload.Ref())] = true
	}
	s.did("%s: %d restarts", f.name, len(decision.Restarts))
	for _, target := range observed.Targets {
		t := s.targetNamed(target.Ref)
		s.compare(target, t, restarts[t])
	}
	outcomes := make([]error, len(decision.Restarts))
	for i, restart := range decision.Restarts {
		t := s.targetNamed(restart.Workload.Ref())
		outcomes[i] = f.err
		if f.patched() && s.start(t, restart, contents) {
			s.did("  %s is restarted with %s: %s", t.Ref, restart.Mark, restart.Cause)
			continue
		}
		outcomes[i] = errRefused
		restarts[t] = false
	}
	status, _ := decision.Conclude(outcomes, s.read(decision))
	if !f.recorded {
		return
	}
	s.rebase(observed)
	s.learnDeletions(observed)
	s.status = status
	for _, t := range s.running {
		if s.row(t).UID != t.uid {
			s.modelOf(t).pairs = map[*src]*pairModel{} // it is new when it is back
		}
	}
	for _, target := range observed.Targets {
		t := s.targetNamed(target.Ref)
		s.learn(target, t)
	}
	s.edited = false
	if len(decision.Restarts) == 0 {
		s.holdStill()
	}
}

// read reads the templates of those that begin to wait.
func (s *simulation) read(decision *plan.Decision) []workload.Template {
	var templates []workload.Template
	for _, w := range decision.Waiting() {
		templates = append(templates, s.targetNamed(w.Ref()).template())
	}
	return templates
}

// holdStill makes a pass right after one in which nothing was restarted.
func (s *simulation) holdStill() {
	decision := s.decide()
	status, events := decision.Conclude(make([]error, len(decision.Restarts)), s.read(decision))
	if len(decision.Restarts) > 0 || len(events) > 0 || !reflect.DeepEqual(s.status, status) {
		s.fail("E28: it goes on: %d restarts, events %v", len(decision.Restarts), events)
	}
}

func (s *simulation) compare(target plan.Target, t *tgt, restarted bool) {
	wanted, m := s.wanted(target, t), s.modelOf(t)
	wanted = wanted && s.mode == v1alpha1.ModeActive
	switch {
	case restarted && s.mode != v1alpha1.ModeActive:
		s.fail("E19: %s is restarted though the mode is %s", t.Ref, s.mode)
	case wanted && !restarted && (!s.unrecorded(t) || !unreadable(target)):
		s.fail("E4: %s is not restarted, though its pods are old", t.Ref)
	case restarted && !wanted && !m.excused && !s.appeared(target, t) && !s.ambiguous(target, t) && !s.renewed(t):
		s.fail("E5: %s is restarted, though nothing calls for it", t.Ref)
	}
}

// renewed tells whether pods may run a change that was taken back (E13).
func (s *simulation) renewed(t *tgt) bool {
	w := s.row(t).Wait
	return w != nil && w.Renew
}

func unreadable(target plan.Target) bool {
	return slices.ContainsFunc(target.Pairs, func(p plan.Pair) bool { return p.State == v1alpha1.SourceUnreadable })
}

// appeared tells whether a source is new to a target that a selector matches (E6).
func (s *simulation) appeared(target plan.Target, t *tgt) bool {
	return slices.ContainsFunc(target.Pairs, func(p plan.Pair) bool {
		one := s.sourceOf(p)
		return p.Selected && s.modelOf(t).pairs[one] == nil && s.sourceRow(one) == nil && slices.Contains(p.RestartOn, v1alpha1.Added)
	})
}

// learnDeletions takes the absence of sources for a baseline that were seen deleted before an edit (E5).
func (s *simulation) learnDeletions(observed plan.Observation) {
	for _, target := range observed.Targets {
		t := s.targetNamed(target.Ref)
		for _, pair := range target.Pairs {
			one := s.sourceOf(pair)
			known := s.modelOf(t).pairs[one]
			if known != nil && slices.Contains(pair.RestartOn, v1alpha1.Deleted) && pair.State == v1alpha1.SourceMissing && s.deletedBefore(one, t) {
				known.absent = true
			}
		}
	}
}

// ambiguous tells whether nobody can know if a pair calls for a restart: content changed together with
// the keys that count, or hashes can't be compared while a restart is owed.
func (s *simulation) ambiguous(target plan.Target, t *tgt) bool {
	return slices.ContainsFunc(target.Pairs, func(p plan.Pair) bool {
		one, recorded := s.sourceOf(p), s.applied(t, s.sourceOf(p))
		known := s.modelOf(t).pairs[one]
		return known != nil && known.absent && one.data != nil ||
			known != nil && !slices.Equal(known.keys, one.keys) && !maps.Equal(known.content, one.data) ||
			known != nil && recorded != "" && !recorded.Comparable(p.Hash) &&
				(s.row(t).State == v1alpha1.TargetPending || !maps.Equal(known.content, one.data))
	})
}

// rebase takes the present content of Secrets for a baseline, if the operator's key is another (E3).
func (s *simulation) rebase(observed plan.Observation) {
	for _, target := range observed.Targets {
		t := s.targetNamed(target.Ref)
		for _, pair := range target.Pairs {
			one := s.sourceOf(pair)
			known, recorded := s.modelOf(t).pairs[one], s.applied(t, one)
			if known != nil && recorded != "" && pair.Hash != "" && !recorded.SameMethod(pair.Hash) && s.row(t).State != v1alpha1.TargetPending {
				known.advance(one.data)
			}
		}
	}
}

// learn is what the model makes of a record: pairs that are new, changes that call for nothing, keys
// that are newly watched.
func (s *simulation) learn(target plan.Target, t *tgt) {
	row, m := s.row(t), s.modelOf(t)
	if unreadable(target) && (s.unrecorded(t) || row.State == v1alpha1.TargetPending) {
		maps.DeleteFunc(m.pairs, func(one *src, _ *pairModel) bool { return !s.recorded(t, one) })
		return // its row may have been kept as it was
	}
	pairs := map[*src]*pairModel{}
	for _, record := range row.Sources {
		i := slices.IndexFunc(target.Pairs, func(p plan.Pair) bool { return p.Source.Kind == record.Kind && p.Source.Name == record.Name })
		if i < 0 {
			continue
		}
		pair, one := target.Pairs[i], s.sourceOf(target.Pairs[i])
		known := m.pairs[one]
		pairs[one] = known
		switch {
		case known == nil:
			absent := record.Absent && (one.data == nil || !s.unrecorded(t))
			pairs[one] = &pairModel{content: maps.Clone(one.data), absent: absent, keys: one.keys}
			if absent && record.AppliedHash == "" {
				pairs[one].content = nil
			}
		case pair.State != v1alpha1.SourceUnreadable:
			s.learnPair(pair, known, row.State == v1alpha1.TargetPending, t.rollout.ReadsAtNextRun)
		}
	}
	m.pairs = pairs
}

// recorded tells whether the row of a target has a record of a source.
func (s *simulation) recorded(t *tgt, one *src) bool {
	return slices.ContainsFunc(s.row(t).Sources, func(record v1alpha1.AppliedSource) bool {
		return record.Kind == one.Kind && record.Name == one.Name
	})
}

func (s *simulation) learnPair(pair plan.Pair, known *pairModel, pending, readsAtNextRun bool) {
	one := s.sourceOf(pair)
	changes := known.changes(one.data, one.keys)
	switch {
	case len(changes) > 0 && readsAtNextRun:
		known.advance(one.data)
	case len(changes) > 0 && !calls(pair, changes) && one.data != nil && (!known.absent || !pending):
		known.advance(one.data)
	}
	if one.data == nil {
		return
	}
	if !pending || len(changes) == 0 {
		for _, key := range []string{"x", "y"} {
			if !within(key, known.keys) && known.content != nil {
				known.content[key] = one.data[key]
			}
		}
		known.keys = one.keys
	}
}

// quiesce lets everything be read and done, and ends in a state in which nothing happens any more.
func (s *simulation) quiesce() {
	s.excuseUnrecorded()
	for _, one := range s.listed {
		one.unreadable = false
	}
	s.mode = v1alpha1.ModeActive
	s.generation++
	s.edited = true
	s.did("all is well from here")
	for range 4 {
		s.pass(fate{"pass", func() bool { return true }, nil, true})
		for _, t := range s.running {
			t.rollout.Progress = workload.Complete
		}
	}
	s.holdStill()
	for _, target := range s.observe().Targets {
		t := s.targetNamed(target.Ref)
		if s.wanted(target, t) {
			s.fail("E4: the pods of %s are old for good", t.Ref)
		}
		s.modelOf(t).excused = false
	}
}
