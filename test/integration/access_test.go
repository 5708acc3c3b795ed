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
	"crypto/tls"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("Metrics", func() {
	It("are served only to those whom the API server authenticates and authorizes", func(ctx SpecContext) {
		address := freeAddress()
		// Its own ServiceAccount, with the roles of config/default, asks for the reviews.
		second := run(ctx, kubeconfig, "--metrics-bind-address="+address)
		defer second.Stop()
		url := "https://" + address + "/metrics"

		By("refusing those who bring no token, or one that is no good")
		Eventually(fetch).WithContext(ctx).WithArguments(url, "").Should(HaveHTTPStatus(http.StatusUnauthorized))
		Expect(fetch(ctx, url, "no-such-token")).To(HaveHTTPStatus(http.StatusUnauthorized))

		By("refusing a ServiceAccount without the role")
		token := accountToken(ctx, "metrics-reader")
		Expect(fetch(ctx, url, token)).To(HaveHTTPStatus(http.StatusForbidden))

		By("serving it once it has the role")
		grantMetrics(ctx, "metrics-reader")
		Eventually(fetch).WithContext(ctx).WithArguments(url, token).Should(SatisfyAll(
			HaveHTTPStatus(http.StatusOK),
			HaveHTTPBody(ContainSubstring("controller_runtime_reconcile_total")),
		))
		Expect(second.Log()).NotTo(ContainSubstring(token))
		Expect(second.Log()).NotTo(ContainSubstring("no-such-token"))
	}, SpecTimeout(time.Minute))
})

// fetch reads a page whose certificate is self-signed.
func fetch(ctx context.Context, url, token string) (*http.Response, error) {
	config := &rest.Config{BearerToken: token}
	config.Insecure = true
	transport, err := rest.HTTPWrappersForConfig(config, &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return (&http.Client{Transport: transport}).Do(request)
}

func accountToken(ctx context.Context, name string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: utils.ManagerNamespace, Name: name}}
	Expect(k8sClient.Create(ctx, account)).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(k8sClient.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// grantMetrics gives a ServiceAccount the role that config/rbac has for it.
func grantMetrics(ctx context.Context, account string) {
	GinkgoHelper()
	Expect(k8sClient.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "configwatch-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: utils.ManagerNamespace, Name: account}},
	})).To(Succeed())
}
