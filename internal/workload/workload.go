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
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

// Ref names a workload within a namespace.
type Ref struct {
	// APIVersion is the API group and version, such as apps/v1.
	APIVersion string
	Kind       string
	Name       string
}

// String is the reference as messages have it, such as "Deployment web".
func (r Ref) String() string {
	return r.Kind + " " + r.Name
}

// Workload is what matters of a workload. It is shared and must not be changed.
type Workload struct {
	// ObjectMeta has the namespace, name, uid, resource version, generation and labels, and nothing
	// else.
	metav1.ObjectMeta
	// APIVersion is the API group and version, such as apps/v1.
	APIVersion string
	Kind       string
	// Ignored tells that the workload is annotated to be left out.
	Ignored bool
	// References are the sources that its pod template references, sorted.
	References []source.Ref
	// SecretProviderClasses are the names of those that its volumes use; they are not watched.
	SecretProviderClasses []string
	// RestartMarks are the values of the restart annotations on its pod template, by the name of the
	// ConfigWatch.
	RestartMarks map[string]string
	// TemplateAnnotated tells whether the pod template has any annotations.
	TemplateAnnotated bool
	// Template tells its pod template from others.
	Template Template
	// Owner is the controller that owns it, such as "Database orders", or empty.
	Owner string
	// Rollout is how its rollout stands.
	Rollout Rollout
}

// Ref is the name of the workload within its namespace.
func (w *Workload) Ref() Ref {
	return Ref{APIVersion: w.APIVersion, Kind: w.Kind, Name: w.Name}
}

// Uses tells whether the pod template references the source.
func (w *Workload) Uses(ref source.Ref) bool {
	return slices.Contains(w.References, ref)
}

// differs tells whether something that matters is another.
func differs(before, after *Workload) bool {
	return before.UID != after.UID || before.Ignored != after.Ignored || before.Rollout != after.Rollout ||
		before.Template.Hash != after.Template.Hash || before.Owner != after.Owner ||
		!maps.Equal(before.RestartMarks, after.RestartMarks) ||
		!slices.Equal(before.References, after.References) ||
		!slices.Equal(before.SecretProviderClasses, after.SecretProviderClasses) ||
		!labels.Equals(before.Labels, after.Labels)
}

// reduce makes a Workload of a Deployment, StatefulSet, DaemonSet or CronJob.
func reduce(in runtime.Object) *Workload {
	var w *Workload
	switch object := in.(type) {
	case *appsv1.Deployment:
		w = fromTemplate(Deployment, &object.ObjectMeta, &object.Spec.Template)
		w.Rollout = deploymentRollout(object)
	case *appsv1.StatefulSet:
		w = fromTemplate(StatefulSet, &object.ObjectMeta, &object.Spec.Template)
		w.Rollout = statefulSetRollout(object)
	case *appsv1.DaemonSet:
		w = fromTemplate(DaemonSet, &object.ObjectMeta, &object.Spec.Template)
		w.Rollout = daemonSetRollout(object)
	case *batchv1.CronJob:
		w = fromTemplate(CronJob, &object.ObjectMeta, &object.Spec.JobTemplate.Spec.Template)
		w.Rollout = Rollout{Progress: Complete, ReadsAtNextRun: true}
	}
	return w
}

func fromTemplate(kind string, meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec) *Workload {
	w := &Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       meta.Namespace,
			Name:            meta.Name,
			UID:             meta.UID,
			ResourceVersion: meta.ResourceVersion,
			Generation:      meta.Generation,
			Labels:          meta.Labels,
		},
		APIVersion:        APIVersion(kind),
		Kind:              kind,
		Ignored:           meta.Annotations[v1alpha1.IgnoreAnnotation] == "true",
		TemplateAnnotated: len(template.Annotations) > 0,
		Template:          templateOf(meta.Generation, template),
	}
	if owner := metav1.GetControllerOfNoCopy(meta); owner != nil {
		w.Owner = owner.Kind + " " + owner.Name
	}
	w.References, w.SecretProviderClasses = referencesOf(&template.Spec)
	for key, value := range template.Annotations {
		name, ok := strings.CutPrefix(key, v1alpha1.RestartAnnotationPrefix)
		if !ok {
			continue
		}
		if w.RestartMarks == nil {
			w.RestartMarks = map[string]string{}
		}
		w.RestartMarks[name] = value
	}
	return w
}
