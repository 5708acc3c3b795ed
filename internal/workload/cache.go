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

package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
)

// The kinds of workload.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	DaemonSet   = "DaemonSet"
	CronJob     = "CronJob"
)

// Kinds are all kinds of workload, in the order in which they are reported.
func Kinds() []string {
	return []string{Deployment, StatefulSet, DaemonSet, CronJob}
}

// APIVersion is the API group and version of a kind of workload.
func APIVersion(kind string) string {
	if kind == CronJob {
		return batchv1.SchemeGroupVersion.String()
	}
	return appsv1.SchemeGroupVersion.String()
}

// byReference is the index of workloads by the sources that they reference.
const byReference = "reference"

// Cache is all workloads of the watched namespaces.
type Cache struct {
	informer.Group
	kinds map[string]kind
}

// kind is one kind of workload: its informer, and how to patch it.
type kind struct {
	informer *informer.Informer[*Workload]
	get      func(ctx context.Context, namespace, name string) (runtime.Object, error)
	patch    func(ctx context.Context, namespace, name string, patch []byte) (runtime.Object, error)
}

// NewCache makes a Cache of the namespaces; one empty string stands for all.
func NewCache(client kubernetes.Interface, namespaces []string) (*Cache, error) {
	deployments, err := newKind(client, namespaces, "deployments", &appsv1.Deployment{},
		func(namespace string) typedClient[*appsv1.Deployment, *appsv1.DeploymentList] {
			return client.AppsV1().Deployments(namespace)
		})
	if err != nil {
		return nil, err
	}
	statefulSets, err := newKind(client, namespaces, "statefulsets", &appsv1.StatefulSet{},
		func(namespace string) typedClient[*appsv1.StatefulSet, *appsv1.StatefulSetList] {
			return client.AppsV1().StatefulSets(namespace)
		})
	if err != nil {
		return nil, err
	}
	daemonSets, err := newKind(client, namespaces, "daemonsets", &appsv1.DaemonSet{},
		func(namespace string) typedClient[*appsv1.DaemonSet, *appsv1.DaemonSetList] {
			return client.AppsV1().DaemonSets(namespace)
		})
	if err != nil {
		return nil, err
	}
	cronJobs, err := newKind(client, namespaces, "cronjobs", &batchv1.CronJob{},
		func(namespace string) typedClient[*batchv1.CronJob, *batchv1.CronJobList] {
			return client.BatchV1().CronJobs(namespace)
		})
	if err != nil {
		return nil, err
	}
	return &Cache{
		Group: informer.Group{deployments.informer, statefulSets.informer, daemonSets.informer, cronJobs.informer},
		kinds: map[string]kind{
			Deployment: deployments, StatefulSet: statefulSets, DaemonSet: daemonSets, CronJob: cronJobs,
		},
	}, nil
}

type typedClient[O, L runtime.Object] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (O, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, patchType types.PatchType, data []byte, opts metav1.PatchOptions,
		subresources ...string) (O, error)
}

func newKind[O, L runtime.Object](client kubernetes.Interface, namespaces []string, resource string, empty O,
	typed func(namespace string) typedClient[O, L],
) (kind, error) {
	inf, err := informer.New(informer.Options[*Workload]{
		Resource:   resource,
		Namespaces: namespaces,
		Type:       empty,
		Reduce:     reduce,
		Indexes: map[string]func(*Workload) []string{byReference: func(w *Workload) []string {
			values := make([]string, len(w.References))
			for i, ref := range w.References {
				values[i] = ref.String()
			}
			return values
		}},
		Client: func(namespace string) informer.ListWatcher {
			c := typed(namespace)
			return informer.ListWatcher{
				Client: client,
				Watch:  c.Watch,
				List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return c.List(ctx, o)
				},
			}
		},
	})
	return kind{
		informer: inf,
		get: func(ctx context.Context, namespace, name string) (runtime.Object, error) {
			return typed(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		patch: func(ctx context.Context, namespace, name string, patch []byte) (runtime.Object, error) {
			return typed(namespace).Patch(ctx, name, types.JSONPatchType, patch,
				metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
		},
	}, err
}

// OnChange calls the function for each workload that appears (before is nil), goes (after is nil), or
// changes in something that matters. It must be called before Start.
func (c *Cache) OnChange(call func(before, after *Workload)) error {
	for _, k := range c.kinds {
		err := k.informer.OnChange(func(before, after *Workload) {
			if before != nil && after != nil && !differs(before, after) {
				return
			}
			call(before, after)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Readable is nil while all workloads of the kind in the namespace are known. An empty namespace asks
// for all of them.
func (c *Cache) Readable(kind, namespace string) error {
	k, ok := c.kinds[kind]
	if !ok {
		return fmt.Errorf("%s is not a kind of workload", kind)
	}
	return k.informer.Health(namespace)
}

// Get is a workload, or nil if it doesn't exist.
func (c *Cache) Get(namespace, kind, name string) *Workload {
	k, ok := c.kinds[kind]
	if !ok {
		return nil
	}
	w, _ := k.informer.Get(namespace, name)
	return w
}

// List is all workloads of a kind in a namespace, in no order.
func (c *Cache) List(namespace, kind string) []*Workload {
	k, ok := c.kinds[kind]
	if !ok {
		return nil
	}
	return k.informer.List(namespace)
}

// Using is all workloads of the namespace whose pod template references the source, in no order.
func (c *Cache) Using(namespace string, ref source.Ref) []*Workload {
	using := make([]*Workload, 0, len(c.kinds))
	for _, k := range c.kinds {
		using = append(using, k.informer.ByIndex(namespace, byReference, ref.String())...)
	}
	return using
}

// Read reads the pod template that a workload has now, past the cache (E13). It fails if the workload is no
// longer the one that the caller knows.
func (c *Cache) Read(ctx context.Context, w *Workload) (Template, error) {
	k, ok := c.kinds[w.Kind]
	if !ok {
		return Template{}, fmt.Errorf("%s is not a kind of workload", w.Kind)
	}
	object, err := k.get(ctx, w.Namespace, w.Name)
	if err != nil {
		return Template{}, fmt.Errorf("reading %s: %w", w.Ref(), err)
	}
	live := reduce(object)
	if live.UID != w.UID {
		return Template{}, fmt.Errorf("reading %s: it was deleted and created again", w.Ref())
	}
	return live.Template, nil
}

// Restart marks the pod template of a workload for the ConfigWatch of that name, whereupon the
// workload's own controller rolls it out. The patch fails if the workload is no longer the one that
// the caller knows, or bears another mark.
func (c *Cache) Restart(ctx context.Context, w *Workload, name string, mark Mark) error {
	k, ok := c.kinds[w.Kind]
	if !ok {
		return fmt.Errorf("%s is not a kind of workload", w.Kind)
	}
	patch, err := restartPatch(w, name, mark)
	if err != nil {
		return err
	}
	patched, err := k.patch(ctx, w.Namespace, w.Name, patch)
	if err != nil {
		return fmt.Errorf("patching %s: %w", w.Ref(), err)
	}
	k.informer.Wrote(reduce(patched))
	return nil
}
