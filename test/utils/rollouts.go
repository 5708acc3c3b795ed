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
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rollouts are those that restarts of the Deployments of a namespace have begun, seen by a watch: it brings
// every version of every Deployment, in their order, so that what is seen to be under way at once is all that
// was.
type Rollouts struct {
	watch watch.Interface
	marks map[string][]string // restart annotations, by the name of the Deployment

	mu       sync.Mutex
	begun    []string
	underWay map[string]bool
	most     int
}

// WatchRollouts watches the rollouts of a namespace from now on, until the context is done.
func WatchRollouts(ctx context.Context, c client.WithWatch, namespace string) (*Rollouts, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("reading the Deployments to watch: %w", err)
	}
	w, err := c.Watch(ctx, list.DeepCopy(), client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		return nil, fmt.Errorf("watching rollouts: %w", err)
	}
	r := &Rollouts{watch: w, marks: map[string][]string{}, underWay: map[string]bool{}}
	for i := range list.Items {
		r.marks[list.Items[i].GetName()] = marksOf(&list.Items[i])
	}
	go r.run()
	return r, nil
}

func (r *Rollouts) run() {
	for event := range r.watch.ResultChan() {
		if object, ok := event.Object.(*unstructured.Unstructured); ok {
			r.see(object)
		}
	}
}

func (r *Rollouts) see(object *unstructured.Unstructured) {
	name, marks := object.GetName(), marksOf(object)
	restarted := slices.ContainsFunc(marks, func(mark string) bool { return !slices.Contains(r.marks[name], mark) })
	r.marks[name] = marks
	result, err := status.Compute(object)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case restarted:
		r.begun = append(r.begun, name)
		r.underWay[name] = true
		r.most = max(r.most, len(r.underWay))
	case err == nil && result.Status == status.CurrentStatus:
		delete(r.underWay, name)
	}
}

// Begun are the Deployments that were restarted, in this order, each as often as it was.
func (r *Rollouts) Begun() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.begun)
}

// UnderWay is how many rollouts are not complete, be it that they failed.
func (r *Rollouts) UnderWay() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.underWay)
}

// Most is the most that were not complete at once.
func (r *Rollouts) Most() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}
