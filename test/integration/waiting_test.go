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
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/hashkey"
	"github.com/ktechhub/configwatch/test/utils"
)

// planted begins every value of a Secret in these tests. Its length is a multiple of 3, so that base64 of the value
// begins with base64 of it.
const planted = "canary-6f1d0c7be9a"

// rarely is a window that isn't open while these tests run.
var rarely = v1alpha1.Window{Schedule: "0 0 29 2 *", DurationMinutes: 1}

var _ = Describe("A restart that waits", func() {
	var web *utils.Restarts

	// begin makes a Deployment that is rolled out, and a ConfigWatch of it.
	begin := func(ctx context.Context, rollout v1alpha1.RolloutSpec) {
		GinkgoHelper()
		rollout.MaxConcurrent = 1
		create(ctx, utils.MakeSecret("credentials").Data("password", planted+"-before").Obj(),
			utils.MakeDeployment("web").EnvFromSecret("credentials").Obj())
		finish(ctx, "web")
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web").Rollout(rollout))
		web = restartsOf(ctx, deployment, "web")
	}
	const (
		changed = "Secret credentials changed (password)"
		read    = "get deployments (apps) "
		patched = "patch deployments (apps) "
		written = "update configwatches/status (configwatch.ktechhub.io) "
		told    = "create events (events.k8s.io) "
	)

	AfterEach(func(ctx SpecContext) {
		expectNothingPlanted(ctx, manager)
	})

	It("costs one read and one status write when it begins, nothing while it lasts, and one status write when it is made (E13, E28)", func(ctx SpecContext) {
		begin(ctx, v1alpha1.RolloutSpec{SettleSeconds: new(int32(2))})
		mark := since()
		setSecret(ctx, "credentials", "password", planted+"-after")
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Reason", v1alpha1.ReasonSettling))
		waiting := row(ctx, "web", deployment, "web").Wait
		Expect(requestsOf(utils.ManagerUser, mark)).To(HaveExactElements(
			read+namespace+"/web: 200", written+namespace+"/web: 200"))
		Expect(waiting.Template).To(HaveField("Generation", int64(1)))

		expectRestarts(ctx, web, 1)
		Expect(time.Now()).To(BeTemporally(">=", waiting.SettlingSince.Add(2*time.Second)))
		Eventually(notes).WithArguments(ctx, v1alpha1.EventRestartTriggered).Should(HaveLen(2))
		settle(ctx)
		Expect(requestsOf(utils.ManagerUser, mark)).To(HaveExactElements(
			HavePrefix(read), HavePrefix(written),
			patched+namespace+"/web: 200", written+namespace+"/web: 200", HavePrefix(told), HavePrefix(told)))
	})

	It("costs no request at all while it waits for long (E28)", func(ctx SpecContext) {
		begin(ctx, v1alpha1.RolloutSpec{SettleSeconds: new(int32(0)), Windows: []v1alpha1.Window{rarely}})
		setSecret(ctx, "credentials", "password", planted+"-after")
		Eventually(notes).WithArguments(ctx, v1alpha1.EventRestartDelayed).Should(ConsistOf(SatisfyAll(
			HavePrefix("ConfigWatch: Deployment "+namespace+"/web: not restarted yet: "+changed+". The next window opens "), HaveSuffix("-02-29T00:00 UTC"))))
		mark := since()
		Consistently(idleRequests).WithArguments(mark).WithTimeout(steadyWhile).Should(BeEmpty())
		Expect(web.Count()).To(BeZero())
	})

	It("isn't read for what needn't wait: only for those that wait for a turn (E13, E16)", func(ctx SpecContext) {
		names := []string{"a", "b", "c"}
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj())
		b := utils.MakeConfigWatch("all").ConfigMap("app-config").Rollout(v1alpha1.RolloutSpec{SettleSeconds: new(int32(0)), MaxConcurrent: 2})
		for _, name := range names {
			create(ctx, utils.MakeDeployment(name).Obj())
			finish(ctx, name)
			b = b.Target(deployment, name)
		}
		establish(ctx, b)
		mark := since()
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(row).WithArguments(ctx, "all", deployment, "c").Should(SatisfyAll(
			HaveField("Reason", v1alpha1.ReasonAwaitingTurn),
			HaveField("Message", "ConfigMap app-config changed (LOG_LEVEL). It waits for its turn: at most 2 targets roll out at once (spec.rollout.maxConcurrent)")))
		Expect(readOf(mark)).To(ConsistOf(read + namespace + "/c: 200"))
		for _, name := range names {
			Eventually(row).WithArguments(ctx, "all", deployment, name).Should(HaveField("Reason", v1alpha1.ReasonRolloutInProgress))
			finish(ctx, name)
		}
		Eventually(condition).WithArguments(ctx, "all", v1alpha1.ConditionReady).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(readOf(mark)).To(HaveLen(1))
	})

	It("is approved by the hash of what is there, and says so if the hash is another (E14)", func(ctx SpecContext) {
		begin(ctx, v1alpha1.RolloutSpec{SettleSeconds: new(int32(0)), Approval: v1alpha1.ApprovalManual})
		approve := func(hash string) { annotate(ctx, "web", v1alpha1.ApproveAnnotation, hash) }
		awaits := func(note string) string {
			hash := status(ctx, "web").ApprovalHash
			Expect(hash).NotTo(BeEmpty())
			message := changed + ". It awaits approval: annotate the ConfigWatch with configwatch.ktechhub.io/approve=" + hash + note
			Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(SatisfyAll(
				HaveField("State", v1alpha1.TargetPending), HaveField("Reason", v1alpha1.ReasonAwaitingApproval), HaveField("Message", message)))
			Eventually(condition).WithArguments(ctx, "web", v1alpha1.ConditionReady).Should(SatisfyAll(
				HaveField("Reason", v1alpha1.ReasonAwaitingApproval), HaveField("Message", ContainSubstring(message))))
			return hash
		}
		const wrong = " (the annotation configwatch.ktechhub.io/approve names another hash)"
		setSecret(ctx, "credentials", "password", planted+"-first")
		Eventually(status).WithArguments(ctx, "web").Should(HaveField("ApprovalHash", Not(BeEmpty())))
		first := awaits("")
		approve("0123456789abcdef")
		Expect(awaits(wrong)).To(Equal(first))
		expectRestarts(ctx, web, 0)

		By("taking the approval of one content for no other")
		setSecret(ctx, "credentials", "password", planted+"-second")
		Eventually(status).WithArguments(ctx, "web").ShouldNot(HaveField("ApprovalHash", first))
		approve(first)
		second := awaits(wrong)
		expectRestarts(ctx, web, 0)

		By("approving it")
		approve(second)
		expectRestarts(ctx, web, 1)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(SatisfyAll(
			HaveField("Reason", v1alpha1.ReasonRolloutInProgress), HaveField("Message", changed)))
		Expect(status(ctx, "web").ApprovalHash).To(BeEmpty())
		finish(ctx, "web")

		By("asking again for what comes after it")
		setSecret(ctx, "credentials", "password", planted+"-third")
		Eventually(status).WithArguments(ctx, "web").Should(HaveField("ApprovalHash", Not(BeEmpty())))
		Expect(awaits(wrong)).NotTo(Equal(second))
		expectRestarts(ctx, web, 1)
	})

	It("is made at once when a human requests it, once for each request, whatever there is to wait for (E14)", func(ctx SpecContext) {
		begin(ctx, v1alpha1.RolloutSpec{
			SettleSeconds: new(int32(3600)), CooldownSeconds: new(int32(3600)), Approval: v1alpha1.ApprovalManual, Windows: []v1alpha1.Window{rarely},
		})
		request := func(at string) { annotate(ctx, "web", v1alpha1.RestartRequestedAtAnnotation, at) }
		mark := since()
		request("2026-01-02T15:04:05Z")
		expectRestarts(ctx, web, 1)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Message", "a restart was requested at 2026-01-02T15:04:05Z"))
		Expect(status(ctx, "web").RestartRequestedAt.UTC().Format(time.RFC3339)).To(Equal("2026-01-02T15:04:05Z"))
		Expect(readOf(mark)).To(BeEmpty(), "it didn't wait")
		Eventually(notes).WithArguments(ctx, v1alpha1.EventRestartTriggered).Should(ConsistOf(
			"ConfigWatch: Restarted Deployment "+namespace+"/web: a restart was requested at 2026-01-02T15:04:05Z",
			"Deployment: Restarted Deployment "+namespace+"/web: a restart was requested at 2026-01-02T15:04:05Z"))

		for _, old := range []string{"2026-01-02T16:04:05+01:00", "2026-01-02T15:04:04Z", ""} {
			request(old)
			expectRestarts(ctx, web, 1)
		}
		request("2026-01-02T15:04:06Z")
		expectRestarts(ctx, web, 2)

		By("refusing what is no time")
		request("now")
		Eventually(condition).WithArguments(ctx, "web", v1alpha1.ConditionStalled).Should(SatisfyAll(
			HaveField("Reason", v1alpha1.ReasonInvalidAnnotation), HaveField("Message",
				`annotation configwatch.ktechhub.io/restart-requested-at: "now" is not a time: write the present time, such as 2026-01-02T15:04:05Z`)))
		expectRestarts(ctx, web, 2)
		request("2026-01-02T15:04:06Z")
		Eventually(condition).WithArguments(ctx, "web", v1alpha1.ConditionStalled).Should(BeZero())
	})

	DescribeTable("doesn't begin in a window that can't be used, which is Stalled (E14)", func(ctx SpecContext, invalid v1alpha1.Window, why string) {
		begin(ctx, v1alpha1.RolloutSpec{SettleSeconds: new(int32(0)), Windows: []v1alpha1.Window{invalid}})
		stalled := SatisfyAll(HaveField("Reason", v1alpha1.ReasonInvalidWindow), HaveField("Message", "spec.rollout.windows[0] can't be used: "+why))
		Eventually(condition).WithArguments(ctx, "web", v1alpha1.ConditionStalled).Should(stalled)
		Expect(condition(ctx, "web", v1alpha1.ConditionReady)).To(SatisfyAll(HaveField("Status", metav1.ConditionFalse), stalled))
		setSecret(ctx, "credentials", "password", planted+"-after")
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(SatisfyAll(HaveField("Reason", v1alpha1.ReasonOutsideWindow),
			HaveField("Message", changed+". No window of spec.rollout.windows can be used: see the Stalled condition")))
		expectRestarts(ctx, web, 0)
		Eventually(notes).WithArguments(ctx, v1alpha1.EventStalled).Should(ConsistOf(
			"ConfigWatch: InvalidWindow: spec.rollout.windows[0] can't be used: " + why))

		By("beginning in another one that can")
		change(ctx, utils.MakeConfigWatch("web").Namespace(namespace).Obj(), func(cw *v1alpha1.ConfigWatch) {
			cw.Spec.Rollout.Windows = append(cw.Spec.Rollout.Windows, v1alpha1.Window{Schedule: "* * * * *", DurationMinutes: 2})
		})
		expectRestarts(ctx, web, 1)
		Eventually(condition).WithArguments(ctx, "web", v1alpha1.ConditionStalled).Should(stalled)
	},
		Entry("as its day never comes", v1alpha1.Window{Schedule: "0 2 31 2 *", DurationMinutes: 60},
			`schedule "0 2 31 2 *": no year has such a day, so the window would never open; write a day that the month has`),
		Entry("as nobody knows its time zone", v1alpha1.Window{Schedule: "0 2 * * *", DurationMinutes: 60, TimeZone: "Europe/Atlantis"},
			`timeZone "Europe/Atlantis": no such time zone; write an IANA name such as "Europe/Berlin", or leave it out for UTC`),
	)
})

