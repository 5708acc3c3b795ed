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

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"github.com/tmaxmax/go-sse"
	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/test/utils"
)

// observed is the ConfigMap whose changes are observed.
const observed = "session"

var _ = Describe("Observers", Ordered, func() {
	var (
		plugin string
		stream *operatorStream
		hooks  *utils.Endpoint
		// slow is what a slow receiver waits for: a while, or the end of the test. waited is how often it has.
		slow   func(path string)
		waited atomic.Int32
	)

	BeforeAll(func(ctx SpecContext) {
		var err error
		plugin, err = utils.BuildPlugin(ctx)
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(10*time.Minute))

	BeforeEach(func(ctx SpecContext) {
		insteadOfManager()
		stream = newOperatorStream()
		m := run(ctx, stream.args...)
		DeferCleanup(m.Stop)
		waited.Store(0)
		over := make(chan struct{})
		DeferCleanup(func() { close(over) })
		slow = func(path string) {
			if path == "/slow" {
				select {
				case <-time.After(10 * time.Second):
				case <-over:
				}
				waited.Add(1)
			}
		}
		hooks = newEndpoint(slow)
		create(ctx, utils.MakeSecret("hook-auth").Data("ca.crt", hooks.CA).Obj())
		Eventually(func() error { // one more, that the controller manager creates
			return utils.Reload(ctx, k8sClient, utils.MakeConfigMap("kube-root-ca.crt").Namespace(here.Name).Obj())
		}).Should(Succeed())
	})

	// tail runs kubectl configwatch tail until the test ends, and waits until it watches.
	tail := func(args ...string) *gexec.Session {
		GinkgoHelper()
		args = append([]string{"tail", "--kubeconfig", plane.Kubeconfig(), "-n", here.Name, "--kind", "ConfigMap"}, args...)
		session, err := gexec.Start(exec.Command(plugin, args...), GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { session.Kill().Wait() })
		Eventually(session.Err).Should(gbytes.Say("^Watching ConfigMaps in namespace " + here.Name))
		return session
	}
	write := func(ctx SpecContext, value string) {
		GinkgoHelper()
		change(ctx, utils.MakeConfigMap(observed).Obj(), func(c *corev1.ConfigMap) { c.Data["LOG_LEVEL"] = value })
	}
	subscribe := func(ctx SpecContext, subscribers ...v1alpha1.Subscriber) {
		GinkgoHelper()
		cw := utils.MakeConfigWatch("session").ConfigMap(observed).Mode(v1alpha1.ModeSuspended)
		for _, subscriber := range subscribers {
			cw.Subscriber(subscriber)
		}
		create(ctx, cw.Obj())
		Eventually(func(g Gomega) {
			status, err := here.Status(ctx, "session")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status.Subscribers).To(HaveLen(len(subscribers)))
		}).Should(Succeed())
	}

	It("log, count and filter what is created, updated and deleted, whichever way they are told (F6, F8, F10)", func(ctx SpecContext) {
		byStream := stream.flags()
		ways := map[string]*way{"the API server": {}, "the stream": {}}
		for name, w := range ways {
			var more []string
			if name == "the stream" {
				more = byStream
			}
			w.logger, w.counter = lines(tail(more...)), lines(tail(append(more, "--count")...))
			w.filter = lines(tail(append(more, "--events", "Added")...))
		}
		subscribe(ctx, hookAt(hooks, "all"), hookAt(hooks, "filter", v1alpha1.SubscriberAdded))
		counted := func(added, modified, deleted int) string {
			return fmt.Sprintf("%d ConfigMaps, 0 Secrets; %d added, %d modified, %d deleted, 0 lost", 2+added-deleted, added, modified, deleted)
		}
		name := here.Name + "/" + observed

		By("creating: the logger, the counter and the filter react")
		create(ctx, utils.MakeConfigMap(observed).Data("LOG_LEVEL", "info").Obj())
		log := []string{"Added ConfigMap " + name + " (LOG_LEVEL)"}
		for way, w := range ways {
			Eventually(w.logger).Should(Equal(log), way)
			Eventually(w.counter).Should(ContainElement(counted(1, 0, 0)), way)
			Eventually(w.filter).Should(Equal(log), way)
		}
		Eventually(hooks.Calls).WithArguments("/all").Should(Equal([]string{"Added ConfigMap/session"}))
		Eventually(hooks.Calls).WithArguments("/filter").Should(Equal([]string{"Added ConfigMap/session"}))

		By("updating: the logger and the counter react")
		write(ctx, "debug")
		filtered := slices.Clone(log)
		log = append(log, "Modified ConfigMap "+name+" (LOG_LEVEL)")
		for way, w := range ways {
			Eventually(w.logger).Should(Equal(log), way)
			Eventually(w.counter).Should(ContainElement(counted(1, 1, 0)), way)
		}
		Eventually(hooks.Calls).WithArguments("/all").Should(Equal([]string{"Added ConfigMap/session", "Modified ConfigMap/session"}))

		By("deleting: the logger and the counter react, and the filter has been silent since the creation")
		Expect(k8sClient.Delete(ctx, utils.MakeConfigMap(observed).Namespace(here.Name).Obj())).To(Succeed())
		log = append(log, "Deleted ConfigMap "+name+" (LOG_LEVEL)")
		for way, w := range ways {
			Eventually(w.logger).Should(Equal(log), way)
			Eventually(w.counter).Should(ContainElement(counted(1, 1, 1)), way)
		}
		Eventually(hooks.Calls).WithArguments("/all").Should(Equal([]string{
			"Added ConfigMap/session", "Modified ConfigMap/session", "Deleted ConfigMap/session",
		}))
		create(ctx, utils.MakeConfigMap("last").Data("a", "1").Obj()) // comes after whatever a filter could have shown
		filtered = append(filtered, "Added ConfigMap "+here.Name+"/last (a)")
		for way, w := range ways {
			Eventually(w.filter).Should(Equal(filtered), way)
		}
		Consistently(hooks.Calls).WithArguments("/filter").Should(HaveLen(1))
	}, SpecTimeout(5*time.Minute))

	It("are not delayed by others that take 10 seconds for each event (F2, F6, F8)", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap(observed).Data("LOG_LEVEL", "info").Obj())
		subscribe(ctx, hookAt(hooks, "fast"), hookAt(hooks, "slow"))
		reader := stream.read(ctx, here.Name)
		By("adding slow ones: a stopped tail by each way, a client of the stream, and the slow subscriber")
		for _, session := range []*gexec.Session{tail(), tail(stream.flags()...)} {
			session.Signal(syscall.SIGSTOP)
		}
		stream.readSlowly(ctx, here.Name)
		written := 0
		changed := func() time.Duration {
			GinkgoHelper()
			written++
			began := time.Now()
			write(ctx, strconv.Itoa(written))
			var at time.Time
			Eventually(reader).Should(Receive(&at))
			return at.Sub(began)
		}
		toldFast := func() {
			GinkgoHelper()
			Eventually(hooks.Bodies).WithArguments("/fast").Should(ContainElement(ContainSubstring(hashOf(strconv.Itoa(written)))))
		}
		changed()
		Eventually(hooks.Calls).WithArguments("/slow").ShouldNot(BeEmpty())

		By("changing more while the slow subscriber is being told of the first change")
		for range 3 {
			changed()
			toldFast()
		}
		Expect(waited.Load()).To(BeZero(), "they have not waited for it")

		By("changing more than the slow ones take in")
		var took []time.Duration
		for range 20 {
			took = append(took, changed())
		}
		toldFast()
		slices.Sort(took)
		AddReportEntry("median from a write to a client of the stream", took[len(took)/2])
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("A subscriber", func() {
	It("is told of what becomes of restarts (F6)", func(ctx SpecContext) {
		hooks := newEndpoint(nil)
		create(ctx, utils.MakeSecret("hook-auth").Data("ca.crt", hooks.CA).Obj(),
			utils.MakeDeployment("app").EnvFromConfigMap("app-config").ProgressDeadline(2).Replicas(2).Obj(),
			utils.MakeConfigWatch("app").Target(deployment, "app").Subscriber(hookAt(hooks, "rollouts",
				v1alpha1.SubscriberRestartTriggered, v1alpha1.SubscriberRolloutCompleted, v1alpha1.SubscriberRolloutFailed)).Obj())
		expectRow(ctx, deployment, v1alpha1.TargetUpToDate, v1alpha1.ReasonBaseline, Not(BeNil()))
		told := func() []string { return hooks.Calls("/rollouts") }

		By("rolling out")
		set(ctx, "debug")
		want := []string{"RestartTriggered Deployment/app", "RolloutCompleted Deployment/app"}
		Eventually(told).Should(Equal(want))

		By("failing to")
		cordon(ctx, true)
		DeferCleanup(func(ctx SpecContext) { cordon(ctx, false) })
		set(ctx, "trace")
		want = append(want, "RestartTriggered Deployment/app", "RolloutFailed Deployment/app")
		Eventually(told).Should(Equal(want))
		bodies := hooks.Bodies("/rollouts")
		for n, outcome := range []string{"", "", "", "Progress deadline exceeded"} {
			Expect(bodies[n]).To(SatisfyAll(
				ContainSubstring(`"restart":%d`, n/2+1), ContainSubstring(`"cause":"`+changed+`"`), ContainSubstring(outcome)))
		}

		By("recovering: the rollout is completed after all")
		cordon(ctx, false)
		want = append(want, "RolloutCompleted Deployment/app")
		Eventually(told).Should(Equal(want))
		Consistently(told).Should(Equal(want))
	}, SpecTimeout(3*time.Minute))
})

// way is the three reference observers, told in one way.
type way struct {
	logger, counter, filter func() []string
}

// hashOf is that of the observed ConfigMap with a value.
func hashOf(value string) string {
	return string(digest.Plain().Content(map[string]string{"LOG_LEVEL": value}, nil).Hash(nil))
}

// lines are what a session wrote, without the times.
func lines(session *gexec.Session) func() []string {
	return func() []string {
		found := []string{}
		for line := range strings.Lines(string(session.Out.Contents())) {
			_, after, _ := strings.Cut(strings.TrimSpace(line), " ")
			found = append(found, strings.Join(strings.Fields(after), " "))
		}
		return found
	}
}

func newEndpoint(answer func(path string)) *utils.Endpoint {
	GinkgoHelper()
	endpoint, err := utils.NewEndpoint(answer)
	if errors.Is(err, utils.ErrNoAddress) {
		Skip("NOT TESTED: " + err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(endpoint.Close)
	return endpoint
}

// hookAt is a subscriber that is told at a path of its name, of these events or the default ones.
func hookAt(endpoint *utils.Endpoint, name string, events ...v1alpha1.SubscriberEvent) v1alpha1.Subscriber {
	return v1alpha1.Subscriber{Name: name, Events: events, Webhook: v1alpha1.Webhook{
		URL: endpoint.URL + "/" + name, SecretRef: &v1alpha1.SecretReference{Name: "hook-auth"},
	}}
}

// operatorStream is where a manager serves its stream.
type operatorStream struct {
	address, ca string
	args        []string
}

// streamName is the host in its certificate.
const streamName = "configwatch-stream.configwatch-system.svc"

func newOperatorStream() *operatorStream {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(streamName, nil, nil)
	Expect(err).NotTo(HaveOccurred())
	s := &operatorStream{ca: filepath.Join(folder, "tls.crt")}
	Expect(os.WriteFile(s.ca, certificate, 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)).To(Succeed())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	s.address = listener.Addr().String()
	Expect(listener.Close()).To(Succeed())
	s.args = []string{"--stream-bind-address=" + s.address, "--stream-cert-path=" + folder}
	return s
}

// flags lead the kubectl plugin there.
func (s *operatorStream) flags() []string {
	return []string{"--stream", "https://" + s.address, "--stream-server-name", streamName, "--stream-ca", s.ca}
}

// get opens the stream of the observed ConfigMap, until the test ends.
func (s *operatorStream) get(ctx context.Context, namespace string) io.Reader {
	GinkgoHelper()
	certificates, err := os.ReadFile(s.ca)
	Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(certificates)).To(BeTrue())
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: streamName, MinVersion: tls.VersionTLS12},
	}}
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	url := "https://" + s.address + "/v1/namespaces/" + namespace + "/changes?kind=ConfigMap&name=" + observed
	request, err := http.NewRequestWithContext(reading, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+plane.RESTConfig().BearerToken)
	response, err := client.Do(request) //nolint:bodyclose // by the cleanup
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(response.Body.Close)
	Expect(response.StatusCode).To(Equal(http.StatusOK))
	return response.Body
}

// read is when each event arrives.
func (s *operatorStream) read(ctx context.Context, namespace string) <-chan time.Time {
	GinkgoHelper()
	arrived := make(chan time.Time, 1000)
	body := s.get(ctx, namespace)
	go func() {
		for e, err := range sse.Read(body, nil) {
			if err != nil {
				return // the test is over
			}
			if e.Type != "" {
				arrived <- time.Now()
			}
		}
	}()
	return arrived
}

// readSlowly takes in nothing: 10 seconds for an event are longer than the test makes changes.
func (s *operatorStream) readSlowly(ctx context.Context, namespace string) {
	GinkgoHelper()
	s.get(ctx, namespace)
}
