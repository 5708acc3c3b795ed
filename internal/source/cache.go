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
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/lru"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/informer"
)

const (
	// notHelm keeps Helm's release Secrets, which are large and nobody's configuration, off the wire.
	notHelm = "type!=helm.sh/release.v1"

	// rememberedSources is how many sources that changed lately have their former contents kept, so
	// that messages can name the changed keys.
	rememberedSources = 1024
	// rememberedContents is how many former contents are kept of each.
	rememberedContents = 8
)

// ErrBehind tells that the watch hasn't brought what the API server has.
var ErrBehind = errors.New("the cache is behind the API server; it is waited for")

// Resource is the plural name of a kind, as the API server has it.
func Resource(kind v1alpha1.SourceKind) string {
	if kind == v1alpha1.Secret {
		return "secrets"
	}
	return "configmaps"
}

// Cache is all sources of the watched namespaces.
type Cache struct {
	informer.Group
	live   metadata.Interface
	kinds  map[v1alpha1.SourceKind]*informer.Informer[*Source]
	former *lru.Cache

	mu sync.Mutex // guards the values in former
}

// memory is the former contents of one source, oldest first.
type memory []digest.Content

type memoryKey struct {
	namespace string
	ref       Ref
}

// NewCache makes a Cache of the namespaces; one empty string stands for all. Secrets are digested
// with the keyed hasher. The live client reads what the cache may not have yet.
func NewCache(client kubernetes.Interface, live metadata.Interface, namespaces []string, keyed *digest.Hasher) (*Cache, error) {
	configMaps, err := NewInformer(client, v1alpha1.ConfigMap, namespaces, "", keyed)
	if err != nil {
		return nil, err
	}
	secrets, err := NewInformer(client, v1alpha1.Secret, namespaces, "", keyed)
	if err != nil {
		return nil, err
	}
	c := &Cache{
		Group: informer.Group{configMaps, secrets},
		live:  live,
		kinds: map[v1alpha1.SourceKind]*informer.Informer[*Source]{
			v1alpha1.ConfigMap: configMaps,
			v1alpha1.Secret:    secrets,
		},
		former: lru.New(rememberedSources),
	}
	return c, c.OnChange(c.remember) // first, so that whoever is told of a change can ask for its keys
}

// NewInformer makes the informer of one kind of source: of those whose labels match the selector, which is empty
// for all. Secrets are digested with the keyed hasher.
func NewInformer(
	client kubernetes.Interface, kind v1alpha1.SourceKind, namespaces []string, selector string, keyed *digest.Hasher,
) (*informer.Informer[*Source], error) {
	options := informer.Options[*Source]{
		Resource:      Resource(kind),
		Namespaces:    namespaces,
		LabelSelector: selector,
		Reduce:        reducer{plain: digest.Plain(), keyed: keyed}.reduce,
	}
	switch kind {
	case v1alpha1.ConfigMap:
		options.Type = &corev1.ConfigMap{}
		options.Client = func(namespace string) informer.ListWatcher {
			return listWatcher[*corev1.ConfigMapList](client, client.CoreV1().ConfigMaps(namespace))
		}
	case v1alpha1.Secret:
		options.Type = &corev1.Secret{}
		options.FieldSelector = notHelm
		options.Client = func(namespace string) informer.ListWatcher {
			return listWatcher[*corev1.SecretList](client, client.CoreV1().Secrets(namespace))
		}
	}
	return informer.New(options)
}

type typedClient[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func listWatcher[L runtime.Object](client kubernetes.Interface, typed typedClient[L]) informer.ListWatcher {
	return informer.ListWatcher{
		Client: client,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return typed.List(ctx, o)
		},
		Watch: typed.Watch,
	}
}

// OnChange calls the function for each source that appears (before is nil), goes (after is nil), or
// changes in content, labels or whether it is ignored. It must be called before Start.
func (c *Cache) OnChange(call func(before, after *Source)) error {
	return c.OnStep(func(_ Step, before, after *Source) {
		if before != nil || after != nil {
			call(before, after)
		}
	})
}

