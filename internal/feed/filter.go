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

package feed

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

// Filter says what a subscription gets. The zero Filter gets every change.
//
// Objects whose annotation tells to ignore them match no filter: one that gets the annotation is Deleted,
// and Added when it loses it.
type Filter struct {
	// Namespace limits it to one; empty means all.
	Namespace string
	// Kind limits it to ConfigMaps or Secrets; empty means both.
	Kind v1alpha1.SourceKind
	// Name limits it to objects of that name; empty means all.
	Name string
	// Selector limits it by labels; nil means all. When an object's labels change so that it begins to
	// match, it is Added; when it no longer matches, it is Deleted: as in a watch of Kubernetes.
	Selector labels.Selector
	// Events limits it to these types; none means all. Marks, and the present objects that Initial asks
	// for, come whatever is listed.
	Events []EventType
	// Initial asks for the objects that are there, before anything else: each as Added and marked initial,
	// and then Synced (F4).
	Initial bool
}

func (f *Filter) validate() error {
	switch f.Kind {
	case "", v1alpha1.ConfigMap, v1alpha1.Secret:
	default:
		return fmt.Errorf("kind %q is not one of %s, %s", f.Kind, v1alpha1.ConfigMap, v1alpha1.Secret)
	}
	for _, event := range f.Events {
		if event != Added && event != Modified && event != Deleted {
			return fmt.Errorf("event %q is not one of %s, %s, %s", event, Added, Modified, Deleted)
		}
	}
	return nil
}

// matches tells whether an object, which may be nil, is one that the filter is about.
func (f *Filter) matches(s *source.Source) bool {
	return s != nil && !s.Ignored &&
		(f.Namespace == "" || f.Namespace == s.Namespace) &&
		(f.Kind == "" || f.Kind == s.Kind) &&
		(f.Name == "" || f.Name == s.Name) &&
		(f.Selector == nil || f.Selector.Matches(labels.Set(s.Labels)))
}

// wants tells whether the type of event is asked for.
func (f *Filter) wants(event EventType) bool {
	return len(f.Events) == 0 || slices.Contains(f.Events, event)
}
