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

// Package plan decides: which targets are stale, which are restarted now, which wait and why.
//
// It is pure. What is recorded, what is observed and the time go in; restarts, the next record and
// what to tell the user come out. The same input always gives the same decision, so that a pass that
// was cut short is simply made again. It makes no calls, reads no clock and keeps nothing.
//
// A pass has two halves. Decide says which restarts to make. Conclude, given how these went, says
// what to record: a pair of target and source is advanced only when its restart was made, or when
// the change calls for none (E4).
package plan
