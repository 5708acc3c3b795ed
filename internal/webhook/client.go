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

package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// attemptTime is how long an attempt may take, all in all (F6).
	attemptTime = 10 * time.Second
	// readBody is how many bytes of an answer's body are read, so that the server can send it.
	readBody = 16 << 10
)

// Options say how a Client works.
type Options struct {
	// Guard decides where connections may go. There is none by default: see NewGuard.
	Guard Guard
	// AllowedHosts are the only hosts that webhooks may go to, if there are any: IP addresses, names such as
	// hooks.example.com, and *.example.com for all names below it, at any depth.
	AllowedHosts []string
	// OwnPorts are the ports that this process listens on. No webhook gets to them by an address of this host.
	OwnPorts []uint16
	// Resolver resolves the names of hosts; nil is net.DefaultResolver.
	Resolver *net.Resolver
	// Clock tells the time of an attempt; nil is the real one.
	Clock clock.PassiveClock
	// Timeout is how long an attempt may take, from the look-up of the name to the end of the answer; 0 is 10 seconds.
	Timeout time.Duration
}

// Client delivers messages. It is safe for concurrent use.
type Client struct {
	allowed allowedHosts
	clock   clock.PassiveClock
	timeout time.Duration
	dialer  *net.Dialer
}

// New makes a Client. An error says which option is wrong.
func New(opts Options) (*Client, error) {
	if opts.Guard == nil {
		return nil, errors.New("webhooks need a guard")
	}
	allowed, err := parseAllowedHosts(opts.AllowedHosts)
	if err != nil {
		return nil, fmt.Errorf("reading the hosts that webhooks may go to: %w", err)
	}
	c := &Client{allowed: allowed, clock: opts.Clock, timeout: cmp.Or(opts.Timeout, attemptTime)}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	c.dialer = &net.Dialer{Timeout: c.timeout, Resolver: opts.Resolver, ControlContext: withoutOwn(opts.OwnPorts, opts.Guard).control}
	return c, nil
}

// Deliver makes one attempt to send the message to the endpoint. It returns in the time that an attempt may take, or
// when the context is done, which is to be tried again. Redirects are not followed.
func (c *Client) Deliver(ctx context.Context, to Endpoint, m Message) Outcome {
	taken := func() {}
	if m.taken != nil {
		taken = sync.OnceFunc(m.taken)
	}
	defer taken() // if nothing was sent
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := newRequest(ctx, to, m, c.clock.Now(), taken)
	if err != nil {
		return refused(to, err)
	}
	if err := c.allowed.check(request.URL.Hostname()); err != nil {
		return refused(to, err)
	}
	transport, err := c.connection(to.CABundle)
	if err != nil {
		return refused(to, err)
	}
	defer transport.CloseIdleConnections()
	// An http.Client would follow redirects, or at least parse where they lead to, and put URLs into its errors.
	response, err := transport.RoundTrip(request)
	if err != nil {
		return c.unreached(to, err)
	}
	discard(response)
	return answered(to, response, c.clock.Now())
}

// discard reads the beginning of an answer's body, and closes it.
func discard(response *http.Response) {
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return // its body is the bare connection, and no context ends the reading of that
	}
	_, _ = io.CopyN(io.Discard, response.Body, readBody)
}
