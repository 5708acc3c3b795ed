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

package informer

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// Reconnects logs and counts that watches which had broken off were made again (F11).
type Reconnects struct {
	log   logr.Logger
	total *prometheus.CounterVec
}

// NewReconnects makes one whose counter is in the registry.
func NewReconnects(log logr.Logger, registry prometheus.Registerer) (*Reconnects, error) {
	r := &Reconnects{log: log, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "configwatch_watch_reconnects_total",
		Help: "Watches of the API server that broke off before their time and were made again, by the kind that is watched.",
	}, []string{"kind"})}
	if err := registry.Register(r.total); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return r, nil
}

// Record has those of informers logged and counted. It must be called before these are started.
func (r *Reconnects) Record(informers Group) {
	for _, member := range informers {
		r.total.WithLabelValues(member.Kind()) // so that the first one is an increase
		member.OnReconnect(r.reconnected)
	}
}

func (r *Reconnects) reconnected(again Reconnect) {
	r.total.WithLabelValues(again.Kind).Inc()
	log := r.log.WithValues("kind", again.Kind, "away", again.Away.String(), "reread", again.Reread)
	if again.Namespace != "" {
		log = log.WithValues("namespace", again.Namespace)
	}
	if again.Cause != nil {
		log = log.WithValues("lastError", again.Cause.Error())
	}
	log.Info("Made a watch again that had broken off")
}
