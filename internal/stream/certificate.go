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
	"path/filepath"

	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// certificate is that of the server: one from files, which is read again when they change, or one of its own.
type certificate struct {
	watcher    *certwatcher.CertWatcher
	selfSigned tls.Certificate
}

func newCertificate(o *Options) (*certificate, error) {
	if o.CertDir == "" {
		return newSelfSigned()
	}
	watcher, err := certwatcher.New(filepath.Join(o.CertDir, o.CertName), filepath.Join(o.CertDir, o.KeyName))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of streams: %w", err)
	}
	return &certificate{watcher: watcher}, nil
}

// newSelfSigned makes a certificate as the metrics server does.
func newSelfSigned() (*certificate, error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{{127, 0, 0, 1}}, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for streams: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for streams: %w", err)
	}
	return &certificate{selfSigned: pair}, nil
}

// watch keeps it fresh until the context is done.
func (c *certificate) watch(ctx context.Context) error {
	if c.watcher == nil {
		return nil
	}
	if err := c.watcher.Start(ctx); err != nil {
		return fmt.Errorf("watching the certificate of streams: %w", err)
	}
	return nil
}

func (c *certificate) config() *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
	}
	if c.watcher != nil {
		config.GetCertificate = c.watcher.GetCertificate
	} else {
		config.Certificates = []tls.Certificate{c.selfSigned}
	}
	return config
}
