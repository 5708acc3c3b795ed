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

package feed_test

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
)

func TestF1EverySubscriptionIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		first, second := subscribe(t, b, feed.Filter{}, 10), subscribe(t, b, feed.Filter{}, 10)
		publish(b, history("web", 2)...)
		expect(t, first, "Added web@1", "Modified web@2")
		expect(t, second, "Added web@1", "Modified web@2")
	})
}

func TestF1AFilterThatCantBeUsedIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		filter feed.Filter
		buffer int
		want   string
	}{
		"no buffer":     {feed.Filter{}, 0, "subscribing: a buffer of 0 changes holds none"},
		"another kind":  {feed.Filter{Kind: "Pod"}, 1, `subscribing: kind "Pod" is not one of ConfigMap, Secret`},
		"another event": {feed.Filter{Events: []feed.EventType{feed.Gap}}, 1, `subscribing: event "Gap" is not one of Added, Modified, Deleted`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newBroker().Subscribe(tc.filter, tc.buffer)
			NewWithT(t).Expect(err).To(MatchError(tc.want))
		})
	}
}

func TestF1AFilterLimitsWhatIsReceived(t *testing.T) {
	web := labelled(configMap("web", "1", "a", "1"), "app", "demo")
	objects := []string{"Added web@1", "Added db@1", "Added web@1", "Added web@1"}
	for name, tc := range map[string]struct {
		filter feed.Filter
		want   []string
	}{
		"none":          {feed.Filter{}, objects},
		"the namespace": {feed.Filter{Namespace: "other"}, []string{"Added web@1"}},
		"the kind":      {feed.Filter{Kind: v1alpha1.Secret}, []string{"Added web@1"}},
		"the name":      {feed.Filter{Name: "db"}, []string{"Added db@1"}},
		"the labels":    {feed.Filter{Selector: selector(t, "app=demo")}, []string{"Added web@1"}},
		"the event":     {feed.Filter{Events: []feed.EventType{feed.Modified, feed.Deleted}}, nil},
		"all of them": {feed.Filter{
			Namespace: "shop", Kind: v1alpha1.ConfigMap, Name: "web", Selector: selector(t, "app=demo"), Events: []feed.EventType{feed.Added},
		}, []string{"Added web@1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				s := subscribe(t, b, tc.filter, 10)
				b.Publish(nil, web)
				b.Publish(nil, configMap("db", "1"))
				b.Publish(nil, secret("web", "1"))
				b.Publish(nil, in("other", configMap("web", "1")))
				expect(t, s, tc.want...)
			})
		})
	}
}

func TestF1WhatTheCallerDoesToItsFilterDoesNotMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		filter := feed.Filter{Events: []feed.EventType{feed.Added}}
		s := subscribe(t, b, filter, 10)
		filter.Events[0] = feed.Deleted
		publish(b, history("web", 1)...)
		expect(t, s, "Added web@1")
	})
}

func TestF1CloseEndsTheChannel(t *testing.T) {
	g := NewWithT(t)
	b := newBroker()
	s := subscribe(t, b, feed.Filter{}, 10)
	events := s.Events()
	publish(b, history("web", 3)...)
	s.Close()
	s.Close()
	g.Expect(events).To(BeClosed(), "what was queued is dropped")
	g.Expect(s.Events()).To(BeClosed())

	b.Publish(nil, configMap("db", "1"))
	s.Reread()
	g.Expect(events).To(BeClosed())
}

// In a bubble of synctest, a goroutine that is left fails the test.
func TestF1NothingOutlivesClose(t *testing.T) {
	state := map[string]func(s *feed.Subscription){
		"nobody listens":               func(*feed.Subscription) {},
		"nobody receives":              func(s *feed.Subscription) { s.Events() },
		"some was received":            func(s *feed.Subscription) { <-s.Events() },
		"closed while it is delivered": func(s *feed.Subscription) { go s.Close(); <-s.Events() },
	}
	for name, use := range state {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				s, err := b.Subscribe(feed.Filter{Initial: true}, 2)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				publish(b, history("web", 5)...)
				use(s)
				synctest.Wait()
				publish(b, history("db", 5)...)
				s.Close()
			})
		})
	}
}

