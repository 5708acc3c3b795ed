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
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/subscriber"
	"github.com/ktechhub/configwatch/internal/webhook"
)

// silent is an endpoint that takes connections, and nothing that is sent by them. It tells how many there are.
func silent(t *testing.T) (url string, taken *atomic.Int32) {
	t.Helper()
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	taken = &atomic.Int32{}
	var conns []net.Conn
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns = append(conns, conn) // TLS's handshake is left unanswered
			taken.Add(1)
		}
	})
	t.Cleanup(func() {
		listener.Close()
		accepting.Wait()
		for _, conn := range conns {
			conn.Close()
		}
	})
	return "https://" + listener.Addr().String(), taken
}

// largeMessages tell of changes whose messages are large, each of a MiB: by their data, or by their labels.
func largeMessages(t *testing.T, call func(t *testing.T, h *hooks, large func(*plan.Delivery))) {
	const size = 1 << 20
	for what, c := range map[string]struct {
		change func(*plan.Delivery)
		labels map[string]string
	}{
		"by their data":   {change: withData},
		"by their labels": {change: func(*plan.Delivery) {}, labels: map[string]string{"huge": strings.Repeat("l", size)}},
	} {
		t.Run(what, func(t *testing.T) {
			h := serve(t, appConfig(map[string]string{"LARGE": strings.Repeat("v", size)}))
			if c.labels != nil {
				h.sources[source.Ref{Kind: v1alpha1.ConfigMap, Name: "app-config"}].Labels = c.labels
			}
			sender, err := webhook.New(webhook.Options{Guard: anywhere, Timeout: 5 * time.Minute})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			h.Sender = sender
			call(t, h, c.change)
		})
	}
}

// tellMany tells as many at once until the test is over, or for as long as they take.
func (h *hooks) tellMany(t *testing.T, n int, change ...func(*plan.Delivery)) (outcomes func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var attempts sync.WaitGroup
	failures := make([]string, n)
	for i := range n {
		d := h.modified()
		for _, apply := range change {
			apply(&d)
		}
		attempts.Go(func() { failures[i] = h.Tell(ctx, web, d).Message })
	}
	t.Cleanup(func() {
		cancel()
		attempts.Wait()
	})
	return func() []string {
		attempts.Wait()
		return failures
	}
}

func toURL(url string) func(*plan.Delivery) {
	return func(d *plan.Delivery) { d.Subscriber.Webhook.URL = url }
}

func again(d *plan.Delivery) { d.Retry = true }

// Endpoints that take nothing in don't make the operator hold as much as it has for them; and a small message doesn't
// wait for the large ones.
func TestF6TheMemoryOfLargeMessagesIsBounded(t *testing.T) {
	const most, all = 15, 20 // 16 MiB have room for 15 messages of a MiB and its envelope
	largeMessages(t, func(t *testing.T, h *hooks, large func(*plan.Delivery)) {
		g := NewWithT(t)
		url, taken := silent(t)
		h.tellMany(t, all, large, toURL(url))
		g.Eventually(taken.Load).WithTimeout(time.Minute).Should(BeEquivalentTo(most))
		small := h.tell(t, func(d *plan.Delivery) { d.Event.Name = "small" })
		g.Expect(small.Message).To(BeEmpty())
		g.Consistently(taken.Load).Should(BeEquivalentTo(most))
	})
}

// A message that the endpoint has is held no longer, however long the answer takes.
func TestF6EndpointsThatAnswerLateHoldUpNoLargeMessage(t *testing.T) {
	const all = 40
	largeMessages(t, func(t *testing.T, h *hooks, large func(*plan.Delivery)) {
		g := NewWithT(t)
		var waiting atomic.Int32
		release := make(chan struct{})
		h.server.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			waiting.Add(1)
			<-release
		})
		outcomes := h.tellMany(t, all, large)
		g.Eventually(waiting.Load).WithTimeout(time.Minute).Should(BeEquivalentTo(all))
		close(release)
		g.Expect(outcomes()).To(HaveEach(BeEmpty()))
	})
}

// Endpoints that failed before, and take nothing in again, leave most of the room to the others.
func TestF6EndpointsThatFailHoldUpNoLargeMessageOfOthers(t *testing.T) {
	const retried, all = 4, 40
	largeMessages(t, func(t *testing.T, h *hooks, large func(*plan.Delivery)) {
		g := NewWithT(t)
		url, taken := silent(t)
		h.tellMany(t, all, large, toURL(url), again)
		g.Eventually(taken.Load).WithTimeout(time.Minute).Should(BeEquivalentTo(retried))
		g.Expect(h.tell(t, large).Message).To(BeEmpty())
		g.Expect(taken.Load()).To(BeEquivalentTo(retried))
	})
}

// never is an API server that answers when it is waited for no longer.
type never struct{}

func (never) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestF6AnAttemptDoesNotWaitForTheAPIServerForEver(t *testing.T) {
	for resource, change := range map[string]func(*plan.Delivery){
		"Secret hook-auth": func(*plan.Delivery) {},
		"ConfigMap app-config": func(d *plan.Delivery) {
			d.Subscriber.Webhook.SecretRef = nil
			withData(d)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://api.example", Transport: never{}})
			g.Expect(err).NotTo(HaveOccurred())
			w := subscriber.NewWebhooks(client, known{}, nil)
			d := plan.Delivery{
				Subscriber: v1alpha1.Subscriber{Webhook: v1alpha1.Webhook{SecretRef: &v1alpha1.SecretReference{Name: "hook-auth"}}},
				Event:      v1alpha1.WaitingEvent{Event: v1alpha1.SubscriberModified, Kind: "ConfigMap", Name: "app-config"},
			}
			change(&d)
			began := time.Now()
			attempt := w.Tell(t.Context(), web, d)
			g.Expect(attempt.Message).To(And(ContainSubstring(resource), ContainSubstring("context deadline exceeded")))
			g.Expect(attempt.Refused).To(BeFalse())
			g.Expect(time.Since(began)).To(Equal(10 * time.Second))
		})
	}
}
