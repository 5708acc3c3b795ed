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
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

// account makes a ServiceAccount in the manager's namespace, which may do there what the manager may, and
// is its name and a kubeconfig of it.
func account(ctx context.Context) (name, kubeconfig string) {
	GinkgoHelper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: utils.ManagerNamespace, GenerateName: "manager-"}}
	Expect(k8sClient.Create(ctx, object)).To(Succeed())
	for _, role := range []string{"configwatch-manager-role", "configwatch-leader-election-role"} {
		bind(ctx, utils.ManagerNamespace, "Role", role, object.Name)
	}
	path, err := utils.KubeconfigFor(ctx, plane, k8sClient, object.Name)
	Expect(err).NotTo(HaveOccurred())
	return object.Name, path
}

// bind gives a role to a ServiceAccount of the manager's namespace, in a namespace, or in all if that is
// empty. The account is of one test alone, so nothing needs to be undone.
func bind(ctx context.Context, in, kind, role, account string) {
	GinkgoHelper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: utils.ManagerNamespace, Name: account}}
	var binding client.Object = &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: account + "-" + role}, RoleRef: ref, Subjects: subjects,
	}
	if in == "" {
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account + "-" + role}, RoleRef: ref, Subjects: subjects}
	}
	Expect(k8sClient.Create(ctx, binding)).To(Succeed())
}

// managerRules are what the manager's ClusterRole allows, without the verbs on the resources for which
// the filter is false.
func managerRules(ctx context.Context, keep func(resource, verb string) bool) []rbacv1.PolicyRule {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	Expect(k8sClient.Get(ctx, client.ObjectKey{Name: "configwatch-manager-role"}, role)).To(Succeed())
	var rules []rbacv1.PolicyRule
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			verbs := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return !keep(resource, verb) })
			if len(verbs) > 0 {
				rules = append(rules, rbacv1.PolicyRule{APIGroups: rule.APIGroups, Resources: []string{resource}, Verbs: verbs})
			}
		}
	}
	return rules
}

// refused are the requests of a ServiceAccount that the API server didn't allow.
func refused(account string, since int64) []utils.Request {
	GinkgoHelper()
	requests, err := audit.Since(since, func(r utils.Request) bool {
		return r.User == "system:serviceaccount:"+utils.ManagerNamespace+":"+account && r.Code == http.StatusForbidden
	})
	Expect(err).NotTo(HaveOccurred())
	return requests
}

var _ = Describe("A manager of chosen namespaces", func() {
	It("works with the Roles of config/components/namespaced alone, and touches no other namespace", func(ctx SpecContext) {
		insteadOfManager()
		const chosen = "team-a"
		name, kubeconfig := account(ctx)
		objects, err := utils.Render(ctx, plane, "config/samples/namespaced")
		Expect(err).NotTo(HaveOccurred())
		for _, ns := range []string{chosen, "team-b"} {
			Expect(k8sClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())
			Expect(k8sClient.Create(ctx, roleIn(objects, ns))).To(Succeed())
			bind(ctx, ns, "Role", "configwatch-watcher", name)
		}
		elsewhere := namespace
		restarts := map[string]*utils.Restarts{}
		mark := since()
		m := run(ctx, kubeconfig, "--watch-namespaces="+chosen+",team-b")
		DeferCleanup(m.Stop)
		for _, ns := range []string{chosen, "team-b", elsewhere} {
			namespace = ns
			create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(), utils.MakeSecret("credentials").Data("k", "v").Obj(),
				utils.MakeDeployment("web").EnvFromConfigMap("app-config").EnvFromSecret("credentials").Obj(), utils.MakeConfigWatch("web").Target(deployment, "web").Obj())
			restarts[ns] = restartsOf(ctx, deployment, "web")
			if ns != elsewhere {
				Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Sources", HaveLen(2)))
			}
		}
		for _, ns := range []string{elsewhere, chosen, "team-b"} {
			namespace = ns
			set(ctx, "app-config", "LOG_LEVEL", "debug")
		}
		Eventually(restarts[chosen].Count).Should(Equal(1))
		Eventually(restarts["team-b"].Count).Should(Equal(1))
		Consistently(restarts[elsewhere].Count).Should(BeZero())
		namespace = elsewhere
		Expect(status(ctx, "web")).To(BeZero())
		Expect(refused(name, mark)).To(BeEmpty())
		Expect(m.Ready(ctx)).To(Succeed())
	})
})

// roleIn is the Role of a namespace that gives the manager what it needs there.
func roleIn(objects []*unstructured.Unstructured, namespace string) *rbacv1.Role {
	GinkgoHelper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Role" && o.GetNamespace() == namespace
	})
	Expect(i).NotTo(Equal(-1), "there is a Role for %s", namespace)
	role := &rbacv1.Role{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, role)).To(Succeed())
	Expect(role.Rules).NotTo(BeEmpty())
	return role
}

