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

package turns_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ktechhub/configwatch/internal/turns"
)

// BenchmarkPass is what a pass costs: Take and Report. It must not grow with the number of ConfigWatches.
func BenchmarkPass(b *testing.B) {
	for _, watches := range []int{10, 1000, 100_000} {
		keys := make([]types.NamespacedName, watches)
		for i := range keys {
			keys[i] = named(fmt.Sprint(i))
		}
		// Each has a rollout under way, and another one to start, for which there is a place.
		b.Run(fmt.Sprintf("places for all/%d ConfigWatches", watches), func(b *testing.B) {
			own := turns.New(2*watches, func(types.NamespacedName) {})
			for _, key := range keys {
				own.Report(key, 1)
			}
			measure(b, func(i int) { startOne(own, keys[i%watches], 1) })
		})
		// Half of them have a rollout under way, which is done at their pass: one of the others is woken for
		// the place, and its own next rollout has to wait.
		b.Run(fmt.Sprintf("half of them wait/%d ConfigWatches", watches), func(b *testing.B) {
			next := make(chan types.NamespacedName, 1)
			own := turns.New(watches/2, func(key types.NamespacedName) { next <- key })
			for _, key := range keys {
				startOne(own, key, 0)
			}
			measure(b, func(i int) {
				if i%2 == 0 {
					startOne(own, keys[(i/2)%watches], 0)
				} else {
					startOne(own, <-next, 0)
				}
			})
		})
		// None has or wants anything, as in most passes.
		b.Run(fmt.Sprintf("nothing to start/%d ConfigWatches", watches), func(b *testing.B) {
			own := turns.New(watches, func(types.NamespacedName) {})
			measure(b, func(i int) {
				own.Take(keys[i%watches], 0, 0)
				own.Report(keys[i%watches], 0)
			})
		})
	}
}

func measure(b *testing.B, pass func(i int)) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pass(i)
	}
}

// startOne is a pass that starts one more rollout, if it may.
func startOne(own *turns.Turns, key types.NamespacedName, rolling int) {
	own.Report(key, rolling+own.Take(key, rolling, 1))
}
