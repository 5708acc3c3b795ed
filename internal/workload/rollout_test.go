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
	"math"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// condition is a condition of a Deployment.
func condition(kind appsv1.DeploymentConditionType, reason string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason}
}

// rolledOut is a Deployment whose three pods are all new and available.
func rolledOut() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 4},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3)), ProgressDeadlineSeconds: new(int32(600))},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 4, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
			Conditions: []appsv1.DeploymentCondition{
				condition(appsv1.DeploymentAvailable, "MinimumReplicasAvailable"),
				condition(appsv1.DeploymentProgressing, "NewReplicaSetAvailable"),
			},
		},
	}
}

func TestE16E23HowADeploymentsRolloutStands(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*appsv1.Deployment)
		want   Rollout
	}{
		"complete": {func(*appsv1.Deployment) {}, Rollout{Progress: Complete}},
		"fresh, its controller has not looked yet": {
			func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{} },
			Rollout{Progress: InProgress},
		},
		"patched, its controller has not looked yet": {
			func(d *appsv1.Deployment) { d.Generation = 5 },
			Rollout{Progress: InProgress},
		},
		"some pods are old": {
			func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 },
			Rollout{Progress: InProgress},
		},
		"an old pod has not ended": {
			func(d *appsv1.Deployment) { d.Status.Replicas = 4 },
			Rollout{Progress: InProgress},
		},
		"a new pod is not available": {
			func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 },
			Rollout{Progress: InProgress},
		},
		"paused in the middle": {
			func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 1 },
			Rollout{Progress: InProgress, Paused: true},
		},
		"paused when all is done": {
			func(d *appsv1.Deployment) { d.Spec.Paused = true },
			Rollout{Progress: Complete, Paused: true},
		},
		"given up": {
			func(d *appsv1.Deployment) {
				d.Status.UpdatedReplicas = 1
				d.Status.Conditions[1].Status, d.Status.Conditions[1].Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
			},
			Rollout{Progress: Failed, Detail: "Progress deadline exceeded"},
		},
		"given up, and patched since": {
			func(d *appsv1.Deployment) {
				d.Generation = 5
				d.Status.Conditions[1].Status, d.Status.Conditions[1].Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
			},
			Rollout{Progress: InProgress},
		},
		"without a number for the deadline, complete": {
			func(d *appsv1.Deployment) {
				d.Spec.ProgressDeadlineSeconds = nil
				d.Status.Conditions = d.Status.Conditions[:1]
			},
			Rollout{Progress: Complete},
		},
		"E17: without a deadline, some new pods are not available": {
			func(d *appsv1.Deployment) {
				d.Spec.ProgressDeadlineSeconds = new(int32(math.MaxInt32))
				d.Status.Conditions = d.Status.Conditions[:1]
				d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 2, 2, 1
			},
			Rollout{Progress: InProgress, NoDeadline: true, NewPods: 1},
		},
		"E17: without a deadline, a surge of pods that are not available": {
			func(d *appsv1.Deployment) {
				d.Spec.ProgressDeadlineSeconds = new(int32(math.MaxInt32))
				d.Status.Conditions = d.Status.Conditions[:1]
				d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.UnavailableReplicas = 5, 2, 2
			},
			Rollout{Progress: InProgress, NoDeadline: true},
		},
		"E17: without a deadline, all pods of the former template away": {
			func(d *appsv1.Deployment) {
				d.Spec.ProgressDeadlineSeconds = new(int32(math.MaxInt32))
				d.Status.Conditions = d.Status.Conditions[:1]
				d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 1, 0, 3
			},
			Rollout{Progress: InProgress, NoDeadline: true},
		},
		"E17: without a deadline, patched, its controller has not looked yet": {
			func(d *appsv1.Deployment) {
				d.Spec.ProgressDeadlineSeconds, d.Generation = new(int32(math.MaxInt32)), 5
			},
			Rollout{Progress: InProgress, NoDeadline: true},
		},
		"E17: without a deadline, complete": {
			func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = new(int32(math.MaxInt32)) },
			Rollout{Progress: Complete, NoDeadline: true, NewPods: 3},
		},
		"scaled to zero": {
			func(d *appsv1.Deployment) {
				d.Spec.Replicas = new(int32(0))
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: 4, Conditions: d.Status.Conditions}
			},
			Rollout{Progress: Complete, NoPods: true},
		},
		"without a number of replicas": {
			func(d *appsv1.Deployment) { d.Spec.Replicas = nil; d.Status.UpdatedReplicas = 0 },
			Rollout{Progress: InProgress},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := rolledOut()
			tc.change(d)
			NewWithT(t).Expect(reduce(d).Rollout).To(Equal(tc.want))
		})
	}
}

