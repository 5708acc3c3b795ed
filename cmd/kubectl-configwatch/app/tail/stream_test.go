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

package tail_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ktechhub/configwatch/internal/feed"
)

// streamServer is an operator's stream, as far as a client sees it. It brings what the test says.
type streamServer struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	requests []string // with what they resume
	refuse   *apierrors.StatusError
	conns    chan *streamConn
}

// streamConn is a stream that a client has opened.
type streamConn struct {
	t     *testing.T
	write chan string
	ended chan struct{}
}

func newStreamServer(t *testing.T) *streamServer {
	t.Helper()
	s := &streamServer{t: t, conns: make(chan *streamConn, 9)}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *streamServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	refuse := s.refuse
	s.requests = append(s.requests, r.Header.Get("Authorization")+" "+r.URL.String()+" "+r.Header.Get("Last-Event-ID"))
	s.mu.Unlock()
	if refuse != nil {
		if refuse.ErrStatus.Details != nil && refuse.ErrStatus.Details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(refuse.ErrStatus.Details.RetryAfterSeconds))
		}
		answer(w, int(refuse.ErrStatus.Code), &refuse.ErrStatus)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 10\n\n")
	c := &streamConn{t: s.t, write: make(chan string, 99), ended: make(chan struct{})}
	defer close(c.ended)
	s.conns <- c
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case text, open := <-c.write:
			if !open {
				return
			}
			fmt.Fprint(w, text)
		}
	}
}

func (s *streamServer) set(refuse *apierrors.StatusError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// asked is the last request.
func (s *streamServer) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		return ""
	}
	return s.requests[len(s.requests)-1]
}

// conn is the next stream that is opened.
func (s *streamServer) conn() *streamConn {
	s.t.Helper()
	select {
	case c := <-s.conns:
		return c
	case <-time.After(10 * time.Second):
		s.t.Fatal("nobody connects")
		return nil
	}
}

// send sends a change under an id.
func (c *streamConn) send(id string, change feed.Change) {
	c.t.Helper()
	g := NewWithT(c.t)
	if change.Time.IsZero() {
		change.Time = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	}
	e, err := change.CloudEvent()
	g.Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(e)
	g.Expect(err).NotTo(HaveOccurred())
	c.write <- fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, change.Type, text)
}

// cut ends the connection.
func (c *streamConn) cut() {
	close(c.write)
	<-c.ended
}

func modified(name, version string) feed.Change {
	return feed.Change{
		Type: feed.Modified, Namespace: "shop", Kind: "ConfigMap", Name: name, UID: "uid", ResourceVersion: version,
		Hash: "1:new", PreviousHash: "1:old", ChangedKeys: []string{"LOG_LEVEL"},
	}
}

// streaming runs tail against the stream, as a user with a token.
func streaming(t *testing.T, s *streamServer, args ...string) *running {
	t.Helper()
	api := newServer(t)
	api.secure = true
	t.Cleanup(func() { NewWithT(t).Expect(api.asked()).To(BeEmpty(), "the API server is not asked") })
	return run(t, api, append([]string{"--stream", s.URL, "--stream-ca", s.ca(), "--token", "my-token"}, args...)...)
}

// ca is a file with the certificate of the server.
func (s *streamServer) ca() string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	NewWithT(s.t).Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	return file
}

func TestF10TailReadsTheStream(t *testing.T) {
	s := newStreamServer(t)
	r := streaming(t, s)
	c := s.conn()
	r.Eventually(r.errOut).Should(gbytes.Say(`Watching ConfigMaps and Secrets in namespace shop\. Ctrl-C ends it\.\n`))
	r.Expect(s.asked()).To(Equal("Bearer my-token /v1/namespaces/shop/changes? "))
	c.send("1", modified("web", "41"))
	c.write <- ": heartbeat\nid: 2\n\n"
	c.write <- "event: OfALaterVersion\ndata: {}\n\n"
	c.send("3", feed.Change{Type: feed.Gap, Lost: 7, Namespace: "shop"})
	r.Eventually(r.lines).Should(HaveExactElements(
		"Modified ConfigMap shop/web (LOG_LEVEL)", "Gap 7 changes were lost, and what they were is not known"))
	r.interrupt()
	r.Eventually(r.ended).Should(Receive(BeNil()))
}

