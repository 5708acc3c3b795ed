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

// Package observer has three reference observers of the change feed: a Logger of every event, a Counter,
// which keeps state, and a Filter, which reacts to some events only.
//
// They are meant to be read, and to be taken as the start of others. It promises that each is told of every
// change, one after the other, and that what is there is read anew when some were lost. It doesn't know where
// the changes come from.
package observer
