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
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	yamldecoder "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/ktechhub/configwatch/hack/bundle/registryv1"
)

// What validators and catalogues ask of a bundle, and what OLM v0 and v1 do: one test a rule.

func TestName(t *testing.T) {
	csv := bundle(t).CSV
	g := NewWithT(t)
	g.Expect(csv.Name).To(Equal("configwatch.v" + currentVersion(t)))
	g.Expect(validation.IsDNS1123Subdomain(csv.Name)).To(BeEmpty())
	g.Expect(validation.IsValidLabelValue(csv.Name)).To(BeEmpty())
	g.Expect(csv.APIVersion).To(Equal("operators.coreos.com/v1alpha1"))
	g.Expect(bundle(t).Annotations[registryv1.KeyPackage]).To(Equal("configwatch"))
}

func TestVersion(t *testing.T) {
	csv := bundle(t).CSV
	g := NewWithT(t)
	g.Expect(csv.Spec.Version).To(Equal(currentVersion(t)))
	_, err := version.ParseSemantic(csv.Spec.Version)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestReplacesAndSkipRange(t *testing.T) {
	csv := bundle(t).CSV
	g := NewWithT(t)
	g.Expect(csv.Annotations["olm.skipRange"]).To(Equal("<"+csv.Spec.Version), "every earlier version can be upgraded at once")
	if replaced := csv.Spec.Replaces; replaced != "" {
		g.Expect(replaced).To(HavePrefix("configwatch.v"))
		before, err := version.ParseSemantic(strings.TrimPrefix(replaced, "configwatch.v"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(before.LessThan(version.MustParseSemantic(csv.Spec.Version))).To(BeTrue(), replaced)
	}
}

func TestChannels(t *testing.T) {
	annotations := bundle(t).Annotations
	g := NewWithT(t)
	g.Expect(strings.Split(annotations[registryv1.KeyChannels], ",")).To(ConsistOf("stable", "candidate"))
	g.Expect(annotations[registryv1.KeyDefaultChannel]).To(Equal("stable"))
}

func TestDisplayName(t *testing.T) {
	NewWithT(t).Expect(len(bundle(t).CSV.Spec.DisplayName)).To(And(BeNumerically(">=", 3), BeNumerically("<=", 50)))
}

func TestDescription(t *testing.T) {
	csv := bundle(t).CSV
	g := NewWithT(t)
	g.Expect(len(strings.Split(csv.Spec.Description, "\n\n"))).To(BeNumerically(">=", 4), "paragraphs")
	g.Expect(csv.Annotations["description"]).NotTo(BeEmpty(), "what lists show")
	g.Expect(len(csv.Annotations["description"])).To(BeNumerically("<=", 135))
}

func TestTheDescriptionShowsASample(t *testing.T) {
	g := NewWithT(t)
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(bundle(t).CSV.Spec.Description)
	g.Expect(shown).NotTo(BeNil())
	_, sample, _ := strings.Cut(read(t, "config/samples/configwatch_v1alpha1_configwatch.yaml"), "\n") // without its comment
	g.Expect(shown[1]).To(Equal(sample))
}

func TestProvider(t *testing.T) {
	provider := bundle(t).CSV.Spec.Provider
	g := NewWithT(t)
	g.Expect(provider.Name).NotTo(BeEmpty())
	expectURL(t, provider.URL)
}

func TestMaintainers(t *testing.T) {
	maintainers := bundle(t).CSV.Spec.Maintainers
	g := NewWithT(t)
	g.Expect(maintainers).NotTo(BeEmpty())
	for _, maintainer := range maintainers {
		g.Expect(maintainer.Name).NotTo(BeEmpty())
		_, err := mail.ParseAddress(maintainer.Email)
		g.Expect(err).NotTo(HaveOccurred(), maintainer.Email)
	}
}

func TestLinks(t *testing.T) {
	links := bundle(t).CSV.Spec.Links
	g := NewWithT(t)
	g.Expect(links).NotTo(BeEmpty())
	for _, link := range links {
		g.Expect(link.Name).NotTo(BeEmpty())
		expectURL(t, link.URL)
		if page, ours := strings.CutPrefix(link.URL, "https://github.com/ktechhub/configwatch/blob/main/"); ours {
			g.Expect(filepath.Join(repository, page)).To(BeAnExistingFile())
		}
	}
}

func TestKeywords(t *testing.T) {
	keywords := bundle(t).CSV.Spec.Keywords
	g := NewWithT(t)
	g.Expect(keywords).To(ContainElements("configmap", "secret"))
	g.Expect(slices.Compact(slices.Sorted(slices.Values(keywords)))).To(HaveLen(len(keywords)))
}

func TestMaturity(t *testing.T) {
	known := []string{"planning", "pre-alpha", "alpha", "beta", "stable", "mature", "inactive", "deprecated"}
	csv := bundle(t).CSV
	g := NewWithT(t)
	g.Expect(known).To(ContainElement(csv.Spec.Maturity))
	for _, kind := range csv.Spec.CustomResourceDefinitions.Owned {
		g.Expect(kind.Version).To(ContainSubstring(csv.Spec.Maturity), "an API of this version is not as mature as that")
	}
}

func TestIcon(t *testing.T) {
	icons := bundle(t).CSV.Spec.Icon
	g := NewWithT(t)
	g.Expect(icons).To(HaveLen(1))
	g.Expect(icons[0].MediaType).To(Equal("image/svg+xml"))
	g.Expect(string(icons[0].Data)).To(Equal(read(t, iconFile)))
	picture := struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
		ViewBox string   `xml:"viewBox,attr"`
	}{}
	g.Expect(xml.Unmarshal(icons[0].Data, &picture)).To(Succeed())
	g.Expect(picture.ViewBox).To(Equal("0 0 128 128"))
	g.Expect(string(icons[0].Data)).NotTo(Or(ContainSubstring("href"), ContainSubstring("<script")), "needs nothing from elsewhere")
}

func TestCategory(t *testing.T) {
	known := []string{
		"AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider", "Database", "Developer Tools",
		"Integration & Delivery", "Logging & Tracing", "Modernization & Migration", "Monitoring", "Networking",
		"Observability", "OpenShift Optional", "Security", "Storage", "Streaming & Messaging",
	}
	categories := bundle(t).CSV.Annotations["categories"]
	g := NewWithT(t)
	g.Expect(categories).To(Equal("Application Runtime"))
	g.Expect(known).To(ContainElement(categories))
}

func TestCapability(t *testing.T) {
	NewWithT(t).Expect(bundle(t).CSV.Annotations).To(HaveKeyWithValue("capabilities", "Seamless Upgrades"))
}

func TestContainerImage(t *testing.T) {
	csv := bundle(t).CSV
	g := NewWithT(t)
	g.Expect(csv.Annotations["containerImage"]).To(Equal("ghcr.io/ktechhub/configwatch:v" + currentVersion(t)))
	g.Expect(container(t).Image).To(Equal(csv.Annotations["containerImage"]))
}

func TestCreatedAt(t *testing.T) {
	_, err := time.Parse(time.RFC3339, bundle(t).CSV.Annotations["createdAt"])
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func TestRepository(t *testing.T) {
	NewWithT(t).Expect(bundle(t).CSV.Annotations).To(HaveKeyWithValue("repository", "https://github.com/ktechhub/configwatch"))
}

func TestSupport(t *testing.T) {
	NewWithT(t).Expect(bundle(t).CSV.Annotations["support"]).NotTo(BeEmpty())
}

func TestMinKubeVersion(t *testing.T) {
	csv := bundle(t).CSV
	g := NewWithT(t)
	documented := regexp.MustCompile(`Kubernetes (\d+\.\d+) or newer`).FindStringSubmatch(read(t, "docs/install.md"))
	g.Expect(documented).NotTo(BeNil())
	g.Expect(csv.Spec.MinKubeVersion).To(Equal(documented[1] + ".0"))
}

func TestArchitectures(t *testing.T) {
	NewWithT(t).Expect(bundle(t).CSV.Labels).To(Equal(map[string]string{
		"operatorframework.io/arch.amd64": "supported",
		"operatorframework.io/arch.arm64": "supported",
		"operatorframework.io/os.linux":   "supported",
	}))
}

func TestInstallModes(t *testing.T) {
	NewWithT(t).Expect(bundle(t).CSV.Spec.InstallModes).To(ConsistOf(
		registryv1.InstallMode{Type: "OwnNamespace", Supported: true},
		registryv1.InstallMode{Type: "SingleNamespace", Supported: true},
		registryv1.InstallMode{Type: "MultiNamespace", Supported: true},
		registryv1.InstallMode{Type: "AllNamespaces", Supported: true},
	))
}

func TestTheManagerReadsTheNamespacesOfTheOperatorGroup(t *testing.T) {
	NewWithT(t).Expect(container(t).Env).To(ContainElement(corev1.EnvVar{
		Name: "WATCH_NAMESPACE",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			FieldPath: "metadata.annotations['olm.targetNamespaces']",
		}},
	}))
}

func TestExamples(t *testing.T) {
	g := NewWithT(t)
	var examples, samples []map[string]any
	g.Expect(json.Unmarshal([]byte(bundle(t).CSV.Annotations["alm-examples"]), &examples)).To(Succeed())
	files, err := filepath.Glob(filepath.Join(repository, "config/samples/configwatch_*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		samples = append(samples, documents(t, strings.TrimPrefix(file, repository))...)
	}
	g.Expect(samples).NotTo(BeEmpty())
	g.Expect(examples).To(ConsistOf(samples))
}

func TestEachOwnedKindHasAnExample(t *testing.T) {
	g := NewWithT(t)
	for _, kind := range bundle(t).CSV.Spec.CustomResourceDefinitions.Owned {
		g.Expect(examplesOf(t, kind)).NotTo(BeEmpty(), kind.Kind)
	}
}

func TestOwnedCRDs(t *testing.T) {
	b := bundle(t)
	g := NewWithT(t)
	var owned, present []string
	for _, kind := range b.CSV.Spec.CustomResourceDefinitions.Owned {
		owned = append(owned, kind.Name+" "+kind.Version+" "+kind.Kind)
		g.Expect(kind.DisplayName).NotTo(BeEmpty())
		g.Expect(kind.Description).NotTo(BeEmpty())
		g.Expect(kind.Resources).NotTo(BeEmpty(), "scorecard asks for what a kind is about")
	}
	for _, crd := range b.CRDs {
		for _, served := range crd.Spec.Versions {
			present = append(present, crd.Name+" "+served.Name+" "+crd.Spec.Names.Kind)
			g.Expect(served.Schema.OpenAPIV3Schema.Properties).To(HaveKey("spec"))
		}
	}
	g.Expect(owned).To(ConsistOf(present))
}

func TestTheCRDIsThatOfConfig(t *testing.T) {
	g := NewWithT(t)
	var config, bundled map[string]any
	g.Expect(yaml.Unmarshal([]byte(read(t, "config/crd/bases/configwatch.ktechhub.io_configwatches.yaml")), &config)).To(Succeed())
	g.Expect(yaml.Unmarshal([]byte(read(t, "bundle/manifests/configwatch.ktechhub.io_configwatches.yaml")), &bundled)).To(Succeed())
	g.Expect(bundled["spec"]).To(Equal(config["spec"]))
}

func TestSpecDescriptors(t *testing.T) {
	g := NewWithT(t)
	for _, kind := range bundle(t).CSV.Spec.CustomResourceDefinitions.Owned {
		expectDescriptors(t, kind.SpecDescriptors, "spec")
		for _, example := range examplesOf(t, kind) {
			for field := range example["spec"].(map[string]any) {
				g.Expect(kind.SpecDescriptors).To(ContainElement(HaveField("Path", field)), "scorecard asks for a field that an example has")
			}
		}
	}
}

func TestStatusDescriptors(t *testing.T) {
	g := NewWithT(t)
	for _, kind := range bundle(t).CSV.Spec.CustomResourceDefinitions.Owned {
		expectDescriptors(t, kind.StatusDescriptors, "status")
		for field := range fieldsOf(t, "status") {
			g.Expect(kind.StatusDescriptors).To(ContainElement(HaveField("Path", field)), "scorecard asks for each that is in a status")
		}
	}
}

func TestRelatedImages(t *testing.T) {
	csv := bundle(t).CSV
	g := NewWithT(t)
	var images []string
	for _, related := range csv.Spec.RelatedImages {
		g.Expect(related.Name).NotTo(BeEmpty())
		images = append(images, related.Image)
	}
	var run []string
	for _, deployment := range csv.Spec.Install.Spec.Deployments {
		for _, c := range slices.Concat(deployment.Spec.Template.Spec.InitContainers, deployment.Spec.Template.Spec.Containers) {
			run = append(run, c.Image)
		}
	}
	g.Expect(images).To(ConsistOf(run), "every image that is run, and no other")
}

func TestRequestsAndLimits(t *testing.T) {
	resources := container(t).Resources
	g := NewWithT(t)
	g.Expect(resources.Requests).To(And(HaveKey(corev1.ResourceCPU), HaveKey(corev1.ResourceMemory)))
	g.Expect(resources.Limits).To(HaveKey(corev1.ResourceMemory))
}

func TestNoKindThatAnOLMRefuses(t *testing.T) {
	g := NewWithT(t)
	for _, object := range bundle(t).Others {
		g.Expect(object.GetKind()).To(BeElementOf("Service", "ClusterRole", "PodDisruptionBudget"), object.GetName())
	}
}

func TestNoWebhooksAndNoAggregatedAPIs(t *testing.T) {
	// The types that the file is read by have no field for webhooks.
	NewWithT(t).Expect(read(t, "bundle/manifests/configwatch.clusterserviceversion.yaml")).To(And(
		Not(ContainSubstring("webhookdefinitions:")), ContainSubstring("\n  apiservicedefinitions: {}\n")))
}

func TestNoDependencies(t *testing.T) {
	g := NewWithT(t)
	g.Expect(filesIn(t, repository, "bundle/metadata")).To(ConsistOf("bundle/metadata/annotations.yaml"))
	g.Expect(bundle(t).CSV.Annotations).NotTo(HaveKey("olm.properties"))
	for _, property := range catalog(t).bundle.Properties {
		g.Expect(property.Type).To(BeElementOf(registryv1.PropertyPackage, registryv1.PropertyGVK, registryv1.PropertyCSVMetadata))
	}
}

func TestNoOperatorConditions(t *testing.T) {
	g := NewWithT(t)
	for _, right := range append(rightsOf(clusterPermissions(t)), rightsOf(permissions(t))...) {
		g.Expect(right).NotTo(ContainSubstring("operators.coreos.com"))
	}
	g.Expect(container(t).Env).NotTo(ContainElement(HaveField("Name", "OPERATOR_CONDITION_NAME")))
}

func TestPodDisruptionBudget(t *testing.T) {
	g := NewWithT(t)
	var found int
	for _, object := range bundle(t).Others {
		if object.GetKind() != "PodDisruptionBudget" {
			continue
		}
		found++
		budget := &policyv1.PodDisruptionBudget{}
		convertTo(t, object, budget)
		if most := budget.Spec.MaxUnavailable; most != nil {
			g.Expect(*most).NotTo(BeElementOf(intstr.FromInt32(0), intstr.FromString("0%")), "a node could never be drained")
		}
		if least := budget.Spec.MinAvailable; least != nil {
			g.Expect(*least).NotTo(Equal(intstr.FromString("100%")), "a node could never be drained")
		}
		deployment := bundle(t).CSV.Spec.Install.Spec.Deployments[0]
		g.Expect(budget.Spec.Selector).To(Equal(deployment.Spec.Selector))
	}
	g.Expect(found).To(Equal(1))
}

func TestPriorityClass(t *testing.T) {
	g := NewWithT(t)
	var brought []string
	for _, object := range bundle(t).Others {
		if object.GetKind() == "PriorityClass" {
			class := &schedulingv1.PriorityClass{}
			convertTo(t, object, class)
			g.Expect(class.GlobalDefault).To(BeFalse())
			brought = append(brought, class.Name)
		}
	}
	if used := bundle(t).CSV.Spec.Install.Spec.Deployments[0].Spec.Template.Spec.PriorityClassName; used != "" {
		g.Expect(append(brought, "system-cluster-critical", "system-node-critical")).To(ContainElement(used))
	}
}

func TestSize(t *testing.T) {
	g := NewWithT(t)
	compressed := &bytes.Buffer{}
	zipped := gzip.NewWriter(compressed)
	archive := tar.NewWriter(zipped)
	for _, file := range filesIn(t, repository, bundleFolder) {
		text := read(t, file)
		g.Expect(archive.WriteHeader(&tar.Header{Name: file, Size: int64(len(text)), Mode: 0o644})).To(Succeed())
		_, err := archive.Write([]byte(text))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(errors.Join(archive.Close(), zipped.Close())).To(Succeed())
	g.Expect(compressed.Len()).To(And(BeNumerically(">", 10<<10), BeNumerically("<=", 1<<20)))
}

func TestPermissionsAreThoseOfConfig(t *testing.T) {
	cluster, namespaced := rolesOfConfig(t)
	g := NewWithT(t)
	g.Expect(rightsOf(clusterPermissions(t))).To(ConsistOf(rightsOf(cluster)))
	g.Expect(rightsOf(permissions(t))).To(ConsistOf(rightsOf(namespaced)))
}

func TestPermissionsAreThoseOfTheDeployment(t *testing.T) {
	g := NewWithT(t)
	install := bundle(t).CSV.Spec.Install.Spec
	g.Expect(install.Deployments).To(HaveLen(1))
	account := install.Deployments[0].Spec.Template.Spec.ServiceAccountName
	g.Expect(account).NotTo(BeElementOf("", "default"))
	for _, p := range slices.Concat(install.Permissions, install.ClusterPermissions) {
		g.Expect(p.ServiceAccountName).To(Equal(account))
	}
}

func TestLeaderElectionIsForTheNamespace(t *testing.T) {
	g := NewWithT(t)
	g.Expect(rightsOf(permissions(t))).To(ContainElement(ContainSubstring("leases")))
	g.Expect(rightsOf(clusterPermissions(t))).NotTo(ContainElement(ContainSubstring("leases")))
}

func TestNoPermissionToMakeCRDs(t *testing.T) {
	for _, right := range append(rightsOf(clusterPermissions(t)), rightsOf(permissions(t))...) {
		NewWithT(t).Expect(right).NotTo(ContainSubstring("customresourcedefinitions"))
	}
}

func TestOLMChoosesTheNamespace(t *testing.T) {
	b := bundle(t)
	g := NewWithT(t)
	for _, object := range b.Others {
		g.Expect(object.GetNamespace()).To(BeEmpty(), object.GetName())
		g.Expect(object.GetKind()).NotTo(Equal("ServiceAccount"), "OLM makes it")
	}
	g.Expect(b.CSV.Annotations).To(HaveKeyWithValue("operatorframework.io/suggested-namespace", "configwatch-system"))
}

func TestRolesForUsersAndForScraping(t *testing.T) {
	var names []string
	for _, object := range bundle(t).Others {
		if object.GetKind() == "ClusterRole" {
			names = append(names, object.GetName())
		}
	}
	NewWithT(t).Expect(names).To(ConsistOf(
		"configwatch-admin-role", "configwatch-editor-role", "configwatch-viewer-role", "configwatch-metrics-reader"))
}

func TestFilesAreNamedAsOperatorSDKDoes(t *testing.T) {
	NewWithT(t).Expect(filesIn(t, repository, bundleFolder)).To(ConsistOf(
		"bundle/manifests/configwatch.clusterserviceversion.yaml",
		"bundle/manifests/configwatch.ktechhub.io_configwatches.yaml",
		"bundle/manifests/configwatch-admin-role_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"bundle/manifests/configwatch-controller-manager-metrics-service_v1_service.yaml",
		"bundle/manifests/configwatch-controller-manager_policy_v1_poddisruptionbudget.yaml",
		"bundle/manifests/configwatch-editor-role_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"bundle/manifests/configwatch-metrics-reader_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"bundle/manifests/configwatch-viewer-role_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"bundle/metadata/annotations.yaml",
		"bundle/tests/scorecard/config.yaml",
	))
}

func TestTheImageHasTheAnnotationsAsLabelsAndTheFilesWhereTheySay(t *testing.T) {
	g := NewWithT(t)
	labels, copied := map[string]string{}, map[string]string{}
	for line := range strings.Lines(read(t, "bundle.Dockerfile")) {
		line = strings.TrimSpace(line)
		if pair, ok := strings.CutPrefix(line, "LABEL "); ok {
			key, value, _ := strings.Cut(pair, "=")
			labels[key] = value
		}
		if pair, ok := strings.CutPrefix(line, "COPY "); ok {
			from, to, _ := strings.Cut(pair, " ")
			copied[strings.TrimPrefix(to, "/")] = from
		}
	}
	annotations := bundle(t).Annotations
	g.Expect(labels).To(Equal(annotations))
	for _, key := range []string{registryv1.KeyManifests, registryv1.KeyMetadata, registryv1.KeyTestConfig} {
		g.Expect(copied).To(HaveKey(annotations[key]), key)
		g.Expect(filepath.Join(repository, copied[annotations[key]])).To(BeADirectory())
	}
	g.Expect(read(t, ".dockerignore")).To(And(ContainSubstring("\n!bundle\n"), ContainSubstring("\n!catalog\n")))
}

func TestScorecard(t *testing.T) {
	g := NewWithT(t)
	config := struct {
		APIVersion, Kind string
		Stages           []struct {
			Tests []struct {
				Entrypoint []string
				Image      string
			}
		}
	}{}
	g.Expect(yaml.Unmarshal([]byte(read(t, "bundle/tests/scorecard/config.yaml")), &config)).To(Succeed())
	g.Expect(config.APIVersion).To(Equal("scorecard.operatorframework.io/v1alpha3"))
	var tests []string
	for _, test := range config.Stages[0].Tests {
		tests = append(tests, test.Entrypoint[1])
		g.Expect(test.Image).To(HavePrefix("quay.io/operator-framework/scorecard-test:v"))
	}
	g.Expect(tests).To(ConsistOf("basic-check-spec", "olm-bundle-validation", "olm-crds-have-validation",
		"olm-crds-have-resources", "olm-spec-descriptors", "olm-status-descriptors"))
}

func TestTheCatalogOffersTheBundle(t *testing.T) {
	csv, c := bundle(t).CSV, catalog(t)
	g := NewWithT(t)
	g.Expect(c.pkg.Name).To(Equal("configwatch"))
	g.Expect(c.pkg.DefaultChannel).To(Equal("stable"))
	g.Expect(*c.pkg.Icon).To(Equal(csv.Spec.Icon[0]))
	var names []string
	for _, channel := range c.channels {
		names = append(names, channel.Name)
		g.Expect(channel.Package).To(Equal(c.pkg.Name))
		g.Expect(channel.Entries).To(HaveExactElements(registryv1.ChannelEntry{
			Name: csv.Name, Replaces: csv.Spec.Replaces, SkipRange: csv.Annotations["olm.skipRange"],
		}))
	}
	g.Expect(names).To(ConsistOf(strings.Split(bundle(t).Annotations[registryv1.KeyChannels], ",")))
	g.Expect(c.bundle.Name).To(Equal(csv.Name))
	g.Expect(c.bundle.Package).To(Equal(c.pkg.Name))
	g.Expect(c.bundle.Image).To(Equal("ghcr.io/ktechhub/configwatch-bundle:v" + currentVersion(t)))
	g.Expect(c.bundle.RelatedImages).To(ConsistOf(append(csv.Spec.RelatedImages, registryv1.RelatedImage{Image: c.bundle.Image})))
}

func TestTheCatalogTellsWhatTheBundleHas(t *testing.T) {
	csv, c := bundle(t).CSV, catalog(t)
	g := NewWithT(t)
	values := map[string][]any{}
	for _, property := range c.bundle.Properties {
		values[property.Type] = append(values[property.Type], property.Value)
	}
	g.Expect(values[registryv1.PropertyPackage]).To(HaveExactElements(
		map[string]any{"packageName": "configwatch", "version": csv.Spec.Version}))
	g.Expect(values[registryv1.PropertyGVK]).To(HaveExactElements(
		map[string]any{"group": "configwatch.ktechhub.io", "kind": "ConfigWatch", "version": "v1alpha1"}))

	g.Expect(values[registryv1.PropertyCSVMetadata]).To(HaveLen(1))
	metadata := values[registryv1.PropertyCSVMetadata][0].(map[string]any)
	var file map[string]any
	g.Expect(yaml.Unmarshal([]byte(read(t, "bundle/manifests/configwatch.clusterserviceversion.yaml")), &file)).To(Succeed())
	spec := file["spec"].(map[string]any)
	for _, same := range []string{"description", "displayName", "installModes", "keywords", "links", "maintainers", "maturity",
		"minKubeVersion", "provider"} {
		g.Expect(metadata[same]).To(Equal(spec[same]), same)
	}
	g.Expect(metadata["crdDescriptions"]).To(Equal(spec["customresourcedefinitions"]))
	for _, same := range []string{"annotations", "labels"} {
		g.Expect(metadata[same]).To(Equal(file["metadata"].(map[string]any)[same]), same)
	}
}

func TestTheSamplesNameTheCatalogOfTheVersion(t *testing.T) {
	image := "ghcr.io/ktechhub/configwatch-catalog:v" + currentVersion(t)
	g := NewWithT(t)
	for _, sample := range []string{"v0", "v1"} {
		g.Expect(read(t, "config/samples/olm/"+sample+".yaml")).To(ContainSubstring(": " + image + "\n"))
	}
}

// bundle is the one in the tree, read strictly.
func bundle(t *testing.T) *registryv1.Bundle {
	t.Helper()
	b, err := registryv1.Read(filepath.Join(repository, bundleFolder))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return b
}

func currentVersion(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(read(t, "VERSION"))
}

func container(t *testing.T) corev1.Container {
	t.Helper()
	deployments := bundle(t).CSV.Spec.Install.Spec.Deployments
	g := NewWithT(t)
	g.Expect(deployments).To(HaveLen(1))
	g.Expect(deployments[0].Spec.Template.Spec.Containers).To(HaveLen(1))
	return deployments[0].Spec.Template.Spec.Containers[0]
}

func clusterPermissions(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	return rulesOf(bundle(t).CSV.Spec.Install.Spec.ClusterPermissions)
}

func permissions(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	return rulesOf(bundle(t).CSV.Spec.Install.Spec.Permissions)
}

func rulesOf(all []registryv1.Permissions) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, p := range all {
		rules = append(rules, p.Rules...)
	}
	return rules
}

// rolesOfConfig are the rules that config/rbac binds to the operator, for the cluster and for its namespace.
func rolesOfConfig(t *testing.T) (cluster, namespaced []rbacv1.PolicyRule) {
	t.Helper()
	g := NewWithT(t)
	rules := map[string][]rbacv1.PolicyRule{}
	var bindings []*unstructured.Unstructured
	for _, file := range filesIn(t, repository, "config/rbac") {
		for _, object := range documents(t, file) {
			o := &unstructured.Unstructured{Object: object}
			switch o.GetKind() {
			case "Role", "ClusterRole":
				role := &rbacv1.ClusterRole{}
				g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object, role)).To(Succeed())
				rules[o.GetKind()+"/"+o.GetName()] = role.Rules
			case "RoleBinding", "ClusterRoleBinding":
				bindings = append(bindings, o)
			}
		}
	}
	g.Expect(bindings).NotTo(BeEmpty())
	for _, object := range bindings {
		binding := &rbacv1.ClusterRoleBinding{}
		g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, binding)).To(Succeed())
		bound := rules[binding.RoleRef.Kind+"/"+binding.RoleRef.Name]
		g.Expect(bound).NotTo(BeEmpty(), object.GetName())
		if object.GetKind() == "ClusterRoleBinding" {
			cluster = append(cluster, bound...)
		} else {
			namespaced = append(namespaced, bound...)
		}
	}
	return cluster, namespaced
}

