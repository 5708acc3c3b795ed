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

package stream_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
)

func TestF8AChangeIsOneCloudEvent(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	before := labelled(configMap("app-config", "41", "LOG_LEVEL", "info"), "app", "demo")
	w.set(before)
	r := w.open("/v1/namespaces/shop/changes")
	after := labelled(configMap("app-config", "42", "LOG_LEVEL", "debug"), "app", "demo")
	w.set(after)

	b, e := r.event()
	g.Expect(b.name).To(Equal("Modified"))
	g.Expect(b.id).NotTo(BeEmpty())
	g.Expect(b.data).NotTo(ContainSubstring("\n"))
	g.Expect(e.Validate()).To(Succeed())
	g.Expect(e.SpecVersion()).To(Equal("1.0"))
	g.Expect(e.ID()).To(Equal("uid-app-config/" + rv("42")))
	g.Expect(e.Type()).To(Equal("io.ktechhub.configwatch.source.modified.v1"))
	g.Expect(e.Source()).To(Equal("/namespaces/shop/configmaps/app-config"))
	g.Expect(e.Subject()).To(Equal("ConfigMap/app-config"))
	g.Expect(e.Time()).To(BeTemporally("==", noon))
	var data feed.Data
	g.Expect(json.Unmarshal(e.Data(), &data)).To(Succeed())
	g.Expect(data).To(Equal(feed.Data{
		Event: feed.Modified, Namespace: "shop", Kind: v1alpha1.ConfigMap, Name: "app-config",
		Labels: map[string]string{"app": "demo"}, ChangedKeys: []string{"LOG_LEVEL"},
		Hash: after.Content.Hash(nil), PreviousHash: before.Content.Hash(nil),
	}))
}

func TestF8AStreamIsOfWhatWasAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		path string
		want []string
	}{
		"a namespace":    {"/v1/namespaces/shop/changes", []string{"Added web@1", "Added db@2", "Modified web@4", "Deleted db@5"}},
		"all namespaces": {"/v1/changes", []string{"Added web@1", "Added db@2", "Added other@3", "Modified web@4", "Deleted db@5"}},
		"a kind":         {"/v1/namespaces/shop/changes?kind=Secret", []string{"Added db@2", "Deleted db@5"}},
		"a name":         {"/v1/namespaces/shop/changes?name=web", []string{"Added web@1", "Modified web@4"}},
		"some events":    {"/v1/namespaces/shop/changes?events=Modified,Deleted", []string{"Modified web@4", "Deleted db@5"}},
		"labels":         {"/v1/changes?labelSelector=app%3Ddemo", []string{"Added web@1", "Deleted web@4"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.open(tc.path)
			w.set(labelled(configMap("web", "1", "a", "1"), "app", "demo"))
			w.set(secret("db", "2", "a", "1"))
			other := *configMap("other", "3")
			other.Namespace = "elsewhere"
			w.set(&other)
			w.set(configMap("web", "4", "a", "2"))
			w.remove(source.Ref{Kind: v1alpha1.Secret, Name: "db"}, "5")
			r.expect(tc.want...)
			w.stop()
			NewWithT(t).Expect(r.ended().Reason).To(BeEquivalentTo("ServiceUnavailable"), "nothing else comes")
		})
	}
}

func TestF4InitialBeginsWithWhatIsThere(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.set(configMap("web", "1"))
	w.set(configMap("db", "2"))
	r := w.open("/v1/namespaces/shop/changes?initial=true&events=Deleted")
	r.expect("Added db@2 initial", "Added web@1 initial")
	g.Expect(r.lastID).To(BeEmpty(), "whoever is cut off in between must begin anew")
	b, e := r.event()
	g.Expect(b.name).To(Equal("Synced"))
	g.Expect(b.id).NotTo(BeEmpty())
	g.Expect(e.Type()).To(Equal("io.ktechhub.configwatch.feed.synced.v1"))
	w.remove(source.Ref{Kind: v1alpha1.ConfigMap, Name: "web"}, "3")
	r.expect("Deleted web@3")
}

