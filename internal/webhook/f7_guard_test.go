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
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/webhook"
)

func TestF7WhereWebhooksMustNotGo(t *testing.T) {
	guard := newGuard(t, nil, "10.96.0.1", "fd00:96::1")
	for what, addresses := range map[string][]string{
		"a loopback address": {
			"127.0.0.1", "127.0.0.0", "127.1.2.3", "127.255.255.255", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1",
			"64:ff9b::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:7fff:ffff:1:2:3:4:5",
			"2001:0:1:2:3:4:80ff:fffe", "2001:db8::5efe:7f00:1", "2001:db8::200:5efe:7f00:1", "::1%eth0",
		},
		"an unspecified address": {
			"0.0.0.0", "0.255.255.255", "::", "::ffff:0.0.0.0", "::2", "64:ff9b::", "2002::", "2002:0:0:1::1", "2001::ffff:ffff",
		},
		"a link-local address": {
			"169.254.0.0", "169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.255.255", "::ffff:169.254.169.254",
			"::ffff:a9fe:a9fe", "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
			"2001:0:1:2:3:4:5601:5601", "fe80::", "fe80::1", "fe80::1%eth0", "fe80::a9fe:a9fe", "febf:ffff::1", "2001:db8::5efe:a9fe:a9fe",
		},
		"a multicast address": {"224.0.0.1", "239.255.255.255", "ff00::", "ff02::1", "ff02::1%eth0", "::ffff:224.0.0.1", "64:ff9b::224.0.0.1"},
		"a reserved address":  {"192.0.0.0", "192.0.0.192", "240.0.0.1", "255.255.255.255", "::ffff:255.255.255.255"},
		"an address of cloud metadata": {
			"100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd00:ec2::23", "fd00:ec2::254%1", "fd20:ce::254", "fd00:c1::a9fe:a9fe",
			"fd00:42::42", "fd00:a9fe:a9fe::1", "fd00:100::100:200", "::ffff:168.63.129.16", "64:ff9b::100.100.100.200",
		},
		"an address of local translation to IPv4": {"64:ff9b:1::a00:1", "64:ff9b:1:ffff::1"},
		"an address of the API server": {
			"10.96.0.1", "::ffff:10.96.0.1", "64:ff9b::10.96.0.1", "2002:a60:1::", "fd00:96::1", "fd00:96::1%eth0",
		},
	} {
		for _, written := range addresses {
			address := netip.MustParseAddr(written)
			NewWithT(t).Expect(guard(t.Context(), address)).To(Equal(&webhook.AddressError{Address: address, What: what}), written)
		}
	}
}

func TestF7WhereWebhooksMayGo(t *testing.T) {
	guard := newGuard(t, nil, "10.96.0.1", "fd00:96::1")
	for _, address := range []string{
		"10.0.0.1", "10.96.0.2", "172.16.0.1", "192.168.0.1", "100.64.0.1", "100.100.100.201", "1.1.1.1", "126.255.255.255", "128.0.0.1",
		"169.253.255.255", "169.255.0.0", "168.63.129.17", "192.0.1.0", "223.255.255.255", "fd00::1", "fd00:96::2", "fd00:ec3::254", "fc00::1",
		"2606:4700::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::1.1.1.1", "2002:a00:1::", "fe7f::1", "fec0::1",
		"2001:db8::5eff:7f00:1", "2001:db8::7f00:1",
	} {
		NewWithT(t).Expect(guard(t.Context(), netip.MustParseAddr(address))).To(Succeed(), address)
	}
}

func TestF7TheAPIServerIsKnownHoweverItIsWritten(t *testing.T) {
	resolver := zone{"api.example": {"10.0.0.7 fd00::7"}}.resolver()
	for _, host := range []string{
		"10.0.0.7", "10.0.0.7:6443", "https://10.0.0.7", "https://10.0.0.7:6443", "https://10.0.0.7:6443/k8s/clusters/a", "::ffff:10.0.0.7",
		"https://[::ffff:10.0.0.7]:6443", "64:ff9b::10.0.0.7", "api.example", "api.example:6443", "https://api.example/", "API.example",
	} {
		err := newGuard(t, resolver, "192.168.0.1", host)(t.Context(), netip.MustParseAddr("10.0.0.7"))
		NewWithT(t).Expect(err).To(MatchError("10.0.0.7 is an address of the API server"), host)
	}
	for _, host := range []string{"fd00::7", "[fd00::7]", "[fd00::7]:6443", "https://[fd00::7]:6443", "api.example"} {
		err := newGuard(t, resolver, host)(t.Context(), netip.MustParseAddr("fd00::7"))
		NewWithT(t).Expect(err).To(MatchError("fd00::7 is an address of the API server"), host)
	}
}

func TestF7AGuardNeedsToKnowTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	_, err := webhook.NewGuard(nil)
	g.Expect(err).To(MatchError("the host of the API server is needed, to keep webhooks away from it"))
	for host, want := range map[string]string{
		"":                 `"https://" has no host`,
		"https:///path":    `"https:///path" has no host`,
		"https://a:b:c:d/": "invalid port",
	} {
		_, err := webhook.NewGuard(nil, "10.96.0.1", host)
		g.Expect(err).To(MatchError(And(HavePrefix("reading the host of the API server: "), ContainSubstring(want))), host)
	}
	_, err = webhook.New(webhook.Options{})
	g.Expect(err).To(MatchError("webhooks need a guard"))
}

// The name of the API server may lead elsewhere after a while, too.
func TestF7TheAPIServersNameIsResolvedEachTime(t *testing.T) {
	g := NewWithT(t)
	guard := newGuard(t, zone{"api.example": {"10.0.0.7", "10.0.0.8", ""}}.resolver(), "api.example")
	moved := netip.MustParseAddr("10.0.0.8")
	g.Expect(guard(t.Context(), moved)).To(Succeed())
	g.Expect(guard(t.Context(), moved)).To(MatchError("10.0.0.8 is an address of the API server"))
	g.Expect(guard(t.Context(), moved)).To(MatchError(HavePrefix("resolving the API server's host api.example: ")))
}

func TestF7OneGuardServesMany(t *testing.T) {
	resolver := zone{"a.example": {"10.0.0.7 10.0.0.8"}, "b.example": {"10.0.0.9"}}.resolver()
	guard := newGuard(t, resolver, "10.96.0.1", "10.96.0.2", "10.96.0.3", "a.example", "b.example")
	var checks sync.WaitGroup
	for range 20 {
		for address, want := range map[string]OmegaMatcher{"10.0.0.1": Succeed(), "10.0.0.8": Not(Succeed()), "10.0.0.9": Not(Succeed())} {
			checks.Go(func() {
				NewWithT(t).Expect(guard(t.Context(), netip.MustParseAddr(address))).To(want, address)
			})
		}
	}
	checks.Wait()
}

func TestF7NothingIsSentUntilTheAPIServerIsKnown(t *testing.T) {
	g := NewWithT(t)
	client := newClient(t, func(opts *webhook.Options) {
		opts.Guard = newGuard(t, zone{}.resolver(), "api.example")
		opts.Resolver = zone{"example.com": {"192.0.2.1"}}.resolver()
	})
	outcome := client.Deliver(t.Context(), webhook.Endpoint{URL: "https://example.com"}, messageOf(t, modified()))
	g.Expect(outcome).To(Equal(webhook.Outcome{Result: webhook.Retry, Message: "https://example.com is not connected to, " +
		"as it can't be told now whether it is the API server: check the cluster's DNS"}))
}

func TestF7ARefusedAddressIsNotConnectedTo(t *testing.T) {
	hosts := zone{"metadata.example": {"169.254.169.254"}, "metadata.shop.svc": {"fe80::1"}, "api.shop.svc.cluster.local": {"10.96.0.1"}}
	for url, want := range map[string]string{
		"https://169.254.169.254/latest":        "169.254.169.254, which is a link-local address",
		"https://[::ffff:169.254.169.254]:8443": "169.254.169.254, which is a link-local address",
		"https://metadata.example":              "169.254.169.254, which is a link-local address",
		"http://metadata.shop.svc/a":            "fe80::1, which is a link-local address",
		"https://127.0.0.1:8443":                "127.0.0.1, which is a loopback address",
		"https://[::1]:8443":                    "::1, which is a loopback address",
		"https://api.shop.svc.cluster.local":    "10.96.0.1, which is an address of the API server",
	} {
		t.Run(url, func(t *testing.T) {
			to := webhook.Endpoint{URL: url}
			client := newClient(t, finding(hosts), func(opts *webhook.Options) { opts.Guard = newGuard(t, nil, "https://10.96.0.1:443") })
			NewWithT(t).Expect(client.Deliver(t.Context(), to, messageOf(t, modified()))).To(Equal(webhook.Outcome{
				Result: webhook.Refused, Message: to.String() + ": its host leads to " + want +
					", where webhooks must not go: check the URL, and what its host resolves to"}))
		})
	}
}

