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

package informer

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// server stands for the API server, as far as one resource of one namespace goes.
type server struct {
	mu       sync.Mutex
	revision int
	objects  map[string]*corev1.ConfigMap
	history  []event
	watches  []*watch.RaceFreeFakeWatcher

	err       error // of every call
	lists     int
	calls     int
	streamed  int
	selectors []string
	// noStreams refuses to stream lists.
	noStreams bool
}

type event struct {
	watch.Event
	revision int
}

func newServer() *server {
	return &server{objects: map[string]*corev1.ConfigMap{}}
}

// IsWatchListSemanticsUnSupported is what the reflector asks a client.
func (s *server) IsWatchListSemanticsUnSupported() bool {
	return s.noStreams
}

func (s *server) client() ListWatcher {
	return ListWatcher{Client: s, List: s.list, Watch: s.watch}
}

func (s *server) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.selectors = append(s.selectors, o.FieldSelector)
	if s.err != nil {
		return nil, s.err
	}
	s.lists++
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.revision)}}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		list.Items = append(list.Items, *s.objects[name].DeepCopy())
	}
	return list, nil
}

func (s *server) watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.selectors = append(s.selectors, o.FieldSelector)
	if s.err != nil {
		return nil, s.err
	}
	w := watch.NewRaceFreeFake()
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		s.streamed++
		for _, name := range slices.Sorted(maps.Keys(s.objects)) {
			w.Add(s.objects[name].DeepCopy())
		}
		w.Action(watch.Bookmark, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.revision),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	} else {
		from, _ := strconv.Atoi(o.ResourceVersion)
		for _, e := range s.history {
			if e.revision > from {
				w.Action(e.Type, e.Object.DeepCopyObject())
			}
		}
	}
	s.watches = append(s.watches, w)
	return w, nil
}

// put creates or updates an object, and tells the watches.
func (s *server) put(name string, uid types.UID, value string, labels map[string]string) *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	_, there := s.objects[name]
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: uid, Labels: labels, ResourceVersion: strconv.Itoa(s.revision),
		},
		Data: map[string]string{"value": value},
	}
	s.objects[name] = object
	change := watch.Added
	if there {
		change = watch.Modified
	}
	s.tell(change, object)
	return object
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	object := s.objects[name].DeepCopy()
	object.ResourceVersion = strconv.Itoa(s.revision)
	delete(s.objects, name)
	s.tell(watch.Deleted, object)
}

func (s *server) tell(change watch.EventType, object runtime.Object) {
	s.history = append(s.history, event{watch.Event{Type: change, Object: object}, s.revision})
	for _, w := range s.watches {
		if !w.IsStopped() {
			w.Action(change, object.DeepCopyObject())
		}
	}
}

// cut ends all watches, and forgets what happened while nobody watched: whoever comes back must list.
func (s *server) cut(meanwhile func()) {
	s.mu.Lock()
	watches := s.watches
	s.watches = nil
	s.mu.Unlock()
	meanwhile()
	s.mu.Lock()
	s.history = nil
	s.mu.Unlock()
	expired := apierrors.NewResourceExpired("too old resource version").Status()
	for _, w := range watches {
		w.Action(watch.Error, &expired)
	}
}

// end ends all watches, without a word.
func (s *server) end() {
	s.mu.Lock()
	watches := s.watches
	s.watches = nil
	s.mu.Unlock()
	for _, w := range watches {
		w.Stop()
	}
}

func (s *server) fail(err error) {
	s.mu.Lock()
	s.err = err
	watches := s.watches
	s.mu.Unlock()
	if err == nil {
		return
	}
	for _, w := range watches {
		w.Stop()
	}
}

func (s *server) count(what *int) func() int {
	return func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return *what
	}
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
}

// kept is the reduced copy of a ConfigMap.
type kept struct {
	metav1.ObjectMeta
	// Digest stands for what the value is reduced to: it differs from the value.
	Digest string
}

func reduceTest(in runtime.Object) *kept {
	object := in.(*corev1.ConfigMap)
	return &kept{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: object.Name, UID: object.UID,
			ResourceVersion: object.ResourceVersion, Labels: object.Labels,
		},
		Digest: "digest of " + object.Data["value"],
	}
}

// change is what OnChange told.
type change struct {
	Before, After *kept
}

// changes keeps what OnChange told.
type changes struct {
	mu   sync.Mutex
	told []change
}

func (c *changes) add(before, after *kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, change{before, after})
}

func (c *changes) all() []change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told)
}

func (c *changes) last() change {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.told) == 0 {
		return change{}
	}
	return c.told[len(c.told)-1]
}

// newInformer makes an Informer of the namespaces' servers that isn't started.
func newInformer(t *testing.T, servers map[string]*server, settings ...func(*Options[*kept])) (*Informer[*kept], *changes) {
	t.Helper()
	g := NewWithT(t)
	options := Options[*kept]{
		Resource:      "configmaps",
		Namespaces:    slices.Collect(maps.Keys(servers)),
		FieldSelector: "type!=a",
		Type:          &corev1.ConfigMap{},
		Reduce:        reduceTest,
		Indexes:       map[string]func(*kept) []string{"digest": func(k *kept) []string { return []string{k.Digest} }},
		Client:        func(namespace string) ListWatcher { return servers[namespace].client() },
	}
	for _, set := range settings {
		set(&options)
	}
	i, err := New(options)
	g.Expect(err).NotTo(HaveOccurred())
	told := &changes{}
	g.Expect(i.OnChange(told.add)).To(Succeed())
	return i, told
}

// start runs the Informer until the test ends.
func start[T metav1.Object](t *testing.T, i *Informer[T]) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Group{i}.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the informer ended: %v", err)
		}
	})
}

// started is an Informer of all namespaces that has read everything.
func started(t *testing.T, s *server) (*Informer[*kept], *changes) {
	t.Helper()
	i, told := newInformer(t, map[string]*server{metav1.NamespaceAll: s})
	start(t, i)
	NewWithT(t).Eventually(func() error { return i.Health("shop") }).Should(Succeed())
	return i, told
}
