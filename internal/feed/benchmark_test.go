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
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
)

// sizes are how many subscriptions there are.
var sizes = []int{1, 100, 1_000, 10_000}

// versions are one object in two contents by turns, each version newer than the last.
func versions() func() (before, after *source.Source) {
	contents := []*source.Source{configMap("web", "1", "a", "1"), configMap("web", "1", "a", "2")}
	n := 1
	before := contents[1]
	return func() (*source.Source, *source.Source) {
		n++
		after := *contents[n%2]
		after.ResourceVersion = strconv.Itoa(n)
		was := before
		before = &after
		return was, before
	}
}

func subscribeMany(b *testing.B, broker *feed.Broker, n int) []*feed.Subscription {
	b.Helper()
	subscriptions := make([]*feed.Subscription, n)
	for i := range subscriptions {
		s, err := broker.Subscribe(feed.Filter{Namespace: "shop"}, 64)
		if err != nil {
			b.Fatal(err)
		}
		subscriptions[i] = s
	}
	b.Cleanup(func() {
		for _, s := range subscriptions {
			s.Close()
		}
	})
	return subscriptions
}

// BenchmarkPublishQueued publishes to subscriptions that nobody receives from: their rings overflow.
func BenchmarkPublishQueued(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			broker := feed.NewBroker(clock.RealClock{})
			subscribeMany(b, broker, n)
			next := versions()
			for range 100 {
				broker.Publish(next())
			}
			b.ReportAllocs()
			for b.Loop() {
				broker.Publish(next())
			}
		})
	}
}

// BenchmarkPublishStuck publishes to subscriptions whose receivers are stuck: a Gap is offered to each, and
// has to be withdrawn for one that counts more.
func BenchmarkPublishStuck(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			broker := feed.NewBroker(clock.RealClock{})
			for _, s := range subscribeMany(b, broker, n) {
				s.Events()
			}
			next := versions()
			for range 100 {
				broker.Publish(next())
			}
			b.ReportAllocs()
			for b.Loop() {
				broker.Publish(next())
			}
		})
	}
}

// BenchmarkPublishReceived publishes to subscriptions that all wait for it. What is measured is how long the
// publisher takes; how long until the last receiver has it is reported beside it.
func BenchmarkPublishReceived(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			broker := feed.NewBroker(clock.RealClock{})
			var received sync.WaitGroup
			for _, s := range subscribeMany(b, broker, n) {
				events := s.Events()
				go func() {
					for range events {
						received.Done()
					}
				}()
			}
			next := versions()
			var publishing, receiving time.Duration
			b.ReportAllocs()
			for b.Loop() {
				received.Add(n)
				before, after := next()
				start := time.Now()
				broker.Publish(before, after)
				publishing += time.Since(start)
				received.Wait()
				receiving += time.Since(start)
			}
			b.ReportMetric(float64(publishing.Nanoseconds())/float64(b.N), "publish-ns/op")
			b.ReportMetric(float64(receiving.Nanoseconds())/float64(b.N), "all-received-ns/op")
		})
	}
}

// BenchmarkSubscribe shows what a subscription takes while it is idle.
func BenchmarkSubscribe(b *testing.B) {
	broker := feed.NewBroker(clock.RealClock{})
	var subscriptions []*feed.Subscription
	b.ReportAllocs()
	for b.Loop() {
		s, err := broker.Subscribe(feed.Filter{Namespace: "shop"}, 64)
		if err != nil {
			b.Fatal(err)
		}
		s.Events()
		subscriptions = append(subscriptions, s)
	}
	b.StopTimer()
	for _, s := range subscriptions {
		s.Close()
	}
}
