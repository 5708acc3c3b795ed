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
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

func configMap(name string) source.Ref { return source.Ref{Kind: v1alpha1.ConfigMap, Name: name} }
func secret(name string) source.Ref    { return source.Ref{Kind: v1alpha1.Secret, Name: name} }

func TestE20ReferencesAreFoundInEveryPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     string // a pod spec in JSON, as users write it
		want    []source.Ref
		classes []string
	}{
		"nothing": {pod: `{"containers": [{"name": "a", "env": [{"name": "A", "value": "1"}]}]}`},
		"env": {
			pod: `{"containers": [{"name": "a", "env": [
				{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
				{"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
				{"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]}`,
			want: []source.Ref{configMap("c"), secret("s")},
		},
		"env, optional": {
			pod: `{"containers": [{"name": "a", "env": [
				{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": true}}},
				{"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}]}]}`,
			want: []source.Ref{configMap("c"), secret("s")},
		},
		"envFrom, with a prefix, optional": {
			pod: `{"containers": [{"name": "a", "envFrom": [
				{"prefix": "P_", "configMapRef": {"name": "c"}},
				{"prefix": "Q_", "secretRef": {"name": "s", "optional": true}}]}]}`,
			want: []source.Ref{configMap("c"), secret("s")},
		},
		"every container": {
			pod: `{"containers": [
				{"name": "a", "envFrom": [{"configMapRef": {"name": "first"}}]},
				{"name": "b", "envFrom": [{"configMapRef": {"name": "second"}}]}]}`,
			want: []source.Ref{configMap("first"), configMap("second")},
		},
		"initContainers": {
			pod:  `{"initContainers": [{"name": "a", "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}]}]}`,
			want: []source.Ref{configMap("c"), secret("s")},
		},
		"native sidecars": {
			pod: `{"initContainers": [{"name": "a", "restartPolicy": "Always", "env": [
				{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}`,
			want: []source.Ref{secret("s")},
		},
		"ephemeral containers": {
			pod: `{"ephemeralContainers": [{"name": "a",
				"envFrom": [{"configMapRef": {"name": "c"}}],
				"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}`,
			want: []source.Ref{configMap("c"), secret("s")},
		},
		"volumes, mounted or not, optional": {
			pod: `{"volumes": [
				{"name": "a", "configMap": {"name": "c", "optional": true}},
				{"name": "b", "secret": {"secretName": "s", "optional": true}},
				{"name": "c", "emptyDir": {}}]}`,
			want: []source.Ref{configMap("c"), secret("s")},
		},
		"projected volumes": {
			pod: `{"volumes": [{"name": "a", "projected": {"sources": [
				{"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
				{"secret": {"name": "s", "optional": true}},
				{"serviceAccountToken": {"path": "token"}},
				{"downwardAPI": {"items": []}}]}}]}`,
			want: []source.Ref{configMap("c"), secret("s")},
		},
		"the same in several places": {
			pod: `{"initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "c"}}]}],
				"containers": [{"name": "a", "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "c"}}]}],
				"volumes": [{"name": "v", "configMap": {"name": "c"}}]}`,
			want: []source.Ref{configMap("c"), secret("c")},
		},
		"sorted by kind and name": {
			pod: `{"containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "a"}}, {"configMapRef": {"name": "z"}},
				{"configMapRef": {"name": "b"}}, {"secretRef": {"name": "B"}}]}]}`,
			want: []source.Ref{configMap("b"), configMap("z"), secret("B"), secret("a")},
		},
		"without a name": {
			pod: `{"containers": [{"name": "a",
				"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"key": "k"}}}, {"name": "B", "valueFrom": {}}],
				"envFrom": [{"configMapRef": {}}, {"secretRef": {"name": ""}}, {}]}],
				"volumes": [{"name": "a", "configMap": {}}, {"name": "b", "secret": {}}, {"name": "c"},
					{"name": "d", "projected": {"sources": [{"secret": {}}, {}]}}]}`,
		},
		"what is no configuration": {
			pod: `{"imagePullSecrets": [{"name": "pull"}], "serviceAccountName": "sa",
				"volumes": [
					{"name": "a", "csi": {"driver": "disk.example.com", "nodePublishSecretRef": {"name": "disk"},
						"volumeAttributes": {"secretProviderClass": "not-of-the-secrets-store"}}},
					{"name": "b", "cephfs": {"monitors": ["m"], "secretRef": {"name": "ceph"}}}]}`,
		},
		"SecretProviderClasses": {
			pod: `{"volumes": [
				{"name": "a", "csi": {"driver": "secrets-store.csi.k8s.io", "volumeAttributes": {"secretProviderClass": "vault"}}},
				{"name": "b", "csi": {"driver": "secrets-store.csi.k8s.io", "volumeAttributes": {"secretProviderClass": "aws"}}},
				{"name": "c", "csi": {"driver": "secrets-store.csi.k8s.io", "volumeAttributes": {"secretProviderClass": "vault"}}}]}`,
			classes: []string{"aws", "vault"},
		},
		"a SecretProviderClass without a name": {
			pod: `{"volumes": [{"name": "a", "csi": {"driver": "secrets-store.csi.k8s.io"}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var pod corev1.PodSpec
			g.Expect(json.Unmarshal([]byte(tc.pod), &pod)).To(Succeed())
			refs, classes := referencesOf(&pod)
			g.Expect(refs).To(Equal(tc.want))
			g.Expect(classes).To(HaveExactElements(tc.classes))
		})
	}
}

// A release of the API that lets pods name ConfigMaps or Secrets in one more place adds a type here:
// then look whether referencesOf finds it.
func TestE20NoPlaceIsUnknown(t *testing.T) {
	configuration := []string{
		"ConfigMapEnvSource", "ConfigMapKeySelector", "ConfigMapProjection", "ConfigMapVolumeSource",
		"SecretEnvSource", "SecretKeySelector", "SecretProjection", "SecretVolumeSource",
	}
	credentials := []string{"LocalObjectReference"} // of registries and of volume drivers

	found := map[string]bool{}
	typesWithin(reflect.TypeFor[corev1.PodSpec](), map[reflect.Type]bool{}, func(name string) {
		if strings.Contains(name, "ConfigMap") || strings.Contains(name, "Secret") || name == "LocalObjectReference" {
			found[name] = true
		}
	})
	var names []string
	for name := range found {
		names = append(names, name)
	}
	NewWithT(t).Expect(names).To(ConsistOf(slices.Concat(configuration, credentials)))
}

func typesWithin(t reflect.Type, seen map[reflect.Type]bool, call func(name string)) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		typesWithin(t.Elem(), seen, call)
	case reflect.Struct:
		call(t.Name())
		for field := range t.Fields() {
			typesWithin(field.Type, seen, call)
		}
	default:
	}
}

// FuzzReferences: they are those that a blind walk over the whole pod spec finds, sorted, each once.
func FuzzReferences(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "s"}}}], "envFrom": [{"configMapRef": {"name": "c"}}]}]}`))
	f.Add([]byte(`{"initContainers": [{"restartPolicy": "Always", "envFrom": [{"prefix": "P", "secretRef": {"name": "s"}}]}]}`))
	f.Add([]byte(`{"ephemeralContainers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "c", "optional": true}}}]}]}`))
	f.Add([]byte(`{"volumes": [{"configMap": {"name": "c"}}, {"secret": {"secretName": "s"}}]}`))
	f.Add([]byte(`{"volumes": [{"projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "c"}}, null]}}]}`))
	f.Add([]byte(`{"volumes": [{"csi": {"driver": "secrets-store.csi.k8s.io", "volumeAttributes": {"secretProviderClass": "x"}}}]}`))
	f.Add([]byte(`{"imagePullSecrets": [{"name": "p"}], "volumes": [{"configMap": null}, {"name": "v"}], "containers": [null]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var pod corev1.PodSpec
		if json.Unmarshal(in, &pod) != nil {
			t.Skip("not a pod spec")
		}
		for i := range pod.Volumes { // the API server allows one source each
			pod.Volumes[i].VolumeSource = firstOf(pod.Volumes[i].VolumeSource)
		}
		refs, classes := referencesOf(&pod)
		want := map[source.Ref]bool{}
		walk(reflect.ValueOf(pod), want)
		for _, ref := range refs {
			if !want[ref] {
				t.Errorf("%s is not referenced", ref)
			}
			delete(want, ref)
		}
		for ref := range want {
			t.Errorf("%s was not found", ref)
		}
		if !slices.IsSortedFunc(refs, compareRefs) || !slices.IsSorted(classes) || slices.Contains(classes, "") {
			t.Errorf("not in order: %v, %q", refs, classes)
		}
	})
}

// compareRefs makes two that are the same out of order, too.
func compareRefs(a, b source.Ref) int {
	return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name), 1)
}

func firstOf(v corev1.VolumeSource) corev1.VolumeSource {
	switch {
	case v.ConfigMap != nil:
		return corev1.VolumeSource{ConfigMap: v.ConfigMap}
	case v.Secret != nil:
		return corev1.VolumeSource{Secret: v.Secret}
	case v.Projected != nil:
		return corev1.VolumeSource{Projected: v.Projected}
	default:
		return v
	}
}

func walk(v reflect.Value, found map[source.Ref]bool) {
	add := func(ref source.Ref) {
		if ref.Name != "" {
			found[ref] = true
		}
	}
	switch value := v.Interface().(type) {
	case corev1.ConfigMapKeySelector:
		add(configMap(value.Name))
	case corev1.ConfigMapEnvSource:
		add(configMap(value.Name))
	case corev1.ConfigMapVolumeSource:
		add(configMap(value.Name))
	case corev1.ConfigMapProjection:
		add(configMap(value.Name))
	case corev1.SecretKeySelector:
		add(secret(value.Name))
	case corev1.SecretEnvSource:
		add(secret(value.Name))
	case corev1.SecretVolumeSource:
		add(secret(value.SecretName))
	case corev1.SecretProjection:
		add(secret(value.Name))
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), found)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				walk(value, found)
			}
		}
	default:
	}
}

func TestFuzzReferencesOracleFindsWhatIsThere(t *testing.T) {
	found := map[source.Ref]bool{}
	walk(reflect.ValueOf(corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Optional: new(true),
		}}}},
	}}}}), found)
	NewWithT(t).Expect(found).To(Equal(map[source.Ref]bool{secret("s"): true}))
}
