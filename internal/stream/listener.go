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
	"net"
	"sync"
	"time"
)

const (
	// waitingRoom is how many connections there may be beyond those of streams: for requests that are refused,
	// too.
	waitingRoom = 256
	// sendBuffer is what the kernel holds for a client that doesn't read, in bytes; it takes as much again. Left
	// to itself, it holds megabytes.
	sendBuffer = 64 << 10
	// receiveBuffer is what the kernel holds of what a client sends: a request with its token.
	receiveBuffer = 16 << 10
	// vanishTimeout is after how long a client is given up of which nothing is heard, not even by TCP.
	vanishTimeout = 45 * time.Second
)

// listen listens for as many connections as there may be. Each takes little memory of the kernel's, which
// counts towards the container's limit.
func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	config := net.ListenConfig{Control: limitConnections}
	listener, err := config.Listen(ctx, "tcp", s.BindAddress)
	if err != nil {
		return nil, fmt.Errorf("listening for streams: %w", err)
	}
	return newBoundedListener(listener, s.MaxStreams+waitingRoom), nil
}

// boundedListener accepts no more than a number of connections at a time. Others wait in the kernel.
type boundedListener struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	close  sync.Once
}

func newBoundedListener(listener net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: listener, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	accepted, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placedConn{Conn: accepted, places: l.places}, nil
}

// Close implements net.Listener.
func (l *boundedListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// placedConn is a connection that gives its place back.
type placedConn struct {
	net.Conn
	places <-chan struct{}
	leave  sync.Once
}

// Close implements net.Conn.
func (c *placedConn) Close() error {
	defer c.leave.Do(func() { <-c.places })
	return c.Conn.Close()
}

// transport is the TCP connection under TLS.
func transport(conn net.Conn) net.Conn {
	if secured, ok := conn.(*tls.Conn); ok {
		return secured.NetConn()
	}
	return conn
}

// cut closes a connection without waiting for anything: what was not sent is dropped, by the kernel too.
func cut(conn net.Conn) {
	conn = transport(conn)
	inner := conn
	if placed, ok := conn.(*placedConn); ok {
		inner = placed.Conn
	}
	if tcp, ok := inner.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the connection may be gone already
	}
	_ = conn.Close()
}
