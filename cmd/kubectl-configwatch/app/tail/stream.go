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

package tail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/tmaxmax/go-sse"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/feed/observer"
)

// farewell is the last event of a stream that the server ends. It says why.
const farewell feed.EventType = "Ended"

const (
	// firstPause is the time before connecting again, where the server says nothing else. It doubles, up to lastPause.
	firstPause, lastPause = time.Second, 30 * time.Second
	// connectTimeout bounds the making of a connection, and then TLS's handshake; answerTimeout the wait for an answer.
	connectTimeout, answerTimeout = 10 * time.Second, 30 * time.Second
	// longestSilence is when a connection is taken for dead: the server sends a heartbeat every 15 seconds.
	longestSilence = 45 * time.Second
	// longestEvent is how long an event may be. There is no data in those that are asked for.
	longestEvent = 4 << 20
	// readRefusal is how many bytes are read of why a request is refused.
	readRefusal = 64 << 10
)

var (
	errNoToken = errors.New("the kubeconfig has no bearer token, by which alone the stream knows users: " +
		"make one, such as by kubectl create token, and pass it with --token")
	errSilent = errors.New("nothing was heard for too long")
	errEnded  = errors.New("the server ended it")
)

// validateStream checks what is said of the stream.
func (o *Options) validateStream() error {
	if o.Stream == "" {
		if o.StreamCA != "" || o.StreamName != "" {
			return errors.New("--stream-ca and --stream-server-name are of no use without --stream")
		}
		return nil
	}
	u, err := url.Parse(o.Stream)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("--stream must be such as https://localhost:8444; your token is sent there, so that it can't be http")
	}
	if impersonated := &o.config.Impersonate; impersonated.UserName != "" || len(impersonated.Groups) > 0 || impersonated.UID != "" {
		return errors.New("--as can't be used with --stream, which knows users by their tokens only")
	}
	return nil
}

// follower shows what a stream brings.
type follower struct {
	*Options
	observer observer.Observer
	end      context.CancelCauseFunc
	// watching tells that there has been a connection, and lost that there is none now.
	watching, lost bool
	// farewell is why the server ended the last one, if it said so.
	farewell string
}

