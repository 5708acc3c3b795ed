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
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

const (
	leaseName = "configwatch.ktechhub.io"
	leading   = "Successfully acquired lease" // what the manager logs when it leads
)

var _ = Describe("Two replicas (E7, E9)", func() {
	var (
		restarts          *utils.Restarts
		leader, successor *utils.Manager
	)
	leads := func(m *utils.Manager) func() bool {
		return func() bool { return strings.Contains(m.Log(), leading) }
	}

	BeforeEach(func(ctx SpecContext) {
		restarts = establish(ctx, deployment, utils.MakeDeployment("app").EnvFromConfigMap("app-config").Obj())
		insteadOfManager()
		replica := func() *utils.Manager {
			m := run(ctx, "--leader-elect=true", "--leader-elect-lease-duration=2s",
				"--leader-elect-renew-deadline=1500ms", "--leader-elect-retry-period=200ms")
			DeferCleanup(m.Kill)
			return m
		}
		leader = replica()
		Eventually(leads(leader)).Should(BeTrue())
		successor = replica()
	})

	It("hand over when the leader is stopped, and act once on a change that comes meanwhile", func(ctx SpecContext) {
		set(ctx, "debug")
		Eventually(restarts.Count).Should(Equal(1))
		Expect(leads(successor)()).To(BeFalse())

		leader.Stop()
		lease := &coordinationv1.Lease{}
		Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: utils.ManagerNamespace, Name: leaseName}, lease)).To(Succeed())
		Expect(leads(successor)() || ptr.Deref(lease.Spec.HolderIdentity, "") == "").To(BeTrue(), "the lease is released, or taken already")
		set(ctx, "trace")
		Eventually(restarts.Count).Should(Equal(2))
		Expect(leads(successor)()).To(BeTrue())
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		Consistently(restarts.Count).Should(Equal(2))
	})

	It("restart once for a change while the leader hangs past its lease, also when it wakes up", func(ctx SpecContext) {
		Expect(leader.Signal(syscall.SIGSTOP)).To(Succeed())
		set(ctx, "debug")
		Eventually(restarts.Count).Should(Equal(1))
		Expect(leads(successor)()).To(BeTrue())
		Expect(leader.Signal(syscall.SIGCONT)).To(Succeed())
		Eventually(leader.Exited()).WithTimeout(10 * time.Second).Should(BeClosed())
		Eventually(here.Row).WithArguments(ctx, "app", deployment, "app").Should(HaveField("State", v1alpha1.TargetUpToDate))
		Consistently(restarts.Marks).Should(HaveLen(1))
		set(ctx, "trace")
		Eventually(restarts.Count).Should(Equal(2))
	})

	It("restart once for a change that is made right before the leader is killed", func(ctx SpecContext) {
		set(ctx, "debug")
		leader.Kill()
		Eventually(leads(successor)).Should(BeTrue())
		Eventually(restarts.Count).Should(Equal(1))
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		Consistently(restarts.Count).Should(Equal(1))
	})
})
