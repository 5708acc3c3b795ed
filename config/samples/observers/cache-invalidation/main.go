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

// Command cache-invalidation serves the data of ConfigMaps from a cache whose entries are dropped when they change.
//
// GET /configmaps/NAME is the data as JSON. The header X-Cache says whether it was a hit or a miss. What is read once is
// not read again before it changes, and nobody gets what is older than the last change that was heard of.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"sync"
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
	flags := flag.NewFlagSet("cache-invalidation", flag.ExitOnError)
	stream.AddFlags(flags)
	apiServer := flags.String("api-server", "https://kubernetes.default.svc", "where ConfigMaps are read")
	apiCA := flags.String("api-ca-file", "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "the certificates that verify it")
	listen := flags.String("listen", ":8080", "where to serve HTTP")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if stream.Namespace == "" {
		return errors.New("--namespace is empty: name the one whose ConfigMaps are served")
	}
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	api := changes.Server{URL: *apiServer, CAFile: *apiCA, TokenFile: stream.TokenFile}
	cached := newCache(func(ctx context.Context, name string) (map[string]string, error) {
		return read(ctx, &api, stream.Namespace, name)
	})
	// Names are enough, and what is there at first is in no cache.
	query := changes.Query{Kind: "ConfigMap"}
	return stream.FollowAndServe(ctx, query, cached.observe, *listen, cached.handler())
}

// cache keeps what it has loaded until that changes.
type cache struct {
	load func(ctx context.Context, name string) (map[string]string, error)

	mu      sync.Mutex
	entries map[string]map[string]string
	// hearing tells that changes are heard of. While they are not, nothing is kept.
	hearing bool
	// dropped is how often something was dropped.
	dropped int
}

func newCache(load func(context.Context, string) (map[string]string, error)) *cache {
	return &cache{load: load, entries: map[string]map[string]string{}}
}

// observe is told of all changes. Whatever it was, the entry is no longer good.
func (c *cache) observe(change changes.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch change.Event {
	case changes.Added, changes.Modified, changes.Deleted:
		delete(c.entries, change.Name)
	case changes.Gap:
		clear(c.entries) // any of them may have changed
	case changes.Interrupted:
		clear(c.entries)
		c.hearing = false
	case changes.Connected:
		c.hearing = true
	case changes.Synced:
		return // which was not asked for
	}
	c.dropped++
}

// get is the data of a ConfigMap, and whether it was there already.
func (c *cache) get(ctx context.Context, name string) (data map[string]string, hit bool, err error) {
	c.mu.Lock()
	data, hit = c.entries[name]
	before := c.dropped
	c.mu.Unlock()
	if hit {
		return data, true, nil
	}
	if data, err = c.load(ctx, name); err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A change that came meanwhile may be newer than what was loaded, and would never be told again.
	if c.hearing && c.dropped == before {
		c.entries[name] = data
	}
	return data, false, nil
}

// read asks the API server, which takes the right to get ConfigMaps.
func read(ctx context.Context, api *changes.Server, namespace, name string) (map[string]string, error) {
	path := "/api/v1/namespaces/" + url.PathEscape(namespace) + "/configmaps/" + url.PathEscape(name)
	body, err := api.Get(ctx, path, nil, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	defer body.Close()
	var configMap struct {
		Data map[string]string `json:"data"`
	}
	if err := json.NewDecoder(body).Decode(&configMap); err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	return configMap.Data, nil
}

func (c *cache) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /configmaps/{name}", func(w http.ResponseWriter, r *http.Request) {
		data, hit, err := c.get(r.Context(), r.PathValue("name"))
		if err != nil {
			c.fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Cache", map[bool]string{true: "hit", false: "miss"}[hit])
		_ = json.NewEncoder(w).Encode(data) // whoever has gone doesn't read it
	})
	return mux
}

func (c *cache) fail(w http.ResponseWriter, err error) {
	var refused *changes.Refusal
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		http.Error(w, "there is no such ConfigMap", http.StatusNotFound)
		return
	}
	slog.Error("Failed to load an entry", "error", err)
	http.Error(w, "the ConfigMap can't be read now", http.StatusBadGateway)
}
