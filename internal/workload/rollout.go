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
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// Progress is how far a rollout is.
type Progress string

const (
	// Complete: every pod is of the present template, and available.
	Complete Progress = "Complete"
	// InProgress: the workload's controller is at work, or hasn't begun.
	InProgress Progress = "InProgress"
	// Failed: the workload's controller gave up.
	Failed Progress = "Failed"
)

// Hold is what keeps pods old until a human acts (E23).
type Hold string

const (
	// HeldByOnDelete: the update strategy is OnDelete, and old pods are there.
	HeldByOnDelete Hold = "OnDelete"
	// HeldByPartition: a StatefulSet's partition keeps some pods old.
	HeldByPartition Hold = "Partition"
)

// Rollout is how the rollout of a workload stands, as its own controller reports it.
type Rollout struct {
	Progress Progress
	// Detail says why a rollout failed, or which pods are held.
	Detail string
	// Paused tells that spec.paused is true.
	Paused bool
	// NoPods tells that it is scaled to zero.
	NoPods bool
	// Hold is what keeps pods old, if something does.
	Hold Hold
	// NoDeadline tells that its controller never gives a rollout up, and NewPods how many pods of the
	// present template are then ready.
	NoDeadline bool
	NewPods    int32
	// ReadsAtNextRun tells that pods are made on a schedule, each with the configuration of its time.
	ReadsAtNextRun bool
}

// withoutDeadline is a Deployment's spec.progressDeadlineSeconds that stands for none.
const withoutDeadline = math.MaxInt32

// deploymentRollout takes the state from kstatus, of a copy that has nothing but what that reads.
func deploymentRollout(in *appsv1.Deployment) Rollout {
	rollout := observed(&appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: Deployment},
		ObjectMeta: rolloutMeta(&in.ObjectMeta),
		Spec: appsv1.DeploymentSpec{
			Replicas:                in.Spec.Replicas,
			ProgressDeadlineSeconds: in.Spec.ProgressDeadlineSeconds,
		},
		Status: in.Status,
	})
	rollout.Paused = in.Spec.Paused
	rollout.NoPods = ptr.Deref(in.Spec.Replicas, 1) == 0
	if ptr.Deref(in.Spec.ProgressDeadlineSeconds, 0) == withoutDeadline {
		rollout.NoDeadline = true
		if in.Status.ObservedGeneration >= in.Generation {
			rollout.NewPods = newPods(in.Status.UpdatedReplicas, in.Status.UnavailableReplicas)
		}
	}
	return rollout
}

func statefulSetRollout(in *appsv1.StatefulSet) Rollout {
	rollout := observed(&appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: StatefulSet},
		ObjectMeta: rolloutMeta(&in.ObjectMeta),
		Spec:       appsv1.StatefulSetSpec{Replicas: in.Spec.Replicas, UpdateStrategy: in.Spec.UpdateStrategy},
		Status:     in.Status,
	})
	replicas := ptr.Deref(in.Spec.Replicas, 1)
	rollout.NoPods = replicas == 0
	rollout.NoDeadline = true
	if in.Status.ObservedGeneration < in.Generation {
		return rollout // what it reports is of the template before
	}
	rollout.NewPods = newPods(in.Status.UpdatedReplicas, in.Status.Replicas-in.Status.AvailableReplicas)
	if in.Status.UpdatedReplicas >= replicas {
		return rollout
	}
	var first int32
	if in.Spec.Ordinals != nil {
		first = in.Spec.Ordinals.Start
	}
	switch {
	case in.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		rollout.Hold = HeldByOnDelete
		rollout.Detail = fmt.Sprintf("its updateStrategy is OnDelete: delete %s, as far as they are old (%d of %d are new)",
			podNames(in.Name, first, first+replicas), in.Status.UpdatedReplicas, replicas)
	case rollout.Progress == Complete && partition(in) > first:
		rollout.Hold = HeldByPartition
		rollout.Detail = fmt.Sprintf("spec.updateStrategy.rollingUpdate.partition is %d, which keeps %s old until it is lowered",
			partition(in), podNames(in.Name, first, min(first+replicas, partition(in))))
	}
	return rollout
}

func partition(in *appsv1.StatefulSet) int32 {
	if in.Spec.UpdateStrategy.RollingUpdate == nil {
		return 0
	}
	return ptr.Deref(in.Spec.UpdateStrategy.RollingUpdate.Partition, 0)
}

// podNames names the pods of a StatefulSet from one ordinal up to, but without, another.
func podNames(name string, from, to int32) string {
	if to-from <= 1 {
		return fmt.Sprintf("pod %s-%d", name, from)
	}
	return fmt.Sprintf("pods %s-%d to %s-%d", name, from, name, to-1)
}

func daemonSetRollout(in *appsv1.DaemonSet) Rollout {
	rollout := observed(&appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: DaemonSet},
		ObjectMeta: rolloutMeta(&in.ObjectMeta),
		Status:     in.Status,
	})
	desired, updated := in.Status.DesiredNumberScheduled, in.Status.UpdatedNumberScheduled
	rollout.NoDeadline = true
	if in.Status.ObservedGeneration < in.Generation {
		return rollout // what it reports is of the template before
	}
	rollout.NewPods = newPods(updated, desired-in.Status.NumberAvailable)
	if updated >= desired {
		return rollout
	}
	if in.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		rollout.Hold = HeldByOnDelete
		rollout.Detail = fmt.Sprintf("its updateStrategy is OnDelete: delete its old pods, kubectl delete pod -n %s -l '%s' (%d of %d are new)",
			in.Namespace, metav1.FormatLabelSelector(in.Spec.Selector), updated, desired)
	}
	return rollout
}

// newPods is how many pods of the present template are there and available, if those that aren't available
// are new ones.
func newPods(updated, unavailable int32) int32 {
	return max(0, updated-max(0, unavailable))
}

func rolloutMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              meta.Name,
		Namespace:         meta.Namespace,
		Generation:        meta.Generation,
		DeletionTimestamp: meta.DeletionTimestamp,
	}
}

// observed is what kstatus makes of an object.
func observed(object runtime.Object) Rollout {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return Rollout{Progress: InProgress}
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		return Rollout{Progress: InProgress}
	}
	switch result.Status {
	case status.CurrentStatus:
		return Rollout{Progress: Complete}
	case status.FailedStatus:
		return Rollout{Progress: Failed, Detail: result.Message}
	case status.InProgressStatus, status.TerminatingStatus, status.NotFoundStatus, status.UnknownStatus:
	}
	return Rollout{Progress: InProgress}
}
