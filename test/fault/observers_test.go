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

package fault

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/config/samples/observers/changes"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/feed/observer"
	"github.com/ktechhub/configwatch/internal/hashkey"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/test/utils"
)

// streaming is a manager that serves the stream and metrics.
type streaming struct {
	*utils.Manager

	stream  changes.Stream // of a namespace
	metrics string         // where they are
}

// launchStreaming starts one through a proxy. Each of its watches has a connection of its own, so that it can be cut in
// the middle of an event of its own.
func launchStreaming(ctx context.Context, p *proxy, namespace string) *streaming {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
		return path
	}
	certificate, private, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{{127, 0, 0, 1}}, nil)
	Expect(err).NotTo(HaveOccurred())
	s := &streaming{metrics: freeAddress()}
	s.stream = changes.Stream{Namespace: namespace, Log: slog.New(slog.NewTextHandler(GinkgoWriter, nil))}
	s.stream.CAFile, s.stream.TokenFile = write("tls.crt", certificate), write("token", []byte(plane.RESTConfig().BearerToken))
	write("tls.key", private)
	address := freeAddress()
	s.stream.URL = "https://" + address
	s.Manager = launchIn([]string{"DISABLE_HTTP2=true"}, p, "--stream-bind-address="+address, "--stream-cert-path="+folder,
		"--metrics-bind-address="+s.metrics, "--metrics-secure=false")
	Expect(s.WaitReady(ctx)).To(Succeed())
	return s
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// tell tells a view by a stream until the test ends.
func (s *streaming) tell(ctx context.Context, v *view, query changes.Query) {
	v.of = v1alpha1.SourceKind(query.Kind)
	background(ctx, func(ctx context.Context) error { return s.stream.Follow(ctx, query, v.observe) })
}

// sum adds up the series of a metric whose labels have a text in them.
func (s *streaming) sum(ctx context.Context, metric, label string) (sum float64) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	found := false
	for line := range strings.Lines(string(text)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, its, _ := strings.Cut(series, "{")
		if name != metric || !strings.Contains(its, label) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		Expect(err).NotTo(HaveOccurred())
		sum, found = sum+number, true
	}
	Expect(found).To(BeTrue(), "there is a metric "+metric+" with "+label)
	return sum
}

// subscription is a subscription to a feed of the test's own, as kubectl configwatch tail has one.
type subscription struct {
	*view

	buffer int
}

// followOwn tells views by a feed of the test's own, through a proxy, until the test ends.
func followOwn(ctx context.Context, p *proxy, namespace string, keyed *digest.Hasher, subscriptions ...subscription) {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.NextProtos = []string{"http/1.1"} // a connection for each watch
	clientset, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	sources, err := source.NewCache(clientset, nil, []string{namespace}, keyed)
	Expect(err).NotTo(HaveOccurred())
	reconnects, err := informer.NewReconnects(GinkgoLogr, prometheus.NewRegistry())
	Expect(err).NotTo(HaveOccurred())
	reconnects.Record(sources.Group)
	broker := feed.NewBroker(clock.RealClock{})
	Expect(broker.Follow(sources, []string{namespace})).To(Succeed())
	filter := feed.Filter{Namespace: namespace, Selector: labels.SelectorFromSet(labels.Set{app: feeds}), Initial: true}
	for _, s := range subscriptions {
		received, err := broker.Subscribe(filter, s.buffer)
		Expect(err).NotTo(HaveOccurred())
		background(ctx, func(ctx context.Context) error {
			defer received.Close()
			return observer.Run(ctx, received, s.view)
		})
	}
	background(ctx, sources.Start)
}

// background runs something until the test ends.
func background(ctx context.Context, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		defer GinkgoRecover()
		Expect(run(ctx)).To(Succeed())
	})
	DeferCleanup(func() {
		cancel()
		running.Wait()
	})
}

// operatorsHasher hashes Secrets as the operator does.
func operatorsHasher(ctx context.Context) *digest.Hasher {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: utils.ManagerNamespace, Name: hashkey.SecretName}, secret)).To(Succeed())
	return digest.Keyed(secret.Data[hashkey.DataKey])
}

// hook is an endpoint that tells a view of the webhooks that it takes in, until the test ends. It has the certificate
// in the bundle. There is none on a machine that has only loopback addresses, where webhooks must not go (F7).
func hook(ctx context.Context, v *view) (url, bundle string, found bool) {
	GinkgoHelper()
	ip, err := utils.OwnAddress()
	if errors.Is(err, utils.ErrNoAddress) {
		return "", "", false
	}
	Expect(err).NotTo(HaveOccurred())
	certificate, private, err := certutil.GenerateSelfSignedCertKey(ip.String(), []net.IP{ip}, nil)
	Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(certificate, private)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ErrorLog:          log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := changes.Change{}
			if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			c.ID = r.Header.Get("Ce-Id")
			v.observe(c)
		}),
	}
	v.repeated, v.synced = true, true // what was there before is no news
	background(ctx, func(context.Context) error {
		_ = server.ServeTLS(listener, "", "") // until it is closed
		return nil
	})
	DeferCleanup(server.Close)
	return "https://" + listener.Addr().String(), string(certificate), true
}
