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
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/test/utils"
)

const (
	hookToken = "hook-token-canary"
	hookKey   = "hook-key-canary"
)

// hook is an HTTPS endpoint of the test, on an address of this machine that is not loopback.
type hook struct {
	address     string
	certificate tls.Certificate
	bundle      string
	server      *http.Server

	mu  sync.Mutex
	got []hookRequest
}

// hookRequest is a request that it took.
type hookRequest struct {
	header http.Header
	body   string
}

// String is such as "Modified ConfigMap/app-config".
func (r hookRequest) String() string {
	said := map[string]any{}
	if err := json.Unmarshal([]byte(r.body), &said); err != nil {
		return err.Error()
	}
	event, _ := said["event"].(string)
	return event + " " + r.header.Get("Ce-Subject")
}

// hash is that of the content in its data.
func (r hookRequest) hash() string {
	said := map[string]any{}
	_ = json.Unmarshal([]byte(r.body), &said)
	hash, _ := said["hash"].(string)
	return hash
}

func newHook() *hook {
	GinkgoHelper()
	ip, err := utils.OwnAddress()
	if errors.Is(err, utils.ErrNoAddress) {
		Skip("NOT TESTED: webhooks can't be told, as " + err.Error() + " (F7)")
	}
	Expect(err).NotTo(HaveOccurred())
	certificate, key, err := certutil.GenerateSelfSignedCertKey(ip.String(), []net.IP{ip}, nil)
	Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(certificate, key)
	Expect(err).NotTo(HaveOccurred())
	h := &hook{address: net.JoinHostPort(ip.String(), "0"), certificate: pair, bundle: string(certificate)}
	h.up()
	DeferCleanup(h.down)
	return h
}

// up lets it take requests, at the address that it had before.
func (h *hook) up() {
	GinkgoHelper()
	listener, err := net.Listen("tcp", h.address)
	Expect(err).NotTo(HaveOccurred())
	h.address = listener.Addr().String()
	h.server = &http.Server{
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.got = append(h.got, hookRequest{r.Header, string(body)})
		}),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{h.certificate}}, ErrorLog: log.New(io.Discard, "", 0),
	}
	server := h.server
	go func() { _ = server.ServeTLS(listener, "", "") }()
}

// down closes it, with all connections.
func (h *hook) down() {
	_ = h.server.Close()
}

// requests are those that it took.
func (h *hook) requests() []hookRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

// told is what it was told, each as a line.
func (h *hook) told() []string {
	var said []string
	for _, r := range h.requests() {
		said = append(said, r.String())
	}
	return said
}

// subscriber is one that is told there, of these events or the default ones.
func (h *hook) subscriber(events ...v1alpha1.SubscriberEvent) v1alpha1.Subscriber {
	return v1alpha1.Subscriber{Name: "cache", Events: events, Webhook: v1alpha1.Webhook{
		URL: "https://" + h.address + "/hook", SecretRef: &v1alpha1.SecretReference{Name: "hook-auth"},
	}}
}

// subscriberRow is the row of the subscriber, empty if there is none.
func subscriberRow(ctx context.Context) v1alpha1.SubscriberStatus {
	GinkgoHelper()
	if rows := status(ctx, "web").Subscribers; len(rows) == 1 {
		return rows[0]
	}
	return v1alpha1.SubscriberStatus{}
}

