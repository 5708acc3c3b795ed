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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("A release (E13)", func() {
	const version0, version1 = examples + "release-1.0.yaml", examples + "release-1.1.yaml"

	It("that changes a ConfigMap, a Secret and the image is one rollout, time and again", func(ctx SpecContext) {
		shops := make([]utils.Namespace, 10)
		for i := range shops {
			var err error
			shops[i], err = utils.NewNamespace(ctx, k8sClient)
			Expect(err).NotTo(HaveOccurred())
			kubectl(ctx, "apply", "--namespace", shops[i].Name, "-f", version0)
		}
		for _, shop := range shops {
			expectShop(ctx, shop, Equal(v1alpha1.ReasonBaseline))
			kubectl(ctx, "apply", "--namespace", shop.Name, "-f", version1)
		}
		once := 0
		for _, shop := range shops {
			row := expectShop(ctx, shop, Or(Equal(v1alpha1.ReasonSupersededByRollout), Equal(v1alpha1.ReasonRolloutComplete)))
			Expect(row.Message).To(Equal(
				"ConfigMap shop-config changed (CURRENCIES); Secret shop-credentials changed (API_TOKEN)"))
			if row.Reason != v1alpha1.ReasonSupersededByRollout {
				expectRollouts(ctx, shop, 2)
				continue
			}
			once++
			Expect(row.Restarts).To(BeZero())
			expectRollouts(ctx, shop, 1)
			Eventually(shop.Notes).WithArguments(ctx, v1alpha1.EventRestartSuperseded).Should(ConsistOf(
				"ConfigWatch: Deployment " + shop.Name + "/shop was not restarted: " + row.Message +
					", and another rollout has started its pods since"))
		}
		// On a busy machine, the template may be read too late to prove that the Secret came first.
		Expect(once).To(BeNumerically(">=", len(shops)-2))
	})

	It("that changes the image before the ConfigMap needs a restart", func(ctx SpecContext) {
		kubectl(ctx, "apply", "-f", version0)
		expectShop(ctx, here, Equal(v1alpha1.ReasonBaseline))
		kubectl(ctx, "set", "image", "deployment/shop", "shop=registry.k8s.io/pause:3.10")
		kubectl(ctx, "patch", "configmap/shop-config", "--type=merge", "-p", `{"data":{"CURRENCIES":"EUR,USD"}}`)
		row := expectShop(ctx, here, Equal(v1alpha1.ReasonRolloutComplete))
		Expect(row.Restarts).To(BeEquivalentTo(1))
		expectRollouts(ctx, here, 2)
	})
})

var _ = Describe("By default", func() {
	var restarts *utils.Restarts

	BeforeEach(func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("more-config").Data("COLOUR", "blue").Obj(),
			utils.MakeDeployment("app").EnvFromConfigMap("app-config").EnvFromConfigMap("more-config").Obj(),
			utils.MakeConfigWatch("app").Target(deployment, "app").Rollout(v1alpha1.RolloutSpec{}).Obj())
		expectStates(ctx, "app", states{v1alpha1.TargetUpToDate: 1})
		restarts = restartsOf(ctx, deployment, "app")
	})

	It("pods are replaced within 5 seconds of a change (E12)", func(ctx SpecContext) {
		old, err := pods(ctx)
		Expect(err).NotTo(HaveOccurred())
		set(ctx, "debug")
		Eventually(pods).WithArguments(ctx).WithTimeout(5 * time.Second).Should(ContainElement(
			HaveField("ObjectMeta.Annotations", HaveKey(v1alpha1.RestartAnnotationPrefix+"app"))))
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		Expect(pods(ctx)).NotTo(HaveKey(BeKeyOf(old)))
		Expect(restarts.Count()).To(Equal(1))
	})

	It("two ConfigMaps that change one after the other make one restart (E12)", func(ctx SpecContext) {
		set(ctx, "debug")
		expectRow(ctx, deployment, v1alpha1.TargetPending, v1alpha1.ReasonSettling,
			MatchRegexp(`^ConfigMap app-config changed \(LOG_LEVEL\)\. It is restarted once no more changes come, at .*Z$`))
		change(ctx, utils.MakeConfigMap("more-config").Obj(), func(c *corev1.ConfigMap) { c.Data["COLOUR"] = "green" })
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete,
			changed+"; ConfigMap more-config changed (COLOUR)")
		Expect(restarts.Count()).To(Equal(1))
	})
})

var _ = Describe("Two ConfigWatches (E26)", func() {
	It("restart a target once for a change, if the second one waits longer", func(ctx SpecContext) {
		settle := func(seconds int32) v1alpha1.RolloutSpec { return v1alpha1.RolloutSpec{SettleSeconds: &seconds} }
		create(ctx, utils.MakeDeployment("app").EnvFromConfigMap("app-config").Obj(),
			utils.MakeConfigWatch("quick").Target(deployment, "app").Rollout(settle(1)).Obj(),
			utils.MakeConfigWatch("patient").ConfigMap("app-config").Rollout(settle(10)).Obj())
		expectStates(ctx, "quick", states{v1alpha1.TargetUpToDate: 1})
		expectStates(ctx, "patient", states{v1alpha1.TargetUpToDate: 1})
		restarts := restartsOf(ctx, deployment, "app")
		set(ctx, "debug")
		Eventually(here.Row).WithArguments(ctx, "patient", deployment, "app").WithTimeout(30 * time.Second).Should(SatisfyAll(
			HaveField("State", v1alpha1.TargetUpToDate), HaveField("Reason", v1alpha1.ReasonSupersededByRollout)))
		Eventually(here.Row).WithArguments(ctx, "quick", deployment, "app").Should(HaveField("Reason", v1alpha1.ReasonRolloutComplete))
		Expect(restarts.Marks()).To(ConsistOf(HavePrefix("quick=1-")))
	})
})

// expectShop waits until the Deployment of a release is up to date for this reason, and is its row.
func expectShop(ctx context.Context, shop utils.Namespace, reason types.GomegaMatcher) v1alpha1.TargetStatus {
	GinkgoHelper()
	Eventually(shop.Row).WithArguments(ctx, "shop", deployment, "shop").Should(SatisfyAll(
		HaveField("State", v1alpha1.TargetUpToDate), HaveField("Reason", reason)))
	row, err := shop.Row(ctx, "shop", deployment, "shop")
	Expect(err).NotTo(HaveOccurred())
	return row
}

// expectRollouts tells how many rollouts the Deployment of a release has had: each has a ReplicaSet, beside the first.
func expectRollouts(ctx context.Context, shop utils.Namespace, n int) {
	GinkgoHelper()
	sets := &appsv1.ReplicaSetList{}
	Expect(k8sClient.List(ctx, sets, client.InNamespace(shop.Name))).To(Succeed())
	Expect(sets.Items).To(HaveLen(1 + n))
	d := utils.MakeDeployment("shop").Namespace(shop.Name).Obj()
	Expect(utils.Reload(ctx, k8sClient, d)).To(Succeed())
	Expect(d.Generation).To(BeEquivalentTo(1 + n))
}
