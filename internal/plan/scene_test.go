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
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// watchName is the ConfigWatch's name.
const watchName = "watch"

// betweenPasses is the time from one pass to the next, if nothing else is said.
const betweenPasses = time.Minute

// data is the content of a ConfigMap; nil: it does not exist.
type data = map[string]string

// value is content that is nothing but a value.
func value(v string) data {
	if v == "-" {
		return nil
	}
	return data{"KEY": v}
}

// scene is a ConfigWatch and what it selects, pass after pass.
type scene struct {
	name       string
	mode       v1alpha1.Mode
	rollout    v1alpha1.RolloutSpec
	approved   string
	requested  string
	generation int64
	created    time.Time
	status     v1alpha1.ConfigWatchStatus
	sources    []*src
	targets    []*tgt
	problems   []plan.Problem
	incomplete bool
	room       int
	now        time.Time
}

// src is a source, and how the spec selects it.
type src struct {
	source.Ref
	data       data
	ignored    bool
	unreadable bool
	hasher     *digest.Hasher
	keys       []string
	restartOn  []v1alpha1.Change
	selected   bool
	hint       string
	writer     string
	forgetAt   time.Time
	former     []digest.Content
	version    int // of the content, rising
}

// tgt is a target. Without uses, it depends on all sources.
type tgt struct {
	workload.Ref
	uid        string
	marks      map[string]string
	image      string
	generation int64
	owner      string
	rollout    workload.Rollout
	uses       []*src
	classes    []string
	ignored    bool
	missing    bool
	unreadable bool
	hint       string
}

// result is what a pass came to.
type result struct {
	restarts  []plan.Restart
	events    []plan.Event
	status    v1alpha1.ConfigWatchStatus
	lookAgain time.Time
}

func configMap(name, content string) *src {
	return &src{
		Ref: source.Ref{Kind: v1alpha1.ConfigMap, Name: name}, data: value(content),
		hasher: digest.Plain(), restartOn: []v1alpha1.Change{v1alpha1.Modified},
	}
}

func secret(name, content string) *src {
	s := configMap(name, content)
	s.Kind, s.hasher = v1alpha1.Secret, digest.Keyed([]byte("key"))
	return s
}

func deployment(name string) *tgt {
	return workloadOf(workload.Deployment, name)
}

func workloadOf(kind, name string) *tgt {
	return &tgt{
		Ref: workload.Ref{APIVersion: workload.APIVersion(kind), Kind: kind, Name: name},
		uid: name + "-1", marks: map[string]string{}, generation: 1,
		rollout: workload.Rollout{Progress: workload.Complete, ReadsAtNextRun: kind == workload.CronJob},
	}
}

// newScene is a ConfigWatch of sources and targets (*src and *tgt) that hasn't been seen yet.
func newScene(objects ...any) *scene {
	atOnce := v1alpha1.RolloutSpec{SettleSeconds: new(int32(0)), MaxConcurrent: 1000}
	s := &scene{
		name: watchName, mode: v1alpha1.ModeActive, rollout: atOnce, generation: 1, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *src:
			s.sources = append(s.sources, o)
		case *tgt:
			s.targets = append(s.targets, o)
		}
	}
	return s
}

// settled is a ConfigWatch whose sources and targets are recorded.
func settled(objects ...any) *scene {
	s := newScene(objects...)
	s.pass()
	return s
}

// edit is a change of the spec.
func (s *scene) edit(change func()) {
	change()
	s.generation++
}

// write changes a source's content.
func (s *src) write(content data) {
	if s.data != nil {
		s.former = append(s.former, s.content())
	}
	if s.data == nil || !maps.Equal(s.data, content) {
		s.version++
	}
	s.data = maps.Clone(content)
}

// set changes a source's only value; "-" deletes it.
func (s *src) set(v string) {
	s.write(value(v))
}

func (s *src) content() digest.Content {
	return s.hasher.Content(s.data, nil)
}

func (s *src) state() v1alpha1.SourceState {
	switch {
	case s.unreadable:
		return v1alpha1.SourceUnreadable
	case s.data == nil:
		return v1alpha1.SourceMissing
	case s.ignored:
		return v1alpha1.SourceIgnored
	}
	return v1alpha1.SourcePresent
}

func (s *src) observe() plan.Source {
	observed := plan.Source{Ref: s.Ref, State: s.state(), Hint: s.hint, Writer: s.writer, ForgetAt: s.forgetAt}
	if observed.State == v1alpha1.SourcePresent {
		observed.Hash = s.content().Hash(nil)
	}
	return observed
}