// twins are two servers on one port, at 127.0.0.1 and at 127.0.0.2, which stands for an address that is refused.
func twins(t *testing.T, handler http.HandlerFunc) (port string, refusedConnections *atomic.Int32) {
	t.Helper()
	g := NewWithT(t)
	var allowed, refused net.Listener
	g.Eventually(func() (err error) { // the port may be taken at the second address
		if allowed, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		if refused, err = net.Listen("tcp", "127.0.0.2:"+portOf(allowed.Addr())); err != nil {
			_ = allowed.Close()
		}
		return err
	}).Should(Succeed())
	refusedConnections = &atomic.Int32{}
	for _, listener := range []net.Listener{allowed, refused} {
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
		if listener == refused {
			server.Config.ConnState = func(net.Conn, http.ConnState) { refusedConnections.Add(1) }
		}
		server.Start()
		t.Cleanup(server.Close)
	}
	return portOf(allowed.Addr()), refusedConnections
}

// What counts is the address that is connected to, not what the name led to a moment ago.
func TestF7AChangeInDNSDoesNotGetPastTheGuard(t *testing.T) {
	g := NewWithT(t)
	port, refused := twins(t, func(http.ResponseWriter, *http.Request) {})
	client := newClient(t, guarded(t), finding(zone{"rebind.shop.svc": {"127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2"}}))
	var results []webhook.Result
	for range 4 {
		outcome := client.Deliver(t.Context(), webhook.Endpoint{URL: "http://rebind.shop.svc:" + port}, messageOf(t, modified()))
		results = append(results, outcome.Result)
	}
	g.Expect(results).To(Equal([]webhook.Result{webhook.Delivered, webhook.Refused, webhook.Delivered, webhook.Refused}))
	g.Expect(refused.Load()).To(BeZero())
}

// An API server has more addresses than the one that the operator knows.
func TestF7TheAPIServerIsKnownByItsCertificate(t *testing.T) {
	for name, refused := range map[string]bool{
		"kubernetes.default.svc": true, "Kubernetes.Default.Svc": true, "kubernetes.default.svc.cluster.local": true,
		"kubernetes.default.svc.corp.example": true,
		"kubernetes.example":                  false, "kubernetes.default.svcs.example": false, "my-kubernetes.default.svc": false,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var asked atomic.Int32
			server, url := serveTLS(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) }, certificate(t, noon.AddDate(100, 0, 0), name))
			outcome := newClient(t).Deliver(t.Context(), webhook.Endpoint{URL: url, CABundle: bundleOf(server)}, messageOf(t, modified()))
			if !refused {
				g.Expect(outcome).To(Equal(webhook.Outcome{Result: webhook.Delivered, Status: http.StatusOK}))
				return
			}
			g.Expect(outcome).To(Equal(webhook.Outcome{Result: webhook.Refused, Message: url + ": it has the certificate of an API server, " +
				"where webhooks must not go: check the URL, and what its host resolves to"}))
			g.Expect(asked.Load()).To(BeZero())
		})
	}
}

// What the operator listens on isn't reached by its own address, though others at it may be.
func TestF7TheOperatorItselfIsNotReached(t *testing.T) {
	g := NewWithT(t)
	own, other := serve(t, nil), serve(t, func(http.ResponseWriter, *http.Request) {})
	port, err := strconv.ParseUint(own[strings.LastIndex(own, ":")+1:], 10, 16)
	g.Expect(err).NotTo(HaveOccurred())
	client := newClient(t, func(opts *webhook.Options) { opts.OwnPorts = []uint16{8081, uint16(port)} })
	g.Expect(client.Deliver(t.Context(), webhook.Endpoint{URL: own}, messageOf(t, modified()))).To(Equal(webhook.Outcome{
		Result: webhook.Refused, Message: own + ": its host leads to 127.0.0.1, which is an address of the operator itself, " +
			"where webhooks must not go: check the URL, and what its host resolves to"}))
	g.Expect(client.Deliver(t.Context(), webhook.Endpoint{URL: other}, messageOf(t, modified())).Result).To(Equal(webhook.Delivered))
}

