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

// Package feed tells any number of subscribers of every change of a ConfigMap or Secret, from one watch.
//
// A Broker takes the changes from a source.Cache, and each Subscription has a bounded queue of its own. It
// promises that publishing waits for nobody (F2), that nothing is lost silently, that the order of each
// source's changes is kept (F3), and that what was there at first is no news (F4). It doesn't know what
// subscribers do, and never sees a value: a Change has names of keys and hashes.
package feed
