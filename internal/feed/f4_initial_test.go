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

package feed_test

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
)

func TestF4ThePresentObjectsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		versions := history("web", 3)
		publish(b, versions[:2]...)
		b.Publish(nil, secret("web", "7", "password", "hunter2"))
		b.Publish(nil, configMap("db", "5"))
		b.Publish(nil, in("other", configMap("app", "6")))
		b.Publish(nil, configMap("gone", "8"))
		b.Publish(configMap("gone", "9"), nil)

		s := subscribe(t, b, feed.Filter{Initial: true}, 1)
		plain := subscribe(t, b, feed.Filter{}, 1)
		b.Publish(versions[1], versions[2])
		expect(t, s, "Added app@6 initial", "Added db@5 initial", "Added web@2 initial", "Added web@7 initial", "Synced", "Modified web@3")
		expect(t, plain, "Modified web@3")
	})
}

func TestF4AnInitialObjectIsToldLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		web := labelled(configMap("web", "1", "b", "1", "a", "1"), "app", "demo")
		b.Publish(nil, web)
		s := subscribe(t, b, feed.Filter{Kind: v1alpha1.ConfigMap, Initial: true}, 1)
		NewWithT(t).Expect(receive(t, s, 2)).To(Equal([]feed.Change{{
			Type: feed.Added, Namespace: "shop", Kind: v1alpha1.ConfigMap, Name: "web", UID: "uid-web", ResourceVersion: "1",
			Labels: map[string]string{"app": "demo"}, Hash: web.Content.Hash(nil), ChangedKeys: []string{"a", "b"},
			Time: noon, Initial: true,
		}, {
			Type: feed.Synced, Kind: v1alpha1.ConfigMap, Time: noon,
		}}))
	})
}

func TestF4TheFilterHoldsForPresentObjectsToo(t *testing.T) {
	for name, tc := range map[string]struct {
		filter feed.Filter
		want   []string
	}{
		"the namespace": {feed.Filter{Namespace: "other"}, []string{"Added web@4 initial", "Synced"}},
		"no namespace":  {feed.Filter{Namespace: "empty"}, []string{"Synced"}},
		"the kind":      {feed.Filter{Kind: v1alpha1.Secret}, []string{"Added web@3 initial", "Synced"}},
		"the labels":    {feed.Filter{Selector: selector(t, "app=demo")}, []string{"Added db@2 initial", "Synced"}},
		"not the events": {feed.Filter{Name: "db", Events: []feed.EventType{feed.Deleted}},
			[]string{"Added db@2 initial", "Synced"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				b.Publish(nil, configMap("web", "1"))
				b.Publish(nil, labelled(configMap("db", "2"), "app", "demo"))
				b.Publish(nil, secret("web", "3"))
				b.Publish(nil, in("other", configMap("web", "4")))
				tc.filter.Initial = true
				expect(t, subscribe(t, b, tc.filter, 10), tc.want...)
			})
		})
	}
}

// What was lost came after the present objects: whoever reads anew at the Gap has not got older ones after it.
func TestF4AGapComesAfterThePresentObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		versions := history("web", 9)
		publish(b, versions[:1]...)
		s := subscribe(t, b, feed.Filter{Initial: true}, 2)
		s.Events()
		synctest.Wait()
		for n := 1; n < len(versions); n++ {
			b.Publish(versions[n-1], versions[n])
		}
		expect(t, s, "Added web@1 initial", "Synced", "Gap 6", "Modified web@8", "Modified web@9")
	})
}

// Subscribers that come at any time during a storm of changes know in the end what is there, and each change
// that they are told fits to what they knew.
func TestF4NoGapAndNoDuplicateBetweenTheTwo(t *testing.T) {
	const objects, changes, subscribers = 10, 2_000, 50
	b := newBroker()
	final := map[string]string{}
	var running sync.WaitGroup
	done := make(chan struct{})
	known := make([]map[string]string, subscribers)
	start := make([]chan struct{}, subscribers)
	for n := range subscribers {
		start[n] = make(chan struct{})
		running.Go(func() {
			<-start[n]
			s, err := b.Subscribe(feed.Filter{Initial: true}, changes)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			known[n] = follow(t, s, done)
		})
	}
	running.Go(func() {
		defer close(done)
		for n := 1; n <= changes; n++ {
			if n%(changes/subscribers) == 0 {
				close(start[n/(changes/subscribers)-1])
			}
			name, version := strconv.Itoa(rand.IntN(objects)), strconv.Itoa(n)
			object := configMap(name, version, "version", version)
			if final[name] != "" && rand.IntN(3) == 0 {
				b.Publish(object, nil)
				delete(final, name)
				continue
			}
			b.Publish(nil, object)
			final[name] = version
		}
		b.Publish(nil, configMap("end", "1"))
		final["end"] = "1"
	})
	running.Wait()
	for _, k := range known {
		NewWithT(t).Expect(k).To(Equal(final))
	}
}

// follow keeps what a subscriber knows until the object called end appears.
func follow(t *testing.T, s *feed.Subscription, done <-chan struct{}) map[string]string {
	known, live := map[string]string{}, false
	for c := range s.Events() {
		_, present := known[c.Name]
		switch {
		case c.Type == feed.Synced && !live:
			live = true
		case c.Type == feed.Added && !present && c.Initial == !live:
			known[c.Name] = c.ResourceVersion
		case c.Type == feed.Modified && present && live:
			known[c.Name] = c.ResourceVersion
		case c.Type == feed.Deleted && present && live:
			delete(known, c.Name)
		default:
			t.Errorf("%s does not fit: live is %t, known are %v", line(c), live, known)
		}
		if known["end"] != "" && live {
			<-done
			return maps.Clone(known)
		}
	}
	return known
}
