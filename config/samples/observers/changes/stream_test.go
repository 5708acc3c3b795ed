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

package changes_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/config/samples/observers/changes"
)

const (
	// first is how a stream begins that can be resumed from there.
	first = "retry: 3000\nid: e-1\n"
	// anew is how a stream of present objects begins.
	anew = "retry: 3000\n"

	long = time.Hour // of fake time
)

// event is one of a ConfigMap, as the server writes it.
func event(id, event, name string) string {
	return fmt.Sprintf("%sevent: %s\ndata: %s\n", idLine(id), event,
		fmt.Sprintf(`{"specversion":"1.0","id":"uid/%s","data":{"event":%q,"namespace":"shop","kind":"ConfigMap","name":%q}}`, name, event, name))
}

func idLine(id string) string {
	if id == "" {
		return ""
	}
	return "id: " + id + "\n"
}

const synced = "id: e-9\nevent: Synced\ndata: {\"data\":{\"event\":\"Synced\"}}\n"

func lastEventIDs(w *world) []string {
	ids := []string{}
	for _, r := range w.requests {
		ids = append(ids, r.Header.Get("Last-Event-ID"))
	}
	return ids
}

func TestF8AChangeHasAllThatTheEventHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, stays(first, "id: e-2", "event: Modified",
			`data: {"specversion":"1.0","id":"uid/42","type":"io.ktechhub.configwatch.source.modified.v1",`,
			`data: "source":"/namespaces/shop/configmaps/app-config","time":"2026-11-30T12:00:00Z","data":{"event":"Modified",`,
			`data: "namespace":"shop","kind":"ConfigMap","name":"app-config","labels":{"app":"demo"},"hash":"1:b","previousHash":"1:a",`,
			`data: "changedKeys":["LOG_LEVEL"],"data":{"LOG_LEVEL":"debug"},"binaryData":{"logo":"/wA="}}}`, ""))
		followed := w.follow(changes.Query{Kind: "ConfigMap", Data: true}, time.Second)
		g.Expect(followed.err).NotTo(HaveOccurred())
		g.Expect(followed.lines()).To(HaveExactElements("Connected", "Modified app-config", "Interrupted"))
		g.Expect(followed.seen[1]).To(Equal(changes.Change{
			ID: "uid/42", Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Event: changes.Modified,
			Namespace: "shop", Kind: "ConfigMap", Name: "app-config", Labels: map[string]string{"app": "demo"},
			Hash: "1:b", PreviousHash: "1:a", ChangedKeys: []string{"LOG_LEVEL"},
			Data: map[string]string{"LOG_LEVEL": "debug"}, BinaryData: map[string][]byte{"logo": {0xff, 0}},
		}))
	})
}

func TestF8TheQueryIsThatOfTheURL(t *testing.T) {
	for want, query := range map[string]changes.Query{
		"/v1/namespaces/shop/changes":                                  {},
		"/v1/namespaces/shop/changes?data=true&kind=ConfigMap":         {Kind: "ConfigMap", Data: true},
		"/v1/namespaces/shop/changes?initial=true&name=app-config":     {Name: "app-config", Initial: true},
		"/v1/namespaces/shop/changes?labelSelector=app+in+%28a%2Cb%29": {Selector: "app in (a,b)"},
		"/v1/namespaces/shop/changes?events=Added%2CDeleted":           {Events: []changes.Event{changes.Added, changes.Deleted}},
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				w := newWorld(t, stays(first))
				w.follow(query, time.Second)
				g.Expect(w.requests).To(HaveLen(1))
				g.Expect(w.requests[0].URL.String()).To(Equal(want))
				g.Expect(w.requests[0].Header).To(HaveKeyWithValue("Authorization", []string{"Bearer s3cr3t"}))
				g.Expect(w.requests[0].Header).To(HaveKeyWithValue("Accept", []string{"text/event-stream"}))
			})
		})
	}
}

