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

// Package version knows which version this is, and tells it as a metric.
package version

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// Set when the operator is built: Version from the file VERSION, Commit from Git.
var (
	Version = "devel"
	Commit  = "unknown"
)

// Collector is the metric configwatch_build_info, whose labels say what runs.
func Collector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "configwatch_build_info",
		Help:        "Always 1: its labels are the version of the operator, the commit and the Go release that it was built from.",
		ConstLabels: prometheus.Labels{"version": Version, "commit": Commit, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
