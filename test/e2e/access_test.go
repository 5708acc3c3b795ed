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
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/hashkey"
	"github.com/ktechhub/configwatch/test/utils"
)

// permission is one verb on one resource. To list and to watch are one: a watch lists too, and only where
// the API server can't do that is there a list.
type permission struct{ verb, group, resource string }

func permissionOf(verb, group, resource string) permission {
	if verb == "watch" {
		verb = "list"
	}
	return permission{verb: verb, group: group, resource: resource}
}

var _ = Describe("The manager's permissions", func() {
	It("are enough, and none is more than it uses", func(ctx SpecContext) {
		By("doing all that the manager does")
		manager.Stop()
		for _, made := range []client.Object{&corev1.Secret{}, &coordinationv1.Lease{}} {
			made.SetNamespace(utils.ManagerNamespace)
			made.SetName(hashkey.SecretName)
			if _, ok := made.(*coordinationv1.Lease); ok {
				made.SetName(leaseName)
			}
			Expect(client.IgnoreNotFound(k8sClient.Delete(ctx, made))).To(Succeed())
		}
		mark, err := audit.Mark()
		Expect(err).NotTo(HaveOccurred())
		address := freeAddress()
		manager = run(ctx, "--leader-elect=true", "--metrics-bind-address="+address)
		create(ctx,
			utils.MakeDeployment("app").EnvFromConfigMap("app-config").Obj(), utils.MakeStatefulSet("app").EnvFromConfigMap("app-config").Obj(),
			utils.MakeDaemonSet("app").EnvFromConfigMap("app-config").Obj(), utils.MakeCronJob("app").EnvFromConfigMap("app-config").Obj(),
			utils.MakeConfigWatch("app").ConfigMap("app-config").Rollout(v1alpha1.RolloutSpec{SettleSeconds: new(int32(1))}).Obj())
		Eventually(here.Status).WithArguments(ctx, "app").Should(HaveField("Summary.UpToDate", BeEquivalentTo(4)))
		set(ctx, "debug")
		for _, kind := range []string{deployment, statefulSet, daemonSet} {
			expectRow(ctx, kind, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		}
		Eventually(here.Notes).WithArguments(ctx, v1alpha1.EventRolloutCompleted).Should(HaveLen(3))
		Expect(scrape(ctx, address, token(ctx, "somebody"))).To(Equal(http.StatusForbidden))

		By("comparing the requests with the roles")
		requests, err := audit.Since(mark, func(r utils.Request) bool { return r.User == utils.ManagerUser })
		Expect(err).NotTo(HaveOccurred())
		var used []permission
		for _, r := range requests {
			Expect(r.Code).NotTo(Equal(http.StatusForbidden), r.String())
			used = append(used, permissionOf(r.Verb, r.Group, r.Resource))
		}
		unused := granted(ctx)
		for _, p := range used {
			delete(unused, p)
		}
		// Events that are alike are counted in the first of them, which takes a patch. None were alike here.
		delete(unused, permissionOf("patch", "events.k8s.io", "events"))
		Expect(unused).To(BeEmpty())
	})
})

var _ = AfterSuite(func() {
	if audit == "" {
		return // the control plane didn't start
	}
	requests, err := audit.Since(0, func(r utils.Request) bool {
		return r.User == utils.ManagerUser && r.Code == http.StatusForbidden
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(requests).To(BeEmpty(), "the manager's permissions were enough for all tests")
})

// granted are the permissions of the roles that are bound to the manager's ServiceAccount.
func granted(ctx context.Context) map[permission]bool {
	GinkgoHelper()
	permissions := map[permission]bool{}
	add := func(rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						permissions[permissionOf(verb, group, resource)] = true
					}
				}
			}
		}
	}
	clusterBindings, bindings := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	Expect(k8sClient.List(ctx, clusterBindings)).To(Succeed())
	Expect(k8sClient.List(ctx, bindings, client.InNamespace(utils.ManagerNamespace))).To(Succeed())
	for _, b := range clusterBindings.Items {
		if isManagers(b.Subjects) {
			role := &rbacv1.ClusterRole{}
			Expect(k8sClient.Get(ctx, client.ObjectKey{Name: b.RoleRef.Name}, role)).To(Succeed())
			add(role.Rules)
		}
	}
	for _, b := range bindings.Items {
		if isManagers(b.Subjects) {
			role := &rbacv1.Role{}
			Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.RoleRef.Name}, role)).To(Succeed())
			add(role.Rules)
		}
	}
	Expect(permissions).NotTo(BeEmpty())
	return permissions
}

func isManagers(subjects []rbacv1.Subject) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return "system:serviceaccount:"+s.Namespace+":"+s.Name == utils.ManagerUser
	})
}

// token makes a ServiceAccount that may do nothing, and is a token of it.
func token(ctx context.Context, account string) string {
	GinkgoHelper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
	create(ctx, object)
	request := &authenticationv1.TokenRequest{}
	Expect(k8sClient.SubResource("token").Create(ctx, object, request)).To(Succeed())
	return request.Status.Token
}

// scrape asks for the metrics and is the HTTP status.
func scrape(ctx context.Context, address, token string) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+token)
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := insecure.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	return response.StatusCode
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

var _ = Describe("kubectl", func() {
	It("shows how ConfigWatches are, and waits for them", func(ctx SpecContext) {
		restarts := establish(ctx, deployment, utils.MakeDeployment("app").EnvFromConfigMap("app-config").Obj())
		lines := func(args ...string) [][]string {
			var fields [][]string
			for line := range strings.Lines(kubectl(ctx, append([]string{"get"}, args...)...)) {
				fields = append(fields, strings.Fields(strings.ReplaceAll(line, "LAST RESTART", "LAST-RESTART")))
			}
			return fields
		}
		columns := []string{"NAME", "READY", "REASON", "SOURCES", "TARGETS", "UP-TO-DATE", "LAST-RESTART", "AGE"}
		shown := lines("cw")
		Expect(shown[0]).To(Equal(columns))
		Expect(shown[1][:6]).To(Equal([]string{"app", "True", "UpToDate", "1", "1", "1"}))
		Expect(shown[1]).To(HaveLen(len(columns)-1), "it has never been restarted, so there is nothing under LAST RESTART")

		set(ctx, "debug")
		Eventually(restarts.Count).Should(Equal(1))
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, changed)
		kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=30s", "cw/app")
		shown = lines("configwatch", "-o", "wide")
		Expect(shown[0]).To(Equal(append(columns, "MESSAGE")))
		Expect(shown[1][:6]).To(Equal([]string{"app", "True", "UpToDate", "1", "1", "1"}))
		Expect(shown[1][6]).To(MatchRegexp("^[0-9]+s$"))
		Expect(strings.Join(shown[1][8:], " ")).To(Equal("1 target up to date with 1 source"))
	})
})
