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
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	certutil "k8s.io/client-go/util/cert"

	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/test/utils"
)

// The arguments of the stream. The test runs the manager with others.
const (
	streamArg     = "--stream-bind-address=:8444"
	streamCertArg = "--stream-cert-path=/etc/configwatch/stream"
)

var _ = Describe("config/samples/stream", Ordered, func() {
	const folder, shop = "config/samples/stream", "stream-shop"
	var (
		m     manifests
		names []string // of the certificate, as cert-manager makes it

		installed int64 // mark of the audit log
	)

	BeforeAll(func(ctx SpecContext) {
		installed = mark()
		m = render(ctx, folder)
		createNamespace(ctx, shop)
		kubectl(ctx, "apply", "--server-side", "--validate=strict", "-k", folder)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "-k", folder) })
	})

	It("leads from the Service to the port on which the manager listens", func() {
		container := m.container()
		Expect(container.Args).To(ContainElements(streamArg, streamCertArg))
		Expect(container.Ports).To(ContainElement(corev1.ContainerPort{Name: "stream", ContainerPort: 8444, Protocol: corev1.ProtocolTCP}))
		var service corev1.Service
		for _, s := range all[corev1.Service](m, "Service") {
			if s.Name == "configwatch-stream" {
				service = s
			}
		}
		Expect(service.Spec.Ports).To(HaveExactElements(SatisfyAll(HaveField("Port", int32(8444)), HaveField("TargetPort.StrVal", "stream"))))
		Expect(service.Spec.Selector).To(Equal(m.deployment().Spec.Selector.MatchLabels))
		Expect(service.Spec.SessionAffinity).To(BeEmpty(), "streams go on at whichever replica")
		var policy networkingv1.NetworkPolicy
		for _, p := range all[networkingv1.NetworkPolicy](m, "NetworkPolicy") {
			if p.Name == "configwatch-allow-stream-traffic" {
				policy = p
			}
		}
		Expect(policy.Spec.PodSelector.MatchLabels).To(Equal(service.Spec.Selector))
		Expect(policy.Spec.Ingress[0].Ports[0].Port.StrVal).To(Equal("stream"))
	})

	It("has cert-manager make, if that is asked for, the certificate that is mounted, for the names of the Service", func(ctx SpecContext) {
		overlay := GinkgoT().TempDir()
		config, err := filepath.Abs(filepath.Join(root, "config"))
		Expect(err).NotTo(HaveOccurred())
		config, err = filepath.Rel(must(filepath.EvalSymlinks(overlay)), config)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte("resources: ["+config+"/default]\ncomponents: ["+
			config+"/components/stream, "+config+"/components/stream-cert-manager]\n"), 0o600)).To(Succeed())
		decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(kubectl(ctx, "kustomize", overlay)), 1<<10)
		made := map[string]*unstructured.Unstructured{}
		for {
			object := &unstructured.Unstructured{}
			if decoder.Decode(object) != nil {
				break
			}
			made[object.GetKind()+"/"+object.GetName()] = object
		}
		mounted := m.deployment().Spec.Template.Spec.Volumes[0].Secret.SecretName
		Expect(made["Deployment/configwatch-controller-manager"].Object["spec"]).To(
			Equal(rendered(m, "Deployment").Object["spec"]), "the operator is the same")
		certificate := made["Certificate/configwatch-stream"]
		Expect(certificate.GetNamespace()).To(Equal(m.deployment().Namespace))
		Expect(field(certificate, "spec", "secretName")).To(Equal(mounted))
		names, _, err = unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
		Expect(err).NotTo(HaveOccurred())
		issuer := made["Issuer/"+field(certificate, "spec", "issuerRef", "name")]
		ca := made["Certificate/configwatch-stream-ca"]
		Expect(field(issuer, "spec", "ca", "secretName")).To(Equal(field(ca, "spec", "secretName")))
		Expect(made).To(HaveKey("Issuer/" + field(ca, "spec", "issuerRef", "name")))
	})

	It("serves the stream under that certificate, which a client verifies by the name of the Service", func(ctx SpecContext) {
		certificate, key, err := certutil.GenerateSelfSignedCertKey(names[0], nil, names[1:])
		Expect(err).NotTo(HaveOccurred())
		create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: utils.ManagerNamespace, Name: m.deployment().Spec.Template.Spec.Volumes[0].Secret.SecretName},
			Type:       corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
		})
		expectRunning(ctx, m)
		mounted := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(mounted, corev1.TLSCertKey), certificate, 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(mounted, corev1.TLSPrivateKeyKey), key, 0o600)).To(Succeed())
		operator, address := startWithStream(ctx, m, mounted)

		user := "system:serviceaccount:" + shop + ":observer"
		create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "observer"}},
			&rbacv1.Role{
				ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "observer"},
				Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"watch"}}},
			},
			&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "observer"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "observer"},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			})
		const value = "of a ConfigMap"
		create(ctx, utils.MakeConfigMap("settings").Namespace(shop).Data("value", value).Obj())
		token := tokenOf(ctx, shop, "observer")
		for _, name := range names {
			Expect(name).To(HavePrefix("configwatch-stream." + utils.ManagerNamespace + ".svc"))
			Eventually(ask).WithArguments(ctx, address, name, shop, certificate, token).Should(ContainSubstring(value), name)
		}
		_, err = ask(ctx, address, "another."+utils.ManagerNamespace+".svc", shop, certificate, token)
		Expect(err).To(MatchError(ContainSubstring("certificate is valid for configwatch-stream.")))
		operator.expectWithinRights(installed)
	})
})

