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

// Package alerts tests the alerts of config/prometheus and the dashboard of config/grafana by Prometheus' own parser and
// engine. A module of its own, so that none of Prometheus gets into the operator's. That they name metrics which the
// manager has is tested in test/gitops.
package alerts
