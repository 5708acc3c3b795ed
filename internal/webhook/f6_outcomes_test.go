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
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/webhook"
)

func TestF6WhatAStatusMeans(t *testing.T) {
	const log = "check the log of the server"
	for status, tc := range map[int]struct {
		result webhook.Result
		advice string
	}{
		200: {webhook.Delivered, ""},
		202: {webhook.Delivered, ""},
		204: {webhook.Delivered, ""},
		299: {webhook.Delivered, ""},
		300: {webhook.Refused, "300 Multiple Choices: redirects are not followed; write the URL that it leads to"},
		301: {webhook.Refused, "301 Moved Permanently: redirects are not followed; write the URL that it leads to"},
		304: {webhook.Refused, "304 Not Modified: redirects are not followed; write the URL that it leads to"},
		308: {webhook.Refused, "308 Permanent Redirect: redirects are not followed; write the URL that it leads to"},
		400: {webhook.Refused, "400 Bad Request: check that it expects the format CloudEvents"},
		401: {webhook.Refused, "401 Unauthorized: check the URL, and token and hmacKey in the Secret that secretRef names"},
		402: {webhook.Refused, "402 Payment Required: " + log},
		403: {webhook.Refused, "403 Forbidden: check the URL, and token and hmacKey in the Secret that secretRef names"},
		404: {webhook.Refused, "404 Not Found: check the path of the URL, and whether the webhook was removed"},
		405: {webhook.Refused, "405 Method Not Allowed: it takes no POST; check the path of the URL"},
		408: {webhook.Retry, "408 Request Timeout: " + log},
		410: {webhook.Refused, "410 Gone: check the path of the URL, and whether the webhook was removed"},
		413: {webhook.Refused, "413 Request Entity Too Large: the message is too large for it; payload: Keys makes smaller ones"},
		415: {webhook.Refused, "415 Unsupported Media Type: check that it expects the format CloudEvents"},
		422: {webhook.Refused, "422 Unprocessable Entity: check that it expects the format CloudEvents"},
		425: {webhook.Refused, "425 Too Early: " + log},
		429: {webhook.Retry, "429 Too Many Requests: it gets more than it allows; subscribe to fewer events or sources"},
		499: {webhook.Refused, "499: " + log},
		500: {webhook.Retry, "500 Internal Server Error: check the server and its log"},
		502: {webhook.Retry, "502 Bad Gateway: check the server and its log"},
		503: {webhook.Retry, "503 Service Unavailable: check the server and its log"},
		504: {webhook.Retry, "504 Gateway Timeout: check the server and its log"},
		599: {webhook.Retry, "599: check the server and its log"},
		600: {webhook.Refused, "600: check the server and its log"},
		999: {webhook.Refused, "999: check the server and its log"},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			want := webhook.Outcome{Result: tc.result, Status: status}
			if tc.advice != "" {
				want.Message = url + " answered " + tc.advice
			}
			NewWithT(t).Expect(newClient(t).Deliver(t.Context(), webhook.Endpoint{URL: url}, messageOf(t, modified()))).To(Equal(want))
		})
	}
}

func TestF6TheFormatThatWasSentIsNamed(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	to := webhook.Endpoint{URL: url, Format: webhook.Slack}
	outcome := newClient(t).Deliver(t.Context(), to, messageOf(t, modified()))
	NewWithT(t).Expect(outcome.Message).To(HaveSuffix("check that it expects the format Slack"))
}

func TestF6RetryAfterIsHonoured(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"":                     0,
		"120":                  2 * time.Minute,
		"0":                    0,
		"-5":                   0,
		"1.5":                  0,
		"soon":                 0,
		"3600":                 time.Hour,
		"3601":                 time.Hour,
		"9223372037":           time.Hour,
		"99999999999999999999": time.Hour,
		noon.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		noon.Add(time.Minute).Format(time.RFC850):          time.Minute,
		noon.Add(time.Minute).Format(time.ANSIC):           time.Minute,
		noon.Add(24 * time.Hour).Format(http.TimeFormat):   time.Hour,
		noon.Add(-time.Minute).Format(http.TimeFormat):     0,
		noon.Format(http.TimeFormat):                       0,
		"Fri, 31 Dec 9999 23:59:59 GMT":                    time.Hour,
	} {
		t.Run(value, func(t *testing.T) {
			g := NewWithT(t)
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", value)
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			outcome := newClient(t).Deliver(t.Context(), webhook.Endpoint{URL: url}, messageOf(t, modified()))
			g.Expect(outcome.RetryAfter).To(Equal(want))
			if want > 0 {
				g.Expect(outcome.Message).To(ContainSubstring("503 Service Unavailable, and asks to wait for " + want.String() + ": "))
			} else {
				g.Expect(outcome.Message).To(ContainSubstring("503 Service Unavailable: "))
			}
		})
	}
}

