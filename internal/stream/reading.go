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

package stream

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
)

const (
	// readTimeout is how long one try to read a ConfigMap may take.
	readTimeout = 10 * time.Second
	// firstRetry is after how long it is tried again, and lastRetry the longest time between two tries.
	firstRetry, lastRetry = 100 * time.Millisecond, 10 * time.Second
	// places is how many ConfigMaps are read, or being sent if they are large, at once. So clients that are
	// slow can't fill the memory with those that they have not taken in.
	places = 16
	// large is from how many bytes on a ConfigMap keeps its place until it is sent.
	large = 64 << 10
	// readingsKept is how many bytes of ConfigMaps are kept for clients that want them a little later.
	readingsKept = 4 << 20
)

// Former names the keys that changed. A source.Cache does, from what it remembers of former contents.
type Former interface {
	// ChangedKeys is the names of the keys in which a source differs from the content that had the hash, if
	// that is known. No keys stand for all.
	ChangedKeys(s *source.Source, keys []string, from digest.Hash) (changed []string, known bool)
}

// readings reads ConfigMaps live, each once for a change and for all who want it.
type readings struct {
	configMaps typedcorev1.ConfigMapsGetter
	former     Former
	clock      clock.Clock
	spawn      func(func())
	places     chan struct{}

	mu sync.Mutex
	// latest is the last reading of each object, while someone wants it, and then as long as it is kept.
	latest map[types.UID]*reading
	kept   *list.List // of readings that nobody wants, the oldest in front
	size   int        // of these, in bytes
}

// reading is a ConfigMap as it is at some time after a change.
type reading struct {
	uid    types.UID
	cancel context.CancelFunc
	done   chan struct{} // closed when the following three are set

	err    error
	object *source.Source    // nil if there is none, or another one of that name
	data   *corev1.ConfigMap // what it is made of

	// These are guarded by the lock of readings.
	wanted int           // by how many clients
	placed bool          // it has a place
	kept   *list.Element // set if it is kept

	mu     sync.Mutex
	frames map[frameKey]frame
}

func newReadings(o *Options, spawn func(func())) *readings {
	return &readings{
		configMaps: o.ConfigMaps,
		former:     o.Former,
		clock:      o.Clock,
		spawn:      spawn,
		places:     make(chan struct{}, places),
		latest:     map[types.UID]*reading{},
		kept:       list.New(),
	}
}

// of is a reading for a change, which has to be released. When it is done, it may turn out to be older than the
// change, if it was under way already.
func (r *readings) of(ctx context.Context, change *feed.Change) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.latest[change.UID]
	if found != nil && found.kept != nil {
		r.unkeep(found)
	}
	if found == nil || !found.serves(change) {
		found = r.start(ctx, change)
	}
	found.wanted++
	return found
}

// release gives a reading back. One that nobody waits for is broken off, and one that is done is kept for a
// while.
func (r *readings) release(released *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if released.wanted--; released.wanted > 0 {
		return
	}
	released.cancel()
	if released.placed {
		released.placed = false
		<-r.places
	}
	if r.latest[released.uid] != released {
		return // there is a later one
	}
	if !released.isDone() || released.err != nil {
		delete(r.latest, released.uid)
		return
	}
	released.kept = r.kept.PushBack(released)
	r.size += released.size()
	for r.size > readingsKept {
		if oldest, ok := r.kept.Front().Value.(*reading); ok {
			r.unkeep(oldest)
			delete(r.latest, oldest.uid)
		}
	}
}

func (r *readings) unkeep(k *reading) {
	r.size -= k.size()
	r.kept.Remove(k.kept)
	k.kept = nil
}

func (r *readings) start(ctx context.Context, change *feed.Change) *reading {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it ends when nobody wants it any more
	started := &reading{
		uid:    change.UID,
		cancel: cancel,
		done:   make(chan struct{}),
		err:    errBrokenOff,
		frames: map[frameKey]frame{},
	}
	r.latest[change.UID] = started
	namespace, name := change.Namespace, change.Name
	r.spawn(func() {
		defer close(started.done)
		select {
		case r.places <- struct{}{}:
			r.read(ctx, started, namespace, name)
		case <-ctx.Done():
		}
	})
	return started
}

