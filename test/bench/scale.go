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
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// growth is how much dearer one restart may become when there are more of them.
const growth = 1.5

// scale measures the cost of one restart as the work grows: many targets of one ConfigWatch, and many
// ConfigWatches on one source. It must not grow with their number.
func (b *bench) scale(ctx context.Context) error {
	shapes := []struct {
		name          string
		configWatches func(namespace string, n int) []*v1alpha1.ConfigWatch
	}{
		{"targets of one ConfigWatch", oneForAll},
		{"ConfigWatches on one ConfigMap", oneForEach},
	}
	for i, shape := range shapes {
		var first time.Duration
		for _, n := range b.size.scale {
			progress("%d %s", n, shape.name)
			namespace := fmt.Sprintf("scale-%d-%d", i, n)
			each, err := b.scaled(ctx, namespace, n, shape.configWatches(namespace, n))
			if err != nil {
				return err
			}
			if first == 0 {
				first = each
				continue
			}
			r := compared(fmt.Sprintf("one of %d %s, beside one of %d", n, shape.name, b.size.scale[0]), growth, each, first)
			b.report.add(r)
		}
	}
	return nil
}

func oneForAll(namespace string, _ int) []*v1alpha1.ConfigWatch {
	return []*v1alpha1.ConfigWatch{{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sharedConfig},
		Spec: v1alpha1.ConfigWatchSpec{
			Sources: []v1alpha1.SourceSelector{{Kind: v1alpha1.ConfigMap, Name: sharedConfig}},
			Rollout: atOnce(),
		},
	}}
}

func oneForEach(namespace string, n int) []*v1alpha1.ConfigWatch {
	all := make([]*v1alpha1.ConfigWatch, n)
	for i := range all {
		all[i] = &v1alpha1.ConfigWatch{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deploymentName(i)},
			Spec: v1alpha1.ConfigWatchSpec{
				Sources: []v1alpha1.SourceSelector{{Kind: v1alpha1.ConfigMap, Name: sharedConfig}},
				Targets: []v1alpha1.TargetSelector{{Kind: "Deployment", Name: deploymentName(i)}},
				Rollout: atOnce(),
			},
		}
	}
	return all
}

// scaled is the time for one of n restarts by one change, the median of the rounds.
func (b *bench) scaled(ctx context.Context, namespace string, n int, configWatches []*v1alpha1.ConfigWatch) (time.Duration, error) {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := b.typed.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	if err := b.createConfigMap(ctx, namespace, sharedConfig); err != nil {
		return 0, err
	}
	err := b.each(ctx, n, func(ctx context.Context, i int) error {
		_, err := b.typed.AppsV1().Deployments(namespace).Create(ctx, deployment(namespace, i, true), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return 0, err
	}
	err = b.each(ctx, len(configWatches), func(ctx context.Context, i int) error {
		return b.client.Create(ctx, configWatches[i])
	})
	if err != nil {
		return 0, err
	}
	if b.observers[namespace], err = observe(ctx, b.cluster, namespace); err != nil {
		return 0, err
	}
	var times []time.Duration
	err = b.with(ctx, b.manager, manyNamespace, func() error {
		for range b.size.rounds {
			if err := b.settled(ctx); err != nil {
				return err
			}
			took, err := b.time(ctx, namespace, []string{sharedConfig}, b.deployments(n))
			if err != nil {
				return err
			}
			times = append(times, took/time.Duration(n))
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return percentile(times, 50), nil
}
