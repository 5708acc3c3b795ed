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
	"strconv"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/stream"
)

// replicas are two servers whose watches bring the same.
type replicas [2]*world

func newReplicas(t *testing.T, settings ...func(*setting)) replicas {
	t.Helper()
	return replicas{newWorld(t, settings...), newWorld(t, settings...)}
}

func (r replicas) set(objects ...*source.Source) {
	for _, object := range objects {
		for _, w := range r {
			w.set(object)
		}
	}
}

func TestF8AStreamGoesOnAtAnyReplica(t *testing.T) {
	const path = "/v1/namespaces/shop/changes"
	g := NewWithT(t)
	both := newReplicas(t)
	r := both[0].open(path)
	g.Expect(r.lastID).To(Equal("ConfigMap=1000,Secret=1000"))
	both.set(configMap("web", "1"), secret("db", "2"))
	r.expect("Added web@1", "Added db@2")
	g.Expect(r.lastID).To(Equal("ConfigMap=1001,Secret=1002"))
	r.close()
	both.set(configMap("web", "3", "a", "1"))
	for n := range 4 { // to and fro
		r = both[(n+1)%2].open(path, lastEventID, r.lastID)
		r.expect("Modified web@" + strconv.Itoa(2*n+3))
		both.set(configMap("web", strconv.Itoa(2*n+4), "n", strconv.Itoa(n)))
		r.expect("Modified web@" + strconv.Itoa(2*n+4))
		r.close()
		both.set(configMap("web", strconv.Itoa(2*n+5), "n", strconv.Itoa(-n-1)))
	}
}

func TestF8AReplicaThatIsBehindTellsNothingTwice(t *testing.T) {
	g := NewWithT(t)
	both := newReplicas(t)
	const path = "/v1/namespaces/shop/changes?kind=ConfigMap"
	r := both[0].open(path)
	both[0].set(configMap("web", "1"))
	both[0].set(configMap("web", "2", "a", "1"))
	r.expect("Added web@1", "Modified web@2")
	behind := both[1].open(path, lastEventID, r.lastID)
	both[1].set(configMap("web", "1"))
	g.Eventually(func() string { // once it has been passed over
		both[1].beat(behind)
		return behind.lastID
	}).Should(Equal("ConfigMap=1002"), "there is no going back")
	both[1].set(configMap("web", "2", "a", "1"))
	both[1].set(configMap("web", "3", "a", "2"))
	behind.expect("Modified web@3")
}

func TestF8AReplicaThatHasLeftOutWhereAClientWasSaysSo(t *testing.T) {
	const path = "/v1/namespaces/shop/changes?kind=ConfigMap"
	web := configMap("web", "9", "a", "9")
	ahead := func(t *testing.T, then string) (*world, *reader) {
		both := newReplicas(t)
		r := both[0].open(path)
		both[0].set(configMap("web", "1"))
		r.event()
		return both[1], both[1].open(then, lastEventID, r.lastID)
	}
	t.Run("with the next change", func(t *testing.T) {
		w, r := ahead(t, path)
		w.step(listed(v1alpha1.ConfigMap, "9"), nil, web)
		r.expect("Gap")
		NewWithT(t).Expect(r.lastID).To(Equal("ConfigMap=1009"))
	})
	t.Run("with the next change, if nothing that it sees was changed by the list", func(t *testing.T) {
		w, r := ahead(t, path)
		w.step(listed(v1alpha1.ConfigMap, "9"), nil, nil)
		w.set(configMap("db", "10"))
		r.expect("Gap")
		w.set(configMap("db", "11", "a", "1"))
		r.expect("Modified db@11")
	})
	t.Run("with a heartbeat, if nothing that it sees has changed", func(t *testing.T) {
		w, r := ahead(t, path)
		w.step(listed(v1alpha1.ConfigMap, "9"), nil, nil)
		w.clock.Step(stream.Heartbeat)
		r.expect("Gap")
	})
	t.Run("when it doesn't come to there for long", func(t *testing.T) {
		w, r := ahead(t, path)
		for range stream.CatchUp / stream.Heartbeat {
			w.beat(r)
		}
		w.clock.Step(stream.Heartbeat)
		r.expect("Gap")
	})
	t.Run("and then has what is there come, if that was asked for", func(t *testing.T) {
		w, r := ahead(t, path+"&initial=true")
		w.step(listed(v1alpha1.ConfigMap, "9"), nil, web)
		r.expect("Gap", "Added web@9 initial", "Synced")
		NewWithT(t).Expect(r.lastID).To(Equal("ConfigMap=1009"))
	})
	t.Run("or goes on, once it has come to there", func(t *testing.T) {
		w, r := ahead(t, path)
		w.step(source.Step{Step: step("5"), Kind: v1alpha1.ConfigMap}, nil, nil)
		w.beat(r)
		NewWithT(t).Expect(r.lastID).To(Equal("ConfigMap=1005"), "where the watch is, if nothing happens")
		w.step(listed(v1alpha1.ConfigMap, "9"), nil, web)
		r.expect("Added web@9")
	})
}