var _ = Describe("A Secret that flaps (E15)", func() {
	It("restarts a target a few times, and then less often; who writes it is told; what it has last is applied in the end", func(ctx SpecContext) {
		const flapping, interval = 20 * time.Second, 100 * time.Millisecond
		create(ctx, utils.MakeSecret("credentials").Data("password", planted).Obj(), utils.MakeDeployment("web").EnvFromSecret("credentials").Obj())
		cw := utils.MakeConfigWatch("web").Target(deployment, "web")
		establish(ctx, cw)
		DeferCleanup(k8sClient.Delete, cw.Obj()) // or there would be a pass, some time, when it isn't slowed down any more
		web := restartsOf(ctx, deployment, "web")
		mark := since()

		writes := 0
		Consistently(func() error {
			writes++
			return rotate(ctx, fmt.Sprintf("%s-%d", planted, writes))
		}).WithTimeout(flapping).WithPolling(interval).Should(Succeed())
		const why = "more than 6 changes within 10 minutes (Secret credentials, last written by rotator)"
		Expect(notes(ctx, v1alpha1.EventSlowedDown)).To(ConsistOf("ConfigWatch: Deployment " + namespace + "/web is restarted less often: " + why))
		Expect(web.Marks()).To(HaveLen(6))
		settle(ctx)
		slowed := row(ctx, "web", deployment, "web")
		next := slowed.LastRestartTime.Add(31 * time.Second) // which has whole seconds
		Expect(slowed).To(SatisfyAll(HaveField("Reason", v1alpha1.ReasonCoolingDown), HaveField("Message", SatisfyAll(
			HavePrefix("Secret credentials changed"),
			HaveSuffix(". It is restarted at most every 30 seconds, next at "+next.UTC().Format(time.RFC3339)+": "+why)))))
		Expect(notes(ctx, v1alpha1.EventRestartDelayed)).To(HaveLen(1))
		Expect(len(requestsOf(utils.ManagerUser, mark))).To(BeNumerically("<=", 6*4+5),
			"a restart is a patch, a status write and two Events; all further ones of %d changes are a few status writes and two Events", writes)

		Eventually(web.Marks).WithTimeout(time.Until(next.Add(10 * time.Second))).Should(HaveLen(7))
		Expect(time.Now()).To(BeTemporally(">=", next))
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(SatisfyAll(
			HaveField("Slowdown.CooldownSeconds", int32(60)), HaveField("Wait", BeNil())))
		last := sourceRow(ctx, "web", v1alpha1.Secret, "credentials").Hash
		Expect(slowed.Sources).NotTo(ConsistOf(HaveField("AppliedHash", last)))
		Expect(row(ctx, "web", deployment, "web").Sources).To(ConsistOf(HaveField("AppliedHash", last)))
		expectRestarts(ctx, web, 7)
		expectNothingPlanted(ctx, manager)
	})
})

