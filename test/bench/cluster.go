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
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/hack/controlplane"
	"github.com/ktechhub/configwatch/test/utils"
)

// Namespaces. They are set up alike, apart from who restarts the workloads.
const (
	manyNamespace    = "many"    // a ConfigWatch for each Deployment
	oneNamespace     = "one"     // one ConfigWatch for the shared ConfigMap
	floorNamespace   = "floor"   // none: the floor patches these
	foreignNamespace = "foreign" // Secrets that are nobody's business

	sharedConfig = "shared"
	mark         = "restart.configwatch.ktechhub.io/floor"

	foreignSize   = 10 << 10
	setUpParallel = 8
)

func deploymentName(i int) string { return fmt.Sprintf("web-%04d", i) }
func ownConfig(i int) string      { return fmt.Sprintf("config-%04d", i) }
func ownSecret(i int) string      { return fmt.Sprintf("secret-%04d", i) }

// cluster is an API server with the objects of the standard run.
type cluster struct {
	plane  *controlplane.Plane
	typed  kubernetes.Interface
	client client.Client
	size   size
}

func newClient(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	return kubernetes.NewForConfig(config)
}

func newCluster(ctx context.Context, s size) (c *cluster, err error) {
	c = &cluster{size: s}
	if c.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("setting up: %w", err)
			_ = c.plane.Stop() // the first error is the one to report
		}
	}()
	if c.typed, err = newClient(c.plane.RESTConfig()); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err = v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if c.client, err = client.New(c.plane.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if err = c.installCRD(ctx); err != nil {
		return nil, err
	}
	return c, c.create(ctx)
}

func (c *cluster) installCRD(ctx context.Context) error {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/ktechhub/configwatch").Output()
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	bases := filepath.Join(string(bytes.TrimSpace(module)), "config", "crd", "bases")
	_, err = envtest.InstallCRDs(c.plane.RESTConfig(), envtest.CRDInstallOptions{Paths: []string{bases}})
	return err
}

func (c *cluster) create(ctx context.Context) error {
	for _, namespace := range []string{manyNamespace, oneNamespace, floorNamespace, foreignNamespace, utils.ManagerNamespace} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if _, err := c.typed.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, namespace := range []string{manyNamespace, floorNamespace} {
		if err := c.createWorkloads(ctx, namespace, c.size.workloads); err != nil {
			return err
		}
	}
	if err := c.createWorkloads(ctx, oneNamespace, c.size.shared); err != nil {
		return err
	}
	err := c.each(ctx, c.size.workloads, func(ctx context.Context, i int) error {
		return c.client.Create(ctx, &v1alpha1.ConfigWatch{
			ObjectMeta: metav1.ObjectMeta{Namespace: manyNamespace, Name: deploymentName(i)},
			Spec: v1alpha1.ConfigWatchSpec{
				Targets: []v1alpha1.TargetSelector{{Kind: "Deployment", Name: deploymentName(i)}},
				Rollout: atOnce(),
			},
		})
	})
	if err != nil {
		return err
	}
	return c.client.Create(ctx, &v1alpha1.ConfigWatch{
		ObjectMeta: metav1.ObjectMeta{Namespace: oneNamespace, Name: sharedConfig},
		Spec: v1alpha1.ConfigWatchSpec{
			Sources: []v1alpha1.SourceSelector{{Kind: v1alpha1.ConfigMap, Name: sharedConfig}},
			Rollout: atOnce(),
		},
	})
}

// atOnce makes nothing wait: there are no controllers that would complete a rollout.
func atOnce() v1alpha1.RolloutSpec {
	return v1alpha1.RolloutSpec{SettleSeconds: new(int32(0)), MaxConcurrent: 1000}
}

// each calls the function for each number, several at once.
func (c *cluster) each(ctx context.Context, n int, call func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(setUpParallel)
	for i := range n {
		group.Go(func() error { return call(ctx, i) })
	}
	return group.Wait()
}

func (c *cluster) createWorkloads(ctx context.Context, namespace string, n int) error {
	if err := c.createConfigMap(ctx, namespace, sharedConfig); err != nil {
		return err
	}
	return c.each(ctx, n, func(ctx context.Context, i int) error {
		if err := c.createConfigMap(ctx, namespace, ownConfig(i)); err != nil {
			return err
		}
		if err := c.createSecret(ctx, namespace, ownSecret(i), []byte("initial")); err != nil {
			return err
		}
		_, err := c.typed.AppsV1().Deployments(namespace).Create(ctx, deployment(namespace, i, i < c.size.shared), metav1.CreateOptions{})
		return err
	})
}

func (c *cluster) createConfigMap(ctx context.Context, namespace, name string) error {
	_, err := c.typed.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(namespace, name, "initial"), metav1.CreateOptions{})
	return err
}

func (c *cluster) createSecret(ctx context.Context, namespace, name string, value []byte) error {
	_, err := c.typed.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{"VALUE": value},
	}, metav1.CreateOptions{})
	return err
}

func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"VALUE": value},
	}
}

func deployment(namespace string, i int, readsShared bool) *appsv1.Deployment {
	labels := map[string]string{"app": deploymentName(i)}
	from := []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: ownConfig(i)}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: ownSecret(i)}}},
	}
	if readsShared {
		from = append(from, corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: sharedConfig}},
		})
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deploymentName(i), Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.example/web:1", EnvFrom: from}}},
			},
		},
	}
}

// change gives a ConfigMap a content that it has not had.
func (c *cluster) change(ctx context.Context, namespace, name, value string) error {
	_, err := c.typed.CoreV1().ConfigMaps(namespace).Update(ctx, configMap(namespace, name, value), metav1.UpdateOptions{})
	return err
}

// requests counts what the API server has been asked so far, by "VERB resource/subresource".
func (c *cluster) requests(ctx context.Context) (map[string]int, error) {
	text, err := c.typed.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		series, ok := strings.CutPrefix(line, "apiserver_request_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(series, "} ")
		number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return nil, fmt.Errorf("reading the API server's metrics: %w", err)
		}
		what := label(labels, "verb") + " " + label(labels, "resource")
		if sub := label(labels, "subresource"); sub != "" {
			what += "/" + sub
		}
		counts[what] += int(number)
	}
	return counts, nil
}

func label(labels, name string) string {
	_, found, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(found, `"`)
	return value
}

// foreign makes the number of foreign Secrets rise to n.
func (c *cluster) foreign(ctx context.Context, from, n int) error {
	value := bytes.Repeat([]byte{'x'}, foreignSize)
	return c.each(ctx, n-from, func(ctx context.Context, i int) error {
		return c.createSecret(ctx, foreignNamespace, fmt.Sprintf("foreign-%05d", from+i), value)
	})
}

func selfPath() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the benchmark's own binary: %w", err)
	}
	return path, nil
}
