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

package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const root = "../.."

// follow are the flags that the chart sets by itself, or that are of no use in a pod.
var follow = []string{
	"health-probe-bind-address", "kubeconfig", "leader-elect", "metrics-bind-address", "metrics-cert-path", "metrics-secure",
	"namespace", "stream-bind-address", "stream-cert-path", "version", "watch-namespaces",
}

func TestEveryFlagOfTheManagerCanBeSet(t *testing.T) {
	g := NewWithT(t)
	var all struct {
		Properties struct {
			Flags schema `json:"flags"`
		} `json:"properties"`
	}
	g.Expect(json.Unmarshal([]byte(read(t, root, chartFolder+"/values.schema.json")), &all)).To(Succeed())
	settable := slices.Collect(maps.Keys(all.Properties.Flags.Properties))
	var flags []string
	for _, match := range regexp.MustCompile("(?m)^\\| `--([\\w-]+)`").FindAllStringSubmatch(read(t, root, "docs/reference/flags.md"), -1) {
		flags = append(flags, match[1])
	}
	g.Expect(slices.Concat(settable, follow)).To(ConsistOf(flags))
}

func TestOneVersionIsEverywhere(t *testing.T) {
	g := NewWithT(t)
	version := strings.TrimSpace(read(t, root, "VERSION"))
	for file, line := range map[string]string{
		chartFolder + "/Chart.yaml":                               "\nversion: " + version + "\nappVersion: v" + version + "\n",
		"config/manager/kustomization.yaml":                       "newTag: v" + version + "\n",
		"bundle/manifests/configwatch.clusterserviceversion.yaml": "\n  version: " + version + "\n",
		"catalog/configwatch/catalog.yaml":                        "name: configwatch.v" + version + "\n",
		"docs/install/kustomize.md":                               "/releases/download/v" + version + "/install.yaml\n",
		"docs/install/helm.md":                                    "--version " + version + " ",
		"CHANGELOG.md":                                            "\n## [" + version + "]",
	} {
		g.Expect(read(t, root, file)).To(ContainSubstring(line), file)
	}
	// The binaries, and so the metric and the log, and the image.
	for target, flag := range map[string]string{
		"build":        "internal/version.Version=v" + version + " ",
		"build-plugin": "internal/version.Version=v" + version + " ",
		"docker-build": "--build-arg VERSION=v" + version + " ",
		"image-layout": "--version=v" + version + " ",
		"docker-push":  "ghcr.io/ktechhub/configwatch:v" + version,
	} {
		command := exec.CommandContext(t.Context(), "make", "--dry-run", target)
		command.Dir = root
		command.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
		out, err := command.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		g.Expect(string(out)).To(ContainSubstring(flag), target)
	}
}

func TestWhatIsGeneratedIsUpToDate(t *testing.T) {
	g := NewWithT(t)
	folder := copyOfTheTree(t)

	g.Expect(run(folder, "")).To(Succeed())

	g.Expect(files(t, folder)).To(Equal(files(t, root)), "run: make chart")
}

func TestAnotherVersion(t *testing.T) {
	g := NewWithT(t)
	folder := copyOfTheTree(t)
	g.Expect(os.WriteFile(filepath.Join(folder, filesFolder, "old.yaml"), nil, 0o600)).To(Succeed())

	g.Expect(run(folder, "1.2.3")).To(Succeed())

	g.Expect(read(t, folder, chartFolder+"/Chart.yaml")).To(ContainSubstring("\nversion: 1.2.3\nappVersion: v1.2.3\n"))
	g.Expect(filepath.Join(folder, filesFolder, "old.yaml")).NotTo(BeAnExistingFile(), "what isn't copied any more goes")
}

func TestWhatCannotBeGenerated(t *testing.T) {
	for name, tc := range map[string]struct{ file, old, message string }{
		"a chart without version":       {"Chart.yaml", "version: 0", "it has no version"},
		"a README without the marks":    {"README.md", "<!-- The end of the table. -->", "it lacks the marks"},
		"a schema that isn't JSON":      {"values.schema.json", "{", "reading the schema"},
		"a value that isn't in values":  {"values.yaml", "replicas: 2", "values.yaml lacks replicas"},
		"a value that isn't documented": {"values.schema.json", "The number of pods. One leads; another takes over within seconds.", "doesn't say what replicas does"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := copyOfTheTree(t)
			file := filepath.Join(folder, chartFolder, tc.file)
			text := read(t, folder, chartFolder+"/"+tc.file)
			g.Expect(text).To(ContainSubstring(tc.old))
			g.Expect(os.WriteFile(file, []byte(strings.ReplaceAll(text, tc.old, "")), 0o600)).To(Succeed())
			g.Expect(run(folder, "")).To(MatchError(ContainSubstring(tc.message)))
		})
	}
}

// copyOfTheTree has what is generated and what it is generated from.
func copyOfTheTree(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"charts", "config/crd", "config/rbac"} {
		NewWithT(t).Expect(os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Join(root, name)))).To(Succeed())
	}
	NewWithT(t).Expect(os.WriteFile(filepath.Join(folder, "VERSION"), []byte(read(t, root, "VERSION")), 0o600)).To(Succeed())
	return folder
}

// files are those of the chart.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(folder, filesFolder, "*"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, path := range append(paths, filepath.Join(folder, chartFolder, "Chart.yaml"), filepath.Join(folder, chartFolder, "README.md")) {
		content, err := os.ReadFile(path)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		found[filepath.Base(path)] = string(content)
	}
	return found
}

func read(t *testing.T, folder, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, file))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}
