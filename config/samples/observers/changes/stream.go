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

package changes

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// account is where a pod finds the token and the namespace of its ServiceAccount.
	account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	// firstPause is the time before connecting again, where the server says nothing; with each failure it doubles.
	firstPause = 3 * time.Second
	// lastPause is the longest.
	lastPause = 30 * time.Second
	// longestSilence is when a connection is taken for dead: the server sends a heartbeat every 15 seconds.
	longestSilence = 45 * time.Second
)

var (
	errSilent = errors.New("nothing was heard for too long")
	errEnded  = errors.New("the server ended the stream")
)

// Stream is the change stream of an operator. Its zero values, but for the URL, are those of a pod.
type Stream struct {
	Server

	// Namespace is the one whose changes are wanted; empty: all.
	Namespace string
	// Log gets a line for each connection that is made or lost. Default: slog.Default().
	Log *slog.Logger
}

// AddFlags adds flags that say where the stream is, with what a pod has as their defaults.
func (s *Stream) AddFlags(flags *flag.FlagSet) {
	namespace, err := os.ReadFile(account + "namespace")
	if err != nil {
		namespace = []byte("default") // this is no pod
	}
	flags.StringVar(&s.URL, "stream", "https://configwatch-stream.configwatch-system.svc:8444", "where the stream is")
	flags.StringVar(&s.Name, "server-name", "", "the host in the server's certificate, if it is not that of --stream")
	flags.StringVar(&s.TokenFile, "token-file", account+"token", "a file with the bearer token")
	flags.StringVar(&s.CAFile, "ca-file", "", "a file with the certificates, in PEM, that verify the server's (default the system's)")
	flags.StringVar(&s.Namespace, "namespace", strings.TrimSpace(string(namespace)), "the namespace; empty for all")
}

// Query says which changes are wanted.
type Query struct {
	// Kind is ConfigMap or Secret; empty: both.
	Kind string
	// Name is that of the objects; empty: any.
	Name string
	// Selector is a label selector, such as app=demo; empty: all.
	Selector string
	// Events are some of Added, Modified and Deleted; none: all. Objects that Initial asks for come anyway.
	Events []Event
	// Initial asks for the objects that are there, at first and after a Gap: each as Added, with Initial, and then
	// Synced.
	Initial bool
	// Data asks for the content of ConfigMaps, whose Kind must be given then.
	Data bool
}

func (q Query) values() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{"kind": q.Kind, "name": q.Name, "labelSelector": q.Selector} {
		if value != "" {
			values.Set(name, value)
		}
	}
	for name, value := range map[string]bool{"initial": q.Initial, "data": q.Data} {
		if value {
			values.Set(name, "true")
		}
	}
	var events []string
	for _, event := range q.Events {
		events = append(events, string(event))
	}
	if len(events) > 0 {
		values.Set("events", strings.Join(events, ","))
	}
	return values
}

// Follow calls observe for each change and mark, one after the other, until the context is done, which is no error.
// It connects as often as it has to; only what no waiting helps is an error: a URL that is none, and an answer of 400.
func (s *Stream) Follow(ctx context.Context, what Query, observe func(Change)) error {
	if _, err := s.url(); err != nil {
		return err
	}
	f := &follower{Stream: s, query: what.values(), observe: observe, log: s.Log, retry: firstPause}
	if f.log == nil {
		f.log = slog.Default()
	}
	for {
		err := f.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var refused *Refusal
		if errors.As(err, &refused) && refused.Status == http.StatusBadRequest {
			return fmt.Errorf("following changes: %w", err)
		}
		pause := f.pause(refused)
		f.log.Warn("No changes are heard of; will connect again", "reason", err.Error(), "in", pause.String())
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// follower goes on from one connection to the next.
type follower struct {
	*Stream
	query   url.Values
	observe func(Change)
	log     *slog.Logger

	// last is the id to resume after; empty if it is not known.
	last string
	// begun tells that there was a connection.
	begun bool
	// retry is how long the server asks to wait before connecting again.
	retry time.Duration
	// failures is how many attempts in a row have failed.
	failures int
}

// connect follows one connection until it ends: always with an error.
func (f *follower) connect(ctx context.Context) error {
	f.failures++
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	path := "/v1/changes"
	if f.Namespace != "" {
		path = "/v1/namespaces/" + url.PathEscape(f.Namespace) + "/changes"
	}
	header := http.Header{"Accept": {"text/event-stream"}}
	if f.last != "" {
		header.Set("Last-Event-ID", f.last)
	}
	body, err := f.Get(ctx, path, f.query, header)
	if err != nil {
		return err
	}
	defer body.Close()
	f.failures = 0
	f.log.Info("Changes are heard of", "stream", f.URL, "resumed", f.last != "")
	if f.begun && f.last == "" {
		f.observe(Change{Event: Gap}) // what happened since the last connection is not known
	}
	f.begun = true
	f.observe(Change{Event: Connected})
	defer f.observe(Change{Event: Interrupted})

	silence := time.AfterFunc(longestSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	frames := newFrames(body, func() { silence.Reset(longestSilence) })
	for {
		next, err := frames.next()
		if err == nil {
			err = f.take(next)
		}
		if errors.Is(err, errUnreadable) {
			f.last = ""
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return err
		}
	}
}

// take hands over what a frame has. It can be resumed after that.
func (f *follower) take(next frame) error {
	if next.retry > 0 {
		f.retry = next.retry
	}
	if next.data != "" {
		if err := f.tell(next); err != nil {
			return err
		}
	}
	if next.hasID {
		f.last = next.id
	}
	return nil
}

func (f *follower) tell(next frame) error {
	switch Event(next.event) {
	case Added, Modified, Deleted, Gap, Synced:
		c, err := parseChange(next.data)
		if err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
		f.observe(c)
		return nil
	case "Ended":
		var event struct {
			Data struct {
				Message string `json:"message"`
			} `json:"data"`
		}
		if err := json.Unmarshal([]byte(next.data), &event); err != nil {
			return errEnded
		}
		return fmt.Errorf("%w: %s", errEnded, event.Data.Message)
	default:
		return nil // of a later version
	}
}

// pause is how long to wait now: as long as the server asks to, twice as long after each further failure, and by up
// to as much again, so that not all clients come at once.
func (f *follower) pause(refused *Refusal) time.Duration {
	pause := f.retry
	for range f.failures - 1 {
		if pause *= 2; pause >= lastPause {
			break
		}
	}
	pause = min(pause, lastPause)
	if refused != nil {
		pause = max(pause, refused.RetryAfter)
	}
	return pause + rand.N(pause/2+1) //nolint:gosec // it spreads clients over the time, and keeps no secret
}
