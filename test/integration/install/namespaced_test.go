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
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

var _ = Describe("config/samples/namespaced", Ordered, func() {
	const folder = "config/samples/namespaced"
	var (
		m         manifests
		installed int64 // mark of the audit log
		watched   []string
	)

	BeforeAll(func(ctx SpecContext) {
		installed = mark()
		m = render(ctx, folder)
		watched = []string{"team-a", "team-b"}
		for _, namespace := range watched {
			createNamespace(ctx, namespace)
		}
		kubectl(ctx, "apply", "--server-side", "--validate=strict", "-k", folder)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "-k", folder) })
	})

	It("gives the manager Roles in the namespaces that it watches and in its own, and nothing for the cluster", func() {
		Expect(all[rbacv1.ClusterRoleBinding](m, "ClusterRoleBinding")).To(BeEmpty())
		var namespaces []string
		for _, right := range m.rights() {
			namespaces = append(namespaces, right.Namespace)
		}
		slices.Sort(namespaces)
		Expect(slices.Compact(namespaces)).To(Equal(append([]string{m.deployment().Namespace}, watched...)))
		Expect(m.environment()).To(ContainElement("WATCH_NAMESPACE=" + strings.Join(watched, ",")))
	})

	It("has no roles for the cluster but those for users", func() {
		for _, role := range all[rbacv1.ClusterRole](m, "ClusterRole") {
			Expect(role.Labels).To(HaveKey(HavePrefix("rbac.authorization.k8s.io/aggregate-to-")), role.Name)
		}
	})

	It("allows in a namespace what config/default allows in the cluster", func(ctx SpecContext) {
		var cluster []rbacv1.PolicyRule
		for _, role := range all[rbacv1.ClusterRole](render(ctx, "config/default"), "ClusterRole") {
			if role.Name == "configwatch-manager-role" {
				cluster = role.Rules
			}
		}
		Expect(cluster).NotTo(BeEmpty())
		for _, role := range all[rbacv1.Role](m, "Role") {
			if slices.Contains(watched, role.Namespace) {
				Expect(role.Rules).To(Equal(cluster), role.Namespace)
			}
		}
	})

	It("serves no metrics, as it can't ask who may see them", func() {
		Expect(m.container().Args).To(ContainElement("--metrics-bind-address=0"))
		Expect(m.container().Ports).To(HaveExactElements(HaveField("Name", "health")))
		Expect(all[corev1.Service](m, "Service")).To(BeEmpty())
		Expect(one[networkingv1.NetworkPolicy](m, "NetworkPolicy").Spec.Ingress).To(BeEmpty())
	})

	It("runs its pods", func(ctx SpecContext) {
		expectRunning(ctx, m)
	})

	It("lets the manager do its work in these namespaces, with rights of which it uses each", func(ctx SpecContext) {
		operator := newOperator(ctx, m)
		operator.expectWork(ctx, watched...)
		operator.expectJustItsRights(installed)
	})
})
