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
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/stream"
)

func TestF8ThereAreLimitsForAUserAndInAll(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, func(s *setting) { s.options.MaxStreams, s.options.MaxStreamsPerUser = 3, 2 })
	as := func(user string) answer {
		return w.ask(http.MethodGet, "/v1/changes", "Authorization", "Bearer "+user)
	}
	first := w.open("/v1/changes")
	w.open("/v1/changes")
	refused := as(jane)
	g.Expect(refused).To(HaveField("Code", http.StatusTooManyRequests))
	g.Expect(refused).To(haveHeader("Retry-After", "10"))
	status := refused.status
	g.Expect(status.Reason).To(BeEquivalentTo("TooManyRequests"))
	g.Expect(status.Message).To(Equal(`User "jane" has 2 streams open, as many as a user may`))

	g.Expect(as("john")).To(HaveField("Code", http.StatusOK))
	refused = as("joan")
	g.Expect(refused).To(HaveField("Code", http.StatusTooManyRequests))
	g.Expect(refused.status.Message).To(Equal("this replica has 3 streams open, as many as it may"))

	first.close()
	g.Eventually(w.server.Streams, patience).Should(Equal(2))
	g.Expect(as("joan")).To(HaveField("Code", http.StatusOK))
}

func TestF8ARequestThatIsRefusedCountsForNothing(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, func(s *setting) { s.options.MaxStreams = 1 })
	w.reviewer.denied["secrets"] = true
	for range 3 {
		g.Expect(w.get("/v1/changes")).To(HaveField("Code", http.StatusForbidden))
		g.Expect(w.get("/v1/changes?no=such")).To(HaveField("Code", http.StatusBadRequest))
	}
	w.open("/v1/changes?kind=ConfigMap")
}

func TestF8WhoeverIsRefusedLeavesThePlaceToTheNext(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	_, err = conn.Write([]byte("GET /v1/changes HTTP/1.1\r\nHost: test\r\n\r\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conn.SetReadDeadline(time.Now().Add(patience))).To(Succeed())
	answer, err := io.ReadAll(conn)
	g.Expect(err).NotTo(HaveOccurred(), "the server closes the connection")
	g.Expect(string(answer)).To(And(HavePrefix("HTTP/1.1 401 "), ContainSubstring("Connection: close")))
}

func TestF8ConnectionsAreBounded(t *testing.T) {
	g := NewWithT(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	listener := stream.NewBoundedListener(inner, 1)
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func() {
		conn, err := net.Dial("tcp", inner.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { conn.Close() })
	}
	dial()
	dial()
	var first net.Conn
	g.Eventually(accepted, patience).Should(Receive(&first))
	g.Consistently(accepted, 50*time.Millisecond).ShouldNot(Receive())
	g.Expect(first.Close()).To(Succeed())
	g.Expect(first.Close()).NotTo(Succeed(), "its place is given back once")
	g.Eventually(accepted, patience).Should(Receive())
	g.Expect(listener.Close()).To(Succeed())
	g.Eventually(accepted, patience).Should(BeClosed())
}

func TestF8ALargeRequestIsRefused(t *testing.T) {
	w := newWorld(t)
	response := w.get("/v1/changes", "X-Large", strings.Repeat("x", 32<<10))
	NewWithT(t).Expect(response).To(HaveField("Code", http.StatusRequestHeaderFieldsTooLarge))
}

func TestF8AShutdownEndsStreams(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	r, other := w.open("/v1/changes"), w.open("/v1/changes?initial=true")
	other.expect("Synced")
	w.set(configMap("web", "1"))
	r.expect("Added web@1")
	other.expect("Added web@1")
	w.stop()
	for _, r := range []*reader{r, other} {
		b, e := r.event()
		g.Expect(b.name).To(Equal("Ended"))
		g.Expect(b.retry).NotTo(BeEmpty(), "not all come back at once")
		g.Expect(b.hasID).To(BeFalse(), "clients go on from where they were")
		var data stream.EndedData
		g.Expect(e.DataAs(&data)).To(Succeed())
		g.Expect(data).To(Equal(stream.EndedData{
			Event: stream.Ended, Reason: "ServiceUnavailable", Message: "this replica shuts down: connect again",
		}))
		g.Eventually(r.blocks, patience).Should(BeClosed())
	}
	_, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	g.Expect(err).To(MatchError(syscall.ECONNREFUSED))
}
