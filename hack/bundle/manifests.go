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
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/ktechhub/configwatch/hack/bundle/registryv1"
)

// manifests are what kustomize makes of config/manifests, by what becomes of them in a bundle.
type manifests struct {
	// base is the ClusterServiceVersion with what people read of the operator.
	base       registryv1.ClusterServiceVersion
	crd        apiextensionsv1.CustomResourceDefinition
	deployment appsv1.Deployment

	roles               []rbacv1.Role
	roleBindings        []rbacv1.RoleBinding
	clusterRoles        []rbacv1.ClusterRole
	clusterRoleBindings []rbacv1.ClusterRoleBinding

	// examples are the ConfigWatches among the samples.
	examples []*unstructured.Unstructured
	// scorecard is the configuration of operator-sdk's tests.
	scorecard *unstructured.Unstructured
	// applied are the objects that OLM applies as they are; with the CRD, and the ClusterRoles for users.
	applied []*unstructured.Unstructured
}

// collect renders a folder and sorts what is in it.
func collect(folder string) (*manifests, error) {
	objects, err := render(folder)
	if err != nil {
		return nil, err
	}
	m := &manifests{}
	counts := map[string]int{}
	for _, object := range objects {
		counts[object.GetKind()]++
		if err := m.add(object); err != nil {
			return nil, fmt.Errorf("%s %s of %s: %w", object.GetKind(), object.GetName(), folder, err)
		}
	}
	for _, kind := range []string{"ClusterServiceVersion", "CustomResourceDefinition", "Deployment", "Configuration"} {
		if counts[kind] != 1 {
			return nil, fmt.Errorf("%s has %d of the kind %s, and must have one", folder, counts[kind], kind)
		}
	}
	return m, nil
}

// render is what kustomize makes of a folder.
func render(folder string) ([]*unstructured.Unstructured, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		text, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", folder, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("rendering %s: %w", folder, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func (m *manifests) add(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "ClusterServiceVersion":
		return convert(object, &m.base)
	case "CustomResourceDefinition":
		m.applied = append(m.applied, object)
		return convert(object, &m.crd)
	case "Deployment":
		return convert(object, &m.deployment)
	case "Role":
		return appendConverted(object, &m.roles)
	case "RoleBinding":
		return appendConverted(object, &m.roleBindings)
	case "ClusterRole":
		m.applied = append(m.applied, object)
		return appendConverted(object, &m.clusterRoles)
	case "ClusterRoleBinding":
		return appendConverted(object, &m.clusterRoleBindings)
	case "Service", "PodDisruptionBudget":
		m.applied = append(m.applied, object)
	case "ConfigWatch":
		m.examples = append(m.examples, object)
	case "Configuration":
		m.scorecard = object
	case "Namespace", "ServiceAccount": // OLM's user chooses the one, and OLM makes the other
	default:
		return errors.New("it is not known what OLM is to do with it: " +
			"leave it out in config/manifests/kustomization.yaml, or see to it in hack/bundle")
	}
	return nil
}

func convert(object *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true)
}

func appendConverted[T any](object *unstructured.Unstructured, list *[]T) error {
	var typed T
	err := convert(object, &typed)
	*list = append(*list, typed)
	return err
}

// serviceAccount is the name of the one that the Deployment runs as.
func (m *manifests) serviceAccount() string {
	return m.deployment.Spec.Template.Spec.ServiceAccountName
}

// permissions are the rules of the Roles that are bound to the Deployment's ServiceAccount.
func (m *manifests) permissions() ([]registryv1.Permissions, error) {
	var rules []rbacv1.PolicyRule
	for _, binding := range m.roleBindings {
		at := slices.IndexFunc(m.roles, func(r rbacv1.Role) bool { return r.Name == binding.RoleRef.Name })
		if at < 0 || binding.RoleRef.Kind != "Role" || !m.isManager(binding.Subjects) {
			return nil, fmt.Errorf("RoleBinding %s is not of one of its Roles to the operator", binding.Name)
		}
		rules = append(rules, m.roles[at].Rules...)
	}
	return []registryv1.Permissions{{ServiceAccountName: m.serviceAccount(), Rules: rules}}, nil
}

// clusterPermissions are those of the ClusterRoles that are bound to it.
func (m *manifests) clusterPermissions() ([]registryv1.Permissions, error) {
	var rules []rbacv1.PolicyRule
	for _, binding := range m.clusterRoleBindings {
		at := slices.IndexFunc(m.clusterRoles, func(r rbacv1.ClusterRole) bool { return r.Name == binding.RoleRef.Name })
		if at < 0 || !m.isManager(binding.Subjects) {
			return nil, fmt.Errorf("ClusterRoleBinding %s is not of one of its ClusterRoles to the operator", binding.Name)
		}
		rules = append(rules, m.clusterRoles[at].Rules...)
	}
	return []registryv1.Permissions{{ServiceAccountName: m.serviceAccount(), Rules: rules}}, nil
}

func (m *manifests) isManager(subjects []rbacv1.Subject) bool {
	return len(subjects) == 1 && subjects[0].Kind == rbacv1.ServiceAccountKind && subjects[0].Name == m.serviceAccount()
}

// others are the manifests beside the ClusterServiceVersion: without the ClusterRoles that are part of it, and
// without a namespace, as OLM knows which one that is.
func (m *manifests) others() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, object := range m.applied {
		bound := object.GetKind() == "ClusterRole" && slices.ContainsFunc(m.clusterRoleBindings,
			func(b rbacv1.ClusterRoleBinding) bool { return b.RoleRef.Name == object.GetName() })
		if !bound {
			object = object.DeepCopy()
			object.SetNamespace("")
			objects = append(objects, object)
		}
	}
	return objects
}

// fileName is the name that operator-sdk gives to the file of an object.
func (m *manifests) fileName(object *unstructured.Unstructured) string {
	if object.GetKind() == "CustomResourceDefinition" {
		return m.crd.Spec.Group + "_" + m.crd.Spec.Names.Plural + ".yaml"
	}
	kind := object.GroupVersionKind()
	parts := []string{object.GetName(), kind.Group, kind.Version, strings.ToLower(kind.Kind)}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, "_") + ".yaml"
}
