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
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
)

// Position is how far that reaches what a subscription was told: for each watch that concerns it, the state up to
// which it knows everything. The versions of a kind grow alike for all who watch it; so a position means the same to
// the History of every replica.
type Position []Reached

// Reached is the state of a watch.
type Reached struct {
	Kind v1alpha1.SourceKind
	// Namespace is that of the watch; empty if it is the only one of the kind that concerns the subscription.
	Namespace string
	// Version is the resource version of the state. It is empty in the middle of a step, as there never was a
	// state like that.
	Version string
}

// IsKnown tells whether a subscription can go on after the position.
func (p Position) IsKnown() bool {
	for _, reached := range p {
		if reached.Version == "" {
			return false
		}
	}
	return len(p) > 0
}

// Of is where the watch is that a step belongs to. It is nil if the position has nothing about it.
func (p Position) Of(step *source.Step) *Reached {
	for n := range p {
		if p[n].Kind == step.Kind && (p[n].Namespace == "" || p[n].Namespace == step.Namespace) {
			return &p[n]
		}
	}
	return nil
}

// Has tells whether the position has an entry of a kind and a namespace.
func (p Position) Has(kind v1alpha1.SourceKind, namespace string) bool {
	return slices.ContainsFunc(p, func(r Reached) bool { return r.Kind == kind && r.Namespace == namespace })
}

// Advance takes in that a change of a step was told.
func (p Position) Advance(step *source.Step) {
	reached := p.Of(step)
	switch {
	case reached == nil:
	case step.More:
		reached.Version = ""
	default:
		reached.Version = step.Version
	}
}

// Earlier tells whether a resource version is an earlier one than another.
func Earlier(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// isVersion tells whether something is a resource version that can be compared.
func isVersion(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}
