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
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/config/samples/observers/changes"
)

// store is where the cache loads from: each load of a name has another value.
type store struct {
	loads map[string]int
	err   error
	// during is called in the middle of a load, after the value was read.
	during func()
}

func (s *store) load(_ context.Context, name string) (map[string]string, error) {
	s.loads[name]++
	data := map[string]string{"load": strconv.Itoa(s.loads[name])}
	if s.during != nil {
		s.during()
	}
	return data, s.err
}

// connected is a cache that hears of changes.
func connected() (*cache, *store) {
	s := &store{loads: map[string]int{}}
	c := newCache(s.load)
	c.observe(changes.Change{Event: changes.Connected})
	return c, s
}

// expect expects that a name has the value of its n-th load.
func expect(t *testing.T, c *cache, name string, n int) {
	t.Helper()
	data, _, err := c.get(t.Context(), name)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(data).To(HaveKeyWithValue("load", strconv.Itoa(n)), name)
}

func TestAnyChangeDropsTheEntryAndNoOther(t *testing.T) {
	for _, event := range []changes.Event{changes.Added, changes.Modified, changes.Deleted} {
		t.Run(string(event), func(t *testing.T) {
			c, _ := connected()
			expect(t, c, "web", 1)
			expect(t, c, "db", 1)
			expect(t, c, "web", 1)
			c.observe(changes.Change{Event: event, Name: "web"})
			expect(t, c, "web", 2)
			expect(t, c, "web", 2)
			expect(t, c, "db", 1)
		})
	}
}

func TestAGapDropsAll(t *testing.T) {
	c, _ := connected()
	expect(t, c, "web", 1)
	expect(t, c, "db", 1)
	c.observe(changes.Change{Event: changes.Gap})
	expect(t, c, "web", 2)
	expect(t, c, "db", 2)
	expect(t, c, "db", 2)
}

func TestNothingIsKeptWhileNoChangesAreHeardOf(t *testing.T) {
	c, _ := connected()
	expect(t, c, "web", 1)
	c.observe(changes.Change{Event: changes.Interrupted})
	expect(t, c, "web", 2)
	expect(t, c, "web", 3)
	c.observe(changes.Change{Event: changes.Connected})
	c.observe(changes.Change{Event: changes.Synced})
	expect(t, c, "web", 4)
	expect(t, c, "web", 4)
}

func TestWhatWasLoadedWhileItChangedIsNotKept(t *testing.T) {
	for _, event := range []changes.Event{changes.Modified, changes.Gap, changes.Interrupted, changes.Connected} {
		t.Run(string(event), func(t *testing.T) {
			c, s := connected()
			s.during = func() { c.observe(changes.Change{Event: event, Name: "web"}) }
			expect(t, c, "web", 1)
			s.during = nil
			expect(t, c, "web", 2)
		})
	}
}

func TestAnswersSayWhetherTheyAreFromTheCache(t *testing.T) {
	g := NewWithT(t)
	c, s := connected()
	get := func() *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		c.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/configmaps/web", nil))
		return answer
	}
	g.Expect(get()).To(And(HaveHTTPHeaderWithValue("X-Cache", "miss"), HaveHTTPBody(MatchJSON(`{"load":"1"}`))))
	g.Expect(get()).To(And(HaveHTTPHeaderWithValue("X-Cache", "hit"), HaveHTTPBody(MatchJSON(`{"load":"1"}`))))

	c.observe(changes.Change{Event: changes.Deleted, Name: "web"})
	s.err = &changes.Refusal{Status: http.StatusNotFound}
	g.Expect(get()).To(HaveHTTPStatus(http.StatusNotFound))
	s.err = errors.New("connection refused")
	g.Expect(get()).To(HaveHTTPStatus(http.StatusBadGateway))
	s.err = nil
	g.Expect(get()).To(HaveHTTPBody(MatchJSON(`{"load":"4"}`)), "a failure is not kept")
}
