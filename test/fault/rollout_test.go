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

package fault

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

const getDeployments = "get deployments"

// rarely is a window that isn't open while these tests run.
var rarely = v1alpha1.Window{Schedule: "0 0 29 2 *", DurationMinutes: 1}

// windowAt opens at a second of the test's choice, for managers that know the zones.
func windowAt(zones utils.Zones, opening time.Time, minutes int32) v1alpha1.Window {
	GinkgoHelper()
	window, err := zones.Window(opening, minutes)
	Expect(err).NotTo(HaveOccurred())
	return window
}

// inSeconds is a full second some time from now.
func inSeconds(n time.Duration) time.Time {
	return time.Now().Truncate(time.Second).Add(n * time.Second)
}

var _ = Describe("A fleet that waits", func() {
	DescribeTable("is restarted once for each change and request, in its window, approved, in turn, after its cooldown, whatever call kill -9 comes at (E9, E14, E16)",
		func(ctx SpecContext, replicas int, choose func(point, calls, same int) side, args ...string) {
			zones := utils.Zones(GinkgoT().TempDir())
			f := openFleet(ctx, v1alpha1.RolloutSpec{
				SettleSeconds: new(int32(1)), MaxConcurrent: 1, Approval: v1alpha1.ApprovalManual, Windows: []v1alpha1.Window{rarely},
			}, "a", "b", "c")
			k := &killer{namespace: f.Name, choose: choose}
			var keepers []*keeper
			var proxies []*proxy
			for range replicas {
				keeper := keep(utils.ManagerOptions{Args: args, Env: []string{zones.Env()}})
				keepers, proxies = append(keepers, keeper), append(proxies, keeper.proxy)
			}
			f.await(ctx, v1alpha1.ReasonBaseline)
			k.arm(keepers...)

			By("waiting for a change to settle, for an approval, for a window, and for turns")
			began := time.Now()
			f.change(ctx, v1alpha1.ConfigMap)
			f.change(ctx, v1alpha1.Secret)
			f.await(ctx, v1alpha1.ReasonAwaitingApproval)
			status, err := f.Status(ctx, rolled)
			Expect(err).NotTo(HaveOccurred())
			f.annotate(ctx, v1alpha1.ApproveAnnotation, status.ApprovalHash)
			f.await(ctx, v1alpha1.ReasonOutsideWindow)
			opening := inSeconds(4)
			f.edit(ctx, func(r *v1alpha1.RolloutSpec) { r.Windows = []v1alpha1.Window{windowAt(zones, opening, 5)} })
			f.roll(ctx, 1)
			f.expectPatches(patched(began, proxies...), func(string) time.Time { return opening })
			Expect(f.rollouts.Begun()).To(Equal(f.names), "in the order of the spec")
			Expect(f.rollouts.Most()).To(Equal(1))

			By("being asked for a restart, which waits for nothing but turns")
			began = time.Now()
			f.edit(ctx, func(r *v1alpha1.RolloutSpec) {
				*r = v1alpha1.RolloutSpec{
					SettleSeconds: new(int32(3600)), CooldownSeconds: new(int32(3600)), MaxConcurrent: 3,
					Approval: v1alpha1.ApprovalManual, Windows: []v1alpha1.Window{rarely},
				}
			})
			asked := time.Now()
			f.annotate(ctx, v1alpha1.RestartRequestedAtAnnotation, asked.Format(time.RFC3339))
			f.roll(ctx, 2)
			f.expectPatches(patched(began, proxies...), func(string) time.Time { return asked })

			By("cooling down")
			before := map[string]v1alpha1.TargetStatus{}
			var latest time.Time
			for _, name := range f.names {
				before[name], err = f.row(ctx, name)
				Expect(err).NotTo(HaveOccurred())
				if at := before[name].LastRestartTime.Time; at.After(latest) {
					latest = at
				}
			}
			began = time.Now()
			cooldown := int32(math.Ceil(time.Since(latest).Seconds())) + 4
			f.edit(ctx, func(r *v1alpha1.RolloutSpec) {
				*r = v1alpha1.RolloutSpec{SettleSeconds: new(int32(1)), CooldownSeconds: &cooldown, MaxConcurrent: 3}
			})
			f.change(ctx, v1alpha1.Secret)
			f.roll(ctx, 3)
			f.expectPatches(patched(began, proxies...), func(name string) time.Time {
				return before[name].LastRestartTime.Add(time.Duration(cooldown) * time.Second)
			})

			By("going on undisturbed")
			for _, p := range proxies {
				p.lift()
			}
			Consistently(ctx, f.check).WithArguments(3).WithTimeout(time.Second).Should(Succeed())
			f.edit(ctx, func(r *v1alpha1.RolloutSpec) { r.CooldownSeconds = nil })
			f.change(ctx, v1alpha1.Secret)
			f.roll(ctx, 4)
			Eventually(f.Notes).WithContext(ctx).WithArguments(v1alpha1.EventRolloutCompleted).ShouldNot(BeEmpty())
			Expect(f.history.checkTimes()).To(Succeed())
			for _, name := range f.names {
				GinkgoWriter.Println(name, f.history.reasons(name))
				Expect(f.history.reasons(name)).To(ContainElements(v1alpha1.ReasonSettling, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonOutsideWindow))
			}
			f.expectCanary(ctx)
			AddReportEntry(k.String(), ReportEntryVisibilityAlways)
			Expect(k.kills).To(BeNumerically(">=", 15))
		},
		Entry("and the manager is started again", 1, killAround),
		Entry("and another replica takes over", 2, killOnce,
			"--leader-elect=true", "--leader-elect-lease-duration=1500ms", "--leader-elect-renew-deadline=1s", "--leader-elect-retry-period=200ms"),
	)

	It("doesn't begin in a window what is due when it has closed, not after kill -9 either (E14, E16)", func(ctx SpecContext) {
		zones := utils.Zones(GinkgoT().TempDir())
		f := openFleet(ctx, v1alpha1.RolloutSpec{
			SettleSeconds: new(int32(0)), MaxConcurrent: 1, Windows: []v1alpha1.Window{rarely},
		}, "a", "b")
		k := keep(utils.ManagerOptions{Env: []string{zones.Env()}})
		f.await(ctx, v1alpha1.ReasonBaseline)
		closing := inSeconds(4)
		opened := closing.Add(-time.Minute)
		f.edit(ctx, func(r *v1alpha1.RolloutSpec) { r.Windows = []v1alpha1.Window{windowAt(zones, opened, 1)} })
		f.change(ctx, v1alpha1.ConfigMap)
		Eventually(f.restarts["a"].Marks).Should(HaveLen(1))
		Eventually(f.row).WithContext(ctx).WithArguments("b").Should(HaveField("Reason", v1alpha1.ReasonAwaitingTurn))
		Expect(time.Now()).To(BeTemporally("<", closing), "the window is open, if the machine is quick enough")

		Eventually(time.Now).Should(BeTemporally(">=", closing))
		f.finish(ctx, "a")
		tomorrow := HaveField("Message", fmt.Sprintf("ConfigMap shared changed (setting). The next window opens %s Behind%d",
			opened.Add(24*time.Hour).UTC().Format("2006-01-02T15:04"), opened.Unix()%60))
		Eventually(f.row).WithContext(ctx).WithArguments("b").Should(And(HaveField("Reason", v1alpha1.ReasonOutsideWindow), tomorrow))
		k.kill()
		f.edit(ctx, func(r *v1alpha1.RolloutSpec) { r.MaxConcurrent = 2 })
		Eventually(f.Status).WithContext(ctx).WithArguments(rolled).Should(HaveField("ObservedGeneration", int64(3)))
		Expect(f.row(ctx, "b")).To(And(HaveField("Reason", v1alpha1.ReasonOutsideWindow), tomorrow))
		Expect(f.restarts["b"].Marks()).To(BeEmpty())

		f.edit(ctx, func(r *v1alpha1.RolloutSpec) { r.Windows = nil })
		Eventually(f.restarts["b"].Marks).Should(HaveLen(1))
		f.finish(ctx, "b")
		Eventually(ctx, f.check).WithArguments(1).Should(Succeed())
		Expect(f.history.checkTimes()).To(Succeed())
	})
})