func TestF10TailAsksTheStreamForWhatTheFlagsDo(t *testing.T) {
	for args, want := range map[[4]string]string{
		{"-A", "-l", "app=demo", "--kind=Secret"}:         "/v1/changes?kind=Secret&labelSelector=app%3Ddemo",
		{"-n", "blog", "--events", "added,Deleted"}:       "/v1/namespaces/blog/changes?events=Added%2CDeleted",
		{"--initial", "--events", "Added", "-o=json"}:     "/v1/namespaces/shop/changes?events=Added&initial=true",
		{"--count", "--events", "Added", "--kind=Secret"}: "/v1/namespaces/shop/changes?initial=true&kind=Secret",
	} {
		s := newStreamServer(t)
		r := streaming(t, s, args[:]...)
		r.Eventually(s.asked, "10s").Should(Equal("Bearer my-token " + want + " "))
	}
}

func TestF10TailOfTheStreamWritesTheSameCloudEvents(t *testing.T) {
	s := newStreamServer(t)
	r := streaming(t, s, "-o", "json")
	change := modified("web", "41")
	change.Time = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s.conn().send("1", change)
	e, err := change.CloudEvent()
	r.Expect(err).NotTo(HaveOccurred())
	want, err := json.Marshal(e)
	r.Expect(err).NotTo(HaveOccurred())
	r.Eventually(func() string { return string(r.out.Contents()) }).Should(MatchJSON(want))
}

func TestF10TailCountsWhatTheStreamBrings(t *testing.T) {
	s := newStreamServer(t)
	r := streaming(t, s, "--count")
	c := s.conn()
	present := modified("web", "41")
	present.Type, present.Initial = feed.Added, true
	c.send("", present)
	c.send("1", feed.Change{Type: feed.Synced})
	c.send("2", modified("web", "42"))
	r.Eventually(r.lines).Should(HaveExactElements(
		"1 ConfigMaps, 0 Secrets; 0 added, 0 modified, 0 deleted, 0 lost", "1 ConfigMaps, 0 Secrets; 0 added, 1 modified, 0 deleted, 0 lost"))
}

func TestF11TailGoesOnWhereTheStreamWasLost(t *testing.T) {
	s := newStreamServer(t)
	r := streaming(t, s)
	c := s.conn()
	c.send("ConfigMap=41,Secret=7", modified("web", "41"))
	r.Eventually(r.lines).Should(HaveLen(1))
	c.cut()
	c = s.conn()
	r.Eventually(r.errOut).Should(gbytes.Say("Lost the connection, and trying again: the server ended it\n"))
	r.Eventually(r.errOut).Should(gbytes.Say(`Connected again\. What changed in the meantime is shown\.\n`))
	r.Expect(s.asked()).To(HaveSuffix(" ConfigMap=41,Secret=7"))
	c.write <- "event: Ended\ndata: {\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/\",\"type\":\"x\",\"data\":{\"message\":\"this replica shuts down\"}}\n\n"
	c.cut()
	s.conn()
	r.Eventually(r.errOut).Should(gbytes.Say("Lost the connection, and trying again: this replica shuts down\n"))
	r.Expect(r.lines()).To(HaveLen(1), "no gap")
}

func TestF10WhatCantBeGoneOnFromIsAGap(t *testing.T) {
	s := newStreamServer(t)
	r := streaming(t, s)
	s.conn().cut() // before there was an id
	s.conn()
	r.Eventually(r.lines).Should(HaveExactElements("Gap changes were lost, and what they were is not known"))
	r.Eventually(r.errOut).Should(gbytes.Say(`Connected again\.\n`))
}

