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
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
)

// remembering is a History of sources that have been read.
func remembering(t *testing.T, limit int) (*feed.History, *sources) {
	t.Helper()
	h, from := feed.NewHistory(newBroker(), limit), &sources{}
	NewWithT(t).Expect(h.Follow(from, []string{""})).To(Succeed())
	from.read()
	return h, from
}

// begin begins a subscription, and is the position at which it does.
func begin(t *testing.T, h *feed.History, filter feed.Filter) (*feed.Subscription, feed.Position) {
	t.Helper()
	s, position, err := h.Subscribe(filter, 9)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(s.Close)
	return s, position
}

// resume is a subscription that goes on after a position, and what it missed, in short.
func resume(t *testing.T, h *feed.History, filter feed.Filter, after feed.Position) (*feed.Subscription, []string) {
	t.Helper()
	r, err := h.Resume(filter, 9, after)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Close)
	lines := make([]string, len(r.Missed))
	for i, c := range r.Missed {
		lines[i] = line(*c)
	}
	return r.Subscription, lines
}

// at is a position in the watch of one kind.
func at(kind v1alpha1.SourceKind, version int) feed.Position {
	return feed.Position{{Kind: kind, Version: strconv.Itoa(version)}}
}

func TestF8ASubscriptionGoesOnWhereAnotherOneEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h, from := remembering(t, 9)
		_, start := begin(t, h, feed.Filter{})
		web := history("web", 3)
		from.publish(nil, web[0])
		from.publish(web[0], web[1])
		_, middle := begin(t, h, feed.Filter{})
		from.publish(web[1], web[2])
		from.publish(with(web[2], func(s *source.Source) { s.ResourceVersion = "4" }), nil)

		all := []string{"Added web@1", "Modified web@2", "Modified web@3", "Deleted web@4"}
		s, missed := resume(t, h, feed.Filter{}, start)
		g.Expect(missed).To(HaveExactElements(all))
		_, missed = resume(t, h, feed.Filter{}, middle)
		g.Expect(missed).To(HaveExactElements(all[2:]))
		_, end := begin(t, h, feed.Filter{})
		_, missed = resume(t, h, feed.Filter{Initial: true}, end)
		g.Expect(missed).To(BeEmpty())

		from.publish(nil, configMap("db", "5"))
		expect(t, s, "Added db@5")
	})
}

func TestF8WhatWasMissedSuitsTheFilter(t *testing.T) {
	demo := labelled(configMap("web", "1", "a", "1"), "app", "demo")
	for name, tc := range map[string]struct {
		filter feed.Filter
		want   []string
	}{
		"none":       {feed.Filter{}, []string{"Added web@1", "Modified web@3", "Added web@2", "Deleted web@5", "Added web@6"}},
		"a kind":     {feed.Filter{Kind: v1alpha1.Secret}, []string{"Added web@2"}},
		"a name":     {feed.Filter{Name: "db"}, nil},
		"an event":   {feed.Filter{Events: []feed.EventType{feed.Modified}}, []string{"Modified web@3"}},
		"labels":     {feed.Filter{Selector: selector(t, "app=demo")}, []string{"Added web@1", "Modified web@3", "Deleted web@4", "Added web@6"}},
		"no labels":  {feed.Filter{Selector: selector(t, "!app"), Kind: v1alpha1.ConfigMap}, []string{"Added web@4", "Deleted web@5"}},
		"no present": {feed.Filter{Initial: true, Events: []feed.EventType{feed.Deleted}}, []string{"Deleted web@5"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, from := remembering(t, 9)
			_, start := begin(t, h, feed.Filter{})
			versions := []*source.Source{nil, demo,
				with(demo, func(s *source.Source) { s.ResourceVersion, s.Content = "3", configMap("", "", "a", "2").Content }),
				configMap("web", "4", "a", "2"), // loses its label
				with(configMap("web", "5", "a", "2"), func(s *source.Source) { s.Ignored = true }),
				with(demo, func(s *source.Source) { s.ResourceVersion = "6" })}
			for i, after := range versions[1:] {
				from.publish(versions[i], after)
				if i == 1 {
					from.publish(nil, secret("web", "2"))
				}
			}
			_, missed := resume(t, h, tc.filter, start)
			NewWithT(t).Expect(missed).To(HaveExactElements(tc.want))
		})
	}
}

func TestF8TheHistoryHasWhatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h, from := remembering(t, 9)
		s, start := begin(t, h, feed.Filter{})
		web := history("web", 2)
		from.publish(nil, web[1])
		from.publish(web[0], web[1])                                                                // seen already
		from.publish(web[1], with(web[1], func(s *source.Source) { s.ResourceVersion = "3" }))      // no other content
		from.publish(web[1], with(configMap("web", "4"), func(s *source.Source) { s.UID = "new" })) // another one
		from.publish(nil, with(configMap("hidden", "5"), func(s *source.Source) { s.Ignored = true }))
		from.publish(nil, nil)
		from.publish(configMap("gone", "6"), nil)
		want := []string{"Added web@2", "Deleted web@", "Added web@4"}
		expect(t, s, want...)
		_, missed := resume(t, h, feed.Filter{}, start)
		g.Expect(missed).To(HaveExactElements(want))
	})
}