var _ = Describe("Fleets that share the turns of all", func() {
	It("never have more of them, though kill -9 comes before a restart is recorded (E18, E9)", func(ctx SpecContext) {
		rollout := v1alpha1.RolloutSpec{SettleSeconds: new(int32(0)), MaxConcurrent: 1}
		first := openFleet(ctx, rollout, "a")
		var others []*fleet
		for range 4 {
			others = append(others, openFleet(ctx, rollout, "a"))
		}
		l := &lives{proxy: newProxy()}
		limit := "--max-concurrent-rollouts=1"
		l.launch(limit)
		for _, f := range append(others, first) {
			f.await(ctx, v1alpha1.ReasonBaseline)
		}
		unrecorded := instant{on: updateStatus, nth: 1}
		l.killAt(unrecorded)
		first.change(ctx, v1alpha1.ConfigMap)
		l.awaitKill(unrecorded)
		Expect(first.restarts["a"].Marks()).To(HaveLen(1), "it is made")

		for _, f := range others {
			f.change(ctx, v1alpha1.ConfigMap)
		}
		l.launch(limit)
		for _, f := range others {
			f.await(ctx, v1alpha1.ReasonAwaitingTurn)
			Expect(f.restarts["a"].Marks()).To(BeEmpty())
		}
		first.roll(ctx, 1)
		begun := func() (marks []string) {
			for _, f := range others {
				marks = append(marks, f.restarts["a"].Marks()...)
			}
			return marks
		}
		for n := range others {
			Eventually(begun).Should(HaveLen(n + 1))
			Consistently(begun).Should(HaveLen(n + 1))
			for _, f := range others {
				if f.restarts["a"].Count() > 0 {
					f.finish(ctx, "a")
				}
			}
		}
		for _, f := range others {
			Eventually(ctx, f.check).WithArguments(1).Should(Succeed())
		}
	})
})

