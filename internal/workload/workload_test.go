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
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

// meta is the metadata of a workload in full.
func meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "uid-1", ResourceVersion: "7", Generation: 4,
		Labels:          map[string]string{"app": "web"},
		Annotations:     map[string]string{"other": "x"},
		Finalizers:      []string{"x/y"},
		OwnerReferences: []metav1.OwnerReference{{Name: "owner"}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}
}

// template is a pod template that references ConfigMap app-config and was restarted twice.
func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			v1alpha1.RestartAnnotationPrefix + "web":   "2-aaaaaaaaaaaaaaaa",
			v1alpha1.RestartAnnotationPrefix + "other": "9-bbbbbbbbbbbbbbbb",
			"prometheus.io/scrape":                     "true",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "web", Image: "web:1",
			EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "app-config"},
			}}},
		}}},
	}
}

func TestAWorkloadIsReducedToWhatMatters(t *testing.T) {
	for kind, object := range map[string]runtime.Object{
		Deployment:  &appsv1.Deployment{ObjectMeta: meta(), Spec: appsv1.DeploymentSpec{Template: template()}},
		StatefulSet: &appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{Template: template()}},
		DaemonSet:   &appsv1.DaemonSet{ObjectMeta: meta(), Spec: appsv1.DaemonSetSpec{Template: template()}},
		CronJob: &batchv1.CronJob{ObjectMeta: meta(), Spec: batchv1.CronJobSpec{
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template()}},
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			w := reduce(object)
			g.Expect(w.ObjectMeta).To(Equal(metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "uid-1", ResourceVersion: "7", Generation: 4,
				Labels: map[string]string{"app": "web"},
			}), "the rest of the metadata is dropped")
			g.Expect(w.Ref()).To(Equal(Ref{APIVersion: APIVersion(kind), Kind: kind, Name: "web"}))
			g.Expect(w.References).To(Equal([]source.Ref{configMap("app-config")}))
			g.Expect(w.RestartMarks).To(Equal(map[string]string{"web": "2-aaaaaaaaaaaaaaaa", "other": "9-bbbbbbbbbbbbbbbb"}))
			g.Expect(w.TemplateAnnotated).To(BeTrue())
			pods := template()
			g.Expect(w.Template).To(Equal(templateOf(4, &pods)))
			g.Expect(w.Owner).To(BeEmpty(), "an owner that is no controller puts nothing back")
			g.Expect(w.Ignored).To(BeFalse())
			g.Expect(w.Uses(configMap("app-config"))).To(BeTrue())
			g.Expect(w.Uses(secret("app-config"))).To(BeFalse())
		})
	}
}

func TestTheKindsOfWorkload(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Kinds()).To(Equal([]string{"Deployment", "StatefulSet", "DaemonSet", "CronJob"}))
	for kind, want := range map[string]string{
		"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "CronJob": "batch/v1",
	} {
		g.Expect(APIVersion(kind)).To(Equal(want))
	}
	g.Expect(Ref{Kind: "Deployment", Name: "web"}.String()).To(Equal("Deployment web"))
}

func TestOnlyTheWordTrueIgnoresAWorkload(t *testing.T) {
	for value, ignored := range map[string]bool{"true": true, "True": false, "false": false, "": false, "yes": false} {
		d := &appsv1.Deployment{ObjectMeta: meta()}
		d.Annotations[v1alpha1.IgnoreAnnotation] = value
		NewWithT(t).Expect(reduce(d).Ignored).To(Equal(ignored), "%q", value)
	}
}

