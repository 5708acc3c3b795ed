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
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/workload"
)

// metrics are those of targets, their rollouts, and what subscribers are told. None has a label by object.
type metrics struct {
	targets *prometheus.GaugeVec
	restart *prometheus.CounterVec
	rollout *prometheus.HistogramVec
	told    *prometheus.CounterVec
	telling *prometheus.HistogramVec

	mu    sync.Mutex
	byKey map[types.NamespacedName]map[v1alpha1.TargetState]int
}

// Results of a restart and of a rollout, as a label.
const (
	restarted = "restarted"
	completed = "completed"
	failed    = "failed"
)

// Results of an attempt to tell a subscriber, as a label; or failed.
const (
	delivered = "delivered"
	refused   = "refused"
)

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		targets: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "configwatch_targets",
			Help: "Targets of all ConfigWatches, by the state in their status.",
		}, []string{"state"}),
		restart: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configwatch_restarts_total",
			Help: "Attempts to restart a target, by its kind and by how they went: restarted, failed (tried again).",
		}, []string{"kind", "result"}),
		rollout: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "configwatch_rollout_seconds",
			Help:    "Time from a restart until its rollout was seen to be complete, or to have failed, in seconds.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}, []string{"result"}),
		told: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configwatch_deliveries_total",
			Help: "Attempts to tell subscribers an event, by how they went: delivered, failed (tried again), refused (mend something).",
		}, []string{"result"}),
		telling: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "configwatch_delivery_seconds",
			Help:    "Time that attempts to tell subscribers an event took, by how they went, in seconds. An endpoint has 10 to answer.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20},
		}, []string{"result"}),
		byKey: map[types.NamespacedName]map[v1alpha1.TargetState]int{},
	}
	for _, c := range []prometheus.Collector{m.targets, m.restart, m.rollout, m.told, m.telling} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	m.begin()
	return m, nil
}

// begin has every series there from the start, so that the first increase is seen as one.
func (m *metrics) begin() {
	for _, state := range []v1alpha1.TargetState{
		v1alpha1.TargetUpToDate, v1alpha1.TargetPending, v1alpha1.TargetRollingOut, v1alpha1.TargetFailed,
		v1alpha1.TargetHalted, v1alpha1.TargetBlocked, v1alpha1.TargetMissing, v1alpha1.TargetIgnored,
	} {
		m.targets.WithLabelValues(string(state))
	}
	for _, kind := range []string{workload.Deployment, workload.StatefulSet, workload.DaemonSet} {
		for _, result := range []string{restarted, failed} {
			m.restart.WithLabelValues(kind, result)
		}
	}
	for _, result := range []string{completed, failed} {
		m.rollout.WithLabelValues(result)
	}
	for _, result := range []string{delivered, failed, refused} {
		m.told.WithLabelValues(result)
		m.telling.WithLabelValues(result)
	}
}

// observe takes note of a status that was written.
func (m *metrics) observe(cw types.NamespacedName, before, after *v1alpha1.ConfigWatchStatus, now time.Time) {
	counts := map[v1alpha1.TargetState]int{}
	for i := range after.Targets {
		counts[after.Targets[i].State]++
	}
	m.count(cw, counts)
	rolling := map[workload.Ref]bool{}
	for i := range before.Targets {
		if t := &before.Targets[i]; t.State == v1alpha1.TargetRollingOut && t.Rollout != nil {
			rolling[workload.Ref{APIVersion: t.APIVersion, Kind: t.Kind, Name: t.Name}] = true
		}
	}
	for i := range after.Targets {
		t := &after.Targets[i]
		if !rolling[workload.Ref{APIVersion: t.APIVersion, Kind: t.Kind, Name: t.Name}] || t.LastRestartTime == nil {
			continue
		}
		switch t.Reason {
		case v1alpha1.ReasonRolloutComplete:
			m.rollout.WithLabelValues(completed).Observe(now.Sub(t.LastRestartTime.Time).Seconds())
		case v1alpha1.ReasonRolloutFailed:
			m.rollout.WithLabelValues(failed).Observe(now.Sub(t.LastRestartTime.Time).Seconds())
		}
	}
}

// restarting counts an attempt to restart a target.
func (m *metrics) restarting(kind string, err error) {
	result := restarted
	if err != nil {
		result = failed
	}
	m.restart.WithLabelValues(kind, result).Inc()
}

// attempted counts attempts to tell subscribers.
func (m *metrics) attempted(attempts map[string]plan.Attempt) {
	for name := range attempts {
		result, attempt := delivered, attempts[name]
		switch {
		case attempt.Refused:
			result = refused
		case attempt.Message != "":
			result = failed
		}
		m.told.WithLabelValues(result).Inc()
		m.telling.WithLabelValues(result).Observe(attempt.Took.Seconds())
	}
}

// forget takes the targets of a ConfigWatch that is gone out of the counts.
func (m *metrics) forget(cw types.NamespacedName) {
	m.count(cw, nil)
}

// count replaces what is counted of a ConfigWatch.
func (m *metrics) count(cw types.NamespacedName, counts map[v1alpha1.TargetState]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for state, n := range m.byKey[cw] {
		m.targets.WithLabelValues(string(state)).Sub(float64(n))
	}
	for state, n := range counts {
		m.targets.WithLabelValues(string(state)).Add(float64(n))
	}
	if counts == nil {
		delete(m.byKey, cw)
		return
	}
	m.byKey[cw] = counts
}
