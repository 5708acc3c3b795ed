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
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/ktechhub/configwatch/internal/feed"
)

const (
	Heartbeat      = heartbeat
	ReviewInterval = reviewInterval
	ReviewRetry    = reviewRetry
	ReviewPatience = reviewPatience
	Buffer         = buffer
	CatchUp        = catchUp
	Places         = places
	ReadingsKept   = readingsKept
	FramesKept     = framesKept
)

// Serve serves what is not HTTPS.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener)
}

// ServeSecurely serves HTTPS.
func (s *Server) ServeSecurely(ctx context.Context, listener net.Listener) error {
	made, err := newCertificate(&s.Options)
	if err != nil {
		return err
	}
	return s.serveSecurely(ctx, made, listener)
}

// Handler answers requests, with streams that end with the context.
func (s *Server) Handler(streams context.Context) http.Handler {
	return s.handler(streams)
}

// Listen listens as Start does.
func (s *Server) Listen(ctx context.Context) (net.Listener, error) {
	return s.listen(ctx)
}

// Secure has what a listener accepts speak TLS, under a self-signed certificate.
func (s *Server) Secure(listener net.Listener) (net.Listener, error) {
	made, err := newCertificate(&s.Options)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(listener, made.config()), nil
}

// SetWriteTimeout sets how long a client may take to take in what it is sent.
func (s *Server) SetWriteTimeout(timeout time.Duration) {
	s.writeTimeout = timeout
}

// ParseQuery reads the parameters of a URL.
func ParseQuery(namespace, encoded string) (filter feed.Filter, data bool, err error) {
	q, err := parseQuery(namespace, encoded)
	return q.filter, q.data, err
}

// ReadID reads an id and writes it again.
func ReadID(id string) string {
	p := parsePlace(id)
	return p.id()
}

// NewBoundedListener accepts no more than a number of connections at a time.
func NewBoundedListener(listener net.Listener, most int) net.Listener {
	return newBoundedListener(listener, most)
}
