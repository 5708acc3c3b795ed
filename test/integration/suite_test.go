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
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/hack/controlplane"
	"github.com/ktechhub/configwatch/test/utils"
)

const (
	deployment  = "Deployment"
	statefulSet = "StatefulSet"
	daemonSet   = "DaemonSet"
	cronJob     = "CronJob"

	steadyWhile = 2 * time.Second // in which a busy loop would show
)

var (
	plane      *controlplane.Plane
	k8sClient  client.WithWatch
	audit      utils.AuditLog
	barrier    *utils.Barrier
	binary     string // of the manager
	kubeconfig string // of the manager
	manager    *utils.Manager
	namespace  string // of the running test
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	SetDefaultConsistentlyDuration(100 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Integration Suite")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	audit = utils.AuditLog(filepath.Join(GinkgoT().TempDir(), "audit.log"))
	plane, err = controlplane.Start(ctx, controlplane.Options{AuditLog: string(audit)})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	k8sClient, err = utils.NewClient(plane.RESTConfig())
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err = utils.Install(ctx, plane, k8sClient)
	Expect(err).NotTo(HaveOccurred())
	binary, err = utils.BuildManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	startManager(ctx)
	DeferCleanup(stopManager)
	barrier, err = utils.NewBarrier(ctx, k8sClient)
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(30*time.Minute)) // programs that aren't in the cache are built first

var _ = BeforeEach(func(ctx SpecContext) {
	namespace = newNamespace(ctx)
})

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() {
		AddReportEntry("the manager's log", manager.Log())
	}
})

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns, err := utils.NewNamespace(ctx, k8sClient)
	Expect(err).NotTo(HaveOccurred())
	return ns.Name
}

// here is the test's namespace.
func here() utils.Namespace {
	return utils.Namespace{Client: k8sClient, Name: namespace}
}

// run starts a manager and waits until it is ready.
func run(ctx context.Context, kubeconfig string, args ...string) *utils.Manager {
	GinkgoHelper()
	m := launch(kubeconfig, args...)
	Expect(m.WaitReady(ctx)).To(Succeed())
	return m
}

func launch(kubeconfig string, args ...string) *utils.Manager {
	GinkgoHelper()
	m, err := utils.StartManager(utils.ManagerOptions{Binary: binary, Kubeconfig: kubeconfig, Args: args})
	Expect(err).NotTo(HaveOccurred())
	return m
}

// startManager starts the manager that all tests share.
func startManager(ctx context.Context) {
	GinkgoHelper()
	manager = run(ctx, kubeconfig)
}

func stopManager() {
	manager.Stop()
}

// insteadOfManager stops the manager that all tests share until the test is over.
func insteadOfManager() {
	stopManager()
	DeferCleanup(func(ctx SpecContext) { startManager(ctx) })
}

// settle returns when the manager has seen everything that came before.
func settle(ctx context.Context) {
	GinkgoHelper()
	Expect(barrier.Pass(ctx)).To(Succeed())
}

// create creates objects, in the test's namespace if they name none.
func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	Expect(here().Create(ctx, objects...)).To(Succeed())
}

// change reads an object anew, changes it and writes it.
func change[T client.Object](ctx context.Context, object T, how func(T)) {
	GinkgoHelper()
	Expect(utils.Change(ctx, k8sClient, object, how)).To(Succeed())
}

// reload reads an object anew: what it had before is gone.
func reload[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Expect(utils.Reload(ctx, k8sClient, object)).To(Succeed())
	return object
}

// set changes a key of a ConfigMap's data.
func set(ctx context.Context, name, key, value string) {
	GinkgoHelper()
	change(ctx, configMap(name), func(c *corev1.ConfigMap) { c.Data[key] = value })
}

// setSecret changes a key of a Secret's data.
func setSecret(ctx context.Context, name, key, value string) {
	GinkgoHelper()
	change(ctx, secret(name), func(s *corev1.Secret) { s.Data[key] = []byte(value) })
}

