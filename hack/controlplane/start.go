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

package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// NodeName is the fake node that kwok plays.
const NodeName = "fake-0"

const (
	tokensFile      = "tokens.csv"
	serviceKeyFile  = "service-account.key"
	auditPolicyFile = "audit-policy.yaml"
	loopback        = "127.0.0.1"
	// unlimited lifts the limit of requests a second that components put on themselves by default: 20 in the
	// controller manager, by which 200 rollouts would take minutes.
	unlimited = "5000"
)

func (p *Plane) startEtcd(ctx context.Context) error {
	// A socket of its own cannot be mistaken for that of another plane, as a port could.
	socket := "unix:" + p.EtcdSocket()
	args := []string{
		"--data-dir=" + p.file("etcd"),
		"--listen-client-urls=" + socket,
		"--advertise-client-urls=" + socket,
		"--listen-peer-urls=unix:" + p.file("etcd-peer.sock"),
		"--unsafe-no-fsync", // what it stores need not outlive the machine
		"--log-level=warn",
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", p.EtcdSocket())
		},
	}}
	return p.run(ctx, Etcd, args, func(ctx context.Context) error { return get(ctx, client, "http://etcd/health") })
}

func (p *Plane) startFirstAPIServer(ctx context.Context) (err error) {
	if p.port, err = p.serve(ctx, APIServer, p.apiServerArgs, p.serverReady); err != nil {
		return err
	}
	if p.ca, err = os.ReadFile(p.certificate(APIServer)); err != nil {
		return fmt.Errorf("reading its certificate: %w", err)
	}
	_, err = p.KubeconfigFor("admin", p.token)
	return err
}

func (p *Plane) apiServerArgs(port int) []string {
	args := []string{
		"--etcd-servers=unix://" + p.EtcdSocket(),
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + p.dir,
		"--token-auth-file=" + p.file(tokensFile),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p.file(serviceKeyFile),
		"--service-account-signing-key-file=" + p.file(serviceKeyFile),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--endpoint-reconciler-type=none", // a loopback address cannot be an endpoint
		"--allow-privileged=true",
		"--profiling=false",
	}
	if !p.runs(ControllerManager) {
		// It would refuse pods for want of the ServiceAccount that only the controller manager makes.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if p.options.AuditLog != "" {
		args = append(args,
			"--audit-policy-file="+p.file(auditPolicyFile),
			"--audit-log-path="+p.options.AuditLog,
			"--audit-log-maxsize=10000") // MB; at 100, the default, a long benchmark would see its log rotated
	}
	return args
}

func (p *Plane) startControllerManager(ctx context.Context) error {
	args := func(port int) []string {
		return append(p.controllerArgs(port),
			"--service-account-private-key-file="+p.file(serviceKeyFile),
			"--root-ca-file="+p.certificate(APIServer),
			"--flex-volume-plugin-dir="+p.file("flex"))
	}
	if _, err := p.serve(ctx, ControllerManager, args, p.healthy(ControllerManager)); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(p.RESTConfig())
	if err != nil {
		return err
	}
	return p.processes[ControllerManager].await(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (p *Plane) startScheduler(ctx context.Context) error {
	_, err := p.serve(ctx, Scheduler, p.controllerArgs, p.healthy(Scheduler))
	return err
}

// controllerArgs are those that the controller manager and the scheduler share.
func (p *Plane) controllerArgs(port int) []string {
	return []string{
		"--kubeconfig=" + p.Kubeconfig(),
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + p.dir,
		"--leader-elect=false",
		"--profiling=false",
		"--kube-api-qps=" + unlimited,
		"--kube-api-burst=" + unlimited,
	}
}

func (p *Plane) startKwok(ctx context.Context) error {
	const config = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  manageAllNodes: false
  manageNodesWithAnnotationSelector: kwok.x-k8s.io/node=fake
  cidr: 10.244.0.0/16
  nodeIP: 127.0.0.1
  nodeLeaseDurationSeconds: 40
  nodeLeaseParallelism: 4 # kwok ends at once without it
  nodePlayStageParallelism: 4
  podPlayStageParallelism: 16
  enablePodsOnNodeSyncStreamWatch: true
`
	stages, err := os.ReadFile(filepath.Join(p.programs, stagesFile))
	if err != nil {
		return fmt.Errorf("reading its stages: %w", err)
	}
	path := p.file("kwok.yaml")
	if err := os.WriteFile(path, append([]byte(config), stages...), 0o600); err != nil {
		return fmt.Errorf("writing its configuration: %w", err)
	}
	client, err := kubernetes.NewForConfig(p.RESTConfig())
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, fakeNode(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the node: %w", err)
	}
	return p.run(ctx, Kwok, []string{"--kubeconfig=" + p.Kubeconfig(), "--config=" + path}, nodeReady(client))
}

func fakeNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        NodeName,
		Labels:      map[string]string{corev1.LabelHostname: NodeName, corev1.LabelOSStable: "linux"},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
}

func nodeReady(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("the node has the taints %v", node.Spec.Taints)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("the node is not ready")
	}
}

// serverReady waits for the hooks after the API server's start too: they make the default roles.
func (p *Plane) serverReady(port int) func(context.Context) error {
	return p.answers(APIServer, port, "/readyz")
}

func (p *Plane) healthy(component Component) func(port int) func(context.Context) error {
	return func(port int) func(context.Context) error { return p.answers(component, port, "/healthz") }
}

// answers asks a component on its port. By its certificate it cannot be mistaken for another process.
func (p *Plane) answers(component Component, port int, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		certificate, err := os.ReadFile(p.certificate(component)) // which the component writes first of all
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(certificate)
		client := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		}}
		return get(ctx, client, fmt.Sprintf("https://%s:%d%s", loopback, port, path))
	}
}

// certificate is the path at which a component keeps the certificate that it makes for itself.
func (p *Plane) certificate(component Component) string {
	name := string(component)
	if component == APIServer {
		name = "apiserver"
	}
	return p.file(name + ".crt")
}

func get(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, bytes.TrimSpace(body))
	}
	return err
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
