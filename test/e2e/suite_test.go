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
	"os/exec"
	"path/filepath"
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

	changed = "ConfigMap app-config changed (LOG_LEVEL)" // what restarts in these tests are for
)

var (
	plane      *controlplane.Plane
	k8sClient  client.WithWatch
	audit      utils.AuditLog
	binary     string // of the manager
	kubeconfig string // of the manager
	manager    *utils.Manager
	here       utils.Namespace // of the running test
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	SetDefaultConsistentlyDuration(300 * time.Millisecond)
	RunSpecs(t, "E2E Suite")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	audit = utils.AuditLog(filepath.Join(GinkgoT().TempDir(), "audit.log"))
	plane, err = controlplane.Start(ctx, controlplane.Options{Components: controlplane.Full(), AuditLog: string(audit)})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	k8sClient, err = utils.NewClient(plane.RESTConfig())
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err = utils.Install(ctx, plane, k8sClient)
	Expect(err).NotTo(HaveOccurred())
	binary, err = utils.BuildManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	manager = run(ctx)
	DeferCleanup(func() { manager.Stop() })
}, NodeTimeout(45*time.Minute)) // programs that aren't in the cache are built first

var _ = BeforeEach(func(ctx SpecContext) {
	var err error
	here, err = utils.NewNamespace(ctx, k8sClient)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error { // pods are refused until it is there
		return k8sClient.Get(ctx, client.ObjectKey{Namespace: here.Name, Name: "default"}, &corev1.ServiceAccount{})
	}).Should(Succeed())
	create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj())
})

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() {
		AddReportEntry("the manager's log", manager.Log())
	}
})

// run starts a manager and waits until it is ready.
func run(ctx context.Context, args ...string) *utils.Manager {
	GinkgoHelper()
	m, err := utils.StartManager(utils.ManagerOptions{Binary: binary, Kubeconfig: kubeconfig, Args: args})
	Expect(err).NotTo(HaveOccurred())
	Expect(m.WaitReady(ctx)).To(Succeed())
	return m
}

// insteadOfManager stops the manager that all tests share until the test is over.
func insteadOfManager() {
	manager.Stop()
	DeferCleanup(func(ctx SpecContext) { manager = run(ctx) })
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	Expect(here.Create(ctx, objects...)).To(Succeed())
}

// change reads an object of the test's namespace anew, changes it and writes it.
func change[T client.Object](ctx context.Context, object T, how func(T)) {
	GinkgoHelper()
	object.SetNamespace(here.Name)
	Expect(utils.Change(ctx, k8sClient, object, how)).To(Succeed())
}

// set changes the ConfigMap that every test has.
func set(ctx context.Context, level string) {
	GinkgoHelper()
	change(ctx, utils.MakeConfigMap("app-config").Obj(), func(c *corev1.ConfigMap) { c.Data["LOG_LEVEL"] = level })
}

// establish creates a workload of the name app that uses the ConfigMap, and a ConfigWatch of that name,
// and waits until both are up to date.
func establish(ctx context.Context, kind string, workload client.Object) *utils.Restarts {
	GinkgoHelper()
	create(ctx, workload, utils.MakeConfigWatch("app").Target(kind, "app").Obj())
	Eventually(here.Row).WithArguments(ctx, "app", kind, "app").Should(SatisfyAll(
		HaveField("State", v1alpha1.TargetUpToDate), HaveField("Reason", v1alpha1.ReasonBaseline), HaveField("Sources", HaveLen(1))))
	return restartsOf(ctx, kind, "app")
}

// restartsOf watches the restarts of a workload from now on.
func restartsOf(ctx context.Context, kind, name string) *utils.Restarts {
	GinkgoHelper()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	restarts, err := utils.WatchRestarts(watching, k8sClient, kind, here.Name, name)
	Expect(err).NotTo(HaveOccurred())
	return restarts
}

// expectRow waits for the row of the workload app.
func expectRow(ctx context.Context, kind string, state v1alpha1.TargetState, reason string, message any) {
	GinkgoHelper()
	Eventually(here.Row).WithArguments(ctx, "app", kind, "app").Should(SatisfyAll(
		HaveField("State", state), HaveField("Reason", reason), HaveField("Message", message)))
}

// expectCondition waits for a condition of the ConfigWatch app, which is not to be there if it is empty.
func expectCondition(ctx context.Context, conditionType, reason, message string) {
	GinkgoHelper()
	want := metav1.Condition{}
	if reason != "" {
		want = metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	Eventually(here.Condition).WithArguments(ctx, "app", conditionType).Should(Equal(want))
}

// pods are those of the workload app that exist, by name.
func pods(ctx context.Context) (map[string]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := k8sClient.List(ctx, list, client.InNamespace(here.Name), client.MatchingLabels{"app": "app"})
	found := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp.IsZero() {
			found[pod.Name] = pod
		}
	}
	return found, err
}

// kubectl runs the real one in the test's namespace and is what it prints.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	args = append([]string{"--kubeconfig", plane.Kubeconfig(), "--namespace", here.Name}, args...)
	out, err := exec.CommandContext(ctx, plane.Program(controlplane.Kubectl), args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}
