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

package controller

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
)

// aConfigWatch has a status that is told by its observed generation.
func aConfigWatch(uid types.UID, observedGeneration int64) *v1alpha1.ConfigWatch {
	return &v1alpha1.ConfigWatch{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid},
		Status:     v1alpha1.ConfigWatchStatus{ObservedGeneration: observedGeneration},
	}
}

func news(n int) []plan.Event {
	events := make([]plan.Event, n)
	for i := range events {
		events[i].Note = fmt.Sprintf("event %d", i)
	}
	return events
}

func TestE9WhatIsUnrecordedIsGoneOnFromUntilAnotherWritesTheStatus(t *testing.T) {
	recorded := aConfigWatch("uid", 1)
	for name, tc := range map[string]struct {
		next *v1alpha1.ConfigWatch
		want int64
		news int
	}{
		"nobody wrote it":                   {next: aConfigWatch("uid", 1), want: 4, news: 3},
		"it was written after all":          {next: aConfigWatch("uid", 4), want: 4, news: 3},
		"one sent earlier was written":      {next: aConfigWatch("uid", 2), want: 4, news: 3},
		"the next one sent was written":     {next: aConfigWatch("uid", 3), want: 4, news: 3},
		"another wrote it":                  {next: aConfigWatch("uid", 5), want: 5},
		"it is a new one of its name":       {next: aConfigWatch("other", 1), want: 1},
		"a new one with a status like ours": {next: aConfigWatch("other", 2), want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var u unrecorded
			for generation := range int64(3) { // the answers to two writes are lost, the third is not sent yet
				c := u.latest(recorded)
				c.status = v1alpha1.ConfigWatchStatus{ObservedGeneration: generation + 2}
				c.news = append(c.news, news(1)...)
				u.keep(recorded, c)
				if generation < 2 {
					g.Expect(u.failed(recorded)).To(Succeed())
				}
			}

			c := u.latest(tc.next)
			g.Expect(c.status.ObservedGeneration).To(Equal(tc.want))
			g.Expect(c.written).To(Equal(tc.next.Status), "what the next write is compared with")
			g.Expect(c.news).To(HaveLen(tc.news))

			u.forget(client.ObjectKeyFromObject(recorded))
			c = u.latest(tc.next)
			g.Expect(c.status).To(Equal(tc.next.Status))
			g.Expect(c.news).To(BeEmpty())
		})
	}
}

func TestStatusesThatMayHaveBeenWrittenAreBounded(t *testing.T) {
	g := NewWithT(t)
	cw := aConfigWatch("uid", 1)
	var u unrecorded
	for generation := range int64(maxSentStatuses + 1) {
		u.keep(cw, conclusion{written: cw.Status, status: aConfigWatch("uid", generation+2).Status, sent: u.get(cw).sent})
		g.Expect(u.failed(cw)).To(Succeed())
		g.Expect(u.failed(cw)).To(Succeed(), "the same once more")
	}
	g.Expect(u.get(cw).sent).To(HaveLen(maxSentStatuses))
	g.Expect(u.latest(aConfigWatch("uid", 3)).status.ObservedGeneration).To(BeEquivalentTo(maxSentStatuses+2), "a newer one")
	g.Expect(u.latest(aConfigWatch("uid", 2)).status.ObservedGeneration).To(BeEquivalentTo(2), "the oldest")
}

// Two Events a restart, of 1,000 targets: they wait for the pass that records them.
func TestE27EveryRestartOfAPassOverTheMostTargetsIsTold(t *testing.T) {
	g := NewWithT(t)
	cw := aConfigWatch("uid", 1)
	var u unrecorded
	u.keep(cw, conclusion{written: cw.Status, news: news(2000)})
	g.Expect(u.latest(cw).news).To(Equal(news(2000)))
}

func TestNewsThatCanNotBeToldAreBounded(t *testing.T) {
	g := NewWithT(t)
	cw := aConfigWatch("uid", 1)
	var u unrecorded
	u.keep(cw, conclusion{written: cw.Status, news: news(maxUnreportedEvents + 1)})
	g.Expect(u.latest(cw).news).To(Equal(news(maxUnreportedEvents + 1)[1:]))
}
