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

package source

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
)

// canary is in every value of the objects below, and must be nowhere after they are reduced.
const canary = "CANARY-5f1d"

func testReducer() reducer {
	return reducer{plain: digest.Plain(), keyed: digest.Keyed([]byte("0123456789abcdef0123456789abcdef"))}
}

// meta is the metadata of a source in full, with the values once more, as kubectl apply puts them there.
func meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: "app-config", UID: "uid-1", ResourceVersion: "7", Generation: 3,
		Labels:          map[string]string{"app": "web"},
		Annotations:     map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"a":"` + canary + `"}}`},
		Finalizers:      []string{"x/y"},
		OwnerReferences: []metav1.OwnerReference{{Name: canary}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", FieldsV1: metav1.NewFieldsV1(canary)}},
	}
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: meta(),
		Data:       map[string]string{"LOG_LEVEL": canary},
		BinaryData: map[string][]byte{"logo": []byte("\xff" + canary)},
	}
}

func secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: meta(),
		Data:       map[string][]byte{"password": []byte(canary)},
		StringData: map[string]string{"password": canary},
	}
}

func TestNoValueIsLeftOfASource(t *testing.T) {
	for name, object := range map[string]runtime.Object{"ConfigMap": configMap(), "Secret": secret()} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(reachable(object)).To(ContainElement(ContainSubstring(canary)), "the search finds what is there")
			kept := reachable(testReducer().reduce(object))
			g.Expect(kept).To(ContainElement("app-config"), "the search looks at what is kept")
			g.Expect(kept).NotTo(ContainElement(ContainSubstring(canary)))
		})
	}
}

func TestOnlyMetadataThatMattersIsLeftOfASource(t *testing.T) {
	for kind, object := range map[v1alpha1.SourceKind]runtime.Object{v1alpha1.ConfigMap: configMap(), v1alpha1.Secret: secret()} {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			s := testReducer().reduce(object)
			g.Expect(s.ObjectMeta).To(Equal(metav1.ObjectMeta{
				Namespace: "shop", Name: "app-config", UID: "uid-1", ResourceVersion: "7",
				Labels: map[string]string{"app": "web"},
			}))
			g.Expect(s.Ref()).To(Equal(Ref{Kind: kind, Name: "app-config"}))
			g.Expect(s.Ref().String()).To(Equal(string(kind) + " app-config"))
			g.Expect(s.Ignored).To(BeFalse())
			g.Expect(s.Writer).To(Equal("kubectl-edit"))
		})
	}
	NewWithT(t).Expect(testReducer().reduce(&corev1.Pod{})).To(BeNil(), "other kinds are no sources")
}

func TestE2ASecretsDigestIsKeyedAndAConfigMapsIsPlain(t *testing.T) {
	g := NewWithT(t)
	r := testReducer()
	g.Expect(r.reduce(configMap()).Content.Hash(nil)).
		To(Equal(digest.Plain().Content(configMap().Data, configMap().BinaryData).Hash(nil)))
	g.Expect(r.reduce(secret()).Content.Hash(nil)).To(Equal(r.keyed.SecretContent(secret().Data).Hash(nil)))
	g.Expect(r.reduce(secret()).Content.Hash(nil).SameMethod(digest.Plain().Content(nil, nil).Hash(nil))).To(BeFalse())
}

func TestOnlyTheWordTrueIgnoresASource(t *testing.T) {
	for value, ignored := range map[string]bool{"true": true, "True": false, "false": false, "": false, "1": false} {
		object := configMap()
		object.Annotations[v1alpha1.IgnoreAnnotation] = value
		NewWithT(t).Expect(testReducer().reduce(object).Ignored).To(Equal(ignored), "%q", value)
	}
}

func TestE1OnlyContentLabelsAndIgnoreAreAChange(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.ConfigMap)
		differ bool
	}{
		"nothing":            {func(*corev1.ConfigMap) {}, false},
		"resourceVersion":    {func(c *corev1.ConfigMap) { c.ResourceVersion = "8" }, false},
		"generation":         {func(c *corev1.ConfigMap) { c.Generation = 9 }, false},
		"annotations":        {func(c *corev1.ConfigMap) { c.Annotations["more"] = "x" }, false},
		"managedFields":      {func(c *corev1.ConfigMap) { c.ManagedFields = nil }, false},
		"another writer":     {func(c *corev1.ConfigMap) { c.ManagedFields[0].Manager = "helm" }, false},
		"owner and the like": {func(c *corev1.ConfigMap) { c.OwnerReferences, c.Finalizers = nil, nil }, false},
		"immutable":          {func(c *corev1.ConfigMap) { c.Immutable = new(bool) }, false},
		"equal labels":       {func(c *corev1.ConfigMap) { c.Labels = map[string]string{"app": "web"} }, false},
		"a value":            {func(c *corev1.ConfigMap) { c.Data["LOG_LEVEL"] = "info" }, true},
		"a binary value":     {func(c *corev1.ConfigMap) { c.BinaryData["logo"] = nil }, true},
		"a key":              {func(c *corev1.ConfigMap) { c.Data["more"] = "" }, true},
		"labels":             {func(c *corev1.ConfigMap) { c.Labels["app"] = "db" }, true},
		"no labels":          {func(c *corev1.ConfigMap) { c.Labels = nil }, true},
		"ignored":            {func(c *corev1.ConfigMap) { c.Annotations[v1alpha1.IgnoreAnnotation] = "true" }, true},
		"deleted and made":   {func(c *corev1.ConfigMap) { c.UID = "uid-2" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object := configMap()
			before := testReducer().reduce(configMap())
			tc.change(object)
			after := testReducer().reduce(object)
			g.Expect(differs(before, after)).To(Equal(tc.differ))
			g.Expect(differs(after, before)).To(Equal(tc.differ))
		})
	}
}

func TestE15TheWriterIsTheManagerOfTheLatestWrite(t *testing.T) {
	at := func(manager string, second int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &metav1.Time{Time: time.Unix(int64(second), 0)}}
	}
	untimed := metav1.ManagedFieldsEntry{Manager: "before-first-apply", Operation: metav1.ManagedFieldsOperationUpdate}
	for name, tc := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"none":                           {nil, ""},
		"one":                            {[]metav1.ManagedFieldsEntry{at("helm", 1)}, "helm"},
		"the last one":                   {[]metav1.ManagedFieldsEntry{at("helm", 1), at("kubectl-edit", 2)}, "kubectl-edit"},
		"the first one":                  {[]metav1.ManagedFieldsEntry{at("helm", 2), at("kubectl-edit", 1)}, "helm"},
		"one in between":                 {[]metav1.ManagedFieldsEntry{at("a", 1), at("b", 3), at("c", 2)}, "b"},
		"of one second, the last listed": {[]metav1.ManagedFieldsEntry{at("a", 1), at("b", 1)}, "b"},
		"one without a time":             {[]metav1.ManagedFieldsEntry{untimed}, "before-first-apply"},
		// The API server makes such an entry at the first apply, of whatever was there, and lists it last.
		"one without a time, after one with":  {[]metav1.ManagedFieldsEntry{at("kubectl", 1), untimed}, "kubectl"},
		"one without a time, before one with": {[]metav1.ManagedFieldsEntry{untimed, at("kubectl", 1)}, "kubectl"},
		"one without a time, between others":  {[]metav1.ManagedFieldsEntry{at("kubectl", 2), untimed, at("helm", 1)}, "kubectl"},
	} {
		t.Run(name, func(t *testing.T) {
			object := configMap()
			object.ManagedFields = tc.fields
			NewWithT(t).Expect(testReducer().reduce(object).Writer).To(Equal(tc.want))
		})
	}
}

// reachable is every string and every run of bytes that can be reached from a value, by way of
// unexported fields, maps, interfaces and pointers too.
func reachable(value any) []string {
	var found []string
	seen := map[string]bool{}
	var visit func(reflect.Value)
	visit = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			found = append(found, strings.Clone(v.String()))
		case reflect.Pointer:
			at := fmt.Sprintf("%s %x", v.Type(), v.Pointer())
			if !v.IsNil() && !seen[at] {
				seen[at] = true
				visit(v.Elem())
			}
		case reflect.Interface:
			if !v.IsNil() {
				visit(v.Elem())
			}
		case reflect.Struct:
			for _, field := range v.Fields() {
				visit(field)
			}
		case reflect.Map:
			for entries := v.MapRange(); entries.Next(); {
				visit(entries.Key())
				visit(entries.Value())
			}
		case reflect.Slice, reflect.Array:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				found = append(found, bytesOf(v))
				return
			}
			for i := range v.Len() {
				visit(v.Index(i))
			}
		default:
		}
	}
	visit(reflect.ValueOf(value))
	return found
}

// bytesOf is the bytes of a slice, up to its capacity, or of an array.
func bytesOf(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		v = v.Slice(0, v.Cap())
	}
	var b strings.Builder
	for i := range v.Len() {
		b.WriteByte(byte(v.Index(i).Uint()))
	}
	return b.String()
}
