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

package utils

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"

	certutil "k8s.io/client-go/util/cert"
)

// ErrNoAddress tells that this machine has no address but loopback, where webhooks must not go (F7).
var ErrNoAddress = errors.New("this machine has no address but loopback, where webhooks must not go")

// Endpoint is an HTTPS server that takes webhooks, at an address of this machine that is not loopback.
type Endpoint struct {
	// URL is where it is, without a path.
	URL string
	// CA is the certificate that verifies it, in PEM.
	CA string

	server *http.Server
	answer func(path string)

	mu    sync.Mutex
	calls []Call
}

// Call is a request that an Endpoint took.
type Call struct {
	Path   string
	Header http.Header
	Body   string
}

// String is such as "Modified ConfigMap/app-config".
func (c Call) String() string {
	var said struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal([]byte(c.Body), &said); err != nil {
		return err.Error()
	}
	return said.Event + " " + c.Header.Get("Ce-Subject")
}

// NewEndpoint starts one. answer, which may be nil, is called for each request after that was taken, and before it
// is answered.
func NewEndpoint(answer func(path string)) (*Endpoint, error) {
	ip, err := OwnAddress()
	if err != nil {
		return nil, err
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey(ip.String(), []net.IP{ip}, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	e := &Endpoint{URL: "https://" + listener.Addr().String(), CA: string(certificate), answer: answer}
	e.server = &http.Server{
		Handler:   e,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	go func() { _ = e.server.ServeTLS(listener, "", "") }() // it ends with Close
	return e, nil
}

// OwnAddress is one of this machine's that webhooks may go to, or ErrNoAddress.
func OwnAddress() (net.IP, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("finding the addresses of this machine: %w", err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP, nil
		}
	}
	return nil, ErrNoAddress
}

// ServeHTTP implements http.Handler.
func (e *Endpoint) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender has gone
	}
	e.mu.Lock()
	e.calls = append(e.calls, Call{r.URL.Path, r.Header, string(body)})
	e.mu.Unlock()
	if e.answer != nil {
		e.answer(r.URL.Path)
	}
}

// Calls are those at a path, each as a line.
func (e *Endpoint) Calls(path string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := []string{}
	for _, call := range e.calls {
		if call.Path == path {
			lines = append(lines, call.String())
		}
	}
	return lines
}

// Bodies are those of the calls at a path.
func (e *Endpoint) Bodies(path string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var bodies []string
	for _, call := range slices.Clone(e.calls) {
		if call.Path == path {
			bodies = append(bodies, call.Body)
		}
	}
	return bodies
}

// Close ends it, with all connections.
func (e *Endpoint) Close() {
	_ = e.server.Close()
}
