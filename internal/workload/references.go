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
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

// secretsStoreDriver is the CSI driver whose volumes are made from SecretProviderClasses.
const secretsStoreDriver = "secrets-store.csi.k8s.io"

// references are what a pod template takes its configuration from.
type references struct {
	sources map[source.Ref]struct{}
	classes []string
}

// referencesOf finds the ConfigMaps and Secrets that a pod reads its configuration from, sorted, and
// the SecretProviderClasses, which aren't watched.
//
// E20: containers of every sort, by env, envFrom and volumes, optional or not. imagePullSecrets and
// service-account tokens are not configuration, nor are the credentials of volume drivers.
func referencesOf(pod *corev1.PodSpec) (refs []source.Ref, classes []string) {
	found := references{sources: map[source.Ref]struct{}{}}
	for i := range pod.InitContainers {
		found.addEnv(pod.InitContainers[i].Env, pod.InitContainers[i].EnvFrom)
	}
	for i := range pod.Containers {
		found.addEnv(pod.Containers[i].Env, pod.Containers[i].EnvFrom)
	}
	for i := range pod.EphemeralContainers {
		found.addEnv(pod.EphemeralContainers[i].Env, pod.EphemeralContainers[i].EnvFrom)
	}
	for i := range pod.Volumes {
		found.addVolume(&pod.Volumes[i])
	}
	for ref := range found.sources {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b source.Ref) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
	})
	slices.Sort(found.classes)
	return refs, slices.Compact(found.classes)
}

func (r *references) add(kind v1alpha1.SourceKind, name string) {
	if name != "" {
		r.sources[source.Ref{Kind: kind, Name: name}] = struct{}{}
	}
}

func (r *references) addEnv(env []corev1.EnvVar, envFrom []corev1.EnvFromSource) {
	for i := range env {
		from := env[i].ValueFrom
		if from == nil {
			continue
		}
		if from.ConfigMapKeyRef != nil {
			r.add(v1alpha1.ConfigMap, from.ConfigMapKeyRef.Name)
		}
		if from.SecretKeyRef != nil {
			r.add(v1alpha1.Secret, from.SecretKeyRef.Name)
		}
	}
	for i := range envFrom {
		if envFrom[i].ConfigMapRef != nil {
			r.add(v1alpha1.ConfigMap, envFrom[i].ConfigMapRef.Name)
		}
		if envFrom[i].SecretRef != nil {
			r.add(v1alpha1.Secret, envFrom[i].SecretRef.Name)
		}
	}
}

func (r *references) addVolume(volume *corev1.Volume) {
	switch {
	case volume.ConfigMap != nil:
		r.add(v1alpha1.ConfigMap, volume.ConfigMap.Name)
	case volume.Secret != nil:
		r.add(v1alpha1.Secret, volume.Secret.SecretName)
	case volume.Projected != nil:
		for i := range volume.Projected.Sources {
			projection := &volume.Projected.Sources[i]
			if projection.ConfigMap != nil {
				r.add(v1alpha1.ConfigMap, projection.ConfigMap.Name)
			}
			if projection.Secret != nil {
				r.add(v1alpha1.Secret, projection.Secret.Name)
			}
		}
	case volume.CSI != nil && volume.CSI.Driver == secretsStoreDriver:
		if class := volume.CSI.VolumeAttributes["secretProviderClass"]; class != "" {
			r.classes = append(r.classes, class)
		}
	}
}
