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
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/stream"
)

const withData = "/v1/namespaces/shop/changes?kind=ConfigMap&data=true"

// live is the ConfigMaps of the namespace shop as the API server has them.
type live struct {
	mu      sync.Mutex
	objects map[string]*corev1.ConfigMap
	reads   int
	failure error
	hold    chan struct{} // reads wait until it is closed, if it is set
}

// live answers the server's reads.
func (w *world) live() *live {
	l := &live{objects: map[string]*corev1.ConfigMap{}}
	w.client.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		list, ok := action.(clienttesting.ListAction)
		if !ok || action.GetNamespace() != "shop" {
			return true, nil, fmt.Errorf("unexpected %v", action)
		}
		name, _ := list.GetListRestrictions().Fields.RequiresExactMatch(metav1.ObjectNameField)
		return l.read(name)
	})
	return l
}

func (l *live) read(name string) (bool, runtime.Object, error) {
	l.mu.Lock()
	l.reads++
	object, failure, hold := l.objects[name], l.failure, l.hold
	l.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if failure != nil {
		return true, nil, failure
	}
	found := &corev1.ConfigMapList{}
	if object != nil {
		found.Items = append(found.Items, *object)
	}
	return true, found, nil
}

func (l *live) change(how func(*live)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	how(l)
}

func (l *live) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads
}

// set is what the API server has.
func (l *live) set(name, version string, data ...string) *corev1.ConfigMap {
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: rv(version)},
		Data:       texts(data),
	}
	l.change(func(l *live) { l.objects[name] = object })
	return object
}

// both has the API server and the cache take a version in.
func (w *world) both(l *live, name, version string, data ...string) {
	l.set(name, version, data...)
	w.set(configMap(name, version, data...))
}

func TestF8DataComesWithAChange(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	l := w.live()
	w.both(l, "web", "1", "LOG_LEVEL", "info")
	r := w.open(withData + "&initial=true")
	data := r.data()
	g.Expect(data.Initial).To(BeTrue())
	g.Expect(data.Content.Data).To(Equal(map[string]string{"LOG_LEVEL": "info"}))
	r.expect("Synced")

	w.both(l, "web", "2", "LOG_LEVEL", "debug")
	b, e := r.event()
	g.Expect(b.id).NotTo(BeEmpty())
	g.Expect(e.ID()).To(Equal("uid-web/" + rv("2")))
	g.Expect(string(e.Data())).To(MatchJSON(fmt.Sprintf(`{"event": "Modified", "namespace": "shop", "kind": "ConfigMap", "name": "web",
		"hash": %q, "previousHash": %q, "changedKeys": ["LOG_LEVEL"], "data": {"LOG_LEVEL": "debug"}}`,
		hashOf("LOG_LEVEL", "debug"), hashOf("LOG_LEVEL", "info"))))

	l.set("bin", "3").BinaryData = map[string][]byte{"logo": {0xff, 0}}
	w.set(&source.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bin", UID: "uid-bin", ResourceVersion: rv("3")},
		Kind:       v1alpha1.ConfigMap, Content: digest.Plain().Content(nil, map[string][]byte{"logo": {0xff, 0}}),
	})
	_, e = r.event()
	g.Expect(string(e.Data())).To(ContainSubstring(`"data":{},"binaryData":{"logo":"/wA="}`))
	w.remove(source.Ref{Kind: v1alpha1.ConfigMap, Name: "web"}, "4")
	_, e = r.event()
	g.Expect(e.Type()).To(Equal(feed.TypeDeleted))
	g.Expect(string(e.Data())).NotTo(ContainSubstring(`"data"`))
}

func hashOf(data ...string) digest.Hash {
	return configMap("", "", data...).Content.Hash(nil)
}

func TestF8DataIsReadOncePerChangeAndSharedByAllWhoAsked(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	l := w.live()
	var asked []*reader
	for range 20 {
		asked = append(asked, w.open(withData))
	}
	other := w.open("/v1/namespaces/shop/changes")
	for n := range 5 {
		version := strconv.Itoa(n + 1)
		w.both(l, "web", version, "n", version)
		for _, r := range asked {
			g.Expect(r.data().Content.Data).To(HaveKeyWithValue("n", version))
		}
		g.Expect(other.data().Content.Data).To(BeNil())
		g.Expect(l.count()).To(Equal(n + 1))
	}
	g.Expect(w.open(withData + "&initial=true").data().Content.Data).To(HaveKeyWithValue("n", "5"))
	g.Expect(l.count()).To(Equal(5), "what was read lately is kept")
}

