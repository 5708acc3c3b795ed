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
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/config/samples/observers/changes"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("Observers, while the API server fails", func() {
	const (
		writes  = 1000
		offline = 250 // of them, made while nothing is watched
		cuts    = 100 // of the manager's watches, and of the feed's own
	)

	It("end with the final state of every object, are told nothing twice, and of each gap (F11)", func(ctx SpecContext) {
		namespace, err := utils.NewNamespace(ctx, k8sClient)
		Expect(err).NotTo(HaveOccurred())
		scribes := newScribes(namespace)
		toManager, toFeed := newProxy(), newProxy()
		m := launchStreaming(ctx, toManager, namespace.Name)
		keyed := operatorsHasher(ctx)

		By("having observers of every sort, some of which are asleep")
		awake := make(chan struct{})
		all := []*view{{name: "stream"}, {name: "stream of ConfigMaps"}, {name: "stream of Secrets"}, {name: "sleepy stream", hold: awake}}
		labelled := changes.Query{Initial: true, Selector: app + "=" + feeds}
		for i, query := range []changes.Query{
			labelled,
			{Initial: true, Selector: labelled.Selector, Kind: string(v1alpha1.ConfigMap), Data: true},
			{Initial: true, Selector: labelled.Selector, Kind: string(v1alpha1.Secret)},
			labelled,
		} {
			m.tell(ctx, all[i], query)
		}
		streams, sleepyStream := float64(len(all)), all[len(all)-1]
		sleepyFeed := &view{name: "sleepy feed", hold: awake}
		own := []subscription{{&view{name: "feed"}, writes}, {sleepyFeed, 16}}
		followOwn(ctx, toFeed, namespace.Name, keyed, own...)
		all = append(all, own[0].view, sleepyFeed)
		webhook := &view{name: "webhook"}
		if subscribe(ctx, namespace, webhook) {
			all = append(all, webhook)
		} else {
			AddReportEntry("NOT TESTED: webhooks", "this machine has no address but loopback, where they must not go (F7)")
		}
		Eventually(m.sum).WithArguments(ctx, "configwatch_stream_connections", "").Should(Equal(streams))
		there := scribes.hashes(ctx, keyed)
		for _, v := range all {
			if v.hold == nil {
				Eventually(v.check).WithArguments(there).Should(Succeed())
			}
		}

		By("cutting watches in the middle of events, while all sorts of changes are made")
		tear := func(class string, brought int) bool {
			return (class == "watch configmaps" || class == "watch secrets") && brought > 3
		}
		toManager.tearBy(tear)
		toFeed.tearBy(tear)
		scribes.write(ctx, writes-offline, func() bool { return toManager.torn.Load() >= cuts && toFeed.torn.Load() >= cuts })
		toManager.tearBy(nil)
		toFeed.tearBy(nil)

		By("killing the API server, and having it forget what happened before and while nobody watches")
		// Something that nobody watches, so that what the watches go on from is not the latest version.
		Expect(namespace.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "unwatched"}})).To(Succeed())
		Expect(plane.KillAPIServer()).To(Succeed())
		for _, p := range []*proxy{toManager, toFeed} {
			p.gone.Store(0)
			p.wire.cut()
		}
		Expect(plane.StartAPIServer(ctx)).To(Succeed())
		Eventually(func() error {
			return k8sClient.Get(ctx, client.ObjectKey{Name: namespace.Name}, &corev1.Namespace{})
		}).Should(Succeed())
		scribes.write(ctx, writes, func() bool { return true })
		compact(ctx)
		for _, p := range []*proxy{toManager, toFeed} {
			p.wire.mend()
		}

		By("comparing what each of them knows in the end")
		close(awake)
		const patience = 3 * time.Minute // client-go waits for up to a minute before it tries again
		there = scribes.hashes(ctx, keyed)
		Eventually(func() error { return check(all, there) }).WithTimeout(patience).Should(Succeed())
		// Nothing of before comes after something that is written now.
		scribes.write(ctx, scribes.writes.Load()+20, func() bool { return true })
		there = scribes.hashes(ctx, keyed)
		Eventually(func() error { return check(all, there) }).WithTimeout(patience).Should(Succeed())
		for _, v := range all {
			gaps, cut, mistakes := v.state()
			AddReportEntry(v.name, map[string]int{"gaps": gaps, "connections cut": cut}, ReportEntryVisibilityFailureOrVerbose)
			Expect(mistakes).To(BeEmpty(), v.name)
		}
		gaps, _, _ := sleepyFeed.state()
		Expect(gaps).To(BeNumerically(">", 0), "it lost changes, and was told so")
		gaps, cut, _ := sleepyStream.state()
		Expect(gaps+cut).To(BeNumerically(">", 0), "it lost changes, or the connection")
		for _, p := range []*proxy{toManager, toFeed} {
			Expect(p.gone.Load()).To(BeNumerically(">", 0), "watches were refused because their beginning is gone")
		}

		By("finding the reconnects in the metrics and in the log")
		const reconnects = "configwatch_watch_reconnects_total"
		sources := m.sum(ctx, reconnects, `kind="ConfigMap"`) + m.sum(ctx, reconnects, `kind="Secret"`)
		Expect(sources).To(BeNumerically(">=", toManager.torn.Load()))
		logged := func() int { return strings.Count(m.Log(), `"msg":"Made a watch again that had broken off"`) }
		Eventually(logged).Should(BeEquivalentTo(m.sum(ctx, reconnects, "")))
		Expect(m.sum(ctx, reconnects, `kind="Deployment"`)).To(BeNumerically(">", 0))
		Expect(m.sum(ctx, "configwatch_feed_gaps_total", `cause="slow"`) + m.sum(ctx, "configwatch_feed_gaps_total", `cause="away"`)).
			To(BeNumerically(">=", gaps))
		Expect(m.Exited()).NotTo(BeClosed())
	}, SpecTimeout(10*time.Minute))
})

