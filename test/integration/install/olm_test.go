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
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/ktechhub/configwatch/hack/bundle/registryv1"
	"github.com/ktechhub/configwatch/test/utils"
)

// namespaceVariable is what tells the manager which namespaces to watch.
const namespaceVariable = "WATCH_NAMESPACE"

var _ = Describe("bundle", func() {
	for _, mode := range []installMode{
		{name: "OLM v0 in AllNamespaces mode", olm: olmV0, targets: []string{""}, namespaces: []string{"olm-all-a", "olm-all-b"}},
		{name: "OLM v0 in OwnNamespace mode", olm: olmV0, targets: []string{utils.ManagerNamespace}},
		{name: "OLM v0 in SingleNamespace mode", olm: olmV0, targets: []string{"olm-single"}},
		{name: "OLM v0 in MultiNamespace mode", olm: olmV0, targets: []string{"olm-multi-a", "olm-multi-b"}},
		{name: "OLM v1 in AllNamespaces mode", olm: olmV1, targets: []string{""}, namespaces: []string{"olm-v1"}},
	} {
		Describe("installed by "+mode.name, Ordered, mode.describe)
	}
})

// installMode is a way to install the bundle.
type installMode struct {
	name string
	olm  olm
	// targets are the namespaces of the OperatorGroup; one that is empty stands for all.
	targets []string
	// namespaces are those in which there is something to do, if not the targets.
	namespaces []string
}

func (mode installMode) describe() {
	var (
		bundle    *registryv1.Bundle
		m         manifests
		installed int64 // mark of the audit log
	)
	own := slices.Contains(mode.targets, utils.ManagerNamespace)
	namespaces := mode.namespaces
	if namespaces == nil {
		namespaces = mode.targets
	}

	BeforeAll(func(ctx SpecContext) {
		installed = mark()
		var err error
		bundle, err = registryv1.Read(filepath.Join(root, "bundle"))
		Expect(err).NotTo(HaveOccurred())
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: utils.ManagerNamespace}}
		if !own { // where the workloads of the test would not be admitted
			namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
		}
		create(ctx, namespace)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "namespace", utils.ManagerNamespace) })
		for _, name := range namespaces {
			if name != utils.ManagerNamespace {
				createNamespace(ctx, name)
			}
		}
		m = mode.olm.manifests(bundle, utils.ManagerNamespace, mode.targets)
		file := written(m)
		kubectl(ctx, "apply", "--server-side", "--validate=strict", "-f", file)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "-f", file) })
	})

	It("has its examples taken by the API server", func(ctx SpecContext) {
		var examples []map[string]any
		Expect(json.Unmarshal([]byte(bundle.CSV.Annotations["alm-examples"]), &examples)).To(Succeed())
		Expect(examples).NotTo(BeEmpty())
		for _, example := range examples {
			file := written(manifests{{Object: example}})
			Expect(kubectl(ctx, "create", "-n", namespaces[0], "--dry-run=server", "--validate=strict", "-f", file)).
				To(ContainSubstring("created (server dry run)"))
		}
	})

	It("tells the manager which namespaces it is for", func() {
		Expect(m.environment()).To(ContainElement(namespaceVariable + "=" + strings.Join(mode.targets, ",")))
	})

	It("runs its pods", func(ctx SpecContext) {
		expectRunning(ctx, m)
	})

	It("lets the manager do its work, with rights of which it uses each", func(ctx SpecContext) {
		operator := newOperator(ctx, m)
		operator.expectWork(ctx, namespaces...)
		operator.expectScraped(ctx, namespaces[0])
		install := bundle.CSV.Spec.Install.Spec
		operator.expectUse(installed, slices.Concat(
			rightsOf("", install.ClusterPermissions[0].Rules), rightsOf(utils.ManagerNamespace, install.Permissions[0].Rules)))
		operator.expectWithinRights(installed)
	})

	if slices.Contains(mode.targets, "") {
		return
	}
	It("makes the manager look nowhere else", func() {
		requests, err := audit.Since(installed, func(r utils.Request) bool {
			return byManager(r) && slices.Contains([]string{"get", "list", "watch", "patch"}, r.Verb) && r.Resource != ""
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).NotTo(BeEmpty())
		for _, request := range requests {
			Expect(append([]string{utils.ManagerNamespace}, mode.targets...)).To(ContainElement(request.Namespace), request.String())
		}
	})
}

// expectScraped scrapes the metrics with the ClusterRole that the bundle has for it.
func (o *operator) expectScraped(ctx context.Context, namespace string) {
	GinkgoHelper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "configwatch-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "scraper"}},
	}
	create(ctx, binding, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "scraper"}})
	DeferCleanup(k8sClient.Delete, binding)
	Eventually(scrape).WithArguments(ctx, o, tokenOf(ctx, namespace, "scraper")).Should(Equal(http.StatusOK))
}