func TestE28OnlyWhatMattersIsAChange(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*appsv1.Deployment)
		differ bool
	}{
		"nothing":                        {func(*appsv1.Deployment) {}, false},
		"resourceVersion":                {func(d *appsv1.Deployment) { d.ResourceVersion = "8" }, false},
		"annotations":                    {func(d *appsv1.Deployment) { d.Annotations["more"] = "x" }, false},
		"managedFields":                  {func(d *appsv1.Deployment) { d.ManagedFields = nil }, false},
		"an owner that is no controller": {func(d *appsv1.Deployment) { d.OwnerReferences[0].Name = "other" }, false},
		"the heartbeat":                  {func(d *appsv1.Deployment) { d.Status.Conditions[0].LastUpdateTime = metav1.Now() }, false},
		"the same labels":                {func(d *appsv1.Deployment) { d.Labels = map[string]string{"app": "web"} }, false},

		"uid":                       {func(d *appsv1.Deployment) { d.UID = "uid-2" }, true},
		"labels":                    {func(d *appsv1.Deployment) { d.Labels["a"] = "b" }, true},
		"ignored":                   {func(d *appsv1.Deployment) { d.Annotations[v1alpha1.IgnoreAnnotation] = "true" }, true},
		"its mark":                  {func(d *appsv1.Deployment) { d.Spec.Template.Annotations[mark] = "3-cccccccccccccccc" }, true},
		"its mark goes":             {func(d *appsv1.Deployment) { delete(d.Spec.Template.Annotations, mark) }, true},
		"all annotations go":        {func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }, true},
		"a reference":               {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name = "b" }, true},
		"a rollout begins":          {func(d *appsv1.Deployment) { d.Generation++ }, true},
		"a rollout goes on":         {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, true},
		"it is paused":              {func(d *appsv1.Deployment) { d.Spec.Paused = true }, true},
		"its controller":            {func(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = new(true) }, true},
		"a template label":          {func(d *appsv1.Deployment) { d.Spec.Template.Labels = map[string]string{"a": "b"} }, true},
		"another annotation":        {func(d *appsv1.Deployment) { d.Spec.Template.Annotations["more"] = "x" }, true},
		"the image":                 {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:2" }, true},
		"a SecretProviderClass":     {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Volumes = secretsStore("vault") }, true},
		"the mark of another watch": {func(d *appsv1.Deployment) { d.Spec.Template.Annotations[mark+"-2"] = "1-a" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before, after := rolledOut(), rolledOut()
			before.ObjectMeta, after.ObjectMeta = meta(), meta()
			before.Spec.Template, after.Spec.Template = template(), template()
			tc.change(after)
			g.Expect(differs(reduce(before), reduce(after))).To(Equal(tc.differ))
			g.Expect(differs(reduce(after), reduce(before))).To(Equal(tc.differ))
		})
	}
}

func TestE24TheOwnerIsTheControllerThatOwnsAWorkload(t *testing.T) {
	database := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Database", Name: "orders", Controller: new(true)}
	bystander := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Backup", Name: "nightly"}
	denies := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Backup", Name: "hourly", Controller: new(false)}
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		want   string
	}{
		"none":                        {nil, ""},
		"its controller":              {[]metav1.OwnerReference{database}, "Database orders"},
		"its controller among others": {[]metav1.OwnerReference{bystander, denies, database}, "Database orders"},
		"owners that don't control":   {[]metav1.OwnerReference{bystander, denies}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, object := range oneOfEach() {
				accessor, err := apimeta.Accessor(object)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				accessor.SetOwnerReferences(tc.owners)
				w := reduce(object)
				NewWithT(t).Expect(w.Owner).To(Equal(tc.want), w.Kind)
			}
		})
	}
}

func secretsStore(class string) []corev1.Volume {
	return []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: secretsStoreDriver, VolumeAttributes: map[string]string{"secretProviderClass": class},
	}}}}
}

func TestE28AnEmptyAnnotationMapIsNone(t *testing.T) {
	var d appsv1.Deployment
	NewWithT(t).Expect(json.Unmarshal([]byte(`{"spec": {"template": {"metadata": {"annotations": {}}}}}`), &d)).To(Succeed())
	NewWithT(t).Expect(reduce(&d).TemplateAnnotated).To(BeFalse())
}
