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
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/stream"
)

// idle opens a stream that isn't read, but for the first line of the answer.
func (w *world) idle(path string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, socket syscall.RawConn) error {
		return socket.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 16<<10)
		})
	}}
	conn, err := dialer.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	g := NewWithT(w.t)
	g.Expect(err).NotTo(HaveOccurred())
	w.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n\r\n", path, jane)
	lines := bufio.NewReaderSize(conn, 16)
	g.Expect(lines.ReadString('\n')).To(Equal("HTTP/1.1 200 OK\r\n"))
	return conn, lines
}

// awake reads what idle opened.
func awake(t *testing.T, lines *bufio.Reader) *reader {
	t.Helper()
	for line := ""; line != "\r\n"; {
		var err error
		line, err = lines.ReadString('\n')
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	r := read(t, io.NopCloser(lines))
	NewWithT(t).Expect(r.block().retry).NotTo(BeEmpty())
	return r
}

// large is the nth version of an object that makes large events.
func large(n int) *source.Source {
	const keys = 500
	data := make([]string, 0, 2*keys)
	for key := range keys {
		data = append(data, fmt.Sprintf("a-key-with-a-long-name-%d", key), strconv.Itoa(n))
	}
	return configMap("large", strconv.Itoa(n), data...)
}

func TestF2ASlowClientIsToldOfWhatItLost(t *testing.T) {
	const published = 4 * stream.Buffer
	g := NewWithT(t)
	w := newWorld(t)
	w.server.SetWriteTimeout(time.Minute)
	_, slow := w.idle("/v1/namespaces/shop/changes?name=large")
	fast := w.open("/v1/namespaces/shop/changes?name=large")
	for n := range published {
		w.set(large(n + 1))
		fast.event() // others don't wait
	}
	r := awake(t, slow)
	seen, gaps := 0, 0
	for seen < published {
		b, e := r.event()
		if b.name == string(feed.Gap) {
			var data feed.Data
			g.Expect(e.DataAs(&data)).To(Succeed())
			g.Expect(data.Lost).To(BeNumerically(">", 0))
			seen += data.Lost
			gaps++
			continue
		}
		seen++
		g.Expect(e.ID()).To(HaveSuffix("/" + rv(strconv.Itoa(seen))))
	}
	g.Expect(gaps).To(BeNumerically(">", 0), "or else this tests nothing")
}

func TestF2ASlowClientThatAskedForItGetsWhatIsThereAnew(t *testing.T) {
	const published = 4 * stream.Buffer
	g := NewWithT(t)
	w := newWorld(t)
	w.server.SetWriteTimeout(time.Minute)
	w.set(configMap("web", "1"))
	_, slow := w.idle("/v1/namespaces/shop/changes?initial=true")
	fast := w.open("/v1/namespaces/shop/changes")
	for n := range published {
		w.set(large(n + 2))
		fast.event()
	}
	r := awake(t, slow)
	r.expect("Added web@1 initial", "Synced")
	var last string
	for last = r.line(); !strings.HasPrefix(last, "Gap"); last = r.line() {
	}
	g.Expect(r.lastID).To(Equal("-"), "whoever is cut off now must begin anew")
	r.expect(fmt.Sprintf("Added large@%d initial", published+1), "Added web@1 initial", "Synced")
	w.set(configMap("web", strconv.Itoa(published+2), "a", "1"))
	r.expect(fmt.Sprintf("Modified web@%d", published+2))
}

func TestF8AStuckClientIsCutOffAndCostsNothing(t *testing.T) {
	const published = 2 * stream.Buffer
	g := NewWithT(t)
	w := newWorld(t)
	fast := w.open("/v1/namespaces/shop/changes")
	w.settle(fast)
	before := gleak.Goroutines()
	w.server.SetWriteTimeout(50 * time.Millisecond)
	conns := make([]net.Conn, 5)
	for i := range conns {
		conns[i], _ = w.idle("/v1/namespaces/shop/changes?name=large")
	}
	for n := range published {
		w.set(large(n + 1))
		fast.event()
	}
	g.Eventually(w.server.Streams, patience).Should(Equal(1))
	g.Eventually(gleak.Goroutines, patience).ShouldNot(gleak.HaveLeaked(before))
	for _, conn := range conns {
		g.Expect(conn.SetReadDeadline(time.Now().Add(patience))).To(Succeed())
		_, err := io.Copy(io.Discard, conn)
		g.Expect(err).To(MatchError(syscall.ECONNRESET), "nothing of it waits in the kernel")
	}
	w.settle(fast)
}

func TestF8AClientThatGoesIsForgottenAtOnce(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	r := w.open("/v1/changes")
	w.open("/v1/changes")
	g.Expect(w.server.Streams()).To(Equal(2))
	r.close()
	g.Eventually(w.server.Streams, patience).Should(Equal(1))
}

func TestF8AClientThatSaysMoreIsNone(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	conn, lines := w.idle("/v1/changes")
	_, err := conn.Write([]byte("GET /v1/changes HTTP/1.1\r\n\r\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(w.server.Streams, patience).Should(BeZero())
	_, err = io.Copy(io.Discard, lines)
	g.Expect(err).To(Or(Not(HaveOccurred()), MatchError(syscall.ECONNRESET)))
}

func TestF8NothingIsLeft(t *testing.T) {
	g := NewWithT(t)
	before := gleak.Goroutines()
	w := newWorld(t)
	var readers []*reader
	for n := range 50 {
		readers = append(readers, w.open("/v1/changes?kind=ConfigMap&initial=true&data=true", "Last-Event-ID", strconv.Itoa(n)))
	}
	for n := range 20 {
		w.set(configMap("web", strconv.Itoa(n+1), "n", strconv.Itoa(n)))
	}
	for _, r := range readers[:25] {
		r.close()
	}
	w.stop()
	for _, r := range readers {
		r.close()
	}
	g.Expect(w.server.Streams()).To(BeZero())
	g.Eventually(gleak.Goroutines, patience).ShouldNot(gleak.HaveLeaked(before))
}
