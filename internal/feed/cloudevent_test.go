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
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
)

func TestAChangeIsACloudEvent(t *testing.T) {
	object := feed.Change{
		Namespace: "shop", Kind: v1alpha1.ConfigMap, Name: "app-config", UID: "b0c1", ResourceVersion: "42",
		Labels: map[string]string{"app": "demo"}, Time: noon,
	}
	changed := func(change func(*feed.Change)) feed.Change {
		c := object
		change(&c)
		return c
	}
	for name, tc := range map[string]struct {
		change feed.Change
		want   string
	}{
		"Modified": {
			changed(func(c *feed.Change) {
				c.Type, c.Hash, c.PreviousHash, c.ChangedKeys = feed.Modified, "1:new", "1:old", []string{"LOG_LEVEL"}
			}),
			`{"specversion":"1.0","id":"b0c1/42","type":"io.ktechhub.configwatch.source.modified.v1",
			  "source":"/namespaces/shop/configmaps/app-config","subject":"ConfigMap/app-config","time":"2026-11-30T12:00:00Z",
			  "datacontenttype":"application/json",
			  "data":{"event":"Modified","namespace":"shop","kind":"ConfigMap","name":"app-config","labels":{"app":"demo"},
			          "hash":"1:new","previousHash":"1:old","changedKeys":["LOG_LEVEL"]}}`,
		},
		"Added, initial": {
			changed(func(c *feed.Change) {
				c.Type, c.Kind, c.Hash, c.Labels, c.Initial = feed.Added, v1alpha1.Secret, "1.key:new", nil, true
			}),
			`{"specversion":"1.0","id":"b0c1/42","type":"io.ktechhub.configwatch.source.added.v1",
			  "source":"/namespaces/shop/secrets/app-config","subject":"Secret/app-config","time":"2026-11-30T12:00:00Z",
			  "datacontenttype":"application/json",
			  "data":{"event":"Added","namespace":"shop","kind":"Secret","name":"app-config","hash":"1.key:new","initial":true}}`,
		},
		"Deleted, as a list found": {
			changed(func(c *feed.Change) { c.Type, c.PreviousHash, c.ResourceVersion = feed.Deleted, "1:old", "" }),
			`{"specversion":"1.0","id":"b0c1/deleted","type":"io.ktechhub.configwatch.source.deleted.v1",
			  "source":"/namespaces/shop/configmaps/app-config","subject":"ConfigMap/app-config","time":"2026-11-30T12:00:00Z",
			  "datacontenttype":"application/json",
			  "data":{"event":"Deleted","namespace":"shop","kind":"ConfigMap","name":"app-config","labels":{"app":"demo"},"previousHash":"1:old"}}`,
		},
		"Gap": {
			feed.Change{Type: feed.Gap, Namespace: "shop", Kind: v1alpha1.ConfigMap, Time: noon.Add(time.Millisecond), Lost: 3},
			`{"specversion":"1.0","id":"gap/2026-11-30T12:00:00.001Z","type":"io.ktechhub.configwatch.feed.gap.v1",
			  "source":"/namespaces/shop/configmaps","time":"2026-11-30T12:00:00.001Z","datacontenttype":"application/json",
			  "data":{"event":"Gap","namespace":"shop","kind":"ConfigMap","lost":3}}`,
		},
		"Synced": {
			feed.Change{Type: feed.Synced, Time: noon},
			`{"specversion":"1.0","id":"synced/2026-11-30T12:00:00Z","type":"io.ktechhub.configwatch.feed.synced.v1",
			  "source":"/","time":"2026-11-30T12:00:00Z","datacontenttype":"application/json","data":{"event":"Synced"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			made, err := tc.change.CloudEvent()
			g.Expect(err).NotTo(HaveOccurred())
			text, err := json.Marshal(made)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(text).To(MatchJSON(tc.want))

			read := event.Event{}
			g.Expect(json.Unmarshal(text, &read)).To(Succeed())
			g.Expect(feed.ParseChange(read)).To(Equal(tc.change))
		})
	}
}

func TestAnEventThatIsNoChangeIsRefused(t *testing.T) {
	g := NewWithT(t)
	e := event.New()
	e.SetType(feed.TypeAdded)
	g.Expect(e.SetData(event.ApplicationJSON, []byte("{"))).To(Succeed())
	_, err := feed.ParseChange(e)
	g.Expect(err).To(MatchError(HavePrefix("reading the data of a CloudEvent: ")))
	for _, data := range []feed.Data{{Event: feed.Deleted}, {Event: "Other"}, {}} {
		g.Expect(e.SetData(event.ApplicationJSON, data)).To(Succeed())
		_, err = feed.ParseChange(e)
		g.Expect(err).To(MatchError("a CloudEvent of the type io.ktechhub.configwatch.source.added.v1 is no change"))
	}
}

func TestF8ContentIsAddedToAnEvent(t *testing.T) {
	g := NewWithT(t)
	change := feed.Change{Type: feed.Modified, Namespace: "shop", Kind: v1alpha1.ConfigMap, Name: "web", UID: "1", ResourceVersion: "2", Time: noon}
	e, err := change.CloudEvent()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(feed.Content{BinaryData: map[string][]byte{"logo": {0xff}}}.AddTo(&e)).To(Succeed())
	g.Expect(e.Data()).To(MatchJSON(`{"event":"Modified","namespace":"shop","kind":"ConfigMap","name":"web","data":{},"binaryData":{"logo":"/w=="}}`))
	g.Expect(feed.ParseChange(e)).To(Equal(change))
	broken := event.New()
	g.Expect(broken.SetData(event.ApplicationJSON, []byte("{"))).To(Succeed())
	g.Expect(feed.Content{}.AddTo(&broken)).To(MatchError(HavePrefix("adding content to a CloudEvent: ")))
}

func TestAChangeThatIsNoneIsNoCloudEvent(t *testing.T) {
	_, err := feed.Change{Namespace: "shop", Kind: v1alpha1.ConfigMap, Name: "web"}.CloudEvent()
	NewWithT(t).Expect(err).To(MatchError(HavePrefix("making a CloudEvent of ConfigMap shop/web: ")))
}

func TestE2NoValueOfASecretIsInItsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const canary = "hunter2-canary"
		b := newBroker()
		s := subscribe(t, b, feed.Filter{Initial: true}, 9)
		publish(b, secret("web", "1", "password", canary), secret("web", "2", "password", canary+"!", "more", canary))
		b.Publish(secret("web", "3"), nil)
		var said strings.Builder
		for _, c := range receive(t, s, 4) {
			e, err := c.CloudEvent()
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			fmt.Fprintf(&said, "%s\n%+v\n", e, c)
		}
		NewWithT(t).Expect(said.String()).To(ContainSubstring("password"))
		NewWithT(t).Expect(said.String()).NotTo(ContainSubstring(canary))
	})
}