func TestF8DataThatHasMovedOnIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	l := w.live()
	r := w.open(withData)
	w.both(l, "web", "1", "a", "1", "b", "1")
	r.expect("Added web@1")

	l.set("web", "4", "a", "2", "b", "2") // the cache is behind
	w.set(configMap("web", "2", "a", "2", "b", "1"))
	_, e := r.event()
	g.Expect(e.ID()).To(Equal("uid-web/" + rv("4")))
	var data feed.DataWithContent
	g.Expect(e.DataAs(&data)).To(Succeed())
	g.Expect(data.Content.Data).To(Equal(map[string]string{"a": "2", "b": "2"}))
	g.Expect(data.Hash).To(Equal(hashOf("a", "2", "b", "2")))
	g.Expect(data.PreviousHash).To(Equal(hashOf("a", "1", "b", "1")))
	g.Expect(data.ChangedKeys).To(HaveExactElements("a", "b"))

	w.set(configMap("web", "3", "a", "2", "b", "3"))
	w.set(configMap("web", "4", "a", "2", "b", "2"))
	w.both(l, "web", "5", "a", "3", "b", "2")
	r.expect("Modified web@5")
	g.Expect(l.count()).To(Equal(3))
}

func TestF8DataOfWhatAppearedAndMovedOnHasAllKeys(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	l := w.live()
	r := w.open(withData)
	l.set("web", "2", "a", "1", "b", "1")
	w.set(configMap("web", "1", "a", "1"))
	g.Expect(r.data().ChangedKeys).To(HaveExactElements("a", "b"))
	w.set(configMap("web", "2", "a", "1", "b", "1"))
	l.set("web", "4", "a", "9", "c", "1")
	w.former = map[digest.Hash]digest.Content{} // as after many other changes
	w.publish(configMap("web", "2", "a", "1", "b", "1"), configMap("web", "3", "a", "2", "b", "1"))
	g.Expect(r.data().ChangedKeys).To(HaveExactElements("a"), "those that are known")
}

func TestF8DataThatWasChangedBackIsNoNews(t *testing.T) {
	w := newWorld(t)
	l := w.live()
	r := w.open(withData)
	w.both(l, "web", "1", "a", "1")
	r.expect("Added web@1")
	l.set("web", "3", "a", "1")
	w.set(configMap("web", "2", "a", "2"))
	w.set(configMap("web", "3", "a", "1"))
	w.both(l, "web", "4", "a", "4")
	r.expect("Modified web@4")
}

func TestF8WhatIsNotThereAnyMoreComesWithoutData(t *testing.T) {
	for name, now := range map[string]func(*live){
		"deleted":      func(l *live) { delete(l.objects, "web") },
		"another one":  func(l *live) { l.objects["web"].UID = "another" },
		"other labels": func(l *live) { l.objects["web"].Labels = nil },
		"ignored":      func(l *live) { l.objects["web"].Annotations = map[string]string{v1alpha1.IgnoreAnnotation: "true"} },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			l := w.live()
			r := w.open(withData + "&labelSelector=app%3Ddemo")
			l.set("web", "2", "a", "1").Labels = map[string]string{"app": "demo"}
			l.change(now)
			w.set(labelled(configMap("web", "1", "a", "1"), "app", "demo"))
			_, e := r.event()
			g.Expect(e.ID()).To(Equal("uid-web/" + rv("1")))
			g.Expect(string(e.Data())).NotTo(ContainSubstring(`"data"`))
			w.remove(source.Ref{Kind: v1alpha1.ConfigMap, Name: "web"}, "2")
			r.expect("Deleted web@2")
		})
	}
}

func TestF8AReadingThatBeganBeforeAChangeIsMadeAnew(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	l := w.live()
	hold := make(chan struct{})
	l.change(func(l *live) { l.hold = hold })
	first := w.open(withData)
	w.both(l, "web", "1", "a", "1")
	g.Eventually(l.count, patience).Should(Equal(1))
	second := w.open(withData + "&events=Modified") // hears of the change while the reading is under way
	l.change(func(l *live) { l.hold = nil })
	w.both(l, "web", "2", "a", "2")
	w.set(secret("barrier", "3"))
	g.Consistently(l.count, 20*time.Millisecond).Should(Equal(1), "it is shared")
	close(hold)
	g.Expect(first.data().Content.Data).To(HaveKeyWithValue("a", "1"))
	g.Expect(first.data().Content.Data).To(HaveKeyWithValue("a", "2"))
	g.Expect(second.data().Content.Data).To(HaveKeyWithValue("a", "2"))
	g.Expect(l.count()).To(Equal(2))
}

