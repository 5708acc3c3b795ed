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
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/ktechhub/configwatch/internal/plan"
)

func TestF9AttemptsToTellSubscribersAreCountedByTheirOutcome(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	g.Expect(err).NotTo(HaveOccurred())
	m.attempted(nil)
	m.attempted(map[string]plan.Attempt{
		"one": {Took: time.Second}, "two": {Took: 2 * time.Second}, "three": {Message: "answered 503", Took: 10 * time.Second}, "four": {Message: "answered 404", Refused: true},
	})
	g.Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP configwatch_deliveries_total Attempts to tell subscribers an event, by how they went: delivered, failed (tried again), refused (mend something).
# TYPE configwatch_deliveries_total counter
configwatch_deliveries_total{result="delivered"} 2
configwatch_deliveries_total{result="failed"} 1
configwatch_deliveries_total{result="refused"} 1
`), "configwatch_deliveries_total")).To(Succeed())
	for outcome, want := range map[string]struct {
		count   uint64
		seconds float64
	}{"delivered": {2, 3}, "failed": {1, 10}, "refused": {1, 0}} {
		took := &dto.Metric{}
		histogram, _ := m.telling.WithLabelValues(outcome).(prometheus.Histogram)
		g.Expect(histogram.Write(took)).To(Succeed())
		g.Expect(took.GetHistogram().GetSampleCount()).To(Equal(want.count), outcome)
		g.Expect(took.GetHistogram().GetSampleSum()).To(Equal(want.seconds), outcome)
	}
}
