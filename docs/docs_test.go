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

// Package docs_test checks what the pages say against the tree: links, commands, names in the code.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	. "github.com/onsi/gomega"
)

const (
	root         = ".."
	architecture = "docs/architecture.md"
)

func TestEveryRelativeLinkLeadsToAFileAndAHeading(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(prose(read(t, page)), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(match[1], "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			g := NewWithT(t)
			_, err := os.Stat(filepath.Join(root, file))
			g.Expect(err).NotTo(HaveOccurred(), "%s links to %s", page, match[1])
			if anchor != "" {
				g.Expect(anchors(read(t, file))).To(ContainElement(anchor), "%s links to %s", page, match[1])
			}
		}
	}
}

func TestEveryMakeTargetThatIsNamedExists(t *testing.T) {
	targets := makeTargets(t)
	named := regexp.MustCompile("(?m)(?:^|`)make((?: [a-z][a-z-]*)+)")
	for _, page := range pages(t) {
		for _, match := range named.FindAllStringSubmatch(read(t, page), -1) {
			for name := range strings.FieldsSeq(match[1]) {
				NewWithT(t).Expect(targets).To(HaveKey(name), "%s says: make%s", page, match[1])
			}
		}
	}
}

func TestTheWorkflowsPinWhatTheyUseAndRunMakeTargets(t *testing.T) {
	workflows, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yaml"))
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(workflows).To(HaveLen(2))
	targets := makeTargets(t)
	used := regexp.MustCompile(`(?m)^ *(?:- )?uses: (.*)$`)
	made := regexp.MustCompile(`(?m)^[^#\n]*(?:\bmake(?: --silent)?((?: [a-z][a-z-]*)+)|\btarget: \[(.*)\])`)
	for _, file := range workflows {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for _, match := range used.FindAllStringSubmatch(string(text), -1) {
			g.Expect(match[1]).To(MatchRegexp(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`), file)
		}
		runs := made.FindAllStringSubmatch(string(text), -1)
		g.Expect(runs).NotTo(BeEmpty(), file)
		for _, match := range runs {
			for name := range strings.FieldsSeq(strings.ReplaceAll(match[1]+match[2], ",", " ")) {
				g.Expect(targets).To(HaveKey(name), "%s runs: make %s", file, name)
			}
		}
	}
}

// makeTargets are those of all makefiles.
func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	makefiles, err := filepath.Glob(filepath.Join(root, "hack", "*", "*.mk"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	targets := map[string]bool{}
	target := regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	for _, file := range append(makefiles, filepath.Join(root, "Makefile")) {
		text, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, match := range target.FindAllStringSubmatch(string(text), -1) {
			targets[match[1]] = true
		}
	}
	return targets
}

func TestTroubleshootingHasEveryConditionAndReason(t *testing.T) {
	const page = "docs/troubleshooting.md"
	text := read(t, page)
	for name, value := range constants(t, "api/v1alpha1/constants.go") {
		for _, prefix := range []string{"Condition", "Reason", "Event"} {
			if strings.HasPrefix(name, prefix) {
				NewWithT(t).Expect(text).To(ContainSubstring("`"+value+"`"), "%s has nothing on %s", page, name)
			}
		}
	}
}

func TestEveryDirectDependencyHasItsReason(t *testing.T) {
	const page = "docs/dependencies.md"
	text := read(t, page)
	modules, err := filepath.Glob(filepath.Join(root, "hack", "*", "*", "go.mod"))
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range append(modules, filepath.Join(root, "go.mod"), filepath.Join(root, "test", "alerts", "go.mod")) {
		found := directRequirements(t, file)
		g.Expect(found).NotTo(BeEmpty(), file)
		for _, module := range found {
			g.Expect(text).To(ContainSubstring("`"+module+"`"), "%s has no reason for %s of %s", page, module, file)
		}
	}
}

func TestTheChangelogHasTheVersion(t *testing.T) {
	version := strings.TrimSpace(read(t, "VERSION"))
	NewWithT(t).Expect(read(t, "CHANGELOG.md")).To(ContainSubstring("\n## [" + version + "]"))
}

func TestTheArchitectureNamesFunctionsThatAreThere(t *testing.T) {
	named := regexp.MustCompile("`([\\w.]+)\\(\\)`(?:\\s+and\\s+`([\\w.]+)\\(\\)`)?\\s+in\\s+`((?:api|cmd|internal)/[\\w/]+\\.go)`")
	found := named.FindAllStringSubmatch(read(t, architecture), -1)
	NewWithT(t).Expect(len(found)).To(BeNumerically(">", 20))
	for _, match := range found {
		declared := functions(t, match[3])
		for _, name := range match[1:3] {
			if name != "" {
				NewWithT(t).Expect(declared).To(ContainElement(name), "%s says that %s has it", architecture, match[3])
			}
		}
	}
}

func TestTheArchitectureHasEveryPackageAndWhatItImports(t *testing.T) {
	documented := map[string][]string{}
	var order []string
	row := regexp.MustCompile("(?m)^\\| `((?:api|cmd|internal)[\\w/-]*)` \\|[^|]*\\|([^|]*)\\|$")
	for _, match := range row.FindAllStringSubmatch(read(t, architecture), -1) {
		documented[match[1]] = inBackticks(match[2])
		order = append(order, match[1])
	}
	g := NewWithT(t)
	imports := importsOf(t, "api", "cmd", "internal")
	g.Expect(order).To(ConsistOf(keys(imports)), "the packages in the table of %s", architecture)
	for name, want := range imports {
		g.Expect(documented[name]).To(ConsistOf(want), "%s says what %s imports", architecture, name)
		for _, imported := range want {
			g.Expect(slices.Index(order, name)).To(BeNumerically("<", slices.Index(order, imported)), "%s imports %s", name, imported)
		}
	}
}

// pages are the paths of all pages, from the root.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && slices.Contains([]string{".git", "bin", "dist"}, entry.Name()) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			found = append(found, strings.TrimPrefix(path, root+string(filepath.Separator)))
		}
		return err
	})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(ContainElements("README.md", architecture))
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var (
	block  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inline = regexp.MustCompile("`[^`\n]*`")
)

// prose is a page without its code.
func prose(page string) string {
	return inline.ReplaceAllString(block.ReplaceAllString(page, ""), "")
}

// anchors are those that headings get: lower case, without punctuation, spaces as dashes.
func anchors(page string) []string {
	var found []string
	for line := range strings.Lines(block.ReplaceAllString(page, "")) {
		level, heading, _ := strings.Cut(strings.TrimSpace(line), " ")
		if level == "" || strings.Trim(level, "#") != "" {
			continue
		}
		found = append(found, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, heading))
	}
	return found
}

func inBackticks(cell string) []string {
	var found []string
	for _, match := range inline.FindAllString(cell, -1) {
		found = append(found, strings.Trim(match, "`"))
	}
	return found
}

// directRequirements are the modules that a go.mod requires, and the tools that it has, for their own sake.
func directRequirements(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	own := regexp.MustCompile(`(?m)^module (\S+)$`).FindStringSubmatch(string(text))[1]
	var found []string
	for _, match := range regexp.MustCompile(`(?m)^(?:require |\t)(\S+) v\S+$`).FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	for _, match := range regexp.MustCompile(`(?m)^tool (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if !strings.HasPrefix(match[1], own) {
			found = append(found, match[1])
		}
	}
	return found
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return parsed
}

// constants are the strings that a file declares, by name.
func constants(t *testing.T, file string) map[string]string {
	t.Helper()
	found := map[string]string{}
	ast.Inspect(parse(t, file), func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				value, err := strconv.Unquote(literal.Value)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				found[spec.Names[0].Name] = value
			}
		}
		return true
	})
	NewWithT(t).Expect(found).To(HaveKey("ConditionReady"))
	return found
}

// functions are those that a file declares; methods as Type.Name.
func functions(t *testing.T, file string) []string {
	t.Helper()
	var found []string
	for _, declaration := range parse(t, file).Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			name = receiver(f.Recv.List[0].Type) + "." + name
		}
		found = append(found, name)
	}
	return found
}

func receiver(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

// importsOf are the packages under the folders, and what each imports of this module, its tests left out.
func importsOf(t *testing.T, folders ...string) map[string][]string {
	t.Helper()
	const module = "github.com/ktechhub/configwatch/"
	found := map[string][]string{}
	g := NewWithT(t)
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := filepath.Rel(root, path)
			g.Expect(err).NotTo(HaveOccurred())
			name := filepath.ToSlash(filepath.Dir(file))
			imports := found[name]
			for _, spec := range parse(t, file).Imports {
				if imported, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ok && !slices.Contains(imports, imported) {
					imports = append(imports, imported)
				}
			}
			found[name] = imports
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	return found
}

func keys(of map[string][]string) []string {
	var found []string
	for key := range of {
		found = append(found, key)
	}
	return found
}
