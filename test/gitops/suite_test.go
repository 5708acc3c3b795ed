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

package gitops

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/hack/controlplane"
	"github.com/ktechhub/configwatch/test/utils"
)

const (
	root = "../.."

	deployment  = "Deployment"
	statefulSet = "StatefulSet"
)

var (
	plane     *controlplane.Plane
	k8sClient client.WithWatch
	manager   *utils.Manager
	barrier   *utils.Barrier

	binary     string // of the manager
	kubeconfig string // of the manager
)

func TestGitOps(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "GitOps Suite")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	plane, err = controlplane.Start(ctx, controlplane.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	k8sClient, err = utils.NewClient(plane.RESTConfig())
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err = utils.Install(ctx, plane, k8sClient)
	Expect(err).NotTo(HaveOccurred())
	binary, err = utils.BuildManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	manager, err = utils.StartManager(utils.ManagerOptions{Binary: binary, Kubeconfig: kubeconfig})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { manager.Stop() })
	Expect(manager.WaitReady(ctx)).To(Succeed())
	barrier, err = utils.NewBarrier(ctx, k8sClient)
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(30*time.Minute)) // programs that aren't in the cache are built first

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() {
		AddReportEntry("the manager's log", manager.Log())
	}
})

func newNamespace(ctx context.Context) utils.Namespace {
	GinkgoHelper()
	ns, err := utils.NewNamespace(ctx, k8sClient)
	Expect(err).NotTo(HaveOccurred())
	return ns
}

// set changes a key of a ConfigMap's data.
func set(ctx context.Context, ns utils.Namespace, name, value string) {
	GinkgoHelper()
	configMap := utils.MakeConfigMap(name).Namespace(ns.Name).Obj()
	Expect(utils.Change(ctx, k8sClient, configMap, func(c *corev1.ConfigMap) { c.Data["LOG_LEVEL"] = value })).To(Succeed())
}
