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
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

const (
	// podNamespaceVariable names the manager's own namespace; the Deployment sets it.
	podNamespaceVariable = "POD_NAMESPACE"
	// watchNamespaceVariable is the default of --watch-namespaces, by the name that OLM uses.
	watchNamespaceVariable = "WATCH_NAMESPACE"
	// memoryLimitVariable is the container's memory limit in bytes; the Deployment sets it.
	memoryLimitVariable = "MEMORY_LIMIT"

	serviceAccountNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

	// shutdownTimeout is how long passes that are under way may take to end. The Deployment's
	// termination grace period is longer.
	shutdownTimeout = 20 * time.Second
)

// options are the settings of the manager.
type options struct {
	version                 bool
	namespace               string
	watchNamespaces         string
	maxConcurrentReconciles int
	maxConcurrentRollouts   int
	webhookAllowedHosts     string

	leaderElect   bool
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration

	probeAddress    string
	metricsAddress  string
	metricsSecure   bool
	metricsCertPath string
	metricsCertName string
	metricsCertKey  string
	streamAddress   string
	streamCertPath  string
	streamCertName  string
	streamCertKey   string
	enableHTTP2     bool

	zap zap.Options
}

// bind declares the flags. Each is documented in docs/reference/flags.md.
func (o *options) bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.version, "version", false, "Print the version and exit.")
	flags.StringVar(&o.namespace, "namespace", "",
		"The manager's own namespace, which holds the hash key and the leader election's lease. "+
			"Used where neither the environment variable "+podNamespaceVariable+" nor the service account tells it.")
	flags.StringVar(&o.watchNamespaces, "watch-namespaces", os.Getenv(watchNamespaceVariable),
		"The namespaces to watch, separated by commas; empty: the whole cluster. "+
			"The default is the environment variable "+watchNamespaceVariable+".")
	flags.IntVar(&o.maxConcurrentReconciles, "max-concurrent-reconciles", 8,
		"How many ConfigWatches are reconciled at once.")
	flags.IntVar(&o.maxConcurrentRollouts, "max-concurrent-rollouts", 50,
		"How many targets of all ConfigWatches roll out at once; 0: any number.")

	flags.StringVar(&o.webhookAllowedHosts, "webhook-allowed-hosts", "",
		"The only hosts that webhooks of subscribers may go to, separated by commas, such as hooks.slack.com,*.example.com; "+
			"empty: any. Loopback and link-local addresses and the API server are refused in any case.")

	flags.BoolVar(&o.leaderElect, "leader-elect", true,
		"Elect a leader among several replicas; only the leader restarts workloads.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"How long the other replicas wait before they take over from a leader that is not heard of.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"How long the leader tries to renew its lease before it gives up and ends.")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second,
		"How long replicas wait between tries to get or renew the lease.")

	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		"The address of the probes /healthz and /readyz; 0 turns them off.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "0",
		"The address of the metrics, such as :8443; 0 turns them off.")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"Serve metrics by HTTPS, and only to those whom the API server authenticates and authorizes.")
	flags.StringVar(&o.metricsCertPath, "metrics-cert-path", "",
		"The folder of the metrics server's certificate; empty: a self-signed one is made.")
	flags.StringVar(&o.metricsCertName, "metrics-cert-name", "tls.crt", "The file name of the metrics server's certificate.")
	flags.StringVar(&o.metricsCertKey, "metrics-cert-key", "tls.key", "The file name of the metrics server's key.")
	flags.StringVar(&o.streamAddress, "stream-bind-address", "",
		"The address of the change stream, such as :8444; empty: there is none. It is served by HTTPS and by every replica, "+
			"to those whom the API server lets watch what they ask for.")
	flags.StringVar(&o.streamCertPath, "stream-cert-path", "",
		"The folder of the stream's certificate, which is read again when it changes; empty: a self-signed one is made.")
	flags.StringVar(&o.streamCertName, "stream-cert-name", "tls.crt", "The file name of the stream's certificate.")
	flags.StringVar(&o.streamCertKey, "stream-cert-key", "tls.key", "The file name of the stream's key.")
	flags.BoolVar(&o.enableHTTP2, "enable-http2", false,
		"Serve metrics by HTTP/2 too. Off, because of HTTP/2's stream cancellation and rapid reset attacks.")
	o.zap.BindFlags(flags)
}

// ports are those that the manager listens on. An address that has none is for who listens there to complain of.
func (o *options) ports() []uint16 {
	var ports []uint16
	for _, address := range []string{o.probeAddress, o.metricsAddress, o.streamAddress} {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		if number, err := strconv.ParseUint(port, 10, 16); err == nil {
			ports = append(ports, uint16(number))
		}
	}
	return ports
}

// mostVerbose is the highest log level. From 8 on, client-go logs the bodies of requests and responses,
// in which Secrets have their values.
const mostVerbose = 5

// capVerbosity keeps the log level where no Secret's value can be logged, whatever the flag says.
func (o *options) capVerbosity() {
	const limit = zapcore.Level(-mostVerbose)
	if o.zap.Level != nil && o.zap.Level.Enabled(limit-1) {
		o.zap.Level = uberzap.NewAtomicLevelAt(limit)
	}
}

// namespaces are those to watch; one empty string stands for all.
func (o *options) namespaces() []string {
	if names := listed(o.watchNamespaces); len(names) > 0 {
		return names
	}
	return []string{metav1.NamespaceAll}
}

// listed are the values between commas, without white space around them and without empty ones.
func listed(value string) []string {
	var all []string
	for one := range strings.SplitSeq(value, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// ownNamespace is the manager's own namespace.
func (o *options) ownNamespace() (string, error) {
	if namespace := os.Getenv(podNamespaceVariable); namespace != "" {
		return namespace, nil
	}
	content, err := os.ReadFile(serviceAccountNamespaceFile)
	if err == nil && len(strings.TrimSpace(string(content))) > 0 {
		return strings.TrimSpace(string(content)), nil
	}
	if o.namespace == "" {
		return "", fmt.Errorf("the manager's own namespace is not known: outside a cluster, "+
			"say it with --namespace or the environment variable %s", podNamespaceVariable)
	}
	return o.namespace, nil
}