func TestF8BeyondItsLimitAHistoryForgets(t *testing.T) {
	g := NewWithT(t)
	h, from := remembering(t, 3)
	_, start := begin(t, h, feed.Filter{})
	web := history("web", 4)
	for i, after := range web {
		if i == 0 {
			from.publish(nil, after)
			continue
		}
		from.publish(web[i-1], after)
	}
	_, err := h.Resume(feed.Filter{}, 9, start)
	g.Expect(err).To(MatchError(feed.ErrForgotten))
	start.Advance(new(stepTo(v1alpha1.ConfigMap, 101)))
	_, missed := resume(t, h, feed.Filter{}, start)
	g.Expect(missed).To(HaveExactElements("Modified web@2", "Modified web@3", "Modified web@4"))
	start.Advance(new(stepTo(v1alpha1.ConfigMap, 103)))
	_, missed = resume(t, h, feed.Filter{}, start)
	g.Expect(missed).To(HaveExactElements("Modified web@4"))
}

func TestF8AHistoryOfManyKeysIsShorter(t *testing.T) {
	const limit, keys = 10, 400
	g := NewWithT(t)
	h, from := remembering(t, limit)
	_, start := begin(t, h, feed.Filter{})
	var before *source.Source
	for n := range limit {
		var data []string
		for key := range keys {
			data = append(data, "key-"+strconv.Itoa(key), strconv.Itoa(n))
		}
		after := configMap("large", strconv.Itoa(n+1), data...)
		from.publish(before, after)
		before = after
	}
	_, err := h.Resume(feed.Filter{}, 9, start)
	g.Expect(err).To(MatchError(feed.ErrForgotten))
	start.Advance(new(stepTo(v1alpha1.ConfigMap, 100+limit-1)))
	_, missed := resume(t, h, feed.Filter{}, start)
	g.Expect(missed).To(HaveExactElements("Modified large@10"))
}

func TestF4AHistoryIsReadyWhenAllThatIsAskedForIsKnown(t *testing.T) {
	g := NewWithT(t)
	h := feed.NewHistory(newBroker(), 9)
	from := &sources{configMaps: informer.ErrNotSynced, others: errForbidden, namespace: "shop"}
	g.Expect(h.Follow(from, []string{"shop"})).To(Succeed())
	from.tell()
	from.publish(nil, configMap("web", "1"))
	g.Expect(h.Ready(feed.Filter{Kind: v1alpha1.ConfigMap})).To(MatchError(feed.ErrUnread))
	g.Expect(h.Ready(feed.Filter{Kind: v1alpha1.Secret})).To(MatchError(feed.ErrUnreadable))
	g.Expect(h.Ready(feed.Filter{Namespace: "other"})).To(MatchError(feed.ErrNotFollowed))
	_, err := h.Resume(feed.Filter{Namespace: "other"}, 9, nil)
	g.Expect(err).To(MatchError(ContainSubstring("namespace other is not watched")))

	waiting, position := begin(t, h, feed.Filter{Initial: true})
	g.Expect(position.IsKnown()).To(BeFalse(), "what has not been read has no position")
	_, _, err = h.Passed(waiting, nil)
	g.Expect(err).To(MatchError(feed.ErrToReceive))
	from.configMaps = nil
	from.tell()
	g.Expect(h.Ready(feed.Filter{Kind: v1alpha1.ConfigMap})).To(Succeed())
	g.Expect(h.Ready(feed.Filter{})).To(MatchError(feed.ErrUnreadable))
	from.read()
	g.Expect(h.Ready(feed.Filter{Namespace: "shop"})).To(Succeed())
}

func TestF8PassedIsWhatHasBeenReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h, from := remembering(t, 9)
		s, start := begin(t, h, feed.Filter{Kind: v1alpha1.Secret})
		from.publish(nil, configMap("web", "1"))
		position, _, err := h.Passed(s, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(position).To(Equal(start))
		from.publish(nil, secret("db", "2"))
		_, _, err = h.Passed(s, nil)
		g.Expect(err).To(MatchError(feed.ErrToReceive))
		expect(t, s, "Added db@2")
		position, _, err = h.Passed(s, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(position).To(Equal(at(v1alpha1.Secret, 102)))
		from.step(stepTo(v1alpha1.Secret, 110), nil, nil)
		position, _, err = h.Passed(s, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(position).To(Equal(at(v1alpha1.Secret, 110)), "where the watch is, if nothing happens")
	})
}

func TestF8SourcesThatCantBeRemembered(t *testing.T) {
	err := feed.NewHistory(newBroker(), 9).Follow(&sources{refusal: errors.New("stopped")}, []string{""})
	NewWithT(t).Expect(err).To(MatchError("following the sources: stopped"))
}

// Whenever subscriptions end and go on, they have each change once and in order.
func TestF8NothingIsLostAndNothingComesTwice(t *testing.T) {
	const published, receivers = 2_000, 4
	h, from := remembering(t, published)
	_, start := begin(t, h, feed.Filter{})
	web := history("web", published)
	var running sync.WaitGroup
	running.Go(func() {
		from.publish(nil, web[0])
		for i := range web[1:] {
			from.publish(web[i], web[i+1])
		}
	})
	for n := range receivers {
		running.Go(func() {
			position, seen := slices.Clone(start), 0
			for seen < published {
				s, err := h.Resume(feed.Filter{}, published, position)
				if err != nil {
					t.Error(err)
					return
				}
				take := func(c *feed.Change) {
					seen++
					if c.ResourceVersion != strconv.Itoa(seen) {
						t.Errorf("%s after %d", line(*c), seen-1)
					}
					position.Advance(c.Step)
				}
				for _, c := range s.Missed {
					take(c)
				}
				for range min(10*n+1, published-seen) {
					c := <-s.Events()
					take(&c)
				}
				s.Close()
			}
		})
	}
	running.Wait()
}