func TestF6RetryAfterCountsOnlyWhereItIsTriedAgain(t *testing.T) {
	for status, want := range map[int]time.Duration{200: 0, 301: 0, 404: 0, 408: time.Minute, 429: time.Minute, 500: time.Minute} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(status)
		})
		outcome := newClient(t).Deliver(t.Context(), webhook.Endpoint{URL: url}, messageOf(t, modified()))
		NewWithT(t).Expect(outcome.RetryAfter).To(Equal(want), "status %d", status)
	}
}

// short is a time that nothing in these tests keeps to.
const short = 50 * time.Millisecond

func TestF6NoAnswerIsTriedAgain(t *testing.T) {
	g := NewWithT(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	nobody := port(closed)
	g.Expect(closed.Close()).To(Succeed())
	mute := listen(t, readAll)
	plain := strings.TrimPrefix(serve(t, func(http.ResponseWriter, *http.Request) {}), "http://hooks.shop.svc:")
	_, secure := serveTLS(t, func(http.ResponseWriter, *http.Request) {})
	_, old := serveTLS(t, nil, func(s *httptest.Server) {
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	})
	_, needsCertificate := serveTLS(t, nil, func(s *httptest.Server) {
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}
	})
	_, selfSigned := serveTLS(t, nil, certificate(t, noon.AddDate(100, 0, 0)))
	_, expired := serveTLS(t, nil, certificate(t, noon.AddDate(-10, 0, 0)))
	other, _ := serveTLS(t, nil, certificate(t, noon.AddDate(100, 0, 0)))
	expiredServer, expiredButKnown := serveTLS(t, nil, certificate(t, noon.AddDate(-10, 0, 0)))

	for name, tc := range map[string]struct {
		to   webhook.Endpoint
		want string
	}{
		"no such host": {webhook.Endpoint{URL: "https://hoks.example"},
			"https://hoks.example is not known to DNS: check the spelling of the host, and that its Service is there"},
		"DNS is broken": {webhook.Endpoint{URL: "https://broken.example"},
			"https://broken.example can't be looked up now: check the cluster's DNS"},
		"nothing listens": {webhook.Endpoint{URL: "http://hooks.shop.svc:" + nobody},
			" refused the connection: check that the server runs, and the port of the URL"},
		"it hangs up": {webhook.Endpoint{URL: "http://hooks.shop.svc:" + listen(t, func(net.Conn) {})},
			" can't be reached, or broke the connection off: check the server, and NetworkPolicies between it and the operator"},
		"it never answers": {webhook.Endpoint{URL: "http://hooks.shop.svc:" + mute},
			" didn't answer within 50ms: check that the server runs, and that NetworkPolicies let the operator reach it"},
		"it never answers the handshake": {webhook.Endpoint{URL: "https://example.com:" + mute},
			" didn't answer within 50ms: check that the server runs, and that NetworkPolicies let the operator reach it"},
		"it answers something else": {webhook.Endpoint{URL: "http://hooks.shop.svc:" + listen(t, func(conn net.Conn) {
			answer(conn, "SSH-2.0-OpenSSH_9.9\r\n")
			readAll(conn)
		})}, " can't be reached, or broke the connection off: check the server, and NetworkPolicies between it and the operator"},
		"it has too much to say": {webhook.Endpoint{URL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", 1<<20))
		})}, " can't be reached, or broke the connection off: check the server, and NetworkPolicies between it and the operator"},
		"plain HTTP": {webhook.Endpoint{URL: "https://example.com:" + plain}, " doesn't speak TLS: check the port of the URL"},
		"no TLS": {webhook.Endpoint{URL: "https://example.com:" + listen(t, func(conn net.Conn) {
			answer(conn, "SSH-2.0-OpenSSH_9.9\r\n")
			readAll(conn)
		})}, " doesn't speak TLS: check the port of the URL"},
		"old TLS": {webhook.Endpoint{URL: old},
			" failed the TLS handshake: check that the server offers TLS 1.2 or newer, and wants no client certificate"},
		"it wants a certificate": {webhook.Endpoint{URL: needsCertificate},
			" failed the TLS handshake: check that the server offers TLS 1.2 or newer, and wants no client certificate"},
		"another host": {webhook.Endpoint{URL: strings.Replace(secure, "example.com", "other.example", 1)},
			" has a certificate for other hosts: check the host of the URL, and the server's certificate"},
		"an unknown authority": {webhook.Endpoint{URL: selfSigned},
			" has a certificate of an unknown authority: put its CA into key ca.crt of the Secret that secretRef names"},
		"another CA": {webhook.Endpoint{URL: selfSigned, CABundle: bundleOf(other)},
			" has a certificate that key ca.crt of the Secret doesn't verify: put the CA there that the server's is from"},
		"an expired certificate": {webhook.Endpoint{URL: expiredButKnown, CABundle: bundleOf(expiredServer)},
			" has a certificate that is expired, or not valid yet: renew it, and check the clocks"},
		"an expired certificate of an unknown authority": {webhook.Endpoint{URL: expired},
			" has a certificate that is expired, or not valid yet: renew it, and check the clocks"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := 10 * time.Second
			if strings.HasPrefix(name, "it never") {
				timeout = short
			}
			client := newClient(t, within(timeout), finding(servers.and(zone{"broken.example": {""}})))
			want := tc.want
			if strings.HasPrefix(want, " ") {
				want = tc.to.URL + want
			}
			NewWithT(t).Expect(client.Deliver(t.Context(), tc.to, messageOf(t, modified()))).To(
				Equal(webhook.Outcome{Result: webhook.Retry, Message: want}))
		})
	}
}