var _ = Describe("A manager that can't read a pod template when a wait begins", Ordered, func() {
	var (
		p *proxy
		f *fleet
		m *utils.Manager
	)

	BeforeAll(func(ctx SpecContext) {
		p = newProxy()
		m = run(ctx, p)
	})

	BeforeEach(func(ctx SpecContext) {
		f = openFleet(ctx, v1alpha1.RolloutSpec{SettleSeconds: new(int32(1)), MaxConcurrent: 1}, "a")
		f.await(ctx, v1alpha1.ReasonBaseline)
	})

	AfterEach(func(ctx SpecContext) {
		p.lift()
		Consistently(f.restarts["a"].Count).Should(BeNumerically("<=", 1))
		Expect(f.history.checkTimes()).To(Succeed())
		f.expectCanary(ctx)
	})

	const changed = "Secret shared changed (setting)"
	settling := HaveField("Message", HavePrefix(changed+". It is restarted once no more changes come, at "))

	DescribeTable("restarts the target exactly once all the same, and says nothing else (E13, E9)", func(ctx SpecContext, unread *fault) {
		unread.on, unread.times = getDeployments, always
		hit := p.add(unread)
		began := time.Now()
		f.change(ctx, v1alpha1.Secret)
		Eventually(hit).Should(BeClosed())
		Eventually(f.row).WithContext(ctx).WithArguments("a").Should(And(
			HaveField("Reason", v1alpha1.ReasonSettling), settling, HaveField("Wait.Template", BeNil())))
		f.roll(ctx, 1)
		Expect(f.row(ctx, "a")).To(HaveField("Message", changed))
		Expect(p.calls(getDeployments, began)).To(Equal(1), "there was no other pass in which to read it")
		Expect(lines(m, "error")).NotTo(ContainElement(ContainSubstring(f.Name)), "it concerns nobody")
	},
		Entry("when it may not", &fault{before: answer(http.StatusForbidden, metav1.StatusReasonForbidden)}),
		Entry("when it isn't found", &fault{before: answer(http.StatusNotFound, metav1.StatusReasonNotFound)}),
		Entry("when the API server fails", &fault{before: answer(http.StatusInternalServerError, metav1.StatusReasonInternalError)}),
		Entry("when the API server takes too long", &fault{before: answer(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)}),
	)

	It("restarts the target exactly once when the connection is cut, and reads it again when it is back (E13, E9)", func(ctx SpecContext) {
		hit := p.add(&fault{on: getDeployments, before: cut})
		f.edit(ctx, func(r *v1alpha1.RolloutSpec) { r.SettleSeconds = new(int32(3)) })
		f.change(ctx, v1alpha1.Secret)
		Eventually(hit).Should(BeClosed())
		Eventually(f.row).WithContext(ctx).WithArguments("a").Should(And(settling, HaveField("Wait.Template", Not(BeNil()))))
		f.roll(ctx, 1)
		Expect(f.row(ctx, "a")).To(HaveField("Message", changed))
	})

	It("restarts the target exactly once when the answer comes after the quiet time, and holds up no other ConfigWatch (E13, E11)", func(ctx SpecContext) {
		other := openFleet(ctx, v1alpha1.RolloutSpec{SettleSeconds: new(int32(0)), MaxConcurrent: 1}, "other")
		other.await(ctx, v1alpha1.ReasonBaseline)
		late := make(chan struct{})
		reply := sync.OnceFunc(func() { close(late) })
		DeferCleanup(reply)
		hit := p.add(&fault{on: getDeployments, before: hold(late)})
		f.change(ctx, v1alpha1.Secret)
		Eventually(hit).Should(BeClosed())
		quiet := time.Now().Add(time.Second)
		other.change(ctx, v1alpha1.Secret)
		other.roll(ctx, 1)
		Eventually(time.Now).Should(BeTemporally(">", quiet))
		reply()
		f.roll(ctx, 1)
		Expect(f.row(ctx, "a")).To(HaveField("Message", changed))
	})

	// replace is a rollout that another tool begins.
	replace := func(ctx context.Context) {
		GinkgoHelper()
		d := utils.MakeDeployment("a").Namespace(f.Name).Obj()
		Expect(utils.Change(ctx, k8sClient, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "newer" })).To(Succeed())
	}

	It("restarts it although another rollout comes first, as the order isn't known (E13)", func(ctx SpecContext) {
		p.add(&fault{on: getDeployments, times: always, before: answer(http.StatusInternalServerError, metav1.StatusReasonInternalError)})
		f.change(ctx, v1alpha1.Secret)
		Eventually(f.row).WithContext(ctx).WithArguments("a").Should(settling)
		replace(ctx)
		Eventually(f.restarts["a"].Count).Should(Equal(1))
		Eventually(f.row).WithContext(ctx).WithArguments("a").Should(HaveField("Reason", v1alpha1.ReasonRolloutInProgress))
	})

	It("doesn't restart it if it is read at a second attempt, and another rollout comes after that (E13)", func(ctx SpecContext) {
		p.add(&fault{on: getDeployments, before: answer(http.StatusInternalServerError, metav1.StatusReasonInternalError)})
		f.edit(ctx, func(r *v1alpha1.RolloutSpec) { r.SettleSeconds = new(int32(3)) })
		f.change(ctx, v1alpha1.Secret)
		Eventually(f.row).WithContext(ctx).WithArguments("a").Should(settling)
		f.edit(ctx, func(r *v1alpha1.RolloutSpec) { r.MaxConcurrent = 2 }) // so that there is a pass
		Eventually(f.row).WithContext(ctx).WithArguments("a").Should(HaveField("Wait.Template", Not(BeNil())))
		replace(ctx)
		Eventually(f.row).WithContext(ctx).WithArguments("a").Should(And(
			HaveField("Reason", v1alpha1.ReasonSupersededByRollout), HaveField("Message", changed)))
		Expect(f.restarts["a"].Count()).To(BeZero())
	})

	DescribeTable("restarts it at the time that was recorded, though the answer to the write that began the wait is lost (E14, E9)",
		func(ctx SpecContext, after func(context.Context) (*http.Response, error)) {
			hit := p.add(&fault{on: updateStatus, after: after})
			began := time.Now()
			f.change(ctx, v1alpha1.Secret)
			Eventually(hit).Should(BeClosed())
			Eventually(f.row).WithContext(ctx).WithArguments("a").Should(settling)
			row, err := f.row(ctx, "a")
			Expect(err).NotTo(HaveOccurred())
			f.roll(ctx, 1)
			f.expectPatches(patched(began, p), func(string) time.Time { return row.Wait.SettlingSince.Add(time.Second) })
			Expect(p.calls(patchDeployments, began)).To(Equal(1))
			Expect(p.calls(getDeployments, began)).To(Equal(1), "what was read is remembered")
		},
		Entry("as the connection is cut", cut),
		Entry("and is that it failed", answer(http.StatusInternalServerError, metav1.StatusReasonInternalError)),
		Entry("and is that it was too late", answer(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)),
	)
})
