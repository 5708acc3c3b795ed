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

package subscriber_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/subscriber"
)

var (
	web = types.NamespacedName{Namespace: "shop", Name: "web"}
	api = types.NamespacedName{Namespace: "shop", Name: "api"}
)

// tellerFunc is a Teller.
type tellerFunc func(ctx context.Context, cw types.NamespacedName, d plan.Delivery) plan.Attempt

func (f tellerFunc) Tell(ctx context.Context, cw types.NamespacedName, d plan.Delivery) plan.Attempt {
	return f(ctx, cw, d)
}

// office is a dispatcher at work, in a bubble of its own.
type office struct {
	*subscriber.Dispatcher
	stop func()

	mu    sync.Mutex
	told  []string
	woken []types.NamespacedName
}

// open starts a dispatcher whose attempts take the time that is given for the subscriber, and succeed.
func open(t *testing.T, takes map[string]time.Duration) *office {
	t.Helper()
	return openWith(t, func(ctx context.Context, _ types.NamespacedName, d plan.Delivery) plan.Attempt {
		select {
		case <-time.After(takes[d.Subscriber.Name]):
			return plan.Attempt{}
		case <-ctx.Done():
			return plan.Attempt{Message: "it was not waited for"}
		}
	})
}

func openWith(t *testing.T, tell tellerFunc) *office {
	t.Helper()
	o := newOffice(tell)
	o.start(t)
	return o
}

func newOffice(tell tellerFunc) *office {
	o := &office{}
	o.Dispatcher = subscriber.New(tellerFunc(func(ctx context.Context, cw types.NamespacedName, d plan.Delivery) plan.Attempt {
		o.note(func() { o.told = append(o.told, d.Event.ID) })
		return tell(ctx, cw, d)
	}), clock.RealClock{}, func(cw types.NamespacedName) { o.note(func() { o.woken = append(o.woken, cw) }) })
	return o
}

// start starts it until the test is over, or stop is called. Then no goroutine is left.
func (o *office) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- o.Start(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Start returned %v", err)
		}
	})
	t.Cleanup(o.stop)
	synctest.Wait()
}

func (o *office) note(what func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	what()
}

// after is what subscribers were told, by the ids of the events, when everything that takes so long is over.
func (o *office) after(d time.Duration) []string {
	time.Sleep(d) // the time of the bubble
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.told...)
}

// wokenSince are the ConfigWatches that were woken since the last call.
func (o *office) wokenSince() []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	woken := o.woken
	o.woken = nil
	return woken
}

// to is a delivery of the event with that id.
func to(name, id string) plan.Delivery {
	return plan.Delivery{
		Subscriber: v1alpha1.Subscriber{Name: name, Webhook: v1alpha1.Webhook{URL: "https://" + name}}, Event: v1alpha1.WaitingEvent{ID: id},
	}
}

func deliveries(d ...plan.Delivery) []plan.Delivery {
	return d
}

func TestF6ASlowSubscriberDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		o := open(t, map[string]time.Duration{"slow": 10 * time.Second})
		o.Deliver(web, deliveries(to("slow", "1"), to("fast", "2")))
		g.Expect(o.after(0)).To(ConsistOf("1", "2"))
		g.Expect(o.Attempts(web)).To(HaveKey("fast"))
		g.Expect(o.wokenSince()).To(ConsistOf(web))

		o.Deliver(web, deliveries(to("slow", "1"), to("fast", "3")))
		o.Deliver(api, deliveries(to("slow", "4")))
		g.Expect(o.after(0)).To(ConsistOf("1", "2", "3", "4"), "of another ConfigWatch it is another subscriber")
		g.Expect(o.after(11 * time.Second)).To(HaveLen(4))
		g.Expect(o.Attempts(web)).To(And(HaveKey("fast"), HaveKey("slow")))
		g.Expect(o.Attempts(api)).To(HaveKey("slow"))
	})
}

func TestF6ASubscriberIsToldOneEventAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		o := open(t, map[string]time.Duration{"cache": time.Second})
		o.Deliver(web, deliveries(to("cache", "1")))
		o.Deliver(web, deliveries(to("cache", "2")))
		g.Expect(o.after(2 * time.Second)).To(Equal([]string{"1"}))
		o.Deliver(web, deliveries(to("cache", "2")))
		g.Expect(o.after(2*time.Second)).To(Equal([]string{"1"}), "how the first went is not recorded yet")

		began := time.Now()
		attempt := o.Attempts(web)["cache"]
		g.Expect(attempt.Event.ID).To(Equal("1"))
		g.Expect(attempt.Webhook.URL).To(Equal("https://cache"))
		g.Expect(began.Sub(attempt.Time)).To(Equal(3 * time.Second))
		g.Expect(o.Attempts(web)).To(BeEmpty())
		o.Deliver(web, deliveries(to("cache", "2")))
		g.Expect(o.after(2 * time.Second)).To(Equal([]string{"1", "2"}))
		g.Expect(o.wokenSince()).To(Equal([]types.NamespacedName{web, web}))
	})
}

func TestF6WhatCameBeforeTheStartIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		o := newOffice(func(context.Context, types.NamespacedName, plan.Delivery) plan.Attempt { return plan.Attempt{} })
		o.Deliver(web, deliveries(to("cache", "1")))
		o.Deliver(api, nil)
		o.start(t)
		g.Expect(o.wokenSince()).To(Equal([]types.NamespacedName{web}))
		g.Expect(o.after(time.Second)).To(BeEmpty(), "it may be that it isn't due any more")
	})
}

func TestF6AfterTheEndNothingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		o := open(t, map[string]time.Duration{"slow": time.Hour})
		o.Deliver(web, deliveries(to("slow", "1"), to("fast", "2")))
		g.Expect(o.after(time.Second)).To(ConsistOf("1", "2"))
		o.stop()
		g.Expect(o.Attempts(web)).To(And(HaveKey("fast"), Not(HaveKey("slow"))), "what was cut short says nothing of the endpoint")
		o.Deliver(web, deliveries(to("fast", "3")))
		g.Expect(o.after(time.Hour)).To(ConsistOf("1", "2"))
	})
}

func TestF6WhatWasDeliveredAtTheEndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		o := openWith(t, func(ctx context.Context, _ types.NamespacedName, _ plan.Delivery) plan.Attempt {
			<-ctx.Done()
			return plan.Attempt{}
		})
		o.Deliver(web, deliveries(to("cache", "1")))
		g.Expect(o.after(0)).To(HaveLen(1), "it is under way")
		o.stop()
		g.Expect(o.Attempts(web)).To(HaveKey("cache"))
	})
}

func TestF6APanicIsAFailureOfTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		o := openWith(t, func(context.Context, types.NamespacedName, plan.Delivery) plan.Attempt { panic("canary-value") })
		o.Deliver(web, deliveries(to("cache", "1")))
		g.Expect(o.after(0)).To(HaveLen(1))
		g.Expect(o.Attempts(web)["cache"]).To(And(
			HaveField("Message", "the operator failed to make the attempt, by a fault of its own: see its log"), HaveField("Event.ID", "1")))
		o.Deliver(web, deliveries(to("cache", "1")))
		g.Expect(o.after(0)).To(HaveLen(2), "and can be tried again")
	})
}

func TestF6AttemptsOfAllSubscribersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		const most = 1000
		o := openWith(t, func(ctx context.Context, _ types.NamespacedName, _ plan.Delivery) plan.Attempt {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return plan.Attempt{}
		})
		everybody := func() {
			for i := range most + 2 {
				cw := types.NamespacedName{Namespace: "shop", Name: strconv.Itoa(i)}
				o.Attempts(cw)
				o.Deliver(cw, deliveries(to("cache", "1")))
			}
		}
		everybody()
		g.Expect(o.after(time.Millisecond)).To(HaveLen(most))
		g.Expect(o.after(2 * time.Second)).To(HaveLen(most + 2))
		everybody()
		g.Expect(o.after(time.Millisecond)).To(HaveLen(most + 2 + most))
		o.stop() // while two wait
		g.Expect(o.after(time.Hour)).To(HaveLen(most + 2 + most))
	})
}
