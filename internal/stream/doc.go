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

// Package stream serves the change feed to HTTP clients, as Server-Sent Events of one CloudEvent each (F8).
//
// A client has its own subscription to a feed.History, and goes on after Last-Event-ID where it left off. It
// promises that a client gets exactly what its user may watch, and no longer than that; that each event is
// encoded once for all; that a client who doesn't take in what it is sent is cut off, and costs a few
// kilobytes until then; and that what a client missed is told by a Gap. It doesn't know who restarts what,
// and never sees a Secret's value: data is read live, of ConfigMaps only.
package stream
