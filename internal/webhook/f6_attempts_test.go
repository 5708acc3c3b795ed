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

package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ktechhub/configwatch/internal/webhook"
)

func TestF6RedirectsAreNotFollowed(t *testing.T) {
	for _, location := range []string{"http://169.254.169.254/latest/meta-data/", "/elsewhere", "://", ""} {
		t.Run(location, func(t *testing.T) {
			g := NewWithT(t)
			var requests atomic.Int32
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.Header().Set("Location", location)
				w.WriteHeader(http.StatusTemporaryRedirect)
			})
			outcome := newClient(t).Deliver(t.Context(), webhook.Endpoint{URL: url}, messageOf(t, modified()))
			g.Expect(outcome).To(Equal(webhook.Outcome{Result: webhook.Refused, Status: 307,
				Message: url + " answered 307 Temporary Redirect: redirects are not followed; write the URL that it leads to"}))
			g.Expect(requests.Load()).To(BeEquivalentTo(1))
		})
	}
}

func TestF6AnAnswerCountsWhateverItsBody(t *testing.T) {
	for name, talk := range map[string]func(net.Conn){
		"it is cut off": func(conn net.Conn) {
			answer(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
		},
		"it comes to nothing": func(conn net.Conn) {
			answer(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
			readAll(conn)
		},
		"it never ends": func(conn net.Conn) {
			answer(conn, "HTTP/1.1 200 OK\r\n\r\n")
			for {
				if _, err := conn.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		},
		"it is wrongly compressed": func(conn net.Conn) {
			answer(conn, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone")
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := "http://hooks.shop.svc:" + listen(t, talk)
			outcome := newClient(t, within(2*time.Second)).Deliver(t.Context(), webhook.Endpoint{URL: url}, messageOf(t, modified()))
			NewWithT(t).Expect(outcome).To(Equal(webhook.Outcome{Result: webhook.Delivered, Status: 200}))
		})
	}
}

// A server that switches protocols keeps the connection: it isn't read from, as nothing would end that.
func TestF6AServerThatSwitchesProtocolsHoldsNobodyUp(t *testing.T) {
	url := "http://hooks.shop.svc:" + listen(t, func(conn net.Conn) {
		answer(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
		readAll(conn)
	})
	outcome := newClient(t, within(time.Hour)).Deliver(t.Context(), webhook.Endpoint{URL: url}, messageOf(t, modified()))
	NewWithT(t).Expect(outcome).To(Equal(webhook.Outcome{Result: webhook.Refused, Status: 101,
		Message: url + " answered 101 Switching Protocols: check the log of the server"}))
}

func TestF6AServerThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	done := make(chan struct{})
	url := "http://hooks.shop.svc:" + listen(t, func(net.Conn) { <-done })
	t.Cleanup(func() { close(done) })
	large := &webhook.ConfigMapData{Data: map[string]string{"large": strings.Repeat("a", 32<<20)}}
	m, err := webhook.FromChange(modified(), large)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	outcome := newClient(t, within(short)).Deliver(t.Context(), webhook.Endpoint{URL: url}, m)
	NewWithT(t).Expect(outcome.Result).To(Equal(webhook.Retry))
}

func TestF6AnAttemptEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or else the server doesn't see that the client is gone
		cancel()
		<-r.Context().Done()
	})
	outcome := newClient(t).Deliver(ctx, webhook.Endpoint{URL: url}, messageOf(t, modified()))
	NewWithT(t).Expect(outcome).To(Equal(webhook.Outcome{Result: webhook.Retry,
		Message: url + " was not waited for, as the operator stops or the subscriber changed"}))
}