// read reads an object that has a place. What is large keeps it while someone wants it.
func (r *readings) read(ctx context.Context, into *reading, namespace, name string) {
	object, err := r.get(ctx, namespace, name)
	into.err = err
	if object != nil && object.UID == into.uid {
		into.data, into.object = object, source.OfConfigMap(object)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if into.wanted == 0 || into.size() < large {
		<-r.places
		return
	}
	into.placed = true
}

// get tries until it can tell what is there: nobody hears of an outage of the API server (F11).
func (r *readings) get(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	for delay := firstRetry; ; delay = min(2*delay, lastRetry) {
		object, err := r.try(ctx, namespace, name)
		switch {
		case err == nil:
			return object, nil
		case apierrors.IsForbidden(err):
			return nil, unavailable("this operator has no permission to read the data of ConfigMaps")
		}
		select {
		case <-ctx.Done():
			return nil, errBrokenOff
		case <-r.clock.After(delay):
		}
	}
}

// try reads a ConfigMap, which is nil if it doesn't exist. It does so by a list of one name, so that no more
// than the right to list is needed.
func (r *readings) try(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	found, err := r.configMaps.ConfigMaps(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, name, err)
	}
	if len(found.Items) == 0 {
		return nil, nil
	}
	return &found.Items[0], nil
}

// frame is that of a change, with the data that was read for it.
func (r *readings) frame(from *reading, change *feed.Change) (frame, error) {
	from.mu.Lock()
	defer from.mu.Unlock()
	key := keyOf(change)
	made, ok := from.frames[key]
	if ok && !change.Initial {
		return made, nil
	}
	e, err := from.event(r.complete(change, from.object))
	if err != nil {
		return nil, err
	}
	if made, err = newFrame(change.Type, e); err == nil && !change.Initial {
		from.frames[key] = made
	}
	return made, err
}

// complete is a change up to the object as it was read: what it became in the meantime is part of it (F8).
func (r *readings) complete(change *feed.Change, read *source.Source) *feed.Change {
	whole := *change
	whole.ResourceVersion = read.ResourceVersion
	whole.Labels = read.Labels
	whole.Hash = read.Content.Hash(nil)
	if whole.Hash == change.Hash {
		return &whole
	}
	if change.PreviousHash == "" {
		whole.ChangedKeys = digest.ChangedKeys(digest.Content{}, read.Content)
	} else if keys, known := r.former.ChangedKeys(read, nil, change.PreviousHash); known {
		whole.ChangedKeys = keys
	}
	return &whole
}

// event is a change as a CloudEvent with the data.
func (r *reading) event(change *feed.Change) (event.Event, error) {
	e, err := change.CloudEvent()
	if err != nil {
		return e, err
	}
	return e, feed.Content{Data: r.data.Data, BinaryData: r.data.BinaryData}.AddTo(&e)
}

func (r *reading) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// serves tells whether a reading may be of after a change.
func (r *reading) serves(change *feed.Change) bool {
	if !r.isDone() {
		return true // it will show
	}
	return r.err == nil && (r.object == nil || !feed.Earlier(r.object.ResourceVersion, change.ResourceVersion))
}

// shows tells whether there is an object that a filter, which let a change of it through, still matches.
func (r *reading) shows(f *feed.Filter) bool {
	return r.object != nil && !r.object.Ignored &&
		(f.Selector == nil || f.Selector.Matches(labels.Set(r.object.Labels)))
}

// size is about how many bytes of memory it takes.
func (r *reading) size() int {
	const rest = 1 << 10
	size := rest
	if r.data != nil {
		for key, value := range r.data.Data {
			size += len(key) + len(value)
		}
		for key, value := range r.data.BinaryData {
			size += len(key) + len(value)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.frames {
		size += len(f)
	}
	return size
}
