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
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/ktechhub/configwatch/hack/argocd/customization"
)

const root = "../.."

// TestTheComponentAddsTheScriptsToArgoCD renders an installation of Argo CD, as far as it matters, with the component.
func TestTheComponentAddsTheScriptsToArgoCD(t *testing.T) {
	g := NewWithT(t)
	fs := filesys.MakeFsInMemory()
	write := func(path string, text []byte) {
		g.Expect(fs.WriteFile(path, text)).To(Succeed())
	}
	for _, name := range []string{"kustomization.yaml", "argocd-cm.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "config", "argocd", name))
		g.Expect(err).NotTo(HaveOccurred())
		write("component/"+name, text)
	}
	write("argocd/kustomization.yaml", []byte("namespace: argocd\nresources: [cm.yaml]\ncomponents: [../component]\n"))
	write("argocd/cm.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata: {url: https://argocd.example.com}\n"))

	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "argocd")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rendered.Size()).To(Equal(1))
	data := rendered.Resources()[0].GetDataMap()
	scripts, err := customization.Read(root)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(data).To(HaveLen(3))
	g.Expect(data).To(HaveKeyWithValue("url", "https://argocd.example.com"))
	g.Expect(data).To(HaveKeyWithValue("resource.customizations.health.configwatch.ktechhub.io_ConfigWatch", scripts.Health))
	var shipped actions
	g.Expect(yaml.Unmarshal([]byte(data["resource.customizations.actions.configwatch.ktechhub.io_ConfigWatch"]), &shipped)).To(Succeed())
	g.Expect(shipped.Discovery).To(Equal(scripts.Discovery))
	g.Expect(shipped.Definitions).To(HaveLen(len(scripts.Actions)))
	for _, action := range shipped.Definitions {
		g.Expect(action.Script).To(Equal(scripts.Actions[action.Name]), action.Name)
	}
}
