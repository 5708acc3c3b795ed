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

// Package changes reads the change stream of a ConfigWatch operator, with the standard library only. It is meant to
// be copied into a module of yours.
//
// It promises that a connection which breaks is made again, that it then goes on where it left off, and that what may
// have been missed is told by a Gap. It doesn't know what the changes are good for: see the programs beside it.
package changes
