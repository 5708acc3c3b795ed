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
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("config/default", Ordered, func() {
	const folder, shop = "config/default", "default-shop"
	var (
		m         manifests
		installed int64 // mark of the audit log
	)

	BeforeAll(func(ctx SpecContext) {
		installed = mark()
		m = render(ctx, folder)
		createNamespace(ctx, shop)
		kubectl(ctx, "apply", "--server-side", "--validate=strict", "-k", folder)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "-k", folder) })
	})

	It("runs its pods in a namespace that admits only what the restricted Pod Security Standard allows", func(ctx SpecContext) {
		expectRunning(ctx, m)

		unconfined := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: utils.ManagerNamespace, Name: "unconfined"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		}
		err := k8sClient.Create(ctx, unconfined)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest"`)))
	})

	It("confines the container further than that standard asks for", func() {
		Expect(m.container().SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
	})

	It("names the image of the release that the tree is on the way to", func() {
		version, err := os.ReadFile(filepath.Join(root, "VERSION"))
		Expect(err).NotTo(HaveOccurred())
		Expect(m.container().Image).To(Equal("ghcr.io/ktechhub/configwatch:v" + strings.TrimSpace(string(version))))
	})

	It("asks the ports on which the manager listens", func() {
		container := m.container()
		Expect(container.Args).To(ContainElements(probeArg, metricsArg))
		Expect(container.Ports).To(ConsistOf(
			corev1.ContainerPort{Name: "health", ContainerPort: 8081, Protocol: corev1.ProtocolTCP},
			corev1.ContainerPort{Name: "metrics", ContainerPort: 8443, Protocol: corev1.ProtocolTCP},
		))
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
			Expect(probe.HTTPGet.Port.StrVal).To(Equal("health"))
		}
		service := one[corev1.Service](m, "Service")
		Expect(service.Spec.Ports[0].TargetPort.StrVal).To(Equal("metrics"))
		policy := one[networkingv1.NetworkPolicy](m, "NetworkPolicy")
		Expect(policy.Spec.Ingress[0].Ports[0].Port.StrVal).To(Equal("metrics"))
		Expect(policy.Spec.PolicyTypes).To(Equal([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}), "webhooks go out")
		for _, selector := range []map[string]string{service.Spec.Selector, policy.Spec.PodSelector.MatchLabels} {
			Expect(selector).To(Equal(m.deployment().Spec.Selector.MatchLabels))
		}
	})

	DescribeTable("waits longer than the manager takes",
		func(file, constant string, patience func() time.Duration) {
			source, err := os.ReadFile(filepath.Join(root, file))
			Expect(err).NotTo(HaveOccurred())
			found := regexp.MustCompile(constant + ` = (\d+) \* time\.(Second|Minute)\n`).FindSubmatch(source)
			Expect(found).NotTo(BeNil(), "no constant %s in %s", constant, file)
			amount, err := strconv.Atoi(string(found[1]))
			Expect(err).NotTo(HaveOccurred())
			unit := map[string]time.Duration{"Second": time.Second, "Minute": time.Minute}[string(found[2])]
			Expect(patience()).To(BeNumerically(">", time.Duration(amount)*unit))
		},
		Entry("to stop", "cmd/options.go", "shutdownTimeout", func() time.Duration {
			return time.Duration(ptr.Deref(m.deployment().Spec.Template.Spec.TerminationGracePeriodSeconds, 0)) * time.Second
		}),
		Entry("to reach the API server", "cmd/main.go", "keyTimeout", func() time.Duration {
			probe := m.container().StartupProbe
			return time.Duration(probe.PeriodSeconds*probe.FailureThreshold) * time.Second
		}),
	)

	It("serves metrics to whom a role allows it, and to nobody else", func(ctx SpecContext) {
		operator := newOperator(ctx, m)
		operator.start(ctx)
		create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "configwatch-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: shop, Name: "prometheus"}},
		})
		for _, name := range []string{"prometheus", "other"} {
			create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}})
		}

		Eventually(scrape).WithArguments(ctx, operator, "").Should(Equal(http.StatusUnauthorized))
		Expect(scrape(ctx, operator, tokenOf(ctx, shop, "other"))).To(Equal(http.StatusForbidden))
		Expect(scrape(ctx, operator, tokenOf(ctx, shop, "prometheus"))).To(Equal(http.StatusOK))
	})

	It("E7: hands the lead over at once when the leader stops", func(ctx SpecContext) {
		first, second := newOperator(ctx, m), newOperator(ctx, m)
		first.start(ctx)
		Eventually(leader).WithArguments(ctx).ShouldNot(BeEmpty())
		before := leader(ctx)
		second.start(ctx) // and is ready, though it doesn't lead
		Expect(leader(ctx)).To(Equal(before))

		stopped := time.Now()
		first.Stop()

		Eventually(leader).WithArguments(ctx).Should(And(Not(BeEmpty()), Not(Equal(before))))
		Expect(time.Since(stopped)).To(BeNumerically("<", 15*time.Second), "the duration of the lease, if it weren't given back")
	})

	It("lets the manager do its work, with rights of which it uses each", func(ctx SpecContext) {
		operator := newOperator(ctx, m)
		operator.expectWork(ctx, shop)
		operator.expectJustItsRights(installed)
	})

	DescribeTable("adds to the roles for users of a namespace",
		func(ctx SpecContext, role string, allowed, denied []string) {
			user := "somebody-with-role-" + role
			create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			})
			for _, verb := range allowed {
				Eventually(may).WithArguments(ctx, user, verb, shop).Should(BeTrue(), verb)
			}
			for _, verb := range denied {
				Expect(may(ctx, user, verb, shop)).To(BeFalse(), verb)
			}
			Expect(may(ctx, user, "list", "default")).To(BeFalse(), "another namespace")
		},
		Entry("view: to read", "view", []string{"get", "list", "watch"}, []string{"create", "update", "patch", "delete", "deletecollection"}),
		Entry("edit: to write", "edit", []string{"get", "list", "watch", "create", "update", "patch", "delete"}, []string{"deletecollection"}),
		Entry("admin: everything", "admin",
			[]string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}, []string{"escalate"}),
	)

	It("is what make build-installer writes, with the image that is asked for", func(ctx SpecContext) {
		const image = "registry.example/configwatch:test"
		installer := filepath.Join(GinkgoT().TempDir(), "install.yaml")
		run(ctx, "make", "build-installer", "INSTALLER="+installer, "IMG="+image)

		written := string(must(os.ReadFile(installer)))
		Expect(written).To(ContainSubstring("image: " + image))
		released := kubectl(ctx, "kustomize", folder)
		Expect(strings.Replace(written, image, m.container().Image, 1)).To(Equal(released))
		Expect(kubectl(ctx, "apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", installer)).
			To(ContainSubstring("deployment.apps/configwatch-controller-manager serverside-applied"))
	})
})

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

