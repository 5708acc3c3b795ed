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

// Package controller reconciles ConfigWatches: it reads one, observes what it selects, lets plan
// decide, makes the restarts, and reports.
//
// It promises one status write a pass and only when something changed, Events only after that
// succeeded, and no API call at all in a steady state (E28). Which ConfigWatches a change concerns is
// told by indexes, without a LIST. What is restarted, and when, it doesn't know: that is plan's.
package controller
