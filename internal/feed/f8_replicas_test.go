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

package feed_test

import (
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
)

// brought has a replica's watch bring a version of the ConfigMap web, of that resource version.
func (s *sources) brought(before, after *source.Source, version int) {
	s.step(stepTo(v1alpha1.ConfigMap, version), before, after)
}

func TestF8APositionMeansTheSameToEveryReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		first, of1 := remembering(t, 9)
		second, of2 := remembering(t, 9)
		s, position := begin(t, first, feed.Filter{})
		web := history("web", 4)
		for _, watch := range []*sources{of1, of2} {
			watch.brought(nil, web[0], 201)
			watch.brought(web[0], web[1], 202)
		}
		for _, c := range receive(t, s, 2) {
			position.Advance(c.Step)
		}
		of2.brought(web[1], web[2], 203)
		s, missed := resume(t, second, feed.Filter{}, position)
		g.Expect(missed).To(HaveExactElements("Modified web@3"))
		of2.brought(web[2], web[3], 204)
		expect(t, s, "Modified web@4")
	})
}

func TestF8StatesThatAReplicaHasLeftOutCantBeGoneOnFrom(t *testing.T) {
	g := NewWithT(t)
	h, from := remembering(t, 9)
	web := history("web", 4)
	from.brought(nil, web[0], 201)
	// Another replica saw what was in between: how it came from that to this is not known here.
	from.step(listed(v1alpha1.ConfigMap, 205, true), configMap("db", "1"), nil)
	_, within := begin(t, h, feed.Filter{})
	g.Expect(within.IsKnown()).To(BeFalse(), "there never was a state like that")
	from.step(listed(v1alpha1.ConfigMap, 205, false), web[0], web[3])
	from.brought(nil, configMap("new", "6"), 206)

	for version, want := range map[int][]string{
		201: {"Modified web@4", "Added new@6"},
		205: {"Added new@6"},
		206: {},
	} {
		_, missed := resume(t, h, feed.Filter{Kind: v1alpha1.ConfigMap}, at(v1alpha1.ConfigMap, version))
		g.Expect(missed).To(HaveExactElements(want), "after %d", version)
	}
	for _, version := range []int{99, 202, 204} {
		_, err := h.Resume(feed.Filter{Kind: v1alpha1.ConfigMap}, 9, at(v1alpha1.ConfigMap, version))
		g.Expect(err).To(MatchError(feed.ErrForgotten), "after %d", version)
	}
	for name, position := range map[string]feed.Position{
		"of another kind": at(v1alpha1.Secret, 205),
		"of a step":       {{Kind: v1alpha1.ConfigMap}},
		"that is none":    {{Kind: v1alpha1.ConfigMap, Version: "x"}},
		"of nothing":      nil,
	} {
		_, err := h.Resume(feed.Filter{Kind: v1alpha1.ConfigMap}, 9, position)
		g.Expect(err).To(MatchError(feed.ErrForgotten), name)
	}
}

func TestF8ADeletionThatNoWatchSawIsMissedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h, from := remembering(t, 9)
		web := configMap("web", "1")
		from.brought(nil, web, 201)
		s, position := begin(t, h, feed.Filter{})
		from.step(listed(v1alpha1.ConfigMap, 205, true), web, nil)
		gone := receive(t, s, 1)[0]
		g.Expect(line(gone)).To(Equal("Deleted web@"))
		told := append(feed.Position(nil), position...)
		told.Advance(gone.Step)
		g.Expect(told.IsKnown()).To(BeFalse(), "until all of the list is told")
		from.step(listed(v1alpha1.ConfigMap, 205, false), nil, configMap("db", "3"))
		told.Advance(receive(t, s, 1)[0].Step)
		_, missed := resume(t, h, feed.Filter{}, position)
		g.Expect(missed).To(HaveExactElements("Deleted web@", "Added db@3"))
		_, missed = resume(t, h, feed.Filter{}, told)
		g.Expect(missed).To(BeEmpty())
	})
}

