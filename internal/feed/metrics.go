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

package feed

import "github.com/prometheus/client_golang/prometheus"

// gaps counts the Gaps that observers were told of.
type gaps struct {
	total      *prometheus.CounterVec
	slow, away prometheus.Counter
}

func newGaps() gaps {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "configwatch_feed_gaps_total",
		Help: "Gaps that observers of the change feed were told of, by cause: slow (changes came faster than they took them in), " +
			"away (they came back to the stream too late to go on where they had left off).",
	}, []string{"cause"})
	return gaps{total: total, slow: total.WithLabelValues("slow"), away: total.WithLabelValues("away")}
}

// Metrics are the broker's, to be registered.
func (b *Broker) Metrics() prometheus.Collector {
	return b.gaps.total
}

// CountGap counts a Gap that an observer was told of, as it came back too late to go on where it had left off.
func (h *History) CountGap() {
	h.broker.gaps.away.Inc()
}
