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

// Command hot-reload is an HTTP server whose log level and features follow a ConfigMap, without a restart.
//
// The ConfigMap's key LOG_LEVEL is one of debug, info, warn and error; FEATURES is a list of names, separated by
// commas. GET / is what the features make of it, GET /settings is what is in force, and GET /readyz succeeds once
// the ConfigMap has been looked for.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
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
	flags := flag.NewFlagSet("hot-reload", flag.ExitOnError)
	stream.AddFlags(flags)
	name := flags.String("configmap", "app-config", "the ConfigMap to follow")
	listen := flags.String("listen", ":8080", "where to serve HTTP")
	if err := flags.Parse(args); err != nil {
		return err
	}
	app := newApp()
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: &app.level})))
	query := changes.Query{Kind: "ConfigMap", Name: *name, Initial: true, Data: true}
	return stream.FollowAndServe(ctx, query, app.observe, *listen, app.handler())
}

// settings are what the ConfigMap says. They are replaced as a whole, so that no request sees half of a change.
type settings struct {
	LogLevel slog.Level `json:"logLevel"`
	Features []string   `json:"features"`
}

type app struct {
	level   slog.LevelVar
	current atomic.Pointer[settings]
	ready   atomic.Bool
}

// newApp has the settings that are in force until there is a ConfigMap.
func newApp() *app {
	a := &app{}
	a.current.Store(&settings{LogLevel: slog.LevelInfo, Features: []string{}})
	return a
}

// observe is told of all that becomes of the ConfigMap.
func (a *app) observe(c changes.Change) {
	switch c.Event {
	case changes.Added, changes.Modified:
		a.reload(c)
	case changes.Deleted:
		// More often a mistake than a wish, and to go on is safer than to fall back to defaults.
		slog.Warn("The ConfigMap is gone; its last settings stay in force")
	case changes.Synced:
		a.ready.Store(true)
	case changes.Gap, changes.Connected, changes.Interrupted:
		// What is there is told again after a gap, and until then the last settings are the best there are.
	}
}

func (a *app) reload(c changes.Change) {
	if c.Data == nil {
		return // it is gone already
	}
	next, err := parse(c.Data)
	if err != nil {
		// In a rollout, pods with it would fail to start; here the running ones keep what they have.
		slog.Error("The ConfigMap can't be used; the last settings stay in force", "hash", c.Hash, "error", err)
		return
	}
	a.level.Set(next.LogLevel)
	a.current.Store(next)
	slog.Info("Settings are in force", "hash", c.Hash, "changedKeys", c.ChangedKeys)
}

// parse reads all settings, or none.
func parse(data map[string]string) (*settings, error) {
	next := &settings{Features: []string{}}
	if level, ok := data["LOG_LEVEL"]; ok {
		if err := next.LogLevel.UnmarshalText([]byte(level)); err != nil {
			return nil, fmt.Errorf("LOG_LEVEL: %w", err)
		}
	}
	for feature := range strings.SplitSeq(data["FEATURES"], ",") {
		if feature = strings.TrimSpace(feature); feature != "" {
			next.Features = append(next.Features, feature)
		}
	}
	return next, nil
}

func (a *app) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		slog.Debug("Greeting", "client", r.RemoteAddr)
		greeting := "Hello"
		if slices.Contains(a.current.Load().Features, "polite") {
			greeting = "Good day to you"
		}
		fmt.Fprintln(w, greeting)
	})
	mux.HandleFunc("GET /settings", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.current.Load()) // whoever has gone doesn't read it
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !a.ready.Load() {
			http.Error(w, "the ConfigMap has not been looked for yet", http.StatusServiceUnavailable)
		}
	})
	return mux
}
