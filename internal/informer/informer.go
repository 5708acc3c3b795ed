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
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// ErrNotSynced is the health of an informer that hasn't read everything yet.
var ErrNotSynced = errors.New("not read yet")

var errStarted = errors.New("the informer has been started")

// Options say what an Informer keeps.
type Options[T metav1.Object] struct {
	// Resource is the plural name in messages, such as "secrets".
	Resource string
	// Namespaces are those that are read; the empty string means all of them.
	Namespaces []string
	// Client makes the list and watch calls in a namespace.
	Client func(namespace string) ListWatcher
	// FieldSelector and LabelSelector limit what the API server sends.
	FieldSelector, LabelSelector string
	// Type is an empty object of the kind that the API server sends.
	Type runtime.Object
	// Reduce makes what is kept of an object. It must not keep a reference to what it drops.
	Reduce func(runtime.Object) T
	// Indexes make the values by which ByIndex finds an object, without the namespace.
	Indexes map[string]func(T) []string
	// Clock tells whether a watch ended before its time. Default: the real one.
	Clock clock.PassiveClock
}

// ListWatcher makes the calls of one resource in one namespace.
type ListWatcher struct {
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Client is the client that makes them; the reflector asks it whether it can stream lists.
	Client any
}

// Informer keeps reduced copies of one kind.
type Informer[T metav1.Object] struct {
	resource string
	kind     string
	clock    clock.PassiveClock
	shards   map[string]*shard[T]

	mu      sync.RWMutex
	written map[string]T

	started     atomic.Bool
	onStep      []func(step Step, before, after T)
	onState     []func()
	onReconnect []func(Reconnect)
}

// shard is the part of one namespace, or of all.
type shard[T metav1.Object] struct {
	namespace  string
	store      cache.Indexer
	controller cache.Controller
	link       link

	mu  sync.Mutex
	err error
}

// New makes an Informer that does nothing until it is started. It fails without a namespace.
func New[T metav1.Object](opts Options[T]) (*Informer[T], error) {
	if len(opts.Namespaces) == 0 {
		return nil, fmt.Errorf("making the informer of %s: there is no namespace to read", opts.Resource)
	}
	i := &Informer[T]{
		resource: opts.Resource,
		kind:     reflect.TypeOf(opts.Type).Elem().Name(),
		clock:    opts.Clock,
		shards:   make(map[string]*shard[T], len(opts.Namespaces)),
		written:  map[string]T{},
	}
	if i.clock == nil {
		i.clock = clock.RealClock{}
	}
	for _, namespace := range opts.Namespaces {
		i.shards[namespace] = i.newShard(namespace, opts)
	}
	return i, nil
}

func (i *Informer[T]) newShard(namespace string, opts Options[T]) *shard[T] {
	s := &shard[T]{namespace: namespace, link: link{clock: i.clock}}
	client := opts.Client(namespace)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector, o.LabelSelector = opts.FieldSelector, opts.LabelSelector
			list, err := client.List(ctx, o)
			i.record(s, err)
			if err == nil {
				s.link.listed()
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector, o.LabelSelector = opts.FieldSelector, opts.LabelSelector
			began := i.clock.Now()
			w, err := client.Watch(ctx, o)
			i.record(s, err)
			if err != nil {
				return nil, err
			}
			return i.opened(s, w, began, &o), nil
		},
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	for name, values := range opts.Indexes {
		indexers[name] = namespaced(values)
	}
	s.store = cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	s.controller = cache.New(&cache.Config{
		Queue: cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
			Name:                  opts.Resource,
			KeyFunction:           cache.MetaNamespaceKeyFunc,
			Transformer:           reducer(opts.Reduce),
			AtomicEvents:          true, // a list comes as one
			UnlockWhileProcessing: true,
			EmitDeltaTypeBookmark: true,
		}),
		ListerWatcher:     cache.ToListWatcherWithWatchListSemantics(lw, client.Client),
		ObjectType:        opts.Type,
		ObjectDescription: opts.Resource,
		Process:           func(in any, _ bool) error { return i.process(s, in) },
	})
	return s
}

