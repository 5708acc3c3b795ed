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

package install

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

// withoutWatchList makes the manager list before it watches, as it does with an API server that can't
// begin a watch with a list.
const withoutWatchList = "KUBE_FEATURE_WatchListClient=false"

// operator is an installed manager, run as a process in place of its pod.
type operator struct {
	manifests
	kubeconfig string
	*utils.Manager
	metrics string // address; empty where metrics are off
}

// newOperator is one that isn't started yet, with the rights of its ServiceAccount.
func newOperator(ctx context.Context, m manifests) *operator {
	GinkgoHelper()
	kubeconfig, err := utils.KubeconfigFor(ctx, plane, k8sClient, m.deployment().Spec.Template.Spec.ServiceAccountName)
	Expect(err).NotTo(HaveOccurred())
	return &operator{manifests: m, kubeconfig: kubeconfig}
}

// start runs it with the arguments and the environment of the container, and waits until it is ready. Only
// the addresses are others.
func (o *operator) start(ctx context.Context, env ...string) {
	GinkgoHelper()
	var args []string
	for _, arg := range o.container().Args {
		switch arg {
		case probeArg: // utils.StartManager chooses another
		case metricsArg:
			o.metrics = freeAddress()
			args = append(args, strings.Replace(arg, ":8443", o.metrics, 1))
		default:
			args = append(args, arg)
		}
	}
	var err error
	o.Manager, err = utils.StartManager(utils.ManagerOptions{
		Binary: binary, Kubeconfig: o.kubeconfig, Args: args, Env: append(o.environment(), env...),
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(o.Stop)
	Expect(o.WaitReady(ctx)).To(Succeed())
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// expectWork lets the manager do all that it can do in a namespace.
func (o *operator) expectWork(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	o.start(ctx)
	var restarts []*utils.Restarts
	for _, namespace := range namespaces {
		restarts = append(restarts, createApplications(ctx, namespace)...)
	}
	for _, namespace := range namespaces {
		change(ctx, namespace, "first", "second")
	}
	expectEach(restarts, 1)
	for _, namespace := range namespaces {
		expectReady(ctx, namespace)
	}
	o.Stop()

	for _, namespace := range namespaces {
		change(ctx, namespace, "first", "third")
		change(ctx, namespace, "second", "third")
	}
	o.start(ctx, withoutWatchList)
	expectEach(restarts, 2)
	for _, namespace := range namespaces {
		expectReady(ctx, namespace)
		expectSeries(ctx, namespace)
	}
}

// createApplications makes a workload of each kind that uses two ConfigMaps, and a ConfigWatch, and waits
// until it is ready.
func createApplications(ctx context.Context, namespace string) []*utils.Restarts {
	GinkgoHelper()
	create(ctx,
		utils.MakeConfigMap("first").Namespace(namespace).Data("value", "first").Obj(),
		utils.MakeConfigMap("second").Namespace(namespace).Data("value", "first").Obj(),
		utils.MakeSecret("secret").Namespace(namespace).Data("value", "first").Obj(),
		utils.MakeDeployment("app").Namespace(namespace).Obj(),
		utils.MakeStatefulSet("app").Namespace(namespace).Obj(),
		utils.MakeDaemonSet("app").Namespace(namespace).Obj(),
		utils.MakeCronJob("app").Namespace(namespace).Obj(),
		utils.MakeConfigWatch("app").Namespace(namespace).ConfigMap("first").ConfigMap("second").Secret("secret").
			Target("Deployment", "app").Target("StatefulSet", "app").Target("DaemonSet", "app").Target("CronJob", "app").
			Rollout(v1alpha1.RolloutSpec{SettleSeconds: new(int32(1))}). // so that templates are read (E13)
			Obj())
	expectReady(ctx, namespace)
	var restarts []*utils.Restarts
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		r, err := utils.WatchRestarts(ctx, k8sClient, kind, namespace, "app")
		Expect(err).NotTo(HaveOccurred())
		restarts = append(restarts, r)
	}
	return restarts
}

func change(ctx context.Context, namespace, name, value string) {
	GinkgoHelper()
	Expect(k8sClient.Update(ctx, utils.MakeConfigMap(name).Namespace(namespace).Data("value", value).Obj())).To(Succeed())
}

func expectEach(restarts []*utils.Restarts, count int) {
	GinkgoHelper()
	for _, r := range restarts {
		Eventually(r.Count).Should(Equal(count))
	}
}

func expectReady(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		cw := &v1alpha1.ConfigWatch{}
		g.Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "app"}, cw)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(cw.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%+v", cw.Status)
	}).Should(Succeed())
}

// expectSeries waits for the Event that two changes of one pass are counted in.
func expectSeries(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(k8sClient.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		g.Expect(list.Items).To(ContainElement(SatisfyAll(
			HaveField("Reason", v1alpha1.EventNotRestarted), HaveField("Series", Not(BeNil())),
		)))
	}).Should(Succeed())
}

// expectJustItsRights compares the manager's requests since a mark of the audit log with its rights, both
// ways.
func (o *operator) expectJustItsRights(mark int64) {
	GinkgoHelper()
	o.expectUse(mark, o.rights())
	o.expectWithinRights(mark)
}

// expectUse waits until the manager has made use of each of some rights since a mark of the audit log.
func (o *operator) expectUse(mark int64, rights []right) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		requests, err := audit.Since(mark, byManager)
		g.Expect(err).NotTo(HaveOccurred())
		unused := slices.DeleteFunc(slices.Clone(rights), func(r right) bool { return slices.ContainsFunc(requests, r.covers) })
		g.Expect(unused).To(BeEmpty(), "rights that the manager has no use for")
	}).WithTimeout(10 * time.Second).Should(Succeed())
}

// expectWithinRights checks that none of the manager's requests since a mark of the audit log was forbidden, or
// allowed by rights that the manifests don't give it.
func (o *operator) expectWithinRights(mark int64) {
	GinkgoHelper()
	rights := o.rights()
	requests, err := audit.Since(mark, byManager)
	Expect(err).NotTo(HaveOccurred())
	Expect(requests).NotTo(BeEmpty())
	for _, request := range requests {
		Expect(request.Code).NotTo(Equal(403), "a right that the manager lacks: %s", request)
		if request.Resource == "" {
			continue // discovery, which everybody may ask for
		}
		Expect(rights).To(ContainElement(Satisfy(func(r right) bool { return r.covers(request) })),
			"a right that the manager has from elsewhere: %s", request)
	}
}

func byManager(r utils.Request) bool { return r.User == utils.ManagerUser }

func mark() int64 {
	GinkgoHelper()
	mark, err := audit.Mark()
	Expect(err).NotTo(HaveOccurred())
	return mark
}

// expectRunning waits until both pods of the Deployment that the controller manager has made run.
func expectRunning(ctx context.Context, m manifests) {
	GinkgoHelper()
	deployment := m.deployment()
	kubectl(ctx, "rollout", "status", "deployment/"+deployment.Name, "-n", deployment.Namespace, "--timeout", "60s")
	pods := &corev1.PodList{}
	Expect(k8sClient.List(ctx, pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))).
		To(Succeed())
	Expect(pods.Items).To(HaveLen(2), fmt.Sprint("pods of ", deployment.Name))
}
