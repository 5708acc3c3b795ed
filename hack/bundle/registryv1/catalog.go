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

// Schemas of what a file-based catalogue has.
const (
	SchemaPackage = "olm.package"
	SchemaChannel = "olm.channel"
	SchemaBundle  = "olm.bundle"
)

// Types of the properties of a bundle in a catalogue.
const (
	PropertyPackage     = "olm.package"
	PropertyGVK         = "olm.gvk"
	PropertyCSVMetadata = "olm.csv.metadata"
)

// CatalogPackage is an operator in a catalogue.
type CatalogPackage struct {
	Schema         string `json:"schema"`
	Name           string `json:"name"`
	DefaultChannel string `json:"defaultChannel"`
	Description    string `json:"description,omitempty"`
	Icon           *Icon  `json:"icon,omitempty"`
}

// CatalogChannel is a way of upgrades through the bundles of a package.
type CatalogChannel struct {
	Schema  string         `json:"schema"`
	Package string         `json:"package"`
	Name    string         `json:"name"`
	Entries []ChannelEntry `json:"entries"`
}

// ChannelEntry is a bundle in a channel, and which ones it is an upgrade of.
type ChannelEntry struct {
	Name      string `json:"name"`
	Replaces  string `json:"replaces,omitempty"`
	SkipRange string `json:"skipRange,omitempty"`
}

// CatalogBundle is what a catalogue tells of a bundle, which is in an image of its own.
type CatalogBundle struct {
	Schema        string         `json:"schema"`
	Package       string         `json:"package"`
	Name          string         `json:"name"`
	Image         string         `json:"image"`
	Properties    []Property     `json:"properties"`
	RelatedImages []RelatedImage `json:"relatedImages"`
}

// Property is something that OLM takes into account when it chooses a bundle, or shows.
type Property struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// PackageProperty is the value of PropertyPackage.
type PackageProperty struct {
	PackageName string `json:"packageName"`
	Version     string `json:"version"`
}

// GVKProperty is the value of PropertyGVK: a kind that the bundle brings along.
type GVKProperty struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// CSVMetadata is the value of PropertyCSVMetadata: what is shown of a bundle before it is pulled.
type CSVMetadata struct {
	Annotations           map[string]string         `json:"annotations,omitempty"`
	APIServiceDefinitions struct{}                  `json:"apiServiceDefinitions"`
	CRDDescriptions       CustomResourceDefinitions `json:"crdDescriptions"`
	Description           string                    `json:"description,omitempty"`
	DisplayName           string                    `json:"displayName,omitempty"`
	InstallModes          []InstallMode             `json:"installModes,omitempty"`
	Keywords              []string                  `json:"keywords,omitempty"`
	Labels                map[string]string         `json:"labels,omitempty"`
	Links                 []Link                    `json:"links,omitempty"`
	Maintainers           []Maintainer              `json:"maintainers,omitempty"`
	Maturity              string                    `json:"maturity,omitempty"`
	MinimumKubernetes     string                    `json:"minKubeVersion,omitempty"`
	Provider              Link                      `json:"provider"`
}
