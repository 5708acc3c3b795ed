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

package fault

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

var _ = Describe("A manager that something is taken away from", func() {
	It("does no harm when the CRD goes, and goes on when it is back (E5)", func(ctx SpecContext) {
		s := openShop(ctx, 3, 2)
		m := run(ctx, newProxy())
		s.settle(ctx)
		s.change(ctx, v1alpha1.ConfigMap, shared)
		s.settle(ctx)

		restore := removeCRD(ctx)
		DeferCleanup(restore)
		s.set(ctx, v1alpha1.ConfigMap, shared, "unwatched")
		Consistently(ctx, s.tally).Should(BeZero(), "nobody restarts anything")
		Expect(m.Exited()).NotTo(BeClosed())

		restore(ctx)
		s.create(ctx, s.configWatches()...)
		s.settle(ctx)
		s.change(ctx, v1alpha1.ConfigMap, shared)
		s.change(ctx, v1alpha1.Secret, s.own[0])
		s.settle(ctx)
		Expect(len(lines(m, "error"))).To(BeNumerically("<", 30), "errors of the time without it are few")
	})

	It("lets go of a namespace that is deleted in the middle of a pass, and goes on elsewhere (E11)", func(ctx SpecContext) {
		p := newProxy()
		doomed, other := openShop(ctx, 3, 4), openShop(ctx, 2, 0)
		m := run(ctx, p)
		doomed.settle(ctx)
		other.settle(ctx)

		p.add(&fault{on: patchDeployments, of: shared + "-1", before: func(context.Context) (*http.Response, error) {
			return nil, deleteNamespace(ctx, doomed.namespace)
		}})
		for _, name := range doomed.own {
			doomed.change(ctx, v1alpha1.ConfigMap, name)
		}
		doomed.change(ctx, v1alpha1.ConfigMap, shared)
		Eventually(func() error {
			return k8sClient.Get(ctx, client.ObjectKey{Name: doomed.namespace}, &corev1.Namespace{})
		}).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
		other.change(ctx, v1alpha1.ConfigMap, other.own[0])
		other.settle(ctx)

		errorsAbout := func() (n int) {
			for _, line := range lines(m, "error") {
				if doomed.about(line) {
					n++
				}
			}
			return n
		}
		Expect(errorsAbout()).To(BeNumerically("<", 20))
		Eventually(func() (more int) {
			before := errorsAbout()
			Consistently(m.Exited()).WithTimeout(time.Second).ShouldNot(BeClosed())
			return errorsAbout() - before
		}).Should(BeZero(), "they come to an end")
		other.change(ctx, v1alpha1.Secret, other.own[1])
		other.settle(ctx)
	})
})

// removeCRD deletes the CRD, and every ConfigWatch with it. What is returned puts the CRD back.
func removeCRD(ctx context.Context) (restore func(context.Context)) {
	GinkgoHelper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("configwatches." + v1alpha1.SchemeGroupVersion.Group)
	key := client.ObjectKeyFromObject(crd)
	Expect(k8sClient.Get(ctx, key, crd)).To(Succeed())
	Expect(k8sClient.Delete(ctx, crd.DeepCopy())).To(Succeed())
	Eventually(ctx, k8sClient.Get).WithArguments(key, crd.DeepCopy()).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
	for _, made := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(crd.Object, "metadata", made)
	}
	delete(crd.Object, "status")
	return func(ctx context.Context) {
		GinkgoHelper()
		Expect(client.IgnoreAlreadyExists(k8sClient.Create(ctx, crd.DeepCopy()))).To(Succeed())
		Eventually(ctx, k8sClient.List).WithArguments(&v1alpha1.ConfigWatchList{}).Should(Succeed())
	}
}

// deleteNamespace deletes a namespace and does what its controller does then.
func deleteNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := k8sClient.Delete(ctx, namespace); err != nil {
		return err
	}
	for _, kind := range []client.Object{&appsv1.Deployment{}, &corev1.ConfigMap{}, &corev1.Secret{}, &v1alpha1.ConfigWatch{}} {
		if err := k8sClient.DeleteAllOf(ctx, kind, client.InNamespace(name)); err != nil {
			return err
		}
	}
	if err := k8sClient.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
		return err
	}
	namespace.Spec.Finalizers = nil
	return k8sClient.SubResource("finalize").Update(ctx, namespace)
}
