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

// Package fault tests that every change restarts its workloads exactly once (E9), whatever goes wrong on
// the way: the manager is killed between two calls, answers are lost or refused, the API server goes and
// comes back, two managers work at once. The manager's own binary runs against a real API server, through
// a proxy that does the harm.
package fault
