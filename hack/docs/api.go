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
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

const (
	crdFile   = "config/crd/bases/configwatch.ktechhub.io_configwatches.yaml"
	typesFile = "api/v1alpha1/configwatch_types.go"
)

// elsewhere is the types that Kubernetes documents.
var elsewhere = map[reflect.Type]string{
	reflect.TypeFor[metav1.Condition](): "[Condition](https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#Condition)",
	reflect.TypeFor[metav1.LabelSelector](): "[LabelSelector]" +
		"(https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/label-selector/)",
	reflect.TypeFor[metav1.ObjectMeta](): "[ObjectMeta]" +
		"(https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/)",
	reflect.TypeFor[metav1.Time]():      "time (RFC 3339)",
	reflect.TypeFor[metav1.MicroTime](): "time (RFC 3339)",
}

// apiPage documents the fields of a ConfigWatch, by its schema.
func apiPage(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, crdFile))
	if err != nil {
		return "", err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return "", fmt.Errorf("reading %s: %w", crdFile, err)
	}
	enums, err := readEnums(filepath.Join(root, typesFile))
	if err != nil {
		return "", err
	}
	p := &apiReference{enums: enums}
	p.kind(crd)
	p.object("", reflect.TypeFor[v1alpha1.ConfigWatch](), crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	p.values()
	return p.text.String(), nil
}

// apiReference is the page in the making.
type apiReference struct {
	enums []enum
	text  strings.Builder
}

func (p *apiReference) printf(format string, args ...any) {
	fmt.Fprintf(&p.text, format, args...)
}

// kind says what the kind is called and what kubectl prints of it.
func (p *apiReference) kind(crd *apiextensionsv1.CustomResourceDefinition) {
	spec, version := crd.Spec, crd.Spec.Versions[0]
	p.text.WriteString(generated(crdFile))
	p.printf("# API reference: %s\n\n", spec.Names.Kind)
	p.printf("What the fields do together is told in the [specification of the kind](../spec/%s/configwatch.md).\n\n", version.Name)
	p.printf("| | |\n|---|---|\n")
	p.printf("| apiVersion | `%s/%s` |\n", spec.Group, version.Name)
	p.printf("| kind | `%s` |\n", spec.Names.Kind)
	p.printf("| scope | %s |\n", spec.Scope)
	p.printf("| resource | `%s`, for short `%s` |\n", spec.Names.Plural, strings.Join(spec.Names.ShortNames, "`, `"))
	p.printf("| categories | `%s` |\n", strings.Join(spec.Names.Categories, "`, `"))
	for _, field := range version.SelectableFields {
		p.printf("| field selector | `%s` |\n", strings.TrimPrefix(field.JSONPath, "."))
	}
	p.printf("\n## Columns\n\nWhat `kubectl get %s` prints:\n\n", spec.Names.Plural)
	p.printf("| column | from | what it says |\n|---|---|---|\n")
	p.printf("| Name | `metadata.name` | |\n")
	for _, column := range version.AdditionalPrinterColumns {
		name := column.Name
		if column.Priority > 0 {
			name += " (with `-o wide`)"
		}
		p.printf("| %s | `%s` | %s |\n", name, strings.TrimPrefix(column.JSONPath, "."), column.Description)
	}
	p.printf("\n## Fields\n\n")
}

// object documents the fields of an object and then those of the objects within. The schema has
// the constraints, the type has the order.
func (p *apiReference) object(path string, t reflect.Type, schema *apiextensionsv1.JSONSchemaProps) {
	if path == "" {
		p.printf("### %s\n\n", t.Name())
	} else {
		p.printf("### `%s`\n\n", path)
	}
	p.printf("%s\n\n| field | type | what it is |\n|---|---|---|\n", oneLine(schema.Description))
	var within []func()
	for _, field := range fieldsOf(t) {
		property, ok := schema.Properties[field.name]
		if !ok || field.name == "apiVersion" && path == "" || field.name == "kind" && path == "" {
			continue
		}
		if field.name == "metadata" { // controller-gen leaves it out
			property.Description = "The standard object metadata."
		}
		kind, item, itemSchema := p.typeOf(field.Type, &property)
		if slices.Contains(schema.Required, field.name) {
			kind += ", required"
		}
		p.printf("| `%s` | %s | %s |\n", field.name, kind, p.description(&property))
		if itemSchema != nil {
			inner := strings.TrimPrefix(path+"."+field.name, ".")
			if property.Type == "array" {
				inner += "[]"
			}
			within = append(within, func() { p.object(inner, item, itemSchema) })
		}
	}
	p.printf("\n")
	p.rules(path, t, schema)
	for _, document := range within {
		document()
	}
}

// field is a field of a struct by its JSON name.
type field struct {
	reflect.StructField
	name string
}

func fieldsOf(t reflect.Type) []field {
	var fields []field
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue // the apiVersion and kind of every object
		}
		fields = append(fields, field{f, name})
	}
	return fields
}

