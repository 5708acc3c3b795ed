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
	"regexp"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ktechhub/configwatch/hack/bundle/registryv1"
)

const (
	annotationExamples  = "alm-examples"
	annotationImage     = "containerImage"
	annotationCreatedAt = "createdAt"
	annotationSkipRange = "olm.skipRange"

	iconFile = "config/manifests/icon.svg"
)

// clusterServiceVersion adds to the base what follows from the other manifests and the options.
func (m *manifests) clusterServiceVersion(opts options, createdAt string) (*registryv1.ClusterServiceVersion, error) {
	csv := m.base
	csv.Name = packageName + ".v" + opts.version
	csv.Spec.Version = opts.version

	icon, err := os.ReadFile(filepath.Join(opts.root, iconFile))
	if err != nil {
		return nil, fmt.Errorf("reading the icon: %w", err)
	}
	csv.Spec.Icon = []registryv1.Icon{{Data: icon, MediaType: "image/svg+xml"}}

	examples, err := m.almExamples()
	if err != nil {
		return nil, err
	}
	csv.Annotations[annotationExamples] = examples
	csv.Annotations[annotationImage] = opts.image
	csv.Annotations[annotationCreatedAt] = createdAt
	csv.Annotations[annotationSkipRange] = skipRange(opts.version)
	csv.Spec.RelatedImages = []registryv1.RelatedImage{{Name: m.deployment.Spec.Template.Spec.Containers[0].Name, Image: opts.image}}

	if err := m.describe(csv.Spec.CustomResourceDefinitions.Owned); err != nil {
		return nil, err
	}
	csv.Spec.Install, err = m.install(opts)
	return &csv, err
}

// skipRange is the versions from which OLM may upgrade to this one at once: all before it. What is recorded stays in
// the status of the ConfigWatches, so that no version between has to have run.
func skipRange(version string) string {
	return "<" + version
}

// install is how OLM runs the operator.
func (m *manifests) install(opts options) (registryv1.Install, error) {
	permissions, err := m.permissions()
	if err != nil {
		return registryv1.Install{}, err
	}
	clusterPermissions, err := m.clusterPermissions()
	if err != nil {
		return registryv1.Install{}, err
	}
	spec := *m.deployment.Spec.DeepCopy()
	spec.Template.Spec.Containers[0].Image = opts.image
	return registryv1.Install{
		Strategy: "deployment",
		Spec: registryv1.InstallSpec{
			ClusterPermissions: clusterPermissions,
			Permissions:        permissions,
			Deployments:        []registryv1.Deployment{{Name: m.deployment.Name, Label: m.deployment.Labels, Spec: spec}},
		},
	}, nil
}

// almExamples are the examples as JSON, from which consoles make forms.
func (m *manifests) almExamples() (string, error) {
	var objects []any
	for _, example := range m.examples {
		objects = append(objects, example.Object)
	}
	text, err := json.MarshalIndent(objects, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding the examples: %w", err)
	}
	return string(text), nil
}

// describe gives the owned kinds and their fields the descriptions that the CRD has.
func (m *manifests) describe(owned []registryv1.CRDDescription) error {
	for i, kind := range owned {
		schema := m.schema(kind.Version)
		if kind.Name != m.crd.Name || kind.Kind != m.crd.Spec.Names.Kind || schema == nil {
			return fmt.Errorf("there is no CRD of %s in version %s", kind.Name, kind.Version)
		}
		owned[i].Description = inOneLine(schema.Description)
		spec, status := schema.Properties["spec"], schema.Properties["status"]
		if err := describeFields(kind.SpecDescriptors, &spec); err != nil {
			return fmt.Errorf("specDescriptors of %s: %w", kind.Kind, err)
		}
		if err := describeFields(kind.StatusDescriptors, &status); err != nil {
			return fmt.Errorf("statusDescriptors of %s: %w", kind.Kind, err)
		}
	}
	return nil
}

func (m *manifests) schema(version string) *apiextensionsv1.JSONSchemaProps {
	for _, v := range m.crd.Spec.Versions {
		if v.Name == version {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

func describeFields(descriptors []registryv1.Descriptor, schema *apiextensionsv1.JSONSchemaProps) error {
	for i, descriptor := range descriptors {
		field, err := fieldAt(schema, descriptor.Path)
		if err != nil {
			return err
		}
		descriptors[i].Description = inOneLine(field.Description)
	}
	return nil
}

// step is a part of a path between dots: a name, and for an item of a list, a number.
var step = regexp.MustCompile(`^(\w+)(\[0\])?$`)

// fieldAt is the schema at a path such as targets[0].name.
func fieldAt(schema *apiextensionsv1.JSONSchemaProps, path string) (*apiextensionsv1.JSONSchemaProps, error) {
	for part := range strings.SplitSeq(path, ".") {
		match := step.FindStringSubmatch(part)
		if match == nil {
			return nil, fmt.Errorf("%q is no path: write names, with [0] after those of lists, and dots between", path)
		}
		field, ok := schema.Properties[match[1]]
		if !ok {
			return nil, fmt.Errorf("the CRD has no field %s", path)
		}
		schema = &field
		if match[2] != "" {
			if schema.Items == nil || schema.Items.Schema == nil {
				return nil, fmt.Errorf("%s of %s is no list in the CRD", match[1], path)
			}
			schema = schema.Items.Schema
		}
	}
	return schema, nil
}

func inOneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

// createdAt is when the first bundle of this version was made: now, unless there is one already. So it changes with the
// version, and generating a bundle again changes nothing.
func createdAt(opts options, now time.Time) string {
	old, err := registryv1.Read(filepath.Join(opts.root, bundleFolder))
	if err == nil && old.CSV.Spec.Version == opts.version {
		if at := old.CSV.Annotations[annotationCreatedAt]; at != "" {
			return at
		}
	}
	return now.UTC().Format(time.RFC3339)
}
