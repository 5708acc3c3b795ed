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

package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"

	"github.com/ktechhub/configwatch/internal/access"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/stream"
	"github.com/ktechhub/configwatch/test/utils"
)

const samples = "../../config/samples/observers"

// The programs run as in a pod: with a token of the ServiceAccount, and the Roles, of the sample's rbac.yaml.
var _ = Describe("the sample observers, by the HTTP stream", Ordered, func() {
	var programs string // the folder of their binaries

	BeforeAll(func(ctx SpecContext) {
		programs = GinkgoT().TempDir()
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", programs+string(filepath.Separator), samples+"/...")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
	}, NodeTimeout(10*time.Minute))

	var served *replica
	BeforeEach(func(ctx SpecContext) {
		served = newReplica(ctx)
		applySample(ctx, "rbac.yaml")
	})

	// start starts a program, and waits until it serves HTTP.
	start := func(ctx SpecContext, program string, args ...string) *observer {
		GinkgoHelper()
		return startObserver(filepath.Join(programs, program), append(served.flags(ctx), args...)...)
	}

	It("hot-reload: reload without a restart (F8)", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Data("FEATURES", "").Obj())
		app := start(ctx, "hot-reload")
		Eventually(app.get).WithArguments("/readyz").Should(HaveField("Status", http.StatusOK))
		Expect(app.get("/")).To(HaveField("Body", "Hello\n"))

		set(ctx, "app-config", "FEATURES", "polite")
		Eventually(app.get).WithArguments("/").Should(HaveField("Body", "Good day to you\n"))

		By("keeping the last settings, whatever becomes of the ConfigMap")
		set(ctx, "app-config", "LOG_LEVEL", "loud")
		Eventually(app.session.Err).Should(gbytes.Say("The ConfigMap can't be used"))
		Expect(k8sClient.Delete(ctx, configMap("app-config"))).To(Succeed())
		Eventually(app.session.Err).Should(gbytes.Say("The ConfigMap is gone"))
		Expect(app.get("/")).To(HaveField("Body", "Good day to you\n"))

		By("catching up after a broken connection")
		served.relay.cut()
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "debug").Data("FEATURES", "").Obj())
		Eventually(app.session.Err).Should(gbytes.Say("No changes are heard of"))
		served.relay.restore()
		Eventually(app.get).WithArguments("/settings").Should(HaveField("Body", MatchJSON(`{"logLevel":"DEBUG","features":[]}`)))
		Expect(app.session.Err).To(gbytes.Say(`"resumed":true`))
		app.ends()
	})

	It("cache-invalidation: nobody gets what is older than the last change (F8)", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("a").Data("n", "1").Obj(), utils.MakeConfigMap("b").Data("n", "1").Obj())
		app := start(ctx, "cache-invalidation", "--api-server", plane.URL(), "--api-ca-file", served.apiCA)
		Eventually(app.session.Err).Should(gbytes.Say("Changes are heard of"))
		ask := func(name string) string {
			answer := app.get("/configmaps/" + name)
			return fmt.Sprintf("%s %d %s", answer.Header.Get("X-Cache"), answer.Status, strings.TrimSpace(answer.Body))
		}
		Eventually(ask).WithArguments("a").Should(Equal(`hit 200 {"n":"1"}`))
		Eventually(ask).WithArguments("b").Should(Equal(`hit 200 {"n":"1"}`))

		set(ctx, "a", "n", "2")
		Eventually(ask).WithArguments("a").Should(Equal(`hit 200 {"n":"2"}`))
		Expect(ask("b")).To(Equal(`hit 200 {"n":"1"}`), "it hasn't changed")
		Expect(k8sClient.Delete(ctx, configMap("a"))).To(Succeed())
		Eventually(ask).WithArguments("a").Should(Equal(" 404 there is no such ConfigMap"))

		By("keeping nothing while it is cut off")
		served.relay.cut()
		Eventually(app.session.Err).Should(gbytes.Say("No changes are heard of"))
		set(ctx, "b", "n", "2")
		Expect(ask("b")).To(Equal(`miss 200 {"n":"2"}`))
		Expect(ask("b")).To(Equal(`miss 200 {"n":"2"}`))
		served.relay.restore()
		Eventually(ask).WithArguments("b").Should(Equal(`hit 200 {"n":"2"}`))
		app.ends()
	})

	It("drift-alarm: an unexpected deletion is an alarm, in a gap too (F8)", func(ctx SpecContext) {
		create(ctx,
			utils.MakeConfigMap("kept").Obj(), utils.MakeConfigMap("planned").Label("deletion", "planned").Obj(),
			utils.MakeConfigMap("lost").Obj(), utils.MakeConfigMap("unheard").Obj())
		app := start(ctx, "drift-alarm", "--expect", "kept,missing")
		alarms := func() []string {
			return regexp.MustCompile(`name="(\w+)"} \d+`).FindAllString(app.get("/metrics").Body, -1)
		}
		Eventually(alarms).Should(HaveExactElements(`name="missing"} 1`))

		Expect(k8sClient.Delete(ctx, configMap("planned"))).To(Succeed())
		Expect(k8sClient.Delete(ctx, configMap("lost"))).To(Succeed())
		Eventually(alarms).Should(HaveExactElements(`name="lost"} 1`, `name="missing"} 1`))
		Expect(app.get("/metrics").Body).To(HaveSuffix("drift_alarm_connected 1\n"))

		served.stop()
		Eventually(func() string { return app.get("/metrics").Body }).Should(HaveSuffix("drift_alarm_connected 0\n"))
		Expect(k8sClient.Delete(ctx, configMap("unheard"))).To(Succeed())
		served.start(ctx)
		Eventually(alarms).Should(HaveExactElements(`name="lost"} 1`, `name="missing"} 1`, `name="unheard"} 1`))
		app.ends()
	})

	It("drift-alarm: ends with an exit code of its own, if it is told to", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("lost").Obj())
		app := start(ctx, "drift-alarm", "--once")
		Eventually(app.session.Err).Should(gbytes.Say("Changes are heard of"))
		Eventually(func() string { return app.get("/metrics").Body }).Should(HaveSuffix("drift_alarm_connected 1\n"))
		Expect(k8sClient.Delete(ctx, configMap("lost"))).To(Succeed())
		Eventually(app.session).Should(gexec.Exit(3))
		Expect(app.session.Err).To(gbytes.Say(`"level":"ERROR","msg":"Alarm: an object is gone that should be there","object":"ConfigMap %s/lost"`,
			namespace))
	})

	It("routing-table: changes make the table, and a gap rebuilds it whole (F8)", func(ctx SpecContext) {
		backend := func(name string) string {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
			DeferCleanup(server.Close)
			return server.URL
		}
		route := func(name, path, to string) *corev1.ConfigMap {
			return utils.MakeConfigMap(name).Label("route", "public").Data("path", path).Data("backend", to).Obj()
		}
		one, two := backend("one"), backend("two")
		create(ctx, route("all", "/", one), utils.MakeConfigMap("no-route").Data("path", "/x/").Obj())
		app := start(ctx, "routing-table")
		body := func(path string) string { return app.get(path).Body }
		Eventually(body).WithArguments("/shop/basket").Should(Equal("one"))

		create(ctx, route("shop", "/shop/", two))
		Eventually(body).WithArguments("/shop/basket").Should(Equal("two"))
		Expect(body("/")).To(Equal("one"))
		set(ctx, "all", "backend", two)
		Eventually(body).WithArguments("/").Should(Equal("two"))
		change(ctx, configMap("all"), func(c *corev1.ConfigMap) { c.Labels = nil })
		Eventually(body).WithArguments("/").Should(ContainSubstring("no route leads there"))

		served.stop()
		Expect(k8sClient.Delete(ctx, configMap("shop"))).To(Succeed())
		create(ctx, route("api", "/api/", one))
		Expect(body("/shop/basket")).To(Equal("two"), "the table from before is used meanwhile")
		served.start(ctx)
		Eventually(body).WithArguments("/api/").Should(Equal("one"))
		Expect(body("/shop/basket")).To(ContainSubstring("no route leads there"))
		app.ends()
	})

	It("are told which right is missing, and begin once it is granted (F8)", func(ctx SpecContext) {
		kubectl(ctx, nil, "delete", "rolebinding", "observer")
		app := start(ctx, "routing-table")
		Eventually(app.session.Err).Should(gbytes.Say(
			`403 Forbidden: configmaps is forbidden: .*system:serviceaccount:%s:observer.* cannot watch`, namespace))
		applySample(ctx, "rbac.yaml")
		Eventually(app.get).WithArguments("/-/readyz").Should(HaveField("Status", http.StatusOK))
		app.ends()
	})

	It("have a Deployment that the API server takes", func(ctx SpecContext) {
		kubectl(ctx, nil, "apply", "--dry-run=server", "-f", filepath.Join(samples, "deployment.yaml"))
	})
})

