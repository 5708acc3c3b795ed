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

// Command manager is the operator: it watches ConfigMaps and Secrets and restarts the workloads that
// ConfigWatches declare to depend on them.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // exec and cloud providers' credentials in a kubeconfig
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/access"
	"github.com/ktechhub/configwatch/internal/controller"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/hashkey"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/subscriber"
	"github.com/ktechhub/configwatch/internal/version"
	"github.com/ktechhub/configwatch/internal/workload"
)

// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=configwatch-hash-key,verbs=get;list;watch

// keyTimeout is how long the manager tries to get its hash key before it ends.
const keyTimeout = 2 * time.Minute

func main() {
	var opts options
	opts.bind(flag.CommandLine)
	flag.Parse()
	if opts.version {
		fmt.Println(version.Version)
		return
	}
	opts.capVerbosity()
	logger := zap.New(zap.UseFlagOptions(&opts.zap))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := run(ctrl.SetupSignalHandler(), &opts); err != nil {
		logger.Error(err, "The manager ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, opts *options) error {
	limitMemory()
	ownNamespace, err := opts.ownNamespace()
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	config.QPS = -1 // the API server's priority and fairness does it better
	mgr, err := newManager(config, opts, ownNamespace)
	if err != nil {
		return err
	}
	clientset, err := newClientset(config, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	store := &hashkey.Store{Client: clientset, Namespace: ownNamespace}
	key, err := store.EnsureWithin(ctx, keyTimeout)
	if err != nil {
		return err
	}
	if err := mgr.Add(&hashkey.Guard{Store: store, Key: key}); err != nil {
		return fmt.Errorf("adding the guard of the hash key: %w", err)
	}
	live, err := metadata.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the client of metadata: %w", err)
	}
	sources, err := source.NewCache(clientset, live, opts.namespaces(), digest.Keyed(key))
	if err != nil {
		return err
	}
	workloads, err := workload.NewCache(clientset, opts.namespaces())
	if err != nil {
		return err
	}
	if err := recordReconnects(sources.Group, workloads.Group); err != nil {
		return err
	}
	if err := addFeed(mgr, clientset, sources, opts); err != nil {
		return err
	}
	teller, err := newTeller(config, clientset, sources, opts)
	if err != nil {
		return err
	}
	if err := addController(ctx, mgr, sources, workloads, teller, opts); err != nil {
		return err
	}
	if err := metrics.Registry.Register(version.Collector()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	ctrl.Log.Info("Starting", "version", version.Version, "commit", version.Commit,
		"namespace", ownNamespace, "watchNamespaces", opts.watchNamespaces)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// cacheOptions are those of the cache of ConfigWatches. For the whole cluster it names no namespace, as that
// would cost a look at the API's resources in each call.
func cacheOptions(opts *options) cache.Options {
	o := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	for _, name := range opts.namespaces() {
		if name == metav1.NamespaceAll {
			continue
		}
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[name] = cache.Config{}
	}
	return o
}

func newManager(config *rest.Config, opts *options, ownNamespace string) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("adding the built-in kinds: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("adding ConfigWatch: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		HealthProbeBindAddress: opts.probeAddress,
		Metrics:                metricsOptions(opts),
		Cache:                  cacheOptions(opts),
		// A pass must see the status that the last one wrote, or it would decide the same again.
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},

		GracefulShutdownTimeout:       new(shutdownTimeout),
		LeaderElection:                opts.leaderElect,
		LeaderElectionID:              "configwatch.ktechhub.io",
		LeaderElectionNamespace:       ownNamespace,
		LeaderElectionReleaseOnCancel: true, // safe, as the process ends right after the manager
		LeaseDuration:                 &opts.leaseDuration,
		RenewDeadline:                 &opts.renewDeadline,
		RetryPeriod:                   &opts.retryPeriod,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	return mgr, nil
}

func metricsOptions(opts *options) metricsserver.Options {
	o := metricsserver.Options{
		BindAddress:   opts.metricsAddress,
		SecureServing: opts.metricsSecure,
		CertDir:       opts.metricsCertPath,
		CertName:      opts.metricsCertName,
		KeyName:       opts.metricsCertKey,
	}
	if opts.metricsSecure {
		o.FilterProvider = access.Filter
	}
	if !opts.enableHTTP2 {
		o.TLSOpts = append(o.TLSOpts, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	return o
}

// newClientset makes a client of the built-in kinds that speaks protobuf.
func newClientset(config *rest.Config, httpClient *http.Client) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	clientset, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return clientset, nil
}

func addController(
	ctx context.Context, mgr ctrl.Manager, sources *source.Cache, workloads *workload.Cache, teller subscriber.Teller, opts *options,
) error {
	reconciler := &controller.ConfigWatchReconciler{
		Client:    mgr.GetClient(),
		Sources:   sources,
		Workloads: workloads,
		Recorder:  mgr.GetEventRecorder("configwatch"),
		Clock:     clock.RealClock{},
		Teller:    teller,
	}
	err := reconciler.SetupWithManager(ctx, mgr, controller.Options{
		MaxConcurrentReconciles: opts.maxConcurrentReconciles,
		MaxConcurrentRollouts:   opts.maxConcurrentRollouts,
	})
	if err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the liveness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("readable", controller.Readable(ctx, mgr.GetCache(), sources, workloads)); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}

// limitMemory makes the garbage collector keep the process small and below its container's limit. Go's
// own variables GOGC and GOMEMLIMIT come first.
func limitMemory() {
	// The heap that lives is a few MB, so that collecting it early costs next to nothing.
	const growth = 40
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	limit, known := memoryLimit()
	if !known || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(collectorLimit(limit))
}

// collectorLimit is the part of a container's memory limit that the collector may fill. It doesn't count the pages of the
// program itself, of which some 30 MB are in memory, and what the kernel holds for connections. What it does count are
// stacks, which grow on thousands of streams at once when these are written to: only a collection shrinks them, and
// only this limit makes one happen then (F8).
func collectorLimit(limit int64) int64 {
	const spare, most = 30, 96 << 20 // in percent, but no more bytes than that
	return limit - min(limit/100*spare, most)
}

// memoryLimit is that of the container, in bytes, if it has one.
func memoryLimit() (bytes int64, known bool) {
	bytes, err := strconv.ParseInt(os.Getenv(memoryLimitVariable), 10, 64)
	return bytes, err == nil && bytes > 0
}
