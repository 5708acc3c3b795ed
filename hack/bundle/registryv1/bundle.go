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

package registryv1

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Kinds of manifests that a bundle has a place of its own for.
const (
	csvKind = "ClusterServiceVersion"
	crdKind = "CustomResourceDefinition"
)

// Keys of metadata/annotations.yaml.
const (
	KeyMediaType      = "operators.operatorframework.io.bundle.mediatype.v1"
	KeyManifests      = "operators.operatorframework.io.bundle.manifests.v1"
	KeyMetadata       = "operators.operatorframework.io.bundle.metadata.v1"
	KeyPackage        = "operators.operatorframework.io.bundle.package.v1"
	KeyChannels       = "operators.operatorframework.io.bundle.channels.v1"
	KeyDefaultChannel = "operators.operatorframework.io.bundle.channel.default.v1"
	KeyTestMediaType  = "operators.operatorframework.io.test.mediatype.v1"
	KeyTestConfig     = "operators.operatorframework.io.test.config.v1"
)

// Bundle is a bundle as OLM reads it.
type Bundle struct {
	CSV  ClusterServiceVersion
	CRDs []apiextensionsv1.CustomResourceDefinition
	// Others are the other manifests.
	Others []*unstructured.Unstructured
	// Annotations are those of metadata/annotations.yaml.
	Annotations map[string]string
}

// Annotations is the file metadata/annotations.yaml.
type Annotations struct {
	Annotations map[string]string `json:"annotations"`
}

// Read reads the bundle in a folder.
func Read(folder string) (*Bundle, error) {
	b := &Bundle{}
	files, err := filepath.Glob(filepath.Join(folder, "manifests", "*"))
	if err != nil {
		return nil, fmt.Errorf("looking for manifests: %w", err)
	}
	for _, file := range files {
		if err := b.readManifest(file); err != nil {
			return nil, err
		}
	}
	if b.CSV.Name == "" {
		return nil, fmt.Errorf("%s has no %s", folder, csvKind)
	}
	annotations := &Annotations{}
	if err := readFile(filepath.Join(folder, "metadata", "annotations.yaml"), annotations); err != nil {
		return nil, err
	}
	b.Annotations = annotations.Annotations
	return b, nil
}

func (b *Bundle) readManifest(file string) error {
	object := &unstructured.Unstructured{}
	if err := readFile(file, &object.Object); err != nil {
		return err
	}
	switch object.GetKind() {
	case csvKind:
		return readFile(file, &b.CSV)
	case crdKind:
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := readFile(file, &crd); err != nil {
			return err
		}
		b.CRDs = append(b.CRDs, crd)
	default:
		b.Others = append(b.Others, object)
	}
	return nil
}

func readFile(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading a bundle: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}
