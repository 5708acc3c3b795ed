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

package webhook_test

import (
	"context"
	"encoding/binary"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/dns/dnsmessage"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/webhook"
)

var noon = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

// TestMain makes the certificate of httptest one that the system trusts, so that tests can tell the system's
// authorities from those of a bundle, and has a proxy in the environment that nothing could get through.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	trusted := bundleOf(server)
	server.Close()
	dir, err := os.MkdirTemp("", "webhook")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(file, trusted, 0o600); err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"SSL_CERT_FILE": file, "SSL_CERT_DIR": dir,
		"HTTP_PROXY": "http://proxy.invalid:3128", "HTTPS_PROXY": "http://proxy.invalid:3128", "NO_PROXY": "",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// bundleOf is the certificate of a server, which has signed itself.
func bundleOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func modified(change ...func(*feed.Change)) feed.Change {
	c := feed.Change{
		Type: feed.Modified, Namespace: "shop", Kind: v1alpha1.ConfigMap, Name: "app-config",
		UID: "b0c1", ResourceVersion: "42", Labels: map[string]string{"app": "demo"},
		Hash: "1:new", PreviousHash: "1:old", ChangedKeys: []string{"FEATURES", "LOG_LEVEL"}, Time: noon,
	}
	for _, apply := range change {
		apply(&c)
	}
	return c
}

