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
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("Which transitions restart (E6)", func() {
	const content, other = "info", "debug"

	appear := func(ctx context.Context, value string) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", value).Obj())
		Eventually(sourceRow).WithArguments(ctx, "web", v1alpha1.ConfigMap, "app-config").
			Should(HaveField("State", v1alpha1.SourcePresent))
	}
	disappear := func(ctx context.Context) {
		Expect(k8sClient.Delete(ctx, configMap("app-config"))).To(Succeed())
		Eventually(sourceRow).WithArguments(ctx, "web", v1alpha1.ConfigMap, "app-config").
			Should(HaveField("State", v1alpha1.SourceMissing))
	}
	modify := func(ctx context.Context) { set(ctx, "app-config", "LOG_LEVEL", other) }

	DescribeTable("of a source that exists at first",
		func(ctx SpecContext, on []v1alpha1.Change, steps func(context.Context), restarts int) {
			create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", content).Obj(), utils.MakeDeployment("web").Obj())
			establish(ctx, utils.MakeConfigWatch("web").ConfigMap("app-config").RestartOn(on...).Target(deployment, "web"))
			web := restartsOf(ctx, deployment, "web")
			steps(ctx)
			expectRestarts(ctx, web, restarts)
		},
		Entry("by default, a change", nil, modify, 1),
		Entry("by default, not its deletion", nil, disappear, 0),
		Entry("its deletion, where that is listed", []v1alpha1.Change{v1alpha1.Deleted}, disappear, 1),
		Entry("not a change, where only others are listed", []v1alpha1.Change{v1alpha1.Added, v1alpha1.Deleted}, modify, 0),
		Entry("by default, not that it comes back as it was", nil, func(ctx context.Context) {
			disappear(ctx)
			appear(ctx, content)
		}, 0),
		Entry("by default, that it comes back with other content: modified", nil, func(ctx context.Context) {
			disappear(ctx)
			appear(ctx, other)
		}, 1),
		Entry("where Added is listed, not that it comes back as it was: it is compared with that", []v1alpha1.Change{v1alpha1.Added},
			func(ctx context.Context) {
				disappear(ctx)
				appear(ctx, content)
			}, 0),
		Entry("each, where each is listed", []v1alpha1.Change{v1alpha1.Added, v1alpha1.Modified, v1alpha1.Deleted}, func(ctx context.Context) {
			disappear(ctx)
			appear(ctx, content)
		}, 2),
	)

	DescribeTable("of a source that doesn't exist at first",
		func(ctx SpecContext, on []v1alpha1.Change, steps func(context.Context), restarts int) {
			create(ctx, utils.MakeDeployment("web").Obj())
			establish(ctx, utils.MakeConfigWatch("web").ConfigMap("app-config").RestartOn(on...).Target(deployment, "web"))
			web := restartsOf(ctx, deployment, "web")
			steps(ctx)
			expectRestarts(ctx, web, restarts)
		},
		Entry("by default, not that it appears", nil, func(ctx context.Context) { appear(ctx, content) }, 0),
		Entry("that it appears, where that is listed", []v1alpha1.Change{v1alpha1.Added}, func(ctx context.Context) { appear(ctx, content) }, 1),
		Entry("a change after it appeared", nil, func(ctx context.Context) {
			appear(ctx, content)
			modify(ctx)
		}, 1),
	)

	It("restarts when a source that a selector newly matches appears, where Added is listed", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("a").Label("for", "web").Data("k", "v").Obj(), utils.MakeDeployment("web").Obj())
		establish(ctx, utils.MakeConfigWatch("web").Sources(v1alpha1.ConfigMap, "for", "web").
			RestartOn(v1alpha1.Added, v1alpha1.Modified).Target(deployment, "web"))
		web := restartsOf(ctx, deployment, "web")
		create(ctx, utils.MakeConfigMap("b").Label("for", "web").Data("k", "v").Obj())
		expectRestarts(ctx, web, 1)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Message", "ConfigMap b appeared"))
	})
})