// scrape is the status with which the metrics are answered.
func scrape(ctx context.Context, o *operator, token string) int {
	GinkgoHelper()
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, "https://"+o.metrics+"/metrics", nil))
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	httpClient := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // a certificate that the manager makes itself
	}}
	response, err := httpClient.Do(request)
	if err != nil {
		return 0 // not yet listening
	}
	defer response.Body.Close()
	body := must(io.ReadAll(response.Body))
	Expect(strings.Contains(string(body), "# TYPE ")).To(Equal(response.StatusCode == http.StatusOK))
	return response.StatusCode
}

func tokenOf(ctx context.Context, namespace, account string) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	Expect(k8sClient.SubResource("token").Create(ctx, object, request)).To(Succeed())
	return request.Status.Token
}

// leader is the identity of the manager that leads, if one does.
func leader(ctx context.Context) string {
	GinkgoHelper()
	lease := &coordinationv1.Lease{}
	err := k8sClient.Get(ctx, client.ObjectKey{Namespace: utils.ManagerNamespace, Name: "configwatch.ktechhub.io"}, lease)
	if apierrors.IsNotFound(err) {
		return ""
	}
	Expect(err).NotTo(HaveOccurred())
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// may tells whether a user may do something with ConfigWatches.
func may(ctx context.Context, user, verb, namespace string) bool {
	GinkgoHelper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: "configwatch.ktechhub.io", Resource: "configwatches",
		},
	}}
	Expect(k8sClient.Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}
