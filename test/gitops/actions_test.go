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
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/hack/argocd/customization"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("An action in Argo CD", func() {
	// prepare has a Deployment web that is up to date.
	prepare := func(ctx context.Context, change func(*v1alpha1.ConfigWatch)) (utils.Namespace, *utils.Restarts) {
		GinkgoHelper()
		ns := newNamespace(ctx)
		git, config, cw := inGit(ns)
		change(cw)
		Expect(ns.Create(ctx, git, config, cw)).To(Succeed())
		ready(ctx, ns)
		return ns, restartsOf(ctx, ns, "web")
	}

	It("restart: 1 restart", func(ctx SpecContext) {
		ns, web := prepare(ctx, func(*v1alpha1.ConfigWatch) {})
		act(ctx, ns, "restart")
		Eventually(web.Marks).Should(HaveLen(1))
	})

	It("approve: the restart that awaits approval", func(ctx SpecContext) {
		ns, web := prepare(ctx, func(cw *v1alpha1.ConfigWatch) { cw.Spec.Rollout.Approval = v1alpha1.ApprovalManual })
		set(ctx, ns, "app-config", "debug")
		Eventually(ns.Row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Reason", v1alpha1.ReasonAwaitingApproval))
		Expect(web.Marks()).To(BeEmpty())
		act(ctx, ns, "approve")
		Eventually(web.Marks).Should(HaveLen(1))
	})

	It("suspend and resume: 0 restarts in between, then 1", func(ctx SpecContext) {
		ns, web := prepare(ctx, func(*v1alpha1.ConfigWatch) {})
		act(ctx, ns, "suspend")
		set(ctx, ns, "app-config", "debug")
		Eventually(ns.Row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Reason", v1alpha1.ReasonSuspended))
		Expect(web.Marks()).To(BeEmpty())
		act(ctx, ns, "resume")
		Eventually(web.Marks).Should(HaveLen(1))
	})
})

// act runs an action of the ConfigWatch and sends what it changes, as Argo CD does.
func act(ctx context.Context, ns utils.Namespace, action string) {
	GinkgoHelper()
	scripts, err := customization.Read(root)
	Expect(err).NotTo(HaveOccurred())
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ConfigWatch"))
	Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: "web"}, live)).To(Succeed())
	disabled, err := scripts.Disabled(ctx, live)
	Expect(err).NotTo(HaveOccurred())
	Expect(disabled).To(HaveKeyWithValue(action, false))
	changed, err := scripts.Run(ctx, action, live)
	Expect(err).NotTo(HaveOccurred())
	before, err := json.Marshal(live.Object)
	Expect(err).NotTo(HaveOccurred())
	after, err := json.Marshal(changed.Object)
	Expect(err).NotTo(HaveOccurred())
	patch, err := jsonpatch.CreateMergePatch(before, after)
	Expect(err).NotTo(HaveOccurred())
	Expect(k8sClient.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("argocd-server"))).To(Succeed())
}
