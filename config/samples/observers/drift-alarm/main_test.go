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

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/config/samples/observers/changes"
)

func change(event changes.Event, name string, labels ...string) changes.Change {
	c := changes.Change{Event: event, Kind: "ConfigMap", Namespace: "shop", Name: name, Labels: map[string]string{}}
	for i := 0; i+1 < len(labels); i += 2 {
		c.Labels[labels[i]] = labels[i+1]
	}
	return c
}

func mark(event changes.Event) changes.Change {
	return changes.Change{Event: event}
}

func TestAnAlarmIsRaisedForWhatIsGoneAndShouldBeThere(t *testing.T) {
	web, db := object{"ConfigMap", "shop", "web"}, object{"ConfigMap", "shop", "db"}
	for name, tc := range map[string]struct {
		expected []string
		seen     []changes.Change
		want     map[object]int
	}{
		"a deletion": {
			nil, []changes.Change{change(changes.Added, "web"), mark(changes.Synced), change(changes.Deleted, "web")},
			map[object]int{web: 1}},
		"another one of the same name": {
			nil, []changes.Change{
				mark(changes.Synced), change(changes.Added, "web"), change(changes.Deleted, "web"),
				change(changes.Added, "web"), change(changes.Deleted, "web"),
			},
			map[object]int{web: 2}},
		"a planned deletion": {
			nil, []changes.Change{mark(changes.Synced), change(changes.Added, "web"), change(changes.Deleted, "web", "deletion", "planned")},
			nil},
		"a deletion with another value of the label": {
			nil, []changes.Change{mark(changes.Synced), change(changes.Deleted, "web", "deletion", "forbidden")},
			map[object]int{web: 1}},
		"a modification": {
			nil, []changes.Change{change(changes.Added, "web"), mark(changes.Synced), change(changes.Modified, "web")},
			nil},
		"a deletion in a gap": {
			nil, []changes.Change{
				change(changes.Added, "web"), change(changes.Added, "db"), mark(changes.Synced),
				mark(changes.Gap), change(changes.Added, "db"), mark(changes.Synced),
			},
			map[object]int{web: 1}},
		"a planned deletion in a gap": {
			nil, []changes.Change{change(changes.Added, "web", "deletion", "planned"), mark(changes.Synced), mark(changes.Gap), mark(changes.Synced)},
			nil},
		"a deletion in the first of two gaps": {
			nil, []changes.Change{
				change(changes.Added, "web"), change(changes.Added, "db"), mark(changes.Synced),
				mark(changes.Gap), change(changes.Added, "db"), mark(changes.Gap), change(changes.Added, "db"), mark(changes.Synced),
				mark(changes.Gap), change(changes.Added, "db"), mark(changes.Synced),
			},
			map[object]int{web: 1}},
		"what is expected and there": {
			[]string{"web"}, []changes.Change{change(changes.Added, "web"), mark(changes.Synced)},
			nil},
		"what is expected and not there": {
			[]string{"web", "db"}, []changes.Change{
				change(changes.Added, "db"), mark(changes.Synced),
				mark(changes.Gap), change(changes.Added, "db"), mark(changes.Synced), change(changes.Deleted, "db"),
			},
			map[object]int{web: 1, db: 1}},
		"nothing while not all is known": {
			[]string{"web"}, []changes.Change{mark(changes.Connected), change(changes.Added, "db"), mark(changes.Interrupted)},
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			guard, raised := newGuard("deletion=planned", "ConfigMap", "shop", tc.expected), 0
			guard.raised = func() { raised++ }
			wanted := 0
			for _, c := range tc.seen {
				guard.observe(c)
			}
			for o, n := range tc.want {
				g.Expect(guard.alarms).To(HaveKeyWithValue(o, n))
				wanted += n
			}
			g.Expect(guard.alarms).To(HaveLen(len(tc.want)))
			g.Expect(raised).To(Equal(wanted))
		})
	}
}

func TestAlarmsAndDeafnessShowInMetrics(t *testing.T) {
	g := NewWithT(t)
	guard := newGuard("", "ConfigMap", "shop", nil)
	metrics := func() string {
		answer := httptest.NewRecorder()
		guard.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return answer.Body.String()
	}
	guard.observe(mark(changes.Connected))
	guard.observe(change(changes.Deleted, "web"))
	guard.observe(change(changes.Deleted, "db"))
	guard.observe(change(changes.Deleted, "web"))
	g.Expect(metrics()).To(Equal(`# TYPE drift_alarm_deletions_total counter
drift_alarm_deletions_total{kind="ConfigMap",namespace="shop",name="db"} 1
drift_alarm_deletions_total{kind="ConfigMap",namespace="shop",name="web"} 2
# TYPE drift_alarm_connected gauge
drift_alarm_connected 1
`))
	guard.observe(mark(changes.Interrupted))
	g.Expect(metrics()).To(HaveSuffix("drift_alarm_connected 0\n"))
}

func TestExpectedNamesAreAList(t *testing.T) {
	g := NewWithT(t)
	g.Expect(names("")).To(BeEmpty())
	g.Expect(names("web, db,")).To(HaveExactElements("web", "db"))
}
