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
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/hashkey"
	"github.com/ktechhub/configwatch/test/utils"
)

// instant is when the manager is killed: at the nth call of a class, before it reaches the API server or
// after it has been answered.
type instant struct {
	on    string
	nth   int
	after bool
}

func (i instant) String() string {
	when := "before"
	if i.after {
		when = "after"
	}
	return fmt.Sprintf("%s %s, no. %d", when, i.on, i.nth)
}

const (
	patchDeployments = "patch deployments"
	updateStatus     = "update configwatches/status"
	createEvents     = "create events"
)

// lives runs one manager after the other, each until it is killed.
type lives struct {
	proxy *proxy
	shop  *shop
	dice  *rand.Rand
	kills int

	manager atomic.Pointer[utils.Manager]
}

// launch begins the next life.
func (l *lives) launch(args ...string) {
	GinkgoHelper()
	l.manager.Store(launch(l.proxy, args...))
}

// killAt makes the manager be killed at an instant.
func (l *lives) killAt(i instant) {
	kill := func(context.Context) (*http.Response, error) {
		l.manager.Load().Kill()
		return nil, errCut
	}
	f := &fault{on: i.on, nth: i.nth}
	if i.after {
		f.after = kill
	} else {
		f.before = kill
	}
	l.proxy.add(f)
}

// awaitKill waits until the manager has been killed, and ends the fault.
func (l *lives) awaitKill(i instant) {
	GinkgoHelper()
	Eventually(l.manager.Load().Exited()).Should(BeClosed(), "killed "+i.String())
	l.proxy.lift()
	l.kills++
}

// changeSome changes some sources, each of another workload, and is the names of the rest.
func (l *lives) changeSome(ctx context.Context, names []string, n int) (rest []string) {
	GinkgoHelper()
	l.dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:n] {
		kind := v1alpha1.ConfigMap
		if l.dice.IntN(2) == 0 {
			kind = v1alpha1.Secret
		}
		l.shop.change(ctx, kind, name)
	}
	return names[n:]
}

// killWhileWorking changes sources under a running manager, which dies of it; more are changed while it
// is dead. The next one has to put all in order.
func (l *lives) killWhileWorking(ctx context.Context, i instant) {
	GinkgoHelper()
	l.killAt(i)
	l.shop.change(ctx, v1alpha1.ConfigMap, shared)
	rest := l.changeSome(ctx, l.shop.own, 3)
	l.awaitKill(i)
	l.changeSome(ctx, rest, l.dice.IntN(3)) // E7
	l.launch()
	l.shop.settle(ctx)
}

// killWhileStarting changes sources while no manager runs, and kills the next one as it starts.
func (l *lives) killWhileStarting(ctx context.Context, i instant) {
	GinkgoHelper()
	l.manager.Load().Kill()
	l.kills++
	l.shop.change(ctx, v1alpha1.ConfigMap, shared) // E7
	l.changeSome(ctx, l.shop.own, 3)
	l.killAt(i)
	l.launch()
	l.awaitKill(i)
	l.launch()
	l.shop.settle(ctx)
}

// whileWorking are the instants between any two calls of a pass.
func whileWorking() []instant {
	return []instant{
		{on: patchDeployments, nth: 1}, {on: patchDeployments, nth: 1, after: true},
		{on: patchDeployments, nth: 4}, {on: patchDeployments, nth: 4, after: true},
		{on: patchDeployments, nth: 7, after: true},
		{on: updateStatus, nth: 1}, {on: updateStatus, nth: 1, after: true},
		{on: updateStatus, nth: 3}, {on: updateStatus, nth: 4, after: true},
		{on: createEvents, nth: 1}, {on: createEvents, nth: 4, after: true},
	}
}

// whileStarting are the instants between any two calls of a start, up to the first pass that has
// something to do.
func whileStarting() []instant {
	return []instant{
		{on: "get hash key", nth: 1}, {on: "get hash key", nth: 1, after: true},
		{on: "watch hash key", nth: 1, after: true},
		{on: "watch configwatches", nth: 1}, {on: "watch configwatches", nth: 1, after: true},
		{on: "watch configmaps", nth: 1}, {on: "watch configmaps", nth: 1, after: true},
		{on: "watch secrets", nth: 1, after: true},
		{on: "watch deployments", nth: 1}, {on: "watch deployments", nth: 1, after: true},
		{on: patchDeployments, nth: 1, after: true}, {on: updateStatus, nth: 1},
	}
}

