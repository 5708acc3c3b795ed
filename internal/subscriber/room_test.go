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
	"io"
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

// Endpoints that keep the operator waiting, each with a message as large as they get, don't take all of its memory; and
// a small message doesn't wait for the large ones.
func TestF6TheMemoryOfLargeMessagesIsBounded(t *testing.T) {
	const size, most, all = 1 << 20, 15, 20 // 16 MiB have room for 15 messages of a MiB and its envelope
	labels := map[string]string{"huge": strings.Repeat("l", size)}
	for what, c := range map[string]struct {
		change func(*plan.Delivery)
		labels map[string]string
	}{
		"by their data":   {change: withData},
		"by their labels": {labels: labels},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			h := serve(t, appConfig(map[string]string{"LARGE": strings.Repeat("v", size)}))
			if c.labels != nil {
				h.sources[source.Ref{Kind: v1alpha1.ConfigMap, Name: "app-config"}].Labels = c.labels
			}
			sender, err := webhook.New(webhook.Options{Guard: anywhere, Timeout: 5 * time.Minute})
			g.Expect(err).NotTo(HaveOccurred())
			h.Sender = sender
			var waiting atomic.Int32
			release := make(chan struct{})
			h.server.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.Header.Get("Ce-Subject") == "ConfigMap/small" {
					return
				}
				waiting.Add(1)
				<-release
			})
			var attempts sync.WaitGroup
			failures := make([]string, all)
			for i := range all {
				attempts.Go(func() {
					d := h.modified()
					if c.change != nil {
						c.change(&d)
					}
					failures[i] = h.Tell(t.Context(), web, d).Message
				})
			}
			g.Eventually(waiting.Load).WithTimeout(time.Minute).Should(BeEquivalentTo(most))
			small := h.tell(t, func(d *plan.Delivery) { d.Event.Name = "small" })
			g.Expect(small.Message).To(BeEmpty())
			g.Consistently(waiting.Load).Should(BeEquivalentTo(most))
			close(release)
			attempts.Wait()
			g.Expect(failures).To(HaveEach(BeEmpty()))
		})
	}
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
