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
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const constantsFile = "api/v1alpha1/constants.go"

// constant is a constant of the API and its documentation.
type constant struct {
	name, value, doc string
}

// enum is a type whose constants are all of its values.
type enum struct {
	name, doc string
	values    []constant
}

// constantsPage documents the constants by which the operator talks: groups of them, in the order of
// the code.
func constantsPage(root string) (string, error) {
	file, err := parse(filepath.Join(root, constantsFile))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(generated(constantsFile))
	text.WriteString("# Conditions, reasons, Events and annotations\n\n" +
		"The words by which the operator talks, in status, Events and annotations. They are part of the API.\n")
	for _, group := range constantsOf(file) {
		constants, err := group.constants()
		if err != nil {
			return "", err
		}
		heading, more, _ := strings.Cut(oneLine(group.Doc.Text()), ". ")
		if !group.Lparen.IsValid() { // a constant on its own: its documentation is in the table
			heading, more = strings.Join(words(constants[0].name), " "), ""
		}
		fmt.Fprintf(&text, "\n## %s\n\n", strings.TrimSuffix(heading, "."))
		if more != "" {
			fmt.Fprintf(&text, "%s\n\n", more)
		}
		text.WriteString("| value | what it means |\n|---|---|\n")
		for _, c := range constants {
			fmt.Fprintf(&text, "| `%s` | %s |\n", c.value, c.doc)
		}
	}
	return text.String(), nil
}

// readEnums finds the types in a file that have constants.
func readEnums(path string) ([]enum, error) {
	file, err := parse(path)
	if err != nil {
		return nil, err
	}
	docs := map[string]string{}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			if t, ok := spec.(*ast.TypeSpec); ok {
				docs[t.Name.Name] = withoutMarkers(gen.Doc.Text())
			}
		}
	}
	var enums []enum
	for _, group := range constantsOf(file) {
		constants, err := group.constants()
		if err != nil {
			return nil, err
		}
		name := group.typeName()
		enums = append(enums, enum{name: name, doc: docs[name], values: constants})
	}
	return enums, nil
}

func parse(path string) (*ast.File, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("reading the code: %w", err)
	}
	return file, nil
}

// group is one declaration of constants.
type group struct{ *ast.GenDecl }

func constantsOf(file *ast.File) []group {
	var groups []group
	for _, decl := range file.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.CONST {
			groups = append(groups, group{gen})
		}
	}
	return groups
}

func (g group) constants() ([]constant, error) {
	var constants []constant
	for _, spec := range g.Specs {
		value := spec.(*ast.ValueSpec) // nothing else is in a declaration of constants
		name := value.Names[0].Name
		doc := value.Doc
		if doc == nil && !g.Lparen.IsValid() {
			doc = g.Doc
		}
		literal, ok := value.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || doc == nil {
			return nil, fmt.Errorf("constant %s needs a comment and a string for a value", name)
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			return nil, fmt.Errorf("constant %s: %w", name, err)
		}
		constants = append(constants, constant{name: name, value: text, doc: sentence(name, text, doc.Text())})
	}
	return constants, nil
}

func (g group) typeName() string {
	if ident, ok := g.Specs[0].(*ast.ValueSpec).Type.(*ast.Ident); ok {
		return ident.Name
	}
	return ""
}

// sentence makes a comment on a constant, which begins with its name, one on its value.
func sentence(name, value, comment string) string {
	text := oneLine(withoutMarkers(comment))
	if said, ok := strings.CutPrefix(text, name+": "); ok {
		text = said
	}
	if said, ok := strings.CutPrefix(text, name+" "); ok {
		return "`" + value + "` " + said
	}
	if said, ok := strings.CutPrefix(text, name+", "); ok {
		return "`" + value + "`, " + said
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// withoutMarkers removes the lines that are for controller-gen.
func withoutMarkers(comment string) string {
	var lines []string
	for line := range strings.Lines(comment) {
		if !strings.HasPrefix(line, "+") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

// words takes a name in CamelCase apart: "Field", "manager".
func words(name string) []string {
	var found []string
	for i, r := range name {
		if i == 0 || unicode.IsUpper(r) {
			found = append(found, "")
		}
		if i > 0 {
			r = unicode.ToLower(r)
		}
		found[len(found)-1] += string(r)
	}
	return found
}
