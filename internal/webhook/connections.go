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
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// longestHeader is how many bytes of headers are read of an answer.
const longestHeader = 64 << 10

// connection makes the one connection of an attempt, by the guarded dialer, to a server that the bundle verifies, or
// the system if it is empty. It isn't kept for the next attempt: where that may go is to be decided then, and what a
// server says unasked would be logged by net/http, with whatever it was told before.
func (c *Client) connection(caBundle []byte) (*http.Transport, error) {
	var roots *x509.CertPool // nil: the system's
	if len(caBundle) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(caBundle) {
			return nil, errors.New("the key ca.crt of its Secret has no certificate in PEM")
		}
	}
	return &http.Transport{
		Proxy:                  nil, // F7: it would resolve and dial in place of the guarded dialer
		DialContext:            c.dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, VerifyConnection: notAPIServer},
		TLSHandshakeTimeout:    c.timeout,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: longestHeader,
	}, nil
}

// errAPIServer tells that a server has the certificate of an API server.
var errAPIServer = errors.New("has the certificate of an API server")

// notAPIServer refuses API servers by their certificates, before anything is sent (F7): beside the address that the
// operator knows, they have those of the hosts that they run on, of load balancers, and of other clusters. Wherever
// that is, the certificate is valid for the name that pods have for it.
func notAPIServer(connection tls.ConnectionState) error {
	const name = "kubernetes.default.svc"
	isName := func(valid string) bool {
		valid = strings.ToLower(valid)
		return valid == name || strings.HasPrefix(valid, name+".")
	}
	if len(connection.PeerCertificates) > 0 && slices.ContainsFunc(connection.PeerCertificates[0].DNSNames, isName) {
		return errAPIServer
	}
	return nil
}
