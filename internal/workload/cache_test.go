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

package workload

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ktechhub/configwatch/internal/informer"
)

// newCache is a Cache of all namespaces that isn't started.
func newCache(t *testing.T, client *fake.Clientset) *Cache {
	t.Helper()
	c, err := NewCache(client, []string{metav1.NamespaceAll})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

// start runs the Cache until the test ends.
func start(t *testing.T, c *Cache) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the cache ended: %v", err)
		}
	})
}

// started is a Cache that has read everything.
func started(t *testing.T, client *fake.Clientset) *Cache {
	t.Helper()
	c := newCache(t, client)
	start(t, c)
	for _, kind := range Kinds() {
		NewWithT(t).Eventually(func() error { return c.Readable(kind, "") }).Should(Succeed())
	}
	return c
}

// oneOfEach is a workload of each kind, named web, that references ConfigMap app-config.
func oneOfEach() []runtime.Object {
	return []runtime.Object{
		&appsv1.Deployment{ObjectMeta: meta(), Spec: appsv1.DeploymentSpec{Template: template()}},
		&appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{Template: template()}},
		&appsv1.DaemonSet{ObjectMeta: meta(), Spec: appsv1.DaemonSetSpec{Template: template()}},
		&batchv1.CronJob{ObjectMeta: meta(), Spec: batchv1.CronJobSpec{
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template()}},
		}},
	}
}

func TestWorkloadsAreFoundByKindNameAndSource(t *testing.T) {
	g := NewWithT(t)
	c := started(t, fake.NewClientset(oneOfEach()...))
	for _, kind := range Kinds() {
		w := c.Get("shop", kind, "web")
		g.Expect(w).NotTo(BeNil(), kind)
		g.Expect(w.Kind).To(Equal(kind))
		g.Expect(c.List("shop", kind)).To(HaveExactElements(w))
		g.Expect(c.List("elsewhere", kind)).To(BeEmpty())
		g.Expect(c.Get("shop", kind, "other")).To(BeNil())
	}
	g.Expect(c.Get("shop", "Pod", "web")).To(BeNil())
	g.Expect(c.List("shop", "Pod")).To(BeEmpty())

	g.Expect(c.Using("shop", configMap("app-config"))).To(HaveLen(4), "one of each kind")
	g.Expect(c.Using("shop", secret("app-config"))).To(BeEmpty())
	g.Expect(c.Using("elsewhere", configMap("app-config"))).To(BeEmpty())
}

func TestE11EachKindOfWorkloadIsReadableOrNotOnItsOwn(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(oneOfEach()...)
	client.PrependReactor("list", "cronjobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "cronjobs"}, "", nil)
	})
	c := newCache(t, client)
	g.Expect(c.Settled()).To(BeFalse())
	g.Expect(c.Readable(Deployment, "shop")).To(MatchError(informer.ErrNotSynced))
	g.Expect(c.Readable("Pod", "shop")).To(MatchError("Pod is not a kind of workload"))
	g.Expect(c.NeedLeaderElection()).To(BeFalse())
	told := make(chan struct{}, 100)
	c.OnState(func() { told <- struct{}{} })
	start(t, c)
	for _, kind := range []string{Deployment, StatefulSet, DaemonSet} {
		g.Eventually(func() error { return c.Readable(kind, "shop") }).Should(Succeed())
	}
	g.Eventually(func() error { return c.Readable(CronJob, "shop") }).Should(MatchError(apierrors.IsForbidden, "IsForbidden"))
	g.Eventually(c.Settled).Should(BeTrue())
	g.Eventually(told).Should(HaveLen(4), "three are read, one is refused")
}