func TestF6TheIDIsTheSameAtEachAttempt(t *testing.T) {
	g := NewWithT(t)
	headers := make(chan http.Header, 2)
	to := webhook.Endpoint{HMACKey: []byte("key"), URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		w.WriteHeader(http.StatusServiceUnavailable)
	})}
	now := clocktesting.NewFakePassiveClock(noon)
	client := newClient(t, func(opts *webhook.Options) { opts.Clock = now })
	m := messageOf(t, modified())
	g.Expect(client.Deliver(t.Context(), to, m).Result).To(Equal(webhook.Retry))
	now.SetTime(noon.Add(time.Minute))
	g.Expect(client.Deliver(t.Context(), to, m).Result).To(Equal(webhook.Retry))

	first, second := <-headers, <-headers
	for _, same := range []string{"Ce-Id", "Ce-Time", "Webhook-Id"} {
		g.Expect(second.Get(same)).To(Equal(first.Get(same)), same)
	}
	g.Expect(first.Get("Webhook-Timestamp")).To(Equal(fmt.Sprint(noon.Unix())))
	g.Expect(second.Get("Webhook-Timestamp")).To(Equal(fmt.Sprint(noon.Unix()+60)), "the time is that of the attempt")
	g.Expect(second.Get("Webhook-Signature")).NotTo(Equal(first.Get("Webhook-Signature")))
}

// connectionsOf counts the connections that a server has had, and those it has.
func connectionsOf(opened, closed *atomic.Int32) func(*httptest.Server) {
	return func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				opened.Add(1)
			case http.StateClosed, http.StateHijacked:
				closed.Add(1)
			case http.StateActive, http.StateIdle:
			}
		}
	}
}

func TestF6NoConnectionIsKept(t *testing.T) {
	g := NewWithT(t)
	var opened, closed atomic.Int32
	server, url := serveTLS(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "thanks")
	}, connectionsOf(&opened, &closed))
	client, m := newClient(t), messageOf(t, modified())
	deliver := func(bundle []byte) webhook.Result {
		return client.Deliver(t.Context(), webhook.Endpoint{URL: url, CABundle: bundle}, m).Result
	}
	for range 2 {
		g.Expect(deliver(nil)).To(Equal(webhook.Delivered), "the system trusts it: see TestMain")
		g.Expect(deliver(bundleOf(server))).To(Equal(webhook.Delivered))
	}
	g.Expect(opened.Load()).To(BeEquivalentTo(4))
	g.Eventually(closed.Load).Should(BeEquivalentTo(4))

	other, _ := serveTLS(t, nil, certificate(t, noon.AddDate(100, 0, 0)))
	g.Expect(deliver(bundleOf(other))).To(Equal(webhook.Retry), "a bundle takes the place of the system's authorities")
}

// A server that sends back what it was sent, and more than once, doesn't get that into a log: net/http logs what comes
// unasked.
func TestF6WhatAServerSaysUnaskedIsNotLogged(t *testing.T) {
	g := NewWithT(t)
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	over := make(chan struct{})
	port := listen(t, func(conn net.Conn) {
		request := make([]byte, 1<<16)
		n, _ := conn.Read(request)
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n%s", request[:n])
		readAll(conn)
		close(over)
	})
	to := webhook.Endpoint{URL: "http://hooks.shop.svc:" + port, Token: []byte("c4n4ry")}
	g.Expect(newClient(t).Deliver(t.Context(), to, messageOf(t, modified())).Result).To(Equal(webhook.Delivered))
	g.Eventually(over).Should(BeClosed(), "the connection isn't kept")
	g.Expect(logged.String()).To(BeEmpty())
}

func TestF6NothingIsLeftRunning(t *testing.T) {
	g := NewWithT(t)
	mute := listen(t, readAll)
	before := gleak.Goroutines()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	client, err := webhook.New(webhook.Options{Guard: anywhere, Timeout: short, Resolver: servers.resolver()})
	g.Expect(err).NotTo(HaveOccurred())
	m := messageOf(t, modified())
	var deliveries sync.WaitGroup
	for range 10 {
		for _, port := range []string{port(server.Listener), mute} {
			deliveries.Go(func() {
				client.Deliver(t.Context(), webhook.Endpoint{URL: "http://hooks.shop.svc:" + port}, m)
			})
		}
	}
	deliveries.Wait()
	server.Close()
	g.Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))
}