func TestF1AnIdleSubscriptionHasNoGoroutine(t *testing.T) {
	const n = 1_000
	b := newBroker()
	before := runtime.NumGoroutine()
	subscriptions := make([]*feed.Subscription, n)
	for i := range subscriptions {
		subscriptions[i] = subscribe(t, b, feed.Filter{}, 10)
		subscriptions[i].Events()
	}
	NewWithT(t).Expect(runtime.NumGoroutine()).To(BeNumerically("<", before+n/10))

	publish(b, history("web", 1)...)
	for _, s := range subscriptions {
		receive(t, s, 1)
	}
	NewWithT(t).Eventually(runtime.NumGoroutine).Should(BeNumerically("<", before+n/10))
}

func TestF1NobodyHoldsAClosedSubscription(t *testing.T) {
	b := newBroker()
	held := closed(t, b)
	NewWithT(t).Eventually(func() (left int) {
		runtime.GC()
		for _, p := range held {
			if p.Value() != nil {
				left++
			}
		}
		return left
	}).Should(BeZero())
	runtime.KeepAlive(b)
}

// closed are subscriptions that were used and then closed in another order than they were made.
func closed(t *testing.T, b *feed.Broker) []weak.Pointer[feed.Subscription] {
	t.Helper()
	var subscriptions []*feed.Subscription
	var held []weak.Pointer[feed.Subscription]
	for n := range 10 {
		s, err := b.Subscribe(feed.Filter{Namespace: "shop"}, 2)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		s.Events()
		subscriptions = append(subscriptions, s)
		held = append(held, weak.Make(s))
		publish(b, history(strconv.Itoa(n), 3)...)
	}
	for _, n := range rand.Perm(len(subscriptions)) {
		publish(b, history(strconv.Itoa(n), 5)[3:]...)
		subscriptions[n].Close()
	}
	return held
}

// The race detector looks on.
func TestF1ComingAndGoingInTheMiddleOfPublishing(t *testing.T) {
	b := newBroker()
	stop := make(chan struct{})
	var publishers, observers sync.WaitGroup
	for _, name := range []string{"web", "db"} {
		publishers.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
					version := strconv.Itoa(n)
					b.Publish(nil, configMap(name, version, "version", version))
				}
			}
		})
	}
	for range 8 {
		observers.Go(func() {
			for range 200 {
				comeAndGo(t, b)
			}
		})
	}
	observers.Wait()
	close(stop)
	publishers.Wait()
	s := subscribe(t, b, feed.Filter{}, 1)
	b.Publish(nil, configMap("last", "1"))
	NewWithT(t).Expect(told(receive(t, s, 1))).To(HaveExactElements("Added last@1"))
}

// comeAndGo subscribes, receives some, checks the order, and is closed by others in the meantime.
func comeAndGo(t *testing.T, b *feed.Broker) {
	s, err := b.Subscribe(feed.Filter{Initial: rand.IntN(2) == 0}, 1+rand.IntN(4))
	if err != nil {
		t.Error(err)
		return
	}
	var closers sync.WaitGroup
	for range 2 {
		closers.Go(func() {
			time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond) // not to wait for anything
			s.Close()
		})
	}
	closers.Go(func() {
		if rand.IntN(4) == 0 {
			s.Reread()
		}
	})
	last := map[string]int{}
	for c := range s.Events() {
		version, _ := strconv.Atoi(c.ResourceVersion)
		if !c.IsMark() && version <= last[c.Name] && !c.Initial {
			t.Errorf("%s after version %d", line(c), last[c.Name])
		}
		last[c.Name] = version
	}
	closers.Wait()
}
