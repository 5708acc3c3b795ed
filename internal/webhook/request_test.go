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

package webhook

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
)

// An example of the libraries of Standard Webhooks, which all have it among their tests.
func TestF6SignaturesAreThoseOfStandardWebhooks(t *testing.T) {
	g := NewWithT(t)
	header := http.Header{}
	g.Expect(sign(header, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "msg_p5jXN8AQM9LWM0D4loKWxJek",
		time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))).To(Succeed())
	g.Expect(header).To(Equal(http.Header{
		"Webhook-Id":        {"msg_p5jXN8AQM9LWM0D4loKWxJek"},
		"Webhook-Timestamp": {"1614265330"},
		"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
	}))
}

// Attributes that the feed may add to its events one day arrive too.
func TestF6ExtensionsOfACloudEventAreSent(t *testing.T) {
	g := NewWithT(t)
	m, err := FromChange(feed.Change{Type: feed.Added, Kind: v1alpha1.ConfigMap, Name: "web", UID: "b0c1", ResourceVersion: "42"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	m.event.SetExtension("sequence", "a b")
	header, _, err := m.render(t.Context(), CloudEvents)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(header).To(HaveKeyWithValue("Ce-Sequence", []string{"a%20b"}))
	g.Expect(cloudEventHeader{header}.SetExtension("broken", struct{}{})).To(MatchError(HavePrefix("writing the attribute Ce-broken: ")))
}

func TestF7AnAddressThatCannotBeReadIsNotConnectedTo(t *testing.T) {
	g := NewWithT(t)
	guard := destinationGuard(nil) // it must not be asked
	for _, address := range []string{"", "example.com:443", "/var/run/docker.sock"} {
		g.Expect(guard.control(t.Context(), "tcp", address, nil)).To(MatchError(HavePrefix("checking the address: ")), address)
	}
}

func FuzzPercentEncode(f *testing.F) {
	for _, seed := range []string{"", "Euro € 😀", `50% "a"`, "a\r\nX-Evil: 1", "\x00\x7f\xff", "a.b~c", "%25"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		g := NewWithT(t)
		encoded := percentEncode(value, '.')
		for _, b := range []byte(encoded) {
			g.Expect(b > ' ' && b < 0x7f && b != '"' && b != '.').To(BeTrue(), "%q", encoded)
		}
		g.Expect(url.PathUnescape(encoded)).To(Equal(strings.ToValidUTF8(value, "\uFFFD")))
	})
}

// Whatever there is in names and messages, a chat gets one line of readable characters, in which nothing of that is
// markup, and the request has no more headers than it should.
func FuzzChatMessages(f *testing.F) {
	for _, seed := range [][4]string{
		{"web", "LOG_LEVEL", "ConfigMap app-config changed (LOG_LEVEL)", ""},
		{"<!channel>", "`", "<https://evil.example|click>", "</at> *b* _i_ ~s~ ```c```"},
		{"a\r\nX-Evil: 1", "&lt;!here&gt;", "\u202e\u2066reversed", "\x00\xff\xfe"},
		{"😀", "ключ", "一二三", "{{DATE(2017-02-14T06:00:00Z)}}"},
		{strings.Repeat("a", 1000), strings.Repeat("`", 1000), strings.Repeat("<", 1000), strings.Repeat("\u0301", 1000)},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, name, key, cause, outcome string) {
		for _, m := range []Message{
			{text: changeText(feed.Change{Type: feed.Modified, Kind: v1alpha1.ConfigMap, Namespace: "shop", Name: name, ChangedKeys: []string{key}})},
			{text: rolloutText(Rollout{Event: RolloutFailed, Namespace: "shop", ConfigWatch: name, Cause: cause, Outcome: outcome,
				Target: Target{Kind: "Deployment", Name: name}})},
		} {
			checkChats(t, m)
		}
	})
}

func checkChats(t *testing.T, m Message) {
	t.Helper()
	g := NewWithT(t)
	plain := ""
	for _, p := range m.text {
		plain += p.text
	}
	g.Expect(utf8.ValidString(plain)).To(BeTrue())
	g.Expect(strings.IndexFunc(plain, func(r rune) bool { return !unicode.IsPrint(r) })).To(Equal(-1), "%q", plain)
	g.Expect(utf8.RuneCountInString(plain)).To(BeNumerically("<", 5*longestQuote))

	slack := slackMessage(m.text).Text
	unescaped := strings.NewReplacer("&lt;", "", "&gt;", "", "&amp;", "").Replace(slack)
	g.Expect(unescaped).NotTo(containAny("&<>"), "%q", slack)
	g.Expect(outsideOfCode(slack)).To(Equal(m.text.words()))

	googleChat := googleChatMessage(m.text).Text
	g.Expect(googleChat).NotTo(containAny("<>"), "%q", googleChat)
	g.Expect(outsideOfCode(googleChat)).To(Equal(m.text.words()))

	encoded, err := json.Marshal(newTeamsMessage(m.text))
	g.Expect(err).NotTo(HaveOccurred())
	var teams teamsMessage
	g.Expect(json.Unmarshal(encoded, &teams)).To(Succeed())
	arrived := ""
	for _, run := range teams.Attachments[0].Content.Body[0].Inlines {
		arrived += run.Text
	}
	g.Expect(arrived).To(Equal(plain))
}

// outsideOfCode is what a chat may find markup in: what is not between backquotes.
func outsideOfCode(line string) string {
	outside := ""
	for n, part := range strings.Split(line, "`") {
		if n%2 == 0 {
			outside += part
		}
	}
	return outside
}

// words are those of ours.
func (t text) words() string {
	words := ""
	for _, p := range t {
		if !p.quoted {
			words += p.text
		}
	}
	return words
}

// containAny matches a string that has one of the characters in it.
func containAny(characters string) OmegaMatcher {
	return WithTransform(func(s string) bool { return strings.ContainsAny(s, characters) }, BeTrue())
}
