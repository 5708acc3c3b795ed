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

package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/webhook"
)

// The drivers read a request as JSON and end with 0 if the snippet takes it, with 3 if not.
const (
	goDriver = `package main

import (
	"encoding/json"
	"net/http"
	"os"
)

func main() {
	var request struct {
		Header    http.Header
		Body, Key []byte
	}
	if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
		panic(err)
	}
	if verify(request.Header, request.Body, request.Key) != nil {
		os.Exit(3)
	}
}
`
	pythonDriver = `
import json
import sys

request = json.load(sys.stdin)
headers = {name: values[0] for name, values in request["Header"].items()}
decode = base64.b64decode
sys.exit(0 if verify(headers, decode(request["Body"]), decode(request["Key"])) else 3)
`
)

// signed is a request as a snippet gets it.
type signed struct {
	Header    http.Header
	Body, Key []byte
}

func TestF6TheSnippetsTakeWhatTheOperatorHasSignedAndNothingElse(t *testing.T) {
	for name, command := range map[string][]string{
		"go":     goSnippet(t),
		"python": pythonSnippet(t),
	} {
		t.Run(name, func(t *testing.T) {
			if command == nil {
				t.Skip("there is no python3")
			}
			for what, tc := range map[string]struct {
				request signed
				change  func(*signed)
				taken   bool
			}{
				"as it is":          {deliver(t, time.Now()), func(*signed) {}, true},
				"four minutes late": {deliver(t, time.Now().Add(-4*time.Minute)), func(*signed) {}, true},
				"with a signature of another key beside it": {deliver(t, time.Now()), func(s *signed) {
					s.Header.Set("Webhook-Signature", "v1,b3RoZXI= v2,b3RoZXI= "+s.Header.Get("Webhook-Signature"))
				}, true},
				"an hour late":     {deliver(t, time.Now().Add(-time.Hour)), func(*signed) {}, false},
				"from the future":  {deliver(t, time.Now().Add(time.Hour)), func(*signed) {}, false},
				"with another key": {deliver(t, time.Now()), func(s *signed) { s.Key = []byte("another") }, false},
				"with another body": {deliver(t, time.Now()), func(s *signed) {
					s.Body = bytes.ReplaceAll(s.Body, []byte("LOG_LEVEL"), []byte("OTHER"))
				}, false},
				"with another id":             {deliver(t, time.Now()), func(s *signed) { s.Header.Set("Webhook-Id", "b0c1/43") }, false},
				"with a signature of nothing": {deliver(t, time.Now()), func(s *signed) { s.Header.Set("Webhook-Signature", "v1,") }, false},
			} {
				tc.change(&tc.request)
				NewWithT(t).Expect(takes(t, command, tc.request)).To(Equal(tc.taken), what)
			}
		})
	}
}

// deliver is a request as the operator sends and signs it at a time.
func deliver(t *testing.T, at time.Time) signed {
	t.Helper()
	g := NewWithT(t)
	got := signed{Key: []byte("a key of 32 bytes, more or less.")}
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got.Header = r.Header
		got.Body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	client, err := webhook.New(webhook.Options{
		Guard: func(context.Context, netip.Addr) error { return nil },
		Clock: clocktesting.NewFakePassiveClock(at),
	})
	g.Expect(err).NotTo(HaveOccurred())
	message, err := webhook.FromChange(feed.Change{
		Type: feed.Modified, Namespace: "shop", Kind: v1alpha1.ConfigMap, Name: "app-config", UID: "b0c1", ResourceVersion: "42",
		ChangedKeys: []string{"LOG_LEVEL"}, Time: at,
	}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	outcome := client.Deliver(t.Context(), webhook.Endpoint{
		URL: server.URL, HMACKey: got.Key,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}, message)
	g.Expect(outcome.Result).To(Equal(webhook.Delivered), outcome.Message)
	return got
}

// takes tells whether a snippet takes a request.
func takes(t *testing.T, command []string, request signed) bool {
	t.Helper()
	g := NewWithT(t)
	input, err := json.Marshal(request)
	g.Expect(err).NotTo(HaveOccurred())
	run := exec.CommandContext(t.Context(), command[0], command[1:]...)
	run.Stdin = bytes.NewReader(input)
	out, err := run.CombinedOutput()
	g.Expect(run.ProcessState.ExitCode()).To(BeElementOf(0, 3), "%s\n%v", out, err)
	return err == nil
}

// goSnippet is a command that runs the snippet in Go.
func goSnippet(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(folder, "verify.go"), []byte(snippet(t, "go", "func verify(")), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "main.go"), []byte(goDriver), 0o600)).To(Succeed())
	program := filepath.Join(folder, "verify")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "verify.go", "main.go")
	build.Dir = folder
	out, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	return []string{program}
}

// pythonSnippet is a command that runs the one in Python, or nil where there is no Python.
func pythonSnippet(t *testing.T) []string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	program := filepath.Join(t.TempDir(), "verify.py")
	text := snippet(t, "python", "def verify(") + pythonDriver
	NewWithT(t).Expect(os.WriteFile(program, []byte(text), 0o600)).To(Succeed())
	return []string{python, program}
}

// snippet is the code in a language that has some text in it.
func snippet(t *testing.T, language, having string) string {
	t.Helper()
	page := read(t, filepath.Join("docs", "guides", "reactive-configuration.md"))
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		if strings.Contains(match[1], having) {
			return match[1]
		}
	}
	t.Fatalf("there is no snippet in %s that has %q", language, having)
	return ""
}
