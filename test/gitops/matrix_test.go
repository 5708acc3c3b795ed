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
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

// gitManager is the field manager of what syncs.
const gitManager = "argocd-controller"

// sync makes the API call by which a Deployment is brought to what is in Git.
type sync func(ctx context.Context, git *appsv1.Deployment) error

// clientSide is the three-way merge of kubectl apply: what was applied last, what is in Git, what is there.
func clientSide(ctx context.Context, git *appsv1.Deployment) error {
	live := utils.MakeDeployment(git.Name).Namespace(git.Namespace).Obj()
	if err := utils.Reload(ctx, k8sClient, live); err != nil {
		return err
	}
	modified, err := json.Marshal(manifest(git))
	if err != nil {
		return err
	}
	annotated := manifest(git)
	annotated.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(modified)})
	wanted, err := json.Marshal(annotated)
	if err != nil {
		return err
	}
	current, err := json.Marshal(live)
	if err != nil {
		return err
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(appsv1.Deployment{})
	if err != nil {
		return err
	}
	original := []byte(live.Annotations[corev1.LastAppliedConfigAnnotation])
	patch, err := strategicpatch.CreateThreeWayMergePatch(original, wanted, current, schema, true)
	if err != nil {
		return fmt.Errorf("merging: %w", err)
	}
	return k8sClient.Patch(ctx, live, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(gitManager))
}

// serverSide is kubectl apply --server-side --force-conflicts.
func serverSide(ctx context.Context, git *appsv1.Deployment) error {
	return k8sClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest(git)), client.FieldOwner(gitManager), client.ForceOwnership)
}

// replace is kubectl replace: of what is there, nothing stays that isn't in Git.
func replace(ctx context.Context, git *appsv1.Deployment) error {
	live := utils.MakeDeployment(git.Name).Namespace(git.Namespace).Obj()
	if err := utils.Reload(ctx, k8sClient, live); err != nil {
		return err
	}
	wanted := git.DeepCopy()
	wanted.ResourceVersion = live.ResourceVersion
	return k8sClient.Update(ctx, wanted, client.FieldOwner(gitManager))
}

