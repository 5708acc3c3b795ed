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
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/hack/controlplane"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("A restarted workload", func() {
	app := func() *utils.DeploymentBuilder { return utils.MakeDeployment("app").EnvFromConfigMap("app-config") }
	set3 := func() *utils.StatefulSetBuilder {
		return utils.MakeStatefulSet("app").Replicas(3).EnvFromConfigMap("app-config")
	}

	DescribeTable("is followed until it is rolled out (E16, E27)",
		func(ctx SpecContext, kind string, replicas int, workload func() client.Object) {
			restarts := establish(ctx, kind, workload())
			states := watchStates(ctx)
			old, err := pods(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(old).To(HaveLen(replicas))

			set(ctx, "debug")
			expectRow(ctx, kind, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
			Eventually(states).Should(Equal([]v1alpha1.TargetState{v1alpha1.TargetUpToDate, v1alpha1.TargetRollingOut, v1alpha1.TargetUpToDate}))
			Expect(here.Condition(ctx, "app", v1alpha1.ConditionReady)).To(Equal(metav1.Condition{
				Type: "Ready", Status: metav1.ConditionTrue, Reason: "UpToDate", Message: "1 target up to date with 1 source",
			}))
			expectCondition(ctx, v1alpha1.ConditionReconciling, "", "")
			now, err := pods(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(now).To(HaveLen(replicas))
			for name, pod := range now {
				Expect(pod.UID).NotTo(Equal(old[name].UID), "pod %s is new", name)
				Expect(pod.Annotations).To(HaveKeyWithValue(v1alpha1.RestartAnnotationPrefix+"app", HavePrefix("1-")))
			}
			name := kind + " " + here.Name + "/app"
			Eventually(here.Notes).WithArguments(ctx, v1alpha1.EventRestartTriggered).Should(ConsistOf(
				"ConfigWatch: Restarted "+name+": "+changed, kind+": Restarted "+name+": "+changed))
			Eventually(here.Notes).WithArguments(ctx, v1alpha1.EventRolloutCompleted).Should(ConsistOf(
				"ConfigWatch: " + name + " is rolled out: " + changed))
			Expect(restarts.Count()).To(Equal(1))
		},
		Entry("for a Deployment", deployment, 2, func() client.Object { return app().Replicas(2).Obj() }),
		Entry("for a StatefulSet", statefulSet, 3, func() client.Object { return set3().Obj() }),
		Entry("for a DaemonSet", daemonSet, 1, func() client.Object {
			return utils.MakeDaemonSet("app").EnvFromConfigMap("app-config").Obj()
		}),
	)

	It("that fails to roll out is Failed, and Stalled, until it recovers (E16)", func(ctx SpecContext) {
		restarts := establish(ctx, deployment, app().ProgressDeadline(2).Obj())
		cordon(ctx, true)
		DeferCleanup(func(ctx SpecContext) { cordon(ctx, false) })
		set(ctx, "debug")
		const failed = changed + ". Progress deadline exceeded"
		expectRow(ctx, deployment, v1alpha1.TargetFailed, v1alpha1.ReasonRolloutFailed, failed)
		expectCondition(ctx, v1alpha1.ConditionStalled, v1alpha1.ReasonRolloutFailed, "Deployment app: "+failed)
		Eventually(here.Notes).WithArguments(ctx, v1alpha1.EventRolloutFailed).Should(ConsistOf(
			"ConfigWatch: Deployment "+here.Name+"/app failed to roll out: "+failed,
			"Deployment: Deployment "+here.Name+"/app failed to roll out: "+failed))

		cordon(ctx, false)
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		expectCondition(ctx, v1alpha1.ConditionStalled, "", "")
		Expect(restarts.Count()).To(Equal(1))
	})

	It("that is paused waits for its user, and spec.paused is left alone (E23)", func(ctx SpecContext) {
		restarts := establish(ctx, deployment, app().Obj())
		pause := func(paused bool) {
			change(ctx, utils.MakeDeployment("app").Obj(), func(d *appsv1.Deployment) { d.Spec.Paused = paused })
		}
		pause(true)
		set(ctx, "debug")
		const waits = changed + ". spec.paused is true: its pods stay old until that is false"
		expectRow(ctx, deployment, v1alpha1.TargetRollingOut, v1alpha1.ReasonRolloutPaused, waits)
		Expect(restarts.Count()).To(Equal(1), "it is patched")
		d := utils.MakeDeployment("app").Namespace(here.Name).Obj()
		Expect(utils.Reload(ctx, k8sClient, d)).To(Succeed())
		Expect(d.Spec.Paused).To(BeTrue())

		pause(false)
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		Expect(restarts.Count()).To(Equal(1))
	})

	It("of strategy OnDelete is Blocked until its pods are deleted, which are named (E23), for a StatefulSet", func(ctx SpecContext) {
		restarts := establish(ctx, statefulSet, set3().OnDelete().Obj())
		Eventually(pods).WithArguments(ctx).Should(HaveLen(3))
		set(ctx, "debug")
		const waits = changed + ". its updateStrategy is OnDelete: delete pods app-0 to app-2, as far as they are old (0 of 3 are new)"
		expectRow(ctx, statefulSet, v1alpha1.TargetBlocked, v1alpha1.ReasonUpdateStrategyOnDelete, waits)
		expectCondition(ctx, v1alpha1.ConditionStalled, v1alpha1.ReasonBlocked, "StatefulSet app: "+waits)
		Eventually(here.Notes).WithArguments(ctx, v1alpha1.EventRolloutBlocked).Should(ContainElement(
			"ConfigWatch: StatefulSet " + here.Name + "/app keeps old pods: " + waits))
		deletePods(ctx)
		expectRow(ctx, statefulSet, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		expectCondition(ctx, v1alpha1.ConditionStalled, "", "")
		Expect(restarts.Count()).To(Equal(1))
	})

	It("of strategy OnDelete is Blocked until its pods are deleted (E23), for a DaemonSet", func(ctx SpecContext) {
		restarts := establish(ctx, daemonSet, utils.MakeDaemonSet("app").EnvFromConfigMap("app-config").OnDelete().Obj())
		Eventually(pods).WithArguments(ctx).Should(HaveLen(1))
		set(ctx, "debug")
		expectRow(ctx, daemonSet, v1alpha1.TargetBlocked, v1alpha1.ReasonUpdateStrategyOnDelete, changed+
			". its updateStrategy is OnDelete: delete its old pods, kubectl delete pod -n "+here.Name+" -l 'app=app' (0 of 1 are new)")
		By("doing what the message says")
		kubectl(ctx, "delete", "pod", "-n", here.Name, "-l", "app=app")
		expectRow(ctx, daemonSet, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		Expect(restarts.Count()).To(Equal(1))
	})

	It("with a partition is Blocked until that is lowered (E23)", func(ctx SpecContext) {
		restarts := establish(ctx, statefulSet, set3().Partition(2).Obj())
		Eventually(pods).WithArguments(ctx).Should(HaveLen(3))
		set(ctx, "debug")
		const waits = changed + ". spec.updateStrategy.rollingUpdate.partition is 2, which keeps pods app-0 to app-1 old until it is lowered"
		expectRow(ctx, statefulSet, v1alpha1.TargetBlocked, v1alpha1.ReasonPartitionedRollout, waits)
		change(ctx, utils.MakeStatefulSet("app").Obj(), func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](0)
		})
		expectRow(ctx, statefulSet, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		Expect(restarts.Count()).To(Equal(1))
	})

	It("of no replicas is up to date at once (E23)", func(ctx SpecContext) {
		restarts := establish(ctx, deployment, app().Replicas(0).Obj())
		set(ctx, "debug")
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonScaledToZero, changed)
		expectCondition(ctx, v1alpha1.ConditionReconciling, "", "")
		Expect(restarts.Count()).To(Equal(1))
	})

	It("isn't restarted again when it is rolled back, nor when somebody else restarts it (E10)", func(ctx SpecContext) {
		restarts := establish(ctx, deployment, app().Obj())
		for n, level := range []string{"debug", "trace"} {
			set(ctx, level)
			Eventually(restarts.Count).Should(Equal(n + 1))
			expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		}
		kubectl(ctx, "rollout", "undo", "deployment/app")
		kubectl(ctx, "rollout", "status", "deployment/app")
		kubectl(ctx, "rollout", "restart", "deployment/app")
		kubectl(ctx, "rollout", "status", "deployment/app")
		Consistently(restarts.Count).Should(Equal(2))
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		set(ctx, "warn")
		Eventually(restarts.Count).Should(Equal(3))
	})
})

var _ = Describe("A CronJob (E22)", func() {
	It("isn't run out of schedule", func(ctx SpecContext) {
		create(ctx, utils.MakeCronJob("app").EnvFromConfigMap("app-config").Obj(), utils.MakeConfigWatch("app").Target(cronJob, "app").Obj())
		Eventually(here.Row).WithArguments(ctx, "app", cronJob, "app").Should(HaveField("Sources", HaveLen(1)))
		set(ctx, "debug")
		Eventually(here.Notes).WithArguments(ctx, v1alpha1.EventNotRestarted).Should(HaveLen(1))
		expectRow(ctx, cronJob, v1alpha1.TargetUpToDate, v1alpha1.ReasonNoRestartNeeded,
			"a CronJob needs no restart: its next Job reads the present configuration")
		jobs := &batchv1.JobList{}
		Consistently(func() ([]batchv1.Job, error) {
			err := k8sClient.List(ctx, jobs, client.InNamespace(here.Name))
			return jobs.Items, err
		}).Should(BeEmpty())
	})
})

// watchStates watches the row of the workload app, and is its states so far, without repetitions.
func watchStates(ctx context.Context) func() []v1alpha1.TargetState {
	GinkgoHelper()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	w, err := k8sClient.Watch(watching, &v1alpha1.ConfigWatchList{}, client.InNamespace(here.Name))
	Expect(err).NotTo(HaveOccurred())
	var (
		mu     sync.Mutex
		states []v1alpha1.TargetState
	)
	go func() {
		for event := range w.ResultChan() {
			cw, ok := event.Object.(*v1alpha1.ConfigWatch)
			mu.Lock()
			if ok && (len(states) == 0 || states[len(states)-1] != cw.Status.Targets[0].State) {
				states = append(states, cw.Status.Targets[0].State)
			}
			mu.Unlock()
		}
	}()
	return func() []v1alpha1.TargetState {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(states)
	}
}

// cordon keeps pods from being scheduled, or lets them be.
func cordon(ctx context.Context, unschedulable bool) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: controlplane.NodeName}}
	Expect(utils.Change(ctx, k8sClient, node, func(n *corev1.Node) { n.Spec.Unschedulable = unschedulable })).To(Succeed())
}

func deletePods(ctx context.Context) {
	GinkgoHelper()
	Expect(k8sClient.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(here.Name), client.GracePeriodSeconds(0))).To(Succeed())
}
