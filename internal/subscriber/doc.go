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

// Package subscriber tells subscribers of what waits for them, each in a worker of its own, so that a slow
// endpoint delays nobody else (F6).
//
// It promises that a subscriber is told one event at a time, and that how each attempt went is kept until
// the next pass asks for it. What is due, in which order and how often, it doesn't know: that is plan's.
// Nothing of it has to outlive the process: what was not recorded is told again.
package subscriber
