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

package informer

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// With WatchList, the objects of the first list pass the reducer twice.
func TestE1TheFirstLabelAfterAStartIsNoChangeOfContent(t *testing.T) {
	for name, noStreams := range map[string]bool{"the list is streamed": false, "the list is paged": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newServer()
			s.noStreams = noStreams
			s.put("a", "uid-a", "1", nil)
			i, told := started(t, s)
			streams := 1
			if noStreams {
				streams = 0
			}
			g.Expect(s.count(&s.streamed)()).To(Equal(streams), "the case is the one that it says")

			object, found := i.Get("shop", "a")
			g.Expect(found).To(BeTrue())
			g.Expect(object.Digest).To(Equal("digest of 1"))

			s.put("a", "uid-a", "1", map[string]string{"new": "label"})
			g.Eventually(told.last).Should(HaveField("Before", Not(BeNil())))
			last := told.last()
			g.Expect(last.Before.Digest).To(Equal("digest of 1"))
			g.Expect(last.After.Digest).To(Equal("digest of 1"))
			g.Expect(last.After.Labels).To(HaveKey("new"))
		})
	}
}

func TestWhatIsReducedStaysAsItIs(t *testing.T) {
	g := NewWithT(t)
	transform := reducer(reduceTest)
	once, err := transform(&corev1.ConfigMap{Data: map[string]string{"value": "1"}})
	g.Expect(err).NotTo(HaveOccurred())
	twice, err := transform(once)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(twice).To(BeIdenticalTo(once))
	g.Expect(once).To(HaveField("Digest", "digest of 1"))

	// Even if what is kept could be reduced itself.
	partial := reducer(func(in runtime.Object) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "of " + in.(metav1.Object).GetName()}}
	})
	once, err = partial(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(partial(once)).To(HaveField("Name", "of a"))

	tombstone := cache.DeletedFinalStateUnknown{Key: "shop/a", Obj: once}
	g.Expect(transform(tombstone)).To(Equal(tombstone))
}

func TestChangesAreTold(t *testing.T) {
	g := NewWithT(t)
	s := newServer()
	s.put("a", "uid-a", "1", nil)
	_, told := started(t, s)
	g.Eventually(told.all).Should(HaveLen(1))
	g.Expect(told.last().Before).To(BeNil())
	g.Expect(told.last().After.Digest).To(Equal("digest of 1"))

	s.put("a", "uid-a", "2", nil)
	g.Eventually(told.all).Should(HaveLen(2))
	g.Expect(told.last().Before.Digest).To(Equal("digest of 1"))
	g.Expect(told.last().After.Digest).To(Equal("digest of 2"))

	s.remove("a")
	g.Eventually(told.all).Should(HaveLen(3))
	g.Expect(told.last().Before.Digest).To(Equal("digest of 2"))
	g.Expect(told.last().After).To(BeNil())
}

func TestF3ADeletionThatNoWatchSawIsTold(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := newServer()
	s.put("a", "uid-a", "1", nil)
	s.put("b", "uid-b", "1", nil)
	s.put("c", "uid-c", "1", nil)
	i, told := started(t, s)
	g.Eventually(told.all).Should(HaveLen(3))

	s.cut(func() {
		s.remove("a")
		s.remove("b")
		s.put("b", "uid-b2", "1", nil)
	})
	g.Eventually(told.all, "10s").Should(ContainElement(And(
		HaveField("Before", HaveField("Name", "a")), HaveField("After", BeNil()))))
	g.Eventually(told.all).Should(ContainElement(And(
		HaveField("Before", HaveField("UID", types.UID("uid-b"))), HaveField("After", HaveField("UID", types.UID("uid-b2"))))))
	_, found := i.Get("shop", "a")
	g.Expect(found).To(BeFalse())
	b, _ := i.Get("shop", "b")
	g.Expect(b.UID).To(Equal(types.UID("uid-b2")))
}

