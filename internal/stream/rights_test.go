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

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ktechhub/configwatch/internal/stream"
)

func TestF8ARequestNeedsAGoodToken(t *testing.T) {
	w := newWorld(t)
	w.reviewer.invalid["mallory"] = true
	for name, headers := range map[string][]string{
		"none":         nil,
		"empty":        {"Authorization", "Bearer "},
		"basic":        {"Authorization", "Basic amFuZTpqYW5l"},
		"no good":      {"Authorization", "Bearer mallory"},
		"without type": {"Authorization", jane},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response := w.ask(http.MethodGet, "/v1/namespaces/shop/changes?access_token="+jane, headers...)
			g.Expect(response).To(HaveField("Code", http.StatusUnauthorized))
			g.Expect(response).To(haveHeader("WWW-Authenticate", "Bearer"))
			status := response.status
			g.Expect(status.Reason).To(BeEquivalentTo("Unauthorized"))
			g.Expect(status.Message).To(HavePrefix("Unauthorized: the "))
			g.Expect(status.Message).NotTo(ContainSubstring("mallory"))
		})
	}
	NewWithT(t).Expect(w.reviewer.questions()).To(BeEmpty())
}

func TestF8AUserMayStreamExactlyWhatTheyMayWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		path    string
		want    []string
		denied  string
		message string
	}{
		"a namespace": {
			path: "/v1/namespaces/shop/changes?kind=ConfigMap", want: []string{"jane configmaps/shop/"}, denied: "configmaps/shop/",
			message: `configmaps is forbidden: User "jane" cannot watch resource "configmaps" in API group "" in the namespace "shop"`,
		},
		"a name": {
			path: "/v1/namespaces/shop/changes?kind=Secret&name=db", want: []string{"jane secrets/shop/db"}, denied: "secrets/shop/db",
			message: `secrets "db" is forbidden: User "jane" cannot watch resource "secrets" in API group "" in the namespace "shop"`,
		},
		"both kinds": {
			path: "/v1/namespaces/shop/changes", want: []string{"jane configmaps/shop/", "jane secrets/shop/"}, denied: "secrets",
			message: `secrets is forbidden: User "jane" cannot watch resource "secrets" in API group "" in the namespace "shop"; ` +
				`without a kind, both configmaps and secrets are streamed`,
		},
		"all namespaces": {
			path: "/v1/changes?kind=ConfigMap", want: []string{"jane configmaps//"}, denied: "configmaps//",
			message: `configmaps is forbidden: User "jane" cannot watch resource "configmaps" in API group "" at the cluster scope`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			w.open(tc.path)
			g.Expect(w.reviewer.questions()).To(HaveExactElements(tc.want))
			w.reviewer.change(func(r *reviewer) { r.denied[tc.denied] = true })
			response := w.get(tc.path)
			g.Expect(response).To(HaveField("Code", http.StatusForbidden))
			status := response.status
			g.Expect(status.Reason).To(BeEquivalentTo("Forbidden"))
			g.Expect(status.Message).To(Equal(tc.message))
		})
	}
}

func TestF8AnAPIServerThatCantBeAskedIsNotTheUsersFault(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	// The operator itself may lack the permission to ask.
	for _, outage := range []error{errOutage, apierrors.NewForbidden(schema.GroupResource{Resource: "tokenreviews"}, "", nil)} {
		w.reviewer.change(func(r *reviewer) { r.outage = outage })
		response := w.get("/v1/changes")
		g.Expect(response).To(HaveField("Code", http.StatusServiceUnavailable))
		g.Expect(response).To(haveHeader("Retry-After", "10"))
		g.Expect(response.status.Message).NotTo(ContainSubstring(outage.Error()))
	}
}

// later lets a review of a stream pass, and waits for its heartbeat.
func (w *world) later(r *reader) {
	w.t.Helper()
	asked := len(w.reviewer.questions())
	w.clock.Step(stream.ReviewInterval)
	NewWithT(w.t).Expect(r.block().comment).To(Equal("heartbeat"))
	NewWithT(w.t).Eventually(func() int { return len(w.reviewer.questions()) }, patience).Should(BeNumerically(">", asked))
}

func TestF8AStreamEndsWithTheToken(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	r := w.open("/v1/namespaces/shop/changes")
	w.later(r)
	w.set(configMap("web", "1"))
	r.expect("Added web@1")

	w.reviewer.change(func(r *reviewer) { r.invalid[jane] = true })
	g.Expect(w.reviewUntilEnd(r)).To(Equal(stream.EndedData{
		Event: stream.Ended, Reason: "Unauthorized", Message: "Unauthorized: the token is not valid, or no longer",
	}))
	g.Eventually(w.server.Streams, patience).Should(BeZero())
}

func TestF8AStreamEndsWithTheRight(t *testing.T) {
	w := newWorld(t)
	r := w.open("/v1/namespaces/shop/changes?kind=Secret")
	w.reviewer.change(func(r *reviewer) { r.denied["secrets"] = true })
	NewWithT(t).Expect(w.reviewUntilEnd(r)).To(Equal(stream.EndedData{
		Event: stream.Ended, Reason: "Forbidden",
		Message: `secrets is forbidden: User "jane" cannot watch resource "secrets" in API group "" in the namespace "shop"`,
	}))
}

// reviewUntilEnd lets the time of reviews pass until the stream ends, and is what it ends with.
func (w *world) reviewUntilEnd(r *reader) stream.EndedData {
	w.t.Helper()
	var last block
	NewWithT(w.t).Eventually(func() string { // a review may still be under way when the time of the next one comes
		w.clock.Step(stream.ReviewInterval)
		last = r.block()
		return last.name
	}, patience).Should(Equal("Ended"))
	var e struct{ Data stream.EndedData }
	NewWithT(w.t).Expect(json.Unmarshal([]byte(last.data), &e)).To(Succeed())
	NewWithT(w.t).Eventually(r.blocks, patience).Should(BeClosed())
	return e.Data
}

func TestF11AnOutageEndsNoStream(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	r := w.open("/v1/namespaces/shop/changes")
	w.reviewer.change(func(r *reviewer) { r.outage = errOutage })
	w.clock.Step(stream.ReviewInterval)
	g.Expect(r.block().comment).To(Equal("heartbeat"))
	w.set(configMap("web", "1"))
	r.expect("Added web@1")

	w.reviewer.change(func(r *reviewer) { r.outage = nil })
	for asked := len(w.reviewer.questions()); len(w.reviewer.questions()) == asked; {
		w.beat(r)
	}
	w.set(configMap("db", "2"))
	r.expect("Added db@2")
}

func TestF8AStreamWhoseRightsCantBeConfirmedForLongEnds(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	r := w.open("/v1/namespaces/shop/changes")
	w.reviewer.change(func(r *reviewer) { r.outage = errOutage })
	for passed := stream.ReviewInterval; passed < stream.ReviewPatience; passed += stream.ReviewInterval {
		w.clock.Step(stream.ReviewInterval)
		g.Expect(r.block().comment).To(Equal("heartbeat"))
	}
	ended := w.reviewUntilEnd(r)
	g.Expect(ended.Reason).To(BeEquivalentTo("ServiceUnavailable"))
	g.Expect(ended.Message).To(ContainSubstring("could not be asked for long whether you may still watch"))
}
