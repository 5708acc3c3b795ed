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
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// namespace is that of the story, and web the name of its Deployment and of the ConfigWatch of that.
const (
	namespace = "default"
	web       = "web"
	replicas  = 2
)

// world is what the watches have brought so far. Nothing else is believed.
type world struct {
	screen *screen
	// feed brings what happens, each to be called in its turn.
	feed chan func() error
	// now is when what is being told arrived, and cause when what led to it did.
	now, cause time.Time

	web      *appsv1.Deployment
	pods     map[string]*corev1.Pod // of web
	ready    map[string]bool        // ConfigWatches by name
	events   map[string]int         // of ConfigWatch web, by reason
	restarts map[string]bool        // of any workload, each as <workload>: <annotation>
	changes  map[string]int         // of ConfigMaps and Secrets by name
}

// enough is how much may happen while a command runs, without being kept from arriving.
const enough = 10000

func newWorld(s *screen) *world {
	return &world{
		screen: s, feed: make(chan func() error, enough),
		pods: map[string]*corev1.Pod{}, ready: map[string]bool{}, events: map[string]int{}, restarts: map[string]bool{},
		changes: map[string]int{},
	}
}

// watch begins to observe, until the context is done.
func (w *world) watch(ctx context.Context, c client.WithWatch) error {
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.DaemonSetList{}, &corev1.PodList{}, &eventsv1.EventList{}, &v1alpha1.ConfigWatchList{},
		&corev1.ConfigMapList{}, &corev1.SecretList{},
	} {
		watching, err := c.Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			return fmt.Errorf("watching the namespace %s: %w", namespace, err)
		}
		go w.pass(ctx, watching)
	}
	return nil
}

func (w *world) pass(ctx context.Context, watching watch.Interface) {
	defer watching.Stop()
	for event := range watching.ResultChan() {
		arrived := time.Now()
		select {
		case w.feed <- func() error { w.now = arrived; return w.take(event) }:
		case <-ctx.Done():
			return
		}
	}
}

// take notes what a watch brought, and tells it if it is news.
func (w *world) take(event watch.Event) error {
	switch object := event.Object.(type) {
	case *appsv1.Deployment:
		if object.Name == web {
			w.web = object
		}
		w.takeTemplate("Deployment "+object.Name, &object.Spec.Template)
	case *appsv1.DaemonSet:
		w.takeTemplate("DaemonSet "+object.Name, &object.Spec.Template)
	case *corev1.Pod:
		w.takePod(event.Type, object)
	case *eventsv1.Event:
		w.takeEvent(object)
	case *v1alpha1.ConfigWatch:
		w.takeConfigWatch(object)
	case *corev1.ConfigMap, *corev1.Secret:
		w.takeSource(event)
	case runtime.Object:
		return fmt.Errorf("a watch ended: %v", object)
	}
	return nil
}

func (w *world) takeTemplate(workload string, template *corev1.PodTemplateSpec) {
	for key, value := range template.Annotations {
		restart := workload + ": " + key + ": " + value
		if !strings.HasPrefix(key, v1alpha1.RestartAnnotationPrefix) || w.restarts[restart] {
			continue
		}
		w.restarts[restart] = true
		w.see(fmt.Sprintf("%s is restarted: its pod template now has %s: %s", workload, key, value))
	}
}

func (w *world) takePod(kind watch.EventType, pod *corev1.Pod) {
	if pod.Labels["app"] != web {
		return
	}
	if kind == watch.Deleted {
		delete(w.pods, pod.Name)
		return
	}
	w.pods[pod.Name] = pod
}

func (w *world) takeEvent(event *eventsv1.Event) {
	if event.Regarding.Kind != "ConfigWatch" || event.Regarding.Name != web {
		return
	}
	w.events[event.Reason]++
	w.see(fmt.Sprintf("Event %s: %s", w.screen.styled(bold, event.Reason), event.Note))
}

// takeSource notes that a ConfigMap or Secret was changed. What is seen then counts from here.
func (w *world) takeSource(event watch.Event) {
	source, ok := event.Object.(client.Object)
	if ok && event.Type == watch.Modified {
		w.changes[source.GetName()]++
		w.cause = w.now
	}
}

func (w *world) takeConfigWatch(cw *v1alpha1.ConfigWatch) {
	condition := meta.FindStatusCondition(cw.Status.Conditions, v1alpha1.ConditionReady)
	ready := condition != nil && condition.Status == "True" && condition.ObservedGeneration == cw.Generation
	if ready && !w.ready[cw.Name] {
		w.see(fmt.Sprintf("ConfigWatch %s is Ready: %s", cw.Name, condition.Message))
	}
	w.ready[cw.Name] = ready
}

func (w *world) see(what string) {
	w.screen.seen(w.now.Sub(w.cause), what)
}

// rolledOut tells whether each pod of web is there, ready, and made from the present template.
func (w *world) rolledOut() bool {
	if w.web == nil || w.web.Status.ObservedGeneration != w.web.Generation || len(w.pods) != replicas {
		return false
	}
	status := &w.web.Status
	return status.Replicas == replicas && status.UpdatedReplicas == replicas && status.AvailableReplicas == replicas &&
		!slices.ContainsFunc(w.podNames(), func(name string) bool { return !podReady(w.pods[name]) })
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (w *world) gone(pods []string) bool {
	return !slices.ContainsFunc(pods, func(name string) bool { return w.pods[name] != nil })
}

func (w *world) podNames() []string {
	return slices.Sorted(maps.Keys(w.pods))
}
