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
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/selection"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// +kubebuilder:rbac:groups=configwatch.ktechhub.io,resources=configwatches,verbs=list;watch
// +kubebuilder:rbac:groups=configwatch.ktechhub.io,resources=configwatches/status,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=list;watch;patch
// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// maxParallelRestarts bounds the patches of one pass that are under way at once.
const maxParallelRestarts = 16

// ConfigWatchReconciler reconciles ConfigWatches.
type ConfigWatchReconciler struct {
	Client    client.Client
	Sources   *source.Cache
	Workloads *workload.Cache
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock

	unrecorded unrecorded
}

// Reconcile makes one pass over a ConfigWatch: get, observe, plan, act, report.
func (r *ConfigWatchReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cw := &v1alpha1.ConfigWatch{}
	if err := r.Client.Get(ctx, req.NamespacedName, cw); err != nil {
		return ctrl.Result{}, r.gone(req, err)
	}
	if !cw.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	written := cw.Status
	status, news := r.unrecorded.latest(cw)
	cw.Status = status
	now := r.Clock.Now().Truncate(time.Second) // as the API server keeps it
	observation, err := selection.Observe(cw, r.Sources, r.Workloads, now)
	if err != nil {
		return r.waitForCaches(ctx, err)
	}
	decision := plan.Decide(plan.Input{
		Name:       cw.Name,
		Generation: cw.Generation,
		Mode:       cw.Spec.Mode,
		Recorded:   &cw.Status,
		Observed:   observation,
		Now:        now,
	})
	if err := r.confirm(ctx, cw.Namespace, decision.Restarts); err != nil {
		return ctrl.Result{}, err
	}
	outcomes := r.act(ctx, cw.Name, decision.Restarts)
	status, more := decision.Conclude(outcomes)
	r.unrecorded.keep(cw, conclusion{written: written, status: status, news: append(slices.Clone(news), more...)})
	if len(outcomes) > 0 && errors.Join(outcomes...) == nil {
		return recordLater(), nil
	}
	if err := r.report(ctx, cw); err != nil {
		return ctrl.Result{}, err
	}
	if err := errors.Join(outcomes...); err != nil {
		return ctrl.Result{}, err
	}
	return r.lookAgain(decision.LookAgain), nil
}

// gone ends the pass of a ConfigWatch that can't be got. Nothing has to be cleaned up after one that
// was deleted: what it restarted stays restarted.
func (r *ConfigWatchReconciler) gone(req ctrl.Request, err error) error {
	if apierrors.IsNotFound(err) {
		r.unrecorded.forget(req.NamespacedName)
		return nil
	}
	return fmt.Errorf("getting the ConfigWatch: %w", err)
}

// recordLater ends a pass whose restarts were all made. The next pass records them. It comes after every
// restart that is due, of this ConfigWatch and of others: when one change concerns many workloads, none
// waits for the records of the others.
func recordLater() ctrl.Result {
	return ctrl.Result{RequeueAfter: time.Nanosecond, Priority: new(records)}
}

// waitForCaches ends a pass that can't be made yet. The caches wake every ConfigWatch when they can be
// read again.
func (r *ConfigWatchReconciler) waitForCaches(ctx context.Context, err error) (ctrl.Result, error) {
	log.FromContext(ctx).V(1).Info("Waiting until sources and workloads can be read", "reason", err.Error())
	return ctrl.Result{}, nil
}

func (r *ConfigWatchReconciler) lookAgain(at time.Time) ctrl.Result {
	if at.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: max(at.Sub(r.Clock.Now()), time.Second)}
}

// confirm makes sure that the caches aren't behind, where nothing proves it: after a start, and after
// another replica has led. A restart for content that is no longer there would be one too many (E9).
func (r *ConfigWatchReconciler) confirm(ctx context.Context, namespace string, restarts []plan.Restart) error {
	confirmed := map[source.Version]bool{}
	for i := range restarts {
		for _, version := range restarts[i].Unproven {
			if confirmed[version] {
				continue
			}
			if err := r.Sources.Confirm(ctx, namespace, version); err != nil {
				return err
			}
			confirmed[version] = true
		}
	}
	return nil
}

// act makes the restarts, independently of each other (E11).
func (r *ConfigWatchReconciler) act(ctx context.Context, name string, restarts []plan.Restart) []error {
	outcomes := make([]error, len(restarts))
	places := make(chan struct{}, maxParallelRestarts)
	var running sync.WaitGroup
	for i := range restarts {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			outcomes[i] = r.restart(ctx, name, restarts[i])
		})
	}
	running.Wait()
	return outcomes
}

// restart makes one restart. A panic is an error of it, and no end of the process.
func (r *ConfigWatchReconciler) restart(ctx context.Context, name string, restart plan.Restart) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			log.FromContext(ctx).Info("Recovered from a panic", "panic", panicked, "stack", string(debug.Stack()))
			err = fmt.Errorf("restarting %s: panic: %v", restart.Workload.Ref(), panicked)
		}
	}()
	return r.Workloads.Restart(ctx, restart.Workload, name, restart.Mark)
}

// report writes the status if it differs, and then tells the news (E28).
func (r *ConfigWatchReconciler) report(ctx context.Context, cw *v1alpha1.ConfigWatch) error {
	c := r.unrecorded.get(cw)
	if !equality.Semantic.DeepEqual(c.written, c.status) {
		cw.Status = c.status
		if err := r.Client.Status().Update(ctx, cw, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
			return fmt.Errorf("writing the status: %w", err)
		}
	}
	r.unrecorded.forget(client.ObjectKeyFromObject(cw))
	logger := log.FromContext(ctx)
	for _, n := range c.news {
		if !n.OnTarget {
			logger.Info(n.Note, "reason", n.Reason)
		}
		r.emit(cw, n)
	}
	return nil
}

func (r *ConfigWatchReconciler) emit(cw *v1alpha1.ConfigWatch, e plan.Event) {
	var regarding, related runtime.Object = cw, nil
	if e.Target != nil {
		related = referenceTo(e.Target)
	}
	if e.OnTarget {
		regarding, related = related, regarding
	}
	r.Recorder.Eventf(regarding, related, e.Type, e.Reason, e.Action, "%s", e.Note)
}

// referenceTo is an object by which the recorder knows the workload.
func referenceTo(w *workload.Workload) runtime.Object {
	return &corev1.ObjectReference{
		APIVersion: w.APIVersion, Kind: w.Kind,
		Namespace: w.Namespace, Name: w.Name, UID: w.UID, ResourceVersion: w.ResourceVersion,
	}
}
