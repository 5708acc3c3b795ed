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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/selection"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/subscriber"
	"github.com/ktechhub/configwatch/internal/turns"
	"github.com/ktechhub/configwatch/internal/workload"
)

// +kubebuilder:rbac:groups=configwatch.ktechhub.io,resources=configwatches,verbs=list;watch
// +kubebuilder:rbac:groups=configwatch.ktechhub.io,resources=configwatches/status,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// maxParallelCalls bounds the API calls of one pass that are under way at once.
	maxParallelCalls = 16
	// readTimeout bounds the reading of one pod template: what can't be read holds up no restart.
	readTimeout = 5 * time.Second
	// longestWait is how long it takes at most until the clock is looked at again. The queue counts time that has
	// passed, so that it misses a deadline if the clock is set forward, or the machine was suspended (E14).
	longestWait = 10 * time.Minute
)

// ConfigWatchReconciler reconciles ConfigWatches.
type ConfigWatchReconciler struct {
	Client    client.Client
	Sources   *source.Cache
	Workloads *workload.Cache
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	// Teller tells subscribers.
	Teller subscriber.Teller

	subscribers *subscriber.Dispatcher

	// wakeAfter has a ConfigWatch looked at again after some time, at the latest.
	wakeAfter  func(types.NamespacedName, time.Duration)
	turns      *turns.Turns
	restoring  sync.Once // of the turns
	metrics    *metrics
	unrecorded unrecorded
	conflicts  conflicts
}

// Reconcile makes one pass over a ConfigWatch: get, observe, plan, act, report.
func (r *ConfigWatchReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cw := &v1alpha1.ConfigWatch{}
	if err := r.Client.Get(ctx, req.NamespacedName, cw); err != nil {
		return ctrl.Result{}, r.gone(req, err)
	}
	if !cw.DeletionTimestamp.IsZero() {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	r.restoring.Do(func() { r.restoreTurns(ctx) })
	before := r.unrecorded.latest(cw)
	cw.Status = before.status
	now := r.Clock.Now().Truncate(time.Microsecond) // as the API server keeps it
	observation, err := selection.Observe(cw, r.Sources, r.Workloads, now)
	if err != nil {
		return r.waitForCaches(ctx, cw, err)
	}
	return r.carryOut(ctx, cw, r.plan(cw, observation, now), before)
}

// carryOut makes the restarts that the operator as a whole may make now (E18), and reports. Whatever comes of
// it, be it a panic, it gives back the turns that it took and has no use for.
func (r *ConfigWatchReconciler) carryOut(
	ctx context.Context, cw *v1alpha1.ConfigWatch, decision *plan.Decision, before conclusion,
) (result ctrl.Result, err error) {
	key := client.ObjectKeyFromObject(cw)
	end := r.turns.Withdraw
	defer func() { end(key, decision.Rolling()) }()
	decision.Limit(r.turns.Take(key, decision.Rolling(), decision.Wants()))
	outcomes := r.act(ctx, key, decision.Restarts)
	status, more := decision.Conclude(outcomes, r.read(ctx, decision.Waiting()))
	before.status, before.news = status, append(slices.Clone(before.news), more...)
	r.unrecorded.keep(cw, before)
	failed := errors.Join(outcomes...)
	if len(outcomes) > 0 && failed == nil {
		end = r.turns.Report
		return recordLater(), nil
	}
	reported := r.report(ctx, cw)
	if reported == nil {
		r.subscribers.Deliver(key, decision.Deliveries) //nolint:contextcheck // attempts outlive the pass
	}
	if failed == nil && apierrors.IsConflict(reported) {
		return r.afterConflict(ctx, key, reported, decision.LookAgain), nil
	}
	if err := cmp.Or(reported, failed); err != nil {
		if at := decision.LookAgain; !at.IsZero() { // beside an error the queue heeds no result (E11)
			r.wakeAfter(key, r.waitUntil(at))
		}
		return ctrl.Result{}, err
	}
	end = r.turns.Report
	return r.lookAgain(decision.LookAgain), nil
}

// plan decides which restarts are due.
func (r *ConfigWatchReconciler) plan(cw *v1alpha1.ConfigWatch, observation plan.Observation, now time.Time) *plan.Decision {
	attempts := r.subscribers.Attempts(client.ObjectKeyFromObject(cw))
	r.metrics.attempted(attempts)
	return plan.Decide(plan.Input{
		Name:               cw.Name,
		UID:                string(cw.UID),
		Generation:         cw.Generation,
		Created:            cw.CreationTimestamp.Time,
		Mode:               cw.Spec.Mode,
		Rollout:            cw.Spec.Rollout,
		Approved:           cw.Annotations[v1alpha1.ApproveAnnotation],
		RestartRequestedAt: cw.Annotations[v1alpha1.RestartRequestedAtAnnotation],
		Attempts:           attempts,
		Recorded:           &cw.Status,
		Observed:           observation,
		Now:                now,
	})
}

// restoreTurns counts the rollouts that were begun before this process led.
func (r *ConfigWatchReconciler) restoreTurns(ctx context.Context) {
	list := &v1alpha1.ConfigWatchList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Failed to count the rollouts that were begun before")
		return
	}
	rolling := make(map[types.NamespacedName]int, len(list.Items))
	for i := range list.Items {
		cw := &list.Items[i]
		rolling[client.ObjectKeyFromObject(cw)] = plan.Rolling(&cw.Status) + r.unrecordedRollouts(cw)
	}
	r.turns.Restore(rolling)
}

