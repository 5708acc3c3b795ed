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
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	repository    = "../.."
	specification = "docs/spec/v1alpha1/configwatch.md"
)

func TestReferenceIsInStepWithTheCode(t *testing.T) {
	for _, p := range pages {
		t.Run(p.file, func(t *testing.T) {
			g := NewWithT(t)
			want, err := p.write(repository)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(read(t, filepath.Join("docs/reference", p.file))).To(Equal(want), "run: go run ./hack/docs")
		})
	}
}

func TestSpecificationExplainsEveryConstant(t *testing.T) {
	g := NewWithT(t)
	file, err := parse(filepath.Join(repository, constantsFile))
	g.Expect(err).NotTo(HaveOccurred())
	text := read(t, specification)
	for _, group := range constantsOf(file) {
		constants, err := group.constants()
		g.Expect(err).NotTo(HaveOccurred())
		for _, c := range constants {
			if notForUsers[c.name] {
				continue
			}
			g.Expect(strings.Contains(text, "`"+c.value)).To(BeTrue(), "%s has nothing on %s", specification, c.name)
		}
	}
}

// notForUsers is the constants that a user of ConfigWatches has nothing to do with.
var notForUsers = map[string]bool{
	"ActionRestart": true, // an Event's reason says more than its action
	"ActionObserve": true,
}

func TestSpecificationExplainsEveryFieldAndValue(t *testing.T) {
	g := NewWithT(t)
	text := read(t, specification)
	for line := range strings.Lines(read(t, "docs/reference/api.md")) {
		// Rows of fields and of values begin with a name in backticks.
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			named := regexp.MustCompile("[`.]" + regexp.QuoteMeta(name) + "[`:.]")
			g.Expect(named.MatchString(text)).To(BeTrue(), "%s has nothing on %s", specification, name)
		}
	}
}

func TestConstantsAreRefusedWithoutAComment(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "constants.go")
	g.Expect(os.WriteFile(path, []byte("package x\n\nconst (\n\tReasonX = \"X\"\n)\n"), 0o600)).To(Succeed())
	_, err := readEnums(path)
	g.Expect(err).To(MatchError("constant ReasonX needs a comment and a string for a value"))
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, file))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}