// certificate gives a server one of its own for example.com and other names, which it has signed itself.
func certificate(t *testing.T, until time.Time, names ...string) func(*httptest.Server) {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: until.AddDate(-200, 0, 0), NotAfter: until,
		DNSNames: append([]string{"example.com"}, names...), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	return func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	}
}

func TestF6WhatIsNotSent(t *testing.T) {
	const token = "https://example.com: the key token of its Secret must be in printable ASCII without spaces, to be sent in a header"
	const key = "https://example.com: the key hmacKey of its Secret begins with whsec_, and must go on with the key as base64"
	for name, tc := range map[string]struct {
		to   webhook.Endpoint
		want string
	}{
		"no URL":             {webhook.Endpoint{}, "the webhook: the URL must begin with https://, or for a Service of the cluster with http://"},
		"no valid URL":       {webhook.Endpoint{URL: "https://example.com:https/"}, "the webhook: its URL is not valid"},
		"a line break in it": {webhook.Endpoint{URL: "https://example.com/\r\nX-Evil: 1"}, "the webhook: its URL is not valid"},
		"a format of no name": {webhook.Endpoint{URL: "https://example.com/a", Format: "Discord"},
			"https://example.com: its format must be CloudEvents, Slack, MSTeams or GoogleChat"},
		"a token that is no header": {webhook.Endpoint{URL: "https://example.com/a", Token: []byte("s3cr3t\r\nX-Evil: 1")}, token},
		"a token in another script": {webhook.Endpoint{URL: "https://example.com/a", Token: []byte("schlüssel")}, token},
		"a key that is no base64":   {webhook.Endpoint{URL: "https://example.com/a", HMACKey: []byte("whsec_s3cr3t!")}, key},
		"a key of no bytes":         {webhook.Endpoint{URL: "https://example.com/a", HMACKey: []byte("whsec_")}, key},
		"a bundle of nothing": {webhook.Endpoint{URL: "https://example.com/a", CABundle: []byte("s3cr3t")},
			"https://example.com: the key ca.crt of its Secret has no certificate in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := newClient(t, finding(zone{})).Deliver(t.Context(), tc.to, messageOf(t, modified()))
			NewWithT(t).Expect(outcome).To(Equal(webhook.Outcome{Result: webhook.Refused, Message: tc.want}))
		})
	}
}

func TestF6NoMessageIsNotSent(t *testing.T) {
	outcome := newClient(t, finding(zone{})).Deliver(t.Context(), webhook.Endpoint{URL: "https://example.com/a"}, webhook.Message{})
	NewWithT(t).Expect(outcome).To(Equal(webhook.Outcome{
		Result: webhook.Refused, Message: "https://example.com: there is no message to send"}))
}
