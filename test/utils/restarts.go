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
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// Restarts are the restarts of one workload, seen by a watch, which misses none: each is another value
// of a restart annotation on its pod template.
type Restarts struct {
	watch watch.Interface
	seen  map[string]bool

	mu    sync.Mutex
	marks []string
}

// WatchRestarts watches the restarts of a workload from now on, until the context is done.
func WatchRestarts(ctx context.Context, c client.WithWatch, kind, namespace, name string) (*Restarts, error) {
	object := &unstructured.Unstructured{}
	group := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
	object.SetGroupVersionKind(group)
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return nil, fmt.Errorf("reading the workload to watch: %w", err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(group.GroupVersion().WithKind(kind + "List"))
	w, err := c.Watch(ctx, list, client.InNamespace(namespace), client.MatchingFields{metav1.ObjectNameField: name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: object.GetResourceVersion()}})
	if err != nil {
		return nil, fmt.Errorf("watching restarts: %w", err)
	}
	r := &Restarts{watch: w, seen: map[string]bool{}}
	for _, mark := range marksOf(object) {
		r.seen[mark] = true
	}
	go r.run()
	return r, nil
}

func (r *Restarts) run() {
	for event := range r.watch.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		for _, mark := range marksOf(object) {
			if r.seen[mark] {
				continue
			}
			r.seen[mark] = true
			r.mu.Lock()
			r.marks = append(r.marks, mark)
			r.mu.Unlock()
		}
	}
}

// marksOf are the restart annotations of a pod template, each as <name of the ConfigWatch>=<value>.
func marksOf(object *unstructured.Unstructured) []string {
	annotations, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "annotations")
	var marks []string
	for key, value := range annotations {
		if name, ok := strings.CutPrefix(key, v1alpha1.RestartAnnotationPrefix); ok {
			marks = append(marks, name+"="+value)
		}
	}
	slices.Sort(marks)
	return marks
}

// Marks are the restarts so far, each as <name of the ConfigWatch>=<value of the annotation>.
func (r *Restarts) Marks() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.marks)
}

// Count is how many restarts there were so far.
func (r *Restarts) Count() int {
	return len(r.Marks())
}
