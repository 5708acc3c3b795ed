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
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

const (
	barrierNamespace = "barrier"
	barrierLabel     = "barrier"
)

// Barrier tells when a manager that watches all namespaces has seen everything that came before: watches
// bring events in their order, so it has once it has seen a change of each kind that is made now. A test
// can then say at once that something has not happened, without waiting for long.
type Barrier struct {
	client client.Client
	passed int
}

// NewBarrier makes one. A cluster has at most one.
func NewBarrier(ctx context.Context, c client.Client) (*Barrier, error) {
	b := &Barrier{client: c}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: barrierNamespace}},
		MakeConfigMap("barrier").Namespace(barrierNamespace).Data("passed", "0").Obj(),
		MakeSecret("barrier").Namespace(barrierNamespace).Data("passed", "0").Obj(),
		b.deployment(),
		MakeConfigWatch("barrier").Namespace(barrierNamespace).Mode(v1alpha1.ModeSuspended).
			ConfigMap("barrier").Secret("barrier").Targets("Deployment", barrierLabel, "true").Obj(),
	} {
		if err := c.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("making the barrier: %w", err)
		}
	}
	return b, nil
}

func (b *Barrier) deployment() client.Object {
	return MakeDeployment(b.name()).Namespace(barrierNamespace).Label(barrierLabel, "true").Replicas(0).Obj()
}

func (b *Barrier) name() string {
	return fmt.Sprintf("barrier-%d", b.passed)
}

// Pass returns when the manager has seen all changes of ConfigMaps, Secrets, Deployments and
// ConfigWatches that were made before the call.
func (b *Barrier) Pass(ctx context.Context) error {
	const interval, timeout = 10 * time.Millisecond, 30 * time.Second
	before, err := b.configWatch(ctx)
	if err != nil {
		return err
	}
	if err := b.change(ctx, before); err != nil {
		return fmt.Errorf("changing the barrier: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
		now, err := b.configWatch(ctx)
		return err == nil && b.seen(before, now), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the manager has seen all changes: %w", err)
	}
	return nil
}

func (b *Barrier) configWatch(ctx context.Context) (*v1alpha1.ConfigWatch, error) {
	cw := &v1alpha1.ConfigWatch{}
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: barrierNamespace, Name: "barrier"}, cw); err != nil {
		return nil, fmt.Errorf("reading the barrier: %w", err)
	}
	return cw, nil
}

// change changes one object of each kind.
func (b *Barrier) change(ctx context.Context, cw *v1alpha1.ConfigWatch) error {
	if err := b.client.Delete(ctx, b.deployment()); err != nil {
		return err
	}
	b.passed++
	edit := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op": "add", "path": "/spec/sources/0/keys", "value": [%q]}]`, b.name()))
	for _, change := range []func() error{
		func() error {
			return b.client.Update(ctx, MakeConfigMap("barrier").Namespace(barrierNamespace).Data("passed", b.name()).Obj())
		},
		func() error {
			return b.client.Update(ctx, MakeSecret("barrier").Namespace(barrierNamespace).Data("passed", b.name()).Obj())
		},
		func() error { return b.client.Create(ctx, b.deployment()) },
		func() error { return b.client.Patch(ctx, cw.DeepCopy(), edit) },
	} {
		if err := change(); err != nil {
			return err
		}
	}
	return nil
}

func (b *Barrier) seen(before, now *v1alpha1.ConfigWatch) bool {
	if now.Status.ObservedGeneration != now.Generation || now.Generation == before.Generation {
		return false
	}
	for _, s := range now.Status.Sources {
		if s.State != v1alpha1.SourcePresent || slices.ContainsFunc(before.Status.Sources, func(old v1alpha1.SourceStatus) bool {
			return old.Kind == s.Kind && old.Hash == s.Hash
		}) {
			return false
		}
	}
	return slices.ContainsFunc(now.Status.Targets, func(t v1alpha1.TargetStatus) bool { return t.Name == b.name() })
}
