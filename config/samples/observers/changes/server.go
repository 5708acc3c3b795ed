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

package changes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// connectTimeout bounds the making of a connection, and then TLS's handshake.
	connectTimeout = 10 * time.Second
	// answerTimeout bounds the wait for the first line of the answer.
	answerTimeout = 30 * time.Second
	// readRefusal is how many bytes are read of why a request is refused.
	readRefusal = 64 << 10
)

// Server is an HTTPS server that wants the bearer token of a ServiceAccount: the operator's stream, or the API server.
type Server struct {
	// URL is where it is, such as https://kubernetes.default.svc.
	URL string
	// Name is the host in its certificate. Default: that of the URL.
	Name string
	// TokenFile has the token, and CAFile the certificates that verify the server's. Both are read for each
	// connection, as they are renewed from time to time. Default of CAFile: the system's certificates.
	TokenFile, CAFile string

	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil: as usual
}

// Refusal is an answer other than 200.
type Refusal struct {
	// Status is that of the answer.
	Status int
	// Message is the server's.
	Message string
	// RetryAfter is how long the server asks to wait; 0 if it doesn't.
	RetryAfter time.Duration
}

// Error is such as `403 Forbidden: User "…" cannot watch resource "configmaps" …`.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%d %s: %s", r.Status, http.StatusText(r.Status), r.Message)
}

// Get asks for a path, and returns the body of the answer, which has to be closed. Another answer than 200 is a
// *Refusal.
func (s *Server) Get(ctx context.Context, path string, query url.Values, header http.Header) (io.ReadCloser, error) {
	request, err := s.request(ctx, path, query)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	return response.Body, nil
}

// url is that of the server. Tokens are not sent without TLS.
func (s *Server) url() (*url.URL, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, fmt.Errorf("reading the URL of the server: %w", err)
	}
	if u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the URL of the server is %q: write https://HOST:PORT", s.URL)
	}
	return u, nil
}

func (s *Server) request(ctx context.Context, path string, query url.Values) (*http.Request, error) {
	u, err := s.url()
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("reading the token: %w", err)
	}
	u = u.JoinPath(path)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return request, nil
}

func (s *Server) client() (*http.Client, error) {
	var roots *x509.CertPool // nil: the system's
	if s.CAFile != "" {
		certificates, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the CA's certificates: %w", err)
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(certificates) {
			return nil, fmt.Errorf("%s has no certificate in PEM", s.CAFile)
		}
	}
	dial := s.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTimeout}).DialContext
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:           dial,
			TLSClientConfig:       &tls.Config{RootCAs: roots, ServerName: s.Name, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   connectTimeout,
			ResponseHeaderTimeout: answerTimeout,
			DisableCompression:    true,
			DisableKeepAlives:     true, // the next connection may need another CA
		},
		// The token is for this server, and for none that it leads to.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// refusal reads why: servers of Kubernetes say so in a Status.
func refusal(response *http.Response) error {
	r := &Refusal{Status: response.StatusCode}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		r.RetryAfter = time.Duration(seconds) * time.Second
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, readRefusal))
	if err != nil {
		return errors.Join(r, err)
	}
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		r.Message = status.Message
	} else {
		r.Message = strings.TrimSpace(string(text))
	}
	return r
}