func failed(change ...func(*webhook.Rollout)) webhook.Rollout {
	r := webhook.Rollout{
		Event: webhook.RolloutFailed, Namespace: "shop", ConfigWatch: "web", UID: "c0de",
		Target:  webhook.Target{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d0c5"},
		Restart: 7, Cause: "ConfigMap app-config changed (LOG_LEVEL)",
		Outcome: `Deployment "web" exceeded its progress deadline`, Time: noon,
	}
	for _, apply := range change {
		apply(&r)
	}
	return r
}

func messageOf(t *testing.T, c feed.Change) webhook.Message {
	t.Helper()
	m, err := webhook.FromChange(c, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return m
}

func messageOfRollout(t *testing.T, r webhook.Rollout) webhook.Message {
	t.Helper()
	m, err := webhook.FromRollout(r)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return m
}

// anywhere lets connections go to the tests' own servers, which are at loopback addresses.
func anywhere(context.Context, netip.Addr) error { return nil }

// newClient is one that finds every host that a test's servers have, and lets connections go there.
func newClient(t *testing.T, change ...func(*webhook.Options)) *webhook.Client {
	t.Helper()
	opts := webhook.Options{
		Guard:    anywhere,
		Clock:    clocktesting.NewFakePassiveClock(noon),
		Resolver: servers.resolver(),
	}
	for _, apply := range change {
		apply(&opts)
	}
	c, err := webhook.New(opts)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

// finding lets a client find other hosts.
func finding(hosts zone) func(*webhook.Options) {
	return func(opts *webhook.Options) { opts.Resolver = hosts.resolver() }
}

// guarded keeps a client away from where webhooks must not go, but for the servers of the tests.
func guarded(t *testing.T) func(*webhook.Options) {
	t.Helper()
	guard := newGuard(t, nil, "10.96.0.1")
	return func(opts *webhook.Options) { opts.Guard = exceptServers(guard) }
}

func newGuard(t *testing.T, resolver *net.Resolver, apiServer ...string) webhook.Guard {
	t.Helper()
	guard, err := webhook.NewGuard(resolver, apiServer...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return guard
}

// exceptServers lets connections go to 127.0.0.1 also.
func exceptServers(guard webhook.Guard) webhook.Guard {
	return func(ctx context.Context, address netip.Addr) error {
		if address == netip.MustParseAddr("127.0.0.1") {
			return nil
		}
		return guard(ctx, address)
	}
}

// within lets an attempt of a client take so long.
func within(timeout time.Duration) func(*webhook.Options) {
	return func(opts *webhook.Options) { opts.Timeout = timeout }
}

// serve starts a server of plain HTTP, and returns the URL by which newClient finds it.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return "http://hooks.shop.svc:" + port(server.Listener)
}

// serveTLS starts a server with a certificate for example.com.
func serveTLS(t *testing.T, handler http.HandlerFunc, change ...func(*httptest.Server)) (server *httptest.Server, url string) {
	t.Helper()
	server = httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, apply := range change {
		apply(server)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, "https://example.com:" + port(server.Listener)
}

// listen starts a server that does with each connection what it is told, and then closes it.
func listen(t *testing.T, talk func(net.Conn)) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var talks sync.WaitGroup
	talks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			talks.Go(func() {
				defer conn.Close()
				talk(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		talks.Wait()
	})
	return portOf(listener.Addr())
}

func port(listener net.Listener) string {
	return portOf(listener.Addr())
}

func portOf(address net.Addr) string {
	_, found, _ := strings.Cut(address.String(), ":")
	return found
}

// answer reads the beginning of a request, or of a handshake, and then says something: before that it would be unasked.
func answer(conn net.Conn, text string) {
	_, _ = conn.Read(make([]byte, 1<<16))
	_, _ = io.WriteString(conn, text)
}

// readAll reads until the other side closes the connection.
func readAll(conn net.Conn) {
	_, _ = io.Copy(io.Discard, conn)
}

// zone is a DNS server's: for each name the answers that it gives one after the other, the last one again and again.
// An answer is addresses with spaces between; one that is empty is a failure of the server.
type zone map[string][]string

// servers are the hosts of the tests' own servers.
var servers = zone{"hooks.shop.svc": {"127.0.0.1"}, "example.com": {"127.0.0.1"}, "other.example": {"127.0.0.1"}}

// and is a zone with more names in it.
func (z zone) and(more zone) zone {
	all := maps.Clone(z)
	maps.Copy(all, more)
	return all
}

func (z zone) resolver() *net.Resolver {
	server := &nameServer{zone: z, asked: map[string]int{}}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, conn := net.Pipe()
		go server.serve(conn)
		return client, nil
	}}
}

type nameServer struct {
	zone zone

	mu    sync.Mutex
	asked map[string]int
}

// serve answers the queries of a connection, each of which has its length before it.
func (s *nameServer) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var length uint16
		if binary.Read(conn, binary.BigEndian, &length) != nil {
			return
		}
		query := make([]byte, length)
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		answer, err := s.answer(query)
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func (s *nameServer) answer(query []byte) ([]byte, error) {
	var message dnsmessage.Message
	if err := message.Unpack(query); err != nil {
		return nil, err
	}
	question := message.Questions[0]
	message.Header = dnsmessage.Header{ID: message.ID, Response: true, RecursionDesired: true, RecursionAvailable: true}
	message.Additionals = nil
	addresses, found := s.next(strings.ToLower(strings.TrimSuffix(question.Name.String(), ".")), question.Type == dnsmessage.TypeA)
	switch {
	case !found:
		message.RCode = dnsmessage.RCodeNameError
	case addresses == "":
		message.RCode = dnsmessage.RCodeServerFailure
	}
	header := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class}
	for written := range strings.FieldsSeq(addresses) {
		address, err := netip.ParseAddr(written)
		switch {
		case err != nil:
			return nil, err
		case address.Is4() && question.Type == dnsmessage.TypeA:
			message.Answers = append(message.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
		case address.Is6() && question.Type == dnsmessage.TypeAAAA:
			message.Answers = append(message.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
		}
	}
	return message.Pack()
}

// next is the present answer. The questions come in pairs, of which the one for IPv4 addresses moves on to the next.
func (s *nameServer) next(name string, moveOn bool) (addresses string, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answers, found := s.zone[name]
	if !found {
		return "", false
	}
	addresses = answers[min(s.asked[name], len(answers)-1)]
	if moveOn {
		s.asked[name]++
	}
	return addresses, true
}
