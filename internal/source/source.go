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
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/informer"
)

// Ref names a source within a namespace.
type Ref struct {
	Kind v1alpha1.SourceKind
	Name string
}

// String is the reference as messages have it, such as "ConfigMap app-config".
func (r Ref) String() string {
	return string(r.Kind) + " " + r.Name
}

// Version is a source as it was observed. An empty resource version stands for one that is missing.
type Version struct {
	Ref
	ResourceVersion string
}

// Step is what leads from one state of the sources of a kind to the next.
type Step struct {
	informer.Step
	Kind v1alpha1.SourceKind
}

// Source is a ConfigMap or Secret without its values. It is shared and must not be changed.
type Source struct {
	// ObjectMeta has the namespace, name, uid, resource version and labels, and nothing else.
	metav1.ObjectMeta
	// Kind is ConfigMap or Secret.
	Kind v1alpha1.SourceKind
	// Ignored tells that the source is annotated to be left out.
	Ignored bool
	// Content is the digests of the data.
	Content digest.Content
	// Writer is the field manager that wrote it last, or empty.
	Writer string
}

// Ref is the name of the source within its namespace.
func (s *Source) Ref() Ref {
	return Ref{Kind: s.Kind, Name: s.Name}
}

// reducer makes Sources. Secrets are digested with the operator's key (E2).
type reducer struct {
	plain, keyed *digest.Hasher
}

func (r reducer) reduce(in runtime.Object) *Source {
	switch object := in.(type) {
	case *corev1.ConfigMap:
		s := fromMeta(v1alpha1.ConfigMap, &object.ObjectMeta)
		s.Content = r.plain.Content(object.Data, object.BinaryData)
		return s
	case *corev1.Secret:
		s := fromMeta(v1alpha1.Secret, &object.ObjectMeta)
		s.Content = r.keyed.SecretContent(object.Data)
		return s
	default:
		return nil
	}
}

// OfConfigMap is a ConfigMap as the cache has it.
func OfConfigMap(object *corev1.ConfigMap) *Source {
	return reducer{plain: digest.Plain()}.reduce(object)
}

func fromMeta(kind v1alpha1.SourceKind, meta *metav1.ObjectMeta) *Source {
	return &Source{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       meta.Namespace,
			Name:            meta.Name,
			UID:             meta.UID,
			ResourceVersion: meta.ResourceVersion,
			Labels:          meta.Labels,
		},
		Kind:    kind,
		Ignored: meta.Annotations[v1alpha1.IgnoreAnnotation] == "true",
		Writer:  lastWriter(meta.ManagedFields),
	}
}

// lastWriter is the field manager of the latest write. There are few of them, so that each name is kept once.
func lastWriter(fields []metav1.ManagedFieldsEntry) string {
	var last *metav1.ManagedFieldsEntry
	for i := range fields {
		if last == nil || !writtenAt(&fields[i]).Before(writtenAt(last)) {
			last = &fields[i]
		}
	}
	if last == nil {
		return ""
	}
	return unique.Make(last.Manager).Value()
}

// writtenAt is the time of a manager's latest write. An entry without one stands for all who wrote before
// somebody applied the object for the first time.
func writtenAt(entry *metav1.ManagedFieldsEntry) time.Time {
	if entry.Time == nil {
		return time.Time{}
	}
	return entry.Time.Time
}

// differs tells whether something that matters is another: content, labels (for selectors), whether
// it is ignored. Other metadata, resyncs and writes that change nothing don't matter (E1).
func differs(before, after *Source) bool {
	return before.UID != after.UID || before.Ignored != after.Ignored || !before.Content.Equal(after.Content) ||
		!labels.Equals(before.Labels, after.Labels)
}