// written is a file with manifests.
func written(m manifests) string {
	GinkgoHelper()
	var text strings.Builder
	for _, object := range m {
		text.WriteString("---\n")
		text.Write(must(yaml.Marshal(object.Object)))
	}
	file := filepath.Join(GinkgoT().TempDir(), "manifests.yaml")
	Expect(os.WriteFile(file, []byte(text.String()), 0o600)).To(Succeed())
	return file
}

// olm is a version of the Operator Lifecycle Manager, as far as it installs a bundle.
type olm int

const (
	olmV0 olm = iota
	olmV1
)

// manifests are what it makes of a bundle that is installed into a namespace.
func (v olm) manifests(bundle *registryv1.Bundle, namespace string, targets []string) manifests {
	GinkgoHelper()
	var m manifests
	for i := range bundle.CRDs {
		m.add(&bundle.CRDs[i])
	}
	for _, object := range bundle.Others {
		object = object.DeepCopy()
		if object.GetKind() != "ClusterRole" {
			object.SetNamespace(namespace)
		}
		m = append(m, object)
	}
	install := bundle.CSV.Spec.Install.Spec
	accounts := map[string]bool{}
	for _, p := range slices.Concat(install.ClusterPermissions, install.Permissions) {
		accounts[p.ServiceAccountName] = true
	}
	for name := range accounts {
		m.add(&corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	for i, p := range install.ClusterPermissions {
		m.addClusterRole(fmt.Sprintf("%s-cluster-%d", bundle.CSV.Name, i), p, namespace)
	}
	for i, p := range install.Permissions {
		v.addPermissions(&m, fmt.Sprintf("%s-%d", bundle.CSV.Name, i), p, namespace, targets)
	}
	for _, deployment := range install.Deployments {
		m.add(v.deployment(bundle, deployment, namespace, targets))
	}
	return m
}

// addPermissions gives what a bundle asks for its namespace. Where all namespaces are watched, OLM gives it for the
// cluster, and the right to see the namespaces. Otherwise it gives it in the namespaces that are watched; OLM v0 does so
// in the operator's own one in any case.
func (v olm) addPermissions(m *manifests, name string, p registryv1.Permissions, namespace string, targets []string) {
	GinkgoHelper()
	var in []string
	if v == olmV0 {
		in = append(in, namespace)
	}
	if slices.Contains(targets, "") {
		lifted := p
		lifted.Rules = append(slices.Clone(p.Rules), rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"},
		})
		m.addClusterRole(name, lifted, namespace)
	} else {
		in = append(in, targets...)
	}
	slices.Sort(in)
	for _, target := range slices.Compact(in) {
		object := metav1.ObjectMeta{Namespace: target, Name: name}
		m.add(&rbacv1.Role{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "Role"), ObjectMeta: object, Rules: p.Rules})
		m.add(&rbacv1.RoleBinding{
			TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "RoleBinding"), ObjectMeta: object,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: p.ServiceAccountName}},
		})
	}
}

func (m *manifests) addClusterRole(name string, p registryv1.Permissions, namespace string) {
	GinkgoHelper()
	object := metav1.ObjectMeta{Name: name}
	m.add(&rbacv1.ClusterRole{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRole"), ObjectMeta: object, Rules: p.Rules})
	m.add(&rbacv1.ClusterRoleBinding{
		TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"), ObjectMeta: object,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: p.ServiceAccountName}},
	})
}

// deployment is one of the bundle's, whose pods have the annotations of the ClusterServiceVersion, those of the
// OperatorGroup among them.
func (v olm) deployment(bundle *registryv1.Bundle, d registryv1.Deployment, namespace string, targets []string) *appsv1.Deployment {
	spec := d.Spec.DeepCopy()
	annotations := maps.Clone(bundle.CSV.Annotations)
	maps.Copy(annotations, spec.Template.Annotations)
	annotations["olm.targetNamespaces"] = strings.Join(targets, ",")
	annotations["olm.operatorNamespace"] = namespace
	spec.RevisionHistoryLimit = ptr.To[int32](1)
	if v == olmV0 {
		annotations["olm.operatorGroup"] = "operators"
		for i := range spec.Template.Spec.Containers {
			container := &spec.Template.Spec.Containers[i]
			container.Env = append(container.Env, corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: bundle.CSV.Name})
		}
	}
	spec.Template.Annotations = annotations
	return &appsv1.Deployment{
		TypeMeta:   typeMeta(appsv1.SchemeGroupVersion.String(), "Deployment"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.Name, Labels: d.Label},
		Spec:       *spec,
	}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func (m *manifests) add(object any) {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	Expect(err).NotTo(HaveOccurred())
	delete(content, "status")
	*m = append(*m, &unstructured.Unstructured{Object: content})
}
