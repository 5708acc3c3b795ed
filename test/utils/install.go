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

package utils

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/hack/controlplane"
)

// ManagerUser is the name by which the API server knows a manager that runs as Install has it.
const ManagerUser = "system:serviceaccount:" + ManagerNamespace + ":" + managerAccount

const managerAccount = "configwatch-controller-manager"

// NewClient makes a client that knows ConfigWatches too.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("making the scheme: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

// Install puts into the cluster what config/default has: the CRD, the manager's namespace, its
// ServiceAccount, roles and bindings; all but the manager, which is run as a process. It is the path of
// a kubeconfig of that ServiceAccount.
func Install(ctx context.Context, plane *controlplane.Plane, c client.Client) (kubeconfig string, err error) {
	objects, err := Render(ctx, plane, "config/default")
	if err != nil {
		return "", err
	}
	kinds := []string{
		"CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	}
	for _, object := range objects {
		if slices.Contains(kinds, object.GetKind()) {
			if err := apply(ctx, c, object); err != nil {
				return "", err
			}
		}
	}
	if err := served(ctx, c); err != nil {
		return "", err
	}
	return KubeconfigFor(ctx, plane, c, managerAccount)
}

// KubeconfigFor is the path of a kubeconfig of a ServiceAccount in the manager's namespace.
func KubeconfigFor(ctx context.Context, plane *controlplane.Plane, c client.Client, account string) (string, error) {
	request := &authenticationv1.TokenRequest{}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ManagerNamespace, Name: account}}
	if err := c.SubResource("token").Create(ctx, object, request); err != nil {
		return "", fmt.Errorf("getting a token of ServiceAccount %s: %w", account, err)
	}
	return plane.KubeconfigFor(account, request.Status.Token)
}

// Render is what kustomize makes of a folder of the repository.
func Render(ctx context.Context, plane *controlplane.Plane, folder string) ([]*unstructured.Unstructured, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, plane.Program(controlplane.Kubectl), "kustomize", filepath.Join(root, folder)).Output()
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	objects, err := Objects(out)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	return objects, nil
}

// Objects are those of a file of manifests.
func Objects(file []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(file), len(file))
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func apply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// served waits until the API server serves ConfigWatches.
func served(ctx context.Context, c client.Client) error {
	const interval, timeout = 50 * time.Millisecond, 30 * time.Second
	err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
		return c.List(ctx, &v1alpha1.ConfigWatchList{}) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for ConfigWatches to be served: %w", err)
	}
	return nil
}