func applySample(ctx context.Context, file string) {
	GinkgoHelper()
	kubectl(ctx, nil, "apply", "-f", filepath.Join(samples, file))
}

// replica serves the stream of the test's namespace, as one of the operator does, behind a relay.
type replica struct {
	folder  string // with the certificate
	apiCA   string // the file with that of the API server
	options stream.Options
	relay   *relay
	// stop ends the server: one that is started then knows nothing of earlier streams.
	stop func()
}

func newReplica(ctx context.Context) *replica {
	GinkgoHelper()
	r := &replica{folder: GinkgoT().TempDir(), relay: newRelay()}
	r.writeCertificate()
	r.apiCA = filepath.Join(r.folder, "api-ca.crt")
	Expect(os.WriteFile(r.apiCA, plane.CA(), 0o600)).To(Succeed())

	config := plane.RESTConfig()
	clientset, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	httpClient, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	reviewer, err := access.NewReviewer(config, httpClient)
	Expect(err).NotTo(HaveOccurred())
	sources, err := source.NewCache(clientset, nil, []string{namespace}, digest.Keyed([]byte("a key of the test's own")))
	Expect(err).NotTo(HaveOccurred())
	history := feed.NewHistory(feed.NewBroker(clock.RealClock{}), stream.RecentChanges)
	Expect(history.Follow(sources, []string{namespace})).To(Succeed())
	background(ctx, sources.Start)
	Eventually(history.Ready).WithArguments(feed.Filter{Namespace: namespace}).Should(Succeed())
	r.options = stream.Options{
		CertDir: r.folder, History: history, Reviewer: reviewer, ConfigMaps: clientset.CoreV1(), Former: sources,
		Clock: clock.RealClock{}, Log: logr.Discard(),
	}
	r.start(ctx)
	return r
}