// rendered is the only manifest of a kind, as it is.
func rendered(m manifests, kind string) *unstructured.Unstructured {
	GinkgoHelper()
	for _, object := range m {
		if object.GetKind() == kind {
			return object
		}
	}
	Fail("there is no " + kind)
	return nil
}

// field is a text in a manifest.
func field(object *unstructured.Unstructured, path ...string) string {
	GinkgoHelper()
	Expect(object).NotTo(BeNil())
	text, _, err := unstructured.NestedString(object.Object, path...)
	Expect(err).NotTo(HaveOccurred())
	return text
}

// startWithStream starts the manager as the manifests have it, with the certificate of a folder, and tells where
// it serves the stream.
func startWithStream(ctx context.Context, m manifests, mounted string) (o *operator, address string) {
	GinkgoHelper()
	o = newOperator(ctx, m)
	address = freeAddress()
	replaced := map[string][]string{
		probeArg: nil, metricsArg: nil, // utils.StartManager chooses another, and none
		streamArg:     {strings.Replace(streamArg, ":8444", address, 1)},
		streamCertArg: {strings.Replace(streamCertArg, "/etc/configwatch/stream", mounted, 1)},
	}
	var args []string
	for _, arg := range m.container().Args {
		if with, ok := replaced[arg]; ok {
			args = append(args, with...)
			continue
		}
		args = append(args, arg)
	}
	var err error
	o.Manager, err = utils.StartManager(utils.ManagerOptions{Binary: binary, Kubeconfig: o.kubeconfig, Args: args, Env: m.environment()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(o.Stop)
	Expect(o.WaitReady(ctx)).To(Succeed())
	return o, address
}

// ask asks for a stream of ConfigMaps and their data at the name of the Service, as a client in the cluster does, and is
// what is there at its beginning.
func ask(ctx context.Context, address, name, namespace string, ca []byte, token string) (string, error) {
	GinkgoHelper()
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(ca)).To(BeTrue())
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address) // as the Service leads there
		},
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	url := "https://" + name + ":8444/v1/namespaces/" + namespace + "/changes?kind=ConfigMap&initial=true&data=true"
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, url, nil))
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var beginning strings.Builder
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		fmt.Fprintln(&beginning, lines.Text())
		if strings.Contains(lines.Text(), feed.TypeSynced) {
			break
		}
	}
	return beginning.String(), nil
}