// rotate writes the Secret credentials, as another program does.
func rotate(ctx context.Context, value string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"stringData": {"password": %q}}`, value))
	return k8sClient.Patch(ctx, secret("credentials"), patch, client.FieldOwner("rotator"))
}

// finish completes the rollout of a Deployment.
func finish(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(utils.FinishRollout(ctx, k8sClient, namespace, name)).To(Succeed())
}

// annotate sets an annotation of a ConfigWatch; an empty value removes it.
func annotate(ctx context.Context, configWatch, annotation, value string) {
	GinkgoHelper()
	change(ctx, utils.MakeConfigWatch(configWatch).Namespace(namespace).Obj(), func(cw *v1alpha1.ConfigWatch) {
		metav1.SetMetaDataAnnotation(&cw.ObjectMeta, annotation, value)
		if value == "" {
			delete(cw.Annotations, annotation)
		}
	})
}

// readOf are the requests by which the manager has read workloads, one each.
func readOf(mark int64) []string {
	GinkgoHelper()
	requests, err := audit.Since(mark, func(r utils.Request) bool {
		return r.User == utils.ManagerUser && r.Namespace == namespace && r.Verb == "get"
	})
	Expect(err).NotTo(HaveOccurred())
	said := make([]string, len(requests))
	for i, r := range requests {
		said[i] = r.String()
	}
	return said
}

// expectNothingPlanted checks that no value of a Secret, nor the key under which they are hashed, is told anywhere.
func expectNothingPlanted(ctx context.Context, m *utils.Manager) {
	GinkgoHelper()
	told := map[string]string{
		"log": m.Log(), "Events": asJSON(ctx, &eventsv1.EventList{}), "ConfigWatches": asJSON(ctx, &v1alpha1.ConfigWatchList{}),
		"Deployments": asJSON(ctx, &appsv1.DeploymentList{}),
	}
	key := &corev1.Secret{}
	Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: utils.ManagerNamespace, Name: hashkey.SecretName}, key)).To(Succeed())
	for where, what := range told {
		expectNoTrace(where, what, planted)
		expectNoTrace(where, what, string(key.Data[hashkey.DataKey]))
	}
}