// rightsOf are what rules allow, each a verb with a resource or a path.
func rightsOf(rules []rbacv1.PolicyRule) []string {
	var rights []string
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{"*"}
		}
		for _, verb := range rule.Verbs {
			for _, path := range rule.NonResourceURLs {
				rights = append(rights, verb+" "+path)
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						rights = append(rights, fmt.Sprintf("%s %s.%s %s", verb, resource, group, name))
					}
				}
			}
		}
	}
	slices.Sort(rights)
	return slices.Compact(rights)
}

func examplesOf(t *testing.T, kind registryv1.CRDDescription) []map[string]any {
	t.Helper()
	var examples []map[string]any
	NewWithT(t).Expect(json.Unmarshal([]byte(bundle(t).CSV.Annotations["alm-examples"]), &examples)).To(Succeed())
	_, group, _ := strings.Cut(kind.Name, ".")
	return slices.DeleteFunc(examples, func(example map[string]any) bool {
		return example["kind"] != kind.Kind || example["apiVersion"] != group+"/"+kind.Version
	})
}

// expectDescriptors compares descriptors with the schema of the CRD in config.
func expectDescriptors(t *testing.T, descriptors []registryv1.Descriptor, part string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(descriptors).NotTo(BeEmpty())
	var paths []string
	for _, descriptor := range descriptors {
		paths = append(paths, descriptor.Path)
		g.Expect(descriptor.DisplayName).NotTo(BeEmpty(), descriptor.Path)
		field := map[string]any{"properties": fieldsOf(t, part)}
		for step := range strings.SplitSeq(descriptor.Path, ".") {
			name, inList := strings.CutSuffix(step, "[0]")
			fields, _ := field["properties"].(map[string]any)
			g.Expect(fields).To(HaveKey(name), "the CRD has no field %s.%s", part, descriptor.Path)
			field = fields[name].(map[string]any)
			if inList {
				g.Expect(field["type"]).To(Equal("array"), descriptor.Path)
				field = field["items"].(map[string]any)
			}
		}
		g.Expect(descriptor.Description).To(Equal(strings.Join(strings.Fields(field["description"].(string)), " ")), descriptor.Path)
		for _, widget := range descriptor.XDescriptors {
			g.Expect(widget).To(HavePrefix("urn:alm:descriptor:"), descriptor.Path)
		}
		if choices := choicesOf(descriptor); choices != nil {
			g.Expect(choices).To(ConsistOf(field["enum"]), descriptor.Path)
		}
	}
	g.Expect(slices.Compact(slices.Sorted(slices.Values(paths)))).To(HaveLen(len(paths)), "each path once")
}