var _ = Describe("A subscriber", func() {
	var endpoint *hook

	BeforeEach(func(ctx SpecContext) {
		endpoint = newHook()
		create(ctx, utils.MakeSecret("hook-auth").Data("token", hookToken).Data("hmacKey", hookKey).Data("ca.crt", endpoint.bundle).Obj(),
			utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(), utils.MakeSecret("credentials").Data("password", "before").Obj(),
			utils.MakeDeployment("web").EnvFromConfigMap("app-config").Obj())
	})

	watching := func() *utils.ConfigWatchBuilder {
		return utils.MakeConfigWatch("web").ConfigMap("app-config").Secret("credentials").ConfigMap("features").Target(deployment, "web")
	}

	It("is told of what is created, changed and deleted, in this order and signed (F6)", func(ctx SpecContext) {
		establish(ctx, watching().Subscriber(endpoint.subscriber()))
		mark := since()
		create(ctx, utils.MakeConfigMap("features").Data("new", "on").Obj())
		Eventually(endpoint.told).Should(HaveLen(1))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(endpoint.told).Should(HaveLen(2))
		setSecret(ctx, "credentials", "password", "after")
		Eventually(endpoint.told).Should(HaveLen(3))
		Expect(k8sClient.Delete(ctx, configMap("features"))).To(Succeed())
		Eventually(endpoint.told).Should(Equal([]string{
			"Added ConfigMap/features", "Modified ConfigMap/app-config", "Modified Secret/credentials", "Deleted ConfigMap/features",
		}))
		Eventually(subscriberRow).WithArguments(ctx).Should(SatisfyAll(HaveField("Waiting", BeEmpty()), HaveField("LastDeliveryTime", Not(BeNil()))))

		modified := endpoint.requests()[1]
		config := reload(ctx, configMap("app-config"))
		id := string(config.UID) + "/" + config.ResourceVersion
		for name, value := range map[string]string{
			"Ce-Specversion": "1.0", "Ce-Type": "io.ktechhub.configwatch.source.modified.v1", "Ce-Id": id,
			"Ce-Source": "/namespaces/" + namespace + "/configmaps/app-config", "Authorization": "Bearer " + hookToken, "Webhook-Id": id,
		} {
			Expect(modified.header.Get(name)).To(Equal(value), name)
		}
		mac := hmac.New(sha256.New, []byte(hookKey))
		mac.Write([]byte(id + "." + modified.header.Get("Webhook-Timestamp") + "." + modified.body))
		Expect(modified.header.Get("Webhook-Signature")).To(Equal("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))))
		Expect(modified.body).To(MatchJSON(`{"event":"Modified","namespace":"` + namespace + `","kind":"ConfigMap","name":"app-config",
			"hash":"` + hashOf("LOG_LEVEL", "debug") + `","previousHash":"` + hashOf("LOG_LEVEL", "info") + `","changedKeys":["LOG_LEVEL"]}`))

		By("reading no more for that than the one Secret, by a right that the operator has anyway (RBAC)")
		read, err := audit.Since(mark, func(r utils.Request) bool {
			return r.User == utils.ManagerUser && r.Namespace == namespace && (r.Resource == "secrets" || r.Resource == "configmaps")
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(read).To(HaveLen(4))
		Expect(read).To(HaveEach(SatisfyAll(HaveField("Verb", "list"), HaveField("Resource", "secrets"), HaveField("Code", http.StatusOK),
			HaveField("URI", HaveSuffix("/secrets?fieldSelector=metadata.name%3Dhook-auth")))))
		for _, secret := range []string{hookToken, hookKey, "after"} {
			Expect(manager.Log()).NotTo(ContainSubstring(secret))
		}
	})

	It("is told of restarts (F6)", func(ctx SpecContext) {
		establish(ctx, watching().Subscriber(endpoint.subscriber(v1alpha1.SubscriberRestartTriggered)))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(endpoint.told).Should(Equal([]string{"RestartTriggered Deployment/web"}))
		Expect(endpoint.requests()[0].body).To(MatchJSON(`{"event":"RestartTriggered","namespace":"` + namespace + `","configWatch":"web",
			"target":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"restart":1,"cause":"ConfigMap app-config changed (LOG_LEVEL)"}`))
	})

	It("gets the data of ConfigMaps if it asks for it, and never that of Secrets (F6)", func(ctx SpecContext) {
		subscriber := endpoint.subscriber()
		subscriber.Webhook.Payload = v1alpha1.PayloadData
		establish(ctx, watching().Subscriber(subscriber))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		setSecret(ctx, "credentials", "password", "password-canary")
		Eventually(endpoint.told).Should(ConsistOf("Modified ConfigMap/app-config", "Modified Secret/credentials"))
		for _, r := range endpoint.requests() {
			if strings.HasSuffix(r.String(), "app-config") {
				Expect(r.body).To(ContainSubstring(`"data":{"LOG_LEVEL":"debug"}`))
			} else {
				Expect(r.body).To(And(Not(ContainSubstring(`"data"`)), Not(ContainSubstring("canary"))))
			}
		}
	})

	It("that was down is told the latest of each source, once, though the operator was killed meanwhile (F6)", func(ctx SpecContext) {
		insteadOfManager()
		m := run(ctx, kubeconfig)
		DeferCleanup(func() { m.Stop() })
		establishWith(ctx, watching().Subscriber(endpoint.subscriber()))
		endpoint.down()
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(subscriberRow).WithArguments(ctx).Should(SatisfyAll(HaveField("Failures", BeNumerically(">", 0)),
			HaveField("Message", HavePrefix("https://"+endpoint.address+" refused the connection")), HaveField("NextAttemptTime", Not(BeNil()))))
		m.Kill()
		set(ctx, "app-config", "LOG_LEVEL", "trace")
		set(ctx, "app-config", "LOG_LEVEL", "warn")
		setSecret(ctx, "credentials", "password", "after")
		create(ctx, utils.MakeConfigMap("features").Data("new", "on").Obj())
		m = run(ctx, kubeconfig)
		Eventually(subscriberRow).WithArguments(ctx).Should(HaveField("Waiting", HaveLen(3)))
		endpoint.up()
		Eventually(endpoint.told).WithTimeout(time.Minute).Should(Equal([]string{
			"Modified ConfigMap/app-config", "Modified Secret/credentials", "Added ConfigMap/features",
		}))
		Eventually(subscriberRow).WithArguments(ctx).Should(SatisfyAll(HaveField("Waiting", BeEmpty()), HaveField("Failures", int32(0)),
			HaveField("Message", BeEmpty())))
		Expect(endpoint.requests()[0].hash()).To(Equal(hashOf("LOG_LEVEL", "warn")))
		Consistently(endpoint.told).WithTimeout(steadyWhile).Should(HaveLen(3))
	}, SpecTimeout(3*time.Minute))

	It("at a loopback address is refused, and that is said (F7)", func(ctx SpecContext) {
		subscriber := endpoint.subscriber()
		subscriber.Webhook.URL = "https://127.0.0.1:8443/hook?key=canary"
		establish(ctx, watching().Subscriber(subscriber))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		const said = "https://127.0.0.1:8443: its host leads to 127.0.0.1, which is a loopback address, where webhooks must not go: " +
			"check the URL, and what its host resolves to"
		Eventually(subscriberRow).WithArguments(ctx).Should(SatisfyAll(HaveField("Message", said), HaveField("Refusals", BeNumerically(">", 0))))

		By("stalling after five attempts, which take about half a minute")
		const stalled = "subscriber cache could not be told of events in 5 attempts, and is tried again every 5 minutes: " + said
		Eventually(condition).WithTimeout(time.Minute).WithArguments(ctx, "web", v1alpha1.ConditionStalled).Should(SatisfyAll(
			HaveField("Reason", v1alpha1.ReasonSubscriberRefuses), HaveField("Message", stalled)))
		Eventually(notes).WithArguments(ctx, v1alpha1.EventStalled).Should(Equal([]string{"ConfigWatch: SubscriberRefuses: " + stalled}))
		Expect(manager.Log()).NotTo(ContainSubstring("key=canary"))

		By("going on once it is mended, at once")
		change(ctx, utils.MakeConfigWatch("web").Namespace(namespace).Obj(), func(cw *v1alpha1.ConfigWatch) {
			cw.Spec.Subscribers[0].Webhook.URL = endpoint.subscriber().Webhook.URL
		})
		Eventually(endpoint.told).Should(Equal([]string{"Modified ConfigMap/app-config"}))
		Eventually(condition).WithArguments(ctx, "web", v1alpha1.ConditionStalled).Should(HaveField("Reason", BeEmpty()))
	}, SpecTimeout(2*time.Minute))

	It("may have its URL in a Secret, of which nothing is shown (F6)", func(ctx SpecContext) {
		const path = "url-canary"
		insteadOfManager()
		address := freeAddress()
		m := run(ctx, kubeconfig, "--metrics-bind-address="+address, "--metrics-secure=false", "--zap-log-level=5")
		DeferCleanup(func() { m.Stop() })
		change(ctx, secret("hook-auth"), func(s *corev1.Secret) {
			s.Data["url"] = []byte("https://127.0.0.1:8443/services/" + path)
		})
		subscriber := endpoint.subscriber()
		subscriber.Webhook.URL = ""
		establishWith(ctx, watching().Subscriber(subscriber))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(subscriberRow).WithArguments(ctx).Should(HaveField("Message", "the URL in Secret hook-auth: its host leads to "+
			"a loopback address, where webhooks must not go: check the URL, and what its host resolves to"))

		By("being told once it is mended")
		change(ctx, secret("hook-auth"), func(s *corev1.Secret) {
			s.Data["url"] = []byte("https://" + endpoint.address + "/services/" + path + "\n")
		})
		Eventually(endpoint.told).WithTimeout(time.Minute).Should(Equal([]string{"Modified ConfigMap/app-config"}))
		Eventually(subscriberRow).WithArguments(ctx).Should(HaveField("Waiting", BeEmpty()))
		metrics := get("http://" + address + "/metrics")
		Expect(metrics).To(ContainSubstring(`configwatch_delivery_seconds_count{result="delivered"} 1`))
		for what, text := range map[string]string{
			"metrics": metrics, "log": m.Log(), "status": fmt.Sprintf("%+v", status(ctx, "web")),
			"Events": strings.Join(notes(ctx, v1alpha1.EventStalled), " "),
		} {
			Expect(text).NotTo(ContainSubstring(path), what)
			Expect(text).NotTo(ContainSubstring(endpoint.address), what)
		}
	}, SpecTimeout(2*time.Minute))

	It("is told in mode Observe, in which nothing is restarted (E19)", func(ctx SpecContext) {
		observing := utils.MakeConfigWatch("web").Mode(v1alpha1.ModeObserve).ConfigMap("app-config").Subscriber(endpoint.subscriber())
		observing.Obj().Spec.Rollout = v1alpha1.RolloutSpec{} // which this mode takes none of
		restarts := restartsOf(ctx, deployment, "web")
		establish(ctx, observing)
		Expect(status(ctx, "web").Targets).To(BeEmpty())
		Expect(condition(ctx, "web", v1alpha1.ConditionReady)).To(SatisfyAll(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonObserving)))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(endpoint.told).Should(Equal([]string{"Modified ConfigMap/app-config"}))

		By("restarting nothing when the mode is Active, and then what changes")
		change(ctx, observing.Obj(), func(cw *v1alpha1.ConfigWatch) { cw.Spec.Mode = v1alpha1.ModeActive })
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Sources", HaveLen(1)))
		expectRestarts(ctx, restarts, 0)
		set(ctx, "app-config", "LOG_LEVEL", "trace")
		expectRestarts(ctx, restarts, 1)

		By("dropping the rows when it is Observe again")
		change(ctx, observing.Obj(), func(cw *v1alpha1.ConfigWatch) { cw.Spec.Mode = v1alpha1.ModeObserve })
		Eventually(status).WithArguments(ctx, "web").Should(HaveField("Targets", BeEmpty()))
		Eventually(endpoint.told).Should(Equal([]string{"Modified ConfigMap/app-config", "Modified ConfigMap/app-config"}))
	})

	It("is refused the identity of a ServiceAccount (F6)", func(ctx SpecContext) {
		create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder"}}, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "builder-token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "builder"}},
			Type:       corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte(hookToken), "ca.crt": []byte(endpoint.bundle)},
		})
		subscriber := endpoint.subscriber()
		subscriber.Webhook.SecretRef.Name = "builder-token"
		establish(ctx, watching().Subscriber(subscriber))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(subscriberRow).WithArguments(ctx).Should(HaveField("Message", "reading Secret builder-token, which secretRef names: "+
			"it is of type kubernetes.io/service-account-token, and is never sent: put a token of the webhook's own into another Secret"))
		Expect(endpoint.told()).To(BeEmpty())
	})

	It("costs no request while nothing changes (E28)", func(ctx SpecContext) {
		establish(ctx, watching().Subscriber(endpoint.subscriber()))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(subscriberRow).WithArguments(ctx).Should(SatisfyAll(HaveField("LastDeliveryTime", Not(BeNil())), HaveField("Waiting", BeEmpty())))
		settle(ctx)
		mark := since()
		Consistently(idleRequests).WithArguments(mark).WithTimeout(steadyWhile).Should(BeEmpty())
	})
})

// establishWith is establish where it is not the shared manager that is at work.
func establishWith(ctx context.Context, b *utils.ConfigWatchBuilder) {
	GinkgoHelper()
	create(ctx, b.Obj())
	Eventually(status).WithArguments(ctx, b.Obj().Name).Should(HaveField("ObservedGeneration", int64(1)))
}

// hashOf is that of a ConfigMap with one key.
func hashOf(key, value string) string {
	return string(digest.Plain().Content(map[string]string{key: value}, nil).Hash(nil))
}
