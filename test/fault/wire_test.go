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

package fault

import (
	"io"
	"net"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// wire is the TCP connection to a server. While it is cut, connecting is refused, as it is where no
// server runs.
type wire struct {
	target, address string

	mu       sync.Mutex
	listener net.Listener
	ends     map[net.Conn]struct{}
	running  sync.WaitGroup
}

func newWire(target string) *wire {
	GinkgoHelper()
	w := &wire{target: target, address: "127.0.0.1:0", ends: map[net.Conn]struct{}{}}
	w.mend()
	w.address = w.listener.Addr().String()
	DeferCleanup(w.cut)
	return w
}

func (w *wire) mend() {
	GinkgoHelper()
	listener, err := net.Listen("tcp", w.address)
	Expect(err).NotTo(HaveOccurred())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener = listener
	w.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // it was cut
			}
			w.running.Go(func() { w.join(client) })
		}
	})
}

// join passes on what either end sends until one of them goes.
func (w *wire) join(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !w.keep(client, server) {
		return
	}
	w.running.Go(func() {
		_, _ = io.Copy(server, client) // either end may go at any time
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
}

// keep remembers the ends of a connection, unless it came too late.
func (w *wire) keep(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener == nil {
		return false
	}
	for _, end := range ends {
		w.ends[end] = struct{}{}
	}
	return true
}

// cut refuses new connections and ends those that there are.
func (w *wire) cut() {
	w.mu.Lock()
	if w.listener != nil {
		_ = w.listener.Close() // it is only closed once
		w.listener = nil
	}
	for end := range w.ends {
		_ = end.Close() // it may have gone before
	}
	w.ends = map[net.Conn]struct{}{}
	w.mu.Unlock()
	w.running.Wait()
}
