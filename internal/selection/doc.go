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

// Package selection says what the spec of a ConfigWatch selects now: the sources, the workloads, and
// which of the sources each workload depends on.
//
// It reads the caches and nothing else, and promises an order: that of the spec, then by name. Where
// something can't be read it says so rather than take it for absent. It doesn't know what changed, nor
// what is done about it.
package selection