// rolledOutSet is a StatefulSet whose three pods are all new and ready.
func rolledOutSet() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Generation: 4},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(3)),
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0))},
			},
		},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 4, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, CurrentReplicas: 3, UpdatedReplicas: 3,
			CurrentRevision: "db-2", UpdateRevision: "db-2",
		},
	}
}

func onDelete(s *appsv1.StatefulSet) {
	s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}

func partitioned(s *appsv1.StatefulSet, at int32) {
	s.Spec.UpdateStrategy.RollingUpdate.Partition = &at
}

func TestE16E23HowAStatefulSetsRolloutStands(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*appsv1.StatefulSet)
		want   Rollout
	}{
		"complete": {func(*appsv1.StatefulSet) {}, Rollout{Progress: Complete, NewPods: 3}},
		"complete, no partition given": {
			func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate = nil },
			Rollout{Progress: Complete, NewPods: 3},
		},
		"fresh, its controller has not looked yet": {
			func(s *appsv1.StatefulSet) { s.Status = appsv1.StatefulSetStatus{} },
			Rollout{Progress: InProgress},
		},
		"patched, its controller has not looked yet": {
			func(s *appsv1.StatefulSet) { s.Generation = 5 },
			Rollout{Progress: InProgress},
		},
		"some pods are old": {
			func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 2 },
			Rollout{Progress: InProgress, NewPods: 2},
		},
		"a pod is not ready": {
			func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas, s.Status.AvailableReplicas = 2, 2 },
			Rollout{Progress: InProgress, NewPods: 2},
		},
		"E17: the only new pod is not ready": {
			func(s *appsv1.StatefulSet) {
				s.Status.UpdatedReplicas, s.Status.ReadyReplicas, s.Status.AvailableReplicas = 1, 2, 2
			},
			Rollout{Progress: InProgress},
		},
		"E17: an old pod has ended, and no new one is there": {
			func(s *appsv1.StatefulSet) {
				s.Status.UpdatedReplicas, s.Status.Replicas, s.Status.ReadyReplicas, s.Status.AvailableReplicas = 0, 2, 2, 2
			},
			Rollout{Progress: InProgress},
		},
		"E17: more pods are not ready than are new": {
			func(s *appsv1.StatefulSet) {
				s.Status.UpdatedReplicas, s.Status.ReadyReplicas, s.Status.AvailableReplicas = 1, 1, 1
			},
			Rollout{Progress: InProgress},
		},
		"E17: more pods are available than there are": { // numbers of different moments
			func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas, s.Status.Replicas = 2, 2 },
			Rollout{Progress: InProgress, NewPods: 2},
		},
		"scaled to zero": {
			func(s *appsv1.StatefulSet) {
				s.Spec.Replicas = new(int32(0))
				s.Status = appsv1.StatefulSetStatus{ObservedGeneration: 4, CurrentRevision: "db-2", UpdateRevision: "db-2"}
			},
			Rollout{Progress: Complete, NoPods: true},
		},
		"OnDelete, all pods old": {
			func(s *appsv1.StatefulSet) { onDelete(s); s.Status.UpdatedReplicas = 0 },
			Rollout{Progress: Complete, Hold: HeldByOnDelete,
				Detail: "its updateStrategy is OnDelete: delete pods db-0 to db-2, as far as they are old (0 of 3 are new)"},
		},
		"OnDelete, some pods old": {
			func(s *appsv1.StatefulSet) { onDelete(s); s.Status.UpdatedReplicas = 2 },
			Rollout{Progress: Complete, Hold: HeldByOnDelete, NewPods: 2,
				Detail: "its updateStrategy is OnDelete: delete pods db-0 to db-2, as far as they are old (2 of 3 are new)"},
		},
		"OnDelete, ordinals from 5": {
			func(s *appsv1.StatefulSet) {
				onDelete(s)
				s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
				s.Status.UpdatedReplicas = 0
			},
			Rollout{Progress: Complete, Hold: HeldByOnDelete,
				Detail: "its updateStrategy is OnDelete: delete pods db-5 to db-7, as far as they are old (0 of 3 are new)"},
		},
		"OnDelete, one pod": {
			func(s *appsv1.StatefulSet) {
				onDelete(s)
				s.Spec.Replicas = nil
				s.Status.Replicas, s.Status.UpdatedReplicas = 1, 0
			},
			Rollout{Progress: Complete, Hold: HeldByOnDelete,
				Detail: "its updateStrategy is OnDelete: delete pod db-0, as far as they are old (0 of 1 are new)"},
		},
		"OnDelete, all pods new": {onDelete, Rollout{Progress: Complete, NewPods: 3}},
		"OnDelete, its controller has not looked yet": {
			func(s *appsv1.StatefulSet) { onDelete(s); s.Generation = 5; s.Status.UpdatedReplicas = 0 },
			Rollout{Progress: InProgress},
		},
		"a partition, those above it are new": {
			func(s *appsv1.StatefulSet) {
				partitioned(s, 2)
				s.Status.UpdatedReplicas, s.Status.CurrentReplicas, s.Status.CurrentRevision = 1, 2, "db-1"
			},
			Rollout{Progress: Complete, Hold: HeldByPartition, NewPods: 1,
				Detail: "spec.updateStrategy.rollingUpdate.partition is 2, which keeps pods db-0 to db-1 old until it is lowered"},
		},
		"a partition, those above it are not all new": {
			func(s *appsv1.StatefulSet) {
				partitioned(s, 1)
				s.Status.UpdatedReplicas, s.Status.CurrentReplicas, s.Status.CurrentRevision = 1, 2, "db-1"
			},
			Rollout{Progress: InProgress, NewPods: 1},
		},
		"a partition above all": {
			func(s *appsv1.StatefulSet) {
				partitioned(s, 9)
				s.Status.UpdatedReplicas, s.Status.CurrentRevision = 0, "db-1"
			},
			Rollout{Progress: Complete, Hold: HeldByPartition,
				Detail: "spec.updateStrategy.rollingUpdate.partition is 9, which keeps pods db-0 to db-2 old until it is lowered"},
		},
		"a partition that holds one pod": {
			func(s *appsv1.StatefulSet) {
				partitioned(s, 1)
				s.Status.UpdatedReplicas, s.Status.CurrentReplicas, s.Status.CurrentRevision = 2, 1, "db-1"
			},
			Rollout{Progress: Complete, Hold: HeldByPartition, NewPods: 2,
				Detail: "spec.updateStrategy.rollingUpdate.partition is 1, which keeps pod db-0 old until it is lowered"},
		},
		"a partition, all pods new": {
			func(s *appsv1.StatefulSet) { partitioned(s, 2) },
			Rollout{Progress: Complete, NewPods: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := rolledOutSet()
			tc.change(s)
			tc.want.NoDeadline = true // E17: its controller waits forever
			NewWithT(t).Expect(reduce(s).Rollout).To(Equal(tc.want))
		})
	}
}