var _ = Describe("Modes that wait (E19)", func() {
	var (
		web *utils.Restarts
		cw  *v1alpha1.ConfigWatch
	)
	begin := func(ctx context.Context, mode v1alpha1.Mode) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(),
			utils.MakeDeployment("web").EnvFromConfigMap("app-config").Obj())
		b := utils.MakeConfigWatch("web").Mode(mode).Target(deployment, "web")
		establish(ctx, b)
		cw = b.Obj()
		web = restartsOf(ctx, deployment, "web")
	}
	activate := func(ctx context.Context) {
		change(ctx, cw, func(cw *v1alpha1.ConfigWatch) { cw.Spec.Mode = v1alpha1.ModeActive })
	}

	DescribeTable("say what would be done, and do it once they are over",
		func(ctx SpecContext, mode v1alpha1.Mode, note string) {
			begin(ctx, mode)
			set(ctx, "app-config", "LOG_LEVEL", "debug")
			Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(SatisfyAll(
				HaveField("State", v1alpha1.TargetPending), HaveField("Reason", string(mode)),
				HaveField("Message", "ConfigMap app-config changed (LOG_LEVEL)")))
			Eventually(notes).WithArguments(ctx, v1alpha1.EventRestartHeld).Should(ConsistOf("ConfigWatch: Deployment " + namespace + "/web " + note))
			expectRestarts(ctx, web, 0)

			activate(ctx)
			expectRestarts(ctx, web, 1)
			Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Message", "ConfigMap app-config changed (LOG_LEVEL)"))
		},
		Entry("DryRun", v1alpha1.ModeDryRun, "would be restarted (spec.mode is DryRun): ConfigMap app-config changed (LOG_LEVEL)"),
		Entry("Suspended", v1alpha1.ModeSuspended, "is restarted once spec.mode is Active again: ConfigMap app-config changed (LOG_LEVEL)"),
	)

	It("gather changes into one restart", func(ctx SpecContext) {
		begin(ctx, v1alpha1.ModeSuspended)
		for _, level := range []string{"debug", "trace", "warn"} {
			set(ctx, "app-config", "LOG_LEVEL", level)
			settle(ctx)
		}
		activate(ctx)
		expectRestarts(ctx, web, 1)
	})

	It("owe nothing for a change that was taken back", func(ctx SpecContext) {
		begin(ctx, v1alpha1.ModeSuspended)
		finish(ctx, "web") // as pods that are started meanwhile might run what is taken back (E13)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("State", v1alpha1.TargetUpToDate))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("State", v1alpha1.TargetPending))
		set(ctx, "app-config", "LOG_LEVEL", "info")
		Eventually(row).WithArguments(ctx, "web", deployment, "web").ShouldNot(HaveField("State", v1alpha1.TargetPending))
		activate(ctx)
		expectRestarts(ctx, web, 0)
	})

	It("lose no change over a restart of the manager", func(ctx SpecContext) {
		begin(ctx, v1alpha1.ModeSuspended)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("State", v1alpha1.TargetPending))
		manager.Kill()
		startManager(ctx)
		expectRestarts(ctx, web, 0)
		activate(ctx)
		expectRestarts(ctx, web, 1)
	})
})

var _ = Describe("What is left out", func() {
	It("leaves out what is annotated to be, and doesn't restart it for what it missed when it no longer is", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(),
			utils.MakeDeployment("web").Annotation(v1alpha1.IgnoreAnnotation, "true").EnvFromConfigMap("app-config").Obj(),
			utils.MakeDeployment("api").EnvFromConfigMap("app-config").Obj())
		establish(ctx, utils.MakeConfigWatch("all").ConfigMap("app-config").Target(deployment, "web").Target(deployment, "api"))
		web, api := restartsOf(ctx, deployment, "web"), restartsOf(ctx, deployment, "api")
		Expect(row(ctx, "all", deployment, "web")).To(SatisfyAll(
			HaveField("State", v1alpha1.TargetIgnored), HaveField("Reason", v1alpha1.ReasonIgnoredByAnnotation)))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, api, 1)
		expectRestarts(ctx, web, 0)

		change(ctx, utils.MakeDeployment("web").Namespace(namespace).Obj(), func(d *appsv1.Deployment) { d.Annotations = nil })
		Eventually(row).WithArguments(ctx, "all", deployment, "web").ShouldNot(HaveField("State", v1alpha1.TargetIgnored))
		expectRestarts(ctx, web, 0)
		set(ctx, "app-config", "LOG_LEVEL", "trace")
		expectRestarts(ctx, web, 1)
	})

	It("leaves out keys that are not listed", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Data("BANNER", "hello").Obj(), utils.MakeDeployment("web").Obj())
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("app-config").Keys("LOG_LEVEL", "EXTRA").Target(deployment, "web"))
		web := restartsOf(ctx, deployment, "web")
		set(ctx, "app-config", "BANNER", "good day")
		expectRestarts(ctx, web, 0)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 1)
		set(ctx, "app-config", "EXTRA", "")
		expectRestarts(ctx, web, 2)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Message", "ConfigMap app-config changed (EXTRA)"))
	})

	It("follows labels as they come and go", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("a").Label("for", "web").Data("k", "v").Obj(), utils.MakeConfigMap("b").Data("k", "v").Obj(),
			utils.MakeDeployment("web").Label("tier", "front").Obj(), utils.MakeDeployment("api").Obj())
		establish(ctx, utils.MakeConfigWatch("front").Sources(v1alpha1.ConfigMap, "for", "web").Targets(deployment, "tier", "front"))
		web, api := restartsOf(ctx, deployment, "web"), restartsOf(ctx, deployment, "api")
		set(ctx, "b", "k", "other")
		expectRestarts(ctx, web, 0)
		change(ctx, configMap("b"), func(c *corev1.ConfigMap) { c.Labels = map[string]string{"for": "web"} })
		change(ctx, utils.MakeDeployment("api").Namespace(namespace).Obj(), func(d *appsv1.Deployment) { d.Labels = map[string]string{"tier": "front"} })
		Eventually(row).WithArguments(ctx, "front", deployment, "api").Should(HaveField("Sources", HaveLen(2)))
		expectRestarts(ctx, web, 0)
		set(ctx, "b", "k", "yet another")
		expectRestarts(ctx, web, 1)
		expectRestarts(ctx, api, 1)
		change(ctx, utils.MakeDeployment("api").Namespace(namespace).Obj(), func(d *appsv1.Deployment) { d.Labels = nil })
		Eventually(row).WithArguments(ctx, "front", deployment, "api").Should(BeZero())
		set(ctx, "a", "k", "other")
		expectRestarts(ctx, web, 2)
		expectRestarts(ctx, api, 1)
	})
})
