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

package observer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/feed/observer"
	"github.com/ktechhub/configwatch/internal/source"
)

var (
	noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)

	errFull = errors.New("no space left")
)

// object is a source of the namespace shop whose one key LOG_LEVEL has the version as its value.
func object(kind v1alpha1.SourceKind, name, version string) *source.Source {
	return &source.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid", ResourceVersion: version},
		Kind:       kind,
		Content:    digest.Plain().Content(map[string]string{"LOG_LEVEL": version}, nil),
	}
}

func changed(event feed.EventType, change func(*feed.Change)) feed.Change {
	c := feed.Change{Type: event, Namespace: "shop", Kind: v1alpha1.ConfigMap, Name: "web", Time: noon}
	if change != nil {
		change(&c)
	}
	return c
}

func keys(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("k%d", i)
	}
	return names
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errFull }

func TestF10TheLoggerWritesALineForEveryChange(t *testing.T) {
	for want, change := range map[string]feed.Change{
		"12:00:00 Modified ConfigMap shop/web (LOG_LEVEL)": changed(feed.Modified,
			func(c *feed.Change) { c.ChangedKeys = []string{"LOG_LEVEL"} }),
		"12:00:00 Added    Secret    shop/web": changed(feed.Added, func(c *feed.Change) { c.Kind = v1alpha1.Secret }),
		"12:00:00 Present  ConfigMap shop/web": changed(feed.Added, func(c *feed.Change) { c.Initial = true }),
		"12:00:00 Deleted  ConfigMap shop/web (k0, k1, k2, k3, k4, k5, k6, k7, k8, k9)": changed(feed.Deleted,
			func(c *feed.Change) { c.ChangedKeys = keys(10) }),
		"12:00:00 Deleted  ConfigMap shop/web (k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, +1 key)": changed(feed.Deleted,
			func(c *feed.Change) { c.ChangedKeys = keys(11) }),
		"12:00:00 Deleted  ConfigMap shop/web (k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, +990 keys)": changed(feed.Deleted,
			func(c *feed.Change) { c.ChangedKeys = keys(1000) }),
		"12:00:00 Gap      7 changes were lost, and what they were is not known": changed(feed.Gap, func(c *feed.Change) { c.Lost = 7 }),
		"12:00:00 Gap      changes were lost, and what they were is not known":   changed(feed.Gap, nil),
		"12:00:00 Synced   all that is there has been read":                      changed(feed.Synced, nil),
	} {
		t.Run(want, func(t *testing.T) {
			var out strings.Builder
			g := NewWithT(t)
			g.Expect(observer.Logger{Out: &out, Line: observer.Text}.Observe(change)).To(Succeed())
			g.Expect(out.String()).To(Equal(want + "\n"))
		})
	}
}

func TestF10TheLoggerWritesCloudEvents(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	logger := observer.Logger{Out: &out, Line: observer.JSON}
	g.Expect(logger.Observe(changed(feed.Deleted, nil))).To(Succeed())
	g.Expect(out.String()).To(And(HavePrefix("{"), HaveSuffix("}\n"), ContainSubstring(`"type":"io.ktechhub.configwatch.source.deleted.v1"`)))
	g.Expect(logger.Observe(feed.Change{})).To(MatchError(ContainSubstring("making a CloudEvent")))
}

func TestF10ALineThatCantBeWrittenIsAnError(t *testing.T) {
	err := observer.Logger{Out: broken{}, Line: observer.Text}.Observe(changed(feed.Added, nil))
	NewWithT(t).Expect(err).To(MatchError(errFull))
}

func TestF10TheCounterKeepsState(t *testing.T) {
	g := NewWithT(t)
	counter := &observer.Counter{}
	initial := func(c *feed.Change) { c.Initial = true }
	ofSecret := func(c *feed.Change) { c.Kind = v1alpha1.Secret }
	for _, change := range []feed.Change{
		changed(feed.Added, initial), changed(feed.Added, initial), changed(feed.Synced, nil),
		changed(feed.Added, ofSecret), changed(feed.Modified, nil), changed(feed.Modified, ofSecret), changed(feed.Deleted, nil),
	} {
		g.Expect(counter.Observe(change)).To(Succeed())
	}
	last := changed(feed.Deleted, nil)
	g.Expect(counter.Text(last)).To(Equal("12:00:00 1 ConfigMaps, 1 Secrets; 1 added, 2 modified, 1 deleted, 0 lost"))
	g.Expect(counter.JSON(last)).To(MatchJSON(
		`{"present":{"ConfigMap":1,"Secret":1},"events":{"Added":1,"Modified":2,"Deleted":1},"lost":0}`))

	g.Expect(counter.Observe(changed(feed.Gap, func(c *feed.Change) { c.Lost = 5 }))).To(Succeed())
	g.Expect(counter.Observe(changed(feed.Added, initial))).To(Succeed())
	g.Expect(counter.Text(last)).To(Equal("12:00:00 1 ConfigMaps, 0 Secrets; 1 added, 2 modified, 1 deleted, 5 lost"))
}

