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

// Package digest says whether content changed, without keeping the content.
//
// It reduces the data of a ConfigMap or Secret to a digest for each key, and these to short hashes
// that can be recorded. It promises that equal content has equal hashes and that other content has
// others; that nothing but content counts; and that a Secret's hash tells nothing to a reader who
// lacks the operator's key. It doesn't know what a target or a change is.
package digest
