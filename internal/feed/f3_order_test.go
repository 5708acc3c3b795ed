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
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
)

func selector(t *testing.T, text string) labels.Selector {
	t.Helper()
	parsed, err := labels.Parse(text)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return parsed
}

// step is one call of Publish.
type step struct{ before, after *source.Source }

func TestF3WhatIsAnEvent(t *testing.T) {
	one, two := configMap("web", "1", "a", "1"), configMap("web", "2", "a", "2")
	same := configMap("web", "2", "a", "1")
	again := with(configMap("web", "3", "a", "2"), func(s *source.Source) { s.UID = "another" })
	for name, tc := range map[string]struct {
		steps []step
		want  []string
	}{
		"nothing":                {[]step{{nil, nil}}, nil},
		"an object that appears": {[]step{{nil, one}}, []string{"Added web@1"}},
		"other content":          {[]step{{nil, one}, {one, two}}, []string{"Added web@1", "Modified web@2"}},
		"a deletion that the watch saw": {[]step{{nil, one}, {two, nil}},
			[]string{"Added web@1", "Deleted web@2"}},
		"a deletion that a list found": {[]step{{nil, one}, {one, nil}}, []string{"Added web@1", "Deleted web@"}},
		"the same content":             {[]step{{nil, one}, {one, same}}, []string{"Added web@1"}},
		"other labels":                 {[]step{{nil, one}, {one, labelled(same, "b", "c")}}, []string{"Added web@1"}},
		"the same version twice": {[]step{{nil, one}, {nil, one}, {one, two}, {one, two}},
			[]string{"Added web@1", "Modified web@2"}},
		"an older version":          {[]step{{nil, two}, {nil, one}}, []string{"Added web@2"}},
		"an older version, deleted": {[]step{{nil, again}, {two, nil}}, []string{"Added web@3"}},
		"a deletion twice":          {[]step{{nil, one}, {two, nil}, {two, nil}}, []string{"Added web@1", "Deleted web@2"}},
		"a deletion of the unknown": {[]step{{one, nil}}, nil},
		"deleted and created again": {[]step{{nil, one}, {two, nil}, {nil, again}},
			[]string{"Added web@1", "Deleted web@2", "Added web@3"}},
		"the same, of which a list tells": {[]step{{nil, one}, {one, again}},
			[]string{"Added web@1", "Deleted web@", "Added web@3"}},
		"a change of which no one told": {[]step{{nil, one}, {configMap("web", "2", "a", "3"), configMap("web", "3", "a", "3")}},
			[]string{"Added web@1", "Modified web@3"}},
		"no versions": {[]step{{nil, configMap("web", "")}, {nil, configMap("web", "", "a", "1")}},
			[]string{"Added web@", "Modified web@"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				s := subscribe(t, b, feed.Filter{}, 10)
				for _, step := range tc.steps {
					b.Publish(step.before, step.after)
				}
				expect(t, s, tc.want...)
			})
		})
	}
}

func TestF3AnObjectBeginsAndEndsToMatchAsInAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := configMap("web", "1", "a", "1")
		matching := labelled(configMap("web", "2", "a", "1"), "app", "demo")
		changed := labelled(configMap("web", "3", "a", "2"), "app", "demo")
		left := configMap("web", "4", "a", "3")
		b := newBroker()
		all := subscribe(t, b, feed.Filter{}, 10)
		s := subscribe(t, b, feed.Filter{Selector: selector(t, "app=demo")}, 10)
		additions := subscribe(t, b, feed.Filter{Selector: selector(t, "app=demo"), Events: []feed.EventType{feed.Added}}, 10)
		publish(b, other, matching, changed, left, configMap("web", "5", "a", "4"))

		expect(t, additions, "Added web@2")
		expect(t, all, "Added web@1", "Modified web@3", "Modified web@4", "Modified web@5")
		changes := receive(t, s, 3)
		g := NewWithT(t)
		g.Expect(told(changes)).To(Equal([]string{"Added web@2", "Modified web@3", "Deleted web@4"}))
		g.Expect(changes[2].Labels).To(HaveKeyWithValue("app", "demo"), "the labels by which it matched")
		g.Expect(changes[2].PreviousHash).To(Equal(changes[1].Hash))
		quiet(t, s)
	})
}

func TestF3AnIgnoredObjectMatchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ignored := func(s *source.Source) { s.Ignored = true }
		b := newBroker()
		s := subscribe(t, b, feed.Filter{}, 10)
		publish(b,
			with(configMap("web", "1"), ignored), configMap("web", "2"),
			with(configMap("web", "3"), ignored), with(configMap("web", "4", "a", "1"), ignored))
		expect(t, s, "Added web@2", "Deleted web@3")
		initial := subscribe(t, b, feed.Filter{Initial: true}, 10)
		expect(t, initial, "Synced")
	})
}

func TestF3AChangeSaysWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := labelled(configMap("web", "1", "LOG_LEVEL", "info", "gone", "1", "same", "1"), "app", "demo")
		after := labelled(configMap("web", "2", "LOG_LEVEL", "debug", "new", "1", "same", "1"), "app", "demo")
		hash := func(s *source.Source) digest.Hash { return s.Content.Hash(nil) }
		b := newBroker()
		s := subscribe(t, b, feed.Filter{}, 10)
		publish(b, before, after)
		b.Publish(with(after, func(s *source.Source) { s.ResourceVersion = "3" }), nil)

		want := feed.Change{
			Namespace: "shop", Kind: v1alpha1.ConfigMap, Name: "web", UID: "uid-web",
			Labels: map[string]string{"app": "demo"}, Time: noon,
		}
		added, modified, deleted := want, want, want
		added.Type, added.ResourceVersion = feed.Added, "1"
		added.Hash, added.ChangedKeys = hash(before), []string{"LOG_LEVEL", "gone", "same"}
		modified.Type, modified.ResourceVersion = feed.Modified, "2"
		modified.PreviousHash, modified.Hash, modified.ChangedKeys = hash(before), hash(after), []string{"LOG_LEVEL", "gone", "new"}
		deleted.Type, deleted.ResourceVersion = feed.Deleted, "3"
		deleted.PreviousHash, deleted.ChangedKeys = hash(after), []string{"LOG_LEVEL", "new", "same"}
		NewWithT(t).Expect(receive(t, s, 3)).To(Equal([]feed.Change{added, modified, deleted}))
	})
}

func TestF3SecretsAndConfigMapsOfOneNameAreTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		s := subscribe(t, b, feed.Filter{}, 10)
		b.Publish(nil, configMap("web", "1"))
		b.Publish(nil, secret("web", "1"))
		b.Publish(nil, in("other", secret("web", "1")))
		b.Publish(secret("web", "2"), nil)
		expect(t, s, "Added web@1", "Added web@1", "Added web@1", "Deleted web@2")
	})
}