func configMap(name string) *corev1.ConfigMap {
	return utils.MakeConfigMap(name).Namespace(namespace).Obj()
}

func secret(name string) *corev1.Secret {
	return utils.MakeSecret(name).Namespace(namespace).Obj()
}

// establish creates a ConfigWatch and waits until the sources and targets that it has are recorded.
func establish(ctx context.Context, configWatches ...*utils.ConfigWatchBuilder) {
	GinkgoHelper()
	settle(ctx)
	for _, b := range configWatches {
		cw := b.Obj()
		create(ctx, cw)
		Eventually(status).WithArguments(ctx, cw.Name).Should(HaveField("ObservedGeneration", cw.Generation))
	}
}

func status(ctx context.Context, configWatch string) v1alpha1.ConfigWatchStatus {
	GinkgoHelper()
	status, err := here().Status(ctx, configWatch)
	Expect(err).NotTo(HaveOccurred())
	return status
}

// row is that of a target, empty if there is none.
func row(ctx context.Context, configWatch, kind, name string) v1alpha1.TargetStatus {
	GinkgoHelper()
	row, err := here().Row(ctx, configWatch, kind, name)
	Expect(err).NotTo(HaveOccurred())
	return row
}

// sourceRow is that of a source, empty if there is none.
func sourceRow(ctx context.Context, configWatch string, kind v1alpha1.SourceKind, name string) v1alpha1.SourceStatus {
	GinkgoHelper()
	row, err := here().SourceRow(ctx, configWatch, kind, name)
	Expect(err).NotTo(HaveOccurred())
	return row
}

// condition is a condition of a ConfigWatch without its generation and time, empty if it isn't there.
func condition(ctx context.Context, configWatch, conditionType string) metav1.Condition {
	GinkgoHelper()
	condition, err := here().Condition(ctx, configWatch, conditionType)
	Expect(err).NotTo(HaveOccurred())
	return condition
}

// restartsOf watches the restarts of a workload from now on.
func restartsOf(ctx context.Context, kind, name string) *utils.Restarts {
	GinkgoHelper()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	restarts, err := utils.WatchRestarts(watching, k8sClient, kind, namespace, name)
	Expect(err).NotTo(HaveOccurred())
	return restarts
}

// expectRestarts waits until there are as many restarts as expected, and checks that there are no more.
func expectRestarts(ctx context.Context, restarts *utils.Restarts, n int) {
	GinkgoHelper()
	Eventually(restarts.Marks).Should(HaveLen(n))
	settle(ctx)
	Consistently(restarts.Marks).Should(HaveLen(n))
}

// notes are what the Events of the test's namespace with that reason say, each after the kind of the
// object that it is about.
func notes(ctx context.Context, reason string) []string {
	GinkgoHelper()
	said, err := here().Notes(ctx, reason)
	Expect(err).NotTo(HaveOccurred())
	return said
}

// since is a place in the audit log: its end at the time of the call.
func since() int64 {
	GinkgoHelper()
	mark, err := audit.Mark()
	Expect(err).NotTo(HaveOccurred())
	return mark
}

// requestsOf are the requests of a user about the test's namespace, without those that begin a watch.
func requestsOf(user string, since int64) []string {
	GinkgoHelper()
	return requests(since, func(r utils.Request) bool { return r.User == user && r.Namespace == namespace })
}

// idleRequests are the requests of a manager that should make none. What it still has to do for a test before is
// left out.
func idleRequests(since int64) []string {
	GinkgoHelper()
	return requests(since, func(r utils.Request) bool {
		return r.User == utils.ManagerUser && (r.Namespace == namespace || r.Namespace == "")
	})
}

// requests are some of the requests, without those that begin a watch.
func requests(since int64, which func(utils.Request) bool) []string {
	GinkgoHelper()
	requests, err := audit.Since(since, func(r utils.Request) bool { return which(r) && r.Verb != "watch" })
	Expect(err).NotTo(HaveOccurred())
	said := make([]string, len(requests))
	for i, r := range requests {
		said[i] = strings.TrimSpace(r.String())
	}
	return said
}
