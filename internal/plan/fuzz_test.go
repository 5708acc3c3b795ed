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
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// FuzzDecide decides on records and observations that need not fit together in any way.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(anything(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) { decideAnything(t, in) })
}

func TestE28AnythingIsSteadyOnceAllWereTried(t *testing.T) {
	for seed := range uint64(2000) {
		if decideAnything(t, anything(seed)); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func anything(seed uint64) []byte {
	const length = 600
	return randomBytes(seed, 1, length)
}

// randomBytes are the same for the same seed and use.
func randomBytes(seed, use uint64, length int) []byte {
	random := rand.New(rand.NewPCG(seed, use))
	in := make([]byte, length)
	for i := range in {
		in[i] = byte(random.Uint32())
	}
	return in
}

// decideAnything makes passes over what the bytes stand for, in which every restart is refused.
func decideAnything(t *testing.T, in []byte) {
	b := bytesOf(in)
	input := b.input()
	recorded := input.Recorded.DeepCopy()
	status := b.conclude(t, input, nil)
	input.Attempts = nil // which were taken note of
	if !reflect.DeepEqual(recorded, input.Recorded) {
		t.Error("the record that was handed in is another now")
	}
	for range len(input.Observed.Targets) { // each of which is refused when it is its turn
		input.Recorded = &status
		status = b.conclude(t, input, nil)
	}
	input.Recorded = status.DeepCopy()
	b.conclude(t, input, &status)
}

// conclude makes a pass. If the status is known that it must come to, nothing may be told either.
func (b *bytesOf) conclude(t *testing.T, input plan.Input, want *v1alpha1.ConfigWatchStatus) v1alpha1.ConfigWatchStatus {
	decision := plan.Decide(input)
	outcomes := make([]error, len(decision.Restarts))
	for i, restart := range decision.Restarts {
		outcomes[i] = errRefused
		if workload.ParseMark(restart.Mark.String()) != restart.Mark {
			t.Errorf("E8: %s is no mark", restart.Mark)
		}
	}
	if input.Mode != v1alpha1.ModeActive && len(outcomes) > 0 {
		t.Errorf("E19: %d restarts in mode %s", len(outcomes), input.Mode)
	}
	status, events := decision.Conclude(outcomes, nil)
	checkRows(t, &status)
	checkTelling(t, input, decision, &status)
	if input.Mode == v1alpha1.ModeObserve && len(status.Targets) > 0 {
		t.Errorf("E5: %d targets in mode Observe", len(status.Targets))
	}
	if want != nil && (len(events) > 0 || !reflect.DeepEqual(*want, status)) {
		t.Errorf("E28: it goes on: events %+v, status\n%+v, after\n%+v", events, status, *want)
	}
	return status
}

func checkRows(t *testing.T, status *v1alpha1.ConfigWatchStatus) {
	seen := map[string]bool{}
	once := func(format string, parts ...any) {
		if key := fmt.Sprintf(format, parts...); seen[key] {
			t.Errorf("two rows for %s", key)
		} else {
			seen[key] = true
		}
	}
	for _, s := range status.Sources {
		once("source %s %s", s.Kind, s.Name)
	}
	for _, target := range status.Targets {
		once("target %s %s %s", target.APIVersion, target.Kind, target.Name)
		if target.State == "" || target.Restarts < 0 || len(target.Message) > 1000 || !utf8.ValidString(target.Message) {
			t.Errorf("no good row: %+v", target)
		}
		for _, s := range target.Sources {
			once("pair of %s %s with %s %s", target.Kind, target.Name, s.Kind, s.Name)
		}
	}
	for _, c := range status.Conditions {
		once("condition %s", c.Type)
	}
}

// bytesOf are bytes to make choices by.
type bytesOf []byte

func (b *bytesOf) next(n int) int {
	if len(*b) == 0 {
		return 0
	}
	choice := int((*b)[0]) % n
	*b = (*b)[1:]
	return choice
}

func choose[T any](b *bytesOf, from ...T) T {
	return from[b.next(len(from))]
}

func (b *bytesOf) flag() bool {
	return b.next(2) == 1
}

func (b *bytesOf) hash() digest.Hash {
	return choose[digest.Hash](b, "", "1:aaaa", "1:bbbb", "1/s:aaaa", "1.k:aaaa", "1.k/s:bbbb", "2:aaaa", "garbage", ":")
}

func (b *bytesOf) sourceRefs() []source.Ref {
	var refs []source.Ref
	for _, ref := range []source.Ref{{Kind: v1alpha1.ConfigMap, Name: "a"}, {Kind: v1alpha1.Secret, Name: "a"}, {Kind: v1alpha1.ConfigMap, Name: "b"}} {
		if b.flag() {
			refs = append(refs, ref)
		}
	}
	return refs
}

func (b *bytesOf) targetRefs() []workload.Ref {
	var refs []workload.Ref
	for _, kind := range workload.Kinds() {
		if b.flag() {
			refs = append(refs, workload.Ref{APIVersion: workload.APIVersion(kind), Kind: kind, Name: "a"})
		}
	}
	return refs
}

func (b *bytesOf) input() plan.Input {
	in := plan.Input{
		Name:       watchName,
		Generation: int64(b.next(2)),
		Mode: choose(b, v1alpha1.ModeActive, v1alpha1.ModeActive, v1alpha1.ModeDryRun, v1alpha1.ModeSuspended,
			v1alpha1.ModeObserve),
		Rollout:            b.rollout(),
		Approved:           choose(b, "", "approved"),
		RestartRequestedAt: choose(b, "", "", "2026-01-02T03:00:00Z", "2025-01-02T03:00:00Z", "yesterday"),
		Recorded:           b.status(),
		Observed:           b.observation(),
		Now:                time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	b.addSubscribers(&in)
	return in
}

func (b *bytesOf) rollout() v1alpha1.RolloutSpec {
	return v1alpha1.RolloutSpec{
		SettleSeconds:   new(choose[int32](b, 0, 0, 2)),
		CooldownSeconds: new(choose[int32](b, 0, 60)),
		MaxConcurrent:   choose[int32](b, 1000, 1, 2),
		OnFailure:       choose(b, v1alpha1.OnFailureHalt, v1alpha1.OnFailureContinue),
		Approval:        choose(b, v1alpha1.ApprovalAutomatic, v1alpha1.ApprovalManual),
		Windows: choose(b, nil, nil, []v1alpha1.Window{{Schedule: "0 3 * * *", DurationMinutes: 5}},
			[]v1alpha1.Window{{Schedule: "0 2 * * 1-5", DurationMinutes: 120, TimeZone: "Europe/Berlin"}, {Schedule: "never"}}),
	}
}

func (b *bytesOf) template() *v1alpha1.Template {
	return choose(b, nil, &v1alpha1.Template{Hash: "1:aaaa", Generation: 1}, &v1alpha1.Template{Hash: "1:bbbb", Generation: 3},
		&v1alpha1.Template{Hash: "2:aaaa", Generation: 1}, &v1alpha1.Template{Hash: "garbage"})
}

func (b *bytesOf) status() *v1alpha1.ConfigWatchStatus {
	status := &v1alpha1.ConfigWatchStatus{ObservedGeneration: int64(b.next(2))}
	for _, ref := range b.sourceRefs() {
		status.Sources = append(status.Sources, v1alpha1.SourceStatus{
			Kind: ref.Kind, Name: ref.Name, Hash: string(b.hash()),
			State: choose(b, v1alpha1.SourcePresent, v1alpha1.SourceMissing, v1alpha1.SourceIgnored, v1alpha1.SourceUnreadable),
		})
	}
	for _, ref := range b.targetRefs() {
		row := v1alpha1.TargetStatus{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: choose(b, "1", "1", "1", "2", ""),
			State: choose(b, v1alpha1.TargetUpToDate, v1alpha1.TargetPending, v1alpha1.TargetRollingOut, v1alpha1.TargetFailed,
				v1alpha1.TargetBlocked, v1alpha1.TargetMissing, v1alpha1.TargetIgnored),
			Reason:   choose(b, "", v1alpha1.ReasonPermissionDenied, v1alpha1.ReasonDryRun, v1alpha1.ReasonBaseline),
			Message:  choose(b, "", "cause", "cause. more", ". "),
			Restarts: int64(b.next(4)),
		}
		if b.flag() {
			row.LastRestartTime = &metav1.Time{Time: time.Unix(int64(b.next(256)), 0)}
		}
		for _, pair := range b.sourceRefs() {
			row.Sources = append(row.Sources, v1alpha1.AppliedSource{
				Kind: pair.Kind, Name: pair.Name, AppliedHash: string(b.hash()), Absent: b.flag(), Changed: b.flag(),
			})
		}
		b.progress(&row)
		status.Targets = append(status.Targets, row)
	}
	if b.flag() {
		status.Conditions = []metav1.Condition{conditionOf(v1alpha1.ConditionStalled,
			choose(b, v1alpha1.ReasonPermissionDenied, v1alpha1.ReasonTooManyMatches, v1alpha1.ReasonNoSources))}
	}
	return status
}

// progress is what is recorded of a restart that is owed, or of its rollout.
func (b *bytesOf) progress(row *v1alpha1.TargetStatus) {
	at := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 4, 0, time.UTC))
	if b.flag() {
		row.Wait = &v1alpha1.Wait{
			Digest: choose(b, "a", "b"), Since: at, SettlingSince: at, SettlingRestarts: int32(b.next(5)),
			Template: b.template(), ApprovedHash: choose(b, "", "approved"), Renew: b.flag(),
		}
	}
	if b.flag() {
		row.Rollout = &v1alpha1.RolloutStatus{
			Template: b.template(), FirstTemplate: b.template(), NewPods: int32(b.next(2)), Failed: b.flag(),
			LastProgressTime: choose(b, metav1.Time{}, metav1.Time(at), metav1.Time{Time: at.Add(-time.Hour)}),
		}
	}
	for range b.next(8) {
		row.RecentChanges = append(row.RecentChanges, metav1.Time(at))
	}
	if b.flag() {
		row.Slowdown = &v1alpha1.Slowdown{CooldownSeconds: choose[int32](b, 30, 600), Message: "often"}
	}
}

func (b *bytesOf) observation() plan.Observation {
	var observed plan.Observation
	for _, ref := range b.sourceRefs() {
		observed.Sources = append(observed.Sources, plan.Source{
			Ref: ref, Hash: b.hash(),
			State: choose(b, v1alpha1.SourcePresent, v1alpha1.SourceMissing, v1alpha1.SourceIgnored, v1alpha1.SourceUnreadable),
		})
	}
	for _, ref := range b.targetRefs() {
		target := plan.Target{Ref: ref}
		switch b.next(8) {
		case 0:
			target.Unreadable = true
		case 1:
		default:
			target.Workload, target.Pairs = b.workload(ref), b.pairs(observed.Sources)
		}
		observed.Targets = append(observed.Targets, target)
	}
	if b.next(8) == 1 {
		observed.Problems = []plan.Problem{{Reason: v1alpha1.ReasonTooManyMatches, Message: "narrow it"}}
		observed.Incomplete = b.flag()
	}
	return observed
}

func (b *bytesOf) workload(ref workload.Ref) *workload.Workload {
	return &workload.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: ref.Name, UID: types.UID("1")},
		APIVersion: ref.APIVersion, Kind: ref.Kind, Ignored: b.next(8) == 1,
		RestartMarks: map[string]string{watchName: choose(b, "", "1-aaaa", "3-aaaa", "-1-aaaa", "9007199254740993-aaaa", "9223372036854775807-a", "1-")},
		Template:     workload.Template{Hash: choose(b, "1:aaaa", "1:bbbb", "2:aaaa"), Generation: int64(1 + b.next(5))},
		Owner:        choose(b, "", "Database orders"),
		Rollout: workload.Rollout{
			NoDeadline: b.flag(), NewPods: int32(b.next(3)),
			Progress: choose(b, workload.Complete, workload.InProgress, workload.Failed), Detail: choose(b, "", "detail. more"),
			Paused: b.flag(), NoPods: b.flag(), Hold: choose(b, "", workload.HeldByOnDelete, workload.HeldByPartition),
			ReadsAtNextRun: ref.Kind == workload.CronJob,
		},
	}
}

// pairs are some of the sources, each in the same state as in its row.
func (b *bytesOf) pairs(sources []plan.Source) []plan.Pair {
	var pairs []plan.Pair
	for _, s := range sources {
		if s.State == v1alpha1.SourceIgnored || b.next(4) == 1 {
			continue
		}
		pair := plan.Pair{
			Source: s.Ref, State: s.State, Selected: b.flag(), RestartOn: on(choose(b, "M", "A", "D", "AM", "AMD")), KeysKnown: b.flag(),
		}
		if pair.State == v1alpha1.SourcePresent {
			pair.Hash = choose[digest.Hash](b, "1:aaaa", "1:bbbb", "1/s:aaaa", "1.k:aaaa", "1.k/s:bbbb")
		}
		if pair.KeysKnown {
			pair.ChangedKeys = choose(b, nil, []string{"k"}, []string{"a", "b", "c", "d"})
		}
		pairs = append(pairs, pair)
	}
	return pairs
}
