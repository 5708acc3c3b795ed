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
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/subscriber"
	"github.com/ktechhub/configwatch/internal/webhook"
)

// canary is in every value that must not show.
const canary = "canary-5f2e"

// received is a request that an endpoint got.
type received struct {
	header http.Header
	body   string
}

// hooks is an HTTPS endpoint, and the Webhooks that tell it.
type hooks struct {
	*subscriber.Webhooks
	server  *httptest.Server
	client  *fake.Clientset
	sources known
	lists   []string

	mu     sync.Mutex
	got    []received
	answer func(http.ResponseWriter)
}

// known are the sources in the cache.
type known map[source.Ref]*source.Source

func (k known) Get(namespace string, ref source.Ref) *source.Source {
	if namespace != "shop" {
		return nil
	}
	return k[ref]
}

// serve starts an endpoint. The objects are in the API server, beside the Secret hook-auth.
func serve(t *testing.T, objects ...runtime.Object) *hooks {
	t.Helper()
	h := &hooks{answer: func(http.ResponseWriter) {}}
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got = append(h.got, received{r.Header, string(body)})
		h.answer(w)
	}))
	h.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.server.StartTLS()
	t.Cleanup(h.server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})
	h.client = fake.NewClientset(append(objects, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook-auth"},
		Data: map[string][]byte{
			"token": []byte("token-" + canary), "hmacKey": []byte("key-" + canary), "ca.crt": bundle, "else": []byte(canary),
		},
	}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "another"}})...)
	h.client.PrependReactor("list", "*", h.list)
	h.sources = known{{Kind: v1alpha1.ConfigMap, Name: "app-config"}: {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "demo"}}}}
	h.Webhooks = subscriber.NewWebhooks(h.client, h.sources, nil)
	h.send(t, anywhere)
	return h
}

// anywhere lets requests go to the endpoint of a test.
func anywhere(context.Context, netip.Addr) error { return nil }

// send makes what sends requests, with that guard.
func (h *hooks) send(t *testing.T, guard webhook.Guard) {
	t.Helper()
	sender, err := webhook.New(webhook.Options{Guard: guard, Timeout: 5 * time.Second})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	h.Sender = sender
}

// list selects by fields, which the fake client leaves to the server.
func (h *hooks) list(action k8stesting.Action) (bool, runtime.Object, error) {
	list, _ := action.(k8stesting.ListAction)
	selector := list.GetListRestrictions().Fields
	h.mu.Lock()
	h.lists = append(h.lists, action.GetResource().Resource+" "+selector.String())
	h.mu.Unlock()
	_, all, err := k8stesting.ObjectReaction(h.client.Tracker())(action)
	switch all := all.(type) {
	case *corev1.SecretList:
		all.Items = matching(all.Items, selector, func(s *corev1.Secret) string { return s.Name })
	case *corev1.ConfigMapList:
		all.Items = matching(all.Items, selector, func(c *corev1.ConfigMap) string { return c.Name })
	}
	return true, all, err
}

func matching[T any](items []T, selector fields.Selector, name func(*T) string) []T {
	var all []T
	for i := range items {
		if selector.Matches(fields.Set{"metadata.name": name(&items[i])}) {
			all = append(all, items[i])
		}
	}
	return all
}

// fail makes reading a kind of objects fail.
func (h *hooks) fail(resource string, err error) {
	h.client.PrependReactor("list", resource, func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

// only is the one request that there was.
func (h *hooks) only(t *testing.T) received {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	NewWithT(t).Expect(h.got).To(HaveLen(1))
	return h.got[0]
}

// data is the JSON of the one request.
func (h *hooks) data(t *testing.T) map[string]any {
	t.Helper()
	var decoded map[string]any
	NewWithT(t).Expect(json.Unmarshal([]byte(h.only(t).body), &decoded)).To(Succeed())
	return decoded
}

func (h *hooks) tell(t *testing.T, change ...func(*plan.Delivery)) plan.Attempt {
	t.Helper()
	d := h.modified()
	for _, apply := range change {
		apply(&d)
	}
	return h.Tell(t.Context(), web, d)
}

// modified is an event of the ConfigMap app-config, told with everything that hook-auth has.
func (h *hooks) modified() plan.Delivery {
	return plan.Delivery{
		Subscriber: v1alpha1.Subscriber{Name: "cache", Webhook: v1alpha1.Webhook{
			URL: h.server.URL + "/hook?key=" + canary, Format: v1alpha1.FormatCloudEvents, Payload: v1alpha1.PayloadKeys,
			SecretRef: &v1alpha1.SecretReference{Name: "hook-auth"},
		}},
		Event: v1alpha1.WaitingEvent{
			ID: "b0c1/42", Event: v1alpha1.SubscriberModified, Kind: "ConfigMap", Name: "app-config", Hash: hashOf(debug),
			ChangedKeys: []string{"LOG_LEVEL"}, Time: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		},
		PreviousHash: "1:before",
	}
}

var debug = map[string]string{"LOG_LEVEL": "debug-" + canary, "FEATURES": "all"}

func hashOf(data map[string]string, keys ...string) string {
	return string(digest.Plain().Content(data, nil).Hash(keys))
}

func appConfig(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "app-config", UID: "b0c1", ResourceVersion: "99", Labels: map[string]string{"app": "newer"},
		},
		Data: data,
	}
}

