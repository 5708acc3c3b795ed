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

package informer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Step leads from one state of the objects of a namespace to the next. A watch brings one change a step, in the
// order of their versions, and now and then only how far it has come. A list makes a step of all changes since
// the state before.
type Step struct {
	// Namespace is the one that is read; empty: all of them.
	Namespace string
	// Version is the resource version of the state to which the step leads.
	Version string
	// Listed tells that the step was made by a list: what was in between, if anything, is not known.
	Listed bool
	// More tells that more is to come of the same step: until then, the state is none that there ever was.
	More bool
}

// difference is what became of one object. The zero T stands for none.
type difference[T metav1.Object] struct {
	before, after T
}

// process takes in what the reflector brought.
func (i *Informer[T]) process(s *shard[T], in any) error {
	deltas, ok := in.(cache.Deltas)
	if !ok {
		return fmt.Errorf("unexpected %T in the queue of %s", in, i.resource)
	}
	for _, delta := range deltas {
		var err error
		switch brought := delta.Object.(type) {
		case cache.ReplacedAllInfo:
			err = i.replace(s, brought)
		case cache.BookmarkInfo:
			i.told(Step{Namespace: s.namespace, Version: brought.ResourceVersion}, difference[T]{})
		case T:
			err = i.take(s, delta.Type, brought)
		default:
			err = fmt.Errorf("unexpected %T", brought)
		}
		if err != nil {
			return fmt.Errorf("taking in %s: %w", i.resource, err)
		}
	}
	return nil
}

// take takes in one change of a watch.
func (i *Informer[T]) take(s *shard[T], what cache.DeltaType, object T) error {
	step := Step{Namespace: s.namespace, Version: object.GetResourceVersion()}
	if what == cache.Deleted {
		if err := s.store.Delete(object); err != nil {
			return err
		}
		i.tell(step, difference[T]{before: object})
		return nil
	}
	made, _ := s.towards(object)
	if err := s.store.Update(object); err != nil {
		return err
	}
	i.tell(step, made)
	return nil
}

// replace takes in a list: first what is gone, then what is other.
func (i *Informer[T]) replace(s *shard[T], list cache.ReplacedAllInfo) error {
	listed := make(map[string]bool, len(list.Objects))
	var changes []difference[T]
	for _, in := range list.Objects {
		object, ok := in.(T)
		if !ok {
			return fmt.Errorf("unexpected %T in a list", in)
		}
		listed[keyOf(object)] = true
		if made, isNew := s.towards(object); isNew {
			changes = append(changes, made)
		}
	}
	var gone []difference[T]
	for _, in := range s.store.List() {
		if object, ok := in.(T); ok && !listed[keyOf(object)] {
			gone = append(gone, difference[T]{before: object})
		}
	}
	if err := s.store.Replace(list.Objects, list.ResourceVersion); err != nil {
		return err
	}
	changes = append(gone, changes...)
	step := Step{Namespace: s.namespace, Version: list.ResourceVersion, Listed: true}
	if len(changes) == 0 {
		i.told(step, difference[T]{})
		return nil
	}
	for n, made := range changes {
		step.More = n < len(changes)-1
		i.tell(step, made)
	}
	return nil
}

// towards is the change from what is stored to an object, and whether that is another version.
func (s *shard[T]) towards(object T) (made difference[T], isNew bool) {
	made.after = object
	if in, found, err := s.store.GetByKey(keyOf(object)); err == nil && found {
		if stored, ok := in.(T); ok {
			made.before = stored
			return made, stored.GetResourceVersion() != object.GetResourceVersion()
		}
	}
	return made, true
}

func keyOf[T metav1.Object](object T) string {
	return object.GetNamespace() + "/" + object.GetName()
}

// told tells of a step, with what changed in it, if anything did.
func (i *Informer[T]) told(step Step, made difference[T]) {
	for _, call := range i.onStep {
		call(step, made.before, made.after)
	}
}

// tell tells of a change, which the store shows.
func (i *Informer[T]) tell(step Step, made difference[T]) {
	if any(made.after) == any(*new(T)) {
		i.drop(made.before)
	} else {
		i.forget(made.after)
	}
	i.told(step, made)
}
