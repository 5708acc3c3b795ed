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
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
)

// noon is the time of every test that has a fake clock.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newBroker() *feed.Broker {
	return feed.NewBroker(clocktesting.NewFakePassiveClock(noon))
}

// configMap is one of the namespace shop, with its data as keys and values by turns.
func configMap(name, version string, data ...string) *source.Source {
	return &source.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version},
		Kind:       v1alpha1.ConfigMap,
		Content:    digest.Plain().Content(texts(data), nil),
	}
}

// secret is a Secret as configMap makes ConfigMaps.
func secret(name, version string, data ...string) *source.Source {
	values := map[string][]byte{}
	for key, value := range texts(data) {
		values[key] = []byte(value)
	}
	s := configMap(name, version)
	s.UID = types.UID("uid-secret-" + name)
	s.Kind = v1alpha1.Secret
	s.Content = digest.Keyed([]byte("a key of the operator's own")).SecretContent(values)
	return s
}

func texts(pairs []string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// with is a copy of an object that is changed.
func with(s *source.Source, change func(*source.Source)) *source.Source {
	changed := *s
	changed.Labels = maps.Clone(s.Labels)
	change(&changed)
	return &changed
}

func labelled(s *source.Source, key, value string) *source.Source {
	return with(s, func(s *source.Source) { metav1.SetMetaDataLabel(&s.ObjectMeta, key, value) })
}

func in(namespace string, s *source.Source) *source.Source {
	return with(s, func(s *source.Source) { s.Namespace = namespace })
}

// history is an object in n contents, of the resource versions 1 to n.
func history(name string, n int) []*source.Source {
	versions := make([]*source.Source, n)
	for i := range versions {
		version := strconv.Itoa(i + 1)
		versions[i] = configMap(name, version, "version", version)
	}
	return versions
}

// publish publishes each version of an object after the last. It begins with its addition.
func publish(b *feed.Broker, versions ...*source.Source) {
	var before *source.Source
	for _, after := range versions {
		b.Publish(before, after)
		before = after
	}
}

func subscribe(t *testing.T, b *feed.Broker, filter feed.Filter, buffer int) *feed.Subscription {
	t.Helper()
	s, err := b.Subscribe(filter, buffer)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(s.Close)
	return s
}

// receive is the next n changes. In a bubble of synctest it waits only for what is on its way.
func receive(t *testing.T, s *feed.Subscription, n int) []feed.Change {
	t.Helper()
	changes := make([]feed.Change, 0, n)
	for range n {
		select {
		case c, ok := <-s.Events():
			if !ok {
				t.Fatalf("closed after %v", told(changes))
			}
			changes = append(changes, c)
		case <-time.After(10 * time.Second):
			t.Fatalf("no more than %v", told(changes))
		}
	}
	return changes
}

// quiet checks that there is nothing to receive. It is for bubbles of synctest, where no time passes while
// something is on its way.
func quiet(t *testing.T, s *feed.Subscription) {
	t.Helper()
	select {
	case c := <-s.Events():
		t.Errorf("unexpected %s", line(c))
	case <-time.After(time.Second):
	}
}

// line is a change in short, such as "Added web@3", "Added web@3 initial" or "Gap 7".
func line(c feed.Change) string {
	switch {
	case c.Type == feed.Gap:
		return "Gap " + strconv.Itoa(c.Lost)
	case c.Type == feed.Synced:
		return "Synced"
	case c.Initial:
		return string(c.Type) + " " + c.Name + "@" + c.ResourceVersion + " initial"
	default:
		return string(c.Type) + " " + c.Name + "@" + c.ResourceVersion
	}
}

func told(changes []feed.Change) []string {
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = line(c)
	}
	return lines
}

// expect checks that these lines are received, and no more.
func expect(t *testing.T, s *feed.Subscription, lines ...string) {
	t.Helper()
	NewWithT(t).Expect(told(receive(t, s, len(lines)))).To(HaveExactElements(lines))
	quiet(t, s)
}
