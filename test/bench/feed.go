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
	"math"
	"runtime"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
)

const (
	// publishLimit is how many microseconds a change may take to be published to so many subscriptions (F5).
	publishLimit, publishLimitAt = 100.0, 1000
	// publications is how often each figure is measured; the median counts.
	publications = 200
	// ring is how many changes a subscription holds.
	ring = 64
)

// publication is what it takes to publish a change.
type publication struct {
	took        time.Duration
	allocations float64
}

// feed measures what it takes to publish a change to more and more subscriptions (F5): in the broker itself, without
// an API server. It is the publisher's time that counts, who has others to serve too.
func (b *bench) feed(context.Context) error {
	for _, situation := range []struct {
		name string
		of   func(n int) (*subscribed, error)
	}{
		{"that wait for it", waitingSubscriptions},
		{"whose queues are full", fullSubscriptions},
	} {
		var one publication
		for i, n := range b.size.subscriptions {
			progress("Publishing to %d subscriptions %s", n, situation.name)
			s, err := situation.of(n)
			if err != nil {
				return err
			}
			each := s.measure()
			s.close()
			timed := row{Name: fmt.Sprintf("publishing to %d subscriptions %s", n, situation.name), Unit: "µs",
				Manager: float64(each.took.Nanoseconds()) / 1000}
			if n == publishLimitAt {
				timed.Limit = new(publishLimit)
			}
			b.report.add(timed)
			if i == 0 {
				one = each
				continue
			}
			const hundredth = 100
			more := (each.allocations - one.allocations) / float64(n-b.size.subscriptions[0])
			b.report.add(row{Name: fmt.Sprintf("allocations for each of %d subscriptions %s", n, situation.name), Unit: "allocations",
				Manager: max(0, math.Round(more*hundredth)/hundredth), Limit: new(0.0)})
		}
	}
	return nil
}

// subscribed is a broker with subscriptions.
type subscribed struct {
	broker        *feed.Broker
	subscriptions []*feed.Subscription
	// received is what a change that is published is waited for with; nil if nobody receives.
	received *sync.WaitGroup
	version  int
	before   *source.Source
}

func newSubscribed(n int) (*subscribed, error) {
	s := &subscribed{broker: feed.NewBroker(clock.RealClock{})}
	for range n {
		subscription, err := s.broker.Subscribe(feed.Filter{Namespace: "shop"}, ring)
		if err != nil {
			return nil, err
		}
		s.subscriptions = append(s.subscriptions, subscription)
	}
	return s, nil
}

// waitingSubscriptions are some whose receivers have got everything so far.
func waitingSubscriptions(n int) (*subscribed, error) {
	s, err := newSubscribed(n)
	if err != nil {
		return nil, err
	}
	s.received = &sync.WaitGroup{}
	for _, subscription := range s.subscriptions {
		events := subscription.Events()
		go func() {
			for range events {
				s.received.Done()
			}
		}()
	}
	return s, nil
}

// fullSubscriptions are some whose receivers are stuck, so that the oldest change goes with each that is published.
func fullSubscriptions(n int) (*subscribed, error) {
	s, err := newSubscribed(n)
	if err != nil {
		return nil, err
	}
	for _, subscription := range s.subscriptions {
		subscription.Events()
	}
	for range ring {
		s.publish()
	}
	return s, nil
}

func (s *subscribed) close() {
	for _, subscription := range s.subscriptions {
		subscription.Close()
	}
}

func (s *subscribed) measure() publication {
	for range publications / 10 {
		s.publish() // until goroutines and the like are there to be used again
	}
	var before, after runtime.MemStats
	times := make([]time.Duration, publications)
	runtime.ReadMemStats(&before)
	for i := range times {
		times[i] = s.publish()
	}
	runtime.ReadMemStats(&after)
	return publication{took: percentile(times, 50), allocations: float64(after.Mallocs-before.Mallocs) / publications}
}

// publish publishes a change, and is how long that takes.
func (s *subscribed) publish() time.Duration {
	s.version++
	after := &source.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", ResourceVersion: strconv.Itoa(s.version)},
		Kind:       v1alpha1.ConfigMap,
		Content:    digest.Plain().Content(map[string]string{"VALUE": strconv.Itoa(s.version)}, nil),
	}
	if s.received != nil {
		s.received.Add(len(s.subscriptions))
	}
	start := time.Now()
	s.broker.Publish(s.before, after)
	took := time.Since(start)
	if s.received != nil {
		s.received.Wait()
	}
	s.before = after
	return took
}