// unrecordedRollouts is how many rollouts were begun by a pass whose record was lost: until its ConfigWatch has
// another pass, only the marks tell (E9).
func (r *ConfigWatchReconciler) unrecordedRollouts(cw *v1alpha1.ConfigWatch) int {
	n := 0
	for i := range cw.Status.Targets {
		t := &cw.Status.Targets[i]
		if plan.RollingUnrecorded(t, r.Workloads.Get(cw.Namespace, t.Kind, t.Name), cw.Name) {
			n++
		}
	}
	return n
}

// gone ends the pass of a ConfigWatch that can't be got. Nothing has to be cleaned up after one that
// was deleted: what it restarted stays restarted.
func (r *ConfigWatchReconciler) gone(req ctrl.Request, err error) error {
	if apierrors.IsNotFound(err) {
		r.forget(req.NamespacedName)
		return nil
	}
	return fmt.Errorf("getting the ConfigWatch: %w", err)
}

func (r *ConfigWatchReconciler) forget(cw types.NamespacedName) {
	r.unrecorded.forget(cw)
	r.conflicts.forget(cw)
	r.turns.Forget(cw)
	r.subscribers.Attempts(cw) // which nobody will ask for
	r.metrics.forget(cw)
}

// recordLater ends a pass whose restarts were all made. The next pass records them. It comes after every
// restart that is due, of this ConfigWatch and of others: when one change concerns many workloads, none
// waits for the records of the others.
func recordLater() ctrl.Result {
	return ctrl.Result{RequeueAfter: time.Nanosecond, Priority: new(forRecords)}
}

// waitForCaches ends a pass that can't be made yet. The caches wake every ConfigWatch when they can be
// read again.
func (r *ConfigWatchReconciler) waitForCaches(ctx context.Context, cw *v1alpha1.ConfigWatch, err error) (ctrl.Result, error) {
	r.turns.Withdraw(client.ObjectKeyFromObject(cw), plan.Rolling(&cw.Status))
	log.FromContext(ctx).V(1).Info("Waiting until sources and workloads can be read", "reason", err.Error())
	return ctrl.Result{}, nil
}

// afterConflict ends a pass whose status could not be written, as the cache is behind. That is no failure, and yet the
// pass is made again as after one: while the watch of ConfigWatches is down, all that change meet conflicts.
func (r *ConfigWatchReconciler) afterConflict(ctx context.Context, cw types.NamespacedName, err error, lookAgain time.Time) ctrl.Result {
	log.FromContext(ctx).V(1).Info("The ConfigWatch has changed meanwhile; its status is written later", "reason", err.Error())
	result := ctrl.Result{RequeueAfter: r.conflicts.next(cw), Priority: new(forRecords)}
	if sooner := r.lookAgain(lookAgain); sooner.RequeueAfter > 0 && sooner.RequeueAfter < result.RequeueAfter {
		return sooner
	}
	return result
}

