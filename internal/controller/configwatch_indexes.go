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

package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// The indexes of ConfigWatches. A value is a kind and a name, a kind and anySelected for entries that
// select by labels, or omitted where the spec has no such list.
const (
	bySource = "spec.sources"
	byTarget = "spec.targets"

	anySelected = "*"
	omitted     = ""
)

func indexValue(kind, name string) string {
	if name == "" {
		name = anySelected
	}
	return kind + "/" + name
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return cmp.Or(
		addIndex(ctx, indexer, bySource, func(spec *v1alpha1.ConfigWatchSpec) (values []string) {
			for i := range spec.Sources {
				values = append(values, indexValue(string(spec.Sources[i].Kind), spec.Sources[i].Name))
			}
			return values
		}),
		addIndex(ctx, indexer, byTarget, func(spec *v1alpha1.ConfigWatchSpec) (values []string) {
			for i := range spec.Targets {
				values = append(values, indexValue(spec.Targets[i].Kind, spec.Targets[i].Name))
			}
			return values
		}),
	)
}

// addIndex adds an index of what a spec lists.
func addIndex(
	ctx context.Context, indexer client.FieldIndexer, field string, listed func(*v1alpha1.ConfigWatchSpec) []string,
) error {
	err := indexer.IndexField(ctx, &v1alpha1.ConfigWatch{}, field, func(object client.Object) []string {
		cw, _ := object.(*v1alpha1.ConfigWatch)
		if values := listed(&cw.Spec); len(values) > 0 {
			return values
		}
		return []string{omitted}
	})
	if err != nil {
		return fmt.Errorf("indexing ConfigWatches by %s: %w", field, err)
	}
	return nil
}

// changes wakes the ConfigWatches that a change of a source or a workload concerns. It is a source of
// the controller.
type changes struct {
	configWatches client.Reader
	sources       *source.Cache
	workloads     *workload.Cache

	queue atomic.Pointer[queue]
}

// Priorities of passes: those that may restart something come before those that only record what was
// done and how a rollout goes on.
const (
	forRestarts = 0
	forRecords  = handler.LowPriority
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// listen must be called before the caches are started. Until the controller runs, which is until this
// replica leads, changes wake nobody; its first passes see them all.
func (c *changes) listen() error {
	if err := c.sources.OnChange(c.sourceChanged); err != nil {
		return err
	}
	if err := c.workloads.OnChange(c.workloadChanged); err != nil {
		return err
	}
	c.sources.OnState(c.wakeAll)
	c.workloads.OnState(c.wakeAll)
	return nil
}

// Start is called by the controller.
func (c *changes) Start(_ context.Context, q queue) error {
	c.queue.Store(&q)
	return nil
}

// WaitForSync holds the first passes back until everything has been read, or has turned out not to be
// readable: a missing permission holds up nobody who doesn't need it.
func (c *changes) WaitForSync(ctx context.Context) error {
	const interval = 20 * time.Millisecond
	err := wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		return c.sources.Settled() && c.workloads.Settled(), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for sources and workloads to be read: %w", err)
	}
	return nil
}

// String names the source in the controller's log.
func (c *changes) String() string {
	return "sources and workloads"
}

func (c *changes) sourceChanged(before, after *source.Source) {
	if c.queue.Load() == nil {
		return
	}
	changed := after
	if changed == nil {
		changed = before
	}
	ref, namespace := changed.Ref(), changed.Namespace
	c.wake(forRestarts, namespace, bySource, indexValue(string(ref.Kind), ref.Name), nil)
	c.wake(forRestarts, namespace, bySource, indexValue(string(ref.Kind), ""), func(cw *v1alpha1.ConfigWatch) bool {
		return selectsSource(cw, before) || selectsSource(cw, after)
	})
	for _, w := range c.workloads.Using(namespace, ref) {
		c.wakeTargeting(forRestarts, w, func(cw *v1alpha1.ConfigWatch) bool { return len(cw.Spec.Sources) == 0 })
	}
}

// workloadChanged wakes those that select the workload as it is, and, if it may have been selected
// otherwise before, those as well.
func (c *changes) workloadChanged(before, after *workload.Workload) {
	if c.queue.Load() == nil {
		return
	}
	if after != nil {
		c.wakeSelecting(after)
	}
	if before != nil && (after == nil || !labels.Equals(before.Labels, after.Labels) || !slices.Equal(before.References, after.References)) {
		c.wakeSelecting(before)
	}
}

