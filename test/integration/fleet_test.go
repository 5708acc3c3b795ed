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
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

// watchRollouts watches the rollouts of the test's namespace from now on.
func watchRollouts(ctx context.Context) *utils.Rollouts {
	GinkgoHelper()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	rollouts, err := utils.WatchRollouts(watching, k8sClient, namespace)
	Expect(err).NotTo(HaveOccurred())
	return rollouts
}

var _ = Describe("The rollouts of all ConfigWatches", func() {
	// fleets creates ConfigWatches, each with a Secret of its name and Deployments that are rolled out.
	fleets := func(ctx context.Context, targets map[string][]string) {
		GinkgoHelper()
		for name, deployments := range targets {
			create(ctx, utils.MakeSecret(name).Data("password", planted+"-before").Obj())
			b := utils.MakeConfigWatch(name).Secret(name)
			for _, d := range deployments {
				create(ctx, utils.MakeDeployment(d).Obj())
				finish(ctx, d)
				b = b.Target(deployment, d)
			}
			create(ctx, b.Obj())
		}
		for name := range targets {
			Eventually(condition).WithArguments(ctx, name, v1alpha1.ConditionReady).Should(HaveField("Status", metav1.ConditionTrue))
		}
	}

	It("are never more than --max-concurrent-rollouts, in turn by ConfigWatch, nor after a kill -9 in between (E18)", func(ctx SpecContext) {
		insteadOfManager()
		args := []string{"--max-concurrent-rollouts=1", "--watch-namespaces=" + namespace} // elsewhere are rollouts that are never complete
		m := run(ctx, kubeconfig, args...)
		DeferCleanup(func() { m.Stop() })
		fleets(ctx, map[string][]string{"few": {"few-0", "few-1"}, "many": {"many-0", "many-1", "many-2", "many-3"}})
		rollouts := watchRollouts(ctx)
		const waits = ". It waits for its turn: as many targets of all ConfigWatches roll out as --max-concurrent-rollouts allows"

		setSecret(ctx, "many", "password", planted+"-after")
		Eventually(rollouts.Begun).Should(Equal([]string{"many-0"}))
		setSecret(ctx, "few", "password", planted+"-after")
		for configWatch, name := range map[string]string{"few": "few-0", "many": "many-1"} {
			Eventually(row).WithArguments(ctx, configWatch, deployment, name).Should(SatisfyAll(
				HaveField("Reason", v1alpha1.ReasonAwaitingTurn), HaveField("Message", "Secret "+configWatch+" changed (password)"+waits)))
		}
		turns := []string{"many-0", "many-1", "few-0", "many-2"} // many was the first to wait
		for i, name := range turns[:3] {
			Eventually(rollouts.Begun).Should(Equal(turns[:i+1]))
			finish(ctx, name)
		}

		By("killing it")
		Eventually(rollouts.Begun).Should(Equal(turns))
		m.Kill()
		m = run(ctx, kubeconfig, args...)
		Eventually(row).WithArguments(ctx, "many", deployment, "many-2").Should(HaveField("Reason", v1alpha1.ReasonRolloutInProgress))
		Consistently(rollouts.Begun).WithTimeout(500 * time.Millisecond).Should(Equal(turns))
		for i := len(turns); i <= 6; i++ {
			Eventually(rollouts.Begun).Should(HaveLen(i))
			finish(ctx, rollouts.Begun()[i-1])
		}
		for _, name := range []string{"few", "many"} {
			Eventually(condition).WithArguments(ctx, name, v1alpha1.ConditionReady).Should(HaveField("Status", metav1.ConditionTrue))
		}
		Expect(rollouts.Begun()[len(turns):]).To(ConsistOf("few-1", "many-3"))
		Expect(rollouts.Most()).To(Equal(1))
		expectNothingPlanted(ctx, m)
	})

	It("are counted by the metrics, by the state of the target and by how long they took", func(ctx SpecContext) {
		insteadOfManager()
		address := freeAddress()
		args := []string{"--watch-namespaces=" + namespace, "--metrics-bind-address=" + address, "--metrics-secure=false"}
		m := run(ctx, kubeconfig, args...)
		DeferCleanup(func() { m.Stop() })
		metric := func(series string) float64 {
			for line := range strings.Lines(get("http://" + address + "/metrics")) {
				if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
					n, err := strconv.ParseFloat(value, 64)
					Expect(err).NotTo(HaveOccurred())
					return n
				}
			}
			return 0
		}
		targets := func() map[v1alpha1.TargetState]float64 {
			counts := map[v1alpha1.TargetState]float64{}
			for _, state := range []v1alpha1.TargetState{
				v1alpha1.TargetUpToDate, v1alpha1.TargetPending, v1alpha1.TargetRollingOut, v1alpha1.TargetFailed, v1alpha1.TargetHalted,
			} {
				if n := metric(`configwatch_targets{state="` + string(state) + `"}`); n != 0 {
					counts[state] = n
				}
			}
			return counts
		}
		type states = map[v1alpha1.TargetState]float64
		fleets(ctx, map[string][]string{"one": {"a", "b", "c"}, "other": {"d"}})
		Eventually(targets).Should(Equal(states{v1alpha1.TargetUpToDate: 4}))

		By("rolling three at once, of which one is complete and one fails")
		setSecret(ctx, "one", "password", planted+"-after")
		Eventually(targets).Should(Equal(states{v1alpha1.TargetUpToDate: 1, v1alpha1.TargetRollingOut: 3}))
		finish(ctx, "a")
		Expect(utils.FailRollout(ctx, k8sClient, namespace, "b")).To(Succeed())
		settled := states{v1alpha1.TargetUpToDate: 2, v1alpha1.TargetRollingOut: 1, v1alpha1.TargetFailed: 1}
		Eventually(targets).Should(Equal(settled))
		Expect(metric(`configwatch_rollout_seconds_count{result="completed"}`)).To(Equal(1.0))
		Expect(metric(`configwatch_rollout_seconds_count{result="failed"}`)).To(Equal(1.0))
		Expect(metric(`configwatch_restarts_total{kind="Deployment",result="restarted"}`)).To(Equal(3.0))
		Expect(metric(`configwatch_rollout_seconds_sum{result="completed"}`)).To(BeNumerically("~", 0, 20))

		By("starting again, in the middle of a rollout")
		m.Kill()
		m = run(ctx, kubeconfig, args...)
		Eventually(targets).Should(Equal(settled))
		finish(ctx, "c")
		Eventually(targets).Should(Equal(states{v1alpha1.TargetUpToDate: 3, v1alpha1.TargetFailed: 1}))
		Expect(metric(`configwatch_rollout_seconds_count{result="completed"}`)).To(Equal(1.0), "as counted by this process")
		Expect(metric(`configwatch_rollout_seconds_count{result="failed"}`)).To(BeZero())

		expectNothingPlanted(ctx, m)
		expectNoTrace("metrics", get("http://"+address+"/metrics"), planted)

		By("deleting ConfigWatches")
		Expect(k8sClient.Delete(ctx, utils.MakeConfigWatch("one").Namespace(namespace).Obj())).To(Succeed())
		Eventually(targets).Should(Equal(states{v1alpha1.TargetUpToDate: 1}))
		Expect(k8sClient.Delete(ctx, utils.MakeConfigWatch("other").Namespace(namespace).Obj())).To(Succeed())
		Eventually(targets).Should(BeEmpty())
	})
})
