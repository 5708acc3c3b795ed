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

package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Component is a program of the control plane, by its file name.
type Component string

// The programs that can be built. All but Kubectl can be started.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	Kubectl           Component = "kubectl"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
)

// Envtest is an API server and what it needs: objects are stored, nothing acts on them.
func Envtest() []Component { return []Component{Etcd, APIServer, Kubectl} }

// Full is a control plane with one fake node, on which pods become ready and rollouts complete.
func Full() []Component { return append(Envtest(), ControllerManager, Scheduler, Kwok) }

// source says what a component is built from.
type source struct {
	folder  string // of the module that pins it, beside this file
	module  string
	command string // the package within module
	usual   string // time to build it on 2 cores with an empty build cache, after those before it
}

func sources() map[Component]source {
	const kubernetes = "k8s.io/kubernetes"
	return map[Component]source{
		Etcd:              {"kubernetes", "go.etcd.io/etcd/server/v3", "", "1 to 2 minutes"},
		APIServer:         {"kubernetes", kubernetes, "/cmd/kube-apiserver", "10 minutes"},
		Kubectl:           {"kubernetes", kubernetes, "/cmd/kubectl", "1 minute"},
		ControllerManager: {"kubernetes", kubernetes, "/cmd/kube-controller-manager", "3 minutes"},
		Scheduler:         {"kubernetes", kubernetes, "/cmd/kube-scheduler", "half a minute"},
		Kwok:              {"kwok", "sigs.k8s.io/kwok", "/cmd/kwok", "4 minutes"},
	}
}

// sourceFolder walks up from the working directory to the repository's root, and returns its hack/controlplane.
func sourceFolder() (string, error) {
	const module = "github.com/ktechhub/configwatch"
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(gomod, []byte("module "+module+"\n")) {
			return filepath.Join(dir, "hack", "controlplane"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not within the repository of %s", start, module)
		}
	}
}

// pinnedVersions reads the version of each component, and the go.mod files that pin them, from folder.
func pinnedVersions(folder string) (map[Component]string, []byte, error) {
	var pins []byte
	gomods := map[string][]byte{}
	for _, module := range []string{"kubernetes", "kwok"} {
		gomod, err := os.ReadFile(filepath.Join(folder, module, "go.mod"))
		if err != nil {
			return nil, nil, fmt.Errorf("reading the pinned versions: %w", err)
		}
		gomods[module] = gomod
		pins = append(pins, gomod...)
	}
	versions := map[Component]string{}
	for component, src := range sources() {
		version := requiredVersion(gomods[src.folder], src.module)
		if version == "" {
			return nil, nil, fmt.Errorf("%s/go.mod does not require %s", src.folder, src.module)
		}
		versions[component] = version
	}
	return versions, pins, nil
}

func requiredVersion(gomod []byte, module string) string {
	for line := range bytes.Lines(gomod) {
		fields := strings.Fields(strings.TrimPrefix(string(line), "require "))
		if len(fields) >= 2 && fields[0] == module {
			return fields[1]
		}
	}
	return ""
}