// choicesOf are the values that a descriptor offers for choice, if it does.
func choicesOf(descriptor registryv1.Descriptor) []any {
	var choices []any
	for _, widget := range descriptor.XDescriptors {
		if choice, ok := strings.CutPrefix(widget, "urn:alm:descriptor:com.tectonic.ui:select:"); ok {
			choices = append(choices, choice)
		}
	}
	return choices
}

// fieldsOf are the schemas of the fields of spec or status.
func fieldsOf(t *testing.T, part string) map[string]any {
	t.Helper()
	g := NewWithT(t)
	crd := documents(t, "config/crd/bases/configwatch.ktechhub.io_configwatches.yaml")[0]
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(versions).To(HaveLen(1))
	fields, found, err := unstructured.NestedMap(versions[0].(map[string]any),
		"schema", "openAPIV3Schema", "properties", part, "properties")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeTrue())
	return fields
}

func convertTo(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	NewWithT(t).Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true)).To(Succeed())
}

func expectURL(t *testing.T, text string) {
	t.Helper()
	address, err := url.ParseRequestURI(text)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(address.Scheme).To(Equal("https"))
	g.Expect(address.Host).NotTo(BeEmpty())
}

// documents are the objects of a YAML file.
func documents(t *testing.T, file string) []map[string]any {
	t.Helper()
	var all []map[string]any
	decoder := yamldecoder.NewYAMLOrJSONDecoder(strings.NewReader(read(t, file)), 4096)
	for {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return all
		}
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), file)
		if object != nil {
			all = append(all, object)
		}
	}
}

