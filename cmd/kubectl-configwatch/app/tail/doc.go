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

// Package tail is kubectl configwatch tail: it shows changes of ConfigMaps and Secrets as they happen.
//
// It reads the API server with the user's own rights, and tells the reference observers by the operator's own
// change feed; no operator is needed. It promises that no value is shown or kept, that labels and kinds which
// are not asked for are not even read, and that a missing permission is named. It doesn't know of ConfigWatches.
package tail
