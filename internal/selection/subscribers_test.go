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

package selection

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// subscribed adds subscribers of these names.
func subscribed(cw *v1alpha1.ConfigWatch, names ...string) *v1alpha1.ConfigWatch {
	for _, name := range names {
		cw.Spec.Subscribers = append(cw.Spec.Subscribers, v1alpha1.Subscriber{Name: name})
	}
	return cw
}

func TestF6ASubscriberMayBeToldOfEverySource(t *testing.T) {
	g := NewWithT(t)
	c := shop()
	left := ignored(aConfigMap("left-out", "app=db"))
	c.sources = append(c.sources, left)
	known := sourceCache{cluster: c}.Get("shop", source.Ref{Kind: v1alpha1.ConfigMap, Name: "app-config"})
	known.UID, known.ResourceVersion = "b0c1", "42"
	entry := named(v1alpha1.ConfigMap, "app-config")
	entry.Keys = []string{"KEY"}
	cw := subscribed(watching(sourceList{
		entry, named(v1alpha1.ConfigMap, "missing"), named(v1alpha1.ConfigMap, "left-out"), matching(v1alpha1.Secret, "app=web"),
	}, targetList{workloadNamed(workload.DaemonSet, "proxy")}), "cache", "log")
	o := observe(t, cw, c)
	g.Expect(o.Subscriptions).To(HaveLen(2))
	for i, name := range []string{"cache", "log"} {
		s := o.Subscriptions[i]
		g.Expect(s.Subscriber.Name).To(Equal(name))
		var said []string
		for _, p := range s.Pairs {
			said = append(said, fmt.Sprint(p.Source, " ", p.State, " ", p.Keys, " ", p.Selected))
		}
		g.Expect(said).To(Equal([]string{
			"ConfigMap app-config Present [KEY] false", "ConfigMap missing Missing [] false", "Secret credentials Present [] true",
		}), "whether the target uses it or not")
	}
	pair := o.Subscriptions[0].Pairs[0]
	g.Expect([]string{pair.UID, pair.ResourceVersion}).To(Equal([]string{"b0c1", "42"}))
	g.Expect(pair.Hash).To(Equal(known.Content.Hash([]string{"KEY"})))
}

func TestF6ChangedKeysAreThoseSinceASubscriberWasTold(t *testing.T) {
	g := NewWithT(t)
	cw := subscribed(watching(sourceList{named(v1alpha1.ConfigMap, "app-config")}, nil), "knows", "knew", "new")
	present := observe(t, cw, shop()).Subscriptions[0].Pairs[0].Hash
	row := func(name, hash string) v1alpha1.SubscriberStatus {
		return v1alpha1.SubscriberStatus{Name: name, Sources: []v1alpha1.DeliveredSource{
			{Kind: v1alpha1.ConfigMap, Name: "app-config", DeliveredHash: hash},
		}}
	}
	cw.Status.Subscribers = []v1alpha1.SubscriberStatus{row("knows", string(present)), row("knew", "1:before")}
	c := shop()
	c.changedKeys = map[string][]string{"ConfigMap app-config [] from 1:before": {"a"}}
	changed := map[string][]string{}
	for _, s := range observe(t, cw, c).Subscriptions {
		if s.Pairs[0].KeysKnown {
			changed[s.Subscriber.Name] = s.Pairs[0].ChangedKeys
		}
	}
	g.Expect(changed).To(Equal(map[string][]string{"knew": {"a"}}))
}

func TestF6PairsOfSubscribersCountTwice(t *testing.T) {
	byLabel := sourceList{matching(v1alpha1.ConfigMap, "app=web")}
	for _, c := range []struct {
		sources, targets, subscribers int
		want                          string
	}{
		{1000, 1, 1, ""},
		{90, 1, 16, ""},
		{750, 0, 2, ""},
		{91, 1, 16, "1 targets and 16 subscribers depend on 91 sources in 3003 pairs (a pair of a subscriber counts as 2): " +
			"narrow them to at most 3000 pairs, by follow: Referenced or in several ConfigWatches"},
		{1000, 1, 16, "1 targets and 16 subscribers depend on 1000 sources in 33000 pairs (a pair of a subscriber counts as 2): " +
			"narrow them to at most 3000 pairs, by follow: Referenced or in several ConfigWatches"},
	} {
		t.Run(fmt.Sprint(c.sources, " sources and ", c.subscribers, " subscribers"), func(t *testing.T) {
			g := NewWithT(t)
			var names []string
			for i := range c.subscribers {
				names = append(names, fmt.Sprint("subscriber-", i))
			}
			cw := subscribed(watching(byLabel, targetList{workloadsMatching(workload.Deployment, "app=web")}), names...)
			o := observe(t, cw, many(c.sources, c.targets))
			g.Expect(o.Incomplete).To(Equal(c.want != ""))
			g.Expect(o.Subscriptions).To(HaveLen(c.subscribers), "what waits is told all the same")
			if c.want != "" {
				g.Expect(o.Problems).To(HaveExactElements(plan.Problem{Reason: v1alpha1.ReasonTooManyMatches, Message: c.want}))
			}
		})
	}
}

func TestF6AStatusThatMayBecomeTooLargeToBeStoredIsRefused(t *testing.T) {
	g := NewWithT(t)
	long := func(i int) string { return fmt.Sprintf("%s-%04d", strings.Repeat("x", 248), i) }
	byLabel := sourceList{matching(v1alpha1.ConfigMap, "app=web")}
	cw := subscribed(watching(byLabel, targetList{workloadsMatching(workload.Deployment, "app=web")}), "cache")
	c := &cluster{}
	for i := range 500 {
		c.sources = append(c.sources, aConfigMap(long(i), "app=web"))
	}
	for i := range 2 {
		c.workloads = append(c.workloads, aWorkload(workload.Deployment, long(i), "app=web", "ConfigMap "+long(0)))
	}
	o := observe(t, cw, c)
	g.Expect(o.Incomplete).To(BeFalse())
	g.Expect(o.Room).To(BeNumerically("~", 464_000, 20_000))
	roomBefore := o.Room

	cw.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("a", 200_000)}
	o = observe(t, cw, c)
	g.Expect(o.Room).To(BeNumerically("~", roomBefore-200_000, 1000), "what else is in the object counts")
	g.Expect(o.Incomplete).To(BeFalse())

	cw.Annotations["another"] = strings.Repeat("a", 200_000)
	o = observe(t, cw, c)
	g.Expect(o.Incomplete).To(BeTrue())
	g.Expect(o.Problems).To(HaveLen(1))
	g.Expect(o.Problems[0].Reason).To(Equal(v1alpha1.ReasonTooManyMatches))
	g.Expect(o.Problems[0].Message).To(MatchRegexp(`^2 targets and 1 subscribers depend on 500 sources in 2000 pairs \(a pair of a subscriber ` +
		`counts as 2\), and the status may come to be \d+ KB too large to be stored, as their names are long: make several ConfigWatches of it$`))
}

func TestE25WithSubscribersTargetsMayBeLeftOut(t *testing.T) {
	g := NewWithT(t)
	sources, targets := sourceList{named(v1alpha1.ConfigMap, "app-config")}, targetList{workloadNamed(workload.Deployment, "none")}
	g.Expect(observe(t, subscribed(watching(sources, nil), "cache"), shop()).OnlyTold).To(BeTrue())
	g.Expect(observe(t, subscribed(watching(sources, targets), "cache"), shop()).OnlyTold).To(BeFalse())
	g.Expect(observe(t, watching(sources, nil), shop()).OnlyTold).To(BeFalse())
}
