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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/hack/controlplane"
	"github.com/ktechhub/configwatch/test/utils"
)

const root = "../../.."

var (
	plane     *controlplane.Plane
	k8sClient client.WithWatch
	audit     utils.AuditLog
	binary    string // of the manager
)

func TestInstall(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Install Suite")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	audit = utils.AuditLog(filepath.Join(GinkgoT().TempDir(), "audit.log"))
	plane, err = controlplane.Start(ctx, controlplane.Options{Components: controlplane.Full(), AuditLog: string(audit)})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	k8sClient, err = utils.NewClient(plane.RESTConfig())
	Expect(err).NotTo(HaveOccurred())
	binary, err = utils.BuildManager(ctx)
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(30*time.Minute)) // programs that aren't in the cache are built first

// kubectl runs the real one, in the repository's root, and returns what it prints.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return run(ctx, plane.Program(controlplane.Kubectl), append([]string{"--kubeconfig", plane.Kubeconfig()}, args...)...)
}

// run runs a program in the repository's root and returns what it prints.
func run(ctx context.Context, program string, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = root
	// The variables of a make that runs the tests are none of a make that a test runs.
	command.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	var stderr strings.Builder
	command.Stderr = &stderr
	stdout, err := command.Output()
	Expect(err).NotTo(HaveOccurred(), "%s %s\n%s%s", program, strings.Join(args, " "), stdout, &stderr)
	return string(stdout)
}

func createNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(k8sClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(k8sClient.Create(ctx, object)).To(Succeed())
	}
}
