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
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/ktechhub/configwatch/internal/feed"
)

const (
	// DefaultMaxStreams is how many streams are open at once, where nothing else is said.
	DefaultMaxStreams = 5000
	// DefaultMaxStreamsPerUser is how many of them one user may have. All pods of a ServiceAccount are one user.
	DefaultMaxStreamsPerUser = 500
	// RecentChanges is how many changes a feed.History should keep for streams that are resumed.
	RecentChanges = 1024
)

const (
	// buffer is how many changes wait for a slow client before the oldest are lost (F2).
	buffer = 256
	// heartbeat is how often a client is sent something, so that both ends see that the other is there (F8).
	heartbeat = 15 * time.Second
	// reviewInterval is the longest time after which it is looked again whether a client may go on. A token or a
	// right that was taken away may be in the reviewer's memory for a little longer.
	reviewInterval = 5 * time.Minute
	// reviewRetry is how soon it is looked again if the API server couldn't be asked.
	reviewRetry = 30 * time.Second
	// reviewPatience is how long a stream goes on while it can't.
	reviewPatience = 30 * time.Minute

	// headerTimeout is how long TLS's handshake may take, and then a request to arrive.
	headerTimeout = 10 * time.Second
	// headerBytes is how large a request may be: mostly its token.
	headerBytes = 16 << 10
	// answerTimeout is how long a request that gets no stream may take. The reviews are the most of it.
	answerTimeout = time.Minute
	// catchUp is how long a client waits for this replica to come to where another one had brought it. In a quiet
	// cluster the API server tells its watches about every minute how far they are.
	catchUp = 3 * time.Minute
	// writeTimeout is how long a client may take to take in what it is sent, before it is cut off.
	writeTimeout = 10 * time.Second
	// farewellTimeout is the same for the last thing that it is sent.
	farewellTimeout = 2 * time.Second
	// shutdownTimeout is how long requests that get no stream may take to end.
	shutdownTimeout = 5 * time.Second
)

// Options are what a Server needs.
type Options struct {
	// BindAddress is where it listens, such as ":8444".
	BindAddress string
	// CertDir is the folder of its certificate and key, which are read again when they change. Empty: a
	// self-signed certificate is made.
	CertDir string
	// CertName and KeyName are the files in it. Default: tls.crt and tls.key.
	CertName, KeyName string
	// History is what it serves.
	History *feed.History
	// Reviewer says who may have what.
	Reviewer Reviewer
	// ConfigMaps reads those whose data is asked for. The right to list them is enough.
	ConfigMaps typedcorev1.ConfigMapsGetter
	// Former names the keys that changed since a former content; a source.Cache does.
	Former Former
	// Clock is the time of heartbeats, reviews and retries.
	Clock clock.WithTicker
	// Log gets a line for each stream that begins and ends, at level 1.
	Log logr.Logger
	// MaxStreams is how many streams are open at once, and MaxStreamsPerUser how many of one user. Default:
	// DefaultMaxStreams and DefaultMaxStreamsPerUser.
	MaxStreams, MaxStreamsPerUser int
}

func (o *Options) setDefaults() {
	if o.CertName == "" {
		o.CertName = "tls.crt"
	}
	if o.KeyName == "" {
		o.KeyName = "tls.key"
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = DefaultMaxStreams
	}
	if o.MaxStreamsPerUser == 0 {
		o.MaxStreamsPerUser = DefaultMaxStreamsPerUser
	}
}

// Server serves the stream. It is a manager's Runnable.
type Server struct {
	Options
	frames       *frames
	readings     *readings
	limits       *limits
	writeTimeout time.Duration

	running sync.WaitGroup // of goroutines
}

// New makes a Server that does nothing until it is started.
func New(o Options) *Server {
	o.setDefaults()
	s := &Server{
		Options:      o,
		frames:       newFrames(),
		limits:       newLimits(o.MaxStreams, o.MaxStreamsPerUser),
		writeTimeout: writeTimeout,
	}
	s.readings = newReadings(&s.Options, s.spawn)
	return s
}

// NeedLeaderElection is false: every replica serves streams (F8).
func (s *Server) NeedLeaderElection() bool {
	return false
}

// Streams is how many are open.
func (s *Server) Streams() int {
	return s.limits.open()
}

// Start serves HTTPS until the context is done, and then ends all streams. It fails if it can't read the
// certificate or listen.
func (s *Server) Start(ctx context.Context) error {
	certificate, err := newCertificate(&s.Options)
	if err != nil {
		return err
	}
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	s.Log.Info("Serving streams", "address", listener.Addr().String(), "atMost", s.MaxStreams)
	return s.serveSecurely(ctx, certificate, listener)
}

// serveSecurely serves HTTPS until the context is done, or one of the two fails.
func (s *Server) serveSecurely(ctx context.Context, certificate *certificate, listener net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return certificate.watch(ctx) })
	group.Go(func() error { return s.serve(ctx, tls.NewListener(listener, certificate.config())) })
	return group.Wait()
}

// serve serves until the context is done.
func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	streams, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true) // a stream takes its connection over, which HTTP/2 doesn't have; and see --enable-http2
	server := &http.Server{
		Handler:           s.handler(streams),
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      answerTimeout,
		MaxHeaderBytes:    headerBytes,
		Protocols:         protocols,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(s.Log.V(1)), slog.LevelInfo),
	}
	server.SetKeepAlivesEnabled(false) // whoever is refused leaves the place to the next
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serving streams: %w", err)
	case <-ctx.Done():
	}
	s.limits.close()
	end(unavailable("this replica shuts down: connect again"))
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if server.Shutdown(bounded) != nil {
		_ = server.Close() // what is still under way gets no stream any more
	}
	s.limits.present.Wait()
	s.running.Wait()
	return err
}

// spawn runs a goroutine that Start waits for.
func (s *Server) spawn(run func()) {
	s.running.Go(func() {
		defer s.recovered()
		run()
	})
}

// recovered is to be deferred: a panic in one stream ends neither the others nor the process.
func (s *Server) recovered() {
	if cause := recover(); cause != nil {
		s.Log.Error(fmt.Errorf("%v", cause), "Recovered from a panic in a stream", "stack", string(debug.Stack()))
	}
}
