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

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/ktechhub/configwatch/internal/stream"
)

const (
	// streamMemory is the memory limit, in bytes, of a container that serves streams: see config/components/stream.
	streamMemory = 256 << 20
	// streamBase and streamEach are how much memory, in bytes, a manager with streams may take: the first, and
	// the second for each of them.
	streamBase, streamEach = 128e6, 20e3
	// streamLatency is after how many milliseconds a write has to be with 99 of 100 clients.
	streamLatency = 250.0
	// streamChanges is how many changes each client gets while memory is measured, and streamWrites while latency is.
	streamChanges, streamWrites = 10, 50

	streamNamespace = "streams"
	connecting      = 32 // at once
)

// streams measures what clients of the stream cost a replica, and how soon they have a change (F8). Each has a token of
// its own, of a ServiceAccount that has as many streams as one user may.
func (b *bench) streams(ctx context.Context) error {
	clients := max(b.size.streams, b.size.quickStreams)
	progress("Making %d tokens", clients)
	tokens, err := b.streamTokens(ctx, clients)
	if err != nil {
		return err
	}
	server, err := newStreamServer()
	if err != nil {
		return err
	}
	defer os.RemoveAll(server.folder)
	err = b.withStreams(ctx, server, tokens[:b.size.streams], b.memoryOfStreams)
	if err != nil {
		return err
	}
	return b.withStreams(ctx, server, tokens[:b.size.quickStreams], b.latencyOfStreams)
}

// streamTokens makes a token for each client.
func (b *bench) streamTokens(ctx context.Context, clients int) ([]string, error) {
	core, rbac := b.typed.CoreV1(), b.typed.RbacV1()
	_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: streamNamespace}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Name: "watch-configmaps"}
	_, err = rbac.Roles(streamNamespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"watch"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	_, err = rbac.RoleBindings(streamNamespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + streamNamespace}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if err := b.createConfigMap(ctx, streamNamespace, sharedConfig); err != nil {
		return nil, err
	}
	account := func(i int) string { return fmt.Sprintf("client-%d", i/stream.DefaultMaxStreamsPerUser) }
	for i := 0; i < clients; i += stream.DefaultMaxStreamsPerUser {
		_, err := core.ServiceAccounts(streamNamespace).Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account(i)}}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
	}
	tokens := make([]string, clients)
	return tokens, b.each(ctx, clients, func(ctx context.Context, i int) error {
		request, err := core.ServiceAccounts(streamNamespace).CreateToken(ctx, account(i), &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err == nil {
			tokens[i] = request.Status.Token
		}
		return err
	})
}

// streamServer is where the stream is served.
type streamServer struct {
	address string
	folder  string // with the certificate
	roots   *x509.CertPool
}

func newStreamServer() (*streamServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("finding a free port: %w", err)
	}
	defer listener.Close()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{{127, 0, 0, 1}}, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	folder, err := os.MkdirTemp("", "configwatch-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the certificate: %w", err)
	}
	s := &streamServer{address: listener.Addr().String(), folder: folder, roots: x509.NewCertPool()}
	s.roots.AppendCertsFromPEM(certificate)
	return s, errors.Join(
		os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600))
}

// withStreams runs a manager, and the function once there is a client for each of the tokens. It gets the manager's
// memory from before.
func (b *bench) withStreams(
	ctx context.Context, server *streamServer, tokens []string, call func(context.Context, *managerProcess, *crowd, int64) error,
) error {
	manager := &managerProcess{binary: b.manager.binary, memoryLimit: streamMemory, args: []string{
		"--stream-bind-address=" + server.address, "--stream-cert-path=" + server.folder,
	}}
	if err := manager.start(ctx, b.cluster); err != nil {
		return err
	}
	defer manager.stop()
	if err := b.quiet(ctx); err != nil {
		return err
	}
	idle, _, err := memory(manager.pid())
	if err != nil {
		return err
	}
	progress("Connecting %d clients", len(tokens))
	clients := newCrowd(len(tokens))
	defer clients.close()
	group, connectCtx := errgroup.WithContext(ctx)
	group.SetLimit(connecting)
	config := &tls.Config{RootCAs: server.roots, MinVersion: tls.VersionTLS12}
	for i, token := range tokens {
		group.Go(func() error { return clients.connect(connectCtx, i, server.address, token, config) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return call(ctx, manager, clients, idle)
}

// memoryOfStreams measures the memory of a manager whose clients all get some changes.
func (b *bench) memoryOfStreams(ctx context.Context, manager *managerProcess, clients *crowd, idle int64) error {
	n := len(clients.received)
	progress("%d changes for each of %d clients", streamChanges, n)
	var times []time.Duration
	for range streamChanges {
		took, err := b.toAll(ctx, clients)
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	now, peak, err := memory(manager.pid())
	if err != nil {
		return err
	}
	const kilobyte, megabyte = 1e3, 1e6
	b.report.add(
		row{Name: fmt.Sprintf("missing or doubled, of %d changes for each of %d streams", streamChanges, n), Unit: "events",
			Manager: float64(clients.wrong()), Limit: new(0.0)},
		row{Name: fmt.Sprintf("resident memory, %d streams", n), Unit: "MB",
			Manager: float64(now) / megabyte, Limit: new((streamBase + streamEach*float64(n)) / megabyte)},
		row{Name: fmt.Sprintf("peak memory, %d streams", n), Unit: "MB", Manager: float64(peak) / megabyte, Limit: new(float64(streamMemory) / megabyte)},
		row{Name: fmt.Sprintf("resident memory for each of %d streams", n), Unit: "KB", Manager: float64(now-idle) / float64(n) / kilobyte},
		row{Name: fmt.Sprintf("one write → all of %d streams have it, p50", n), Unit: "ms", Manager: milliseconds(percentile(times, 50))},
	)
	return nil
}

// latencyOfStreams measures how long changes take to be with clients, from before the API server is told of them.
func (b *bench) latencyOfStreams(ctx context.Context, _ *managerProcess, clients *crowd, _ int64) error {
	n := len(clients.received)
	progress("%d writes for each of %d clients", streamWrites, n)
	for range streamWrites {
		time.Sleep(breath)
		if _, err := b.toAll(ctx, clients); err != nil {
			return err
		}
	}
	b.report.add(
		row{Name: fmt.Sprintf("one write → one of %d streams has it, p50", n), Unit: "ms", Manager: milliseconds(percentile(clients.took, 50))},
		row{Name: fmt.Sprintf("one write → one of %d streams has it, p99", n), Unit: "ms",
			Manager: milliseconds(percentile(clients.took, 99)), Limit: new(streamLatency)},
	)
	return nil
}

// toAll makes a change, and is how long it takes until all clients have it.
func (b *bench) toAll(ctx context.Context, clients *crowd) (time.Duration, error) {
	start := clients.next()
	if err := b.change(ctx, streamNamespace, sharedConfig, b.value()); err != nil {
		return 0, err
	}
	err := clients.await(patience)
	return time.Since(start), err
}
