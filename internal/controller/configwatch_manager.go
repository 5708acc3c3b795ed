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
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/subscriber"
	"github.com/ktechhub/configwatch/internal/turns"
)

const (
	// firstRetry and lastRetry bound the time until a pass that failed is made again; it doubles.
	firstRetry = 10 * time.Millisecond
	lastRetry  = time.Minute
)

// Options are the settings of the controller.
type Options struct {
	// MaxConcurrentReconciles is how many ConfigWatches are reconciled at once; 0 means 1.
	MaxConcurrentReconciles int
	// MaxConcurrentRollouts is how many targets of all ConfigWatches roll out at once; 0: any number.
	MaxConcurrentRollouts int
}

// SetupWithManager makes the manager run the reconciler and its caches.
func (r *ConfigWatchReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	changes := &changes{configWatches: mgr.GetCache(), sources: r.Sources, workloads: r.Workloads}
	if err := changes.listen(); err != nil {
		return err
	}
	r.wakeAfter = changes.wakeAfter
	r.turns = turns.New(opts.MaxConcurrentRollouts, changes.wakeOne)
	r.subscribers = subscriber.New(r.Teller, r.Clock, changes.wakeForRecord)
	if err := mgr.Add(r.subscribers); err != nil {
		return fmt.Errorf("adding the dispatcher of subscribers: %w", err)
	}
	var err error
	if r.metrics, err = newMetrics(ctrlmetrics.Registry); err != nil {
		return err
	}
	if err := mgr.Add(r.Sources); err != nil {
		return fmt.Errorf("adding the cache of sources: %w", err)
	}
	if err := mgr.Add(r.Workloads); err != nil {
		return fmt.Errorf("adding the cache of workloads: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("configwatch").
		For(&v1alpha1.ConfigWatch{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(changes).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: opts.MaxConcurrentReconciles,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("building the controller: %w", err)
	}
	return nil
}
