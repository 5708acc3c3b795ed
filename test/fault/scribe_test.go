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

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/test/utils"
)

const (
	// app is a label that all sources of a scribe have, and feeds its value.
	app, feeds = "app", "feed"
	// settings is how many keys each of them has. All of them change at once, so that events are
	// not small: the buffers between a stream and its client hold only some, and a slow client surely loses others.
	settings = 64
)

// scribes write sources in every way that there is, several at once, each those of its own.
type scribes struct {
	utils.Namespace

	all    []*scribe
	writes atomic.Int64
}

// scribe writes some of the sources, one after the other.
type scribe struct {
	*scribes

	dice  *rand.Rand
	names []source.Ref
	there map[source.Ref]bool
}

func newScribes(namespace utils.Namespace) *scribes {
	const together, each = 4, 5
	all := &scribes{Namespace: namespace}
	seed := uint64(GinkgoRandomSeed())
	for n := range together {
		s := &scribe{scribes: all, dice: rand.New(rand.NewPCG(seed, uint64(n))), there: map[source.Ref]bool{}}
		for i := range each {
			for _, kind := range []v1alpha1.SourceKind{v1alpha1.ConfigMap, v1alpha1.Secret} {
				s.names = append(s.names, source.Ref{Kind: kind, Name: fmt.Sprintf("source-%d-%d", n, i)})
			}
		}
		all.all = append(all.all, s)
	}
	return all
}

// write has all of them write, until there are so many writes in all and it is enough.
func (s *scribes) write(ctx context.Context, until int64, enough func() bool) {
	GinkgoHelper()
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range s.all {
		group.Go(func() error {
			for s.writes.Load() < until || !enough() {
				if err := one.next(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	Expect(group.Wait()).To(Succeed())
}

// next makes the next change.
func (s *scribe) next(ctx context.Context) error {
	ref := s.names[s.dice.IntN(len(s.names))]
	if !s.there[ref] {
		return s.create(ctx, ref)
	}
	switch chance := s.dice.IntN(100); {
	case chance < 45:
		return s.update(ctx, ref, strconv.FormatInt(values.Add(1), 10))
	case chance < 55: // back to what it was at some time, or what it is
		return s.update(ctx, ref, strconv.Itoa(s.dice.IntN(2)))
	case chance < 65:
		return s.patch(ctx, ref, `{"metadata": {"labels": {"touched": "%d"}}}`, s.dice.IntN(10))
	case chance < 75:
		return s.patch(ctx, ref, `{"metadata": {"annotations": {"touched": "%d"}}}`, s.dice.IntN(10))
	case chance < 85:
		return s.patch(ctx, ref, `{"metadata": {"labels": {%q: %q}}}`, app, feeds) // a write that changes nothing
	case chance < 93:
		return s.remove(ctx, ref)
	default:
		if err := s.remove(ctx, ref); err != nil {
			return err
		}
		return s.create(ctx, ref)
	}
}

// object is a source with a content.
func (s *scribe) object(ref source.Ref, content string) client.Object {
	config, secret := utils.MakeConfigMap(ref.Name).Namespace(s.Name).Label(app, feeds), utils.MakeSecret(ref.Name).Namespace(s.Name).Label(app, feeds)
	for n := range settings {
		name := fmt.Sprintf("a-setting-with-a-long-name-%d", n)
		config.Data(name, content)
		secret.Data(name, canary+"-"+content)
	}
	if ref.Kind == v1alpha1.Secret {
		return secret.Obj()
	}
	return config.Obj()
}

func (s *scribe) create(ctx context.Context, ref source.Ref) error {
	s.writes.Add(1)
	s.there[ref] = true
	return s.Client.Create(ctx, s.object(ref, strconv.FormatInt(values.Add(1), 10)))
}

func (s *scribe) update(ctx context.Context, ref source.Ref, content string) error {
	s.writes.Add(1)
	return s.Client.Update(ctx, s.object(ref, content))
}

func (s *scribe) patch(ctx context.Context, ref source.Ref, patch string, values ...any) error {
	s.writes.Add(1)
	return s.Client.Patch(ctx, s.object(ref, ""), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, values...)))
}

func (s *scribe) remove(ctx context.Context, ref source.Ref) error {
	s.writes.Add(1)
	s.there[ref] = false
	return s.Client.Delete(ctx, s.object(ref, ""))
}

// hashes are those of what is there now, Secrets under the operator's key.
func (s *scribes) hashes(ctx context.Context, keyed *digest.Hasher) map[source.Ref]digest.Hash {
	GinkgoHelper()
	var configMaps corev1.ConfigMapList
	var secrets corev1.SecretList
	in := []client.ListOption{client.InNamespace(s.Name), client.MatchingLabels{app: feeds}}
	Expect(s.Client.List(ctx, &configMaps, in...)).To(Succeed())
	Expect(s.Client.List(ctx, &secrets, in...)).To(Succeed())
	hashes := map[source.Ref]digest.Hash{}
	for i := range configMaps.Items {
		object := &configMaps.Items[i]
		ref := source.Ref{Kind: v1alpha1.ConfigMap, Name: object.Name}
		hashes[ref] = digest.Plain().Content(object.Data, object.BinaryData).Hash(nil)
	}
	for i := range secrets.Items {
		object := &secrets.Items[i]
		hashes[source.Ref{Kind: v1alpha1.Secret, Name: object.Name}] = keyed.SecretContent(object.Data).Hash(nil)
	}
	return hashes
}