func TestF7AnotherHostMayListenOnThePortsOfTheOperator(t *testing.T) {
	g := NewWithT(t)
	nowhere := zone{"example.com": {"192.0.2.1"}} // for documentation: no host has it
	var asked []netip.Addr
	client := newClient(t, finding(nowhere), func(opts *webhook.Options) {
		opts.OwnPorts = []uint16{443}
		opts.Guard = func(_ context.Context, address netip.Addr) error {
			asked = append(asked, address)
			return io.EOF
		}
	})
	client.Deliver(t.Context(), webhook.Endpoint{URL: "https://example.com"}, messageOf(t, modified()))
	g.Expect(asked).To(Equal([]netip.Addr{netip.MustParseAddr("192.0.2.1")}))
}

func TestF7OnlyTheAddressesOfANameThatAreAllowedAreConnectedTo(t *testing.T) {
	g := NewWithT(t)
	port, refused := twins(t, func(http.ResponseWriter, *http.Request) {})
	for _, addresses := range []string{"127.0.0.2 127.0.0.1", "127.0.0.1 127.0.0.2", "::1 127.0.0.1"} {
		client := newClient(t, guarded(t), finding(zone{"both.shop.svc": {addresses}}))
		outcome := client.Deliver(t.Context(), webhook.Endpoint{URL: "http://both.shop.svc:" + port}, messageOf(t, modified()))
		g.Expect(outcome.Result).To(Equal(webhook.Delivered), addresses)
	}
	g.Expect(refused.Load()).To(BeZero())
}

// The guard sees each address that a connection is made to, at each attempt, and never one that isn't connected to.
func TestF7TheGuardIsAskedAboutWhatIsConnectedTo(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	var asked []string
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thanks") })
	client := newClient(t, func(opts *webhook.Options) {
		opts.Guard = func(_ context.Context, address netip.Addr) error {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, address.String())
			return nil
		}
	})
	for range 2 {
		g.Expect(client.Deliver(t.Context(), webhook.Endpoint{URL: url}, messageOf(t, modified())).Result).To(Equal(webhook.Delivered))
	}
	g.Expect(asked).To(Equal([]string{"127.0.0.1", "127.0.0.1"}))
}

// undecided lets a client get as far as to a host's address, which is tried again.
func undecided(opts *webhook.Options) {
	opts.Guard = func(context.Context, netip.Addr) error { return io.EOF }
	opts.Resolver = zone{}.resolver()
}