// OnStep calls the function for each step that the watches of the sources make, with what OnChange has of it: both
// are nil if that is nothing. It must be called before Start.
func (c *Cache) OnStep(call func(step Step, before, after *Source)) error {
	for kind, kept := range c.kinds {
		if err := OnStep(kept, kind, call); err != nil {
			return err
		}
	}
	return nil
}

// OnStep is that of an informer that NewInformer made for the kind.
func OnStep(kept *informer.Informer[*Source], kind v1alpha1.SourceKind, call func(step Step, before, after *Source)) error {
	return kept.OnStep(func(step informer.Step, before, after *Source) {
		if before != nil && after != nil && !differs(before, after) {
			before, after = nil, nil
		}
		call(Step{Step: step, Kind: kind}, before, after)
	})
}

// Readable is nil while all sources of the kind in the namespace are known. An empty namespace asks
// for all of them.
func (c *Cache) Readable(kind v1alpha1.SourceKind, namespace string) error {
	inf, ok := c.kinds[kind]
	if !ok {
		return fmt.Errorf("%s is not a kind of source", kind)
	}
	return inf.Health(namespace)
}

// Get is a source, or nil if it doesn't exist.
func (c *Cache) Get(namespace string, ref Ref) *Source {
	s, _ := c.kinds[ref.Kind].Get(namespace, ref.Name)
	return s
}

// Confirm is nil if the API server has nothing newer than what was observed of a source, and ErrBehind if
// it has. It asks for metadata only, and by a list of one name, so that no more than the right to list is
// needed.
func (c *Cache) Confirm(ctx context.Context, namespace string, observed Version) error {
	resource := corev1.SchemeGroupVersion.WithResource(Resource(observed.Kind))
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, observed.Name).String()
	if observed.Kind == v1alpha1.Secret { // what the cache leaves out is missing here too
		selector += "," + notHelm
	}
	list, err := c.live.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return fmt.Errorf("reading the version of %s: %w", observed.Ref, err)
	}
	missing := observed.ResourceVersion == ""
	switch {
	case len(list.Items) == 0 && missing:
		return nil
	case len(list.Items) == 0 || missing:
		return fmt.Errorf("%s: %w", observed.Ref, ErrBehind)
	}
	order, err := resourceversion.CompareResourceVersion(list.Items[0].ResourceVersion, observed.ResourceVersion)
	if err != nil {
		return fmt.Errorf("comparing the versions of %s: %w", observed.Ref, err)
	}
	if order > 0 {
		return fmt.Errorf("%s: %w", observed.Ref, ErrBehind)
	}
	return nil
}

// List is all sources of a kind in a namespace, in no order.
func (c *Cache) List(namespace string, kind v1alpha1.SourceKind) []*Source {
	return c.kinds[kind].List(namespace)
}

// remember keeps the content that a source had before a change.
func (c *Cache) remember(before, after *Source) {
	if before == nil || after != nil && before.Content.Equal(after.Content) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := memoryKey{namespace: before.Namespace, ref: before.Ref()}
	var contents memory
	if value, ok := c.former.Get(key); ok {
		contents, _ = value.(memory)
	}
	contents = append(slices.Clone(contents), before.Content)
	if len(contents) > rememberedContents {
		contents = contents[1:]
	}
	c.former.Add(key, contents)
}

// ChangedKeys is the names of the keys, of those given or of all, in which a source differs from the
// content that had the hash. It is not known for content from before the operator's start.
func (c *Cache) ChangedKeys(s *Source, keys []string, from digest.Hash) (changed []string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.former.Get(memoryKey{namespace: s.Namespace, ref: s.Ref()})
	if !ok {
		return nil, false
	}
	contents, _ := value.(memory)
	for _, content := range slices.Backward(contents) {
		if content.Hash(keys) == from {
			return within(digest.ChangedKeys(content, s.Content), keys), true
		}
	}
	return nil, false
}

func within(changed, keys []string) []string {
	if len(keys) == 0 {
		return changed
	}
	return slices.DeleteFunc(changed, func(key string) bool { return !slices.Contains(keys, key) })
}
