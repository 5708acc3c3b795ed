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

package fault

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

var _ = Describe("A manager whose calls fail", Ordered, func() {
	var (
		p *proxy
		s *shop
	)

	BeforeAll(func(ctx SpecContext) {
		p = newProxy()
		s = openShop(ctx, 2, 3)
		run(ctx, p)
		s.settle(ctx)
	})

	AfterEach(func(ctx SpecContext) {
		p.lift()
		s.settle(ctx)
	})

	conflict := answer(http.StatusConflict, metav1.StatusReasonConflict)
	tooMany := answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	internal := answer(http.StatusInternalServerError, metav1.StatusReasonInternalError)
	unavailable := answer(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	unauthorized := answer(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)

	DescribeTable("restarts each workload exactly once (E9)", func(ctx SpecContext, f *fault) {
		hit := p.add(f)
		s.change(ctx, v1alpha1.ConfigMap, shared)
		s.change(ctx, v1alpha1.Secret, s.own[0])
		Eventually(hit).Should(BeClosed())
		s.settle(ctx)
		Consistently(ctx, s.check).WithTimeout(300 * time.Millisecond).Should(Succeed())
	},
		Entry("when the answer to a patch is lost", &fault{on: patchDeployments, after: cut}),
		Entry("when the answers to all patches are lost", &fault{on: patchDeployments, times: 4, after: cut}),
		Entry("when a patch is made, and the answer is that it failed", &fault{on: patchDeployments, after: internal}),
		Entry("when a patch is made, and the answer is to try again", &fault{on: patchDeployments, after: tooMany}),
		Entry("when patches meet a conflict", &fault{on: patchDeployments, times: 5, before: conflict}),
		Entry("when patches are too many", &fault{on: patchDeployments, times: 2, before: tooMany}),
		Entry("when patches meet an internal error", &fault{on: patchDeployments, times: 5, before: internal}),
		Entry("when patches meet an overloaded API server", &fault{on: patchDeployments, times: 5, before: unavailable}),
		Entry("when patches are not authenticated for a while", &fault{on: patchDeployments, times: 5, before: unauthorized}),
		Entry("when connections are cut before patches", &fault{on: patchDeployments, times: 5, before: cut}),
		Entry("when patches are slow", &fault{on: patchDeployments, times: 2, before: delay(500 * time.Millisecond)}),
		Entry("when answers to patches are slow", &fault{on: patchDeployments, times: 2, after: delay(500 * time.Millisecond)}),
		Entry("when the answer to a status write is lost", &fault{on: updateStatus, after: cut}),
		Entry("when a status is written, and the answer is that it failed", &fault{on: updateStatus, times: 2, after: internal}),
		Entry("when status writes meet conflicts", &fault{on: updateStatus, times: 6, before: conflict}),
		Entry("when status writes meet an internal error", &fault{on: updateStatus, times: 6, before: internal}),
		Entry("when status writes meet an overloaded API server", &fault{on: updateStatus, times: 6, before: unavailable}),
		Entry("when status writes are too many", &fault{on: updateStatus, times: 2, before: tooMany}),
		Entry("when connections are cut before status writes", &fault{on: updateStatus, times: 3, before: cut}),
		Entry("when status writes are slow", &fault{on: updateStatus, times: 2, before: delay(500 * time.Millisecond)}),
		Entry("when Events are refused", &fault{on: createEvents, times: 10, before: internal}),
		Entry("when connections are cut before Events", &fault{on: createEvents, times: 5, before: cut}),
	)

	It("says why in the row of a target that can't be patched, backs off, and goes on with the others (E11)", func(ctx SpecContext) {
		const stuck = shared + "-1"
		began := time.Now()
		p.add(&fault{on: patchDeployments, of: stuck, times: always, before: internal})
		s.change(ctx, v1alpha1.ConfigMap, shared)

		Eventually(s.row).WithArguments(ctx, shared, stuck).Should(And(
			HaveField("State", v1alpha1.TargetPending),
			HaveField("Reason", v1alpha1.ReasonRestartFailed),
			HaveField("Message", And(ContainSubstring("ConfigMap shared changed"), ContainSubstring("tried again"), ContainSubstring("made up: internal server error"))),
		))
		ready := meta.FindStatusCondition(s.configWatch(ctx, shared).Status.Conditions, v1alpha1.ConditionReady)
		Expect(ready).To(HaveField("Reason", v1alpha1.ReasonPending))
		Expect(ready.Message).To(ContainSubstring("Deployment " + stuck))
		for _, other := range []string{shared + "-0", shared + "-2"} {
			Eventually(s.row).WithArguments(ctx, shared, other).Should(And(
				HaveField("State", v1alpha1.TargetUpToDate), HaveField("Restarts", s.changes[other]),
			), other)
		}
		written := s.configWatch(ctx, shared).ResourceVersion

		Eventually(p.calls).WithArguments(patchDeployments, began).Should(BeNumerically(">=", 2+5), "it is tried again")
		const patience = 3 * time.Second
		Consistently(func() int { return p.calls(patchDeployments, began) }).WithTimeout(time.Until(began.Add(patience))).
			Should(BeNumerically("<=", 2+10), "the time between tries doubles: 10 of them are 5 seconds")
		Expect(s.configWatch(ctx, shared).ResourceVersion).To(Equal(written), "what stays the same isn't written again (E28)")
	})

	It("keeps the status writes of a ConfigWatch that can't be written down, and restarts once (E9)", func(ctx SpecContext) {
		began := time.Now()
		p.add(&fault{on: updateStatus, of: shared, times: always, before: conflict})
		s.change(ctx, v1alpha1.ConfigMap, shared)
		s.change(ctx, v1alpha1.ConfigMap, s.own[1])

		Eventually(ctx, func(ctx SpecContext) int64 { return s.row(ctx, s.own[1], s.own[1]).Restarts }).
			Should(Equal(s.changes[s.own[1]]), "the others go on")
		Eventually(p.calls).WithArguments(updateStatus, began).Should(BeNumerically(">=", 1+5), "it is tried again")
		const patience = 3 * time.Second
		Consistently(func() int { return p.calls(updateStatus, began) }).WithTimeout(time.Until(began.Add(patience))).
			Should(BeNumerically("<=", 2+10), "the time between tries doubles: 10 of them are 5 seconds")
		Expect(p.calls(patchDeployments, began)).To(Equal(3+1), "no patch is made twice")
	})
})