// typeOf names the type of a field. If it holds objects that are documented here, it tells their type
// and schema.
func (p *apiReference) typeOf(t reflect.Type, schema *apiextensionsv1.JSONSchemaProps) (
	name string, item reflect.Type, itemSchema *apiextensionsv1.JSONSchemaProps,
) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if name, ok := elsewhere[t]; ok {
		return name, nil, nil
	}
	if schema.Type == "array" {
		name, item, itemSchema = p.typeOf(t.Elem(), schema.Items.Schema)
		return "list of " + name, item, itemSchema
	}
	if i := slices.IndexFunc(p.enums, func(e enum) bool { return e.name == t.Name() }); i >= 0 {
		return fmt.Sprintf("[%s](#%s)", t.Name(), strings.ToLower(t.Name())), nil, nil
	}
	if schema.Type == "object" {
		return "object", t, schema
	}
	return schema.Type, nil, nil
}

// description is a field's description, followed by what its value is bound to.
func (p *apiReference) description(schema *apiextensionsv1.JSONSchemaProps) string {
	text := oneLine(schema.Description)
	if bounds := boundsOf(schema); len(bounds) > 0 {
		text += " *(" + strings.Join(bounds, "; ") + ")*"
	}
	return text
}

func boundsOf(schema *apiextensionsv1.JSONSchemaProps) []string {
	var bounds []string
	if schema.Default != nil {
		bounds = append(bounds, "default: `"+compact(schema.Default.Raw)+"`")
	}
	bounds = append(bounds, between(schema.MinItems, schema.MaxItems, "item")...)
	bounds = append(bounds, between(schema.MinLength, schema.MaxLength, "character")...)
	switch {
	case schema.Minimum != nil && schema.Maximum != nil:
		bounds = append(bounds, fmt.Sprintf("%.f to %.f", *schema.Minimum, *schema.Maximum))
	case schema.Minimum != nil:
		bounds = append(bounds, fmt.Sprintf("at least %.f", *schema.Minimum))
	}
	if items := schema.Items; items != nil && items.Schema.Type == "string" {
		for _, bound := range between(items.Schema.MinLength, items.Schema.MaxLength, "character") {
			bounds = append(bounds, "each of "+bound)
		}
	}
	if schema.XListType != nil {
		switch *schema.XListType {
		case "set":
			bounds = append(bounds, "no item twice")
		case "map":
			bounds = append(bounds, "one item for each "+strings.Join(schema.XListMapKeys, ", "))
		}
	}
	return bounds
}

func between(least, most *int64, what string) []string {
	switch {
	case least != nil && most != nil:
		return []string{fmt.Sprintf("%d to %d %ss", *least, *most, what)}
	case most != nil:
		return []string{fmt.Sprintf("at most %d %ss", *most, what)}
	case least != nil:
		return []string{fmt.Sprintf("at least %d %ss", *least, what)}
	}
	return nil
}

// rules lists what the API server says when a rule of an object or of one of its fields is broken.
func (p *apiReference) rules(path string, t reflect.Type, schema *apiextensionsv1.JSONSchemaProps) {
	var broken []string
	for _, rule := range schema.XValidations {
		broken = append(broken, fmt.Sprintf("- `%s`: %s\n", strings.TrimPrefix(path+rule.FieldPath, "."), oneLine(rule.Message)))
	}
	for _, field := range fieldsOf(t) {
		if field.Type.Kind() == reflect.Struct {
			continue // its own section has them
		}
		property, inner := schema.Properties[field.name], strings.TrimPrefix(path+"."+field.name, ".")
		for _, rule := range property.XValidations {
			broken = append(broken, fmt.Sprintf("- `%s`: %s\n", inner+rule.FieldPath, oneLine(rule.Message)))
		}
		if property.Items == nil || property.Items.Schema.Type != "string" {
			continue
		}
		for _, rule := range property.Items.Schema.XValidations {
			broken = append(broken, fmt.Sprintf("- `%s[]`: %s\n", inner+rule.FieldPath, oneLine(rule.Message)))
		}
	}
	if len(broken) > 0 {
		p.printf("These messages say what is wrong with one that is refused:\n\n%s\n", strings.Join(broken, ""))
	}
}

// values documents the values that fields with a fixed choice can have.
func (p *apiReference) values() {
	p.printf("## Values\n")
	for _, e := range p.enums {
		p.printf("\n### %s\n\n%s\n\n| value | what it means |\n|---|---|\n", e.name, e.doc)
		for _, value := range e.values {
			p.printf("| `%s` | %s |\n", value.value, value.doc)
		}
	}
}

// oneLine makes a text fit the cell of a table, and nothing of it markup.
func oneLine(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`).Replace(strings.Join(strings.Fields(text), " "))
}

// compact is a JSON value as one would write it in YAML: a string without quotes.
func compact(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