// manifest is a Deployment as a file has it.
func manifest(git *appsv1.Deployment) *unstructured.Unstructured {
	GinkgoHelper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(git)
	Expect(err).NotTo(HaveOccurred())
	object["apiVersion"], object["kind"] = "apps/v1", deployment
	delete(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object, "spec", "template", "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: object}
}

// emptyAnnotations has annotations: {} in the pod template in Git.
func emptyAnnotations(apply sync) sync {
	return func(ctx context.Context, git *appsv1.Deployment) error {
		git = git.DeepCopy()
		git.Spec.Template.Annotations = map[string]string{}
		return apply(ctx, git)
	}
}

// The application in Git: a Deployment web that reads the ConfigMap app-config, which a ConfigWatch web watches.
func inGit(ns utils.Namespace) (*appsv1.Deployment, *corev1.ConfigMap, *v1alpha1.ConfigWatch) {
	return utils.MakeDeployment("web").Namespace(ns.Name).EnvFromConfigMap("app-config").Obj(),
		utils.MakeConfigMap("app-config").Namespace(ns.Name).Data("LOG_LEVEL", "info").Obj(),
		utils.MakeConfigWatch("web").Namespace(ns.Name).Target(deployment, "web").Obj()
}

var _ = Describe("Git", func() {
	const heals = 20

	DescribeTable("heals a workload that was restarted without another restart by ConfigWatch, and its image without one more (E10, E13)",
		func(ctx SpecContext, apply sync, kept bool, templates int64) {
			ns := newNamespace(ctx)
			git, config, cw := inGit(ns)
			Expect(ns.Create(ctx, git.DeepCopy(), config, cw)).To(Succeed())
			Expect(apply(ctx, git)).To(Succeed())
			ready(ctx, ns)
			web := restartsOf(ctx, ns, "web")
			first := templateOf(ctx, ns)

			By("committing another ConfigMap: 1 restart")
			set(ctx, ns, "app-config", "debug")
			Eventually(web.Marks).Should(HaveLen(1))
			finish("web")(ctx, ns)
			ready(ctx, ns)

			By("healing, again and again: 0 restarts")
			for range heals {
				Expect(apply(ctx, git)).To(Succeed())
				finish("web")(ctx, ns)
			}
			Expect(barrier.Pass(ctx)).To(Succeed())
			ready(ctx, ns)
			Expect(web.Marks()).To(HaveLen(1))
			Expect(marked(ctx, ns)).To(Equal(kept))

			By("committing another image: 0 restarts, as the pods are new anyway")
			git.Spec.Template.Spec.Containers[0].Image = "registry.example.com/web:2"
			Expect(apply(ctx, git)).To(Succeed())
			finish("web")(ctx, ns)
			Expect(barrier.Pass(ctx)).To(Succeed())
			ready(ctx, ns)
			Expect(web.Marks()).To(HaveLen(1))
			Expect(templateOf(ctx, ns)-first).To(Equal(templates), "rollouts")

			By("committing another ConfigMap: 1 restart more")
			set(ctx, ns, "app-config", "trace")
			Eventually(web.Marks).Should(HaveLen(2))
			finish("web")(ctx, ns)
			ready(ctx, ns)
		},
		// In brackets, the rollouts: ours and the image's; with Replace, one more as it wipes the annotation.
		Entry("by client-side apply [2]", sync(clientSide), true, int64(2)),
		Entry("by server-side apply that forces conflicts [2]", sync(serverSide), true, int64(2)),
		Entry("by replace [3]", sync(replace), false, int64(3)),
		Entry("by client-side apply with annotations: {} in Git [2]", emptyAnnotations(clientSide), true, int64(2)),
		Entry("by server-side apply with annotations: {} in Git [2]", emptyAnnotations(serverSide), true, int64(2)),
	)

	DescribeTable("syncs the first time without a restart, in any order (E5)",
		func(ctx SpecContext, order func(d, c, cw client.Object) []client.Object) {
			ns := newNamespace(ctx)
			git, config, cw := inGit(ns)
			for _, object := range order(git, config, cw) {
				Expect(ns.Create(ctx, object)).To(Succeed())
				Expect(barrier.Pass(ctx)).To(Succeed())
			}
			ready(ctx, ns)
			Expect(marked(ctx, ns)).To(BeFalse())

			By("changing the ConfigMap: 1 restart")
			web := restartsOf(ctx, ns, "web")
			set(ctx, ns, "app-config", "debug")
			Eventually(web.Marks).Should(HaveLen(1))
		},
		Entry("the ConfigWatch first", func(d, c, cw client.Object) []client.Object { return []client.Object{cw, c, d} }),
		Entry("the ConfigWatch last", func(d, c, cw client.Object) []client.Object { return []client.Object{c, d, cw} }),
		Entry("the ConfigWatch in between", func(d, c, cw client.Object) []client.Object { return []client.Object{d, cw, c} }),
	)

	It("syncs a new ConfigMap and a new image together: 1 rollout or 2, never a third (E13)", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		git, config, cw := inGit(ns)
		cw.Spec.Rollout.SettleSeconds = new(int32(2))
		Expect(ns.Create(ctx, git.DeepCopy(), config, cw)).To(Succeed())
		ready(ctx, ns)
		web := restartsOf(ctx, ns, "web")
		set(ctx, ns, "app-config", "debug")
		await("web", v1alpha1.TargetPending)(ctx, ns) // its template is known from now on
		git.Spec.Template.Spec.Containers[0].Image = "registry.example.com/web:2"
		Expect(serverSide(ctx, git)).To(Succeed())
		Eventually(ns.Row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("State", Not(Equal(v1alpha1.TargetPending))))
		Expect(web.Marks()).To(BeEmpty())
	})

	It("prunes the ConfigWatch and creates it anew: 0 restarts, then 1 for the next change (E5)", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		git, config, cw := inGit(ns)
		Expect(ns.Create(ctx, git, config, cw)).To(Succeed())
		ready(ctx, ns)
		web := restartsOf(ctx, ns, "web")
		set(ctx, ns, "app-config", "debug")
		Eventually(web.Marks).Should(HaveLen(1))
		finish("web")(ctx, ns)
		ready(ctx, ns)

		Expect(k8sClient.Delete(ctx, cw)).To(Succeed())
		Expect(barrier.Pass(ctx)).To(Succeed())
		set(ctx, ns, "app-config", "trace") // nobody watches
		_, _, again := inGit(ns)
		Expect(ns.Create(ctx, again)).To(Succeed())
		ready(ctx, ns)
		Expect(web.Marks()).To(HaveLen(1))
		set(ctx, ns, "app-config", "warn")
		Eventually(web.Marks).Should(HaveLen(2))
	})

	It("prunes the ConfigMap and creates it anew: 0 restarts with the same content, 1 with other (E6)", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		git, config, cw := inGit(ns)
		Expect(ns.Create(ctx, git, config, cw)).To(Succeed())
		ready(ctx, ns)
		web := restartsOf(ctx, ns, "web")
		for restarts, value := range []string{"info", "debug"} {
			Expect(k8sClient.Delete(ctx, config)).To(Succeed())
			Eventually(ns.SourceRow).WithArguments(ctx, "web", v1alpha1.ConfigMap, "app-config").Should(HaveField("State", v1alpha1.SourceMissing))
			config = utils.MakeConfigMap("app-config").Namespace(ns.Name).Data("LOG_LEVEL", value).Obj()
			Expect(ns.Create(ctx, config)).To(Succeed())
			Eventually(ns.SourceRow).WithArguments(ctx, "web", v1alpha1.ConfigMap, "app-config").Should(HaveField("State", v1alpha1.SourcePresent))
			Expect(barrier.Pass(ctx)).To(Succeed())
			Eventually(web.Marks).Should(HaveLen(restarts))
		}
	})

	It("has the example of config/samples/argocd: 0 restarts, then 1 for a commit", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		objects, err := utils.Render(ctx, plane, "config/samples/argocd/web")
		Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			object.SetNamespace(ns.Name)
			Expect(k8sClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(gitManager))).To(Succeed())
		}
		ready(ctx, ns)
		web := restartsOf(ctx, ns, "web")
		set(ctx, ns, "web-config", "debug")
		Eventually(web.Marks).Should(HaveLen(1))
	})

	It("prunes the workload and creates it anew: 0 restarts (E5)", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		git, config, cw := inGit(ns)
		Expect(ns.Create(ctx, git.DeepCopy(), config, cw)).To(Succeed())
		ready(ctx, ns)
		Expect(k8sClient.Delete(ctx, git)).To(Succeed())
		await("web", v1alpha1.TargetMissing)(ctx, ns)
		set(ctx, ns, "app-config", "debug")
		Expect(ns.Create(ctx, git)).To(Succeed())
		ready(ctx, ns)
		Expect(barrier.Pass(ctx)).To(Succeed())
		Expect(marked(ctx, ns)).To(BeFalse())
	})
})