func TestF10TailSaysWhyTheStreamIsRefused(t *testing.T) {
	s := newStreamServer(t)
	s.set(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errNotAllowed))
	r := streaming(t, s)
	r.Eventually(r.ended, "10s").Should(Receive(MatchError("the stream is refused: 403 Forbidden: configmaps is forbidden: not allowed")))
}

func TestF10TailWaitsForAStreamThatIsNotThereYet(t *testing.T) {
	s := newStreamServer(t)
	unavailable := apierrors.NewServiceUnavailable("not read yet")
	unavailable.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	s.set(unavailable)
	r := streaming(t, s)
	r.Eventually(r.errOut, "10s").Should(gbytes.Say("Waiting for the stream: the stream is refused: 503 Service Unavailable: not read yet\n"))
	s.set(nil)
	r.Eventually(r.errOut, "10s").Should(gbytes.Say("^Watching "))
}

func TestF10ATokenGoesOnlyWhereItShould(t *testing.T) {
	s := newStreamServer(t)
	elsewhere := newStreamServer(t)
	moved := httptest.NewTLSServer(http.RedirectHandler(elsewhere.URL+"/v1/changes", http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	plain := httptest.NewServer(s)
	t.Cleanup(plain.Close)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"by TLS":                     {[]string{"--stream", plain.URL}, "--stream must be such as https://localhost:8444; your token is sent there, so that it can't be http"},
		"with no user":               {[]string{"--stream", "https://u:p@localhost"}, "--stream must be such as "},
		"to whom the CA vouches for": {[]string{"--stream", s.URL, "--token=t"}, "reading the stream: tls: failed to verify certificate: "},
		"to the host that is meant": {[]string{"--stream", s.URL, "--stream-ca", s.ca(), "--stream-server-name", "other.test", "--token=t"},
			"reading the stream: tls: failed to verify certificate: x509: certificate is valid for "},
		"without another user's name": {[]string{"--stream", s.URL, "--as", "jane"}, "--as can't be used with --stream"},
		"if there is one":             {[]string{"--stream", s.URL, "--stream-ca", s.ca()}, "reading the stream: the kubeconfig has no bearer token"},
		"and no password":             {[]string{"--stream", s.URL, "--stream-ca", s.ca(), "--username=u", "--password=p"}, ""},
		"from there to nowhere else":  {[]string{"--stream", moved.URL, "--stream-ca", s.ca(), "--token=t"}, "the stream is refused: 307 Temporary Redirect"},
		"with a CA":                   {[]string{"--stream", s.URL, "--stream-ca", os.DevNull, "--token=t"}, "reading --stream-ca: /dev/null has no certificate in PEM"},
		"with a CA that is there":     {[]string{"--stream", s.URL, "--stream-ca", "no-such-file", "--token=t"}, "reading --stream-ca: open no-such-file"},
		"that is said":                {[]string{"--stream-ca", s.ca()}, "--stream-ca and --stream-server-name are of no use without --stream"},
	} {
		t.Run(name, func(t *testing.T) {
			api := newServer(t)
			api.secure = true
			r := run(t, api, tc.args...)
			var err error
			r.Eventually(r.ended, "10s").Should(Receive(&err))
			r.Expect(err).To(MatchError(HavePrefix(tc.want)))
			r.Expect(s.asked()).To(BeEmpty())
			r.Expect(elsewhere.asked()).To(BeEmpty())
		})
	}
}

func TestF10ATokenMayComeFromAnExecPlugin(t *testing.T) {
	s := newStreamServer(t)
	g := NewWithT(t)
	plugin := filepath.Join(t.TempDir(), "plugin")
	g.Expect(os.WriteFile(plugin, []byte(`#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-plugin"}}'
`), 0o700)).To(Succeed())
	api := newServer(t)
	api.secure = true
	api.user = `{exec: {apiVersion: client.authentication.k8s.io/v1, command: "` + plugin + `", interactiveMode: Never}}`
	r := run(t, api, "--stream", s.URL, "--stream-ca", s.ca())
	r.Eventually(s.asked, "10s").Should(HavePrefix("Bearer from-plugin "))
}
