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
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("First sight is a baseline (E5): nothing is restarted by", func() {
	var web *utils.Restarts

	BeforeEach(func(ctx SpecContext) {
		create(ctx,
			utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(),
			utils.MakeConfigMap("features").Data("dark-mode", "off").Obj(),
			utils.MakeSecret("credentials").Data("password", "before").Obj(),
			utils.MakeDeployment("web").EnvFromConfigMap("app-config").Obj())
		web = restartsOf(ctx, deployment, "web")
	})

	It("installing the operator where everything exists", func(ctx SpecContext) {
		stopManager()
		cw := utils.MakeConfigWatch("web").Target(deployment, "web").Obj()
		create(ctx, cw)
		startManager(ctx)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Sources", HaveLen(1)))
		expectRestarts(ctx, web, 0)
		Expect(notes(ctx, v1alpha1.EventRestartTriggered)).To(BeEmpty())
	})

	It("creating a ConfigWatch", func(ctx SpecContext) {
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("app-config").Secret("credentials").Target(deployment, "web"))
		expectRestarts(ctx, web, 0)
		Expect(row(ctx, "web", deployment, "web")).To(SatisfyAll(
			HaveField("Restarts", BeZero()),
			HaveField("Sources", ConsistOf(
				v1alpha1.AppliedSource{Kind: v1alpha1.ConfigMap, Name: "app-config", AppliedHash: sourceRow(ctx, "web", v1alpha1.ConfigMap, "app-config").Hash},
				v1alpha1.AppliedSource{Kind: v1alpha1.Secret, Name: "credentials", AppliedHash: sourceRow(ctx, "web", v1alpha1.Secret, "credentials").Hash},
			))))
	})

	It("adding a source, whose changes count from then on", func(ctx SpecContext) {
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("app-config").Target(deployment, "web"))
		cw := utils.MakeConfigWatch("web").Namespace(namespace).Obj()
		change(ctx, cw, func(cw *v1alpha1.ConfigWatch) {
			cw.Spec.Sources = append(cw.Spec.Sources, v1alpha1.SourceSelector{Kind: v1alpha1.ConfigMap, Name: "features"})
		})
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Sources", HaveLen(2)))
		expectRestarts(ctx, web, 0)
		set(ctx, "features", "dark-mode", "on")
		expectRestarts(ctx, web, 1)
	})

	It("adding a target, whose sources' changes count from then on", func(ctx SpecContext) {
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("app-config").Target(deployment, "web"))
		create(ctx, utils.MakeDeployment("api").Obj())
		api := restartsOf(ctx, deployment, "api")
		change(ctx, utils.MakeConfigWatch("web").Namespace(namespace).Obj(), func(cw *v1alpha1.ConfigWatch) {
			cw.Spec.Targets = append(cw.Spec.Targets, v1alpha1.TargetSelector{Kind: deployment, Name: "api"})
		})
		Eventually(row).WithArguments(ctx, "web", deployment, "api").Should(HaveField("Sources", HaveLen(1)))
		expectRestarts(ctx, web, 0)
		expectRestarts(ctx, api, 0)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 1)
		expectRestarts(ctx, api, 1)
	})

	It("editing which keys of a source matter", func(ctx SpecContext) {
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("app-config").Target(deployment, "web"))
		cw := utils.MakeConfigWatch("web").Namespace(namespace).Obj()
		change(ctx, cw, func(cw *v1alpha1.ConfigWatch) { cw.Spec.Sources[0].Keys = []string{"LOG_LEVEL"} })
		Eventually(status).WithArguments(ctx, "web").Should(HaveField("ObservedGeneration", cw.Generation))
		expectRestarts(ctx, web, 0)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 1)
	})

	It("a pod template that begins to use another ConfigMap", func(ctx SpecContext) {
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
		change(ctx, utils.MakeDeployment("web").Namespace(namespace).Obj(), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name = "features"
		})
		Eventually(row).WithArguments(ctx, "web", deployment, "web").
			Should(HaveField("Sources", ConsistOf(HaveField("Name", "features"))))
		expectRestarts(ctx, web, 0)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 0)
		set(ctx, "features", "dark-mode", "on")
		expectRestarts(ctx, web, 1)
	})

	It("a workload that is deleted and created again", func(ctx SpecContext) {
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
		Expect(k8sClient.Delete(ctx, utils.MakeDeployment("web").Namespace(namespace).Obj())).To(Succeed())
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		again := utils.MakeDeployment("web").EnvFromConfigMap("app-config").Obj()
		create(ctx, again)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("UID", string(again.UID)))
		expectRestarts(ctx, web, 0)
	})

	It("a source that was left out and is no more", func(ctx SpecContext) {
		change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) {
			c.Annotations = map[string]string{v1alpha1.IgnoreAnnotation: "true"}
		})
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
		Expect(sourceRow(ctx, "web", v1alpha1.ConfigMap, "app-config")).To(HaveField("State", v1alpha1.SourceIgnored))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 0)
		change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) { c.Annotations = nil })
		Eventually(sourceRow).WithArguments(ctx, "web", v1alpha1.ConfigMap, "app-config").
			Should(HaveField("State", v1alpha1.SourcePresent))
		expectRestarts(ctx, web, 0)
		set(ctx, "app-config", "LOG_LEVEL", "trace")
		expectRestarts(ctx, web, 1)
	})
})
