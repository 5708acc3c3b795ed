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

// Command routing-table is a reverse proxy whose routes are ConfigMaps.
//
// Each ConfigMap with the label route has the keys path, such as /shop/, and backend, such as http://shop.shop.svc:8080.
// The longest path that a request's begins with has it. GET /-/routes is the table, and GET /-/readyz succeeds once
// there is one. Requests never see half a table: while it is built anew after a gap, the one from before is used.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/ktechhub/configwatch/config/samples/observers/changes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		slog.Error("Failed", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var stream changes.Stream
	flags := flag.NewFlagSet("routing-table", flag.ExitOnError)
	stream.AddFlags(flags)
	selector := flags.String("selector", "route", "labels of the ConfigMaps that are routes, such as route or route=public")
	listen := flags.String("listen", ":8080", "where to serve HTTP")
	if err := flags.Parse(args); err != nil {
		return err
	}
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	router := newRouter()
	query := changes.Query{Kind: "ConfigMap", Selector: *selector, Initial: true, Data: true}
	return stream.FollowAndServe(ctx, query, router.observe, *listen, router.handler())
}

// route is what a ConfigMap says.
type route struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Backend string `json:"backend"`

	proxy http.Handler
}

// parse reads a route. What is wrong with it is for whoever wrote the ConfigMap.
func parse(c changes.Change) (*route, error) {
	r := &route{Name: c.Namespace + "/" + c.Name, Path: c.Data["path"], Backend: c.Data["backend"]}
	if !strings.HasPrefix(r.Path, "/") || !strings.HasSuffix(r.Path, "/") {
		return nil, fmt.Errorf("path is %q: write one that begins and ends with /", r.Path)
	}
	backend, err := url.Parse(r.Backend)
	if err != nil || backend.Scheme != "http" && backend.Scheme != "https" || backend.Host == "" {
		return nil, fmt.Errorf("backend is %q: write http://HOST:PORT or https://HOST:PORT", r.Backend)
	}
	r.proxy = &httputil.ReverseProxy{Rewrite: func(request *httputil.ProxyRequest) {
		request.SetURL(backend)
		request.SetXForwarded()
	}}
	return r, nil
}

// table is all routes: the longest path first, and of the same path the one whose name is first. It doesn't change.
type table []*route

func (t table) find(path string) *route {
	for _, r := range t {
		if strings.HasPrefix(path, r.Path) {
			return r
		}
	}
	return nil
}

type router struct {
	// routes are by name. They belong to observe.
	routes map[string]*route
	// complete tells that routes has all that are there.
	complete bool

	table atomic.Pointer[table] // nil: there is none yet
}

func newRouter() *router {
	return &router{routes: map[string]*route{}}
}

// observe is told of all that becomes of routes.
func (r *router) observe(c changes.Change) {
	switch c.Event {
	case changes.Added, changes.Modified:
		r.set(c)
	case changes.Deleted:
		delete(r.routes, c.Namespace+"/"+c.Name)
	case changes.Gap:
		// All that are there are told again, and those that are not told are gone.
		r.routes, r.complete = map[string]*route{}, false
	case changes.Synced:
		r.complete = true
	case changes.Connected, changes.Interrupted:
		return // the table stays as good as it is
	}
	if r.complete {
		r.publish()
	}
}

func (r *router) set(c changes.Change) {
	if c.Data == nil {
		return // it is gone already
	}
	parsed, err := parse(c)
	if err != nil {
		// A slip doesn't take a route down that works.
		slog.Error("A route can't be used; if it is known, it stays as it was", "route", c.Namespace+"/"+c.Name, "error", err)
		return
	}
	r.routes[parsed.Name] = parsed
}

// publish makes a table of the routes, and has requests use it from now on.
func (r *router) publish() {
	t := make(table, 0, len(r.routes))
	for _, route := range r.routes {
		t = append(t, route)
	}
	slices.SortFunc(t, func(a, b *route) int {
		return cmp.Or(cmp.Compare(len(b.Path), len(a.Path)), strings.Compare(a.Path, b.Path), strings.Compare(a.Name, b.Name))
	})
	r.table.Store(&t)
	slog.Info("The table is in force", "routes", len(t))
}

func (r *router) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/routes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.table.Load()) // whoever has gone doesn't read it
	})
	mux.HandleFunc("GET /-/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if r.table.Load() == nil {
			http.Error(w, "there is no table yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, request *http.Request) {
		t := r.table.Load()
		if t == nil {
			http.Error(w, "there is no table yet", http.StatusServiceUnavailable)
			return
		}
		if found := t.find(request.URL.Path); found != nil {
			found.proxy.ServeHTTP(w, request)
			return
		}
		http.Error(w, "no route leads there", http.StatusNotFound)
	})
	return mux
}
