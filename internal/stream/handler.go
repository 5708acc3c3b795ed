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

package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/ktechhub/configwatch/internal/access"
	"github.com/ktechhub/configwatch/internal/feed"
)

// handler answers requests. The streams that it begins end with the context.
func (s *Server) handler(streams context.Context) http.Handler {
	serve := func(w http.ResponseWriter, r *http.Request) {
		if err := s.stream(streams, w, r); err != nil {
			s.answer(w, r, err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/namespaces/{namespace}/changes", serve)
	mux.HandleFunc("/v1/changes", serve) // of all namespaces
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		notFound("there are /v1/namespaces/NAMESPACE/changes and /v1/changes, and nothing else").write(w)
	})
	return mux
}

// answer tells a client why it gets no stream.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, err error) {
	var because *refusal
	if !errors.As(err, &because) {
		s.Log.Error(err, "Failed to begin a stream", "path", r.URL.Path)
		because = unavailable("the API server could not be asked who you are and what you may watch: try again")
	}
	because.write(w)
}

// stream begins a stream. If it fails, the request is still to be answered.
func (s *Server) stream(streams context.Context, w http.ResponseWriter, r *http.Request) error {
	token := access.Token(r)
	who, q, err := s.admit(r, token)
	if err != nil {
		return err
	}
	if refused := s.limits.enter(who.GetName()); refused != nil {
		return refused
	}
	c, err := s.begin(q, r.Header.Get("Last-Event-ID"))
	if err != nil {
		s.limits.leave(who.GetName())
		return err
	}
	c.token, c.user = token, who.GetName()
	// The connection is taken over, as the server's buffers and the stack that the handshake left would take
	// twice the memory of all else that a client needs.
	if c.conn, _, err = http.NewResponseController(w).Hijack(); err != nil {
		c.leave()
		return fmt.Errorf("taking the connection over: %w", err)
	}
	s.running.Go(func() { c.run(streams) })
	return nil
}

// admit is who asks for what, if they may.
func (s *Server) admit(r *http.Request, token string) (user.Info, *query, error) {
	if r.Method != http.MethodGet {
		return nil, nil, methodNotAllowed()
	}
	who, err := s.authenticate(r.Context(), token)
	if err != nil {
		return nil, nil, err
	}
	q, err := parseQuery(r.PathValue("namespace"), r.URL.RawQuery)
	if err != nil {
		return nil, nil, badRequest(err)
	}
	if r.ContentLength != 0 {
		return nil, nil, badRequest(errors.New("the request has a body: send none"))
	}
	if err := s.authorize(r.Context(), who, &q); err != nil {
		return nil, nil, err
	}
	switch err := s.History.Ready(q.filter); {
	case errors.Is(err, feed.ErrNotFollowed):
		return nil, nil, notFound(fmt.Sprintf("namespace %s is not watched by this operator", q.filter.Namespace))
	case err != nil:
		return nil, nil, unavailable(fmt.Sprintf("what was asked for is not known: %s", err))
	}
	return who, &q, nil
}

// begin subscribes for a client, after the last event that it got, from whichever replica, if that is known.
func (s *Server) begin(q *query, lastEventID string) (*client, error) {
	c := &client{Server: s, query: q, gone: make(chan struct{})}
	if lastEventID == "" {
		return c, c.subscribe()
	}
	last := parsePlace(lastEventID)
	resumed, err := s.History.Resume(q.filter, buffer, last.position)
	switch {
	case errors.Is(err, feed.ErrForgotten):
		c.gap = true
		return c, c.subscribe()
	case err != nil:
		return nil, fmt.Errorf("resuming a stream: %w", err)
	}
	c.subscription, c.events, c.resumed = resumed.Subscription, resumed.Events(), true
	c.missed, c.position, c.ahead = resumed.Missed, resumed.Position, resumed.Ahead
	if q.data {
		c.told = last.told
	}
	c.catchUpBy = s.Clock.Now().Add(catchUp)
	return c, nil
}
