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
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/hack/bundle/registryv1"
)

const repository = "../.."

// long is a time at which no bundle was made.
var long = time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC)

func TestTheBundleIsInStepWithTheTree(t *testing.T) {
	g := NewWithT(t)
	files, err := generate(options{root: repository}, long)
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for name, content := range files {
		names = append(names, name)
		g.Expect(read(t, name)).To(Equal(string(content)), "%s is out of date; run: make bundle", name)
	}
	g.Expect(names).To(ConsistOf(append(filesIn(t, repository, bundleFolder, catalogFolder), "bundle.Dockerfile")))
}

func TestGeneratingTwiceChangesNothing(t *testing.T) {
	g := NewWithT(t)
	opts := options{root: copyOfTheTree(t)}
	g.Expect(run(opts, long)).To(Succeed())
	first := contents(t, opts.root)
	g.Expect(run(opts, long.Add(time.Hour))).To(Succeed())
	g.Expect(contents(t, opts.root)).To(Equal(first))
}

func TestCreatedAtChangesWithTheVersionAndWithNothingElse(t *testing.T) {
	g := NewWithT(t)
	opts := options{root: copyOfTheTree(t), version: "0.1.0"}
	generateAt := func(at time.Time) string {
		g.Expect(run(opts, at)).To(Succeed())
		bundle, err := registryv1.Read(filepath.Join(opts.root, bundleFolder))
		g.Expect(err).NotTo(HaveOccurred())
		return bundle.CSV.Annotations["createdAt"]
	}
	g.Expect(generateAt(long)).To(Equal("2006-01-02T15:04:05Z"))
	opts.image = "registry.example/configwatch:other"
	g.Expect(generateAt(long.Add(time.Hour))).To(Equal("2006-01-02T15:04:05Z"))
	opts.version = "0.2.0"
	g.Expect(generateAt(long.Add(2 * time.Hour))).To(Equal("2006-01-02T17:04:05Z"))
}

func TestWhatIsNotGeneratedAnyMoreGoes(t *testing.T) {
	g := NewWithT(t)
	opts := options{root: copyOfTheTree(t)}
	g.Expect(run(opts, long)).To(Succeed())
	stale := filepath.Join(opts.root, bundleFolder, "manifests", "stale.yaml")
	g.Expect(os.WriteFile(stale, nil, 0o600)).To(Succeed())
	g.Expect(run(opts, long)).To(Succeed())
	g.Expect(stale).NotTo(BeAnExistingFile())
}

func TestTheOptionsNameImagesAndVersion(t *testing.T) {
	g := NewWithT(t)
	opts := options{root: copyOfTheTree(t), version: "1.2.3", image: "registry.example:5000/configwatch:test"}
	g.Expect(run(opts, long)).To(Succeed())
	bundle, err := registryv1.Read(filepath.Join(opts.root, bundleFolder))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bundle.CSV.Name).To(Equal("configwatch.v1.2.3"))
	g.Expect(bundle.CSV.Spec.Version).To(Equal("1.2.3"))
	g.Expect(bundle.CSV.Annotations).To(HaveKeyWithValue("containerImage", opts.image))
	g.Expect(bundle.CSV.Spec.RelatedImages).To(HaveExactElements(HaveField("Image", opts.image)))
	g.Expect(bundle.CSV.Spec.Install.Spec.Deployments[0].Spec.Template.Spec.Containers[0].Image).To(Equal(opts.image))
	catalog, err := os.ReadFile(filepath.Join(opts.root, "catalog/configwatch/catalog.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(catalog)).To(ContainSubstring("\nimage: registry.example:5000/configwatch-bundle:v1.2.3\n"))
}

func TestWhatCantBecomeABundleIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		version, file, old, new string
		message                 string
	}{
		"a version that is none": {
			version: "1.2", file: "VERSION",
			message: "the version is not a semantic one",
		},
		"a field that ClusterServiceVersions don't have": {
			file: csvBase, old: "maturity:", new: "maturty:",
			message: `unknown field "spec.maturty"`,
		},
		"a descriptor of a field that the CRD doesn't have": {
			file: csvBase, old: "path: rollout.settleSeconds", new: "path: rollout.settleMinutes",
			message: "specDescriptors of ConfigWatch: the CRD has no field rollout.settleMinutes",
		},
		"a descriptor of an item of what is no list": {
			file: csvBase, old: "path: summary.targets", new: "path: summary[0].targets",
			message: "statusDescriptors of ConfigWatch: summary of summary[0].targets is no list in the CRD",
		},
		"a descriptor whose path is none": {
			file: csvBase, old: "path: targets[0].name", new: "path: targets[x].name",
			message: `"targets[x].name" is no path`,
		},
		"a version of the kind that isn't served": {
			file: csvBase, old: "      version: v1alpha1", new: "      version: v2",
			message: "there is no CRD of configwatches.configwatch.ktechhub.io in version v2",
		},
		"a manifest of a kind that hack/bundle doesn't know": {
			file: "config/default/metrics_service.yaml", old: "kind: Service", new: "kind: Gateway",
			message: "it is not known what OLM is to do with it",
		},
		"a binding to somebody else": {
			file: "config/rbac/role_binding.yaml", old: "kind: ServiceAccount", new: "kind: User",
			message: "ClusterRoleBinding configwatch-manager-rolebinding is not of one of its ClusterRoles to the operator",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			opts := options{root: copyOfTheTree(t), version: tc.version}
			file := filepath.Join(opts.root, tc.file)
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(text)).To(ContainSubstring(tc.old))
			g.Expect(os.WriteFile(file, []byte(strings.Replace(string(text), tc.old, tc.new, 1)), 0o600)).To(Succeed())
			g.Expect(run(opts, long)).To(MatchError(ContainSubstring(tc.message)))
			g.Expect(filepath.Join(opts.root, bundleFolder)).NotTo(BeAnExistingFile())
		})
	}
}

const csvBase = "config/manifests/bases/configwatch.clusterserviceversion.yaml"

// copyOfTheTree is a folder with a copy of what bundles are generated from.
func copyOfTheTree(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	for _, name := range filesIn(t, repository, "config") {
		if filepath.Ext(name) == ".go" {
			continue
		}
		g.Expect(os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(folder, name), []byte(read(t, name)), 0o600)).To(Succeed())
	}
	g.Expect(os.WriteFile(filepath.Join(folder, "VERSION"), []byte(read(t, "VERSION")), 0o600)).To(Succeed())
	return folder
}

// contents are the generated files in a folder.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range append(filesIn(t, root, bundleFolder, catalogFolder), "bundle.Dockerfile") {
		text, err := os.ReadFile(filepath.Join(root, name))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		found[name] = string(text)
	}
	return found
}

// filesIn are the paths of all files in folders of a root.
func filesIn(t *testing.T, root string, folders ...string) []string {
	t.Helper()
	var found []string
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				name, err := filepath.Rel(root, path)
				found = append(found, filepath.ToSlash(name))
				return err
			}
			return err
		})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	slices.Sort(found)
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, file))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}