// writeCertificate writes one for the name that the stream's Service has, and its key.
func (r *replica) writeCertificate() {
	GinkgoHelper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("configwatch-stream.configwatch-system.svc", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(r.folder, "tls.crt"), certificate, 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(r.folder, "tls.key"), key, 0o600)).To(Succeed())
}

func (r *replica) start(ctx context.Context) {
	GinkgoHelper()
	r.options.BindAddress = freeAddress()
	r.stop = background(ctx, stream.New(r.options).Start)
	Eventually(func() error {
		conn, err := net.Dial("tcp", r.options.BindAddress)
		if err == nil {
			err = conn.Close()
		}
		return err
	}).Should(Succeed())
	r.relay.lead(r.options.BindAddress)
}

// flags are those that lead a program to the stream, as the ServiceAccount.
func (r *replica) flags(ctx context.Context) []string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "observer"}}
	Expect(k8sClient.SubResource("token").Create(ctx, account, request)).To(Succeed())
	token := filepath.Join(r.folder, "token")
	Expect(os.WriteFile(token, []byte(request.Status.Token), 0o600)).To(Succeed())
	return []string{
		"--stream", "https://" + r.relay.listener.Addr().String(), "--server-name", "configwatch-stream.configwatch-system.svc",
		"--token-file", token, "--ca-file", filepath.Join(r.folder, "tls.crt"), "--namespace", namespace, "--listen", "127.0.0.1:0",
	}
}

// background runs something until it is stopped, at the end of the test at the latest.
func background(ctx context.Context, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		GinkgoHelper()
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	})
	DeferCleanup(stop)
	return stop
}

// relay passes connections on to where it leads, until they are cut.
type relay struct {
	listener net.Listener

	mu    sync.Mutex
	to    string
	down  bool
	conns map[net.Conn]bool
}

func newRelay() *relay {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	r := &relay{listener: listener, conns: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go r.pass(conn)
		}
	}()
	DeferCleanup(func() {
		Expect(listener.Close()).To(Succeed())
		r.cut()
	})
	return r
}

func (r *relay) lead(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

// cut closes all connections, and every new one until it is restored.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = true
	for conn := range r.conns {
		_ = conn.Close()
	}
}

func (r *relay) restore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = false
}

// keep keeps a connection, to be cut.
func (r *relay) keep(conn net.Conn) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return errors.New("the relay is down")
	}
	r.conns[conn] = true
	return nil
}

func (r *relay) pass(near net.Conn) {
	defer near.Close()
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	if errors.Join(r.keep(near), r.keep(far)) != nil {
		return
	}
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

// observer is a sample that runs.
type observer struct {
	session *gexec.Session
	url     string
}

// startObserver starts a program, and waits until it serves HTTP.
func startObserver(program string, args ...string) *observer {
	GinkgoHelper()
	session, err := gexec.Start(exec.Command(program, args...), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait() })
	Eventually(session.Err).Should(gbytes.Say(`"msg":"Serving","address":"[^"]+"`))
	address := regexp.MustCompile(`"address":"([^"]+)"`).FindSubmatch(session.Err.Contents())
	return &observer{session: session, url: "http://" + string(address[1])}
}

// answered is what an observer answered.
type answered struct {
	Status int
	Header http.Header
	Body   string
}

// get asks the observer, which must still run.
func (o *observer) get(path string) answered {
	GinkgoHelper()
	Expect(o.session.ExitCode()).To(Equal(-1), "it runs, and was not restarted")
	response, err := http.Get(o.url + path)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return answered{response.StatusCode, response.Header, string(body)}
}

// ends has it end as a pod does.
func (o *observer) ends() {
	GinkgoHelper()
	o.session.Terminate()
	Eventually(o.session).Should(gexec.Exit(0))
}