// wakeSelecting wakes the ConfigWatches of which the workload is a target.
func (c *changes) wakeSelecting(w *workload.Workload) {
	c.wakeTargeting(forRecords, w, nil)
	withoutTargets := func(cw *v1alpha1.ConfigWatch) bool {
		return len(cw.Spec.Targets) == 0 && cw.Spec.Mode != v1alpha1.ModeObserve
	}
	for _, ref := range w.References {
		c.wake(forRecords, w.Namespace, bySource, indexValue(string(ref.Kind), ref.Name), withoutTargets)
		c.wake(forRecords, w.Namespace, bySource, indexValue(string(ref.Kind), ""), withoutTargets)
	}
}

// wakeTargeting wakes the ConfigWatches that list the workload, or select it.
func (c *changes) wakeTargeting(priority int, w *workload.Workload, only func(*v1alpha1.ConfigWatch) bool) {
	c.wake(priority, w.Namespace, byTarget, indexValue(w.Kind, w.Name), only)
	c.wake(priority, w.Namespace, byTarget, indexValue(w.Kind, ""), func(cw *v1alpha1.ConfigWatch) bool {
		return (only == nil || only(cw)) && selectsTarget(cw, w)
	})
}

// wake enqueues the ConfigWatches of a namespace with that value in the index.
func (c *changes) wake(priority int, namespace, index, value string, only func(*v1alpha1.ConfigWatch) bool) {
	c.enqueue(priority, only, client.InNamespace(namespace), client.MatchingFields{index: value})
}

// wakeOne enqueues a ConfigWatch whose turn it is.
func (c *changes) wakeOne(cw types.NamespacedName) {
	c.wakeAfter(cw, 0)
}

// wakeAfter enqueues a ConfigWatch that has something to do in a while. If it is enqueued already, the sooner time
// counts.
func (c *changes) wakeAfter(cw types.NamespacedName, after time.Duration) {
	if q := c.queue.Load(); q != nil {
		add(*q, forRestarts, after, reconcile.Request{NamespacedName: cw})
	}
}

// wakeForRecord enqueues a ConfigWatch whose subscriber was told, or couldn't be.
func (c *changes) wakeForRecord(cw types.NamespacedName) {
	if q := c.queue.Load(); q != nil {
		add(*q, forRecords, 0, reconcile.Request{NamespacedName: cw})
	}
}

// wakeAll enqueues every ConfigWatch.
func (c *changes) wakeAll() {
	if c.queue.Load() != nil {
		c.enqueue(forRecords, nil)
	}
}

func (c *changes) enqueue(priority int, only func(*v1alpha1.ConfigWatch) bool, opts ...client.ListOption) {
	q := c.queue.Load()
	if q == nil {
		return
	}
	list := &v1alpha1.ConfigWatchList{}
	ctx := context.Background()
	if err := c.configWatches.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "Failed to find the ConfigWatches that a change concerns")
		return
	}
	for i := range list.Items {
		cw := &list.Items[i]
		if only == nil || only(cw) {
			add(*q, priority, 0, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: cw.Namespace, Name: cw.Name}})
		}
	}
}

func add(q queue, priority int, after time.Duration, request reconcile.Request) {
	if prioritized, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, request)
		return
	}
	q.AddAfter(request, after)
}

func selectsSource(cw *v1alpha1.ConfigWatch, s *source.Source) bool {
	if s == nil {
		return false
	}
	for i := range cw.Spec.Sources {
		if entry := &cw.Spec.Sources[i]; entry.Kind == s.Kind && matches(entry.Selector, s.Labels) {
			return true
		}
	}
	return false
}

func selectsTarget(cw *v1alpha1.ConfigWatch, w *workload.Workload) bool {
	for i := range cw.Spec.Targets {
		if entry := &cw.Spec.Targets[i]; entry.Kind == w.Kind && matches(entry.Selector, w.Labels) {
			return true
		}
	}
	return false
}

func matches(selector *metav1.LabelSelector, of map[string]string) bool {
	if selector == nil {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(of))
}