func TestF8AllNamespacesHaveAPathOfTheirOwnAndAURLMayHaveOneToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, stays(first))
		w.stream.URL, w.stream.Namespace = "https://"+host+"/configwatch/", ""
		w.follow(changes.Query{}, time.Second)
		NewWithT(t).Expect(w.requests[0].URL.Path).To(Equal("/configwatch/v1/changes"))
	})
}

func TestF8ItGoesOnAfterTheLastEventThatItHasHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t,
			said(first),
			said(anew, event("e-2", "Modified", "web"), "id: e-3\nevent: Modified\ndata: {}"), // broken off
			said(anew, ": heartbeat\nid: e-4\n"),
			stays(anew, event("e-5", "Deleted", "web")))
		followed := w.follow(changes.Query{}, time.Minute)
		g.Expect(lastEventIDs(w)).To(HaveExactElements("", "e-1", "e-2", "e-4"))
		g.Expect(followed.lines()).To(HaveExactElements(
			"Connected", "Interrupted", "Connected", "Modified web", "Interrupted",
			"Connected", "Interrupted", "Connected", "Deleted web", "Interrupted"))
	})
}

func TestF2WhatCantBeResumedIsAGap(t *testing.T) {
	for name, tc := range map[string]struct {
		broken []string
		want   []string
	}{
		"cut off while what is there is told": {
			[]string{anew, event("", "Added", "web")}, []string{"Added web"}},
		"cut off before anything came": {
			nil, nil},
		"the server told to forget the id": {
			[]string{first, "id:\nevent: Gap\ndata: {\"data\":{\"event\":\"Gap\",\"lost\":7}}\n", event("", "Added", "web")},
			[]string{"Gap", "Added web"}},
		"an event that is no JSON": {
			[]string{first, "id: e-2\nevent: Modified\ndata: {\n"}, nil},
		"a line that is too long": {
			[]string{first, "data: " + strings.Repeat("x", 17<<20)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				w := newWorld(t, said(tc.broken...), stays(anew, event("", "Added", "db"), synced))
				followed := w.follow(changes.Query{Initial: true}, time.Minute)
				g.Expect(lastEventIDs(w)).To(HaveExactElements("", ""))
				want := append([]string{"Connected"}, tc.want...)
				g.Expect(followed.lines()).To(Equal(append(want, "Interrupted", "Gap", "Connected", "Added db", "Synced", "Interrupted")))
			})
		})
	}
}

func TestF2AGapOfTheServerIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, stays(first, "event: Gap\ndata: {\"data\":{\"event\":\"Gap\",\"lost\":7}}\n", event("e-9", "Added", "web")))
		followed := w.follow(changes.Query{}, time.Second)
		g.Expect(followed.lines()).To(HaveExactElements("Connected", "Gap", "Added web", "Interrupted"))
		g.Expect(followed.seen[1].Lost).To(Equal(7))
	})
}

func TestF8WhatALaterServerSendsIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, stays(first, "event: Renamed\ndata: {\n", "colour: red", "retry: soon", event("e-2", "Added", "web")))
		NewWithT(t).Expect(w.follow(changes.Query{}, time.Second).lines()).To(HaveExactElements("Connected", "Added web", "Interrupted"))
	})
}

// pauses are the times between two attempts to connect.
func (w *world) pauses() []time.Duration {
	pauses := make([]time.Duration, 0, len(w.dialed))
	for n := 1; n < len(w.dialed); n++ {
		pauses = append(pauses, w.dialed[n].Sub(w.dialed[n-1]))
	}
	return pauses
}

// expectPauses expects pauses of at least so long, and at most half as much longer.
func expectPauses(t *testing.T, w *world, least ...time.Duration) {
	t.Helper()
	g := NewWithT(t)
	pauses := w.pauses()
	g.Expect(len(pauses)).To(BeNumerically(">=", len(least)))
	for n := range least {
		g.Expect(pauses[n]).To(And(BeNumerically(">=", least[n]), BeNumerically("<=", least[n]+least[n]/2+time.Millisecond)),
			"pause %d of %v", n, pauses)
	}
}

