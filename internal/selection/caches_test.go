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

package selection

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// now is the time of every pass.
var now = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// cluster is what the caches hold of namespace shop.
type cluster struct {
	sources   []*source.Source
	workloads []*workload.Workload
	// late are sources that come in the middle of a pass, after List was called.
	late []*source.Source
	// unreadable are the kinds that can't be read.
	unreadable map[string]error
	// changedKeys is what is remembered of each source.
	changedKeys map[string][]string
}

// sourceCache and workloadCache are the two views of a cluster.
type (
	sourceCache   struct{ *cluster }
	workloadCache struct{ *cluster }
)

func (c sourceCache) Get(namespace string, ref source.Ref) *source.Source {
	for _, s := range slices.Concat(c.sources, c.late) {
		if s.Namespace == namespace && s.Ref() == ref {
			return s
		}
	}
	return nil
}

func (c sourceCache) List(namespace string, kind v1alpha1.SourceKind) []*source.Source {
	return slices.DeleteFunc(slices.Clone(c.sources), func(s *source.Source) bool {
		return s.Namespace != namespace || s.Kind != kind
	})
}

func (c sourceCache) Readable(kind v1alpha1.SourceKind, _ string) error {
	return c.unreadable[string(kind)]
}

func (c sourceCache) ChangedKeys(s *source.Source, keys []string, from digest.Hash) ([]string, bool) {
	changed, known := c.changedKeys[fmt.Sprintf("%s %v from %s", s.Ref(), keys, from)]
	return changed, known
}

func (c workloadCache) Get(namespace, kind, name string) *workload.Workload {
	for _, w := range c.workloads {
		if w.Namespace == namespace && w.Kind == kind && w.Name == name {
			return w
		}
	}
	return nil
}

func (c workloadCache) List(namespace, kind string) []*workload.Workload {
	return slices.DeleteFunc(slices.Clone(c.workloads), func(w *workload.Workload) bool {
		return w.Namespace != namespace || w.Kind != kind
	})
}

func (c workloadCache) Using(namespace string, ref source.Ref) []*workload.Workload {
	return slices.DeleteFunc(slices.Clone(c.workloads), func(w *workload.Workload) bool {
		return w.Namespace != namespace || !w.Uses(ref)
	})
}

func (c workloadCache) Readable(kind, _ string) error {
	return c.unreadable[kind]
}

func forbidden(resource string) error {
	return fmt.Errorf("%s: %w", resource, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil))
}

// content is the content of a source with one key.
func content(value string) digest.Content {
	return digest.Plain().Content(map[string]string{"a": value, "b": "1"}, nil)
}

func aSource(kind v1alpha1.SourceKind, name string, labels ...string) *source.Source {
	return &source.Source{ObjectMeta: object(name, labels), Kind: kind, Content: content("1")}
}

func aConfigMap(name string, labels ...string) *source.Source {
	return aSource(v1alpha1.ConfigMap, name, labels...)
}

func aSecret(name string, labels ...string) *source.Source {
	return aSource(v1alpha1.Secret, name, labels...)
}

func ignored(s *source.Source) *source.Source {
	s.Ignored = true
	return s
}

func object(name string, labels []string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		meta.Labels[key] = value
	}
	return meta
}

// aWorkload is one that uses sources, given as "ConfigMap a".
func aWorkload(kind, name, label string, uses ...string) *workload.Workload {
	w := &workload.Workload{ObjectMeta: object(name, []string{label}), APIVersion: workload.APIVersion(kind), Kind: kind}
	for _, use := range uses {
		w.References = append(w.References, ref(use))
	}
	return w
}

func ref(words string) source.Ref {
	kind, name, _ := strings.Cut(words, " ")
	return source.Ref{Kind: v1alpha1.SourceKind(kind), Name: name}
}

// named and matching are entries of spec.sources, workloadNamed and workloadsMatching of spec.targets.
func named(kind v1alpha1.SourceKind, name string) v1alpha1.SourceSelector {
	return v1alpha1.SourceSelector{Kind: kind, Name: name}
}

func matching(kind v1alpha1.SourceKind, label string) v1alpha1.SourceSelector {
	return v1alpha1.SourceSelector{Kind: kind, Selector: selector(label)}
}

func workloadNamed(kind, name string) v1alpha1.TargetSelector {
	return v1alpha1.TargetSelector{Kind: kind, Name: name}
}

func workloadsMatching(kind, label string) v1alpha1.TargetSelector {
	return v1alpha1.TargetSelector{Kind: kind, Selector: selector(label)}
}

func selector(label string) *metav1.LabelSelector {
	key, value, _ := strings.Cut(label, "=")
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func invalidSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
}

// watching is a ConfigWatch in namespace shop.
func watching(sources []v1alpha1.SourceSelector, targets []v1alpha1.TargetSelector) *v1alpha1.ConfigWatch {
	return &v1alpha1.ConfigWatch{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       v1alpha1.ConfigWatchSpec{Sources: sources, Targets: targets},
	}
}

func observe(t *testing.T, cw *v1alpha1.ConfigWatch, c *cluster) plan.Observation {
	t.Helper()
	o, err := Observe(cw, sourceCache{c}, workloadCache{c}, now)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return o
}

// summary is an observation in words: each source and each pair with its state.
func summary(o plan.Observation) []string {
	var lines []string
	for _, s := range o.Sources {
		lines = append(lines, fmt.Sprintf("%s %s", s.Ref, s.State))
	}
	for i := range o.Targets {
		var on []string
		for _, p := range o.Targets[i].Pairs {
			on = append(on, p.Source.String())
		}
		state := "on"
		switch t := &o.Targets[i]; {
		case t.Unreadable:
			state = "Unreadable"
		case t.Workload == nil:
			state = "Missing"
		case t.Workload.Ignored:
			state = "Ignored"
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", o.Targets[i].Ref, state, strings.Join(on, ", "))))
	}
	return lines
}
