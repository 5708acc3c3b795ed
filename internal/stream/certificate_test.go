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
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"

	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/stream"
)

// freeAddress is one that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// start runs a server that has nothing to tell, until the test is over, and is its address.
func start(t testing.TB, o stream.Options) string {
	t.Helper()
	o.BindAddress = freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	server := newServer(o)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		NewWithT(t).Expect(<-ended).To(Succeed())
	})
	NewWithT(t).Eventually(func() error {
		conn, err := net.Dial("tcp", o.BindAddress)
		if err == nil {
			conn.Close()
		}
		return err
	}, patience).Should(Succeed())
	return o.BindAddress
}

func newServer(o stream.Options) *stream.Server {
	o.Clock, o.Log, o.Reviewer = clock.RealClock{}, logr.Discard(), &reviewer{}
	o.History = feed.NewHistory(feed.NewBroker(clock.RealClock{}), stream.RecentChanges)
	return stream.New(o)
}

// shake is the state of a connection, as far as TLS goes.
func shake(address string, config *tls.Config) (tls.ConnectionState, error) {
	config.InsecureSkipVerify = true
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.ConnectionState(), nil
}

// names are those of the certificate that a server shows.
func names(address string) ([]string, error) {
	state, err := shake(address, &tls.Config{})
	if err != nil {
		return nil, err
	}
	return state.PeerCertificates[0].DNSNames, nil
}

func writeCertificate(t testing.TB, dir, host string) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "server.key"), key, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "server.crt"), cert, 0o600)).To(Succeed())
}

func TestF8TheCertificateIsReadAgainWhenItChanges(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, "first.example")
	address := start(t, stream.Options{CertDir: dir, CertName: "server.crt", KeyName: "server.key"})
	g := NewWithT(t)
	g.Expect(names(address)).To(HaveExactElements("first.example"))
	g.Eventually(func() ([]string, error) {
		writeCertificate(t, dir, "second.example") // it may not be watched yet
		return names(address)
	}, 2*patience).Should(HaveExactElements("second.example"))
}

func TestF8WithoutACertificateOneIsMade(t *testing.T) {
	address := start(t, stream.Options{})
	g := NewWithT(t)
	g.Expect(names(address)).To(HaveExactElements("localhost"))
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}}
	response, err := client.Get("https://" + address + "/v1/changes")
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	g.Expect(response).To(HaveHTTPStatus(http.StatusUnauthorized))
	g.Expect(response.Proto).To(Equal("HTTP/1.1"))
	response, err = http.Get("http://" + address + "/v1/changes")
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	g.Expect(response).To(HaveHTTPStatus(http.StatusBadRequest), "HTTPS always")
}

func TestF8OldTLSIsRefused(t *testing.T) {
	address := start(t, stream.Options{})
	_, err := shake(address, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("protocol version not supported")))
}

func TestF8AServerThatCantServeSaysWhy(t *testing.T) {
	g := NewWithT(t)
	err := newServer(stream.Options{CertDir: t.TempDir()}).Start(t.Context())
	g.Expect(err).To(MatchError(os.ErrNotExist))
	g.Expect(err).To(MatchError(HavePrefix("reading the certificate of streams: open ")))

	taken := start(t, stream.Options{})
	err = newServer(stream.Options{BindAddress: taken}).Start(t.Context())
	g.Expect(err).To(MatchError(HavePrefix("listening for streams: listen tcp " + taken)))
}

func TestF8AServerThatCantGoOnSaysWhy(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listener.Close()).To(Succeed())
	dir := t.TempDir()
	writeCertificate(t, dir, "one.example") // which is watched, and has to end too
	ended := make(chan error, 1)
	go func() {
		s := newServer(stream.Options{CertDir: dir, CertName: "server.crt", KeyName: "server.key"})
		ended <- s.ServeSecurely(t.Context(), listener)
	}()
	g.Eventually(ended, 2*patience).Should(Receive(MatchError(HavePrefix("serving streams: accept "))))
}

func TestF8EveryReplicaServesStreams(t *testing.T) {
	NewWithT(t).Expect(newServer(stream.Options{}).NeedLeaderElection()).To(BeFalse())
}