func (s *src) pair(recorded digest.Hash) plan.Pair {
	pair := plan.Pair{Source: s.Ref, State: s.state(), RestartOn: s.restartOn, Selected: s.selected}
	if pair.State != v1alpha1.SourcePresent {
		return pair
	}
	pair.UID, pair.ResourceVersion = s.Name, fmt.Sprint(s.version)
	pair.Hash = s.content().Hash(s.keys)
	for _, former := range s.former {
		if recorded != pair.Hash && former.Hash(s.keys) == recorded {
			pair.ChangedKeys, pair.KeysKnown = digest.ChangedKeys(former, s.content()), true
			pair.ChangedKeys = slices.DeleteFunc(pair.ChangedKeys, func(key string) bool {
				return len(s.keys) > 0 && !slices.Contains(s.keys, key)
			})
		}
	}
	return pair
}

func (t *tgt) workload() *workload.Workload {
	if t.missing || t.unreadable {
		return nil
	}
	return &workload.Workload{
		ObjectMeta:            metav1.ObjectMeta{Namespace: "shop", Name: t.Name, UID: types.UID(t.uid)},
		APIVersion:            t.APIVersion,
		Kind:                  t.Kind,
		Ignored:               t.ignored,
		SecretProviderClasses: t.classes,
		RestartMarks:          maps.Clone(t.marks),
		Template:              t.template(),
		Owner:                 t.owner,
		Rollout:               t.rollout,
	}
}

// template tells the pod template, which is nothing but an image and restart annotations, from others.
func (t *tgt) template() workload.Template {
	content := strings.ReplaceAll(fmt.Sprintf("%s %v", t.image, t.marks), ":", "=")
	return workload.Template{Hash: "1:" + content, Generation: t.generation}
}

// roll is a rollout by somebody else.
func (t *tgt) roll(image string) {
	t.image = image
	t.generation++
	t.rollout.Progress = workload.InProgress
}

func (t *tgt) mark() string {
	return t.marks[watchName]
}

// recreate deletes the workload and makes it again, of the same manifest.
func (t *tgt) recreate() {
	t.uid += "1"
	t.marks = map[string]string{}
	t.rollout.Progress = workload.InProgress
}

// patch does what the API server does of a restart: it is made only on top of the mark that it was
// decided for.
func (t *tgt) patch(restart plan.Restart) bool {
	return t.patchFor(watchName, restart)
}

func (t *tgt) patchFor(name string, restart plan.Restart) bool {
	if t.missing || t.uid != string(restart.Workload.UID) || t.marks[name] != restart.Workload.RestartMarks[name] {
		return false
	}
	t.marks[name] = restart.Mark.String()
	t.generation++
	t.rollout.Progress = workload.InProgress
	return true
}

func (s *scene) observe() plan.Observation {
	observed := plan.Observation{Problems: s.problems, Incomplete: s.incomplete, Room: s.room}
	sources := slices.DeleteFunc(slices.Clone(s.sources), func(one *src) bool { return !s.selects(one) })
	for _, one := range sources {
		observed.Sources = append(observed.Sources, one.observe())
	}
	for _, t := range s.targets {
		if s.mode == v1alpha1.ModeObserve {
			break
		}
		target := plan.Target{Ref: t.Ref, Workload: t.workload(), Unreadable: t.unreadable, Hint: t.hint}
		for _, one := range sources {
			if target.Workload == nil || t.ignored || one.state() == v1alpha1.SourceIgnored || t.uses != nil && !slices.Contains(t.uses, one) {
				continue
			}
			target.Pairs = append(target.Pairs, one.pair(s.applied(t, one)))
		}
		observed.Targets = append(observed.Targets, target)
	}
	return observed
}

// selects tells whether the spec selects a source: by labels only those that exist, or did.
func (s *scene) selects(one *src) bool {
	exists := one.data != nil && !one.ignored && !one.unreadable
	return !one.selected || exists || (one.data == nil || one.unreadable) && s.sourceRow(one) != nil
}

// sourceRow is the recorded row of a source, or nil.
func (s *scene) sourceRow(one *src) *v1alpha1.SourceStatus {
	for i := range s.status.Sources {
		if row := &s.status.Sources[i]; row.Kind == one.Kind && row.Name == one.Name {
			return row
		}
	}
	return nil
}

func (s *scene) decide() *plan.Decision {
	s.now = s.now.Add(betweenPasses)
	return plan.Decide(s.input())
}

func (s *scene) input() plan.Input {
	return plan.Input{
		Name: s.name, Generation: s.generation, Created: s.created, Mode: s.mode, Rollout: s.rollout, Approved: s.approved,
		RestartRequestedAt: s.requested, Recorded: s.status.DeepCopy(), Observed: s.observe(), Now: s.now,
	}
}

