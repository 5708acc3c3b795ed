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
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// ErrNotSynced is the health of an informer that hasn't read everything yet.
var ErrNotSynced = errors.New("not read yet")

// Options say what an Informer keeps.
type Options[T metav1.Object] struct {
	// Resource is the plural name in messages, such as "secrets".
	Resource string
	// Namespaces are those that are read; the empty string means all of them.
	Namespaces []string
	// Client makes the list and watch calls in a namespace.
	Client func(namespace string) ListWatcher
	// FieldSelector limits what the API server sends.
	FieldSelector string
	// Type is an empty object of the kind that the API server sends.
	Type runtime.Object
	// Reduce makes what is kept of an object. It must not keep a reference to what it drops.
	Reduce func(runtime.Object) T
	// Indexes make the values by which ByIndex finds an object, without the namespace.
	Indexes map[string]func(T) []string
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
	shards   map[string]*shard[T]

	mu      sync.RWMutex
	written map[string]T
	onState []func()
}

// shard is the informer of one namespace, or of all.
type shard[T metav1.Object] struct {
	informer cache.SharedIndexInformer

	mu  sync.Mutex
	err error
}

// New makes an Informer that does nothing until it is started.
func New[T metav1.Object](opts Options[T]) (*Informer[T], error) {
	i := &Informer[T]{
		resource: opts.Resource,
		shards:   make(map[string]*shard[T], len(opts.Namespaces)),
		written:  map[string]T{},
	}
	for _, namespace := range opts.Namespaces {
		s, err := i.newShard(namespace, opts)
		if err != nil {
			return nil, fmt.Errorf("making the informer of %s: %w", opts.Resource, err)
		}
		i.shards[namespace] = s
	}
	return i, nil
}

func (i *Informer[T]) newShard(namespace string, opts Options[T]) (*shard[T], error) {
	s := &shard[T]{}
	client := opts.Client(namespace)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = opts.FieldSelector
			list, err := client.List(ctx, o)
			i.record(s, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = opts.FieldSelector
			w, err := client.Watch(ctx, o)
			i.record(s, err)
			return w, err
		},
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	for name, values := range opts.Indexes {
		indexers[name] = namespaced(values)
	}
	s.informer = cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, client.Client), opts.Type,
		cache.SharedIndexInformerOptions{Indexers: indexers, ObjectDescription: opts.Resource})
	return s, s.informer.SetTransform(reducer(opts.Reduce))
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
// (after is the zero T). It must be called before Run.
func (i *Informer[T]) OnChange(call func(before, after T)) error {
	for _, s := range i.shards {
		if _, err := s.informer.AddEventHandler(i.handler(call)); err != nil {
			return fmt.Errorf("watching %s: %w", i.resource, err)
		}
	}
	return nil
}

// OnState calls the function each time when Health may have changed. It must be called before Run.
func (i *Informer[T]) OnState(call func()) {
	i.onState = append(i.onState, call)
}

func (i *Informer[T]) handler(call func(before, after T)) cache.ResourceEventHandler {
	var none T
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if after, ok := object.(T); ok {
				call(none, after)
			}
		},
		UpdateFunc: func(old, object any) {
			before, okBefore := old.(T)
			after, okAfter := object.(T)
			if okBefore && okAfter {
				i.forget(after)
				call(before, after)
			}
		},
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			if before, ok := object.(T); ok {
				i.drop(before)
				call(before, none)
			}
		},
	}
}

// Run runs until the context is done.
func (i *Informer[T]) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, s := range i.shards {
		running.Go(func() { s.informer.RunWithContext(ctx) })
		running.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced) {
				i.stateChanged()
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
	s.mu.Lock()
	changed := (s.err == nil) != (err == nil) || apierrors.ReasonForError(s.err) != apierrors.ReasonForError(err)
	s.err = err
	s.mu.Unlock()
	if changed {
		i.stateChanged()
	}
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
	if !s.informer.HasSynced() {
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
	item, found, err := s.informer.GetIndexer().GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return object, false
	}
	object, found = item.(T)
	return object, found
}

// List is all objects of the namespace, in no order.
func (i *Informer[T]) List(namespace string) []T {
	return i.list(namespace, cache.NamespaceIndex, namespace)
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
	items, err := s.informer.GetIndexer().ByIndex(index, key)
	if err != nil {
		return nil // the index is not there: a mistake that every test of the caller finds
	}
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