func TestF8ThePlaceOfAnObjectThatIsAnotherOneIsThatOfTheNewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h, from := remembering(t, 9)
		s, position := begin(t, h, feed.Filter{})
		old := configMap("web", "1")
		from.brought(nil, old, 201)
		from.brought(old, with(configMap("web", "2"), func(s *source.Source) { s.UID = "new" }), 202)
		changes := receive(t, s, 3)
		g.Expect(told(changes)).To(HaveExactElements("Added web@1", "Deleted web@", "Added web@2"))
		position.Advance(changes[1].Step)
		g.Expect(position.IsKnown()).To(BeFalse(), "half of the step is to come")
		position.Advance(changes[2].Step)
		g.Expect(position.IsKnown()).To(BeTrue())
	})
}

func TestF8AReplicaMayBeBehindAnother(t *testing.T) {
	ahead := at(v1alpha1.ConfigMap, 203)
	begin := func(t *testing.T) (*feed.History, *sources, *feed.Subscription) {
		h, from := remembering(t, 9)
		// What other watches have reached is none of its business, however much of that there is.
		told := append(at(v1alpha1.Secret, 500), ahead...)
		r, err := h.Resume(feed.Filter{Kind: v1alpha1.ConfigMap}, 9, told)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		t.Cleanup(r.Close)
		NewWithT(t).Expect(r.Missed).To(BeEmpty())
		NewWithT(t).Expect(r.Position).To(Equal(ahead))
		NewWithT(t).Expect(r.Ahead).To(Equal(ahead))
		return h, from, r.Subscription
	}
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h, from, s := begin(t)
		from.brought(nil, configMap("web", "2"), 202)
		change := receive(t, s, 1)[0]
		g.Expect(change.Step.Version).To(Equal("202"), "it was told, as this shows")
		position, still, err := h.Passed(s, ahead)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(position).To(Equal(ahead), "there is no going back")
		g.Expect(still).To(Equal(ahead))

		from.step(stepTo(v1alpha1.ConfigMap, 207), nil, nil)
		position, still, err = h.Passed(s, ahead)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(position).To(Equal(at(v1alpha1.ConfigMap, 207)))
		g.Expect(still).To(BeEmpty())
	})
	synctest.Test(t, func(t *testing.T) {
		h, from, s := begin(t)
		from.step(listed(v1alpha1.ConfigMap, 207, false), nil, nil)
		_, _, err := h.Passed(s, ahead)
		NewWithT(t).Expect(err).To(MatchError(feed.ErrForgotten), "what became of that state is not known")
	})
}

func TestF8EachNamespaceHasAPositionOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	h, from := feed.NewHistory(newBroker(), 9), &sources{}
	g.Expect(h.Follow(from, []string{"shop", "blog"})).To(Succeed())
	for n, namespace := range []string{"shop", "blog"} {
		first := listed(v1alpha1.ConfigMap, 100*(n+1), false)
		first.Namespace = namespace
		from.step(first, nil, nil)
	}
	from.tell()
	_, all := begin(t, h, feed.Filter{Kind: v1alpha1.ConfigMap})
	g.Expect(all).To(ConsistOf(
		feed.Reached{Kind: v1alpha1.ConfigMap, Namespace: "shop", Version: "100"},
		feed.Reached{Kind: v1alpha1.ConfigMap, Namespace: "blog", Version: "200"}))
	_, one := begin(t, h, feed.Filter{Kind: v1alpha1.ConfigMap, Namespace: "blog"})
	g.Expect(one).To(Equal(at(v1alpha1.ConfigMap, 200)), "as of a replica that watches all namespaces")

	from.namespace = "shop"
	from.publish(nil, configMap("web", "1"))
	_, missed := resume(t, h, feed.Filter{Kind: v1alpha1.ConfigMap}, all)
	g.Expect(missed).To(HaveExactElements("Added web@1"))
	from.namespace = "elsewhere"
	from.publish(nil, in("elsewhere", configMap("web", "1")))
	_, missed = resume(t, h, feed.Filter{Kind: v1alpha1.ConfigMap}, all)
	g.Expect(missed).To(HaveLen(1), "that is watched by nobody")
}

func TestF8VersionsThatCantBeComparedAreNoPosition(t *testing.T) {
	g := NewWithT(t)
	h, from := remembering(t, 9)
	odd := stepTo(v1alpha1.ConfigMap, 1)
	odd.Version = "b1c2"
	from.step(odd, nil, configMap("web", "b1c2"))
	_, position := begin(t, h, feed.Filter{})
	g.Expect(position.IsKnown()).To(BeFalse())
}
