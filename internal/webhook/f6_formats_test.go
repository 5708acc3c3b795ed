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
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/webhook"
)

var update = flag.Bool("update", false, "write what is sent into testdata")

// The requests in testdata are as they arrive, but for the order of headers.
func TestF6WhatIsSent(t *testing.T) {
	data := &webhook.ConfigMapData{Data: map[string]string{"LOG_LEVEL": "debug"}, BinaryData: map[string][]byte{"logo.png": {0xff, 0x00}}}
	withData, err := webhook.FromChange(modified(), data)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	change := messageOf(t, modified())
	formats := []webhook.Format{webhook.CloudEvents, webhook.Slack, webhook.MSTeams, webhook.GoogleChat}
	for name, tc := range map[string]struct {
		message webhook.Message
		to      webhook.Endpoint
		formats []webhook.Format
	}{
		"modified": {change, webhook.Endpoint{}, formats},
		"added": {messageOf(t, modified(func(c *feed.Change) {
			c.Type, c.Kind, c.PreviousHash, c.ChangedKeys = feed.Added, v1alpha1.Secret, "", []string{"password"}
		})), webhook.Endpoint{}, formats},
		"deleted": {messageOf(t, modified(func(c *feed.Change) {
			c.Type, c.ResourceVersion, c.Hash, c.ChangedKeys = feed.Deleted, "", "", nil
		})), webhook.Endpoint{}, formats},
		"data": {withData, webhook.Endpoint{}, formats},
		"triggered": {messageOfRollout(t, failed(func(r *webhook.Rollout) {
			r.Event, r.Outcome = webhook.RestartTriggered, ""
		})), webhook.Endpoint{}, formats},
		"completed": {messageOfRollout(t, failed(func(r *webhook.Rollout) {
			r.Event, r.Outcome = webhook.RolloutCompleted, "3 of 3 pods are new"
		})), webhook.Endpoint{}, formats},
		"failed": {messageOfRollout(t, failed()), webhook.Endpoint{}, formats},
		"signed": {change, webhook.Endpoint{Token: []byte("s3cr3t\n"), HMACKey: []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")}, formats[:1]},
	} {
		for _, format := range tc.formats {
			t.Run(name+"-"+string(format), func(t *testing.T) {
				tc.to.Format = format
				NewWithT(t).Expect(sent(t, tc.to, tc.message)).To(matchGolden(t, name+"-"+string(format)+".http"))
			})
		}
	}
}

// sent is the request that an endpoint gets, its body indented.
func sent(t *testing.T, to webhook.Endpoint, m webhook.Message) string {
	t.Helper()
	g := NewWithT(t)
	var dump []byte
	to.URL = serve(t, func(_ http.ResponseWriter, r *http.Request) {
		var err error
		r.Host = "hooks.shop.svc"
		dump, err = httputil.DumpRequest(r, true)
		g.Expect(err).NotTo(HaveOccurred())
	}) + "/configwatch?channel=ops"
	g.Expect(newClient(t).Deliver(t.Context(), to, m)).To(Equal(webhook.Outcome{Result: webhook.Delivered, Status: 200}))
	header, body, found := strings.Cut(string(dump), "\r\n\r\n")
	g.Expect(found).To(BeTrue())
	var indented bytes.Buffer
	g.Expect(json.Indent(&indented, []byte(body), "", "  ")).To(Succeed())
	return strings.ReplaceAll(header, "\r\n", "\n") + "\n\n" + indented.String() + "\n"
}

func matchGolden(t *testing.T, file string) OmegaMatcher {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		return WithTransform(func(actual string) error { return os.WriteFile(path, []byte(actual), 0o600) }, Succeed())
	}
	golden, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "go test ./internal/webhook -update writes it")
	return Equal(string(golden))
}