// attempt makes a pass whose restarts are made as act says, and doesn't record it.
func (s *scene) attempt(act func(plan.Restart) error) result {
	return s.carryOut(s.decide(), act)
}

func (s *scene) carryOut(decision *plan.Decision, act func(plan.Restart) error) result {
	outcomes := make([]error, len(decision.Restarts))
	for i, restart := range decision.Restarts {
		outcomes[i] = act(restart)
	}
	var templates []workload.Template
	for _, w := range decision.Waiting() {
		templates = append(templates, s.targetOf(w).template())
	}
	status, events := decision.Conclude(outcomes, templates)
	return result{decision.Restarts, events, status, decision.LookAgain}
}

func (s *scene) record(r result) result {
	s.status = *r.status.DeepCopy()
	return r
}

// pass makes a pass in which all goes well.
func (s *scene) pass() result {
	return s.record(s.attempt(s.patch))
}

// lost makes a pass whose status is never written.
func (s *scene) lost() result {
	return s.attempt(s.patch)
}

// refused makes a pass in which the API server refuses the restarts of some targets, or of all.
func (s *scene) refused(err error, targets ...*tgt) result {
	return s.record(s.attempt(func(restart plan.Restart) error {
		t := s.target(restart)
		if len(targets) == 0 || slices.Contains(targets, t) {
			return err
		}
		t.patch(restart)
		return nil
	}))
}

func (s *scene) patch(restart plan.Restart) error {
	s.target(restart).patchFor(s.name, restart)
	return nil
}

// after makes a pass that long after the one before.
func (s *scene) after(d time.Duration) result {
	s.now = s.now.Add(d - betweenPasses)
	return s.pass()
}

// at makes a pass at that time.
func (s *scene) at(t time.Time) result {
	return s.after(t.Sub(s.now))
}

// reload leaves nothing but what the API server keeps: it is another process that goes on (E14).
func (s *scene) reload() {
	kept, err := json.Marshal(s.status)
	if err != nil {
		panic(err)
	}
	s.status = v1alpha1.ConfigWatchStatus{}
	if err := json.Unmarshal(kept, &s.status); err != nil {
		panic(err)
	}
}

// said is the state and the reason of a target's row.
func (s *scene) said(t *tgt) string {
	row := s.row(t)
	return strings.TrimSpace(string(row.State) + " " + row.Reason)
}

func (s *scene) target(restart plan.Restart) *tgt {
	return s.targetOf(restart.Workload)
}

func (s *scene) targetOf(w *workload.Workload) *tgt {
	i := slices.IndexFunc(s.targets, func(t *tgt) bool { return t.Ref == w.Ref() })
	return s.targets[i]
}

// row is the recorded row of a target.
func (s *scene) row(t *tgt) v1alpha1.TargetStatus {
	for _, row := range s.status.Targets {
		if row.Kind == t.Kind && row.Name == t.Name {
			return row
		}
	}
	return v1alpha1.TargetStatus{}
}

func (s *scene) applied(t *tgt, one *src) digest.Hash {
	for _, record := range s.row(t).Sources {
		if record.Kind == one.Kind && record.Name == one.Name {
			return digest.Hash(record.AppliedHash)
		}
	}
	return ""
}

// restarted are the names of the targets that were restarted.
func (r result) restarted() []string {
	var names []string
	for _, restart := range r.restarts {
		names = append(names, restart.Workload.Name)
	}
	return names
}

// cause is that of the only restart.
func (r result) cause() string {
	if len(r.restarts) != 1 {
		return ""
	}
	return r.restarts[0].Cause
}

// reasons are those of the events of the ConfigWatch, sorted.
func (r result) reasons() []string {
	var reasons []string
	for _, e := range r.events {
		if !e.OnTarget {
			reasons = append(reasons, e.Reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// note is that of the first event of the reason.
func (r result) note(reason string) string {
	for _, e := range r.events {
		if e.Reason == reason {
			return e.Note
		}
	}
	return ""
}

// on is a restartOn: M, A and D for Modified, Added and Deleted.
func on(letters string) []v1alpha1.Change {
	var changes []v1alpha1.Change
	for _, c := range []v1alpha1.Change{v1alpha1.Added, v1alpha1.Modified, v1alpha1.Deleted} {
		if strings.Contains(letters, string(c[0])) {
			changes = append(changes, c)
		}
	}
	return changes
}

// when sets restartOn.
func (s *src) when(letters string) *src {
	s.restartOn = on(letters)
	return s
}

// bySelector makes it one that the spec selects by labels.
func (s *src) bySelector() *src {
	s.selected = true
	return s
}
