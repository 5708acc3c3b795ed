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

package subscriber

import (
	"context"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ktechhub/configwatch/internal/plan"
)

// maxParallel bounds the attempts that are under way at once, of all subscribers, and with them the memory for
// connections. It is so many that others wait only while a thousand endpoints are slow, each for some seconds.
const maxParallel = 1000

// Teller makes one attempt to tell a subscriber of a ConfigWatch an event.
type Teller interface {
	Tell(ctx context.Context, cw types.NamespacedName, d plan.Delivery) plan.Attempt
}

// Dispatcher has the workers. It is safe for concurrent use.
type Dispatcher struct {
	teller Teller
	clock  clock.PassiveClock
	wake   func(types.NamespacedName)
	places chan struct{}

	mu sync.Mutex
	// running is nil until Start, and after it has ended.
	running context.Context //nolint:containedctx // that of the workers, which outlive the call that starts them
	workers sync.WaitGroup
	busy    map[key]bool
	ended   map[types.NamespacedName]map[string]plan.Attempt
	// early are those that had something to deliver before Start.
	early map[types.NamespacedName]bool
}

// key is one subscriber of one ConfigWatch.
type key struct {
	cw   types.NamespacedName
	name string
}

// New makes a Dispatcher that wakes a ConfigWatch when an attempt has ended. It makes none until it is started,
// and then wakes those that had something to deliver before.
func New(teller Teller, c clock.PassiveClock, wake func(types.NamespacedName)) *Dispatcher {
	return &Dispatcher{
		teller: teller, clock: c, wake: wake, places: make(chan struct{}, maxParallel),
		busy: map[key]bool{}, ended: map[types.NamespacedName]map[string]plan.Attempt{}, early: map[types.NamespacedName]bool{},
	}
}

// Start lets workers run until the context is done, and waits for them.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.mu.Lock()
	d.running = ctx
	early := d.early
	d.early = map[types.NamespacedName]bool{}
	d.mu.Unlock()
	for cw := range early {
		d.wake(cw)
	}
	<-ctx.Done()
	d.mu.Lock()
	d.running = nil
	d.mu.Unlock()
	d.workers.Wait()
	return nil
}

// Deliver starts an attempt for each delivery whose subscriber isn't being told something already.
func (d *Dispatcher) Deliver(cw types.NamespacedName, deliveries []plan.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == nil {
		if len(deliveries) > 0 {
			d.early[cw] = true
		}
		return
	}
	for i := range deliveries {
		k := key{cw, deliveries[i].Subscriber.Name}
		if _, unread := d.ended[cw][k.name]; unread || d.busy[k] {
			continue
		}
		d.busy[k] = true
		ctx := d.running
		d.workers.Go(func() { d.work(ctx, k, deliveries[i]) })
	}
}

func (d *Dispatcher) work(ctx context.Context, k key, delivery plan.Delivery) {
	select {
	case d.places <- struct{}{}:
	case <-ctx.Done():
		d.end(k, nil)
		return
	}
	defer func() { <-d.places }()
	attempt := d.attempt(ctx, k.cw, delivery)
	if ctx.Err() != nil && attempt.Message != "" { // it was cut short, which says nothing of the endpoint
		d.end(k, nil)
		return
	}
	d.end(k, &attempt)
	d.wake(k.cw)
}

// attempt makes one. A panic is a failure of it, and no end of the process.
func (d *Dispatcher) attempt(ctx context.Context, cw types.NamespacedName, delivery plan.Delivery) (attempt plan.Attempt) {
	began := d.clock.Now()
	defer func() {
		if panicked := recover(); panicked != nil {
			log.FromContext(ctx).Info("Recovered from a panic", "panic", panicked, "stack", string(debug.Stack()))
			attempt.Message = "the operator failed to make the attempt, by a fault of its own: see its log"
		}
		attempt.Event, attempt.Webhook, attempt.Time = delivery.Event, delivery.Subscriber.Webhook, d.clock.Now()
		attempt.Took = attempt.Time.Sub(began)
	}()
	return d.teller.Tell(ctx, cw, delivery)
}

func (d *Dispatcher) end(k key, attempt *plan.Attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, k)
	if attempt == nil {
		return
	}
	if d.ended[k.cw] == nil {
		d.ended[k.cw] = map[string]plan.Attempt{}
	}
	d.ended[k.cw][k.name] = *attempt
}

// Attempts are those that have ended since it was last asked, by the subscriber's name.
func (d *Dispatcher) Attempts(cw types.NamespacedName) map[string]plan.Attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	attempts := d.ended[cw]
	delete(d.ended, cw)
	return attempts
}
