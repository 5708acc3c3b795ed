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

package subscriber_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/webhook"
)

// change changes the Secret hook-auth.
func (h *hooks) change(t *testing.T, change func(*corev1.Secret)) {
	t.Helper()
	g := NewWithT(t)
	auth, err := h.client.CoreV1().Secrets("shop").Get(t.Context(), "hook-auth", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	change(auth)
	g.Expect(h.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), auth, "shop")).To(Succeed())
}

// withURL puts a URL into the Secret hook-auth.
func (h *hooks) withURL(t *testing.T, url string) {
	t.Helper()
	h.change(t, func(s *corev1.Secret) { s.Data["url"] = []byte(url) })
}

// secretURL leaves the URL to the Secret.
func secretURL(d *plan.Delivery) {
	d.Subscriber.Webhook.URL = ""
}

func TestF6AURLMayBeInTheSecret(t *testing.T) {
	g := NewWithT(t)
	h := serve(t)
	h.withURL(t, h.server.URL+"/services/"+canary+"\n") // as of a file
	g.Expect(h.tell(t, secretURL)).To(Equal(plan.Attempt{}))
	g.Expect(h.only(t).header.Get("Authorization")).To(Equal("Bearer token-" + canary))
}

func TestF6AURLInTheSpecIsTheOne(t *testing.T) {
	g := NewWithT(t)
	h := serve(t)
	h.withURL(t, "https://elsewhere.example")
	g.Expect(h.tell(t)).To(Equal(plan.Attempt{}))
	h.only(t)
}

// Nothing of a URL in a Secret is told, not even its host, and the same is asked of it as of one in the spec.
func TestF6AURLInTheSecretIsKeptSecret(t *testing.T) {
	const name = "the URL in Secret hook-auth"
	loopback := func(t *testing.T, h *hooks) {
		t.Helper()
		guard, err := webhook.NewGuard(net.DefaultResolver, "10.96.0.1")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		h.send(t, guard)
	}
	for what, c := range map[string]struct {
		url     string // SERVER is that of the endpoint
		prepare func(*testing.T, *hooks)
		refused bool
		message string
	}{
		"there is none": {"", nil, true, "Secret hook-auth, which secretRef names, has no URL in its key url: " +
			"put the address of the webhook there, or write it into webhook.url"},
		"it is blank": {" \n", nil, true, "Secret hook-auth, which secretRef names, has no URL in its key url: " +
			"put the address of the webhook there, or write it into webhook.url"},
		"it is another kind of URL": {"postgres://user:" + canary + "@db-" + canary + "/shop", nil, true,
			name + ": the URL must begin with https://, or for a Service of the cluster with http://"},
		"it is no URL":      {"https://" + canary + ".example:%zz", nil, true, name + ": its URL is not valid"},
		"it has user info":  {"https://user:" + canary + "@" + canary + ".example", nil, true, name + ": the URL must have no user info: put a token into the Secret that secretRef names"},
		"it is plain":       {"http://" + canary + ".example", nil, true, name + ": http:// is for hosts that end in .svc or .svc.cluster.local: write https://"},
		"it is too long":    {"https://" + canary + ".example/" + strings.Repeat("a", 2048), nil, true, name + ": the URL must have at most 2048 characters"},
		"it must not be":    {"SERVER/" + canary, loopback, true, name + ": its host leads to a loopback address, where webhooks must not go: check the URL, and what its host resolves to"},
		"it is not allowed": {"SERVER/" + canary, allowing("hooks.example"), true, name + ": its host is not among those that the operator's flag --webhook-allowed-hosts allows"},
		"it is refused":     {"SERVER/" + canary, answering(http.StatusNotFound), true, name + " answered 404 Not Found: check the path of the URL, and whether the webhook was removed"},
		"it is unknown": {"https://" + canary + ".invalid/" + canary, nil, false,
			name + " is not known to DNS: check the spelling of the host, and that its Service is there"},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			h := serve(t)
			if c.prepare != nil {
				c.prepare(t, h)
			}
			h.withURL(t, strings.Replace(c.url, "SERVER", h.server.URL, 1))
			attempt := h.tell(t, secretURL)
			if what == "it is unknown" { // or there is no DNS here at all
				g.Expect(attempt.Message).To(HavePrefix(name + " "))
			} else {
				g.Expect(attempt.Message).To(Equal(c.message))
			}
			g.Expect(attempt.Refused).To(Equal(c.refused))
			g.Expect(attempt.Message).NotTo(Or(ContainSubstring(canary), ContainSubstring("127.0.0.1")))
		})
	}
}

// allowing lets webhooks go to these hosts only.
func allowing(hosts ...string) func(*testing.T, *hooks) {
	return func(t *testing.T, h *hooks) {
		t.Helper()
		sender, err := webhook.New(webhook.Options{Guard: anywhere, AllowedHosts: hosts})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		h.Sender = sender
	}
}

// Who may write a ConfigWatch must not have the identities of others sent to a server of theirs.
func TestF6IdentitiesOfKubernetesAreNeverSent(t *testing.T) {
	for _, kind := range []corev1.SecretType{corev1.SecretTypeServiceAccountToken, "bootstrap.kubernetes.io/token"} {
		g := NewWithT(t)
		h := serve(t)
		h.change(t, func(s *corev1.Secret) { s.Type = kind })
		g.Expect(h.tell(t)).To(Equal(plan.Attempt{Refused: true, Message: "reading Secret hook-auth, which secretRef names: it is of type " +
			string(kind) + ", and is never sent: put a token of the webhook's own into another Secret"}))
		g.Expect(h.got).To(BeEmpty())
	}
	for _, kind := range []corev1.SecretType{"", corev1.SecretTypeOpaque, corev1.SecretTypeTLS, "example.com/hook"} {
		g := NewWithT(t)
		h := serve(t)
		h.change(t, func(s *corev1.Secret) { s.Type = kind })
		g.Expect(h.tell(t)).To(Equal(plan.Attempt{}), string(kind))
	}
}