func withData(d *plan.Delivery) {
	d.Subscriber.Webhook.Payload = v1alpha1.PayloadData
}

func TestF6AChangeIsToldAsASignedCloudEvent(t *testing.T) {
	g := NewWithT(t)
	h := serve(t)
	g.Expect(h.tell(t)).To(Equal(plan.Attempt{}))
	request := h.only(t)
	for name, value := range map[string]string{
		"Ce-Id": "b0c1/42", "Ce-Type": "io.ktechhub.configwatch.source.modified.v1", "Ce-Specversion": "1.0",
		"Ce-Source": "/namespaces/shop/configmaps/app-config", "Ce-Subject": "ConfigMap/app-config", "Ce-Time": "2026-01-02T03:04:05Z",
		"Content-Type": "application/json", "Authorization": "Bearer token-" + canary, "Webhook-Id": "b0c1/42",
	} {
		g.Expect(request.header.Get(name)).To(Equal(value), name)
	}
	mac := hmac.New(sha256.New, []byte("key-"+canary))
	mac.Write([]byte("b0c1/42." + request.header.Get("Webhook-Timestamp") + "." + request.body))
	g.Expect(request.header.Get("Webhook-Signature")).To(Equal("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	g.Expect(request.body).To(MatchJSON(`{"event":"Modified","namespace":"shop","kind":"ConfigMap","name":"app-config",
		"labels":{"app":"demo"},"hash":"` + hashOf(debug) + `","previousHash":"1:before","changedKeys":["LOG_LEVEL"]}`))
	g.Expect(h.lists).To(Equal([]string{"secrets metadata.name=hook-auth"}), "no more is read than what it needs")
}

func TestF6ADeletionIsTold(t *testing.T) {
	g := NewWithT(t)
	h := serve(t, appConfig(debug))
	g.Expect(h.tell(t, withData, func(d *plan.Delivery) {
		d.Event = v1alpha1.WaitingEvent{ID: "watch/00ff/deleted/1", Event: v1alpha1.SubscriberDeleted, Kind: "ConfigMap", Name: "gone"}
	})).To(Equal(plan.Attempt{}))
	g.Expect(h.only(t).header.Get("Ce-Id")).To(Equal("watch/00ff/deleted/1"))
	g.Expect(h.only(t).body).To(MatchJSON(`{"event":"Deleted","namespace":"shop","kind":"ConfigMap","name":"gone","previousHash":"1:before"}`))
}

func TestF6DataIsReadWhenItIsSent(t *testing.T) {
	g := NewWithT(t)
	h := serve(t, appConfig(debug))
	g.Expect(h.tell(t, withData)).To(Equal(plan.Attempt{Hash: hashOf(debug)}))
	g.Expect(h.data(t)).To(gstruct.MatchKeys(gstruct.IgnoreExtras, gstruct.Keys{
		"data":        Equal(map[string]any{"LOG_LEVEL": "debug-" + canary, "FEATURES": "all"}),
		"hash":        Equal(hashOf(debug)),
		"changedKeys": Equal([]any{"LOG_LEVEL"}),
	}))
	g.Expect(h.only(t).header.Get("Ce-Id")).To(Equal("b0c1/42"), "metadata makes it no other event")
	g.Expect(h.lists).To(ContainElement("configmaps metadata.name=app-config"))
}

// TestF6NewerDataIsTheNewerEvent: by the id of the older one it would be left alone, by whoever has that.
func TestF6NewerDataIsTheNewerEvent(t *testing.T) {
	g := NewWithT(t)
	newer := map[string]string{"LOG_LEVEL": "info"}
	h := serve(t, appConfig(newer))
	g.Expect(h.tell(t, withData)).To(Equal(plan.Attempt{Hash: hashOf(newer)}))
	g.Expect(h.only(t).header.Get("Ce-Id")).To(Equal("b0c1/99"))
	g.Expect(h.only(t).body).To(MatchJSON(`{"event":"Modified","namespace":"shop","kind":"ConfigMap","name":"app-config",
		"labels":{"app":"newer"},"hash":"` + hashOf(newer) + `","previousHash":"1:before","data":{"LOG_LEVEL":"info"}}`))
}

func TestF6DataOfKeysThatDontMatterIsNotSent(t *testing.T) {
	g := NewWithT(t)
	object := appConfig(debug)
	object.BinaryData = map[string][]byte{"logo": {0xff}, "else": {0xfe}}
	h := serve(t, object)
	hash := string(digest.Plain().Content(object.Data, object.BinaryData).Hash([]string{"FEATURES", "logo", "none"}))
	g.Expect(h.tell(t, withData, func(d *plan.Delivery) {
		d.Keys, d.Event.Hash = []string{"FEATURES", "logo", "none"}, hash
	})).To(Equal(plan.Attempt{Hash: hash}))
	g.Expect(h.data(t)).To(gstruct.MatchKeys(gstruct.IgnoreExtras, gstruct.Keys{
		"data": Equal(map[string]any{"FEATURES": "all"}), "binaryData": Equal(map[string]any{"logo": "/w=="}),
	}))
	g.Expect(h.only(t).header.Get("Ce-Id")).To(Equal("b0c1/42"))
}

func TestF6WithoutTheObjectThereIsNoData(t *testing.T) {
	g := NewWithT(t)
	h := serve(t)
	g.Expect(h.tell(t, withData)).To(Equal(plan.Attempt{Hash: hashOf(debug)}))
	g.Expect(h.data(t)).To(And(Not(HaveKey("data")), HaveKeyWithValue("event", "Modified"), HaveKeyWithValue("hash", hashOf(debug))))
}

func TestF6DataOfASecretIsNeverSent(t *testing.T) {
	g := NewWithT(t)
	h := serve(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app-config"}, Data: map[string][]byte{"LOG_LEVEL": []byte(canary)},
	})
	g.Expect(h.tell(t, withData, func(d *plan.Delivery) { d.Event.Kind = "Secret" })).To(Equal(plan.Attempt{}))
	g.Expect(h.data(t)).NotTo(HaveKey("data"))
	g.Expect(h.only(t).body).NotTo(ContainSubstring(canary))
	g.Expect(h.lists).To(Equal([]string{"secrets metadata.name=hook-auth"}), "it isn't even read")
}

func TestF6ARolloutIsTold(t *testing.T) {
	for event, want := range map[v1alpha1.SubscriberEvent]string{
		v1alpha1.SubscriberRestartTriggered: "triggered", v1alpha1.SubscriberRolloutCompleted: "completed", v1alpha1.SubscriberRolloutFailed: "failed",
	} {
		g := NewWithT(t)
		h := serve(t)
		g.Expect(h.tell(t, withData, func(d *plan.Delivery) {
			d.Event = v1alpha1.WaitingEvent{
				ID: "c0de/d0c5/7/" + want, Event: event, Kind: "Deployment", Name: "web",
				Message: "ConfigMap app-config changed (LOG_LEVEL). It took a while", Time: d.Event.Time,
			}
		})).To(Equal(plan.Attempt{}))
		request := h.only(t)
		g.Expect(request.header.Get("Ce-Id")).To(Equal("c0de/d0c5/7/" + want))
		g.Expect(request.header.Get("Ce-Type")).To(Equal("io.ktechhub.configwatch.rollout." + want + ".v1"))
		g.Expect(request.header.Get("Ce-Source")).To(Equal("/namespaces/shop/configwatches/web"))
		g.Expect(request.body).To(MatchJSON(`{"event":"` + string(event) + `","namespace":"shop","configWatch":"web","restart":7,
			"target":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},
			"cause":"ConfigMap app-config changed (LOG_LEVEL)","outcome":"It took a while"}`))
	}
}

func TestF6ChatsGetALineWithoutValues(t *testing.T) {
	for _, format := range []v1alpha1.WebhookFormat{v1alpha1.FormatSlack, v1alpha1.FormatMSTeams, v1alpha1.FormatGoogleChat} {
		g := NewWithT(t)
		h := serve(t, appConfig(debug))
		g.Expect(h.tell(t, withData, func(d *plan.Delivery) { d.Subscriber.Webhook.Format = format }).Message).To(BeEmpty())
		body := h.only(t).body
		g.Expect(body).To(And(ContainSubstring("ConfigMap app-config"), ContainSubstring("LOG_LEVEL"), Not(ContainSubstring(canary))), string(format))
	}
}

func TestF6WithoutASecretNothingIsSigned(t *testing.T) {
	g := NewWithT(t)
	h := serve(t)
	attempt := h.tell(t, func(d *plan.Delivery) { d.Subscriber.Webhook.SecretRef = nil })
	g.Expect(attempt.Message).To(Equal(
		h.server.URL + " has a certificate of an unknown authority: put its CA into key ca.crt of the Secret that secretRef names"))
	g.Expect(attempt.Refused).To(BeFalse())
	g.Expect(h.lists).To(BeEmpty())
}

// What a human has to mend is refused; the rest is tried again.
func TestF6AnAttemptSaysWhatWentWrong(t *testing.T) {
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
	}
	for what, c := range map[string]struct {
		prepare func(*testing.T, *hooks)
		change  func(*plan.Delivery)
		want    plan.Attempt
	}{
		"the Secret is missing": {
			change: func(d *plan.Delivery) { d.Subscriber.Webhook.SecretRef.Name = "missing" },
			want:   plan.Attempt{Refused: true, Message: "reading Secret missing, which secretRef names: it does not exist"},
		},
		"the Secret is forbidden": {
			prepare: func(_ *testing.T, h *hooks) { h.fail("secrets", forbidden("secrets")) },
			want:    plan.Attempt{Refused: true, Message: "reading Secret hook-auth, which secretRef names: secrets is forbidden: no"},
		},
		"the Secret can't be read now": {
			prepare: func(_ *testing.T, h *hooks) { h.fail("secrets", errors.New("no answer")) },
			want:    plan.Attempt{Message: "reading Secret hook-auth, which secretRef names: no answer"},
		},
		"the data can't be read now": {
			prepare: func(_ *testing.T, h *hooks) { h.fail("configmaps", errors.New("no answer")) },
			change:  withData,
			want:    plan.Attempt{Message: "reading the data of ConfigMap app-config: no answer"},
		},
		"the endpoint is somewhere that webhooks must not go": {
			prepare: func(t *testing.T, h *hooks) {
				guard, err := webhook.NewGuard(net.DefaultResolver, "10.96.0.1")
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				h.send(t, guard)
			},
			want: plan.Attempt{Refused: true, Message: "URL: its host leads to 127.0.0.1, which is a loopback address, " +
				"where webhooks must not go: check the URL, and what its host resolves to"},
		},
		"the endpoint refuses it": {
			prepare: answering(http.StatusNotFound),
			want: plan.Attempt{
				Refused: true, Message: "URL answered 404 Not Found: check the path of the URL, and whether the webhook was removed",
			},
		},
		"the endpoint is busy": {
			prepare: answering(http.StatusTooManyRequests),
			want: plan.Attempt{
				RetryAfter: 7 * time.Second, Message: "URL answered 429 Too Many Requests, and asks to wait for 7s: " +
					"it gets more than it allows; subscribe to fewer events or sources",
			},
		},
		"the key is no key": {
			prepare: func(t *testing.T, h *hooks) {
				h.change(t, func(s *corev1.Secret) { s.Data["hmacKey"] = []byte("whsec_" + canary) })
			},
			want: plan.Attempt{
				Refused: true, Message: "URL: the key hmacKey of its Secret begins with whsec_, and must go on with the key as base64",
			},
		},
		"the event is none": {
			change: func(d *plan.Delivery) { d.Event.Event, d.Event.ID = v1alpha1.SubscriberRolloutFailed, "garbage" },
			want:   plan.Attempt{Message: "making a CloudEvent of a rollout of ConfigMap shop/app-config"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			h := serve(t, appConfig(debug))
			if c.prepare != nil {
				c.prepare(t, h)
			}
			if c.change == nil {
				c.change = func(*plan.Delivery) {}
			}
			attempt := h.tell(t, c.change)
			g.Expect(attempt.Message).To(HavePrefix(strings.Replace(c.want.Message, "URL", h.server.URL, 1)))
			g.Expect(attempt.Message).NotTo(ContainSubstring(canary))
			attempt.Message = c.want.Message
			g.Expect(attempt).To(Equal(c.want))
		})
	}
}

func answering(status int) func(*testing.T, *hooks) {
	return func(_ *testing.T, h *hooks) {
		h.answer = func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = io.Copy(w, bytes.NewBufferString(canary))
		}
	}
}
