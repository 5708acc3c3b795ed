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

// Package turns shares out the rollouts that may be under way at once, over all ConfigWatches (E18).
//
// It is bookkeeping: a lock around a few counts and a queue, with no goroutines, no clock and no calls but
// the one that wakes a ConfigWatch. It promises that nothing is granted beyond the limit, that those who
// wait get what becomes free in the order in which they came, one place each and then the next, and that
// no place stays free while someone waits for it. Its work doesn't grow with the number of ConfigWatches.
//
// It doesn't know what a target is, nor how a rollout goes on: it believes what each pass tells. So it
// outlives no process, and the next one restores it from what is recorded.
package turns