// ready finishes rollouts until the ConfigWatch is ready.
func ready(ctx context.Context, ns utils.Namespace) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(utils.FinishRollout(ctx, k8sClient, ns.Name, "web")).To(Succeed())
		status, err := ns.Status(ctx, "web")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status.Conditions).To(ContainElement(SatisfyAll(
			HaveField("Type", v1alpha1.ConditionReady), HaveField("Status", metav1.ConditionTrue))))
		g.Expect(status.Targets).To(ConsistOf(HaveField("Sources", HaveLen(1))))
	}).Should(Succeed())
}

// marked tells whether the Deployment has a restart annotation.
func marked(ctx context.Context, ns utils.Namespace) bool {
	GinkgoHelper()
	web := utils.MakeDeployment("web").Namespace(ns.Name).Obj()
	Expect(utils.Reload(ctx, k8sClient, web)).To(Succeed())
	_, ok := web.Spec.Template.Annotations[v1alpha1.RestartAnnotationPrefix+"web"]
	return ok
}

// templateOf is the generation of the Deployment: in these tests, nothing but its pod template changes.
func templateOf(ctx context.Context, ns utils.Namespace) int64 {
	GinkgoHelper()
	web := utils.MakeDeployment("web").Namespace(ns.Name).Obj()
	Expect(utils.Reload(ctx, k8sClient, web)).To(Succeed())
	return web.Generation
}

// restartsOf watches the restarts of a Deployment from now on.
func restartsOf(ctx context.Context, ns utils.Namespace, name string) *utils.Restarts {
	GinkgoHelper()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	restarts, err := utils.WatchRestarts(watching, k8sClient, deployment, ns.Name, name)
	Expect(err).NotTo(HaveOccurred())
	return restarts
}
