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

package changes_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/config/samples/observers/changes"
)

const host = "stream.example"

// authority is a certificate of the host's own, which is valid in the time of a synctest bubble too.
type authority struct {
	certificate tls.Certificate
	pem         []byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	return authority{
		certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem:         pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}
}

// answer is what the server does with a request.
type answer func(w http.ResponseWriter, r *http.Request)

// world is a server of HTTPS in memory, and a stream that leads to it.
type world struct {
	t      *testing.T
	stream changes.Stream
	log    bytes.Buffer
	// authority is the server's.
	authority authority
	// answers are for one request each; then the server is out of reach.
	answers []answer
	// requests are those that came, and at which time the server was asked to be connected to.
	requests []*http.Request
	dialed   []time.Time
}

func newWorld(t *testing.T, answers ...answer) *world {
	t.Helper()
	w := &world{t: t, answers: answers, authority: newAuthority(t)}
	w.stream.URL, w.stream.Namespace = "https://"+host, "shop"
	w.stream.Log = slog.New(slog.NewTextHandler(&w.log, nil))
	folder := t.TempDir()
	w.stream.TokenFile, w.stream.CAFile = filepath.Join(folder, "token"), filepath.Join(folder, "ca.crt")
	w.write(w.stream.TokenFile, "s3cr3t\n")
	w.write(w.stream.CAFile, string(w.authority.pem))
	w.stream.SetDial(w.dial)
	return w
}

func (w *world) write(file, text string) {
	w.t.Helper()
	NewWithT(w.t).Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
}

// dial connects to a server that serves this one connection.
func (w *world) dial(context.Context, string, string) (net.Conn, error) {
	w.dialed = append(w.dialed, time.Now())
	if len(w.answers) == 0 {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	next := w.answers[0]
	w.answers = w.answers[1:]
	server := &http.Server{
		ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.requests = append(w.requests, r)
			next(rw, r)
		}),
	}
	config := &tls.Config{Certificates: []tls.Certificate{w.authority.certificate}, MinVersion: tls.VersionTLS12}
	go func() { _ = server.Serve(&single{conn: tls.Server(far, config), closed: make(chan struct{})}) }()
	w.t.Cleanup(func() {
		// Both ends may be saying goodbye, and neither listens: a pipe has no buffer.
		_, _, _ = near.Close(), far.Close(), server.Close()
	})
	return near, nil
}

// single is a listener of one connection.
type single struct {
	conn   net.Conn
	closed chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	if conn := s.conn; conn != nil {
		s.conn = nil
		return conn, nil
	}
	<-s.closed
	return nil, net.ErrClosed
}

func (s *single) Close() error   { close(s.closed); return nil }
func (s *single) Addr() net.Addr { return &net.TCPAddr{} }

// said answers with a stream of these lines, and breaks the connection off.
func said(lines ...string) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		say(w, lines...)
		panic(http.ErrAbortHandler)
	}
}

// stays answers with a stream of these lines, and nothing more, until the client has gone.
func stays(lines ...string) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		say(w, lines...)
		<-r.Context().Done()
	}
}

func say(w http.ResponseWriter, lines ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for _, line := range lines {
		_, _ = io.WriteString(w, line+"\n")
	}
	_ = http.NewResponseController(w).Flush()
}

// refuses answers with a status, and these headers.
func refuses(status int, message string, header ...string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, message)
	}
}

// following is what came of following the stream for a while, in fake time.
type following struct {
	seen []changes.Change
	err  error
}

// lines are the changes in short: the event, and the name with its version.
func (f following) lines() []string {
	said := []string{}
	for _, c := range f.seen {
		line := string(c.Event)
		if c.Name != "" {
			line += " " + c.Name
		}
		if c.Initial {
			line += " initial"
		}
		said = append(said, line)
	}
	return said
}

// follow follows the stream until it fails, or as long as it is told to.
func (w *world) follow(query changes.Query, long time.Duration) following {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), long)
	defer cancel()
	var f following
	f.err = w.stream.Follow(ctx, query, func(c changes.Change) { f.seen = append(f.seen, c) })
	return f
}