func (r *ConfigWatchReconciler) lookAgain(at time.Time) ctrl.Result {
	if at.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: r.waitUntil(at), Priority: new(forRestarts)}
}

// waitUntil is how long the queue has to wait until then.
func (r *ConfigWatchReconciler) waitUntil(at time.Time) time.Duration {
	return min(max(at.Sub(r.Clock.Now()), time.Millisecond), longestWait)
}

// act makes the restarts, independently of each other (E11). The outcome of one whose sources can't be
// confirmed is the reason for that.
func (r *ConfigWatchReconciler) act(ctx context.Context, cw types.NamespacedName, restarts []plan.Restart) []error {
	outcomes := r.confirm(ctx, cw.Namespace, restarts)
	each(len(restarts), func(i int) {
		if outcomes[i] == nil {
			outcomes[i] = r.restart(ctx, cw.Name, restarts[i])
			r.metrics.restarting(restarts[i].Workload.Kind, outcomes[i])
		}
	})
	return outcomes
}

// confirm makes sure that the caches aren't behind, where nothing proves it: after a start, and after
// another replica has led. A restart for content that is no longer there would be one too many (E9).
func (r *ConfigWatchReconciler) confirm(ctx context.Context, namespace string, restarts []plan.Restart) []error {
	asked := map[source.Version]error{}
	outcomes := make([]error, len(restarts))
	for i := range restarts {
		for _, version := range restarts[i].Unproven {
			err, known := asked[version]
			if !known {
				err = r.Sources.Confirm(ctx, namespace, version)
				asked[version] = err
			}
			outcomes[i] = errors.Join(outcomes[i], err)
		}
	}
	return outcomes
}

// restart makes one restart. A panic is an error of it, and no end of the process.
func (r *ConfigWatchReconciler) restart(ctx context.Context, name string, restart plan.Restart) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("restarting %s: %w", restart.Workload.Ref(), fromPanic(ctx, panicked))
		}
	}()
	return r.Workloads.Restart(ctx, restart.Workload, name, restart.Mark)
}

// read reads the pod templates of workloads that begin to wait for a restart, past the cache. What can't be
// read is empty, and read in a later pass.
func (r *ConfigWatchReconciler) read(ctx context.Context, waiting []*workload.Workload) []workload.Template {
	templates := make([]workload.Template, len(waiting))
	each(len(waiting), func(i int) {
		template, err := r.readOne(ctx, waiting[i])
		if err != nil {
			log.FromContext(ctx).V(1).Info("Could not read a pod template; it is read again", "reason", err.Error())
			return
		}
		templates[i] = template
	})
	return templates
}

func (r *ConfigWatchReconciler) readOne(ctx context.Context, w *workload.Workload) (template workload.Template, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fromPanic(ctx, panicked)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return r.Workloads.Read(ctx, w)
}

// fromPanic is a panic as an error.
func fromPanic(ctx context.Context, panicked any) error {
	log.FromContext(ctx).Info("Recovered from a panic", "panic", panicked, "stack", string(debug.Stack()))
	return fmt.Errorf("panic: %v", panicked)
}

// each calls the function for each number below n, several at once.
func each(n int, call func(int)) {
	places := make(chan struct{}, maxParallelCalls)
	var running sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			call(i)
		})
	}
	running.Wait()
}

// report writes the status if it differs, and then tells the news (E28).
func (r *ConfigWatchReconciler) report(ctx context.Context, cw *v1alpha1.ConfigWatch) error {
	c := r.unrecorded.get(cw)
	if !equality.Semantic.DeepEqual(c.written, c.status) {
		cw.Status = c.status
		if err := r.Client.Status().Update(ctx, cw, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
			return errors.Join(fmt.Errorf("writing the status: %w", err), r.unrecorded.failed(cw))
		}
	}
	r.unrecorded.forget(client.ObjectKeyFromObject(cw))
	r.conflicts.forget(client.ObjectKeyFromObject(cw))
	r.metrics.observe(client.ObjectKeyFromObject(cw), &c.written, &c.status, r.Clock.Now())
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
