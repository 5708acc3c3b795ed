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

package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// observer sees the marks on the pod templates of a namespace change.
type observer struct {
	mu       sync.Mutex
	changed  sync.Cond
	marks    map[string]string
	restarts map[string]int
}

func observe(ctx context.Context, c *cluster, namespace string) (*observer, error) {
	o := &observer{marks: map[string]string{}, restarts: map[string]int{}}
	o.changed.L = &o.mu
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0, informers.WithNamespace(namespace),
		informers.WithTransform(func(object any) (any, error) {
			if d, ok := object.(*appsv1.Deployment); ok {
				d.ManagedFields = nil
			}
			return object, nil
		}))
	registration, err := factory.Apps().V1().Deployments().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { o.see(object, false) },
		UpdateFunc: func(_, object any) { o.see(object, true) },
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil, fmt.Errorf("watching Deployments: %w", ctx.Err())
	}
	return o, nil
}

func (o *observer) see(object any, isNews bool) {
	d, ok := object.(*appsv1.Deployment)
	if !ok {
		return
	}
	var marked strings.Builder
	for key, value := range d.Spec.Template.Annotations {
		if strings.HasPrefix(key, v1alpha1.RestartAnnotationPrefix) {
			marked.WriteString(value)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if isNews && o.marks[d.Name] != marked.String() {
		o.restarts[d.Name]++
	}
	o.marks[d.Name] = marked.String()
	o.changed.Broadcast()
}

// count is how often each Deployment has been restarted so far.
func (o *observer) count() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.restarts)
}

// await waits until each of the Deployments has been restarted since the count was taken.
func (o *observer) await(since map[string]int, names []string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	timer := time.AfterFunc(patience, o.changed.Broadcast)
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		missing := 0
		for _, name := range names {
			if o.restarts[name] == since[name] {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d Deployments were not restarted within %s", missing, len(names), patience)
		}
		o.changed.Wait()
	}
}

// compare is how many of the restarts expected since the count was taken are missing, and how many are
// too many.
func (o *observer) compare(since, expected map[string]int) (missed, doubled int) {
	now := o.count()
	for name, n := range now {
		switch got := n - since[name]; {
		case got < expected[name]:
			missed += expected[name] - got
		case got > expected[name]:
			doubled += got - expected[name]
		}
	}
	for name, n := range expected {
		if _, ok := now[name]; !ok {
			missed += n
		}
	}
	return missed, doubled
}

// quiet waits until every ConfigWatch has a status of its present spec, and none owes a restart.
func (c *cluster) quiet(ctx context.Context) error {
	const interval, patience = 100 * time.Millisecond, 2 * time.Minute
	deadline := time.Now().Add(patience)
	for {
		list := &v1alpha1.ConfigWatchList{}
		if err := c.client.List(ctx, list); err != nil {
			return err
		}
		busy := 0
		for i := range list.Items {
			if !atRest(&list.Items[i]) {
				busy++
			}
		}
		if busy == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d ConfigWatches are not at rest after %s", busy, patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
}

func atRest(cw *v1alpha1.ConfigWatch) bool {
	if cw.Status.ObservedGeneration != cw.Generation || len(cw.Status.Targets) == 0 {
		return false
	}
	for i := range cw.Status.Targets {
		if cw.Status.Targets[i].State == v1alpha1.TargetPending {
			return false
		}
	}
	return true
}
