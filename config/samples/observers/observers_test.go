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

// Package observers_test checks that the observers can be copied.
package observers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestTheyAreAModuleOfTheirOwn does what the Dockerfile does, without a network.
func TestTheyAreAModuleOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	module := t.TempDir()
	files, err := filepath.Glob(filepath.Join("*", "*.go"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.MkdirAll(filepath.Join(module, filepath.Dir(file)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(module, file), text, 0o600)).To(Succeed())
	}
	for _, command := range [][]string{
		{"go", "mod", "init", "github.com/ktechhub/configwatch/config/samples/observers"},
		{"go", "build", "-o", filepath.Join(module, "programs") + string(filepath.Separator), "./..."},
	} {
		run := exec.CommandContext(t.Context(), command[0], command[1:]...)
		run.Dir = module
		run.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
		out, err := run.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
	}
	built, err := filepath.Glob(filepath.Join(module, "programs", "*"))
	g.Expect(err).NotTo(HaveOccurred())
	for n := range built {
		built[n] = filepath.Base(built[n])
	}
	g.Expect(built).To(ConsistOf("cache-invalidation", "drift-alarm", "hot-reload", "routing-table"))
}
