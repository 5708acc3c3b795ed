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
	"fmt"
	"strconv"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/stream"
)

const lastEventID = "Last-Event-ID"

func TestF8LastEventIDResumes(t *testing.T) {
	const path = "/v1/namespaces/shop/changes"
	w := newWorld(t)
	r := w.open(path)
	w.set(configMap("web", "1"))
	w.set(configMap("db", "2"))
	r.expect("Added web@1", "Added db@2")
	ids := []string{r.lastID}
	r.close()

	w.set(configMap("web", "3", "a", "1"))
	w.set(secret("key", "4"))
	w.remove(source.Ref{Kind: v1alpha1.ConfigMap, Name: "db"}, "5")
	missed := []string{"Modified web@3", "Added key@4", "Deleted db@5"}
	for n := range 3 {
		resumed := w.open(path, lastEventID, ids[n])
		resumed.expect(missed[n:]...)
		w.set(configMap("live"+strconv.Itoa(n), strconv.Itoa(6+n)))
		missed = append(missed, fmt.Sprintf("Added live%d@%d", n, 6+n))
		resumed.expect(missed[len(missed)-1])
		resumed.close()
		// The next one goes on from the next event.
		again := w.open(path, lastEventID, ids[n])
		again.event()
		ids = append(ids, again.lastID)
		again.close()
	}
}

func TestF8WhatIsResumedMayBeFilteredOtherwise(t *testing.T) {
	w := newWorld(t)
	r := w.open("/v1/changes?name=nothing")
	id := r.lastID
	NewWithT(t).Expect(id).NotTo(BeEmpty(), "a stream can be resumed before its first event")
	secrets := w.open("/v1/changes?kind=Secret")
	w.set(labelled(configMap("web", "1"), "app", "demo"))
	w.set(configMap("web", "2"))
	w.set(labelled(configMap("web", "3", "a", "1"), "app", "demo"))
	w.set(configMap("db", "4"))
	w.open("/v1/changes?labelSelector=app%3Ddemo", lastEventID, id).expect("Added web@1", "Deleted web@2", "Added web@3")
	w.open("/v1/changes?kind=ConfigMap&events=Modified", lastEventID, id).expect("Modified web@3")
	w.open("/v1/changes?initial=true", lastEventID, id).expect("Added web@1", "Modified web@3", "Added db@4")
	w.open("/v1/changes?kind=ConfigMap", lastEventID, secrets.lastID).expect("Gap") // it was told nothing of these
}

func TestF8BeyondTheRingAStreamBeginsWithAGap(t *testing.T) {
	const ring = 3
	w := newWorld(t, func(s *setting) { s.history = ring })
	r := w.open("/v1/namespaces/shop/changes")
	within := r.lastID
	for n := range ring {
		w.set(configMap("web", strconv.Itoa(n+1), "n", strconv.Itoa(n)))
	}
	r.expect("Added web@1", "Modified web@2", "Modified web@3")
	w.open("/v1/namespaces/shop/changes", lastEventID, within).expect("Added web@1", "Modified web@2", "Modified web@3")

	w.set(configMap("web", "4", "n", "4"))
	r.expect("Modified web@4")
	for name, id := range map[string]string{
		"one too old":          within,
		"an earlier release's": "LV6Z4HG3VFNVWV6KWDYGSDBVII-1",
		"nonsense":             "nonsense",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			gap := w.open("/v1/namespaces/shop/changes", lastEventID, id)
			gap.expect("Gap")
			again := w.open("/v1/namespaces/shop/changes", lastEventID, gap.lastID)
			w.settle(gap, again) // the gap is told once
			g.Expect(gap.lastID).To(Equal(again.lastID))

			anew := w.open("/v1/namespaces/shop/changes?initial=true&name=web", lastEventID, id)
			b, _ := anew.event()
			g.Expect(b.name).To(Equal("Gap"))
			g.Expect(b.id).To(Equal("-"), "whoever is cut off before Synced must begin anew")
			anew.expect("Added web@4 initial", "Synced")
			g.Expect(anew.lastID).NotTo(BeEmpty())
		})
	}
}

// An empty id would have a client come back without Last-Event-ID, as if it were new: what it missed would be lost
// silently.
func TestF8WhoeverHasNoPlaceIsToldOfAGap(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	first := listed(v1alpha1.ConfigMap, "5")
	first.More = true
	w.step(first, nil, configMap("a", "4"))
	r := w.open("/v1/changes?kind=ConfigMap")
	g.Expect(r.lastID).To(Equal("-"), "there never was a state like this")
	w.step(listed(v1alpha1.ConfigMap, "5"), nil, configMap("b", "3"))
	w.open("/v1/changes?kind=ConfigMap", lastEventID, r.lastID).expect("Gap")
	w.open("/v1/changes?kind=ConfigMap&initial=true", lastEventID, r.lastID).expect("Gap")
}

func TestF8AfterSyncedAStreamResumesFromThere(t *testing.T) {
	w := newWorld(t)
	w.set(configMap("web", "1"))
	r := w.open("/v1/changes?initial=true")
	w.set(configMap("web", "2", "a", "1"))
	r.expect("Added web@1 initial", "Synced")
	w.open("/v1/changes?initial=true", lastEventID, r.lastID).expect("Modified web@2")
}

func TestF8HoweverOftenItIsCutOffAClientMissesNothing(t *testing.T) {
	const published, ahead = 1_000, stream.Buffer / 2
	w := newWorld(t)
	mayPublish := make(chan struct{}, ahead)
	r := w.open("/v1/namespaces/shop/changes")
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for n := range published {
			mayPublish <- struct{}{}
			w.set(configMap("web", strconv.Itoa(n+1), "n", strconv.Itoa(n)))
		}
	})
	for seen := 0; seen < published; {
		for range min(seen%17+1, published-seen) {
			_, e := r.event()
			seen++
			<-mayPublish
			NewWithT(t).Expect(e.ID()).To(Equal("uid-web/" + rv(strconv.Itoa(seen))))
		}
		r.close()
		r = w.open("/v1/namespaces/shop/changes", lastEventID, r.lastID)
	}
	publishing.Wait()
}

func TestF8AHeartbeatKeepsAQuietStreamInTheRing(t *testing.T) {
	w := newWorld(t, func(s *setting) { s.history = 3 })
	r := w.open("/v1/changes?kind=Secret")
	for n := range 10 {
		w.set(configMap("web", strconv.Itoa(n+1), "n", strconv.Itoa(n)))
	}
	w.beat(r)
	w.set(secret("db", "11"))
	w.open("/v1/changes?kind=Secret", lastEventID, r.lastID).expect("Added db@11")
	r.expect("Added db@11")
}