func TestObjectsAreFoundByNamespaceNameAndIndex(t *testing.T) {
	g := NewWithT(t)
	s := newServer()
	s.put("a", "uid-a", "1", nil)
	s.put("b", "uid-b", "1", nil)
	s.put("c", "uid-c", "2", nil)
	i, _ := started(t, s)

	names := func(objects []*kept) []string {
		var names []string
		for _, object := range objects {
			names = append(names, object.Name)
		}
		return names
	}
	g.Expect(names(i.List("shop"))).To(ConsistOf("a", "b", "c"))
	g.Expect(i.List("other")).To(BeEmpty())
	g.Expect(names(i.List(""))).To(ConsistOf("a", "b", "c"))
	g.Expect(names(i.ByIndex("shop", "digest", "digest of 1"))).To(ConsistOf("a", "b"))
	g.Expect(i.ByIndex("other", "digest", "digest of 1")).To(BeEmpty(), "an index is of a namespace")
	g.Expect(i.ByIndex("shop", "no such index", "x")).To(BeEmpty())
	_, found := i.Get("other", "a")
	g.Expect(found).To(BeFalse())
	_, found = i.Get("shop", "d")
	g.Expect(found).To(BeFalse())

	s.put("a", "uid-a", "2", nil)
	g.Eventually(func() []string { return names(i.ByIndex("shop", "digest", "digest of 2")) }).Should(ConsistOf("a", "c"))
}

func TestTheFieldSelectorIsSentWithEveryCall(t *testing.T) {
	for name, noStreams := range map[string]bool{"streamed": false, "paged": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newServer()
			s.noStreams = noStreams
			started(t, s)
			s.mu.Lock()
			defer s.mu.Unlock()
			g.Expect(s.selectors).NotTo(BeEmpty())
			g.Expect(s.selectors).To(HaveEach("type!=a"))
		})
	}
}

func TestEachNamespaceIsReadOnItsOwn(t *testing.T) {
	g := NewWithT(t)
	shop, closed := newServer(), newServer()
	shop.put("a", "uid-a", "1", nil)
	closed.fail(forbidden())
	i, told := newInformer(t, map[string]*server{"shop": shop, "closed": closed})
	start(t, i)

	g.Eventually(func() error { return i.Health("shop") }).Should(Succeed())
	g.Eventually(func() error { return i.Health("closed") }).Should(MatchError(apierrors.IsForbidden, "IsForbidden"))
	g.Expect(i.Health("")).To(MatchError(apierrors.IsForbidden, "IsForbidden"), "all of them is as bad as the worst")
	g.Expect(i.Health("elsewhere")).To(MatchError("configmaps: namespace elsewhere is not watched by this operator"))
	g.Expect(i.Settled()).To(BeTrue(), "one can be read, the other has turned out not to be")

	g.Expect(i.List("shop")).To(HaveLen(1))
	g.Expect(i.List("closed")).To(BeEmpty())
	g.Expect(i.List("elsewhere")).To(BeEmpty())
	g.Expect(i.List("")).To(HaveLen(1), "of all the namespaces that are read")
	g.Expect(i.ByIndex("elsewhere", "digest", "x")).To(BeEmpty())
	_, found := i.Get("elsewhere", "a")
	g.Expect(found).To(BeFalse())
	g.Eventually(told.all).Should(HaveLen(1))
}

