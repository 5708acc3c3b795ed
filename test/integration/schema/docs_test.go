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

package schema

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	yamlBlock     = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	namespaceLine = regexp.MustCompile(`(?m)^  namespace: .*\n|, namespace: [^,}]+`)
)

var _ = Describe("The examples of the documentation", func() {
	It("are taken by the API server", func(ctx SpecContext) {
		specs, statuses := 0, 0
		for _, example := range examples() {
			for document := range strings.SplitSeq(example, "\n---\n") {
				switch {
				case strings.Contains(document, "\nkind: ConfigWatch\n"):
					Expect(createExample(ctx, namespaceLine.ReplaceAllString(document, ""))).To(Succeed(), document)
					specs++
				case strings.HasPrefix(document, "spec:\n"):
					Expect(createExample(ctx, withSpec("example", "")+"\n"+strings.TrimPrefix(document, "spec:\n"))).To(Succeed(), document)
					specs++
				case strings.HasPrefix(document, "status:\n"):
					Expect(writeStatus(ctx, document)).To(Succeed(), document)
					statuses++
				}
			}
		}
		Expect(specs).To(BeNumerically(">=", 4))
		Expect(statuses).To(BeNumerically(">=", 1))
	})
})

// examples is every block of YAML in the README and in docs.
func examples() []string {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(root, "README.md"))
	Expect(err).NotTo(HaveOccurred())
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	var blocks []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			blocks = append(blocks, block[1])
		}
	}
	return blocks
}

// createExample is a dry run, so that examples may have the same name.
func createExample(ctx context.Context, manifest string) error {
	return request(rawClient.Post(), manifest).Param("dryRun", metav1.DryRunAll).Do(ctx).Error()
}

// writeStatus writes a status, in YAML, through the subresource.
func writeStatus(ctx context.Context, status string) error {
	GinkgoHelper()
	Expect(create(ctx, withSpec("web", web))).To(Succeed())
	version := get(ctx, "web").ResourceVersion
	manifest := strings.Replace(withSpec("web", web), "name: web}", `name: web, resourceVersion: "`+version+`"}`, 1)
	return request(rawClient.Put(), manifest+"\n"+status).Name("web").SubResource("status").Do(ctx).Error()
}
