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

// Package informer keeps a reduced copy of every object of one kind, fresh by one watch.
//
// It is made of client-go's reflector, queue and store. Unlike client-go's shared informer, it tells of changes
// in the goroutine that stores them, so that it can tell exactly which state they lead to: see Step. It promises
// that objects are reduced before they are kept, that the operator's own writes are seen at once, and that a kind
// that can't be read is told apart from one that has no objects. It works on every replica: a missing permission
// for one kind holds up no other. It doesn't know what the objects mean.
package informer
