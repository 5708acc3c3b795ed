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

package install

import (
	"context"
	"regexp"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ktechhub/configwatch/test/utils"
)

// The addresses in the arguments of the Deployment. The tests run the manager on others, which are free.
const (
	probeArg   = "--health-probe-bind-address=:8081"
	metricsArg = "--metrics-bind-address=:8443"
)

// annotationPath is how the downward API names an annotation of the pod.
var annotationPath = regexp.MustCompile(`^metadata\.annotations\['(.+)'\]$`)

// manifests are what a folder of config/ or the Helm chart renders to, or what OLM makes of the bundle.
type manifests []*unstructured.Unstructured

func render(ctx context.Context, folder string) manifests {
	GinkgoHelper()
	objects, err := utils.Render(ctx, plane, folder)
	Expect(err).NotTo(HaveOccurred())
	return objects
}

// all are the manifests of a kind.
func all[T any](m manifests, kind string) []T {
	GinkgoHelper()
	var objects []T
	for _, object := range m {
		if object.GetKind() == kind {
			var typed T
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true)).To(Succeed())
			objects = append(objects, typed)
		}
	}
	return objects
}

// one is the only manifest of a kind.
func one[T any](m manifests, kind string) T {
	GinkgoHelper()
	objects := all[T](m, kind)
	Expect(objects).To(HaveLen(1), kind)
	return objects[0]
}

func (m manifests) deployment() appsv1.Deployment {
	GinkgoHelper()
	return one[appsv1.Deployment](m, "Deployment")
}

func (m manifests) container() corev1.Container {
	GinkgoHelper()
	containers := m.deployment().Spec.Template.Spec.Containers
	Expect(containers).To(HaveLen(1))
	return containers[0]
}

// environment is that of the container, as the kubelet sets it.
func (m manifests) environment() []string {
	GinkgoHelper()
	container := m.container()
	var env []string
	for _, variable := range container.Env {
		value := variable.Value
		switch from := variable.ValueFrom; {
		case from == nil:
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
			value = m.deployment().Namespace
		case from.FieldRef != nil && annotationPath.MatchString(from.FieldRef.FieldPath):
			value = m.deployment().Spec.Template.Annotations[annotationPath.FindStringSubmatch(from.FieldRef.FieldPath)[1]]
		case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "limits.memory":
			value = strconv.FormatInt(container.Resources.Limits.Memory().Value(), 10)
		default:
			Fail("the test doesn't know how the kubelet sets " + variable.Name)
		}
		env = append(env, variable.Name+"="+value)
	}
	return env
}

// right is what a rule allows.
type right struct {
	// Namespace is empty where the right is for the whole cluster.
	Namespace             string
	Verb, Group, Resource string
	// Name is empty where it is for all names.
	Name string
}

func (r right) covers(request utils.Request) bool {
	return r.Verb == request.Verb && r.Group == request.Group && r.Resource == request.Resource &&
		(r.Namespace == "" || r.Namespace == request.Namespace) && (r.Name == "" || r.Name == request.Name)
}

// rights are those that the manifests give to the manager.
func (m manifests) rights() []right {
	GinkgoHelper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range all[rbacv1.ClusterRole](m, "ClusterRole") {
		rules["ClusterRole/"+role.Name] = role.Rules
	}
	for _, role := range all[rbacv1.Role](m, "Role") {
		rules["Role/"+role.Namespace+"/"+role.Name] = role.Rules
	}
	var rights []right
	for _, binding := range all[rbacv1.ClusterRoleBinding](m, "ClusterRoleBinding") {
		m.expectManager(binding.Subjects)
		rights = append(rights, rightsOf("", rules["ClusterRole/"+binding.RoleRef.Name])...)
	}
	for _, binding := range all[rbacv1.RoleBinding](m, "RoleBinding") {
		m.expectManager(binding.Subjects)
		Expect(binding.RoleRef.Kind).To(Equal("Role"))
		rights = append(rights, rightsOf(binding.Namespace, rules["Role/"+binding.Namespace+"/"+binding.RoleRef.Name])...)
	}
	return rights
}

func (m manifests) expectManager(subjects []rbacv1.Subject) {
	GinkgoHelper()
	deployment := m.deployment()
	Expect(subjects).To(ConsistOf(rbacv1.Subject{
		Kind: "ServiceAccount", Namespace: deployment.Namespace, Name: deployment.Spec.Template.Spec.ServiceAccountName,
	}))
}

func rightsOf(namespace string, rules []rbacv1.PolicyRule) []right {
	GinkgoHelper()
	Expect(rules).NotTo(BeEmpty(), "a binding of a role that has no rules, or doesn't exist")
	var rights []right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						rights = append(rights, right{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Name: name})
					}
				}
			}
		}
	}
	return rights
}
