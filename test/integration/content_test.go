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

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("What counts as a change (E1)", func() {
	var web *utils.Restarts

	BeforeEach(func(ctx SpecContext) {
		create(ctx,
			utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Data("list", "1;b=2").Obj(),
			utils.MakeSecret("credentials").Data("user", "web").Data("password", "before").Obj(),
			utils.MakeDeployment("web").EnvFromConfigMap("app-config").EnvFromSecret("credentials").Obj())
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
		web = restartsOf(ctx, deployment, "web")
	})

	DescribeTable("doesn't restart, nor make a single request, for",
		func(ctx SpecContext, write func(context.Context)) {
			mark := since()
			write(ctx)
			expectRestarts(ctx, web, 0)
			Expect(requestsOf(utils.ManagerUser, mark)).To(BeEmpty())
		},
		Entry("labels", func(ctx context.Context) {
			change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) { c.Labels = map[string]string{"team": "shop"} })
			change(ctx, secret("credentials"), func(s *corev1.Secret) { s.Labels = map[string]string{"team": "shop"} })
		}),
		Entry("annotations", func(ctx context.Context) {
			change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"checked": "today"} })
			change(ctx, secret("credentials"), func(s *corev1.Secret) { s.Annotations = map[string]string{"checked": "today"} })
		}),
		Entry("writes that change nothing", func(ctx context.Context) {
			change(ctx, configMap("app-config"), func(*corev1.ConfigMap) {})
			change(ctx, secret("credentials"), func(*corev1.Secret) {})
		}),
		Entry("an object that becomes immutable", func(ctx context.Context) {
			change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) { c.Immutable = new(true) })
			change(ctx, secret("credentials"), func(s *corev1.Secret) { s.Immutable = new(true) })
		}),
		Entry("another order of keys and another owner of the fields", func(ctx context.Context) {
			apply := client.RawPatch(types.ApplyPatchType, []byte(`{apiVersion: v1, kind: ConfigMap, data: {list: "1;b=2", LOG_LEVEL: info}}`))
			Expect(k8sClient.Patch(ctx, configMap("app-config"), apply, client.FieldOwner("somebody"))).To(Succeed())
		}),
		Entry("the same content through another field", func(ctx context.Context) {
			same := client.RawPatch(types.MergePatchType, []byte(`{"stringData": {"password": "before"}}`))
			Expect(k8sClient.Patch(ctx, secret("credentials"), same)).To(Succeed())
		}),
		Entry("a ConfigMap that is none of the sources", func(ctx context.Context) {
			create(ctx, utils.MakeConfigMap("other").Data("LOG_LEVEL", "debug").Obj())
		}),
		Entry("a ConfigMap of the same name in another namespace", func(ctx context.Context) {
			create(ctx, utils.MakeConfigMap("app-config").Namespace(newNamespace(ctx)).Data("LOG_LEVEL", "debug").Obj())
		}),
	)

	DescribeTable("restarts once for",
		func(ctx SpecContext, write func(context.Context)) {
			write(ctx)
			expectRestarts(ctx, web, 1)
		},
		Entry("another value in a ConfigMap", func(ctx context.Context) { set(ctx, "app-config", "LOG_LEVEL", "debug") }),
		Entry("another value in a Secret", func(ctx context.Context) { setSecret(ctx, "credentials", "password", "after") }),
		Entry("a key that is added with an empty value", func(ctx context.Context) { set(ctx, "app-config", "NEW", "") }),
		Entry("a key that is removed", func(ctx context.Context) {
			change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) { delete(c.Data, "LOG_LEVEL") })
		}),
		Entry("a value that is split into what looks alike when it is joined", func(ctx context.Context) {
			change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) { c.Data["list"], c.Data["b"] = "1", "2" })
		}),
		Entry("a value that moves from data to binaryData", func(ctx context.Context) {
			change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) {
				delete(c.Data, "LOG_LEVEL")
				c.BinaryData = map[string][]byte{"LOG_LEVEL": []byte("info")}
			})
		}),
		Entry("bytes that are not text", func(ctx context.Context) {
			change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"blob": {0xff, 0xfe, 0}} })
		}),
	)
})
