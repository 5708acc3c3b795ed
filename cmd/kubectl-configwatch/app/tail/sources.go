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

package tail

import (
	"crypto/rand"

	"k8s.io/client-go/kubernetes"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
)

// keySize is the length of the key of Secrets' hashes, in bytes.
const keySize = 32

// sources are what is watched. Unlike a source.Cache, which has all that a ConfigWatch could name, they are
// limited to kinds and labels, and what is left out is not even read.
type sources struct {
	informer.Group
	kinds map[v1alpha1.SourceKind]*informer.Informer[*source.Source]
}

// newSources makes them for a namespace; the empty one stands for all.
func newSources(
	client kubernetes.Interface, namespace string, kinds []v1alpha1.SourceKind, selector string,
) (*sources, error) {
	key := make([]byte, keySize)
	rand.Read(key)             // it never returns an error
	keyed := digest.Keyed(key) // E2: for this process only
	s := &sources{kinds: map[v1alpha1.SourceKind]*informer.Informer[*source.Source]{}}
	for _, kind := range kinds {
		kept, err := source.NewInformer(client, kind, []string{namespace}, selector, keyed)
		if err != nil {
			return nil, err
		}
		s.kinds[kind] = kept
		s.Group = append(s.Group, kept)
	}
	return s, nil
}

// OnChange calls the function for every change of an object. It must be called before Start.
func (s *sources) OnChange(call func(before, after *source.Source)) error {
	for _, kind := range s.kinds {
		if err := kind.OnChange(call); err != nil {
			return err
		}
	}
	return nil
}

// Readable is nil while all objects of the kind are known, or if it is not watched.
func (s *sources) Readable(kind v1alpha1.SourceKind, namespace string) error {
	if watched, ok := s.kinds[kind]; ok {
		return watched.Health(namespace)
	}
	return nil
}