func TestF7WhichURLs(t *testing.T) {
	const plain = "http:// is for hosts that end in .svc or .svc.cluster.local: write https://"
	const host = "the URL must have a host: a name in ASCII letters (xn--… for others) or an IP address"
	const scheme = "the URL must begin with https://, or for a Service of the cluster with http://"
	for url, want := range map[string]string{
		"https://hooks.example.com/a?b=c":                "",
		"https://Hooks.Example.com.":                     "",
		"https://xn--bcher-kva.example":                  "",
		"https://10.0.0.1:8443":                          "",
		"https://[fd00::1]":                              "",
		"http://cache.shop.svc":                          "",
		"HTTP://Cache.Shop.SVC:8080/a":                   "",
		"http://cache.shop.svc.cluster.local.":           "",
		"http://cache.shop":                              plain,
		"http://svc":                                     plain,
		"http://cachesvc":                                plain,
		"http://cache.shop.svc.example.com":              plain,
		"http://10.0.0.1":                                plain,
		"http://169.254.169.254":                         plain,
		"http://example.com/.svc":                        plain,
		"http://example.com?.svc":                        plain,
		"http://example.com#.svc":                        plain,
		"http://cache.shop.svc@example.com":              "the URL must have no user info: put a token into the Secret that secretRef names",
		"https://user:pass@example.com":                  "the URL must have no user info: put a token into the Secret that secretRef names",
		"https://@example.com":                           "the URL must have no user info: put a token into the Secret that secretRef names",
		"ftp://example.com":                              scheme,
		"file:///etc/passwd":                             scheme,
		"//example.com":                                  scheme,
		"example.com":                                    scheme,
		"https://":                                       host,
		"https:example.com":                              host,
		"https://:8443":                                  host,
		"https://bücher.example":                         host,
		"http://evil.example。svc":                        host,
		"https://ex_ample.com":                           host,
		"https://example..com":                           host,
		"https://.example.com":                           host,
		"https://[fe80::1%25eth0]":                       host,
		"http://.svc":                                    host,
		"https://a'b.example":                            host,
		"https://2130706433":                             "", // a name: what it resolves to is what counts
		"https://0x7f.1":                                 "",
		"https://a.example/" + strings.Repeat("a", 2030): "",
		"https://a.example/" + strings.Repeat("a", 2031): "the URL must have at most 2048 characters",
	} {
		t.Run(url, func(t *testing.T) {
			g := NewWithT(t)
			client := newClient(t, undecided)
			outcome := client.Deliver(t.Context(), webhook.Endpoint{URL: url}, messageOf(t, modified()))
			if want == "" {
				g.Expect(outcome.Result).To(Equal(webhook.Retry), outcome.Message)
			} else {
				g.Expect(outcome.Result).To(Equal(webhook.Refused))
				g.Expect(outcome.Message).To(HaveSuffix(": " + want))
			}
		})
	}
}

func TestF7AllowedHosts(t *testing.T) {
	const refused = ": its host is not among those that the operator's flag --webhook-allowed-hosts allows"
	allowed := []string{"hooks.example.com", "*.Slack.com", "10.0.0.1", "fd00::1", "xn--bcher-kva.example."}
	for url, want := range map[string]bool{
		"https://hooks.example.com":       true,
		"https://HOOKS.example.com.:8443": true,
		"https://a.hooks.example.com":     false,
		"https://example.com":             false,
		"https://hooks.slack.com":         true,
		"https://a.b.slack.com":           true,
		"https://slack.com":               false,
		"https://evilslack.com":           false,
		"https://slack.com.evil.example":  false,
		"https://10.0.0.1":                true,
		"https://[::ffff:10.0.0.1]":       true,
		"https://10.0.0.2":                false,
		"https://[fd00:0::1]:8443":        true,
		"https://xn--bcher-kva.example":   true,
		"http://cache.shop.svc":           false,
	} {
		t.Run(url, func(t *testing.T) {
			g := NewWithT(t)
			client := newClient(t, undecided, func(opts *webhook.Options) { opts.AllowedHosts = allowed })
			outcome := client.Deliver(t.Context(), webhook.Endpoint{URL: url}, messageOf(t, modified()))
			if want {
				g.Expect(outcome.Result).To(Equal(webhook.Retry), outcome.Message)
			} else {
				g.Expect(outcome).To(Equal(webhook.Outcome{Result: webhook.Refused, Message: url + refused}))
			}
		})
	}
}

// An allowed host is still guarded.
func TestF7AllowedHostsAllowNoAddress(t *testing.T) {
	client := newClient(t, func(opts *webhook.Options) {
		opts.AllowedHosts = []string{"metadata.example"}
	}, guarded(t), finding(zone{"metadata.example": {"169.254.169.254"}}))
	outcome := client.Deliver(t.Context(), webhook.Endpoint{URL: "https://metadata.example"}, messageOf(t, modified()))
	NewWithT(t).Expect(outcome.Result).To(Equal(webhook.Refused))
}

func TestF7WhatIsNoAllowedHost(t *testing.T) {
	for _, pattern := range []string{
		"", "*", "*.", "*example.com", "a.*.com", "https://example.com", "example.com:443", "10.0.0.0/8", "bücher.example",
	} {
		_, err := webhook.New(webhook.Options{Guard: anywhere, AllowedHosts: []string{"example.com", pattern}})
		NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("reading the hosts that webhooks may go to: "), HaveSuffix(
			" is no host: write a name such as hooks.example.com, or *.example.com, without a scheme or port"))), pattern)
	}
}
