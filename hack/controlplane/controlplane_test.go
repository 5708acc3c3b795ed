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

package controlplane_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/ktechhub/configwatch/hack/controlplane"
)

// helperVariable makes this test binary a process that starts a control plane, says so, and waits.
const helperVariable = "CONTROLPLANE_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		plane, err := controlplane.Start(context.Background(), controlplane.Options{})
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString(plane.Kubeconfig() + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or the test that started it has ended
	}
	os.Exit(m.Run())
}

func TestRolloutsComplete(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	auditLog := filepath.Join(t.TempDir(), "audit.log")
	plane, client := start(t, controlplane.Options{Components: controlplane.Full(), AuditLog: auditLog})
	deployments := client.AppsV1().Deployments("default")

	created, err := deployments.Create(t.Context(), deployment(), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	waitForRollout(t, client, created)
	waitForRollout(t, client, patchTemplate(t, client, "once"))
	g.Expect(os.ReadFile(auditLog)).To(ContainSubstring(`"verb":"patch"`))

	g.Expect(plane.KillAPIServer()).To(Succeed())
	_, err = deployments.Get(t.Context(), created.Name, metav1.GetOptions{})
	g.Expect(err).To(MatchError(syscall.ECONNREFUSED))
	g.Expect(plane.StartAPIServer(t.Context())).To(Succeed())
	waitForRollout(t, client, patchTemplate(t, client, "twice"))

	state := filepath.Dir(plane.Kubeconfig())
	g.Expect(processesUsing(t, state)).To(HaveLen(5))
	g.Expect(plane.Stop()).To(Succeed())
	g.Expect(processesUsing(t, state)).To(BeEmpty())
	g.Expect(state).NotTo(BeADirectory())
	g.Expect(plane.Stop()).To(Succeed(), "a second time")
	g.Expect(plane.StartAPIServer(t.Context())).To(MatchError(ContainSubstring("stopped")))
}

func TestServiceAccountIsKnownAndPausedServerIsSilent(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane, admin := start(t, controlplane.Options{})
	path, err := plane.KubeconfigFor("reader", serviceAccountToken(t, admin))
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.BuildConfigFromFlags("", path)
	g.Expect(err).NotTo(HaveOccurred())
	config.Timeout = time.Second
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	whoAmI := func() (string, error) {
		review, err := client.AuthenticationV1().SelfSubjectReviews().
			Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return review.Status.UserInfo.Username, err
	}
	g.Eventually(whoAmI).Should(Equal("system:serviceaccount:default:reader"))

	g.Expect(plane.PauseAPIServer()).To(Succeed())
	g.Eventually(func() bool { // until the signal has reached it
		_, err := whoAmI()
		var waited net.Error // client-go may wrap it, by where it waited
		return errors.As(err, &waited) && waited.Timeout()
	}).Should(BeTrue())
	g.Expect(plane.ResumeAPIServer()).To(Succeed())
	g.Eventually(whoAmI).Should(Equal("system:serviceaccount:default:reader"))

	g.Expect(plane.PauseAPIServer()).To(Succeed())
	g.Expect(plane.Stop()).To(Succeed(), "with a paused API server")
}

func TestComponentThatEndsAtStart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, err := controlplane.Start(t.Context(), controlplane.Options{Args: map[controlplane.Component][]string{
		controlplane.APIServer: {"--etcd-prefix=relative", "--no-such-flag"},
	}})
	g.Expect(err).To(MatchError(And(
		ContainSubstring("starting kube-apiserver: it ended (exit status 1)"),
		ContainSubstring("unknown flag: --no-such-flag"))))
}

func TestKilledParentLeavesNothing(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent")
	}
	g := NewWithT(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), helperVariable+"=yes")
	parent.Stderr = os.Stderr
	_, err := parent.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	stdout, err := parent.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parent.Start()).To(Succeed())
	kubeconfig, err := bufio.NewReader(stdout).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	state := filepath.Dir(kubeconfig)
	g.Expect(processesUsing(t, state)).To(HaveLen(2))

	g.Expect(parent.Process.Kill()).To(Succeed())
	g.Expect(parent.Wait()).To(MatchError("signal: killed"))
	g.Eventually(func() []string { return processesUsing(t, state) }).Should(BeEmpty())

	// What the killed process could not remove, the next start does, even one that fails.
	_, err = controlplane.Start(t.Context(), controlplane.Options{Args: map[controlplane.Component][]string{
		controlplane.Etcd: {"--no-such-flag"},
	}})
	g.Expect(err).To(MatchError(ContainSubstring("starting etcd")))
	g.Expect(state).NotTo(BeADirectory())
}

func TestBuildPrefersAssets(t *testing.T) {
	g := NewWithT(t)
	assets, home := t.TempDir(), t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", home)
	var progress strings.Builder

	_, err := controlplane.Build(t.Context(), controlplane.Envtest(), &progress)
	g.Expect(err).To(MatchError(ContainSubstring("building etcd: looking into KUBEBUILDER_ASSETS")))

	for _, component := range controlplane.Envtest() {
		g.Expect(os.WriteFile(filepath.Join(assets, string(component)), nil, 0o700)).To(Succeed())
	}
	dir, err := controlplane.Build(t.Context(), controlplane.Envtest(), &progress)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filepath.EvalSymlinks(filepath.Join(dir, "etcd"))).To(Equal(filepath.Join(assets, "etcd")))
	g.Expect(progress.String()).To(ContainSubstring("etcd: taken from KUBEBUILDER_ASSETS"))

	g.Expect(controlplane.Path(controlplane.Envtest())).To(Equal(dir))
	_, err = controlplane.Path(controlplane.Full())
	g.Expect(err).To(MatchError(ContainSubstring("kube-controller-manager")))
}

func start(t *testing.T, options controlplane.Options) (*controlplane.Plane, kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	plane, err := controlplane.Start(t.Context(), options)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(plane.Stop()).To(Succeed()) })
	client, err := kubernetes.NewForConfig(plane.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	return plane, client
}

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.local/web:1"}}},
			},
		},
	}
}

func patchTemplate(t *testing.T, client kubernetes.Interface, value string) *appsv1.Deployment {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"rolled":%q}}}}}`, value)
	patched, err := client.AppsV1().Deployments("default").
		Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return patched
}

func waitForRollout(t *testing.T, client kubernetes.Interface, since *appsv1.Deployment) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	watcher, err := client.AppsV1().Deployments(since.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector:   "metadata.name=" + since.Name,
		ResourceVersion: since.ResourceVersion,
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		d, isDeployment := event.Object.(*appsv1.Deployment)
		if isDeployment && d.Status.ObservedGeneration >= since.Generation &&
			d.Status.Replicas == 3 && d.Status.UpdatedReplicas == 3 && d.Status.AvailableReplicas == 3 {
			return
		}
	}
	t.Fatalf("the rollout did not complete: %v", ctx.Err())
}

func serviceAccountToken(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	g := NewWithT(t)
	accounts := client.CoreV1().ServiceAccounts("default")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	_, err := accounts.Create(t.Context(), account, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	request, err := accounts.CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return request.Status.Token
}

// processesUsing are the command lines of the processes, other than zombies, that name the state folder.
func processesUsing(t *testing.T, state string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		commandLine, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(commandLine), state) {
			found = append(found, string(commandLine))
		}
	}
	return found
}
