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

package schema

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/hack/controlplane"
)

const (
	root = "../../.."
	web  = `targets: [{kind: Deployment, name: web}]` // the least that a spec has
)

var (
	plane     *controlplane.Plane
	k8sClient client.Client
	rawClient rest.Interface
	namespace string // of the running test
)

func TestSchema(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Schema Suite")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	plane, err = controlplane.Start(ctx, controlplane.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)

	_, err = envtest.InstallCRDs(plane.RESTConfig(), envtest.CRDInstallOptions{
		Paths:              []string{filepath.Join(root, "config", "crd", "bases")},
		ErrorIfPathMissing: true,
	})
	Expect(err).NotTo(HaveOccurred(), "the API server takes the CRD: its rules compile and cost little enough")

	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	k8sClient, err = client.New(plane.RESTConfig(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	config := plane.RESTConfig()
	config.NegotiatedSerializer = clientgoscheme.Codecs
	rawClient, err = rest.UnversionedRESTClientFor(config)
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(30*time.Minute)) // programs that aren't in the cache are built first

var _ = BeforeEach(func(ctx SpecContext) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "schema-"}}
	Expect(k8sClient.Create(ctx, ns)).To(Succeed())
	namespace = ns.Name
})

// create sends a ConfigWatch to the API server as it is written, in YAML.
func create(ctx context.Context, manifest string) error {
	return request(rawClient.Post(), manifest).Do(ctx).Error()
}

// request is about a ConfigWatch in the test's namespace. Like those of kubectl, it has unknown and doubled fields
// refused.
func request(r *rest.Request, manifest string) *rest.Request {
	return r.AbsPath("/apis/configwatch.ktechhub.io/v1alpha1").Namespace(namespace).Resource("configwatches").
		Param("fieldValidation", metav1.FieldValidationStrict).
		SetHeader("Content-Type", "application/yaml").
		Body([]byte(manifest))
}

// withSpec is a manifest around a spec, in YAML.
func withSpec(name, spec string) string {
	return "apiVersion: configwatch.ktechhub.io/v1alpha1\nkind: ConfigWatch\nmetadata: {name: " + name + "}\n" +
		"spec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")
}

func get(ctx context.Context, name string) *v1alpha1.ConfigWatch {
	GinkgoHelper()
	watch := &v1alpha1.ConfigWatch{}
	Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, watch)).To(Succeed())
	return watch
}

// complaints are the messages of an error, each with the field it is about.
func complaints(err error) []string {
	GinkgoHelper()
	status, ok := err.(apierrors.APIStatus)
	Expect(ok).To(BeTrue(), "not the API server's answer: %v", err)
	details := status.Status().Details
	if details == nil || len(details.Causes) == 0 {
		return []string{status.Status().Message}
	}
	var messages []string
	for _, cause := range details.Causes {
		// A note of the API server's own, which goes with any value of a wrong type.
		if strings.Contains(cause.Message, "some validation rules were not checked because the object was invalid") {
			continue
		}
		messages = append(messages, cause.Field+": "+cause.Message)
	}
	return messages
}

// kubectl runs the real one in the test's namespace and returns what it prints.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	args = append([]string{"--kubeconfig", plane.Kubeconfig(), "--namespace", namespace}, args...)
	command := exec.CommandContext(ctx, plane.Program(controlplane.Kubectl), args...)
	var stderr strings.Builder
	command.Stderr = &stderr
	stdout, err := command.Output()
	Expect(err).NotTo(HaveOccurred(), stderr.String())
	return string(stdout)
}
