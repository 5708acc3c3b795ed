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

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

var _ = Describe("Two managers", func() {
	var (
		one, other *proxy
		s          *shop
	)

	BeforeEach(func() {
		one, other = newProxy(), newProxy()
	})

	It("restart each workload exactly once for each change, both at work at once (E9)", func(ctx SpecContext) {
		const rounds = 5
		s = openShop(ctx, 7, 3)
		for _, p := range []*proxy{one, other} {
			p.add(&fault{on: patchDeployments, times: always, before: delay(20 * time.Millisecond)}) // both are sent before one is made
			run(ctx, p)
		}
		s.settle(ctx)
		began := time.Now()
		for range rounds {
			s.change(ctx, v1alpha1.ConfigMap, shared)
			for i, name := range s.own {
				s.change(ctx, []v1alpha1.SourceKind{v1alpha1.ConfigMap, v1alpha1.Secret}[i%2], name)
			}
			s.settle(ctx)
		}
		Consistently(ctx, s.check).Should(Succeed())
		Expect(s.total).To(BeEquivalentTo(40))
		restarts := rounds * (len(s.own) + len(s.sharing))
		Expect(one.calls(patchDeployments, began)+other.calls(patchDeployments, began)).To(BeNumerically(">", restarts),
			"some patches were sent by both")
	})

	DescribeTable("restart each workload exactly once, though what one of them knows of the sources is old (E9)",
		func(ctx SpecContext, ofOne ...*fault) {
			s = openShop(ctx, 2, 3)
			run(ctx, one)
			run(ctx, other)
			s.settle(ctx)
			resume := other.stall("watch configmaps")
			DeferCleanup(resume)
			for _, f := range ofOne {
				one.add(f)
			}
			s.change(ctx, v1alpha1.ConfigMap, s.own[0])
			s.change(ctx, v1alpha1.ConfigMap, shared)
			Eventually(func() (missed int64) {
				missed, _ = s.tally(ctx)
				return missed
			}).Should(BeZero())
			Consistently(ctx, s.tally).WithTimeout(time.Second).Should(BeZero())
			resume()
			s.settle(ctx)
			Consistently(ctx, s.check).WithTimeout(500 * time.Millisecond).Should(Succeed())
		},
		Entry("and the restart is recorded"),
		Entry("and the restart can't be recorded", &fault{on: updateStatus, times: always, before: cut}),
	)

	It("restart each workload exactly once when the lease is lost in the middle of a pass (E9, E7)", func(ctx SpecContext) {
		lease := []string{
			"--leader-elect=true", "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms",
		}
		s = openShop(ctx, 3, 3)
		leader := run(ctx, one, lease...)
		s.settle(ctx)
		run(ctx, other, lease...)

		By("holding up a patch of the leader's and its lease")
		takenOver := make(chan struct{})
		late := &fault{on: patchDeployments, of: shared + "-1", late: true, before: hold(takenOver)}
		hit := one.add(late)
		one.add(&fault{on: "update leases", times: always, before: hold(takenOver)})
		s.change(ctx, v1alpha1.ConfigMap, shared)
		Eventually(hit).Should(BeClosed())
		s.change(ctx, v1alpha1.ConfigMap, s.own[0])
		Eventually(leader.Exited()).Should(BeClosed(), "it has lost its lease")
		s.change(ctx, v1alpha1.ConfigMap, s.own[1])
		s.settle(ctx)
		s.change(ctx, v1alpha1.ConfigMap, shared)
		s.settle(ctx)

		By("letting the patch arrive, late")
		close(takenOver)
		Eventually(late.answered.Load).Should(BeEquivalentTo(http.StatusUnprocessableEntity), "it is for a mark that isn't there any more")
		Consistently(ctx, s.check).WithTimeout(500 * time.Millisecond).Should(Succeed())
	})
})
