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

// Package gitops tests ConfigWatch under Argo CD and Flux: which health they show of each state that the operator
// reports, and how many restarts there are when they apply, heal, prune and create anew what is in Git. Neither of the
// two runs: the tests make the API calls that they make. There are no controllers, so that the tests say when a rollout
// is complete.
//
// The objects in config/argocd are those that the operator has reported in these tests. After a change of what it
// reports, UPDATE_FIXTURES=1 go test ./test/gitops writes them anew.
package gitops
