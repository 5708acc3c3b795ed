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
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("A Deployment whose owner puts its pod template back (E24)", func() {
	It("is Blocked, and not restarted again before the next change", func(ctx SpecContext) {
		owner := utils.MakeConfigMap("blueprint").Obj()
		create(ctx, utils.MakeConfigMap("ca-bundle").Data("ca.crt", "good").Obj(), owner)
		playPrograms(ctx)
		app := utils.MakeDeployment("app").Pod(usingBundle).Obj()
		app.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		}
		create(ctx, app, utils.MakeConfigWatch("app").ConfigMap("ca-bundle").Obj())
		expectStates(ctx, "app", states{v1alpha1.TargetUpToDate: 1})
		restarts := restartsOf(ctx, deployment, "app")
		leave := playOwner(ctx, app)

		const putBack = bundleChanged + ". ConfigMap blueprint put the pod template back before the rollout was complete, " +
			"so that old pods stay. It is not restarted again for this change: let ConfigMap blueprint restart it, " +
			"or leave the annotation restart.configwatch.ktechhub.io/... alone"
		for n := 1; n <= 2; n++ {
			setBundle(ctx, fmt.Sprint(broken, n)) // so that the rollout isn't complete before it is put back
			Eventually(restarts.Count).Should(Equal(n))
			expectRow(ctx, deployment, v1alpha1.TargetBlocked, v1alpha1.ReasonTemplateReverted, putBack)
			expectCondition(ctx, v1alpha1.ConditionStalled, v1alpha1.ReasonBlocked, "Deployment app: "+putBack)
			Consistently(restarts.Count).Should(Equal(n), "it is not tried again for the same change")
		}

		leave()
		setBundle(ctx, "better")
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonRolloutComplete, bundleChanged)
		expectCondition(ctx, v1alpha1.ConditionStalled, "", "")
		Expect(restarts.Count()).To(Equal(3))
	})
})

// playOwner plays a controller that wants the pod template of a Deployment to be as it is, until it is told to leave.
func playOwner(ctx context.Context, d *appsv1.Deployment) (leave func()) {
	GinkgoHelper()
	template, err := json.Marshal(d.Spec.Template)
	Expect(err).NotTo(HaveOccurred())
	putBack := client.RawPatch(types.JSONPatchType,
		fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/template", "value": %s}]`, template))
	playing, stop := context.WithCancel(context.WithoutCancel(ctx))
	w, err := k8sClient.Watch(playing, &appsv1.DeploymentList{}, client.InNamespace(here.Name))
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan struct{})
	leave = func() { stop(); <-ended }
	DeferCleanup(leave)
	go func() {
		defer close(ended)
		defer GinkgoRecover()
		for event := range w.ResultChan() {
			seen, ok := event.Object.(*appsv1.Deployment)
			if !ok || !isRestarted(seen) {
				continue
			}
			if err := k8sClient.Patch(playing, seen, putBack); playing.Err() == nil {
				Expect(err).NotTo(HaveOccurred())
			}
		}
	}()
	return leave
}

func isRestarted(d *appsv1.Deployment) bool {
	for key := range d.Spec.Template.Annotations {
		if strings.HasPrefix(key, v1alpha1.RestartAnnotationPrefix) {
			return true
		}
	}
	return false
}
