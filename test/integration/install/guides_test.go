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

package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/hack/controlplane"
)

// The sections of the pages on how to install.
const (
	sectionInstall   = "Install"
	sectionFirst     = "Your first ConfigWatch"
	sectionUpgrade   = "Upgrade"
	sectionUninstall = "Uninstall"
)

var _ = Describe("docs/install/helm.md", Ordered, func() {
	page := guide{
		file: "docs/install/helm.md",
		here: strings.NewReplacer("oci://ghcr.io/ktechhub/charts/configwatch --version 0.1.0", chartFolder),
	}

	It("has commands that work, from the installation to an upgrade", func(ctx SpecContext) {
		run(ctx, "make", "bin/helm")
		page.follow(ctx, sectionInstall)
		newOperator(ctx, chart(ctx)).start(ctx) // in place of its pods, which are fake
		page.follow(ctx, sectionFirst)
		page.follow(ctx, sectionUpgrade)
	})

	It("has commands that leave nothing", func(ctx SpecContext) {
		page.follow(ctx, sectionUninstall)
		expectNothingLeft(ctx)
	})
})

var _ = Describe("docs/install/kustomize.md", Ordered, func() {
	var page guide

	BeforeAll(func(ctx SpecContext) {
		installer := filepath.Join(GinkgoT().TempDir(), "install.yaml")
		Expect(os.WriteFile(installer, []byte(kubectl(ctx, "kustomize", "config/default")), 0o600)).To(Succeed())
		page = guide{
			file: "docs/install/kustomize.md",
			here: strings.NewReplacer("https://github.com/ktechhub/configwatch/releases/download/v0.1.0/install.yaml", installer),
		}
	})

	It("has commands that work, from the installation to an upgrade", func(ctx SpecContext) {
		page.follow(ctx, sectionInstall)
		newOperator(ctx, render(ctx, "config/default")).start(ctx) // in place of its pods, which are fake
		page.follow(ctx, sectionFirst)
		page.follow(ctx, sectionUpgrade)
	})

	It("has commands that leave nothing", func(ctx SpecContext) {
		page.follow(ctx, sectionUninstall)
		expectNothingLeft(ctx)
	})
})

var _ = Describe("docs/install/olm.md", func() {
	It("has the first ConfigWatch of the other pages", func() {
		Expect(section("docs/install/olm.md", sectionFirst)).To(Equal(section("docs/install/helm.md", sectionFirst)))
	})
})

// guide is a page with commands.
type guide struct {
	file string
	// here are replacements for what can't be reached from a test.
	here *strings.Replacer
}

var commands = regexp.MustCompile("(?s)\n```sh\n(.*?)\n```\n")

// follow runs the commands of a section, as a reader would.
func (g guide) follow(ctx context.Context, title string) {
	GinkgoHelper()
	blocks := commands.FindAllStringSubmatch(section(g.file, title), -1)
	Expect(blocks).NotTo(BeEmpty(), "section %s of %s has no commands", title, g.file)
	tools := must(filepath.Abs(filepath.Join(root, "bin")))
	for _, block := range blocks {
		script := g.here.Replace(block[1])
		command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
		command.Dir = root
		command.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "KUBECONFIG="+plane.Kubeconfig(),
			"PATH="+strings.Join([]string{tools, filepath.Dir(plane.Program(controlplane.Kubectl)), os.Getenv("PATH")}, string(os.PathListSeparator)))
		out, err := command.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s\n%s", script, out)
	}
}

// section is a section of a page.
func section(page, title string) string {
	GinkgoHelper()
	_, rest, found := strings.Cut(string(must(os.ReadFile(filepath.Join(root, page)))), "\n## "+title+"\n")
	Expect(found).To(BeTrue(), "%s has no section %s", page, title)
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// expectNothingLeft checks that nothing of the operator is left in the cluster, and removes the example of the guides.
func expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "namespace", "shop")
	for _, kinds := range []string{"crds,clusterroles,clusterrolebindings", "namespaces", "roles,rolebindings,deployments,services"} {
		Expect(kubectl(ctx, "get", kinds, "--all-namespaces", "-o", "name")).NotTo(ContainSubstring("configwatch"))
	}
}
