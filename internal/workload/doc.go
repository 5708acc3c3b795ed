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

// Package workload keeps what matters of every workload: which sources its pod template references,
// by which numbers it was restarted, and how its rollout stands.
//
// It promises to find every reference to a ConfigMap or Secret (E20), to take the state of a rollout
// from what the workload's own controller reports, and to restart by a patch that touches one
// annotation (E8). It doesn't know when to restart.
package workload
