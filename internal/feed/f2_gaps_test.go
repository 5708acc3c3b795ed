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
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/feed"
)

func TestF2TheOldestGoAndAGapSaysHowMany(t *testing.T) {
	for name, tc := range map[string]struct {
		buffer, published int
		want              []string
	}{
		"all fit":               {3, 3, []string{"Added web@1", "Modified web@2", "Modified web@3"}},
		"one too many":          {3, 4, []string{"Gap 1", "Modified web@2", "Modified web@3", "Modified web@4"}},
		"many too many":         {2, 100, []string{"Gap 98", "Modified web@99", "Modified web@100"}},
		"the smallest ring":     {1, 3, []string{"Gap 2", "Modified web@3"}},
		"a ring that has grown": {20, 50, append([]string{"Gap 30"}, modified("web", 31, 50)...)},
	} {
		t.Run(name, func(t *testing.T) {
			// Whether an offer waits to be received when the changes are published makes no difference.
			for when, prepare := range map[string]func(*feed.Subscription){
				"nobody has listened yet": func(*feed.Subscription) {},
				"someone listens":         func(s *feed.Subscription) { s.Events() },
			} {
				t.Run(when, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := newBroker()
						s := subscribe(t, b, feed.Filter{}, tc.buffer)
						prepare(s)
						publish(b, history("web", tc.published)...)
						expect(t, s, tc.want...)
					})
				})
			}
		})
	}
}

func modified(name string, from, to int) []string {
	var lines []string
	for n := from; n <= to; n++ {
		lines = append(lines, "Modified "+name+"@"+strconv.Itoa(n))
	}
	return lines
}

func TestF2WhatIsOfferedIsWithdrawnWhenItIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		s := subscribe(t, b, feed.Filter{}, 2)
		events := s.Events()
		versions := history("web", 6)
		for n, after := range versions {
			b.Publish(versions[max(n-1, 0)], after)
			synctest.Wait() // until the first of the queue is offered
		}
		NewWithT(t).Expect(line(<-events)).To(Equal("Gap 4"), "one that counts all, and nothing before it")
		NewWithT(t).Expect(line(<-events)).To(Equal("Modified web@5"))
		NewWithT(t).Expect(line(<-events)).To(Equal("Modified web@6"))
	})
}

func TestF2EachGapCountsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		s := subscribe(t, b, feed.Filter{}, 2)
		versions := history("web", 9)
		publish(b, versions[:4]...)
		g := NewWithT(t)
		g.Expect(told(receive(t, s, 2))).To(Equal([]string{"Gap 2", "Modified web@3"}))
		publish(b, versions[4:]...)
		expect(t, s, "Gap 4", "Modified web@8", "Modified web@9")
	})
}

func TestF2OnlyWhatTheFilterLetsThroughIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		s := subscribe(t, b, feed.Filter{Name: "web", Events: []feed.EventType{feed.Modified}}, 1)
		publish(b, history("web", 4)...)
		publish(b, history("db", 10)...)
		expect(t, s, "Gap 2", "Modified web@4")
	})
}

func TestF2AGapSaysWhatItIsAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		s := subscribe(t, b, feed.Filter{Namespace: "shop", Name: "web"}, 1)
		publish(b, history("web", 2)...)
		NewWithT(t).Expect(receive(t, s, 1)[0]).To(Equal(feed.Change{Type: feed.Gap, Namespace: "shop", Name: "web", Time: noon, Lost: 1}))
	})
}

func TestF2ASlowOneHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		stuck := subscribe(t, b, feed.Filter{}, 1)
		stuck.Events()
		quick := subscribe(t, b, feed.Filter{}, 1)
		for n, after := range history("web", 100) {
			b.Publish(nil, after)
			NewWithT(t).Expect(receive(t, quick, 1)[0].ResourceVersion).To(Equal(strconv.Itoa(n + 1)))
		}
		synctest.Wait() // what it is offered is what it has lost in all
		expect(t, stuck, "Gap 99", "Modified web@100")
	})
}

func TestF2RereadAnswersAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		s := subscribe(t, b, feed.Filter{}, 2)
		publish(b, history("web", 4)...)
		NewWithT(t).Expect(line(receive(t, s, 1)[0])).To(Equal("Gap 2"))
		b.Publish(nil, configMap("db", "9"))
		s.Reread()
		b.Publish(nil, configMap("db", "10", "a", "1"))
		expect(t, s, "Added db@9 initial", "Added web@4 initial", "Synced", "Modified db@10")
	})
}

func TestF2RereadWithdrawsWhatIsOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		s := subscribe(t, b, feed.Filter{Initial: true}, 1)
		events := s.Events()
		synctest.Wait() // Synced is offered
		publish(b, history("web", 3)...)
		s.Reread()
		var lines []string
		for range 2 {
			lines = append(lines, line(<-events))
		}
		NewWithT(t).Expect(lines).To(Equal([]string{"Added web@3 initial", "Synced"}))
	})
}

// A receiver that reads anew whenever it has lost something knows what is there, at any time.
func TestF2NothingOfBeforeComesAfterReread(t *testing.T) {
	const published = 5_000
	b := newBroker()
	s := subscribe(t, b, feed.Filter{Initial: true}, 1)
	known, rereads := 0, 0
	var publisher sync.WaitGroup
	publisher.Go(func() { publish(b, history("web", published)...) })
	for known < published {
		c := receive(t, s, 1)[0]
		version, _ := strconv.Atoi(c.ResourceVersion)
		switch {
		case c.Type == feed.Gap:
			s.Reread()
			rereads++
			known = 0
		case c.Type == feed.Synced:
		case c.Initial && known == 0, !c.Initial && version == known+1:
			known = version
		default:
			t.Fatalf("%s after version %d", line(c), known)
		}
	}
	publisher.Wait()
	NewWithT(t).Expect(rereads).To(BeNumerically(">", 0), "or else this tests nothing")
}

func TestF2RereadDoesNotWaitForAClosedSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		s := subscribe(t, b, feed.Filter{}, 1)
		s.Events()
		publish(b, history("web", 3)...)
		synctest.Wait()
		s.Close()
		s.Reread()
		_, open := <-s.Events()
		NewWithT(t).Expect(open).To(BeFalse())
	})
}

// Whatever the receiver's pace, each change is received or counted, in order.
func TestF2NothingIsLostSilently(t *testing.T) {
	const published, subscriptions = 3_000, 4
	b := newBroker()
	var receivers sync.WaitGroup
	for n := range subscriptions {
		s := subscribe(t, b, feed.Filter{}, 1+n*n)
		receivers.Go(func() {
			received := 0
			for c := range s.Events() {
				received += 1 + max(c.Lost-1, 0)
				version, _ := strconv.Atoi(c.ResourceVersion)
				if c.Type != feed.Gap && version != received {
					t.Errorf("version %d came when %d were received or lost", version, received)
				}
				if received == published {
					return
				}
			}
		})
	}
	publish(b, history("web", published)...)
	receivers.Wait()
}
