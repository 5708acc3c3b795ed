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
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/test/utils"
)

const (
	chartFolder = "charts/configwatch"
	release     = "configwatch"
	crdName     = "configwatches.configwatch.ktechhub.io"
)

var _ = Describe(chartFolder, func() {
	BeforeEach(func(ctx SpecContext) { run(ctx, "make", "bin/helm") })

	It("passes Helm's own linter", func(ctx SpecContext) {
		helm(ctx, "lint", "--strict", chartFolder)
	})

	It("is by default the same in substance as config/default", func(ctx SpecContext) {
		ours, theirs := bySubstance(chart(ctx)), bySubstance(render(ctx, "config/default"))
		delete(theirs, "Namespace//"+utils.ManagerNamespace) // which Helm makes itself
		Expect(ours).To(HaveLen(len(theirs)))
		for name, object := range theirs {
			Expect(ours).To(HaveKeyWithValue(name, object))
		}
	})

	It("names all objects by the release, and ends up with names that are short enough", func(ctx SpecContext) {
		long := strings.Repeat("long", 13) // 52 characters, the most that Helm allows are 53
		for _, object := range manifestsOf(helm(ctx, "template", long, chartFolder, "--set", "stream.enabled=true,crds.install=false")) {
			Expect(object.GetName()).To(HavePrefix(long[:28]))
			Expect(len(object.GetName())).To(BeNumerically("<=", 63))
		}
		for _, object := range manifestsOf(helm(ctx, "template", "other", chartFolder, "--set", "crds.install=false")) {
			Expect(object.GetName()).To(HavePrefix("other-configwatch-"))
		}
	})

	DescribeTable("refuses values that can't work",
		func(ctx SpecContext, value, message string) {
			command := exec.CommandContext(ctx, filepath.Join(root, "bin/helm"), "template", filepath.Join(root, chartFolder), "--set", value)
			out, err := command.CombinedOutput()
			Expect(err).To(HaveOccurred())
			Expect(string(out)).To(ContainSubstring(message))
		},
		Entry("an unknown one", "replica=3", "additional properties 'replica' not allowed"),
		Entry("an unknown flag", "flags.max-rollouts=3", "additional properties 'max-rollouts' not allowed"),
		Entry("a flag that follows from other values", "flags.stream-bind-address=:1", "additional properties 'stream-bind-address' not allowed"),
		Entry("another type", "replicas=many", "got string, want integer"),
		Entry("a ServiceAccount that isn't made and has no name", "serviceAccount.create=false", "serviceAccount.name is required"),
	)

	Describe("installed with its defaults", Ordered, func() {
		const shop = "chart-shop"
		var (
			m         manifests
			installed int64 // mark of the audit log
		)

		BeforeAll(func(ctx SpecContext) {
			installed = mark()
			createNamespace(ctx, shop)
			installRelease(ctx)
			m = chart(ctx)
		})

		DescribeTable("has every switch taken by the API server",
			func(ctx SpecContext, values string, expect func(m manifests)) {
				changed := chart(ctx, "--set", values)
				expect(changed)
				known := slices.DeleteFunc(slices.Clone(changed), func(object *unstructured.Unstructured) bool {
					group := object.GroupVersionKind().Group
					return group == "monitoring.coreos.com" || group == "cert-manager.io"
				})
				kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--validate=strict", "--dry-run=server", "-f", written(known))
			},
			Entry("the image", "image.repository=registry.example/cw,image.tag=v9,image.pullPolicy=Always,imagePullSecrets[0].name=registry",
				func(m manifests) {
					Expect(m.container().Image).To(Equal("registry.example/cw:v9"))
					Expect(m.container().ImagePullPolicy).To(Equal(corev1.PullAlways))
					Expect(m.deployment().Spec.Template.Spec.ImagePullSecrets).To(HaveExactElements(HaveField("Name", "registry")))
				}),
			Entry("the digest of the image", "image.digest=sha256:"+strings.Repeat("0", 64), func(m manifests) {
				Expect(m.container().Image).To(Equal("ghcr.io/ktechhub/configwatch@sha256:" + strings.Repeat("0", 64)))
			}),
			Entry("other names", "fullnameOverride=cw", func(m manifests) {
				Expect(m.deployment().Name).To(Equal("cw-controller-manager"))
				m.rights() // of bindings and roles that fit together
			}),
			Entry("no CRD", "crds.install=false", func(m manifests) {
				Expect(all[apiextensionsv1.CustomResourceDefinition](m, "CustomResourceDefinition")).To(BeEmpty())
			}),
			Entry("flags", "flags.max-concurrent-rollouts=2000000,flags.zap-log-level=debug,flags.enable-http2=true", func(m manifests) {
				Expect(m.container().Args).To(ContainElements("--max-concurrent-rollouts=2000000", "--zap-log-level=debug", "--enable-http2=true"))
			}),
			Entry("environment", "env[0].name=GOGC,env[0].value=off", func(m manifests) {
				Expect(m.environment()).To(ContainElement("GOGC=off"))
			}),
			Entry("no rights", "rbac.create=false,rbac.aggregate=false", func(m manifests) {
				for _, object := range m {
					Expect(object.GetKind()).NotTo(Or(ContainSubstring("Role"), ContainSubstring("Binding")))
				}
			}),
			Entry("more rights", "rbac.extraRules[0].apiGroups={argoproj.io},rbac.extraRules[0].resources={rollouts},rbac.extraRules[0].verbs={list}",
				func(m manifests) {
					Expect(m.rights()).To(ContainElement(right{Verb: "list", Group: "argoproj.io", Resource: "rollouts"}))
				}),
			Entry("more rights in chosen namespaces", "watchNamespaces={"+shop+"},"+
				"rbac.extraRules[0].apiGroups={argoproj.io},rbac.extraRules[0].resources={rollouts},rbac.extraRules[0].verbs={list}",
				func(m manifests) {
					Expect(m.rights()).To(ContainElement(right{Namespace: shop, Verb: "list", Group: "argoproj.io", Resource: "rollouts"}))
				}),
			Entry("a ServiceAccount of somebody else", "serviceAccount.create=false,serviceAccount.name=mine", func(m manifests) {
				Expect(all[corev1.ServiceAccount](m, "ServiceAccount")).To(BeEmpty())
				Expect(m.deployment().Spec.Template.Spec.ServiceAccountName).To(Equal("mine"))
				m.rights() // are bound to it
			}),
			Entry("a ServiceAccount with annotations", "serviceAccount.annotations.a=b", func(m manifests) {
				Expect(one[corev1.ServiceAccount](m, "ServiceAccount").Annotations).To(HaveKeyWithValue("a", "b"))
			}),
			Entry("the stream", "stream.enabled=true,networkPolicy.streamFrom[0].podSelector.matchLabels.a=b", func(m manifests) {
				Expect(m.container().Args).To(And(ContainElement(streamArg), Not(ContainElement(streamCertArg))))
				Expect(m.environment()).To(ContainElement(fmt.Sprintf("MEMORY_LIMIT=%d", 256<<20)))
				Expect(named[corev1.Service](m, "Service", "configwatch-stream").Spec.Ports[0].TargetPort.StrVal).To(Equal("stream"))
				policy := named[networkingv1.NetworkPolicy](m, "NetworkPolicy", "configwatch-allow-stream-traffic")
				Expect(policy.Spec.Ingress[0].From[0].PodSelector.MatchLabels).To(HaveKeyWithValue("a", "b"))
			}),
			Entry("the stream with a certificate", "stream.enabled=true,stream.certificateSecret=mine", func(m manifests) {
				Expect(m.container().Args).To(ContainElements(streamArg, streamCertArg))
				Expect(m.deployment().Spec.Template.Spec.Volumes[0].Secret.SecretName).To(Equal("mine"))
			}),
			Entry("the stream with cert-manager's issuer", "stream.enabled=true,stream.certManager.enabled=true,stream.certManager.issuerRef.name=ca",
				func(m manifests) {
					certificate := rendered(m, "Certificate")
					Expect(field(certificate, "spec", "issuerRef", "name")).To(Equal("ca"))
					Expect(field(certificate, "spec", "secretName")).To(Equal(m.deployment().Spec.Template.Spec.Volumes[0].Secret.SecretName))
				}),
			Entry("no metrics", "metrics.enabled=false", func(m manifests) {
				Expect(m.container().Args).To(ContainElement("--metrics-bind-address=0"))
				Expect(all[corev1.Service](m, "Service")).To(BeEmpty())
				Expect(one[networkingv1.NetworkPolicy](m, "NetworkPolicy").Spec.Ingress).To(BeEmpty())
			}),
			Entry("metrics for everybody, in chosen namespaces", "watchNamespaces={"+shop+"},metrics.secure=false", func(m manifests) {
				Expect(m.container().Args).To(ContainElements(metricsArg, "--metrics-secure=false"))
				Expect(one[corev1.Service](m, "Service").Spec.Ports[0].Name).To(Equal("http"))
				Expect(all[rbacv1.ClusterRoleBinding](m, "ClusterRoleBinding")).To(BeEmpty())
			}),
			Entry("metrics with a certificate", "metrics.certificateSecret=mine", func(m manifests) {
				Expect(m.container().Args).To(ContainElement("--metrics-cert-path=/etc/configwatch/metrics"))
				Expect(m.deployment().Spec.Template.Spec.Volumes[0].Secret.SecretName).To(Equal("mine"))
			}),
			Entry("a ServiceMonitor", "metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.labels.release=prometheus,metrics.serviceMonitor.interval=30s",
				func(m manifests) {
					monitor := rendered(m, "ServiceMonitor")
					Expect(monitor.GetLabels()).To(HaveKeyWithValue("release", "prometheus"))
					selected, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
					Expect(err).NotTo(HaveOccurred())
					service := one[corev1.Service](m, "Service")
					for key, value := range selected {
						Expect(service.Labels).To(HaveKeyWithValue(key, value))
					}
				}),
			Entry("no NetworkPolicy", "networkPolicy.enabled=false,stream.enabled=true", func(m manifests) {
				Expect(all[networkingv1.NetworkPolicy](m, "NetworkPolicy")).To(BeEmpty())
			}),
			Entry("metrics from some places", "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b", func(m manifests) {
				Expect(one[networkingv1.NetworkPolicy](m, "NetworkPolicy").Spec.Ingress[0].From).To(HaveLen(1))
			}),
			Entry("one pod", "replicas=1,podDisruptionBudget.enabled=false,topologySpread.enabled=false", func(m manifests) {
				Expect(m.deployment().Spec.Replicas).To(HaveValue(Equal(int32(1))))
				Expect(m.deployment().Spec.Template.Spec.TopologySpreadConstraints).To(BeEmpty())
				Expect(all[policyv1.PodDisruptionBudget](m, "PodDisruptionBudget")).To(BeEmpty())
			}),
			Entry("three pods, on as many nodes", "replicas=3,podDisruptionBudget.maxUnavailable=34%,"+
				"affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=kubernetes\\.io/hostname,"+
				"affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchLabels.app\\.kubernetes\\.io/name=configwatch",
				func(m manifests) {
					Expect(m.deployment().Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution).To(HaveLen(1))
				}),
			Entry("where pods run", "priorityClassName=system-cluster-critical,nodeSelector.a=b,tolerations[0].operator=Exists", func(m manifests) {
				pod := m.deployment().Spec.Template.Spec
				Expect(pod.PriorityClassName).To(Equal("system-cluster-critical"))
				Expect(pod.NodeSelector).To(HaveKeyWithValue("a", "b"))
				Expect(pod.Tolerations).To(HaveLen(1))
			}),
			Entry("what pods have", "podAnnotations.a=b,podLabels.c=d,resources.limits.memory=64Mi", func(m manifests) {
				template := m.deployment().Spec.Template
				Expect(template.Annotations).To(HaveKeyWithValue("a", "b"))
				Expect(template.Labels).To(HaveKeyWithValue("c", "d"))
				Expect(m.environment()).To(ContainElement(fmt.Sprintf("MEMORY_LIMIT=%d", 64<<20)))
			}),
		)

		It("runs its pods in a namespace that admits only what the restricted Pod Security Standard allows", func(ctx SpecContext) {
			expectRunning(ctx, m)
		})

		It("lets the manager do its work, with rights of which it uses each", func(ctx SpecContext) {
			operator := newOperator(ctx, m)
			operator.expectWork(ctx, shop)
			operator.expectScraped(ctx, shop)
			operator.expectJustItsRights(installed)
			Expect(scrape(ctx, operator, "")).To(Equal(http.StatusUnauthorized))
		})

		It("is upgraded with the CRD", func(ctx SpecContext) {
			helm(ctx, "upgrade", release, chartFolder, "--namespace", utils.ManagerNamespace, "--set", "replicas=1", "--wait")
			Expect(kubectl(ctx, "-n", utils.ManagerNamespace, "get", "deployment", m.deployment().Name, "-o", "jsonpath={.spec.replicas}")).
				To(Equal("1"))
			Expect(kubectl(ctx, "-n", shop, "get", "configwatches", "-o", "name")).To(ContainSubstring("/app"))
		})

		It("leaves the CRD with the ConfigWatches, the hash key and the lease when it is uninstalled, and nothing else", func(ctx SpecContext) {
			helm(ctx, "uninstall", release, "--namespace", utils.ManagerNamespace, "--wait")

			for _, object := range m {
				err := k8sClient.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
				if object.GetKind() == "CustomResourceDefinition" {
					Expect(err).NotTo(HaveOccurred())
					continue
				}
				Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
				Expect(err).To(HaveOccurred(), "%s %s is left", object.GetKind(), object.GetName())
			}
			Expect(kubectl(ctx, "-n", shop, "get", "configwatches", "-o", "name")).To(ContainSubstring("/app"))
			secrets, leases := &corev1.SecretList{}, &coordinationv1.LeaseList{}
			Expect(k8sClient.List(ctx, secrets, client.InNamespace(utils.ManagerNamespace))).To(Succeed())
			Expect(secrets.Items).To(HaveExactElements(HaveField("Name", "configwatch-hash-key")))
			Expect(k8sClient.List(ctx, leases, client.InNamespace(utils.ManagerNamespace))).To(Succeed())
			Expect(leases.Items).To(HaveExactElements(HaveField("Name", "configwatch.ktechhub.io")))

			installRelease(ctx) // again, beside what was left
			Expect(kubectl(ctx, "-n", shop, "get", "configwatches", "-o", "name")).To(ContainSubstring("/app"))
		})
	})

	Describe("installed for chosen namespaces", Ordered, func() {
		watched := []string{"chart-a", "chart-b"}
		var (
			m         manifests
			installed int64 // mark of the audit log
		)

		BeforeAll(func(ctx SpecContext) {
			installed = mark()
			for _, name := range watched {
				createNamespace(ctx, name)
			}
			values := []string{"--set", "watchNamespaces={" + strings.Join(watched, ",") + "}"}
			installRelease(ctx, values...)
			m = chart(ctx, values...)
		})

		It("gives the manager Roles in the namespaces that it watches and in its own, and nothing for the cluster", func() {
			Expect(all[rbacv1.ClusterRoleBinding](m, "ClusterRoleBinding")).To(BeEmpty())
			for _, role := range all[rbacv1.ClusterRole](m, "ClusterRole") {
				Expect(role.Labels).To(HaveKey(HavePrefix("rbac.authorization.k8s.io/aggregate-to-")), role.Name)
			}
		})

		It("is the same in substance as config/samples/namespaced", func(ctx SpecContext) {
			ours, theirs := bySubstance(m), bySubstance(render(ctx, "config/samples/namespaced"))
			delete(theirs, "Namespace//"+utils.ManagerNamespace)
			for i, sample := range []string{"team-a", "team-b"} {
				for _, kind := range []string{"Role", "RoleBinding"} {
					name := kind + "/" + sample + "/configwatch-watcher"
					object := theirs[name]
					delete(theirs, name)
					metadata := object["metadata"].(map[string]any)
					metadata["namespace"] = watched[i]
					metadata["labels"] = map[string]any{"app.kubernetes.io/name": "configwatch"}
					theirs[kind+"/"+watched[i]+"/configwatch-watcher"] = object
				}
			}
			Expect(ours).To(HaveLen(len(theirs)))
			for name, object := range theirs {
				if name != "Deployment/"+utils.ManagerNamespace+"/configwatch-controller-manager" { // it names the namespaces
					Expect(ours).To(HaveKeyWithValue(name, object))
				}
			}
		})

		It("runs its pods", func(ctx SpecContext) {
			expectRunning(ctx, m)
		})

		It("lets the manager do its work in these namespaces, with rights of which it uses each", func(ctx SpecContext) {
			operator := newOperator(ctx, m)
			operator.expectWork(ctx, watched...)
			operator.expectJustItsRights(installed)
		})
	})
})