// The example is that of the HTTP binding of CloudEvents 1.0.2, section 3.1.3.2.
func TestF6AttributesArriveAsTheyAre(t *testing.T) {
	g := NewWithT(t)
	rollout := failed(func(r *webhook.Rollout) {
		r.Target.Name, r.UID = "Euro € 😀", "50% \"c0de\"\r\nX-Evil: 1"
	})
	headers := make(chan http.Header, 1)
	to := webhook.Endpoint{URL: serve(t, func(_ http.ResponseWriter, r *http.Request) { headers <- r.Header }), HMACKey: []byte("key")}
	g.Expect(newClient(t).Deliver(t.Context(), to, messageOfRollout(t, rollout)).Result).To(Equal(webhook.Delivered))

	header := <-headers
	g.Expect(header.Get("Ce-Subject")).To(Equal("Deployment/Euro%20%E2%82%AC%20%F0%9F%98%80"))
	g.Expect(header.Get("Ce-Id")).To(Equal("50%25%20%22c0de%22%0D%0AX-Evil:%201/d0c5/7/failed"))
	g.Expect(header.Get("Webhook-Id")).To(Equal(header.Get("Ce-Id")))
	g.Expect(url.PathUnescape(header.Get("Ce-Id"))).To(HavePrefix(string(rollout.UID)))
	g.Expect(header).NotTo(HaveKey("X-Evil"))
	g.Expect(header).NotTo(HaveKey("Ce-Datacontenttype"))
}

func TestF6TheDataOfAConfigMapIsSentToProgramsOnly(t *testing.T) {
	const canary = "canary-of-a-value"
	data := &webhook.ConfigMapData{Data: map[string]string{"LOG_LEVEL": canary}}
	m, err := webhook.FromChange(modified(), data)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for format, want := range map[webhook.Format]bool{
		webhook.CloudEvents: true, webhook.Slack: false, webhook.MSTeams: false, webhook.GoogleChat: false,
	} {
		g := NewWithT(t)
		request := sent(t, webhook.Endpoint{Format: format}, m)
		g.Expect(strings.Contains(request, canary)).To(Equal(want), string(format))
		g.Expect(request).To(ContainSubstring("LOG_LEVEL"), string(format))
	}
}

func TestF6AnEmptyConfigMapHasDataTooIfAskedFor(t *testing.T) {
	g := NewWithT(t)
	m, err := webhook.FromChange(modified(), &webhook.ConfigMapData{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sent(t, webhook.Endpoint{}, m)).To(ContainSubstring(`"data": {}`))
}

func TestF6WhatIsNoMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		make func() (webhook.Message, error)
		want string
	}{
		"a mark": {func() (webhook.Message, error) {
			return webhook.FromChange(feed.Change{Type: feed.Gap, Namespace: "shop", Time: noon}, nil)
		}, "a Gap is about no source"},
		"a change of no type": {func() (webhook.Message, error) {
			return webhook.FromChange(modified(func(c *feed.Change) { c.Type = "" }), nil)
		}, "making a CloudEvent of ConfigMap shop/app-config: "},
		"a line break in a source's name": {func() (webhook.Message, error) {
			return webhook.FromChange(modified(func(c *feed.Change) { c.Name = "a\r\nX-Evil: 1" }), nil)
		}, "making a CloudEvent of ConfigMap shop/a\r\nX-Evil: 1: "},
		"E2: the data of a Secret": {func() (webhook.Message, error) {
			return webhook.FromChange(modified(func(c *feed.Change) { c.Kind = v1alpha1.Secret }), &webhook.ConfigMapData{})
		}, "adding the data of Secret shop/app-config: only that of a ConfigMap is ever sent"},
		"a rollout's event of no kind": {func() (webhook.Message, error) {
			return webhook.FromRollout(failed(func(r *webhook.Rollout) { r.Event = "Modified" }))
		}, "making a CloudEvent of a rollout of Deployment shop/web: "},
		"a rollout without the ConfigWatch's uid": {func() (webhook.Message, error) {
			return webhook.FromRollout(failed(func(r *webhook.Rollout) { r.UID = "" }))
		}, "making a CloudEvent of a rollout of Deployment shop/web: id: "},
		"a rollout without the target's uid": {func() (webhook.Message, error) {
			return webhook.FromRollout(failed(func(r *webhook.Rollout) { r.Target.UID = "" }))
		}, "making a CloudEvent of a rollout of Deployment shop/web: id: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.make()
			NewWithT(t).Expect(err).To(MatchError(HavePrefix(tc.want)))
		})
	}
}

func TestF6EachEventOfARestartHasAnIDOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	ids := map[string]bool{}
	for _, change := range []func(*webhook.Rollout){
		func(*webhook.Rollout) {},
		func(r *webhook.Rollout) { r.Event = webhook.RestartTriggered },
		func(r *webhook.Rollout) { r.Event = webhook.RolloutCompleted },
		func(r *webhook.Rollout) { r.Restart++ },
		func(r *webhook.Rollout) { r.UID = "another" },
		func(r *webhook.Rollout) { r.Target.UID = "another" },
	} {
		ids[messageOfRollout(t, failed(change)).ID()] = true
	}
	g.Expect(ids).To(HaveLen(6))
	later := failed(func(r *webhook.Rollout) { r.Time, r.Outcome = r.Time.Add(1), "said otherwise" })
	g.Expect(ids).To(HaveKey(messageOfRollout(t, later).ID()), "the same event, told again")
}

// A text is one line that can be read, whatever it is made from.
func TestF6ChatMessages(t *testing.T) {
	keys := func(n int) func(*feed.Change) {
		return func(c *feed.Change) {
			c.ChangedKeys = nil
			for i := range n {
				c.ChangedKeys = append(c.ChangedKeys, string(rune('a'+i)))
			}
		}
	}
	cause := func(cause string) func(*webhook.Rollout) {
		return func(r *webhook.Rollout) { r.Cause, r.Outcome = cause, "" }
	}
	const change, restart = "`ConfigMap app-config` in namespace `shop` was modified.",
		"`Deployment web` in namespace `shop` failed to roll out, after its restart by ConfigWatch `web`."
	for name, tc := range map[string]struct {
		message           webhook.Message
		slack, googleChat string
	}{
		"no keys":        {messageOf(t, modified(keys(0))), change, change},
		"one key":        {messageOf(t, modified(keys(1))), change + " Keys: `a`.", change + " Keys: `a`."},
		"ten keys":       {messageOf(t, modified(keys(10))), change + " Keys: `a`, `b`, `c`, `d`, `e`, `f`, `g`, `h`, `i`, `j`.", ""},
		"twelve keys":    {messageOf(t, modified(keys(12))), change + " Keys: `a`, `b`, `c`, `d`, `e`, `f`, `g`, `h`, `i`, `j` and 2 more.", ""},
		"nothing to say": {messageOfRollout(t, failed(cause(" \n"))), restart, restart},
		"markup": {
			messageOfRollout(t, failed(cause("<!channel> & <users/all> *b* _i_ ~s~ `c` [l](u)"))),
			restart + " Cause: `&lt;!channel&gt; &amp; &lt;users/all&gt; *b* _i_ ~s~ 'c' [l](u)`.",
			restart + " Cause: `‹!channel› & ‹users/all› *b* _i_ ~s~ 'c' [l](u)`.",
		},
		"several lines": {messageOfRollout(t, failed(cause("a\r\n\tb\u2028c\u00a0d"))), restart + " Cause: `a b c d`.", ""},
		"unicode":       {messageOfRollout(t, failed(cause("grün 配置 😀"))), restart + " Cause: `grün 配置 😀`.", ""},
		"what is hidden or turns the text around": {
			messageOfRollout(t, failed(cause("a\u202eb\u200bc\x00d\x1b[31m\xff"))), restart + " Cause: `abcd[31m\uFFFD`.", "",
		},
		"a long one": {
			messageOfRollout(t, failed(cause(strings.Repeat("ü", 501)))), restart + " Cause: `" + strings.Repeat("ü", 499) + "…`.", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(chatText(t, webhook.Slack, tc.message)).To(Equal(tc.slack))
			if tc.googleChat == "" {
				tc.googleChat = tc.slack
			}
			g.Expect(chatText(t, webhook.GoogleChat, tc.message)).To(Equal(tc.googleChat))
			plain := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "`", "", "'", "`").Replace(tc.slack)
			g.Expect(chatText(t, webhook.MSTeams, tc.message)).To(Equal(plain))
		})
	}
}

// chatText is what a chat gets as the text of a message.
func chatText(t *testing.T, format webhook.Format, m webhook.Message) string {
	t.Helper()
	_, body, _ := strings.Cut(sent(t, webhook.Endpoint{Format: format}, m), "\n\n")
	var got struct {
		Text        string
		Attachments []struct {
			Content struct {
				Body []struct{ Inlines []struct{ Text string } }
			}
		}
	}
	NewWithT(t).Expect(json.Unmarshal([]byte(body), &got)).To(Succeed())
	text := got.Text
	for _, attachment := range got.Attachments {
		for _, run := range attachment.Content.Body[0].Inlines {
			text += run.Text
		}
	}
	return text
}
