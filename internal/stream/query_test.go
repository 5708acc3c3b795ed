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

package stream_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/stream"
)

func TestF8TheQuery(t *testing.T) {
	demo, err := labels.Parse("app in (a,b),!c")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for encoded, want := range map[string]struct {
		filter feed.Filter
		data   bool
	}{
		"":                      {},
		"kind=Secret":           {filter: feed.Filter{Kind: v1alpha1.Secret}},
		"name=app-config.v1":    {filter: feed.Filter{Name: "app-config.v1"}},
		"events=Deleted":        {filter: feed.Filter{Events: []feed.EventType{feed.Deleted}}},
		"events=Modified,Added": {filter: feed.Filter{Events: []feed.EventType{feed.Modified, feed.Added}}},
		"initial=true":          {filter: feed.Filter{Initial: true}},
		"initial=false":         {},
		"data=false":            {},
		"data=true&kind=ConfigMap&initial=true": {
			filter: feed.Filter{Kind: v1alpha1.ConfigMap, Initial: true}, data: true},
		"labelSelector=app+in+%28a%2Cb%29%2C%21c": {filter: feed.Filter{Selector: demo}},
	} {
		want.filter.Namespace = "shop"
		filter, data, err := stream.ParseQuery("shop", encoded)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred(), encoded)
		g.Expect(filter).To(Equal(want.filter), encoded)
		g.Expect(data).To(Equal(want.data), encoded)
	}
}

func TestF8TheQueryIsReadStrictly(t *testing.T) {
	w := newWorld(t)
	for query, want := range map[string]string{
		"kinds=ConfigMap":            `"kinds" is not a parameter: use kind, labelSelector, name, events, initial and data`,
		"kind=configmap":             `kind is "configmap": write ConfigMap or Secret, or leave it out for both`,
		"kind=":                      `"kind" has no value: give it one, or leave it out`,
		"kind=Secret&kind=ConfigMap": `"kind" is given 2 times: give it once`,
		"name=App":                   `name is "App", which no object can have: a lowercase RFC 1123 subdomain must consist of`,
		"labelSelector=app%3D%3D%3D": `labelSelector is "app===", which is none: `,
		"events=MODIFIED":            `events has "MODIFIED": write some of Added, Modified and Deleted, separated by commas`,
		"events=Gap":                 `events has "Gap": write some of`,
		"events=Added,":              `events has "": write some of`,
		"events=Added,Added":         `events has Added twice: write it once`,
		"initial=1":                  `initial is "1": write true or false`,
		"data=yes":                   `data is "yes": write true or false`,
		"data=true":                  `data=true is only for ConfigMaps: write kind=ConfigMap too, or leave data out`,
		"data=true&kind=Secret":      `data=true is only for ConfigMaps`,
		"%zz":                        `the query of the URL can't be read: invalid URL escape "%zz"`,
		"kind=ConfigMap;data=true":   `the query of the URL can't be read: invalid semicolon separator in query`,
		"access_token=canary":        `a token is taken from the header Authorization only, and access_token is not a parameter`,
		strings.Repeat("x", 100):     `"` + strings.Repeat("x", 64) + `" has no value`,
	} {
		response := w.get("/v1/namespaces/shop/changes?" + query)
		g := NewWithT(t)
		g.Expect(response).To(HaveField("Code", http.StatusBadRequest), query)
		status := response.status
		g.Expect(status.Message).To(HavePrefix(want), query)
		g.Expect(status.Message).NotTo(ContainSubstring("canary"))
		g.Expect(status.Reason).To(BeEquivalentTo("BadRequest"))
	}
	g := NewWithT(t)
	g.Expect(w.get("/v1/namespaces/Shop/changes").status.Message).To(HavePrefix(`"Shop" is not the name of a namespace: `))
	g.Expect(w.reviewer.questions()).To(BeEmpty())
}

func TestF8ARequestHasNoBody(t *testing.T) {
	w := newWorld(t)
	request, err := http.NewRequest(http.MethodGet, w.url+"/v1/changes", strings.NewReader("{}"))
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+jane)
	refused := w.do(request)
	g.Expect(refused).To(HaveField("Code", http.StatusBadRequest))
	g.Expect(refused.status.Message).To(Equal("the request has a body: send none"))
}

func FuzzF8TheQuery(f *testing.F) {
	for _, seed := range []string{
		"", "kind=ConfigMap&labelSelector=app%3Ddemo&name=web&events=Added,Modified&initial=true&data=true",
		"kind=Secret&data=true", "kind=&kind=", "labelSelector=a+in+(b,c),!d,e>1", "name=..", "events=,", "a;b", "%", "=",
		"access_token=x", "initial=TRUE", "kind=ConfigMap&initial=false&data=false", "\x00", "labelSelector=%00",
	} {
		f.Add("shop", seed)
	}
	f.Add("", "")
	f.Add("UPPER", "")
	f.Fuzz(func(t *testing.T, namespace, encoded string) {
		filter, data, err := stream.ParseQuery(namespace, encoded)
		if err != nil {
			if len(err.Error()) == 0 || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q has the message %q", encoded, err)
			}
			return
		}
		if data && filter.Kind != v1alpha1.ConfigMap {
			t.Errorf("%q asks for the data of %q", encoded, filter.Kind)
		}
		again, dataAgain, err := stream.ParseQuery(namespace, canonical(filter, data))
		if err != nil {
			t.Fatalf("%q can't be written as %q: %v", encoded, canonical(filter, data), err)
		}
		if canonical(again, dataAgain) != canonical(filter, data) || filter.Namespace != namespace {
			t.Errorf("%q reads as %q", canonical(filter, data), canonical(again, dataAgain))
		}
	})
}

// canonical is a query in one of the ways to write it.
func canonical(f feed.Filter, data bool) string {
	values := url.Values{}
	set := func(parameter, value string) {
		if value != "" {
			values.Set(parameter, value)
		}
	}
	set("kind", string(f.Kind))
	set("name", f.Name)
	if f.Selector != nil {
		set("labelSelector", f.Selector.String())
	}
	var events []string
	for _, event := range f.Events {
		events = append(events, string(event))
	}
	set("events", strings.Join(events, ","))
	set("initial", strconv.FormatBool(f.Initial))
	set("data", strconv.FormatBool(data))
	return values.Encode()
}
