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
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

var errRefused = errors.New("the stream was refused")

// crowd is many clients of the stream. They get the changes that are made one at a time.
type crowd struct {
	mu      sync.Mutex
	changed sync.Cond
	conns   []net.Conn
	reading sync.WaitGroup
	closed  bool
	err     error
	// received is how many events each has got.
	received []int
	// changes is how many there were, the last of them at a time. It is still to come to so many clients.
	changes int
	since   time.Time
	awaited int
	// took is how long events took to come.
	took []time.Duration
}

func newCrowd(clients int) *crowd {
	c := &crowd{received: make([]int, clients)}
	c.changed.L = &c.mu
	return c
}

// connect begins the stream of a client. It is tried again for a while: a right may not be known at once, and an API
// server that is asked about many tokens at once may be slow to answer.
func (c *crowd) connect(ctx context.Context, client int, address, token string, config *tls.Config) error {
	const interval = 100 * time.Millisecond
	deadline := time.Now().Add(patience)
	for {
		conn, lines, err := connect(ctx, address, token, config)
		if err == nil {
			c.keep(conn)
			c.reading.Go(func() { c.read(client, lines) })
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("connecting to the stream: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
}

func connect(ctx context.Context, address, token string, config *tls.Config) (net.Conn, *bufio.Reader, error) {
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	lines, err := request(conn, token)
	if err != nil {
		_ = conn.Close() // it was not used
		return nil, nil, err
	}
	return conn, lines, nil
}

// request asks for a stream, and reads the answer until everything that happens from now on comes.
func request(conn net.Conn, token string) (*bufio.Reader, error) {
	_, err := fmt.Fprintf(conn, "GET /v1/namespaces/%s/changes?kind=ConfigMap HTTP/1.1\r\nHost: bench\r\n"+
		"Authorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", streamNamespace, token)
	if err != nil {
		return nil, err
	}
	const longestLine = 4 << 10
	lines := bufio.NewReaderSize(conn, longestLine)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if status, ok := strings.CutPrefix(line, "HTTP/1.1 "); ok && !strings.HasPrefix(status, "200 ") {
			return nil, fmt.Errorf("%w: %s", errRefused, strings.TrimSpace(status))
		}
		if strings.HasPrefix(line, "retry:") {
			return lines, nil
		}
	}
}

func (c *crowd) keep(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
}

// read takes in what a client gets.
func (c *crowd) read(client int, lines *bufio.Reader) {
	for {
		line, err := lines.ReadSlice('\n')
		now := time.Now()
		if err != nil {
			c.lost(err)
			return
		}
		if strings.HasPrefix(string(line), "event:") {
			c.got(client, now)
		}
	}
}

func (c *crowd) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && c.err == nil {
		c.err = fmt.Errorf("a client lost its stream: %w", err)
		c.changed.Broadcast()
	}
}

func (c *crowd) got(client int, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, at.Sub(c.since))
	c.received[client]++
	if c.received[client] != c.changes {
		return
	}
	if c.awaited--; c.awaited == 0 {
		c.changed.Broadcast()
	}
}

// next begins a change.
func (c *crowd) next() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.awaited, c.since = len(c.received), time.Now()
	return c.since
}

// await waits until all clients have the change.
func (c *crowd) await(patience time.Duration) error {
	deadline := time.Now().Add(patience)
	timer := time.AfterFunc(patience, c.changed.Broadcast)
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.awaited > 0 && c.err == nil {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d clients don't have the change after %s", c.awaited, len(c.received), patience)
		}
		c.changed.Wait()
	}
	return c.err
}

// wrong is how many events are missing, or too many.
func (c *crowd) wrong() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, received := range c.received {
		n += max(received-c.changes, c.changes-received)
	}
	return n
}

func (c *crowd) close() {
	c.mu.Lock()
	c.closed = true
	for _, conn := range c.conns {
		_ = conn.Close() // the server may have closed it
	}
	c.mu.Unlock()
	c.reading.Wait()
}
