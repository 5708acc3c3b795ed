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

package stream_test

import (
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestF8StreamsAndGapsAreCounted(t *testing.T) {
	w := newWorld(t, func(s *setting) { s.history = 1 })
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.server.Metrics(), w.broker.Metrics())
	count := func(streams, gaps int) {
		t.Helper()
		want := `
			# HELP configwatch_feed_gaps_total Gaps that observers of the change feed were told of, by cause: slow (changes came faster than they took them in), away (they came back to the stream too late to go on where they had left off).
			# TYPE configwatch_feed_gaps_total counter
			configwatch_feed_gaps_total{cause="away"} ` + strconv.Itoa(gaps) + `
			configwatch_feed_gaps_total{cause="slow"} 0
			# HELP configwatch_stream_connections Streams of the change feed that this replica has open.
			# TYPE configwatch_stream_connections gauge
			configwatch_stream_connections ` + strconv.Itoa(streams) + "\n"
		NewWithT(t).Eventually(func() error {
			return testutil.GatherAndCompare(registry, strings.NewReader(want))
		}, patience).Should(Succeed())
	}
	count(0, 0)
	const path = "/v1/namespaces/shop/changes"
	r := w.open(path)
	begun := r.lastID
	w.set(configMap("web", "1"))
	r.expect("Added web@1")
	count(1, 0)
	r.close()
	count(0, 0)

	w.open(path, lastEventID, r.lastID)
	count(1, 0)
	w.set(configMap("web", "2", "a", "1"))
	w.open(path, lastEventID, begun).expect("Gap")
	count(2, 1)
}