func TestF8AHeartbeatComesEvery15Seconds(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	r := w.open("/v1/changes")
	for range 3 {
		w.beat(r)
	}
	w.clock.Step(14 * time.Second)
	w.set(configMap("web", "1"))
	r.expect("Added web@1")
	w.clock.Step(time.Second)
	g.Expect(r.block().comment).To(Equal("heartbeat"))
}

func TestF8TheHeadersKeepOthersFromHoldingEventsBack(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	response := w.get("/v1/changes")
	g.Expect(response).To(HaveField("Code", http.StatusOK))
	g.Expect(response).To(haveHeader("Content-Type", "text/event-stream"))
	g.Expect(response).To(haveHeader("Cache-Control", "no-store"))
	g.Expect(response).To(haveHeader("X-Accel-Buffering", "no"))
	g.Expect(response).To(haveHeader("Date", "Mon, 30 Nov 2026 12:00:00 GMT"))
}

func TestF8ThereIsNoStreamBeforeTheCachesAreSynced(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, func(s *setting) {
		s.unread = map[v1alpha1.SourceKind]error{v1alpha1.ConfigMap: informer.ErrNotSynced, v1alpha1.Secret: errForbidden}
	})
	response := w.get("/v1/changes?kind=ConfigMap")
	g.Expect(response).To(HaveField("Code", http.StatusServiceUnavailable))
	g.Expect(response).To(haveHeader("Retry-After", "10"))
	g.Expect(response.status.Message).To(Equal("what was asked for is not known: not read yet"))
	g.Expect(w.get("/v1/changes?kind=Secret").status.Message).To(Equal(
		"what was asked for is not known: Secrets: this operator has no permission to read it"))

	delete(w.unread, v1alpha1.ConfigMap)
	w.tell()
	w.open("/v1/changes?kind=ConfigMap")
	g.Expect(w.get("/v1/changes")).To(HaveField("Code", http.StatusServiceUnavailable))
}

func TestF11AStreamThatIsOpenHearsNothingOfAnOutage(t *testing.T) {
	w := newWorld(t, func(s *setting) { s.unread = map[v1alpha1.SourceKind]error{} })
	r := w.open("/v1/changes")
	w.unread[v1alpha1.ConfigMap], w.unread[v1alpha1.Secret] = errOutage, errOutage
	w.tell()
	w.beat(r)
	delete(w.unread, v1alpha1.ConfigMap)
	delete(w.unread, v1alpha1.Secret)
	w.tell()
	w.set(configMap("web", "1"))
	r.expect("Added web@1")
	w.open("/v1/changes")
}

func TestF8ANamespaceThatIsNotWatchedIsNotFound(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, func(s *setting) { s.namespaces = []string{"shop", "other"} })
	response := w.get("/v1/namespaces/third/changes")
	g.Expect(response).To(HaveField("Code", http.StatusNotFound))
	g.Expect(response.status.Message).To(Equal("namespace third is not watched by this operator"))
	r := w.open("/v1/changes")
	w.set(configMap("web", "1"))
	r.expect("Added web@1")
}

func TestF8OtherPathsAndMethods(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	for _, path := range []string{"/", "/v1", "/v1/namespaces/shop", "/v1/namespaces/shop/changes/", "/healthz"} {
		response := w.get(path)
		g.Expect(response).To(HaveField("Code", http.StatusNotFound), path)
		g.Expect(response.status.Message).To(ContainSubstring("/v1/namespaces/NAMESPACE/changes"))
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		response := w.ask(method, "/v1/changes", "Authorization", "Bearer "+jane)
		g.Expect(response).To(HaveField("Code", http.StatusMethodNotAllowed))
		g.Expect(response).To(haveHeader("Allow", "GET"))
		g.Expect(response.status.Reason).To(BeEquivalentTo("MethodNotAllowed"))
	}
	g.Expect(w.ask(http.MethodHead, "/v1/changes")).To(HaveField("Code", http.StatusMethodNotAllowed))
}
