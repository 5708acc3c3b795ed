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

package observer

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ktechhub/configwatch/internal/feed"
)

// Record logs changes at level 1 and counts them, without a label by object (F9).
type Record struct {
	log     logr.Logger
	changes *prometheus.CounterVec
}

// NewRecord makes a Record whose counter is in the registry.
func NewRecord(log logr.Logger, registry prometheus.Registerer) (*Record, error) {
	r := &Record{log: log, changes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "configwatch_source_changes_total",
		Help: "Changes of ConfigMaps and Secrets that this replica has seen, by kind and event.",
	}, []string{"kind", "event"})}
	if err := registry.Register(r.changes); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return r, nil
}

// Observe takes a change in. It never fails.
func (r *Record) Observe(change feed.Change) error {
	if change.IsMark() {
		if change.Type == feed.Gap {
			r.log.Info("Changes came faster than they could be recorded", "lost", change.Lost)
		}
		return nil
	}
	if change.Initial { // it is there, which is no news: after a Gap, what there is comes again (F4)
		return nil
	}
	r.changes.WithLabelValues(string(change.Kind), string(change.Type)).Inc()
	r.log.V(1).Info("Source changed", "event", change.Type, "kind", change.Kind, "namespace", change.Namespace,
		"name", change.Name, "hash", change.Hash, "previousHash", change.PreviousHash, "changedKeys", change.ChangedKeys)
	return nil
}
