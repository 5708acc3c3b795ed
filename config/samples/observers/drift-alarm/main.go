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

// Command drift-alarm raises an alarm when a ConfigMap or Secret is deleted that nobody planned to delete.
//
// A deletion is planned if the object was labelled so before (--planned). One that happened while nothing was heard of
// is found when the present objects come again; for one that happened while this program didn't run, name what has to
// be there (--expect). An alarm is a line in the log, at the level ERROR, and counts in GET /metrics. With --once the
// first one ends the program with the exit code 3.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/ktechhub/configwatch/config/samples/observers/changes"
)

// alarmed is the exit code after an alarm. 1 is that of errors.
const alarmed = 3

var errAlarm = errors.New("an object is gone that should be there")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, errAlarm):
		os.Exit(alarmed)
	case err != nil:
		slog.Error("Failed", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var stream changes.Stream
	flags := flag.NewFlagSet("drift-alarm", flag.ExitOnError)
	stream.AddFlags(flags)
	kind := flags.String("kind", "ConfigMap", "ConfigMap or Secret")
	selector := flags.String("selector", "", "labels of the objects to guard, such as app=web (default all)")
	planned := flags.String("planned", "deletion=planned", "the label that says that an object may be deleted")
	expect := flags.String("expect", "", "names of objects that have to be there, separated by commas")
	once := flags.Bool("once", false, "end with the first alarm")
	listen := flags.String("listen", ":8080", "where to serve metrics by HTTP")
	if err := flags.Parse(args); err != nil {
		return err
	}
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := newGuard(*planned, *kind, stream.Namespace, names(*expect))
	if *once {
		g.raised = func() { cancel(errAlarm) }
	}
	query := changes.Query{Kind: *kind, Selector: *selector, Initial: true}
	if err := stream.FollowAndServe(ctx, query, g.observe, *listen, g.handler()); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errAlarm) {
		return errAlarm
	}
	return nil
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// object names one.
type object struct{ kind, namespace, name string }

func (o object) String() string { return o.kind + " " + o.namespace + "/" + o.name }

// guard knows which objects are there.
type guard struct {
	plannedKey, plannedValue string
	// raised is called after an alarm; nil: nobody wants to know.
	raised func()

	mu        sync.Mutex
	connected bool
	// present are the labels of each object that is there.
	present map[object]map[string]string
	// before is what should be there, until it is known what is: what was there before a gap, and at first what is
	// expected.
	before map[object]map[string]string
	// alarms is how many there were of each object.
	alarms map[object]int
}

func newGuard(planned, kind, namespace string, expected []string) *guard {
	g := &guard{
		present: map[object]map[string]string{},
		before:  map[object]map[string]string{},
		alarms:  map[object]int{},
	}
	g.plannedKey, g.plannedValue, _ = strings.Cut(planned, "=")
	for _, name := range expected {
		g.before[object{kind, namespace, name}] = nil
	}
	return g
}

// observe is told of all that becomes of the objects.
func (g *guard) observe(c changes.Change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := object{c.Kind, c.Namespace, c.Name}
	switch c.Event {
	case changes.Added, changes.Modified:
		g.present[o] = c.Labels
	case changes.Deleted:
		delete(g.present, o)
		g.gone(o, c.Labels)
	case changes.Gap:
		maps.Copy(g.before, g.present) // to what was there before another gap, if they come in a row
		clear(g.present)
	case changes.Synced:
		g.compare()
	case changes.Connected, changes.Interrupted:
		g.connected = c.Event == changes.Connected
	}
}

// compare looks for what is gone, now that it is known what is there.
func (g *guard) compare() {
	for o, labels := range g.before {
		if _, there := g.present[o]; !there {
			g.gone(o, labels)
		}
	}
	clear(g.before)
}

// gone raises an alarm, unless the deletion was planned.
func (g *guard) gone(o object, labels map[string]string) {
	if value, ok := labels[g.plannedKey]; ok && value == g.plannedValue {
		slog.Info("A planned deletion", "object", o.String())
		return
	}
	g.alarms[o]++
	slog.Error("Alarm: an object is gone that should be there", "object", o.String())
	if g.raised != nil {
		g.raised()
	}
}

// handler serves metrics in the text format of Prometheus.
func (g *guard) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintln(w, "# TYPE drift_alarm_deletions_total counter")
		objects := slices.SortedFunc(maps.Keys(g.alarms), func(a, b object) int { return strings.Compare(a.String(), b.String()) })
		for _, o := range objects {
			fmt.Fprintf(w, "drift_alarm_deletions_total{kind=%q,namespace=%q,name=%q} %d\n", o.kind, o.namespace, o.name, g.alarms[o])
		}
		// An alarm that hears nothing is worth an alarm.
		fmt.Fprintln(w, "# TYPE drift_alarm_connected gauge")
		fmt.Fprintln(w, "drift_alarm_connected", map[bool]int{true: 1}[g.connected])
	})
	return mux
}