func TestF11ItConnectsAgainAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		followed := w.follow(changes.Query{}, long)
		g.Expect(followed.err).NotTo(HaveOccurred())
		g.Expect(followed.seen).To(BeEmpty())
		expectPauses(t, w, 3*time.Second, 6*time.Second, 12*time.Second, 24*time.Second, 30*time.Second, 30*time.Second, 30*time.Second)
		g.Expect(w.log.String()).To(And(ContainSubstring("connection refused"), Not(ContainSubstring("s3cr3t"))))
	})
}

func TestF8ItWaitsAsLongAsTheServerAsksFor(t *testing.T) {
	for name, tc := range map[string]struct {
		answer answer
		want   time.Duration
	}{
		"by retry":              {said("retry: 7000\nid: e-1\n"), 7 * time.Second},
		"by Retry-After":        {refuses(http.StatusTooManyRequests, "", "Retry-After", "50"), 50 * time.Second},
		"less than it would":    {refuses(http.StatusServiceUnavailable, "", "Retry-After", "1"), 3 * time.Second},
		"by what is no seconds": {refuses(http.StatusServiceUnavailable, "", "Retry-After", "soon"), 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tc.answer)
				w.follow(changes.Query{}, long)
				expectPauses(t, w, tc.want)
			})
		})
	}
}

func TestF11AConnectionBeginsTheIntervalsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := refuses(http.StatusServiceUnavailable, "")
		w := newWorld(t, down, down, said(first), down)
		w.follow(changes.Query{}, long)
		expectPauses(t, w, 3*time.Second, 6*time.Second, 3*time.Second, 3*time.Second, 6*time.Second)
	})
}

func TestF8TheServerSaysWhyItEndsAStream(t *testing.T) {
	for name, tc := range map[string]struct{ data, want string }{
		"in a message": {`{"data":{"event":"Ended","reason":"Forbidden","message":"User \"jane\" cannot watch"}}`, `cannot watch`},
		"illegibly":    {`{`, "the server ended the stream"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				w := newWorld(t, said(first, "retry: 5000\nevent: Ended\ndata: "+tc.data+"\n"))
				followed := w.follow(changes.Query{}, long)
				g.Expect(followed.lines()).To(HaveExactElements("Connected", "Interrupted"))
				g.Expect(w.log.String()).To(ContainSubstring(tc.want))
				expectPauses(t, w, 5*time.Second)
			})
		})
	}
}

func TestF8ASilentConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		beats := 10
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			say(rw, first)
			for range beats {
				time.Sleep(15 * time.Second) // of fake time
				say(rw, ": heartbeat\n")
			}
			<-r.Context().Done()
		})
		start := time.Now()
		w.follow(changes.Query{}, long)
		g.Expect(w.log.String()).To(ContainSubstring("nothing was heard for too long"))
		silent := start.Add(time.Duration(beats)*15*time.Second + changes.LongestSilence)
		g.Expect(w.dialed[1]).To(BeTemporally(">=", silent.Add(3*time.Second)))
		g.Expect(w.dialed[1]).To(BeTemporally("<", silent.Add(30*time.Second)))
	})
}

func TestF8ARefusalSaysWhatIsMissing(t *testing.T) {
	const status = `{"kind":"Status","message":"User \"jane\" cannot watch resource \"configmaps\""}`
	for name, tc := range map[string]struct {
		answer answer
		want   string
	}{
		"in a Status":   {refuses(http.StatusForbidden, status), `403 Forbidden: User \"jane\" cannot watch resource \"configmaps\"`},
		"in plain text": {refuses(http.StatusBadGateway, "no upstream\n"), `502 Bad Gateway: no upstream"`},
		"by a redirect": {refuses(http.StatusFound, "", "Location", "https://elsewhere.example/"), `302 Found: `},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				w := newWorld(t, tc.answer, stays(first))
				followed := w.follow(changes.Query{}, time.Minute)
				g.Expect(followed.lines()).To(HaveExactElements("Connected", "Interrupted"), "it is tried again")
				g.Expect(strings.ReplaceAll(w.log.String(), `\\\"`, `\"`)).To(ContainSubstring(tc.want))
			})
		})
	}
}

