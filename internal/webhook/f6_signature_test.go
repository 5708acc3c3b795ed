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
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/webhook"
)

// What a receiver computes, from the specification of Standard Webhooks: a key as it would have it, and what arrived.
func signatureOf(key []byte, header http.Header, body string) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", header.Get("webhook-id"), header.Get("webhook-timestamp"), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestF6ASignatureCanBeVerified(t *testing.T) {
	raw := []byte("0123456789abcdef0123456789abcdef")
	encoded := base64.StdEncoding.EncodeToString(raw)
	for name, tc := range map[string]struct{ secret, key []byte }{
		"whsec_ and base64":                {[]byte("whsec_" + encoded), raw},
		"whsec_ and base64 and a new line": {[]byte("whsec_" + encoded + "\n"), raw},
		"bytes":                            {raw, raw},
		"bytes that end in a new line":     {append(raw, '\n'), append(raw, '\n')},
		"base64 without whsec_ is bytes":   {[]byte(encoded), []byte(encoded)},
		"bytes that are not text":          {[]byte{0, 0xff, 0x80}, []byte{0, 0xff, 0x80}},
	} {
		for _, format := range []webhook.Format{webhook.CloudEvents, webhook.Slack, webhook.MSTeams, webhook.GoogleChat} {
			t.Run(name+", "+string(format), func(t *testing.T) {
				g := NewWithT(t)
				header, body := received(t, webhook.Endpoint{HMACKey: tc.secret, Format: format}, messageOf(t, modified()))
				g.Expect(header.Get("webhook-signature")).To(Equal(signatureOf(tc.key, header, body)))
				g.Expect(header.Get("webhook-signature")).NotTo(Equal(signatureOf(tc.key, header, body+" ")))
				g.Expect(header.Get("webhook-signature")).NotTo(Equal(signatureOf(append(tc.key, '!'), header, body)))
			})
		}
	}
}

func TestF6TheSignedIDHasNoDots(t *testing.T) {
	g := NewWithT(t)
	m := messageOf(t, modified(func(c *feed.Change) { c.UID, c.ResourceVersion = "b0.c1", "4 2" }))
	header, body := received(t, webhook.Endpoint{HMACKey: []byte("key")}, m)
	g.Expect(header.Get("webhook-id")).To(Equal("b0%2Ec1/4%202"))
	g.Expect(header.Get("ce-id")).To(Equal("b0.c1/4%202"))
	g.Expect(header.Get("webhook-signature")).To(Equal(signatureOf([]byte("key"), header, body)))
}

func TestF6WithoutAKeyNothingIsSigned(t *testing.T) {
	g := NewWithT(t)
	for _, none := range [][]byte{nil, {}} {
		header, _ := received(t, webhook.Endpoint{HMACKey: none, Token: none}, messageOf(t, modified()))
		for name := range header {
			g.Expect(name).NotTo(Or(HavePrefix("Webhook-"), Equal("Authorization")))
		}
	}
}

func TestF6ATokenIsSentWithoutWhatAFileAddsToIt(t *testing.T) {
	for token, want := range map[string]string{"s3cr3t": "Bearer s3cr3t", "\ts3cr3t\r\n": "Bearer s3cr3t", " \n": ""} {
		header, _ := received(t, webhook.Endpoint{Token: []byte(token)}, messageOf(t, modified()))
		NewWithT(t).Expect(header.Get("authorization")).To(Equal(want), "%q", token)
	}
}

// received is what an endpoint gets.
func received(t *testing.T, to webhook.Endpoint, m webhook.Message) (http.Header, string) {
	t.Helper()
	var header http.Header
	var body strings.Builder
	to.URL = serve(t, func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		_, _ = io.Copy(&body, r.Body)
	})
	NewWithT(t).Expect(newClient(t).Deliver(t.Context(), to, m).Result).To(Equal(webhook.Delivered))
	return header, body.String()
}