// runStream shows what an operator's stream brings.
func (o *Options) runStream(ctx context.Context) error {
	client, err := o.streamClient()
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.streamURL(), nil)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	f := &follower{Options: o, observer: o.observer(), end: end}
	connection := (&sse.Client{
		HTTPClient:        client,
		ResponseValidator: f.connected,
		OnRetry:           f.disconnected,
		Backoff:           sse.Backoff{InitialInterval: firstPause, Multiplier: 2, MaxInterval: lastPause},
	}).NewConnection(request)
	connection.Buffer(nil, longestEvent)
	connection.SubscribeToAll(f.take)
	for {
		err = connection.Connect()
		var because *refusal
		switch {
		case ctx.Err() != nil:
			return ended(ctx)
		case !errors.As(err, &because):
			return fmt.Errorf("reading the stream: %w", err)
		case !because.temporary():
			return because
		}
		f.disconnected(because, because.after)
		select {
		case <-time.After(because.after):
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// ended is why the context is: nil if it was the user.
func ended(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// streamURL asks for what the flags do.
func (o *Options) streamURL() string {
	path := "/v1/changes"
	if o.namespace != "" {
		path = "/v1/namespaces/" + url.PathEscape(o.namespace) + "/changes"
	}
	query := url.Values{}
	if len(o.kinds) == 1 {
		query.Set("kind", string(o.kinds[0]))
	}
	if o.Selector != "" {
		query.Set("labelSelector", o.Selector)
	}
	if o.Initial || o.Count {
		query.Set("initial", "true")
	}
	if !o.Count && len(o.Events) > 0 {
		names := make([]string, len(o.events))
		for i, wanted := range o.events {
			names[i] = string(wanted)
		}
		query.Set("events", strings.Join(names, ","))
	}
	return strings.TrimSuffix(o.Stream, "/") + path + "?" + query.Encode()
}

// streamClient makes the client, with the user's token from wherever the kubeconfig has it.
func (o *Options) streamClient() (*http.Client, error) {
	trust := &tls.Config{ServerName: o.StreamName, MinVersion: tls.VersionTLS12}
	if o.StreamCA != "" {
		certificates, err := os.ReadFile(o.StreamCA)
		if err != nil {
			return nil, fmt.Errorf("reading --stream-ca: %w", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(certificates) {
			return nil, fmt.Errorf("reading --stream-ca: %s has no certificate in PEM", o.StreamCA)
		}
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSClientConfig:       trust,
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: answerTimeout,
		DisableCompression:    true,
	}
	authenticated, err := rest.HTTPWrappersForConfig(o.config, attentive{transport, longestSilence})
	if err != nil {
		return nil, fmt.Errorf("finding the token: %w", err)
	}
	return &http.Client{
		Transport: authenticated,
		// The token is for this server, and for none that it leads to.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// connected takes in that the server has answered.
func (f *follower) connected(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return refusalOf(response)
	}
	if err := sse.DefaultValidator(response); err != nil {
		return fmt.Errorf("this is no stream of an operator: %w", err)
	}
	resumed := response.Request.Header.Get("Last-Event-ID") != ""
	switch {
	case !f.watching:
		f.say(saidWatching, f.where(f.kinds...))
	case resumed:
		f.say(saidAgain)
	default: // it was lost before there was anything to go on from
		f.say("Connected again.")
		f.observe(feed.Change{Type: feed.Gap, Time: time.Now()})
	}
	f.watching, f.lost, f.farewell = true, false, ""
	return nil
}

// disconnected takes in that there is no connection. At the start, that is the end.
func (f *follower) disconnected(err error, _ time.Duration) {
	var refused *refusal
	switch waiting := errors.As(err, &refused); {
	case f.lost:
	case f.watching:
		f.say(saidLost, f.plain(err))
	case waiting:
		f.say("Waiting for the stream: %s", refused)
	default:
		f.end(fmt.Errorf("reading the stream: %w", f.plain(err)))
	}
	f.lost = true
}

// plain is an error without what the user knows.
func (f *follower) plain(err error) error {
	var lost *sse.ConnectionError
	if errors.As(err, &lost) && lost.Err != nil {
		err = lost.Err
	}
	switch {
	case f.farewell != "":
		return errors.New(f.farewell)
	case errors.Is(err, io.EOF):
		return errEnded
	}
	return err
}

// take takes an event of the stream in.
func (f *follower) take(received sse.Event) {
	switch feed.EventType(received.Type) {
	case feed.Added, feed.Modified, feed.Deleted, feed.Gap, feed.Synced:
	case farewell:
		f.farewell = farewellOf(received.Data)
		return
	default:
		return // a heartbeat, or something of a later version
	}
	var e event.Event
	err := json.Unmarshal([]byte(received.Data), &e)
	var change feed.Change
	if err == nil {
		change, err = feed.ParseChange(e)
	}
	if err != nil {
		f.end(fmt.Errorf("reading the stream: %w", err))
		return
	}
	f.observe(change)
}

// farewellOf is why the server ends the stream.
func farewellOf(text string) string {
	var e event.Event
	var data struct {
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(text), &e) != nil || e.DataAs(&data) != nil || data.Message == "" {
		return errEnded.Error()
	}
	return data.Message
}

func (f *follower) observe(change feed.Change) {
	if err := f.observer.Observe(change); err != nil {
		f.end(err)
	}
}

// refusal is an answer other than 200.
type refusal struct {
	status  int
	message string
	after   time.Duration
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the stream is refused: %d %s: %s", r.status, http.StatusText(r.status), r.message)
}

// temporary tells whether to wait helps.
func (r *refusal) temporary() bool {
	return r.status == http.StatusTooManyRequests || r.status >= http.StatusInternalServerError
}

// refusalOf reads why: the server says so in a Status.
func refusalOf(response *http.Response) *refusal {
	r := &refusal{status: response.StatusCode, after: firstPause}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		r.after = time.Duration(seconds) * time.Second
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, readRefusal))
	if err != nil {
		return r
	}
	var status metav1.Status
	if r.message = strings.TrimSpace(string(text)); json.Unmarshal(text, &status) == nil && status.Message != "" {
		r.message = status.Message
	}
	return r
}

// attentive ends connections of which nothing is heard. It lets no request out that has no bearer token.
type attentive struct {
	http.RoundTripper
	patience time.Duration
}

// RoundTrip implements http.RoundTripper.
func (a attentive) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(request.Header.Get("Authorization"), "Bearer ") {
		return nil, errNoToken
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	response, err := a.RoundTripper.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	silence := time.AfterFunc(a.patience, func() { cancel(errSilent) })
	response.Body = &heard{ReadCloser: response.Body, ctx: ctx, silence: silence, patience: a.patience, end: cancel}
	return response, nil
}

// heard is the body of an answer.
type heard struct {
	io.ReadCloser
	ctx      context.Context
	silence  *time.Timer
	patience time.Duration
	end      context.CancelCauseFunc
}

// Read implements io.Reader.
func (h *heard) Read(into []byte) (n int, err error) {
	n, err = h.ReadCloser.Read(into)
	if n > 0 {
		h.silence.Reset(h.patience)
	}
	if err != nil && errors.Is(context.Cause(h.ctx), errSilent) {
		err = errSilent
	}
	return n, err
}

// Close implements io.Closer.
func (h *heard) Close() error {
	h.silence.Stop()
	h.end(nil)
	return h.ReadCloser.Close()
}