// check is nil if all views show what is there.
func check(all []*view, there map[source.Ref]digest.Hash) error {
	errs := make([]error, len(all))
	for i, v := range all {
		errs[i] = v.check(there)
	}
	return errors.Join(errs...)
}

// reportSubscribers adds the rows of subscribers to the report of a test that failed.
func reportSubscribers(ctx context.Context, namespace utils.Namespace) {
	if CurrentSpecReport().Failed() {
		status, err := namespace.Status(ctx, shared)
		AddReportEntry("the rows of subscribers", format.Object([]any{status.Subscribers, err}, 1))
	}
}

// subscribe has a view told by webhooks, if that can be.
func subscribe(ctx context.Context, namespace utils.Namespace, v *view) bool {
	GinkgoHelper()
	url, bundle, found := hook(ctx, v)
	if !found {
		return false
	}
	Expect(namespace.Create(ctx,
		utils.MakeSecret("hook-auth").Data("ca.crt", bundle).Data("token", canary).Obj(),
		utils.MakeConfigWatch(shared).Mode(v1alpha1.ModeSuspended).
			Sources(v1alpha1.ConfigMap, app, feeds).Sources(v1alpha1.Secret, app, feeds).
			Subscriber(v1alpha1.Subscriber{Name: "view", Webhook: v1alpha1.Webhook{
				URL: url, SecretRef: &v1alpha1.SecretReference{Name: "hook-auth"},
			}}).Obj(),
	)).To(Succeed())
	DeferCleanup(k8sClient.DeleteAllOf, &v1alpha1.ConfigWatch{}, client.InNamespace(namespace.Name))
	DeferCleanup(reportSubscribers, namespace)
	Eventually(namespace.Status).WithArguments(ctx, shared).Should(SatisfyAll(
		HaveField("ObservedGeneration", BeEquivalentTo(1)), HaveField("Subscribers", HaveLen(1))))
	return true
}