// installRelease installs the chart into a namespace that admits only confined pods, and has it removed in the end.
func installRelease(ctx context.Context, args ...string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: utils.ManagerNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := k8sClient.Create(ctx, namespace); err == nil {
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "delete", "crd", crdName)
			kubectl(ctx, "delete", "namespace", utils.ManagerNamespace)
		})
	}
	helm(ctx, append([]string{"install", release, chartFolder, "--namespace", utils.ManagerNamespace}, args...)...)
	DeferCleanup(func(ctx SpecContext) {
		helm(ctx, "uninstall", release, "--namespace", utils.ManagerNamespace, "--ignore-not-found", "--wait")
	})
}

// chart is what Helm makes of the chart.
func chart(ctx context.Context, args ...string) manifests {
	GinkgoHelper()
	return manifestsOf(helm(ctx, append([]string{"template", release, chartFolder, "--namespace", utils.ManagerNamespace}, args...)...))
}

func manifestsOf(text string) manifests {
	GinkgoHelper()
	return must(utils.Objects([]byte(text)))
}

// helm runs the real one, in the repository's root, and returns what it prints.
func helm(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return run(ctx, "bin/helm", append(args, "--kubeconfig", plane.Kubeconfig())...)
}

// named is the manifest of a kind with a name.
func named[T any](m manifests, kind, name string) T {
	GinkgoHelper()
	var found manifests
	for _, object := range m {
		if object.GetName() == name {
			found = append(found, object)
		}
	}
	return one[T](found, kind)
}

// bySubstance are manifests without what tells who installed them, by kind, namespace and name.
func bySubstance(m manifests) map[string]map[string]any {
	objects := map[string]map[string]any{}
	for _, object := range m {
		objects[object.GetKind()+"/"+object.GetNamespace()+"/"+object.GetName()] = withoutInstaller(object.Object).(map[string]any)
	}
	return objects
}

func withoutInstaller(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, inner := range value {
			switch key {
			case "app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/version",
				"helm.sh/chart", "helm.sh/resource-policy":
				continue
			}
			kept[key] = withoutInstaller(inner)
		}
		return kept
	case []any:
		var kept []any
		for _, inner := range value {
			kept = append(kept, withoutInstaller(inner))
		}
		return kept
	default:
		return value
	}
}