func TestF8OnlyWhatNoWaitingHelpsIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		url    string
		answer answer
		want   string
	}{
		"a bad request": {"https://" + host, refuses(http.StatusBadRequest, `{"message":"kind is \"Pod\""}`),
			`following changes: 400 Bad Request: kind is "Pod"`},
		"a token without TLS": {"http://" + host, nil, `the URL of the server is "http://stream.example": write https://HOST:PORT`},
		"no host":             {"https:///", nil, `the URL of the server is "https:///": write https://HOST:PORT`},
		"no URL":              {"https://%", nil, `reading the URL of the server: parse "https://%": invalid URL escape "%"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tc.answer)
				w.stream.URL = tc.url
				NewWithT(t).Expect(w.follow(changes.Query{}, long).err).To(MatchError(tc.want))
			})
		})
	}
}

func TestF8TheTokenAndTheCAAreReadForEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		next := newAuthority(t)
		w.answers = []answer{
			func(rw http.ResponseWriter, r *http.Request) {
				w.write(w.stream.TokenFile, "renewed")
				w.write(w.stream.CAFile, string(next.pem))
				w.authority = next
				said(first)(rw, r)
			},
			stays(anew),
		}
		w.follow(changes.Query{}, time.Minute)
		g.Expect(w.requests).To(HaveLen(2))
		g.Expect(w.requests[1].Header).To(HaveKeyWithValue("Authorization", []string{"Bearer renewed"}))
	})
}

func TestF8AServerThatIsNotVerifiedGetsNoToken(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		want   string
	}{
		"another CA":        {func(w *world) { w.write(w.stream.CAFile, string(newAuthority(w.t).pem)) }, "certificate"},
		"the system's CAs":  {func(w *world) { w.stream.CAFile = "" }, "certificate"},
		"another name":      {func(w *world) { w.stream.Name = "elsewhere.example" }, "elsewhere.example"},
		"no CA in the file": {func(w *world) { w.write(w.stream.CAFile, "") }, "has no certificate in PEM"},
		"no CA file":        {func(w *world) { w.stream.CAFile += ".gone" }, "reading the CA's certificates"},
		"no token file":     {func(w *world) { w.stream.TokenFile += ".gone" }, "reading the token"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				w := newWorld(t, stays(first))
				tc.change(w)
				g.Expect(w.follow(changes.Query{}, 2*time.Second).seen).To(BeEmpty())
				g.Expect(w.requests).To(BeEmpty())
				g.Expect(w.log.String()).To(ContainSubstring(tc.want))
			})
		})
	}
}

func TestF8TheCertificateMayBeForAnotherNameThanTheURLs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, stays(first))
		w.stream.URL, w.stream.Name = "https://localhost:8444", host
		NewWithT(t).Expect(w.follow(changes.Query{}, time.Second).lines()).To(HaveExactElements("Connected", "Interrupted"))
	})
}

func TestTheFlagsHaveThePodsValuesAsDefaults(t *testing.T) {
	g := NewWithT(t)
	var stream changes.Stream
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	stream.AddFlags(flags)
	g.Expect(flags.Parse([]string{"--ca-file", "ca.crt"})).To(Succeed())
	g.Expect(stream).To(Equal(changes.Stream{
		Server: changes.Server{
			URL:       "https://configwatch-stream.configwatch-system.svc:8444",
			TokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token", CAFile: "ca.crt",
		},
		Namespace: "default",
	}))
}