func TestF10TheFilterReactsToSomeEventsOnly(t *testing.T) {
	initial := func(c *feed.Change) { c.Initial = true }
	changes := []feed.Change{
		changed(feed.Added, initial), changed(feed.Synced, nil),
		changed(feed.Added, nil), changed(feed.Modified, nil), changed(feed.Gap, nil), changed(feed.Deleted, nil),
	}
	for name, tc := range map[string]struct {
		filter observer.Filter
		want   []string
	}{
		"Added":               {observer.Filter{Events: []feed.EventType{feed.Added}}, []string{"Present", "Synced", "Added", "Gap"}},
		"Added, if it is new": {observer.Filter{Events: []feed.EventType{feed.Added}, News: true}, []string{"Synced", "Added", "Gap"}},
		"none":                {observer.Filter{}, []string{"Present", "Synced", "Gap"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			tc.filter.Next = observer.Logger{Out: &out, Line: func(change feed.Change) (string, error) {
				line, err := observer.Text(change)
				return strings.Fields(line)[1], err
			}}
			for _, change := range changes {
				NewWithT(t).Expect(tc.filter.Observe(change)).To(Succeed())
			}
			NewWithT(t).Expect(strings.Fields(out.String())).To(Equal(tc.want))
		})
	}
}

// observation is an observer that runs.
type observation struct {
	broker       *feed.Broker
	subscription *feed.Subscription
	cancel       context.CancelFunc
	ended        chan error
}

func run(t *testing.T, buffer int, o observer.Observer) *observation {
	t.Helper()
	r := &observation{broker: feed.NewBroker(clocktesting.NewFakePassiveClock(noon)), ended: make(chan error, 1)}
	r.broker.Publish(nil, object(v1alpha1.ConfigMap, "web", "1"))
	var err error
	r.subscription, err = r.broker.Subscribe(feed.Filter{Initial: true}, buffer)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.subscription.Close)
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(t.Context())
	t.Cleanup(r.cancel)
	go func() { r.ended <- observer.Run(ctx, r.subscription, o) }()
	return r
}

func TestF10AnObservationEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		observer observer.Observer
		end      func(*observation)
		want     error
	}{
		"with its context":      {observer.Each{}, func(o *observation) { o.cancel() }, nil},
		"with the subscription": {observer.Each{}, func(o *observation) { o.subscription.Close() }, nil},
		"with an error": {observer.Each{&observer.Counter{}, observer.Logger{Out: broken{}, Line: observer.Text}},
			func(*observation) {}, errFull},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := run(t, 8, tc.observer)
				synctest.Wait()
				tc.end(o)
				if err := <-o.ended; !errors.Is(err, tc.want) {
					t.Errorf("it ended with: %v", err)
				}
			})
		})
	}
}

// slow holds every change up until it is let go.
type slow struct{ next chan struct{} }

func (s slow) Observe(feed.Change) error {
	<-s.next
	return nil
}

func TestF2WhatIsThereIsReadAgainWhenChangesWereLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counter, held := &observer.Counter{}, slow{make(chan struct{})}
		o := run(t, 1, observer.Each{counter, held})
		synctest.Wait() // it is held at the first
		o.broker.Publish(nil, object(v1alpha1.ConfigMap, "db", "2"))
		o.broker.Publish(nil, object(v1alpha1.Secret, "db", "3"))
		o.broker.Publish(object(v1alpha1.ConfigMap, "web", "4"), nil)
		close(held.next)
		synctest.Wait()
		NewWithT(t).Expect(counter.Text(changed(feed.Gap, nil))).To(
			Equal("12:00:00 1 ConfigMaps, 1 Secrets; 0 added, 0 modified, 0 deleted, 2 lost"))
	})
}

func TestF9AChangeIsLoggedAndCounted(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	log := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 1})
	registry := prometheus.NewRegistry()
	record, err := observer.NewRecord(log, registry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(record.Observe(changed(feed.Modified, func(c *feed.Change) { c.ChangedKeys = []string{"LOG_LEVEL"} }))).To(Succeed())
	g.Expect(record.Observe(changed(feed.Modified, nil))).To(Succeed())
	g.Expect(record.Observe(changed(feed.Synced, nil))).To(Succeed())
	g.Expect(record.Observe(changed(feed.Gap, func(c *feed.Change) { c.Lost = 3 }))).To(Succeed())
	g.Expect(record.Observe(changed(feed.Added, func(c *feed.Change) { c.Initial = true }))).To(Succeed()) // as after a Gap

	g.Expect(lines).To(HaveExactElements(
		ContainSubstring(`"level":1,"msg":"Source changed","event":"Modified","kind":"ConfigMap","namespace":"shop","name":"web",`+
			`"hash":"","previousHash":"","changedKeys":["LOG_LEVEL"]`),
		ContainSubstring(`"level":1`),
		ContainSubstring(`"level":0,"msg":"Changes came faster than they could be recorded","lost":3`),
	))
	g.Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP configwatch_source_changes_total Changes of ConfigMaps and Secrets that this replica has seen, by kind and event.
# TYPE configwatch_source_changes_total counter
configwatch_source_changes_total{event="Modified",kind="ConfigMap"} 2
`))).To(Succeed())
	_, err = observer.NewRecord(log, registry)
	g.Expect(err).To(MatchError(ContainSubstring("registering metrics")))
}
