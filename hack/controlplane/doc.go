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

// Package controlplane builds and runs a real Kubernetes control plane on a bare machine, for the demo, the tests and
// the benchmarks alike. The programs come from Go modules (the folders kubernetes and kwok pin them); no container
// engine, cluster or download site is needed. A Plane listens on loopback only, keeps its state in a temporary folder,
// and leaves nothing running, whatever ends its process (on Linux even kill -9). It knows nothing of ConfigWatch.
// It runs wherever kube-apiserver does: Linux and macOS.
package controlplane
