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

package informer

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// reconnects keeps what OnReconnect told.
type reconnects struct {
	mu   sync.Mutex
	told []Reconnect
}

func (r *reconnects) add(again Reconnect) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, again)
}

func (r *reconnects) all() []Reconnect {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Reconnect(nil), r.told...)
}

// connected is an Informer of a namespace that has read everything, with the time that it goes by.
func connected(t *testing.T, s *server) (*changes, *reconnects, *clocktesting.FakePassiveClock) {
	t.Helper()
	g := NewWithT(t)
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	i, told := newInformer(t, map[string]*server{"shop": s}, func(o *Options[*kept]) { o.Clock = clk })
	again := &reconnects{}
	i.OnReconnect(again.add)
	start(t, i)
	g.Eventually(func() error { return i.Health("shop") }).Should(Succeed())
	return told, again, clk
}

func TestF11AWatchThatBreaksOffIsToldOnceItIsMadeAgain(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := newServer()
	told, again, _ := connected(t, s)
	s.put("a", "uid-a", "1", nil)
	g.Eventually(told.all).Should(HaveLen(1))
	g.Expect(again.all()).To(BeEmpty(), "the first one is no other")

	s.end()
	g.Eventually(again.all).Should(HaveExactElements(Reconnect{Kind: "ConfigMap", Namespace: "shop"}))
	s.put("a", "uid-a", "2", nil)
	g.Eventually(told.last).Should(HaveField("After", HaveField("Digest", "digest of 2")))
	g.Expect(again.all()).To(HaveLen(1))
}

func TestF11AWatchThatEndsInTimeIsNotTold(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := newServer()
	told, again, clk := connected(t, s)
	s.put("a", "uid-a", "1", nil)
	g.Eventually(told.all).Should(HaveLen(1))

	const longest = 10 * time.Minute // that the reflector asks for
	clk.SetTime(clk.Now().Add(longest))
	s.end()
	s.put("a", "uid-a", "2", nil)
	g.Eventually(told.last).Should(HaveField("After", HaveField("Digest", "digest of 2")), "by the next watch")
	g.Expect(again.all()).To(BeEmpty())
}

func TestF11WhatHappenedMeanwhileIsTold(t *testing.T) {
	for name, noStreams := range map[string]bool{"the list is streamed": false, "the list is paged": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			s := newServer()
			s.noStreams = noStreams
			told, again, clk := connected(t, s)
			s.put("a", "uid-a", "1", nil)
			g.Eventually(told.all).Should(HaveLen(1))

			s.cut(func() { // 410 Gone
				s.fail(errors.New("connection reset by peer"))
				s.put("a", "uid-a", "2", nil)
			})
			calls := s.count(&s.calls)()
			g.Eventually(s.count(&s.calls), "20s").Should(BeNumerically(">", calls))
			clk.SetTime(clk.Now().Add(42 * time.Second))
			s.fail(nil)
			g.Eventually(told.last, "20s").Should(HaveField("After", HaveField("Digest", "digest of 2")))
			g.Eventually(again.all).Should(HaveExactElements(SatisfyAll(
				HaveField("Away", 42*time.Second),
				HaveField("Reread", true),
				HaveField("Cause", MatchError("connection reset by peer")),
			)))
		})
	}
}

func TestF11AStartThatTakesLongIsNoReconnect(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := newServer()
	s.fail(errors.New("connection refused"))
	i, _ := newInformer(t, map[string]*server{metav1.NamespaceAll: s})
	again := &reconnects{}
	i.OnReconnect(again.add)
	start(t, i)
	g.Eventually(s.count(&s.calls)).Should(BeNumerically(">", 0))
	s.fail(nil)
	g.Eventually(func() error { return i.Health("shop") }, "20s").Should(Succeed())
	g.Expect(again.all()).To(BeEmpty())
}

func TestF11ReconnectsAreLoggedAndCounted(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	registry := prometheus.NewRegistry()
	r, err := NewReconnects(log, registry)
	g.Expect(err).NotTo(HaveOccurred())
	i, _ := newInformer(t, map[string]*server{metav1.NamespaceAll: newServer()})
	r.Record(Group{i})
	metric := func(value string) *strings.Reader {
		return strings.NewReader(`
			# HELP configwatch_watch_reconnects_total Watches of the API server that broke off before their time and were made again, by the kind that is watched.
			# TYPE configwatch_watch_reconnects_total counter
			configwatch_watch_reconnects_total{kind="ConfigMap"} ` + value + "\n")
	}
	g.Expect(testutil.GatherAndCompare(registry, metric("0"))).To(Succeed(), "it is there before there is anything to count")

	r.reconnected(Reconnect{Kind: "ConfigMap", Away: time.Second})
	r.reconnected(Reconnect{Kind: "ConfigMap", Namespace: "shop", Away: time.Minute, Reread: true, Cause: errors.New("EOF")})
	g.Expect(testutil.GatherAndCompare(registry, metric("2"))).To(Succeed())
	const message = `"level"=0 "msg"="Made a watch again that had broken off" "kind"="ConfigMap" `
	g.Expect(lines).To(HaveExactElements(
		message+`"away"="1s" "reread"=false`,
		message+`"away"="1m0s" "reread"=true "namespace"="shop" "lastError"="EOF"`,
	))

	_, err = NewReconnects(log, registry)
	g.Expect(err).To(MatchError(HavePrefix("registering metrics: ")))
}