// Whatever goes wrong, what is told of it has no secret in it: not the URL but its scheme and host, no token, no key,
// no data, and nothing of what the server said. Of a URL that is from a Secret not even these.
func TestF6NoSecretIsTold(t *testing.T) {
	const canary = "c4n4ry"
	m, err := webhook.FromChange(modified(), &webhook.ConfigMapData{Data: map[string]string{"LOG_LEVEL": canary}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	say := func(text string) string {
		return "http://hooks.shop.svc:" + listen(t, func(conn net.Conn) { answer(conn, strings.ReplaceAll(text, "$", canary)) })
	}
	_, selfSigned := serveTLS(t, nil, certificate(t, noon.AddDate(100, 0, 0)))
	for name, url := range map[string]string{
		"no URL":            "",
		"an invalid URL":    "https://example.com:%zz",
		"an invalid port":   "https://example.com:" + canary,
		"another scheme":    "ftp://example.com",
		"no host":           "https:///x",
		"user info":         "https://" + canary + ":" + canary + "@example.com",
		"an unknown host":   "https://nowhere.example",
		"a refused address": "https://refused.example",
		"a status":          say("HTTP/1.1 500 $\r\nX-A: $\r\nContent-Length: 6\r\n\r\n$"),
		"a refusal":         say("HTTP/1.1 400 $\r\nX-A: $\r\nContent-Length: 6\r\n\r\n$"),
		"a redirect":        say("HTTP/1.1 302 $\r\nLocation: http://$/$\r\nContent-Length: 6\r\n\r\n$"),
		"a wait":            say("HTTP/1.1 429 $\r\nRetry-After: $\r\nContent-Length: 6\r\n\r\n$"),
		"no HTTP":           say("$"),
		"a broken header":   say("HTTP/1.1 200 OK\r\n$\r\n\r\n"),
		"a broken status":   say("HTTP/1.1 $ OK\r\n\r\n"),
		"a broken length":   say("HTTP/1.1 200 OK\r\nContent-Length: $\r\n\r\n"),
		"no TLS":            strings.Replace(say("$"), "http://hooks.shop.svc", "https://example.com", 1),
		"an unknown CA":     selfSigned,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client := newClient(t, guarded(t), finding(servers.and(zone{"refused.example": {"169.254.169.254"}})))
			if url != "" {
				url += "/" + canary + "?token=" + canary + "#" + canary
			}
			to := webhook.Endpoint{URL: url, Token: []byte(canary), HMACKey: []byte(canary)}
			hidden := ContainSubstring(canary)
			for _, name := range []string{"", "the URL in Secret chat"} {
				to.Name = name
				if name != "" { // then it is all of the URL
					hidden = MatchRegexp(canary + `|example|hooks\.shop|169\.254|:\d{4}|ftp`)
				}
				outcome := client.Deliver(t.Context(), to, m)
				g.Expect(outcome.Message).To(And(Not(BeEmpty()), HavePrefix(name)))
				g.Expect(fmt.Sprintf("%+v", outcome)).NotTo(hidden)
				for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
					g.Expect(fmt.Sprintf(verb, to)).NotTo(hidden)
					g.Expect(fmt.Sprintf(verb, &to)).NotTo(hidden)
				}
			}
		})
	}
}

func TestF6OneClientServesMany(t *testing.T) {
	g := NewWithT(t)
	bodies := make(chan []byte, 100)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- body
	})
	client, m := newClient(t), messageOf(t, modified())
	var deliveries sync.WaitGroup
	for n := range cap(bodies) {
		deliveries.Go(func() {
			format := []webhook.Format{webhook.CloudEvents, webhook.Slack, webhook.MSTeams, webhook.GoogleChat}[n%4]
			g.Expect(client.Deliver(t.Context(), webhook.Endpoint{URL: url, Format: format}, m).Result).To(Equal(webhook.Delivered))
		})
	}
	deliveries.Wait()
	for range cap(bodies) {
		g.Expect(bytes.Contains(<-bodies, []byte("app-config"))).To(BeTrue())
	}
}