// reducer makes the informer's transform. With WatchList, the objects of the first list pass it
// twice, in the reflector's temporary store and on their way into the cache: what is reduced
// already must stay as it is, or its digests would be digested.
func reducer[T metav1.Object](reduce func(runtime.Object) T) cache.TransformFunc {
	return func(in any) (any, error) {
		switch object := in.(type) {
		case T:
			return object, nil
		case runtime.Object:
			return reduce(object), nil
		default:
			return in, nil // a tombstone: its object has been reduced
		}
	}
}

func namespaced[T metav1.Object](values func(T) []string) cache.IndexFunc {
	return func(in any) ([]string, error) {
		object, ok := in.(T)
		if !ok {
			return nil, fmt.Errorf("unexpected %T in the index", in)
		}
		found := values(object)
		keys := make([]string, len(found))
		for n, value := range found {
			keys[n] = indexKey(object.GetNamespace(), value)
		}
		return keys, nil
	}
}

func indexKey(namespace, value string) string {
	return namespace + "/" + value
}

// OnChange calls the function for each object that appears (before is the zero T), changes, or goes
// (after is the zero T), after the Informer shows it, and in the order in which it happened. The next change
// waits for the function. It must be called before Run.
func (i *Informer[T]) OnChange(call func(before, after T)) error {
	return i.OnStep(func(_ Step, before, after T) {
		var none T
		if any(before) != any(none) || any(after) != any(none) {
			call(before, after)
		}
	})
}

// OnStep calls the function for each step that is made, with what changed as OnChange has it: both are the zero T
// if that is nothing. It must be called before Run.
func (i *Informer[T]) OnStep(call func(step Step, before, after T)) error {
	if i.started.Load() {
		return fmt.Errorf("watching %s: %w", i.resource, errStarted)
	}
	i.onStep = append(i.onStep, call)
	return nil
}

// OnState calls the function each time when Health may have changed. It must be called before Run.
func (i *Informer[T]) OnState(call func()) {
	i.onState = append(i.onState, call)
}

// OnReconnect calls the function each time when a watch that had broken off has been made again (F11). It must be
// called before Run.
func (i *Informer[T]) OnReconnect(call func(Reconnect)) {
	i.onReconnect = append(i.onReconnect, call)
}

// Kind is the kind of the objects that the API server sends, such as ConfigMap.
func (i *Informer[T]) Kind() string {
	return i.kind
}

// Run runs until the context is done.
func (i *Informer[T]) Run(ctx context.Context) {
	var running sync.WaitGroup
	i.started.Store(true)
	for _, s := range i.shards {
		running.Go(func() { s.controller.RunWithContext(ctx) })
		running.Go(func() {
			select {
			case <-s.controller.HasSyncedChecker().Done():
				i.stateChanged()
			case <-ctx.Done():
			}
		})
	}
	running.Wait()
}

// record keeps the outcome of a call: an informer whose last call failed can't be trusted.
func (i *Informer[T]) record(s *shard[T], err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if err != nil {
		s.link.failed(err)
	}
	s.mu.Lock()
	changed := (s.err == nil) != (err == nil) || apierrors.ReasonForError(s.err) != apierrors.ReasonForError(err)
	s.err = err
	s.mu.Unlock()
	if changed {
		i.stateChanged()
	}
}

// opened takes in a watch that was made.
func (i *Informer[T]) opened(s *shard[T], w watch.Interface, began time.Time, o *metav1.ListOptions) watch.Interface {
	w, again := s.link.opened(w, began, o)
	if again == nil {
		return w
	}
	again.Kind, again.Namespace = i.kind, s.namespace
	for _, call := range i.onReconnect {
		call(*again)
	}
	return w
}

func (i *Informer[T]) stateChanged() {
	for _, call := range i.onState {
		call()
	}
}

// Health is nil while the objects of the namespace are all known and fresh. Otherwise it is the
// error of the last call, or ErrNotSynced. An empty namespace asks for all.
func (i *Informer[T]) Health(namespace string) error {
	if namespace == "" {
		errs := make([]error, 0, len(i.shards))
		for _, s := range i.shards {
			errs = append(errs, s.health(i.resource))
		}
		return errors.Join(errs...)
	}
	s := i.shard(namespace)
	if s == nil {
		return fmt.Errorf("%s: namespace %s is not watched by this operator", i.resource, namespace)
	}
	return s.health(i.resource)
}

