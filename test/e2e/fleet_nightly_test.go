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

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("An approved change in a nightly window (E14)", func() {
	const cause = "ConfigMap payments-config changed (PROVIDER)"
	var restarts *utils.Restarts

	BeforeEach(func(ctx SpecContext) {
		kubectl(ctx, "apply", "-f", examples+"nightly.yaml")
		openWindow(ctx, time.Now().Add(12*time.Hour))
		expectStates(ctx, "payments", states{v1alpha1.TargetUpToDate: 1})
		restarts = restartsOf(ctx, deployment, "payments")
	})

	It("is rolled out once, though the manager is killed before the approval and before the window", func(ctx SpecContext) {
		setProvider(ctx, "bank")
		row := expectPayments(ctx, v1alpha1.TargetPending, v1alpha1.ReasonAwaitingApproval)
		hash := approvalHash(ctx)
		Expect(row.Message).To(Equal(
			cause + ". It awaits approval: annotate the ConfigWatch with " + v1alpha1.ApproveAnnotation + "=" + hash))
		killManager(ctx)
		Consistently(here.Row).WithArguments(ctx, "payments", deployment, "payments").Should(Equal(row))
		Expect(approvalHash(ctx)).To(Equal(hash))

		kubectl(ctx, "annotate", "cw/payments", v1alpha1.ApproveAnnotation+"="+hash)
		row = expectPayments(ctx, v1alpha1.TargetPending, v1alpha1.ReasonOutsideWindow)
		Expect(row.Message).To(HavePrefix(cause + ". The next window opens "))
		killManager(ctx)
		Consistently(here.Row).WithArguments(ctx, "payments", deployment, "payments").Should(Equal(row))
		Expect(restarts.Count()).To(BeZero())

		openWindow(ctx, time.Now().Add(-time.Minute))
		row = expectPayments(ctx, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete)
		Expect(row.Message).To(Equal(cause))
		Expect(restarts.Count()).To(Equal(1))

		By("changing it again")
		setProvider(ctx, "another bank")
		row = expectPayments(ctx, v1alpha1.TargetPending, v1alpha1.ReasonAwaitingApproval)
		Expect(approvalHash(ctx)).NotTo(Equal(hash))
		Expect(row.Message).To(HaveSuffix(" (the annotation " + v1alpha1.ApproveAnnotation + " names another hash)"))
		kubectl(ctx, "annotate", "--overwrite", "cw/payments", v1alpha1.ApproveAnnotation+"="+approvalHash(ctx))
		expectPayments(ctx, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete)
		Expect(restarts.Count()).To(Equal(2))
	})
})

// openWindow makes the window of the ConfigWatch payments one that opens at this time of the day, for an hour.
func openWindow(ctx context.Context, at time.Time) {
	GinkgoHelper()
	at = at.UTC()
	kubectl(ctx, "patch", "cw/payments", "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"rollout":{"windows":[{"schedule":"%d %d * * *","durationMinutes":60}]}}}`, at.Minute(), at.Hour()))
}

func setProvider(ctx context.Context, name string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "configmap/payments-config", "--type=merge", "-p", fmt.Sprintf(`{"data":{"PROVIDER":%q}}`, name))
}

// expectPayments waits until the Deployment payments is in a state for a reason, and is its row.
func expectPayments(ctx context.Context, state v1alpha1.TargetState, reason string) v1alpha1.TargetStatus {
	GinkgoHelper()
	Eventually(here.Row).WithArguments(ctx, "payments", deployment, "payments").Should(SatisfyAll(
		HaveField("State", state), HaveField("Reason", reason)))
	row, err := here.Row(ctx, "payments", deployment, "payments")
	Expect(err).NotTo(HaveOccurred())
	return row
}

// approvalHash is read as a user reads it.
func approvalHash(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "get", "cw/payments", "-o", "jsonpath={.status.approvalHash}")
}

// killManager kills the manager that all tests share, as kill -9 does, and starts it again.
func killManager(ctx context.Context) {
	GinkgoHelper()
	manager.Kill()
	manager = run(ctx)
}