var _ = Describe("A permission that the manager lacks (E11)", func() {
	const patience = 70 * time.Second // a list that was refused is tried again within a minute

	// runWithout runs a manager with a role of its own, and is the role.
	runWithout := func(ctx context.Context, resource, verb string) (*utils.Manager, *rbacv1.ClusterRole) {
		insteadOfManager()
		name, kubeconfig := account(ctx)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		role.Rules = managerRules(ctx, func(r, v string) bool { return r != resource || verb != "" && v != verb })
		Expect(k8sClient.Create(ctx, role)).To(Succeed())
		bind(ctx, "", "ClusterRole", name, name)
		m := launch(kubeconfig)
		DeferCleanup(m.Stop)
		return m, role
	}
	grant := func(ctx context.Context, role *rbacv1.ClusterRole) {
		role.Rules = managerRules(ctx, func(string, string) bool { return true })
		Expect(k8sClient.Update(ctx, role)).To(Succeed())
	}

	It("to read Secrets is told, holds up none that needs no Secret, and is picked up once it is granted", func(ctx SpecContext) {
		m, role := runWithout(ctx, "secrets", "")
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(), utils.MakeSecret("credentials").Data("password", "before").Obj(),
			utils.MakeDeployment("web").Obj(), utils.MakeDeployment("api").Obj(),
			utils.MakeConfigWatch("web").ConfigMap("app-config").Target(deployment, "web").Obj(),
			utils.MakeConfigWatch("api").ConfigMap("app-config").Secret("credentials").Target(deployment, "api").Obj())
		web, api := restartsOf(ctx, deployment, "web"), restartsOf(ctx, deployment, "api")

		Eventually(condition).WithArguments(ctx, "api", v1alpha1.ConditionStalled).Should(SatisfyAll(
			HaveField("Reason", v1alpha1.ReasonPermissionDenied), HaveField("Message", HavePrefix("the operator may not read every Secret it needs: "+
				"its role needs list and watch (secrets: secrets is forbidden: "))))
		Expect(condition(ctx, "api", v1alpha1.ConditionReady)).To(SatisfyAll(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonPermissionDenied)))
		Eventually(notes).WithArguments(ctx, v1alpha1.EventStalled).Should(ContainElement(HavePrefix("ConfigWatch: PermissionDenied: the operator may not read every Secret")))
		Expect(sourceRow(ctx, "api", v1alpha1.Secret, "credentials").State).To(Equal(v1alpha1.SourceUnreadable))
		Expect(m.Ready(ctx)).To(MatchError(ContainSubstring("readable failed")))
		Expect(m.Log()).To(ContainSubstring("secrets is forbidden"))

		By("restarting for a ConfigMap all the same")
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Sources", HaveLen(1)))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(web.Count).Should(Equal(1))
		Eventually(api.Count).Should(Equal(1))

		By("granting it, without a restart of the manager")
		grant(ctx, role)
		Eventually(condition).WithArguments(ctx, "api", v1alpha1.ConditionStalled).WithTimeout(patience).Should(BeZero())
		Eventually(m.Ready).WithArguments(ctx).Should(Succeed())
		Expect(sourceRow(ctx, "api", v1alpha1.Secret, "credentials").State).To(Equal(v1alpha1.SourcePresent))
		setSecret(ctx, "credentials", "password", "after")
		Eventually(api.Count).Should(Equal(2))
		Consistently(web.Count).Should(Equal(1))
	})

	It("to patch is told in the row of the target, and its restart is made once it is granted", func(ctx SpecContext) {
		m, role := runWithout(ctx, "deployments", "patch")
		Expect(m.WaitReady(ctx)).To(Succeed())
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(), utils.MakeDeployment("web").Obj(), utils.MakeStatefulSet("cache").Obj(),
			utils.MakeConfigWatch("all").ConfigMap("app-config").Target(deployment, "web").Target(statefulSet, "cache").Obj())
		web, cache := restartsOf(ctx, deployment, "web"), restartsOf(ctx, statefulSet, "cache")
		for kind, name := range map[string]string{deployment: "web", statefulSet: "cache"} {
			Eventually(row).WithArguments(ctx, "all", kind, name).Should(HaveField("Sources", HaveLen(1)))
		}
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(row).WithArguments(ctx, "all", deployment, "web").Should(SatisfyAll(
			HaveField("State", v1alpha1.TargetPending), HaveField("Reason", v1alpha1.ReasonPermissionDenied),
			HaveField("Message", ContainSubstring(`cannot patch resource "deployments" in API group "apps"`))))
		Eventually(cache.Count).Should(Equal(1))
		Expect(condition(ctx, "all", v1alpha1.ConditionStalled)).To(SatisfyAll(
			HaveField("Reason", v1alpha1.ReasonPermissionDenied), HaveField("Message", HavePrefix("Deployment web: "))))
		Eventually(notes).WithArguments(ctx, v1alpha1.EventRestartFailed).Should(ConsistOf(ContainSubstring("cannot patch resource")))

		grant(ctx, role)
		Eventually(web.Count).WithTimeout(patience).Should(Equal(1))
		Eventually(condition).WithArguments(ctx, "all", v1alpha1.ConditionStalled).Should(BeZero())
		Consistently(cache.Count).Should(Equal(1))
	})
})