func TestF11DataIsReadWhenTheAPIServerIsBack(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	l := w.live()
	r := w.open(withData)
	l.change(func(l *live) { l.failure = errOutage })
	w.both(l, "web", "1", "a", "1")
	g.Eventually(func() int {
		w.clock.Step(stream.Heartbeat)
		b := r.block()
		g.Expect(b.comment).To(Equal("heartbeat"))
		g.Expect(b.hasID).To(BeFalse(), "a change is still to come")
		return l.count()
	}, patience).Should(BeNumerically(">", 3))
	l.change(func(l *live) { l.failure = nil })
	g.Eventually(func() string {
		w.clock.Step(stream.Heartbeat)
		return r.block().data
	}, patience).Should(ContainSubstring(`"data":{"a":"1"}`))
}

func TestF8AStreamEndsIfTheOperatorMayNotReadData(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	l := w.live()
	r := w.open(withData)
	l.change(func(l *live) {
		l.failure = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
	})
	w.both(l, "web", "1", "a", "1")
	ended := r.ended()
	g.Expect(ended.Reason).To(BeEquivalentTo("ServiceUnavailable"))
	g.Expect(ended.Message).To(Equal("this operator has no permission to read the data of ConfigMaps"))
	g.Eventually(w.server.Streams, patience).Should(BeZero())
}

func TestF8AReadingThatNobodyWaitsForIsBrokenOff(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	l := w.live()
	l.change(func(l *live) { l.failure = errOutage })
	r := w.open(withData)
	w.both(l, "web", "1", "a", "1")
	g.Eventually(l.count, patience).Should(Equal(1))
	r.close()
	g.Eventually(w.server.Streams, patience).Should(BeZero())
	l.change(func(l *live) { l.failure = nil })
	again := w.open(withData + "&initial=true")
	g.Expect(again.data().Content.Data).To(HaveKeyWithValue("a", "1"))
}

func TestF8ResumedStreamsHaveDataToo(t *testing.T) {
	w := newWorld(t)
	l := w.live()
	r := w.open(withData)
	w.both(l, "web", "1", "a", "1")
	w.both(l, "db", "2", "a", "2")
	g := NewWithT(t)
	resumed := w.open(withData, lastEventID, r.lastID)
	g.Expect(resumed.data().Content.Data).To(HaveKeyWithValue("a", "1"))
	g.Expect(resumed.data().Content.Data).To(HaveKeyWithValue("a", "2"))
}

func TestF8LargeDataDoesNotFillTheMemory(t *testing.T) {
	const objects = stream.Places + 4
	g := NewWithT(t)
	w := newWorld(t)
	w.server.SetWriteTimeout(100 * time.Millisecond)
	l := w.live()
	text := strings.Repeat("x", 160<<10)
	for n := range objects {
		name := "web" + strconv.Itoa(n)
		w.idle(withData + "&name=" + name) // doesn't take it in
		w.both(l, name, "1", "a", text)
	}
	g.Eventually(l.count, patience).Should(Equal(stream.Places))
	g.Consistently(l.count, 50*time.Millisecond).Should(Equal(stream.Places))
	g.Eventually(w.server.Streams, 3*patience).Should(BeZero(), "those who are stuck make room for others")
	g.Expect(l.count()).To(Equal(objects))
	r := w.open(withData + "&initial=true&name=web0")
	g.Expect(r.data().Content.Data["a"]).To(HaveLen(len(text)))
}

func TestF8WhatIsKeptForALittleLaterIsBounded(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	l := w.live()
	r := w.open(withData)
	text := strings.Repeat("x", 1<<20)
	const objects = 2 * stream.ReadingsKept >> 20
	for n := range objects {
		w.both(l, "web"+strconv.Itoa(n), strconv.Itoa(n+1), "a", text)
		r.data()
	}
	read := l.count()
	again := w.open(withData + "&initial=true")
	for range objects {
		again.data()
	}
	g.Expect(l.count()).To(BeNumerically(">", read+objects/2))
}

func TestF8VersionsThatGoBackAreTakenAsTheyAre(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	l := w.live()
	r := w.open(withData)
	l.set("web", "7", "a", "restored") // from a backup of etcd
	w.set(configMap("web", "9", "a", "1"))
	g.Expect(r.data().Content.Data).To(HaveKeyWithValue("a", "restored"))
	g.Expect(l.count()).To(Equal(2))
}