// fileBasedCatalog is the one in the tree.
type fileBasedCatalog struct {
	pkg      registryv1.CatalogPackage
	channels []registryv1.CatalogChannel
	bundle   registryv1.CatalogBundle
}

func catalog(t *testing.T) fileBasedCatalog {
	t.Helper()
	g := NewWithT(t)
	var c fileBasedCatalog
	files := filesIn(t, repository, catalogFolder)
	g.Expect(files).To(ConsistOf("catalog/configwatch/catalog.yaml"))
	for _, document := range documents(t, files[0]) {
		text, err := yaml.Marshal(document)
		g.Expect(err).NotTo(HaveOccurred())
		switch document["schema"] {
		case registryv1.SchemaPackage:
			g.Expect(yaml.UnmarshalStrict(text, &c.pkg)).To(Succeed())
		case registryv1.SchemaChannel:
			var channel registryv1.CatalogChannel
			g.Expect(yaml.UnmarshalStrict(text, &channel)).To(Succeed())
			c.channels = append(c.channels, channel)
		case registryv1.SchemaBundle:
			g.Expect(c.bundle.Name).To(BeEmpty(), "more than one bundle")
			g.Expect(yaml.UnmarshalStrict(text, &c.bundle)).To(Succeed())
		default:
			t.Errorf("an unknown schema: %v", document["schema"])
		}
	}
	return c
}