func (s *shard[T]) health(resource string) error {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", resource, err)
	}
	if !cache.IsDone(s.controller.HasSyncedChecker()) { // takes no lock, which a change that is told may hold
		return fmt.Errorf("%s: %w", resource, ErrNotSynced)
	}
	return nil
}

// Settled tells whether every namespace has been read, or has turned out not to be readable.
func (i *Informer[T]) Settled() bool {
	for _, s := range i.shards {
		if errors.Is(s.health(i.resource), ErrNotSynced) {
			return false
		}
	}
	return true
}

func (i *Informer[T]) shard(namespace string) *shard[T] {
	if s, ok := i.shards[namespace]; ok {
		return s
	}
	return i.shards[metav1.NamespaceAll]
}

// Get is the object of that name, if there is one.
func (i *Informer[T]) Get(namespace, name string) (object T, found bool) {
	object, found = i.stored(namespace, name)
	if !found {
		return object, false
	}
	return i.newest(object), true
}

// stored is what the watch last brought.
func (i *Informer[T]) stored(namespace, name string) (object T, found bool) {
	s := i.shard(namespace)
	if s == nil {
		return object, false
	}
	item, found, err := s.store.GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return object, false
	}
	object, found = item.(T)
	return object, found
}

// List is all objects of the namespace, in no order. An empty namespace asks for all.
func (i *Informer[T]) List(namespace string) []T {
	if namespace != metav1.NamespaceAll {
		return i.list(namespace, cache.NamespaceIndex, namespace)
	}
	var objects []T
	for _, s := range i.shards {
		objects = append(objects, i.newestOf(s.store.List())...)
	}
	return objects
}

// ByIndex is all objects of the namespace with that value in the index, in no order.
func (i *Informer[T]) ByIndex(namespace, index, value string) []T {
	return i.list(namespace, index, indexKey(namespace, value))
}

func (i *Informer[T]) list(namespace, index, key string) []T {
	s := i.shard(namespace)
	if s == nil {
		return nil
	}
	items, err := s.store.ByIndex(index, key)
	if err != nil {
		return nil // the index is not there: a mistake that every test of the caller finds
	}
	return i.newestOf(items)
}

func (i *Informer[T]) newestOf(items []any) []T {
	objects := make([]T, 0, len(items))
	for _, item := range items {
		if object, ok := item.(T); ok {
			objects = append(objects, i.newest(object))
		}
	}
	return objects
}

// Wrote tells the Informer what a write of the operator's own made of an object, so that the next
// Get sees it, even if the watch hasn't brought it yet.
func (i *Informer[T]) Wrote(object T) {
	key := object.GetNamespace() + "/" + object.GetName()
	// The watch may bring the write while this runs. It fills the cache before it calls forget or drop,
	// which wait for the lock: so either the cache shows it here, or they clear what is kept here.
	i.mu.Lock()
	defer i.mu.Unlock()
	current, found := i.stored(object.GetNamespace(), object.GetName())
	if !found || current.GetUID() != object.GetUID() || !newer(object, current) {
		return
	}
	if written, ok := i.written[key]; ok && written.GetUID() == object.GetUID() && newer(written, object) {
		return
	}
	i.written[key] = object
}

// newest is the object, or what the operator's own write made of it since.
func (i *Informer[T]) newest(object T) T {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if len(i.written) == 0 {
		return object
	}
	written, ok := i.written[object.GetNamespace()+"/"+object.GetName()]
	if ok && written.GetUID() == object.GetUID() && newer(written, object) {
		return written
	}
	return object
}

// forget drops a write that the watch has brought.
func (i *Informer[T]) forget(object T) {
	key := object.GetNamespace() + "/" + object.GetName()
	i.mu.Lock()
	defer i.mu.Unlock()
	if written, ok := i.written[key]; ok && (written.GetUID() != object.GetUID() || !newer(written, object)) {
		delete(i.written, key)
	}
}

// drop drops a write to an object that is gone.
func (i *Informer[T]) drop(object T) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.written, object.GetNamespace()+"/"+object.GetName())
}

func newer[T metav1.Object](a, b T) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
