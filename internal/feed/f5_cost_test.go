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
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/feed"
)

func TestF5PublishingAllocatesNothingForASubscription(t *testing.T) {
	allocations := func(subscriptions int) float64 {
		b := newBroker()
		for range subscriptions {
			subscribe(t, b, feed.Filter{Namespace: "shop"}, 8).Events()
		}
		next := versions()
		for range 20 {
			b.Publish(next()) // until the rings are full
		}
		return testing.AllocsPerRun(100, func() { b.Publish(next()) })
	}
	const subscriptions = 1_000
	few := subscriptions / 10.0 // of the goroutines that are woken meanwhile, and of the runtime
	NewWithT(t).Expect(allocations(subscriptions)).To(BeNumerically("<", allocations(1)+few))
}