func TestF8WhoeverIsCutOffInTheMiddleOfAListBeginsAnew(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	r := w.open("/v1/changes?kind=ConfigMap")
	first := listed(v1alpha1.ConfigMap, "5")
	first.More = true
	w.step(first, nil, configMap("a", "4"))
	b, _ := r.event()
	g.Expect(b.id).To(Equal("-"), "there never was a state like this")
	w.open("/v1/changes?kind=ConfigMap", lastEventID, b.id).expect("Gap")
	w.step(listed(v1alpha1.ConfigMap, "5"), nil, configMap("b", "3"))
	r.expect("Added b@3")
	g.Expect(r.lastID).To(Equal("ConfigMap=1005"))
}

func TestF8DataThatWasToldIsNotRepeatedAfterAResume(t *testing.T) {
	g := NewWithT(t)
	both := newReplicas(t)
	lives := [2]*live{both[0].live(), both[1].live()}
	put := func(version string, data ...string) { // the caches are behind
		for _, l := range lives {
			l.set("web", version, data...)
		}
	}
	r := both[0].open(withData)
	put("3", "a", "3")
	both.set(configMap("web", "1", "a", "1"))
	g.Expect(r.data().Content.Data).To(HaveKeyWithValue("a", "3"))
	g.Expect(r.lastID).To(Equal("ConfigMap=1001,uid-web=1003"))
	r.close()
	for n, w := range both {
		r = w.open(withData, lastEventID, r.lastID)
		w.set(configMap("web", "2", "a", "2"))
		w.set(configMap("web", "3", "a", "3"))
		w.set(configMap("db", "4"))
		lives[n].set("db", "4")
		_, e := r.event()
		g.Expect(e.Subject()).To(Equal("ConfigMap/db"), "web was told")
		g.Expect(r.lastID).To(Equal("ConfigMap=1004"))
		r.close()
		r.lastID = "ConfigMap=1001,uid-web=1003"
	}
}

func TestF8AStreamOfAllOfSomeNamespacesHasAPositionInEach(t *testing.T) {
	g := NewWithT(t)
	both := newReplicas(t, func(s *setting) { s.namespaces = []string{"shop", "other"} })
	r := both[0].open("/v1/changes?kind=ConfigMap")
	both.set(configMap("web", "1"))
	r.expect("Added web@1")
	g.Expect(r.lastID).To(Equal("ConfigMap/shop=1001,ConfigMap/other=1000"))
	both.set(configMap("web", "2", "a", "1"))
	both[1].open("/v1/changes?kind=ConfigMap", lastEventID, r.lastID).expect("Modified web@2")
	both[1].open("/v1/namespaces/shop/changes?kind=ConfigMap", lastEventID, r.lastID).expect("Modified web@2")
}
