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
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("A CronJob (E22)", func() {
	DescribeTable("needs no restart and never runs out of schedule,",
		func(ctx SpecContext, cronJobBuilder func() *utils.CronJobBuilder) {
			job := cronJobBuilder().EnvFromConfigMap("app-config").Obj()
			create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(), job)
			establish(ctx, utils.MakeConfigWatch("report").Target(cronJob, "report"))
			set(ctx, "app-config", "LOG_LEVEL", "debug")
			Eventually(notes).WithArguments(ctx, v1alpha1.EventNotRestarted).Should(ConsistOf("ConfigWatch: CronJob " + namespace +
				"/report was not restarted: ConfigMap app-config changed (LOG_LEVEL), and a CronJob needs no restart: " +
				"its next Job reads the present configuration"))
			settle(ctx)
			Expect(row(ctx, "report", cronJob, "report")).To(SatisfyAll(
				HaveField("State", v1alpha1.TargetUpToDate), HaveField("Reason", v1alpha1.ReasonNoRestartNeeded),
				HaveField("Restarts", BeZero()),
				HaveField("Sources", ConsistOf(HaveField("AppliedHash", sourceRow(ctx, "report", v1alpha1.ConfigMap, "app-config").Hash)))))
			before := job.DeepCopy()
			Expect(reload(ctx, job).ResourceVersion).To(Equal(before.ResourceVersion), "nobody has written to it")
			jobs := &batchv1.JobList{}
			Expect(k8sClient.List(ctx, jobs, client.InNamespace(namespace))).To(Succeed())
			Expect(jobs.Items).To(BeEmpty())
			Expect(condition(ctx, "report", v1alpha1.ConditionReady)).To(HaveField("Status", metav1.ConditionTrue))
		},
		Entry("when it is active", func() *utils.CronJobBuilder { return utils.MakeCronJob("report") }),
		Entry("when it is suspended", func() *utils.CronJobBuilder { return utils.MakeCronJob("report").Suspended() }),
	)
})