func TestE16E23HowADaemonSetsRolloutStands(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*appsv1.DaemonSet)
		want   Rollout
	}{
		"complete": {func(*appsv1.DaemonSet) {}, Rollout{Progress: Complete, NewPods: 2}},
		"fresh, its controller has not looked yet": {
			func(d *appsv1.DaemonSet) { d.Status = appsv1.DaemonSetStatus{} },
			Rollout{Progress: InProgress},
		},
		"patched, its controller has not looked yet": {
			func(d *appsv1.DaemonSet) { d.Generation = 5 },
			Rollout{Progress: InProgress},
		},
		"some pods are old": {
			func(d *appsv1.DaemonSet) { d.Status.UpdatedNumberScheduled = 1 },
			Rollout{Progress: InProgress, NewPods: 1},
		},
		"a pod is not available": {
			func(d *appsv1.DaemonSet) { d.Status.NumberAvailable = 1 },
			Rollout{Progress: InProgress, NewPods: 1},
		},
		"E17: the only new pod is not available": {
			func(d *appsv1.DaemonSet) { d.Status.UpdatedNumberScheduled, d.Status.NumberAvailable = 1, 1 },
			Rollout{Progress: InProgress},
		},
		"E17: no pod is available": {
			func(d *appsv1.DaemonSet) { d.Status.UpdatedNumberScheduled, d.Status.NumberAvailable = 1, 0 },
			Rollout{Progress: InProgress},
		},
		"no node wants it": {
			func(d *appsv1.DaemonSet) { d.Status = appsv1.DaemonSetStatus{ObservedGeneration: 4} },
			Rollout{Progress: Complete},
		},
		"OnDelete, some pods old": {
			func(d *appsv1.DaemonSet) {
				d.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				d.Status.UpdatedNumberScheduled = 1
			},
			Rollout{Progress: InProgress, Hold: HeldByOnDelete, NewPods: 1, Detail: "its updateStrategy is OnDelete: delete its old pods, " +
				"kubectl delete pod -n shop -l 'app=proxy' (1 of 2 are new)"},
		},
		"OnDelete, all pods new": {
			func(d *appsv1.DaemonSet) { d.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType },
			Rollout{Progress: Complete, NewPods: 2},
		},
		"OnDelete, its controller has not looked yet": {
			func(d *appsv1.DaemonSet) {
				d.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				d.Generation, d.Status.UpdatedNumberScheduled = 5, 0
			},
			Rollout{Progress: InProgress},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.DaemonSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "proxy", Generation: 4},
				Spec: appsv1.DaemonSetSpec{
					Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "proxy"}},
					UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
				},
				Status: appsv1.DaemonSetStatus{
					ObservedGeneration: 4, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2,
					NumberReady: 2, NumberAvailable: 2,
				},
			}
			tc.change(d)
			tc.want.NoDeadline = true // E17: its controller waits forever
			NewWithT(t).Expect(reduce(d).Rollout).To(Equal(tc.want))
		})
	}
}

func TestE22ACronJobReadsItsConfigurationAtTheNextRun(t *testing.T) {
	for name, suspend := range map[string]*bool{"active": nil, "suspended": new(true)} {
		t.Run(name, func(t *testing.T) {
			w := reduce(&batchv1.CronJob{Spec: batchv1.CronJobSpec{Suspend: suspend}})
			NewWithT(t).Expect(w.Rollout).To(Equal(Rollout{Progress: Complete, ReadsAtNextRun: true}))
		})
	}
}

func TestE16AWorkloadThatIsBeingDeletedIsNotRolledOut(t *testing.T) {
	d := rolledOut()
	now := metav1.Now()
	d.DeletionTimestamp = &now
	NewWithT(t).Expect(reduce(d).Rollout).To(Equal(Rollout{Progress: InProgress}))
}