var _ = Describe("A manager that is killed", func() {
	It("restarts each workload exactly once for each change, whatever call kill -9 comes at (E9, E7)", func(ctx SpecContext) {
		const rounds = 3
		began := time.Now()
		p := newProxy()
		l := &lives{proxy: p, dice: rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))}
		l.shop = openShop(ctx, 6, 4)
		l.launch()
		l.shop.settle(ctx)
		for range rounds {
			for _, i := range whileWorking() {
				By("killing it " + i.String())
				l.killWhileWorking(ctx, i)
			}
		}
		for _, i := range whileStarting() {
			By("killing it as it starts, " + i.String())
			l.killWhileStarting(ctx, i)
		}
		Consistently(ctx, l.shop.check).WithTimeout(time.Second).Should(Succeed())
		missed, doubled := l.shop.tally(ctx)
		summary := fmt.Sprintf("%d kills, %d changes, missed %d, doubled %d", l.kills, l.shop.total, missed, doubled)
		GinkgoWriter.Println(summary)
		AddReportEntry(fmt.Sprintf("%s, %.0f s", summary, time.Since(began).Seconds()), ReportEntryVisibilityAlways)
		Expect(l.kills).To(BeNumerically(">=", 50))
		Expect([]int64{missed, doubled}).To(Equal([]int64{0, 0}))
	}, NodeTimeout(5*time.Minute))

	It("restarts again for a change that is made while it is dead, be it back to what was (E9, E7)", func(ctx SpecContext) {
		l := &lives{proxy: newProxy(), shop: openShop(ctx, 2, 0)}
		s := l.shop
		l.launch()
		s.settle(ctx)

		By("killing it when the restart is made and not recorded")
		unrecorded := instant{on: updateStatus, nth: 1}
		l.killAt(unrecorded)
		s.change(ctx, v1alpha1.ConfigMap, s.own[0])
		l.awaitKill(unrecorded)
		s.set(ctx, v1alpha1.ConfigMap, s.own[0], "first")
		s.count(s.own[0])
		l.launch()
		s.settle(ctx)

		By("killing it when the restart is not made: back to what was is no change, and other content is one")
		unmade := instant{on: patchDeployments, nth: 1}
		l.killAt(unmade)
		s.set(ctx, v1alpha1.ConfigMap, s.own[0], "second")
		l.awaitKill(unmade)
		s.set(ctx, v1alpha1.ConfigMap, s.own[0], "first")
		s.change(ctx, v1alpha1.Secret, s.own[1])
		l.launch()
		s.settle(ctx)
		Consistently(ctx, s.check).Should(Succeed())
	})

	It("makes headway in lives of one write each (E9)", func(ctx SpecContext) {
		l := &lives{proxy: newProxy(), shop: openShop(ctx, 2, 3)}
		s := l.shop
		l.launch()
		s.settle(ctx)
		l.manager.Load().Kill()
		s.change(ctx, v1alpha1.ConfigMap, shared)
		s.change(ctx, v1alpha1.ConfigMap, s.own[0])
		s.change(ctx, v1alpha1.Secret, s.own[1])
		for s.check(ctx) != nil {
			l.killAt(instant{on: patchDeployments, nth: 1, after: true})
			l.killAt(instant{on: updateStatus, nth: 1, after: true})
			l.launch("--max-concurrent-reconciles=1")
			Eventually(ctx, func(ctx context.Context) error {
				select {
				case <-l.manager.Load().Exited():
					l.kills++
					return nil
				default:
					return s.check(ctx)
				}
			}).Should(Succeed())
			l.proxy.lift()
		}
		Expect(l.kills).To(BeNumerically(">=", 5), "there are three ConfigWatches to patch for, and to write down")
		Consistently(ctx, s.check).Should(Succeed())
	})

	It("makes one hash key, whenever it is killed while making it (E2)", func(ctx SpecContext) {
		key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: utils.ManagerNamespace, Name: hashkey.SecretName}}
		Expect(k8sClient.Delete(ctx, key)).To(Or(Succeed(), MatchError(ContainSubstring("not found"))))
		l := &lives{proxy: newProxy()}
		for _, i := range []instant{{on: "create hash key", nth: 1}, {on: "create hash key", nth: 1, after: true}} {
			l.killAt(i)
			l.launch()
			l.awaitKill(i)
		}
		began := time.Now()
		run(ctx, l.proxy)
		Expect(l.proxy.calls("create hash key", began)).To(BeZero())
	})
})
