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
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/workload"
)

// Restarts are made in goroutines of their own, whose panics controller-runtime doesn't recover.
func TestE11APanicInARestartIsAnErrorOfThatRestart(t *testing.T) {
	g := NewWithT(t)
	metrics, err := newMetrics(prometheus.NewRegistry())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	r := &ConfigWatchReconciler{metrics: metrics} // without a cache of workloads, so that a restart panics
	outcomes := r.act(t.Context(), types.NamespacedName{Name: "web"}, []plan.Restart{
		{Workload: &workload.Workload{Kind: workload.Deployment}},
		{Workload: &workload.Workload{Kind: workload.StatefulSet}},
	})
	g.Expect(outcomes).To(HaveExactElements(
		MatchError(HavePrefix("restarting Deployment : panic: ")), MatchError(HavePrefix("restarting StatefulSet : panic: "))))
}

// The queue counts the time that passes, and deadlines are times of day.
func TestE14APassThatIsDueLaterDoesNotTrustTheClockForLong(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &ConfigWatchReconciler{Clock: clocktesting.NewFakePassiveClock(now)}
	for in, after := range map[time.Duration]time.Duration{
		-time.Second: time.Millisecond, 0: time.Millisecond, time.Minute: time.Minute, 24 * time.Hour: 10 * time.Minute,
	} {
		NewWithT(t).Expect(r.lookAgain(now.Add(in)).RequeueAfter).To(Equal(after), "%s from now", in)
	}
	NewWithT(t).Expect(r.lookAgain(time.Time{}).RequeueAfter).To(BeZero(), "never")
}
