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
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FinishRollout does what kube-controller-manager does, where none runs, once all pods of a Deployment are of
// its present template and available.
func FinishRollout(ctx context.Context, c client.Client, namespace, name string) error {
	return reportRollout(ctx, c, namespace, name, func(d *appsv1.Deployment) {
		replicas := ptr.Deref(d.Spec.Replicas, 1)
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation,
			Replicas:           replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
	})
}

// FailRollout does what kube-controller-manager does, where none runs, once the pods of a Deployment have made no
// progress for too long.
func FailRollout(ctx context.Context, c client.Client, namespace, name string) error {
	return reportRollout(ctx, c, namespace, name, func(d *appsv1.Deployment) {
		d.Status.ObservedGeneration = d.Generation
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
		}
	})
}

func reportRollout(ctx context.Context, c client.Client, namespace, name string, how func(*appsv1.Deployment)) error {
	d := MakeDeployment(name).Namespace(namespace).Obj()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := Reload(ctx, c, d); err != nil {
			return err
		}
		how(d)
		return c.Status().Update(ctx, d)
	})
	if err != nil {
		return fmt.Errorf("reporting the rollout of Deployment %s: %w", name, err)
	}
	return nil
}