func TestE11AKindThatCanNotBeReadIsToldFromOneWithoutObjects(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := newServer()
	i, _ := newInformer(t, map[string]*server{metav1.NamespaceAll: s})
	g.Expect(Group{i}.NeedLeaderElection()).To(BeFalse(), "every replica reads")
	g.Expect(i.Health("shop")).To(MatchError(ErrNotSynced))
	g.Expect(i.Health("shop")).To(MatchError("configmaps: not read yet"))
	g.Expect(i.Settled()).To(BeFalse())

	s.fail(forbidden())
	var told atomic.Int32
	i.OnState(func() { told.Add(1) })
	start(t, i)
	g.Eventually(func() error { return i.Health("shop") }).Should(MatchError(apierrors.IsForbidden, "IsForbidden"))
	g.Expect(i.Settled()).To(BeTrue())
	g.Eventually(s.count(&s.calls), "20s").Should(BeNumerically(">=", 3))
	g.Expect(told.Load()).To(BeEquivalentTo(1), "the same refusal again is no news")

	s.fail(nil)
	g.Eventually(func() error { return i.Health("shop") }, "20s").Should(Succeed())
	g.Expect(i.List("shop")).To(BeEmpty())
	g.Eventually(told.Load).Should(BeNumerically(">", 1))
}

func TestE11AKindThatCanNoLongerBeReadIsNotTrusted(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := newServer()
	s.put("a", "uid-a", "1", nil)
	i, _ := newInformer(t, map[string]*server{metav1.NamespaceAll: s})
	var told atomic.Int32
	i.OnState(func() { told.Add(1) })
	start(t, i)
	g.Eventually(func() error { return i.Health("shop") }).Should(Succeed())
	g.Eventually(told.Load).Should(BeEquivalentTo(1))

	s.fail(errors.New("connection refused"))
	g.Eventually(func() error { return i.Health("shop") }, "20s").Should(MatchError(ContainSubstring("configmaps: connection refused")))
	g.Expect(told.Load()).To(BeEquivalentTo(2))
	_, found := i.Get("shop", "a")
	g.Expect(found).To(BeTrue(), "what is known is kept")

	s.fail(forbidden())
	g.Eventually(func() error { return i.Health("shop") }, "20s").Should(MatchError(apierrors.IsForbidden, "IsForbidden"))
	g.Eventually(told.Load).Should(BeEquivalentTo(3), "another reason is news")

	s.fail(nil)
	g.Eventually(func() error { return i.Health("shop") }, "20s").Should(Succeed())
	g.Eventually(told.Load).Should(BeEquivalentTo(4))
}

// write is what a write of the operator's own made of object a.
func write(uid types.UID, revision int, digest string) *kept {
	return &kept{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: uid, ResourceVersion: strconv.Itoa(revision)},
		Digest:     digest,
	}
}

func digestOf(i *Informer[*kept]) func() string {
	return func() string {
		object, found := i.Get("shop", "a")
		if !found {
			return "none"
		}
		return object.Digest
	}
}

func TestE9AWriteIsSeenAtOnce(t *testing.T) {
	g := NewWithT(t)
	s := newServer()
	s.put("a", "uid-a", "1", nil) // revision 1
	i, told := started(t, s)

	i.Wrote(write("uid-a", 5, "written"))
	g.Expect(digestOf(i)()).To(Equal("written"))
	g.Expect(i.List("shop")).To(HaveExactElements(HaveField("Digest", "written")))
	g.Expect(i.ByIndex("shop", "digest", "digest of 1")).To(HaveExactElements(HaveField("Digest", "written")))
	g.Expect(told.all()).To(HaveLen(1), "a write is no change until the watch brings it")

	i.Wrote(write("uid-a", 4, "an older one, whose answer came late"))
	g.Expect(digestOf(i)()).To(Equal("written"))
	i.Wrote(write("uid-a", 6, "a newer one"))
	g.Expect(digestOf(i)()).To(Equal("a newer one"))

	for s.count(&s.revision)() < 5 {
		s.put("b", "uid-b", "1", nil)
	}
	s.put("a", "uid-a", "6", nil) // revision 6
	g.Eventually(digestOf(i)).Should(Equal("digest of 6"))
	g.Eventually(i.unseen).Should(BeZero(), "the watch has brought it")
}

