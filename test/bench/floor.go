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
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
)

// floorParallel bounds the floor's patches that are under way at once, as the manager bounds its own.
const floorParallel = 16

// The environment variables by which the benchmark runs itself as the floor.
const (
	floorKubeconfig  = "CONFIGWATCH_FLOOR_KUBECONFIG"
	floorDeployments = "CONFIGWATCH_FLOOR_DEPLOYMENTS"
	floorShared      = "CONFIGWATCH_FLOOR_SHARED"
)

func isFloor() bool {
	return os.Getenv(floorKubeconfig) != ""
}

// runFloor is the least that can restart workloads when ConfigMaps change: a watch, a ready-made map, a
// patch. It forgets, reports and checks nothing.
func runFloor(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(floorKubeconfig))
	if err != nil {
		return err
	}
	deployments, errDeployments := strconv.Atoi(os.Getenv(floorDeployments))
	shared, errShared := strconv.Atoi(os.Getenv(floorShared))
	if err := errors.Join(errDeployments, errShared); err != nil {
		return err
	}
	client, err := newClient(config)
	if err != nil {
		return err
	}
	dependents := map[string][]string{}
	for i := range deployments {
		dependents[ownConfig(i)] = []string{deploymentName(i)}
		if i < shared {
			dependents[sharedConfig] = append(dependents[sharedConfig], deploymentName(i))
		}
	}
	list, err := client.CoreV1().ConfigMaps(floorNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w, err := client.CoreV1().ConfigMaps(floorNamespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer w.Stop()
	fmt.Println("ready")
	places := make(chan struct{}, floorParallel)
	for event := range w.ResultChan() {
		configMap, ok := event.Object.(*corev1.ConfigMap)
		if event.Type != watch.Modified || !ok {
			continue
		}
		for _, name := range dependents[configMap.Name] {
			places <- struct{}{}
			go func() {
				defer func() { <-places }()
				patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, mark, configMap.ResourceVersion)
				_, err := client.AppsV1().Deployments(floorNamespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
				if err != nil {
					fmt.Println("patch failed:", err)
				}
			}()
		}
	}
	return ctx.Err()
}
