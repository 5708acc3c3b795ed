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
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/ktechhub/configwatch/internal/stream"
)

// journal is what was logged, at all levels.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, line)
	}, funcr.Options{Verbosity: 10})
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// named knows a user by a token that is not their name.
type named struct{ *reviewer }

func (n named) Authenticate(context.Context, string) (user.Info, error) {
	return &user.DefaultInfo{Name: "Jane Doe"}, nil
}

func TestF8TheLogHasStreamsAndNoToken(t *testing.T) {
	g := NewWithT(t)
	var log journal
	w := newWorld(t, func(s *setting) {
		s.options.Log = log.logger()
		s.options.Reviewer = named{&reviewer{}}
	})
	for _, path := range []string{"/v1/changes?access_token=canary", "/v1/changes?x=canary"} {
		w.ask(http.MethodGet, path, "Authorization", "Bearer canary")
	}
	a := w.ask(http.MethodGet, "/v1/namespaces/shop/changes", "Authorization", "Bearer canary")
	r := read(t, a.stream)
	r.block()
	w.stop()
	r.ended()
	g.Expect(log.text()).To(And(
		ContainSubstring(`"msg"="A stream begins"`), ContainSubstring(`"user"="Jane Doe" "namespace"="shop"`),
		ContainSubstring(`"msg"="A stream ends"`), ContainSubstring(`"because"="this replica shuts down: connect again"`),
	))
	g.Expect(log.text()).NotTo(ContainSubstring("canary"))
}

// startled panics when it is asked, as long as it is told to.
type startled struct {
	*reviewer
	now func() bool
}

func (s startled) MayWatch(ctx context.Context, who user.Info, resource, namespace, name string) (bool, error) {
	allowed, err := s.reviewer.MayWatch(ctx, who, resource, namespace, name)
	if s.now() {
		panic("boo")
	}
	return allowed, err
}

func TestF8APanicEndsNeitherTheServerNorTheReviews(t *testing.T) {
	g := NewWithT(t)
	var log journal
	var mu sync.Mutex
	panics := false
	set := func(to bool) {
		mu.Lock()
		defer mu.Unlock()
		panics = to
	}
	inner := &reviewer{denied: map[string]bool{}}
	w := newWorld(t, func(s *setting) {
		s.options.Log = log.logger()
		s.options.Reviewer = startled{inner, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return panics
		}}
	})
	r := w.open("/v1/changes?kind=Secret")
	set(true)
	w.clock.Step(stream.ReviewInterval)
	r.block()
	g.Eventually(log.text, patience).Should(ContainSubstring("Recovered from a panic in a stream"))
	w.set(secret("db", "1"))
	r.expect("Added db@1")

	set(false)
	inner.change(func(r *reviewer) { r.denied["secrets"] = true })
	g.Eventually(func() string {
		w.clock.Step(stream.ReviewInterval)
		return r.block().name
	}, patience).Should(Equal("Ended"))
}

func TestF8AConnectionThatCantBeTakenOverIsAnswered(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/v1/changes", nil)
	request.Header.Set("Authorization", "Bearer "+jane)
	w.server.Handler(t.Context()).ServeHTTP(recorder, request)
	g.Expect(recorder.Code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(w.server.Streams()).To(BeZero())

	w.stop()
	recorder = httptest.NewRecorder()
	request.Header.Set("Authorization", "Bearer "+jane)
	w.server.Handler(t.Context()).ServeHTTP(recorder, request)
	g.Expect(recorder.Code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(recorder.Body.String()).To(ContainSubstring("this replica shuts down: connect again"))
}

func TestF8WhatIsKeptOfEventsIsBounded(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, func(s *setting) { s.history = 10_000 })
	r := w.open("/v1/changes?name=large")
	first := r.lastID
	size := 0
	for n := 1; size < 2*stream.FramesKept; n++ {
		w.set(large(n))
		b, e := r.event()
		size += len(b.data)
		g.Expect(e.ID()).To(Equal("uid-large/" + rv(strconv.Itoa(n))))
	}
	resumed := w.open("/v1/changes?name=large&events=Added", lastEventID, first)
	resumed.expect("Added large@1") // it is made again
}
