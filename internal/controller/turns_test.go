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

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/subscriber"
	"github.com/ktechhub/configwatch/internal/turns"
	"github.com/ktechhub/configwatch/internal/workload"
)

// statusClient writes every status with the same outcome.
type statusClient struct {
	client.Client

	outcome error
}

func (c statusClient) Status() client.SubResourceWriter {
	return statusWriter{outcome: c.outcome}
}

type statusWriter struct {
	client.SubResourceWriter

	outcome error
}

func (w statusWriter) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return w.outcome
}

// owingARestart is a decision that restarts a Deployment for a ConfigMap. Whether its content is the newest has
// to be confirmed first, unless the keys that changed are known.
func owingARestart(keysKnown bool) *plan.Decision {
	ref, config := workload.Ref{APIVersion: "apps/v1", Kind: workload.Deployment, Name: "web"}, source.Ref{Kind: v1alpha1.ConfigMap, Name: "config"}
	return plan.Decide(plan.Input{
		Name:       "web",
		Generation: 1,
		Rollout:    v1alpha1.RolloutSpec{SettleSeconds: new(int32(0))},
		Recorded: &v1alpha1.ConfigWatchStatus{
			ObservedGeneration: 1,
			Sources:            []v1alpha1.SourceStatus{{Kind: config.Kind, Name: config.Name, State: v1alpha1.SourcePresent, Hash: "1:0000000000000000"}},
			Targets: []v1alpha1.TargetStatus{{
				APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: "uid", State: v1alpha1.TargetUpToDate,
				Sources: []v1alpha1.AppliedSource{{Kind: config.Kind, Name: config.Name, AppliedHash: "1:0000000000000000"}},
			}},
		},
		Observed: plan.Observation{
			Sources: []plan.Source{{Ref: config, State: v1alpha1.SourcePresent, Hash: "1:1111111111111111"}},
			Targets: []plan.Target{{
				Ref: ref, Workload: aDeployment(ref.Name),
				Pairs: []plan.Pair{{
					Source: config, State: v1alpha1.SourcePresent, Hash: "1:1111111111111111",
					RestartOn: []v1alpha1.Change{v1alpha1.Modified}, KeysKnown: keysKnown,
				}},
			}},
		},
		Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	})
}

func aDeployment(name string) *workload.Workload {
	w := &workload.Workload{APIVersion: "apps/v1", Kind: workload.Deployment, Rollout: workload.Rollout{Progress: workload.Complete}}
	w.Namespace, w.Name, w.UID = "shop", name, "uid"
	return w
}

// What one target is refused delays no other: the queue heeds no result beside an error.
func TestE11APassThatFailsKeepsItsDeadlines(t *testing.T) {
	g := NewWithT(t)
	metrics, err := newMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	clock, woken := testingclock.NewFakeClock(time.Now()), map[types.NamespacedName]time.Duration{}
	r := &ConfigWatchReconciler{ // without caches, so that a restart fails
		Client: statusClient{}, Recorder: events.NewFakeRecorder(10), Clock: clock,
		turns: turns.New(1, func(types.NamespacedName) {}), metrics: metrics, subscribers: subscriber.New(nil, nil, nil),
		wakeAfter: func(cw types.NamespacedName, wait time.Duration) { woken[cw] = wait },
	}
	cw, decision := aConfigWatch("uid", 1), owingARestart(true)
	decision.LookAgain = clock.Now().Add(2 * time.Second)
	_, err = r.carryOut(t.Context(), cw, decision, conclusion{})
	g.Expect(err).To(HaveOccurred())
	g.Expect(woken).To(Equal(map[types.NamespacedName]time.Duration{client.ObjectKeyFromObject(cw): 2 * time.Second}))
}

// While the watch of ConfigWatches is down, each write of a status may meet a conflict. That is no error, of which the
// log would have a stack trace each time: the pass is made again, a little later each time.
func TestE11AConflictIsNoError(t *testing.T) {
	g := NewWithT(t)
	metrics, err := newMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	now := time.Now()
	conflict := statusClient{outcome: apierrors.NewConflict(schema.GroupResource{Resource: "configwatches"}, "web", errors.New("newer"))}
	r := &ConfigWatchReconciler{
		Client: conflict, Recorder: events.NewFakeRecorder(10), Clock: testingclock.NewFakeClock(now),
		turns: turns.New(1, func(types.NamespacedName) {}), metrics: metrics, subscribers: subscriber.New(nil, nil, nil),
	}
	cw := aConfigWatch("uid", 1)
	pass := func(lookAgain time.Time) time.Duration {
		decision := plan.Decide(plan.Input{Name: "web", Recorded: &cw.Status, Now: now})
		decision.LookAgain = lookAgain
		result, err := r.carryOut(t.Context(), cw.DeepCopy(), decision, conclusion{written: v1alpha1.ConfigWatchStatus{ObservedGeneration: 7}})
		g.Expect(err).NotTo(HaveOccurred())
		return result.RequeueAfter
	}
	for wait := firstRetry; wait < lastRetry; wait *= 2 {
		g.Expect(pass(time.Time{})).To(Equal(wait))
		g.Expect(r.unrecorded.get(cw).sent).To(HaveLen(1), "it is still to be written")
	}
	g.Expect(pass(now.Add(time.Hour))).To(Equal(lastRetry), "with something later to do")
	g.Expect(pass(now.Add(time.Second))).To(Equal(time.Second), "with something sooner to do")
	r.Client = statusClient{}
	g.Expect(pass(time.Time{})).To(BeZero(), "it is written")
	r.Client = conflict
	g.Expect(pass(time.Time{})).To(Equal(firstRetry))
}

func TestE18APassThatEndsBeforeItsTimeKeepsNoPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		confirms bool
		client   client.Client
		panics   bool
	}{
		// There are no caches, so that confirming what they have is a panic, and a restart is the error of one.
		"a panic before the restarts": {confirms: true, client: statusClient{}, panics: true},
		"a panic in a restart":        {client: statusClient{}},
		"a panic while reporting":     {panics: true},
		"the status can't be written": {client: statusClient{outcome: errors.New("no")}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			metrics, err := newMetrics(prometheus.NewRegistry())
			g.Expect(err).NotTo(HaveOccurred())
			r := &ConfigWatchReconciler{
				Client: tc.client, Recorder: events.NewFakeRecorder(10), Clock: testingclock.NewFakeClock(time.Now()),
				turns: turns.New(1, func(types.NamespacedName) {}), metrics: metrics,
				subscribers: subscriber.New(nil, nil, nil),
			}
			decision := owingARestart(!tc.confirms)
			g.Expect(decision.Wants()).To(Equal(1))
			pass := func() {
				_, err := r.carryOut(t.Context(), aConfigWatch("uid", 1), decision, conclusion{})
				g.Expect(err).To(HaveOccurred())
			}
			if tc.panics {
				g.Expect(pass).To(Panic())
			} else {
				pass()
			}
			another := types.NamespacedName{Namespace: "shop", Name: "another"}
			g.Expect(r.turns.Take(another, 0, 1)).To(Equal(1), "the only place is free")
		})
	}
}
