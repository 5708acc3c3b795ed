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
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ktechhub/configwatch/internal/access"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/feed/observer"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/stream"
	"github.com/ktechhub/configwatch/internal/subscriber"
	"github.com/ktechhub/configwatch/internal/webhook"
)

// recordedChanges is how many changes wait to be recorded before the oldest are lost.
const recordedChanges = 1024

const (
	// memoryBesideStreams is how much of its memory limit a manager keeps for everything else, in bytes.
	memoryBesideStreams = 96 << 20
	// memoryOfStream is how much a stream may take, in bytes: with what waits to be collected, and with what the
	// kernel holds for its connection, which counts towards the limit of the container.
	memoryOfStream = 32 << 10
	// leastStreams is how many streams there may be, whatever the limit is.
	leastStreams = 100
)

// maxStreams is how many streams a replica may have open: as many as fit into its memory limit (F8).
func maxStreams(limit int64, known bool) int {
	if !known {
		return stream.DefaultMaxStreams
	}
	fitting := max(limit-memoryBesideStreams, 0) / memoryOfStream
	return int(min(max(fitting, leastStreams), stream.DefaultMaxStreams))
}

// addFeed makes the change feed out of what the cache of sources sees, records its changes (F9), and serves it if
// that is asked for (F8). It must be called before the manager starts.
func addFeed(mgr ctrl.Manager, client kubernetes.Interface, sources *source.Cache, opts *options) error {
	broker := feed.NewBroker(clock.RealClock{})
	if err := metrics.Registry.Register(broker.Metrics()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	if err := addRecord(mgr, broker); err != nil {
		return err
	}
	if opts.streamAddress == "" {
		if err := broker.Follow(sources, opts.namespaces()); err != nil {
			return fmt.Errorf("following sources: %w", err)
		}
		return nil
	}
	history := feed.NewHistory(broker, stream.RecentChanges)
	if err := history.Follow(sources, opts.namespaces()); err != nil {
		return fmt.Errorf("following sources: %w", err)
	}
	return addStream(mgr, client, sources, history, opts)
}

// addRecord has what the feed brings logged and counted.
func addRecord(mgr ctrl.Manager, broker *feed.Broker) error {
	record, err := observer.NewRecord(ctrl.Log.WithName("feed"), metrics.Registry)
	if err != nil {
		return err
	}
	subscription, err := broker.Subscribe(feed.Filter{}, recordedChanges)
	if err != nil {
		return fmt.Errorf("subscribing to changes: %w", err)
	}
	err = mgr.Add(onEveryReplica(func(ctx context.Context) error {
		defer subscription.Close()
		return observer.Run(ctx, subscription, record)
	}))
	if err != nil {
		return fmt.Errorf("adding the record of changes: %w", err)
	}
	return nil
}

// addStream has the feed served, by every replica.
func addStream(mgr ctrl.Manager, client kubernetes.Interface, sources *source.Cache, history *feed.History, opts *options) error {
	reviewer, err := access.NewReviewer(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	server := stream.New(stream.Options{
		BindAddress: opts.streamAddress,
		CertDir:     opts.streamCertPath,
		CertName:    opts.streamCertName,
		KeyName:     opts.streamCertKey,
		History:     history,
		Reviewer:    reviewer,
		ConfigMaps:  client.CoreV1(),
		Former:      sources,
		Clock:       clock.RealClock{},
		Log:         ctrl.Log.WithName("stream"),
		MaxStreams:  maxStreams(memoryLimit()),
	})
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the server of streams: %w", err)
	}
	if err := metrics.Registry.Register(server.Metrics()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// recordReconnects has it logged and counted when watches that had broken off are made again (F11).
func recordReconnects(groups ...informer.Group) error {
	reconnects, err := informer.NewReconnects(ctrl.Log.WithName("informer"), metrics.Registry)
	if err != nil {
		return err
	}
	for _, group := range groups {
		reconnects.Record(group)
	}
	return nil
}

// onEveryReplica runs whether this replica leads or not.
type onEveryReplica func(context.Context) error

// Start calls the function.
func (f onEveryReplica) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection is false.
func (f onEveryReplica) NeedLeaderElection() bool { return false }

// newTeller makes what tells subscribers by their webhooks. They don't get to the API server by it, under whatever
// address it has (F7).
func newTeller(config *rest.Config, client kubernetes.Interface, sources *source.Cache, opts *options) (*subscriber.Webhooks, error) {
	apiServer := []string{config.Host}
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" {
		apiServer = append(apiServer, host)
	}
	guard, err := webhook.NewGuard(nil, apiServer...)
	if err != nil {
		return nil, fmt.Errorf("guarding webhooks: %w", err)
	}
	sender, err := webhook.New(webhook.Options{
		Guard: guard, AllowedHosts: listed(opts.webhookAllowedHosts), OwnPorts: opts.ports(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the sender of webhooks: %w", err)
	}
	return subscriber.NewWebhooks(client, sources, sender), nil
}
