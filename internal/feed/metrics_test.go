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
	"strings"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ktechhub/configwatch/internal/feed"
)

func TestF2GapsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		count := func(want string) {
			t.Helper()
			synctest.Wait() // it is counted right after it is received
			g := NewWithT(t)
			g.Expect(testutil.CollectAndCompare(b.Metrics(), strings.NewReader(`
				# HELP configwatch_feed_gaps_total Gaps that observers of the change feed were told of, by cause: slow (changes came faster than they took them in), away (they came back to the stream too late to go on where they had left off).
				# TYPE configwatch_feed_gaps_total counter
				configwatch_feed_gaps_total{cause="away"} 0
				configwatch_feed_gaps_total{cause="slow"} `+want+"\n"))).To(Succeed())
		}
		s, other := subscribe(t, b, feed.Filter{}, 2), subscribe(t, b, feed.Filter{}, 2)
		count("0")
		publish(b, history("web", 9)...)
		count("0")
		expect(t, s, "Gap 7", "Modified web@8", "Modified web@9")
		count("1")
		expect(t, other, "Gap 7", "Modified web@8", "Modified web@9")
		count("2")
	})
}