var _ = Describe("What doesn't exist (E25)", func() {
	BeforeEach(func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(), utils.MakeDeployment("web").Replicas(0).Obj())
	})

	It("is no error while others do: a target is Missing, and picked up when it appears", func(ctx SpecContext) {
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("app-config").Target(deployment, "web").Target(statefulSet, "cache"))
		Expect(row(ctx, "web", statefulSet, "cache")).To(SatisfyAll(
			HaveField("State", v1alpha1.TargetMissing), HaveField("Reason", v1alpha1.ReasonNotFound),
			HaveField("Message", "no such StatefulSet exists; it is picked up when it appears")))
		Expect(condition(ctx, "web", v1alpha1.ConditionReady)).To(Equal(metav1.Condition{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "UpToDate",
			Message: "1 target up to date with 1 source; StatefulSet cache does not exist",
		}))
		Expect(condition(ctx, "web", v1alpha1.ConditionStalled)).To(BeZero())

		create(ctx, utils.MakeStatefulSet("cache").Obj())
		cache := restartsOf(ctx, statefulSet, "cache")
		Eventually(row).WithArguments(ctx, "web", statefulSet, "cache").ShouldNot(HaveField("State", v1alpha1.TargetMissing))
		expectRestarts(ctx, cache, 0)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, cache, 1)
	})

	It("is no error while others do: a source is Missing, and picked up when it appears", func(ctx SpecContext) {
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("app-config").Secret("credentials").Target(deployment, "web"))
		web := restartsOf(ctx, deployment, "web")
		Expect(sourceRow(ctx, "web", v1alpha1.Secret, "credentials")).To(SatisfyAll(
			HaveField("State", v1alpha1.SourceMissing), HaveField("Hash", BeEmpty())))
		Expect(condition(ctx, "web", v1alpha1.ConditionReady)).To(SatisfyAll(HaveField("Status", metav1.ConditionTrue),
			HaveField("Message", "1 target up to date with 2 sources; Secret credentials does not exist")))
		create(ctx, utils.MakeSecret("credentials").Data("password", "before").Obj())
		Eventually(sourceRow).WithArguments(ctx, "web", v1alpha1.Secret, "credentials").Should(HaveField("State", v1alpha1.SourcePresent))
		setSecret(ctx, "credentials", "password", "after")
		expectRestarts(ctx, web, 1)
	})

	DescribeTable("is told, with the nearest name, when nothing at all exists",
		func(ctx SpecContext, b func() *utils.ConfigWatchBuilder, reason, message string) {
			establish(ctx, b())
			Expect(condition(ctx, "web", v1alpha1.ConditionReady)).To(Equal(metav1.Condition{
				Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, Message: message,
			}))
			Eventually(condition).WithArguments(ctx, "web", v1alpha1.ConditionStalled).Should(Equal(metav1.Condition{
				Type: "Stalled", Status: metav1.ConditionTrue, Reason: reason, Message: message,
			}), "once it is no longer to be expected that it appears by itself")
			Eventually(notes).WithArguments(ctx, v1alpha1.EventStalled).Should(ConsistOf("ConfigWatch: " + reason + ": " + message))
		},
		Entry("of the targets", func() *utils.ConfigWatchBuilder {
			return utils.MakeConfigWatch("web").ConfigMap("app-config").Target(deployment, "wep")
		}, "NoTargets", "Deployment wep does not exist (did you mean web?)"),
		Entry("of the sources", func() *utils.ConfigWatchBuilder {
			return utils.MakeConfigWatch("web").ConfigMap("app-confg").Target(deployment, "web")
		}, "NoSources", "ConfigMap app-confg does not exist (did you mean app-config?)"),
		Entry("of several targets", func() *utils.ConfigWatchBuilder {
			return utils.MakeConfigWatch("web").ConfigMap("app-config").Target(daemonSet, "node-agent").Target(statefulSet, "cache")
		}, "NoTargets", "DaemonSet node-agent does not exist, nor 1 other target"),
		Entry("that selectors match", func() *utils.ConfigWatchBuilder {
			return utils.MakeConfigWatch("web").ConfigMap("app-config").Targets(deployment, "tier", "front")
		}, "NoTargets", "no workload in this namespace matches spec.targets, or references a source"),
		Entry("that the targets use", func() *utils.ConfigWatchBuilder {
			return utils.MakeConfigWatch("web").Target(deployment, "web")
		}, "NoSources", "there is nothing to watch: spec.sources matches no ConfigMap or Secret of this namespace, or, "+
			"where it is omitted, no target references one"),
	)

	It("stops being told when it appears", func(ctx SpecContext) {
		establish(ctx, utils.MakeConfigWatch("api").ConfigMap("app-config").Target(deployment, "api"))
		Eventually(condition).WithArguments(ctx, "api", v1alpha1.ConditionStalled).ShouldNot(BeZero())
		create(ctx, utils.MakeDeployment("api").Replicas(0).Obj())
		Eventually(condition).WithArguments(ctx, "api", v1alpha1.ConditionReady).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(condition(ctx, "api", v1alpha1.ConditionStalled)).To(BeZero())
	})
})

var _ = Describe("Overlapping ConfigWatches (E26)", func() {
	It("have each their own annotation and record", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(), utils.MakeConfigMap("ca-bundle").Data("ca.crt", "before").Obj(),
			utils.MakeDeployment("web").EnvFromConfigMap("app-config").EnvFromConfigMap("ca-bundle").Obj())
		establish(ctx, utils.MakeConfigWatch("mine").ConfigMap("app-config").Target(deployment, "web"),
			utils.MakeConfigWatch("cluster-wide").ConfigMap("ca-bundle").ConfigMap("app-config"))
		web := restartsOf(ctx, deployment, "web")
		set(ctx, "ca-bundle", "ca.crt", "after")
		expectRestarts(ctx, web, 1)
		Expect(web.Marks()).To(ConsistOf(HavePrefix("cluster-wide=1-")))
		Expect(row(ctx, "mine", deployment, "web").Restarts).To(BeZero())

		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 3)
		Expect(web.Marks()[1:]).To(ConsistOf(HavePrefix("cluster-wide=2-"), HavePrefix("mine=1-")))
		Eventually(row).WithArguments(ctx, "mine", deployment, "web").Should(HaveField("Restarts", int64(1)))
		Eventually(row).WithArguments(ctx, "cluster-wide", deployment, "web").Should(HaveField("Restarts", int64(2)))
	})

	It("don't touch each other when one is deleted", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(), utils.MakeDeployment("web").Obj())
		establish(ctx, utils.MakeConfigWatch("one").ConfigMap("app-config").Target(deployment, "web"),
			utils.MakeConfigWatch("two").ConfigMap("app-config").Target(deployment, "web"))
		web := restartsOf(ctx, deployment, "web")
		Expect(k8sClient.Delete(ctx, utils.MakeConfigWatch("one").Namespace(namespace).Obj())).To(Succeed())
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 1)
		Expect(web.Marks()).To(ConsistOf(HavePrefix("two=1-")))
	})
})
