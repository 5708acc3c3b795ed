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

// Package registryv1 has OLM's bundles, in the format registry+v1, and its file-based catalogues, as far as those of
// ConfigWatch go. hack/bundle writes them and tests read them.
//
// The types are ours, because the module that has OLM's own brings a whole set of libraries along. They are named as
// OLM names them, and a bundle is read strictly: a field that isn't here is an error.
package registryv1

import (
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterServiceVersion is what OLM knows of a version of an operator.
type ClusterServiceVersion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec ClusterServiceVersionSpec `json:"spec"`
}

// ClusterServiceVersionSpec says what the operator is, and how it is installed.
type ClusterServiceVersionSpec struct {
	DisplayName    string         `json:"displayName"`
	Description    string         `json:"description,omitempty"`
	Version        string         `json:"version"`
	Replaces       string         `json:"replaces,omitempty"`
	Maturity       string         `json:"maturity,omitempty"`
	MinKubeVersion string         `json:"minKubeVersion,omitempty"`
	Keywords       []string       `json:"keywords,omitempty"`
	Maintainers    []Maintainer   `json:"maintainers,omitempty"`
	Provider       Link           `json:"provider"`
	Links          []Link         `json:"links,omitempty"`
	Icon           []Icon         `json:"icon,omitempty"`
	InstallModes   []InstallMode  `json:"installModes,omitempty"`
	RelatedImages  []RelatedImage `json:"relatedImages,omitempty"`

	CustomResourceDefinitions CustomResourceDefinitions `json:"customresourcedefinitions"`
	// APIServiceDefinitions is empty: there is no aggregated API.
	APIServiceDefinitions struct{} `json:"apiservicedefinitions"`
	Install               Install  `json:"install"`
}

// Maintainer is who looks after the operator.
type Maintainer struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Link is a name with an address.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Icon is a picture; JSON encodes it as base64.
type Icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// InstallMode says whether an OperatorGroup that selects namespaces in a way is supported.
type InstallMode struct {
	Type      string `json:"type"`
	Supported bool   `json:"supported"`
}

// RelatedImage is an image that the operator needs.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// CustomResourceDefinitions are the kinds that the operator brings along.
type CustomResourceDefinitions struct {
	Owned []CRDDescription `json:"owned,omitempty"`
}

// CRDDescription describes a kind to users.
type CRDDescription struct {
	Name              string              `json:"name"`
	Kind              string              `json:"kind"`
	Version           string              `json:"version"`
	DisplayName       string              `json:"displayName,omitempty"`
	Description       string              `json:"description,omitempty"`
	Resources         []ResourceReference `json:"resources,omitempty"`
	SpecDescriptors   []Descriptor        `json:"specDescriptors,omitempty"`
	StatusDescriptors []Descriptor        `json:"statusDescriptors,omitempty"`
}

// ResourceReference is a kind that one of the operator's is about.
type ResourceReference struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// Descriptor describes a field of spec or status.
type Descriptor struct {
	// Path is that of the field below spec or status, such as targets[0].name.
	Path         string   `json:"path"`
	DisplayName  string   `json:"displayName,omitempty"`
	Description  string   `json:"description,omitempty"`
	XDescriptors []string `json:"x-descriptors,omitempty"`
}

// Install is how the operator is run.
type Install struct {
	Strategy string      `json:"strategy"`
	Spec     InstallSpec `json:"spec"`
}

// InstallSpec is what OLM makes a Deployment, ServiceAccounts and their rights of.
type InstallSpec struct {
	// ClusterPermissions are those for the whole cluster, in each install mode.
	ClusterPermissions []Permissions `json:"clusterPermissions,omitempty"`
	// Permissions are those for the operator's own namespace. OLM gives them for the namespaces that are watched as
	// well, and where these are all, for the cluster.
	Permissions []Permissions `json:"permissions,omitempty"`
	Deployments []Deployment  `json:"deployments"`
}

// Permissions are what a ServiceAccount may do.
type Permissions struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

// Deployment is one that OLM makes.
type Deployment struct {
	Name  string                `json:"name"`
	Label map[string]string     `json:"label,omitempty"`
	Spec  appsv1.DeploymentSpec `json:"spec"`
}
