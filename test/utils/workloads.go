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

package utils

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// workload is what the builders of all kinds of workload share. B is the builder that embeds it.
type workload[B any] struct {
	builder  *B
	meta     *metav1.ObjectMeta
	template *corev1.PodTemplateSpec
}

func newWorkload[B any](builder *B, name string, meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec) workload[B] {
	meta.Name = name
	template.Labels = map[string]string{"app": name}
	template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app"}}
	return workload[B]{builder: builder, meta: meta, template: template}
}

func selecting(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

// Namespace puts it into a namespace.
func (w workload[B]) Namespace(name string) *B {
	w.meta.Namespace = name
	return w.builder
}

// Label labels the workload, not its pods.
func (w workload[B]) Label(key, value string) *B {
	metav1.SetMetaDataLabel(w.meta, key, value)
	return w.builder
}

// Annotation annotates the workload, not its pods.
func (w workload[B]) Annotation(key, value string) *B {
	metav1.SetMetaDataAnnotation(w.meta, key, value)
	return w.builder
}

// TemplateAnnotation annotates the pod template.
func (w workload[B]) TemplateAnnotation(key, value string) *B {
	metav1.SetMetaDataAnnotation(&w.template.ObjectMeta, key, value)
	return w.builder
}

// Image is the image of the container.
func (w workload[B]) Image(image string) *B {
	w.template.Spec.Containers[0].Image = image
	return w.builder
}

// EnvFromConfigMap makes every key of a ConfigMap an environment variable.
func (w workload[B]) EnvFromConfigMap(name string) *B {
	return w.envFrom(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name},
	}})
}

// EnvFromSecret makes every key of a Secret an environment variable.
func (w workload[B]) EnvFromSecret(name string) *B {
	return w.envFrom(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name},
	}})
}

func (w workload[B]) envFrom(from corev1.EnvFromSource) *B {
	container := &w.template.Spec.Containers[0]
	container.EnvFrom = append(container.EnvFrom, from)
	return w.builder
}

// Pod changes the pod template's spec in a way that has no method of its own.
func (w workload[B]) Pod(change func(*corev1.PodSpec)) *B {
	change(&w.template.Spec)
	return w.builder
}

// DeploymentBuilder makes a Deployment.
type DeploymentBuilder struct {
	workload[DeploymentBuilder]
	object *appsv1.Deployment
}

// MakeDeployment makes one of one replica, whose pods have the label app with its name and one
// container.
func MakeDeployment(name string) *DeploymentBuilder {
	object := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: selecting(name)}}
	b := &DeploymentBuilder{object: object}
	b.workload = newWorkload(b, name, &object.ObjectMeta, &object.Spec.Template)
	return b
}

// Replicas is how many pods it has.
func (b *DeploymentBuilder) Replicas(n int32) *DeploymentBuilder {
	b.object.Spec.Replicas = &n
	return b
}

// Paused pauses its rollouts.
func (b *DeploymentBuilder) Paused() *DeploymentBuilder {
	b.object.Spec.Paused = true
	return b
}

// ProgressDeadline is after how many seconds without progress a rollout has failed.
func (b *DeploymentBuilder) ProgressDeadline(seconds int32) *DeploymentBuilder {
	b.object.Spec.ProgressDeadlineSeconds = &seconds
	return b
}

// Obj is the Deployment.
func (b *DeploymentBuilder) Obj() *appsv1.Deployment {
	return b.object
}

// StatefulSetBuilder makes a StatefulSet.
type StatefulSetBuilder struct {
	workload[StatefulSetBuilder]
	object *appsv1.StatefulSet
}

// MakeStatefulSet makes one of one replica, whose pods have the label app with its name and one
// container.
func MakeStatefulSet(name string) *StatefulSetBuilder {
	object := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selecting(name), ServiceName: name}}
	b := &StatefulSetBuilder{object: object}
	b.workload = newWorkload(b, name, &object.ObjectMeta, &object.Spec.Template)
	return b
}

// Replicas is how many pods it has.
func (b *StatefulSetBuilder) Replicas(n int32) *StatefulSetBuilder {
	b.object.Spec.Replicas = &n
	return b
}

// OnDelete makes it leave its pods as they are until they are deleted.
func (b *StatefulSetBuilder) OnDelete() *StatefulSetBuilder {
	b.object.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	return b
}

// Partition makes it leave the pods with lower ordinals as they are.
func (b *StatefulSetBuilder) Partition(ordinal int32) *StatefulSetBuilder {
	b.object.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
		Type:          appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &ordinal},
	}
	return b
}

// Obj is the StatefulSet.
func (b *StatefulSetBuilder) Obj() *appsv1.StatefulSet {
	return b.object
}

// DaemonSetBuilder makes a DaemonSet.
type DaemonSetBuilder struct {
	workload[DaemonSetBuilder]
	object *appsv1.DaemonSet
}

// MakeDaemonSet makes one whose pods have the label app with its name and one container.
func MakeDaemonSet(name string) *DaemonSetBuilder {
	object := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: selecting(name)}}
	b := &DaemonSetBuilder{object: object}
	b.workload = newWorkload(b, name, &object.ObjectMeta, &object.Spec.Template)
	return b
}

// OnDelete makes it leave its pods as they are until they are deleted.
func (b *DaemonSetBuilder) OnDelete() *DaemonSetBuilder {
	b.object.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	return b
}

// Obj is the DaemonSet.
func (b *DaemonSetBuilder) Obj() *appsv1.DaemonSet {
	return b.object
}

// CronJobBuilder makes a CronJob.
type CronJobBuilder struct {
	workload[CronJobBuilder]
	object *batchv1.CronJob
}

// MakeCronJob makes one that runs once a year, and whose pods have the label app with its name and one
// container.
func MakeCronJob(name string) *CronJobBuilder {
	object := &batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *"}}
	b := &CronJobBuilder{object: object}
	b.workload = newWorkload(b, name, &object.ObjectMeta, &object.Spec.JobTemplate.Spec.Template)
	object.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return b
}

// Suspended keeps it from running.
func (b *CronJobBuilder) Suspended() *CronJobBuilder {
	b.object.Spec.Suspend = new(true)
	return b
}

// Obj is the CronJob.
func (b *CronJobBuilder) Obj() *batchv1.CronJob {
	return b.object
}
