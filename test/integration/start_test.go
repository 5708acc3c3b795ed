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

package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("A start of the manager", func() {
	var web, cache *utils.Restarts

	BeforeEach(func(ctx SpecContext) {
		create(ctx,
			utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(),
			utils.MakeSecret("credentials").Data("password", "before").Obj(),
			utils.MakeDeployment("web").EnvFromConfigMap("app-config").Obj(),
			utils.MakeStatefulSet("cache").EnvFromSecret("credentials").Obj())
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"), utils.MakeConfigWatch("cache").Secret("credentials"))
		web, cache = restartsOf(ctx, deployment, "web"), restartsOf(ctx, statefulSet, "cache")
	})

	It("finds a change that was made while none ran, and acts on it once (E7)", func(ctx SpecContext) {
		stopManager()
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		startManager(ctx)
		expectRestarts(ctx, web, 1)
		expectRestarts(ctx, cache, 0)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Message", "ConfigMap app-config changed"), "what the keys were is not known any more")

		By("starting again")
		stopManager()
		startManager(ctx)
		expectRestarts(ctx, web, 1)
		expectRestarts(ctx, cache, 0)
	})

	It("finds nothing to do for a change that was made and taken back while none ran (E7)", func(ctx SpecContext) {
		stopManager()
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		set(ctx, "app-config", "LOG_LEVEL", "info")
		mark := since()
		startManager(ctx)
		expectRestarts(ctx, web, 0)
		Expect(requestsOf(utils.ManagerUser, mark)).To(BeEmpty())
	})

	It("with nothing changed restarts nothing, not even at the first label edit of each source (E7)", func(ctx SpecContext) {
		stopManager()
		mark := since()
		startManager(ctx)
		lists, err := audit.Since(mark, func(r utils.Request) bool {
			return r.User == utils.ManagerUser && r.Resource == "configmaps" && r.Verb == "watch" && r.Code == 200
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(lists).To(ContainElement(HaveField("URI", ContainSubstring("sendInitialEvents=true"))),
			"with WatchList, by which the first objects are reduced twice")

		label := func(object client.Object) {
			object.SetLabels(map[string]string{"edited": "true"})
		}
		change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) { label(c) })
		change(ctx, secret("credentials"), func(s *corev1.Secret) { label(s) })
		expectRestarts(ctx, web, 0)
		expectRestarts(ctx, cache, 0)
		Expect(requestsOf(utils.ManagerUser, mark)).To(BeEmpty())
	})

	It("after kill -9 in the middle of many restarts makes each of them once (E9)", func(ctx SpecContext) {
		const targets = 20
		restarts := make([]*utils.Restarts, targets)
		b := utils.MakeConfigWatch("fleet").ConfigMap("app-config")
		for n := range restarts {
			name := fmt.Sprintf("fleet-%02d", n)
			create(ctx, utils.MakeDeployment(name).Obj())
			restarts[n] = restartsOf(ctx, deployment, name)
			b = b.Target(deployment, name)
		}
		establish(ctx, b)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(func() (total int) {
			for _, r := range restarts {
				total += r.Count()
			}
			return total
		}).WithPolling(1).Should(BeNumerically(">", 0))
		manager.Kill()
		startManager(ctx)
		for _, r := range restarts {
			Eventually(r.Count).Should(Equal(1))
		}
		settle(ctx)
		for n, r := range restarts {
			Expect(r.Marks()).To(ConsistOf(HavePrefix("fleet=1-")))
			Eventually(row).WithArguments(ctx, "fleet", deployment, fmt.Sprintf("fleet-%02d", n)).Should(HaveField("Restarts", int64(1)))
		}
	})

	It("brings a record that was lost up to date from the pod template (E9)", func(ctx SpecContext) {
		stopManager()
		lost := status(ctx, "web")
		startManager(ctx)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 1)
		recorded := status(ctx, "web")

		By("undoing the status write of the pass that made the restart")
		stopManager()
		cw := reload(ctx, utils.MakeConfigWatch("web").Namespace(namespace).Obj())
		cw.Status = lost
		Expect(k8sClient.Status().Update(ctx, cw)).To(Succeed())
		startManager(ctx)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(SatisfyAll(
			HaveField("Restarts", int64(1)), HaveField("Sources", Equal(recorded.Targets[0].Sources))))
		expectRestarts(ctx, web, 1)
	})

	It("restarts again where a lost record is of content that has changed since (E9)", func(ctx SpecContext) {
		stopManager()
		lost := status(ctx, "web")
		startManager(ctx)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 1)
		stopManager()
		cw := reload(ctx, utils.MakeConfigWatch("web").Namespace(namespace).Obj())
		cw.Status = lost
		Expect(k8sClient.Status().Update(ctx, cw)).To(Succeed())
		set(ctx, "app-config", "LOG_LEVEL", "info") // as the lost record has it, but not as the pods have it
		startManager(ctx)
		expectRestarts(ctx, web, 2)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Restarts", int64(2)))
	})

	It("reports on objects that were deleted while none ran", func(ctx SpecContext) {
		stopManager()
		Expect(k8sClient.Delete(ctx, utils.MakeDeployment("web").Namespace(namespace).Obj())).To(Succeed())
		Expect(k8sClient.Delete(ctx, utils.MakeConfigWatch("cache").Namespace(namespace).Obj())).To(Succeed())
		setSecret(ctx, "credentials", "password", "after")
		startManager(ctx)
		Eventually(condition).WithArguments(ctx, "web", "Ready").Should(SatisfyAll(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "NoTargets")))
		expectRestarts(ctx, cache, 0)
	})
})
