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

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/config/samples/observers/changes"
)

func added(name, path, backend string) changes.Change {
	return changes.Change{
		Event: changes.Added, Kind: "ConfigMap", Namespace: "shop", Name: name, Data: map[string]string{"path": path, "backend": backend},
	}
}

func gone(name string) changes.Change {
	return changes.Change{Event: changes.Deleted, Kind: "ConfigMap", Namespace: "shop", Name: name}
}

func mark(event changes.Event) changes.Change {
	return changes.Change{Event: event}
}

func get(r *router, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	r.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer
}

// names are those of the routes in the table, in their order.
func names(r *router) []string {
	found := []string{}
	for _, route := range *r.table.Load() {
		found = append(found, route.Name)
	}
	return found
}

func TestTheTableIsBuiltOnceAllIsKnown(t *testing.T) {
	g := NewWithT(t)
	r := newRouter()
	r.observe(mark(changes.Connected))
	r.observe(added("web", "/", "http://web.shop.svc"))
	for _, path := range []string{"/-/readyz", "/"} {
		g.Expect(get(r, path)).To(HaveHTTPStatus(http.StatusServiceUnavailable), path)
	}
	r.observe(mark(changes.Synced))
	g.Expect(get(r, "/-/readyz")).To(HaveHTTPStatus(http.StatusOK))
	g.Expect(get(r, "/-/routes")).To(HaveHTTPBody(MatchJSON(`[{"name":"shop/web","path":"/","backend":"http://web.shop.svc"}]`)))
}

func TestTheTableFollowsChanges(t *testing.T) {
	g := NewWithT(t)
	r := newRouter()
	r.observe(mark(changes.Synced))
	r.observe(added("web", "/", "http://web.shop.svc"))
	r.observe(added("b", "/api/", "http://b.shop.svc"))
	r.observe(added("a", "/api/", "http://a.shop.svc"))
	r.observe(added("v2", "/api/v2/", "https://v2.shop.svc:8443"))
	g.Expect(names(r)).To(HaveExactElements("shop/v2", "shop/a", "shop/b", "shop/web"))
	table := r.table.Load()
	for path, want := range map[string]string{"/": "shop/web", "/api": "shop/web", "/api/v1": "shop/a", "/api/v2/x": "shop/v2"} {
		g.Expect(table.find(path).Name).To(Equal(want), path)
	}
	r.observe(gone("a"))
	r.observe(gone("web"))
	g.Expect(names(r)).To(HaveExactElements("shop/v2", "shop/b"))
	g.Expect(get(r, "/elsewhere")).To(HaveHTTPStatus(http.StatusNotFound))
}

func TestAGapRebuildsTheTableWhole(t *testing.T) {
	g := NewWithT(t)
	r := newRouter()
	r.observe(added("web", "/", "http://web.shop.svc"))
	r.observe(added("gone", "/gone/", "http://gone.shop.svc"))
	r.observe(mark(changes.Synced))
	r.observe(mark(changes.Interrupted))
	r.observe(mark(changes.Gap))
	r.observe(added("api", "/api/", "http://api.shop.svc"))
	g.Expect(names(r)).To(ConsistOf("shop/web", "shop/gone"), "the table from before is used meanwhile")
	r.observe(added("web", "/", "http://web.shop.svc"))
	r.observe(mark(changes.Synced))
	g.Expect(names(r)).To(ConsistOf("shop/web", "shop/api"))
}

func TestARouteThatCantBeUsedStaysAsItWas(t *testing.T) {
	for name, change := range map[string]changes.Change{
		"no path":                  added("web", "", "http://other.shop.svc"),
		"a path without an end":    added("web", "/shop", "http://other.shop.svc"),
		"a path without a slash":   added("web", "shop/", "http://other.shop.svc"),
		"no backend":               added("web", "/shop/", ""),
		"a backend without a host": added("web", "/shop/", "http:///"),
		"a backend of a file":      added("web", "/shop/", "file://host/etc/passwd"),
		"a backend that is no URL": added("web", "/shop/", "http://%"),
		"no data, as it was gone":  {Event: changes.Modified, Namespace: "shop", Name: "web"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newRouter()
			r.observe(added("web", "/", "http://web.shop.svc"))
			r.observe(mark(changes.Synced))
			r.observe(change)
			g.Expect((*r.table.Load())[0]).To(And(HaveField("Path", "/"), HaveField("Backend", "http://web.shop.svc")))
			change.Name = "new"
			r.observe(change)
			g.Expect(names(r)).To(HaveExactElements("shop/web"))
		})
	}
}

func TestRequestsGoToTheBackendOfTheirRoute(t *testing.T) {
	g := NewWithT(t)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Path, " for ", r.Header.Get("X-Forwarded-Host"))
	}))
	defer backend.Close()
	r := newRouter()
	r.observe(added("web", "/shop/", backend.URL))
	r.observe(mark(changes.Synced))
	g.Expect(get(r, "/shop/basket")).To(HaveHTTPBody("/shop/basket for example.com"))
}