func TestE9AnOlderStateOfTheWatchDoesNotHideAWrite(t *testing.T) {
	g := NewWithT(t)
	s := newServer()
	s.put("a", "uid-a", "1", nil) // revision 1
	i, told := started(t, s)
	i.Wrote(write("uid-a", 9, "written"))

	s.put("a", "uid-a", "2", nil) // revision 2
	g.Eventually(told.last).Should(HaveField("After", HaveField("Digest", "digest of 2")))
	g.Expect(digestOf(i)()).To(Equal("written"))
}

func TestE9OnlyANewerWriteOfTheSameObjectCounts(t *testing.T) {
	for name, object := range map[string]*kept{
		"an older one":            write("uid-a", 1, "x"),
		"the same one":            write("uid-a", 2, "x"),
		"another uid":             write("uid-b", 9, "x"),
		"no resource version":     {ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "uid-a"}, Digest: "x"},
		"an odd resource version": {ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "uid-a", ResourceVersion: "x"}, Digest: "x"},
		"an object that is not there": {
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b", UID: "uid-b", ResourceVersion: "9"}, Digest: "x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newServer()
			s.put("a", "uid-a", "1", nil)
			s.put("a", "uid-a", "2", nil) // revision 2
			i, _ := started(t, s)
			i.Wrote(object)
			g.Expect(digestOf(i)()).To(Equal("digest of 2"))
			g.Expect(i.unseen()).To(BeZero())
		})
	}
}

func TestAWriteToAnObjectThatIsGoneIsForgotten(t *testing.T) {
	g := NewWithT(t)
	s := newServer()
	s.put("a", "uid-a", "1", nil)
	i, _ := started(t, s)
	i.Wrote(write("uid-a", 9, "written"))

	s.remove("a")
	g.Eventually(digestOf(i)).Should(Equal("none"))
	g.Eventually(i.unseen).Should(BeZero())

	s.put("a", "uid-a2", "3", nil)
	g.Eventually(digestOf(i)).Should(Equal("digest of 3"))
}

func TestAWriteToAnObjectThatIsReplacedIsForgotten(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := newServer()
	s.put("a", "uid-a", "1", nil)
	i, _ := started(t, s)
	i.Wrote(write("uid-a", 9, "written"))

	s.cut(func() {
		s.remove("a")
		s.put("a", "uid-a2", "3", nil)
	})
	g.Eventually(digestOf(i), "10s").Should(Equal("digest of 3"))
	g.Eventually(i.unseen).Should(BeZero())
}

// interrupted is a write during whose record something else happens.
type interrupted struct {
	*kept
	happens func()
}

func (w *interrupted) GetUID() types.UID {
	w.happens()
	return w.kept.GetUID()
}

func TestAWriteIsForgottenIfTheObjectGoesMeanwhile(t *testing.T) {
	g := NewWithT(t)
	s := newServer()
	brought := reduceTest(s.put("a", "uid-a", "1", nil))
	i, err := New(Options[metav1.Object]{
		Resource:   "configmaps",
		Namespaces: []string{metav1.NamespaceAll},
		Type:       &corev1.ConfigMap{},
		Reduce:     func(in runtime.Object) metav1.Object { return reduceTest(in) },
		Client:     func(string) ListWatcher { return s.client() },
	})
	g.Expect(err).NotTo(HaveOccurred())
	gone := make(chan struct{})
	g.Expect(i.OnChange(func(_, after metav1.Object) {
		if after == nil {
			close(gone)
		}
	})).To(Succeed())
	start(t, i)
	g.Eventually(func() error { return i.Health("shop") }).Should(Succeed())

	brought.ResourceVersion = "9"
	i.Wrote(&interrupted{kept: brought, happens: sync.OnceFunc(func() {
		s.remove("a")
		select {
		case <-gone:
		case <-time.After(200 * time.Millisecond): // it may be told only after the record is made
		}
	})})
	g.Eventually(gone).Should(BeClosed())
	g.Expect(i.unseen()).To(BeZero())
}

// unseen is how many writes wait for the watch.
func (i *Informer[T]) unseen() int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return len(i.written)
}