func TestE28WhatDoesNotMatterIsNotTold(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(oneOfEach()[0])
	c := newCache(t, client)
	told := make(chan string, 100)
	g.Expect(c.OnChange(func(before, after *Workload) {
		told <- fmt.Sprintf("%t %t", before != nil, after != nil)
	})).To(Succeed())
	start(t, c)
	g.Eventually(told).Should(Receive(Equal("false true")))

	d := oneOfEach()[0].(*appsv1.Deployment)
	d.Annotations["more"] = "x"
	_, err := client.AppsV1().Deployments("shop").Update(t.Context(), d, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	d.Labels["more"] = "x"
	_, err = client.AppsV1().Deployments("shop").Update(t.Context(), d, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(told).Should(Receive(Equal("true true")))
	g.Expect(client.AppsV1().Deployments("shop").Delete(t.Context(), "web", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(told).Should(Receive(Equal("true false")))
	g.Expect(told).To(BeEmpty())
}

func TestE8E9ARestartIsOnePatchAndSeenAtOnce(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(oneOfEach()...)
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		d := oneOfEach()[0].(*appsv1.Deployment) // what the API server answers before the watch tells
		d.ResourceVersion = "8"
		d.Spec.Template.Annotations[mark] = "3-0123456789abcdef"
		return true, d, nil
	})
	c := started(t, client)
	client.ClearActions()

	w := c.Get("shop", Deployment, "web")
	g.Expect(c.Restart(t.Context(), w, "web", Mark{Number: 3, Digest: "0123456789abcdef"})).To(Succeed())
	g.Expect(w.RestartMarks).To(HaveKeyWithValue("web", "2-aaaaaaaaaaaaaaaa"), "what others hold stays as it was")
	g.Expect(c.Get("shop", Deployment, "web").RestartMarks).To(HaveKeyWithValue("web", "3-0123456789abcdef"))

	g.Expect(client.Actions()).To(HaveLen(1))
	patch := client.Actions()[0].(clienttesting.PatchActionImpl)
	g.Expect(patch.GetPatchType()).To(Equal(types.JSONPatchType))
	g.Expect(patch.GetName()).To(Equal("web"))
	g.Expect(patch.GetNamespace()).To(Equal("shop"))
	g.Expect(patch.GetSubresource()).To(BeEmpty())
	g.Expect(patch.PatchOptions.FieldManager).To(Equal("configwatch"))
}

func TestE11ARestartThatIsRefusedSaysWhatWasRefused(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(oneOfEach()...)
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("changed"))
	client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, conflict })
	c := started(t, client)
	w := c.Get("shop", Deployment, "web")
	err := c.Restart(t.Context(), w, "web", Mark{Number: 3, Digest: "0123456789abcdef"})
	g.Expect(err).To(MatchError(HavePrefix("patching Deployment web: ")))
	g.Expect(apierrors.IsConflict(err)).To(BeTrue())
	g.Expect(c.Get("shop", Deployment, "web")).To(BeIdenticalTo(w))

	g.Expect(c.Restart(t.Context(), &Workload{Kind: "Pod"}, "web", Mark{})).To(MatchError("Pod is not a kind of workload"))
}

func TestE13ATemplateIsReadPastTheCache(t *testing.T) {
	for _, object := range oneOfEach() {
		known := reduce(object) // before another rollout begins, of which no watch has told
		t.Run(known.Kind, func(t *testing.T) {
			g := NewWithT(t)
			accessor, err := apimeta.Accessor(object)
			g.Expect(err).NotTo(HaveOccurred())
			accessor.SetGeneration(5)
			podTemplate(object).Spec.Containers[0].Image = "web:2"
			client := fake.NewClientset(object)
			c := newCache(t, client)

			live, err := c.Read(t.Context(), known)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(live).To(Equal(reduce(object).Template))
			g.Expect(live.ReplacedSince(known.Template)).To(BeTrue())

			g.Expect(client.Actions()).To(HaveLen(1))
			get, ok := client.Actions()[0].(clienttesting.GetAction)
			g.Expect(ok).To(BeTrue())
			g.Expect(get.GetNamespace() + "/" + get.GetName()).To(Equal("shop/web"))
			g.Expect(c.Get("shop", known.Kind, "web")).To(BeNil(), "the cache gets what its watch brings, and nothing else")
		})
	}
}

// podTemplate is that of a workload, to be changed.
func podTemplate(object runtime.Object) *corev1.PodTemplateSpec {
	switch w := object.(type) {
	case *appsv1.Deployment:
		return &w.Spec.Template
	case *appsv1.StatefulSet:
		return &w.Spec.Template
	case *appsv1.DaemonSet:
		return &w.Spec.Template
	case *batchv1.CronJob:
		return &w.Spec.JobTemplate.Spec.Template
	}
	return nil
}

func TestE13ATemplateThatCanNotBeReadIsNone(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	again := oneOfEach()[0].(*appsv1.Deployment)
	again.UID = "uid-2"
	for name, tc := range map[string]struct {
		object  runtime.Object
		err     error
		message string
	}{
		"it is forbidden": {
			nil, apierrors.NewForbidden(resource, "web", errors.New("no")),
			`reading Deployment web: deployments.apps "web" is forbidden: no`,
		},
		"it is gone": {
			nil, apierrors.NewNotFound(resource, "web"), `reading Deployment web: deployments.apps "web" not found`,
		},
		"it was deleted and created again": {
			again, nil, "reading Deployment web: it was deleted and created again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client := fake.NewClientset()
			client.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, tc.object, tc.err
			})
			template, err := newCache(t, client).Read(t.Context(), reduce(oneOfEach()[0]))
			g.Expect(err).To(MatchError(tc.message))
			g.Expect(apierrors.ReasonForError(err)).To(Equal(apierrors.ReasonForError(tc.err)), "callers can tell why")
			g.Expect(template).To(BeZero())
		})
	}
	_, err := newCache(t, fake.NewClientset()).Read(t.Context(), &Workload{Kind: "Pod"})
	NewWithT(t).Expect(err).To(MatchError("Pod is not a kind of workload"))
}
