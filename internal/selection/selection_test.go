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
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

type (
	sourceList = []v1alpha1.SourceSelector
	targetList = []v1alpha1.TargetSelector
)

// shop is a namespace with some of everything.
func shop() *cluster {
	elsewhere := aConfigMap("app-config", "app=web")
	elsewhere.Namespace = "elsewhere"
	return &cluster{
		sources: []*source.Source{
			elsewhere,
			aConfigMap("features", "app=web"), aConfigMap("app-config", "app=web"), aConfigMap("other", "app=db"),
			aSecret("credentials", "app=web"), aSecret("app-config", "app=db"),
		},
		workloads: []*workload.Workload{
			aWorkload(workload.StatefulSet, "db", "app=db", "ConfigMap other", "Secret credentials"),
			aWorkload(workload.Deployment, "worker", "app=web", "ConfigMap app-config"),
			aWorkload(workload.Deployment, "web", "app=web", "ConfigMap app-config", "ConfigMap features", "Secret credentials"),
			aWorkload(workload.CronJob, "backup", "app=db", "Secret credentials"),
			aWorkload(workload.DaemonSet, "proxy", "app=web"),
		},
	}
}

func TestWhatAConfigWatchSelects(t *testing.T) {
	for name, tc := range map[string]struct {
		sources sourceList
		targets targetList
		want    []string
	}{
		"a source and a target by name": {
			sourceList{named(v1alpha1.ConfigMap, "features")}, targetList{workloadNamed(workload.Deployment, "worker")},
			[]string{"ConfigMap features Present", "Deployment worker on ConfigMap features"},
		},
		"one of another kind and the same name": {
			sourceList{named(v1alpha1.Secret, "app-config")}, targetList{workloadNamed(workload.Deployment, "worker")},
			[]string{"Secret app-config Present", "Deployment worker on Secret app-config"},
		},
		"sources by labels, sorted by name": {
			sourceList{matching(v1alpha1.ConfigMap, "app=web")}, targetList{workloadNamed(workload.DaemonSet, "proxy")},
			[]string{"ConfigMap app-config Present", "ConfigMap features Present", "DaemonSet proxy on ConfigMap app-config, ConfigMap features"},
		},
		"targets by labels, sorted by name": {
			sourceList{named(v1alpha1.ConfigMap, "other")}, targetList{workloadsMatching(workload.Deployment, "app=web")},
			[]string{"ConfigMap other Present", "Deployment web on ConfigMap other", "Deployment worker on ConfigMap other"},
		},
		"in the order of the spec": {
			sourceList{named(v1alpha1.Secret, "credentials"), named(v1alpha1.ConfigMap, "app-config")},
			targetList{workloadNamed(workload.StatefulSet, "db"), workloadNamed(workload.Deployment, "worker")},
			[]string{
				"Secret credentials Present", "ConfigMap app-config Present",
				"StatefulSet db on Secret credentials, ConfigMap app-config", "Deployment worker on Secret credentials, ConfigMap app-config",
			},
		},
		"sources omitted: what each target references": {
			nil, targetList{workloadNamed(workload.Deployment, "web"), workloadNamed(workload.StatefulSet, "db")},
			[]string{
				"ConfigMap app-config Present", "ConfigMap features Present", "Secret credentials Present", "ConfigMap other Present",
				"Deployment web on ConfigMap app-config, ConfigMap features, Secret credentials",
				"StatefulSet db on Secret credentials, ConfigMap other",
			},
		},
		"targets omitted: whatever references a source, by kind and name": {
			sourceList{named(v1alpha1.Secret, "credentials"), named(v1alpha1.ConfigMap, "app-config")}, nil,
			[]string{
				"Secret credentials Present", "ConfigMap app-config Present",
				"Deployment web on Secret credentials, ConfigMap app-config", "Deployment worker on ConfigMap app-config",
				"StatefulSet db on Secret credentials", "CronJob backup on Secret credentials",
			},
		},
		"follow Referenced": {
			sourceList{named(v1alpha1.ConfigMap, "other"), named(v1alpha1.ConfigMap, "app-config")},
			targetList{{Kind: workload.Deployment, Name: "web", Follow: v1alpha1.FollowReferenced}},
			[]string{"ConfigMap other Present", "ConfigMap app-config Present", "Deployment web on ConfigMap app-config"},
		},
		"follow Declared": {
			sourceList{named(v1alpha1.ConfigMap, "other")},
			targetList{{Kind: workload.Deployment, Name: "web", Follow: v1alpha1.FollowDeclared}},
			[]string{"ConfigMap other Present", "Deployment web on ConfigMap other"},
		},
		"the first entry governs a target": {
			sourceList{named(v1alpha1.ConfigMap, "other")},
			targetList{
				{Kind: workload.Deployment, Name: "web", Follow: v1alpha1.FollowReferenced},
				workloadsMatching(workload.Deployment, "app=web"),
			},
			[]string{"ConfigMap other Present", "Deployment web on", "Deployment worker on ConfigMap other"},
		},
		"nothing matches": {
			sourceList{matching(v1alpha1.ConfigMap, "app=none")}, targetList{workloadsMatching(workload.Deployment, "app=none")},
			nil,
		},
		"E25 a source that is missing": {
			sourceList{named(v1alpha1.ConfigMap, "gone")}, targetList{workloadNamed(workload.Deployment, "web")},
			[]string{"ConfigMap gone Missing", "Deployment web on ConfigMap gone"},
		},
		"E25 a target that is missing": {
			sourceList{named(v1alpha1.ConfigMap, "other")}, targetList{workloadNamed(workload.StatefulSet, "web")},
			[]string{"ConfigMap other Present", "StatefulSet web Missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := observe(t, watching(tc.sources, tc.targets), shop())
			g.Expect(summary(o)).To(HaveExactElements(tc.want))
			g.Expect(o.Problems).To(BeEmpty())
			g.Expect(o.Incomplete).To(BeFalse())
		})
	}
}

func TestAReferenceToWhatIsMissingIsASource(t *testing.T) {
	c := &cluster{workloads: []*workload.Workload{aWorkload(workload.Deployment, "web", "", "ConfigMap optional")}}
	o := observe(t, watching(nil, targetList{workloadNamed(workload.Deployment, "web")}), c)
	NewWithT(t).Expect(summary(o)).To(HaveExactElements("ConfigMap optional Missing", "Deployment web on ConfigMap optional"))
}

func TestTheFirstEntryGovernsASource(t *testing.T) {
	g := NewWithT(t)
	o := observe(t, watching(sourceList{
		{Kind: v1alpha1.ConfigMap, Name: "features", Keys: []string{"b"}, RestartOn: []v1alpha1.Change{v1alpha1.Deleted}},
		{Kind: v1alpha1.ConfigMap, Selector: selector("app=web"), Keys: []string{"a"}},
		named(v1alpha1.ConfigMap, "app-config"),
	}, targetList{workloadNamed(workload.Deployment, "web")}), shop())

	whole := content("1")
	g.Expect(o.Targets[0].Pairs).To(HaveExactElements(
		plan.Pair{
			Source: ref("ConfigMap features"), State: v1alpha1.SourcePresent, Hash: whole.Hash([]string{"b"}), Keys: []string{"b"},
			RestartOn: []v1alpha1.Change{v1alpha1.Deleted},
		},
		plan.Pair{
			Source: ref("ConfigMap app-config"), State: v1alpha1.SourcePresent, Hash: whole.Hash([]string{"a"}), Keys: []string{"a"},
			RestartOn: []v1alpha1.Change{v1alpha1.Modified}, Selected: true,
		}))
	g.Expect(o.Sources).To(HaveEach(HaveField("Hash", whole.Hash(nil))), "that of a source is of all of its keys")
}

func TestE27ChangedKeysAreLookedUpByTheRecordedHash(t *testing.T) {
	g := NewWithT(t)
	keys := []string{"a"}
	recorded := content("0").Hash(keys)
	c := shop()
	c.changedKeys = map[string][]string{fmt.Sprintf("ConfigMap features %v from %s", keys, recorded): {"a"}}
	cw := watching(sourceList{{Kind: v1alpha1.ConfigMap, Name: "features", Keys: keys}},
		targetList{workloadNamed(workload.Deployment, "web"), workloadNamed(workload.Deployment, "worker")})
	cw.Status.Targets = []v1alpha1.TargetStatus{{
		APIVersion: "apps/v1", Kind: workload.Deployment, Name: "web",
		Sources: []v1alpha1.AppliedSource{{Kind: v1alpha1.ConfigMap, Name: "features", AppliedHash: string(recorded)}},
	}}
	o := observe(t, cw, c)
	g.Expect(o.Targets[0].Pairs[0].ChangedKeys).To(Equal(keys))
	g.Expect(o.Targets[0].Pairs[0].KeysKnown).To(BeTrue())
	g.Expect(o.Targets[1].Pairs[0].KeysKnown).To(BeFalse(), "another target has a record of its own")
}

func TestWhatIsIgnoredIsLeftOut(t *testing.T) {
	ignoredWorkload := func() *workload.Workload {
		w := aWorkload(workload.Deployment, "web", "app=web", "ConfigMap a")
		w.Ignored = true
		return w
	}
	for name, tc := range map[string]struct {
		sources sourceList
		targets targetList
		cluster cluster
		want    []string
	}{
		"a source by name": {
			sourceList{named(v1alpha1.ConfigMap, "a"), named(v1alpha1.ConfigMap, "b")}, targetList{workloadNamed(workload.Deployment, "web")},
			cluster{
				sources:   []*source.Source{ignored(aConfigMap("a")), aConfigMap("b")},
				workloads: []*workload.Workload{aWorkload(workload.Deployment, "web", "")},
			},
			[]string{"ConfigMap a Ignored", "ConfigMap b Present", "Deployment web on ConfigMap b"},
		},
		"a source by labels": {
			sourceList{matching(v1alpha1.ConfigMap, "app=web")}, targetList{workloadNamed(workload.Deployment, "web")},
			cluster{
				sources:   []*source.Source{ignored(aConfigMap("a", "app=web")), aConfigMap("b", "app=web")},
				workloads: []*workload.Workload{aWorkload(workload.Deployment, "web", "")},
			},
			[]string{"ConfigMap b Present", "Deployment web on ConfigMap b"},
		},
		"a source that a target references": {
			nil, targetList{workloadNamed(workload.Deployment, "web")},
			cluster{
				sources:   []*source.Source{ignored(aConfigMap("a"))},
				workloads: []*workload.Workload{aWorkload(workload.Deployment, "web", "", "ConfigMap a")},
			},
			[]string{"ConfigMap a Ignored", "Deployment web on"},
		},
		"what uses a source that is ignored": {
			sourceList{named(v1alpha1.ConfigMap, "a")}, nil,
			cluster{
				sources:   []*source.Source{ignored(aConfigMap("a"))},
				workloads: []*workload.Workload{aWorkload(workload.Deployment, "web", "", "ConfigMap a")},
			},
			[]string{"ConfigMap a Ignored"},
		},
		"a target by name": {
			sourceList{named(v1alpha1.ConfigMap, "a")}, targetList{workloadNamed(workload.Deployment, "web")},
			cluster{sources: []*source.Source{aConfigMap("a")}, workloads: []*workload.Workload{ignoredWorkload()}},
			[]string{"ConfigMap a Present", "Deployment web Ignored"},
		},
		"a target by labels": {
			sourceList{named(v1alpha1.ConfigMap, "a")}, targetList{workloadsMatching(workload.Deployment, "app=web")},
			cluster{sources: []*source.Source{aConfigMap("a")}, workloads: []*workload.Workload{ignoredWorkload()}},
			[]string{"ConfigMap a Present"},
		},
		"a target that uses a source": {
			sourceList{named(v1alpha1.ConfigMap, "a")}, nil,
			cluster{sources: []*source.Source{aConfigMap("a")}, workloads: []*workload.Workload{ignoredWorkload()}},
			[]string{"ConfigMap a Present"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, watching(tc.sources, tc.targets), &tc.cluster)
			NewWithT(t).Expect(summary(o)).To(HaveExactElements(tc.want))
		})
	}
}

func TestE25TheNearestNameIsSuggested(t *testing.T) {
	g := NewWithT(t)
	o := observe(t, watching(
		sourceList{
			named(v1alpha1.ConfigMap, "ap-config"), named(v1alpha1.ConfigMap, "credentials"), named(v1alpha1.ConfigMap, "features"),
		},
		targetList{workloadNamed(workload.Deployment, "wroker"), workloadNamed(workload.StatefulSet, "worker")}), shop())
	g.Expect(o.Sources[0].Hint).To(Equal("did you mean app-config?"))
	g.Expect(o.Sources[1].Hint).To(BeEmpty(), "a Secret is no ConfigMap")
	g.Expect(o.Sources[2].Hint).To(BeEmpty(), "it is there")
	g.Expect(o.Targets[0].Hint).To(Equal("did you mean worker?"))
	g.Expect(o.Targets[1].Hint).To(BeEmpty(), "a Deployment is no StatefulSet")
}

func TestE25OnlyNamesThatAreNearAreSuggested(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		there []string
		want  string
	}{
		"one letter":                     {"app-confg", []string{"app-config"}, "app-config"},
		"two letters":                    {"web", []string{"weber"}, "weber"},
		"three of three letters":         {"web", []string{"xyz"}, ""},
		"a third of a long name":         {"application-config", []string{"app-config"}, ""},
		"less than that":                 {"application-config", []string{"application-configmap"}, "application-configmap"},
		"the nearest of several":         {"app-config", []string{"app-cfg", "app-config2", "ap-confi"}, "app-config2"},
		"of two as near the first":       {"web", []string{"wed", "wab"}, "wab"},
		"nothing is there":               {"web", nil, ""},
		"names as long as they may be":   {"web", []string{string(make([]byte, 253))}, ""},
		"a name that is all but another": {"web", []string{"w"}, "w"},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			if tc.want != "" {
				want = "did you mean " + tc.want + "?"
			}
			NewWithT(t).Expect(didYouMean(tc.given, tc.there)).To(Equal(want))
		})
	}
}

func TestE11AKindThatMayNotBeReadIsAProblemAndItsRecordsStay(t *testing.T) {
	recorded := v1alpha1.ConfigWatchStatus{
		Sources: []v1alpha1.SourceStatus{
			{Kind: v1alpha1.Secret, Name: "credentials", State: v1alpha1.SourcePresent},
			{Kind: v1alpha1.ConfigMap, Name: "features", State: v1alpha1.SourcePresent},
		},
		Targets: []v1alpha1.TargetStatus{{Kind: workload.StatefulSet, Name: "db"}, {Kind: workload.Deployment, Name: "web"}},
	}
	for name, tc := range map[string]struct {
		sources sourceList
		targets targetList
		denied  string
		want    []string
	}{
		"sources by name": {
			sourceList{named(v1alpha1.Secret, "credentials"), named(v1alpha1.ConfigMap, "features")},
			targetList{workloadNamed(workload.Deployment, "web")}, "Secret",
			[]string{
				"Secret credentials Unreadable", "ConfigMap features Present",
				"Deployment web on Secret credentials, ConfigMap features",
			},
		},
		"sources by labels": {
			sourceList{matching(v1alpha1.Secret, "app=web"), matching(v1alpha1.ConfigMap, "app=db")},
			targetList{workloadNamed(workload.Deployment, "web")}, "Secret",
			[]string{
				"Secret credentials Unreadable", "ConfigMap other Present",
				"Deployment web on Secret credentials, ConfigMap other",
			},
		},
		"sources that a target references": {
			nil, targetList{workloadNamed(workload.StatefulSet, "db")}, "Secret",
			[]string{"ConfigMap other Present", "Secret credentials Unreadable", "StatefulSet db on ConfigMap other, Secret credentials"},
		},
		"targets by name": {
			sourceList{named(v1alpha1.ConfigMap, "features")},
			targetList{workloadNamed(workload.StatefulSet, "db"), workloadNamed(workload.Deployment, "web")}, workload.StatefulSet,
			[]string{"ConfigMap features Present", "StatefulSet db Unreadable", "Deployment web on ConfigMap features"},
		},
		"targets by labels": {
			sourceList{named(v1alpha1.ConfigMap, "features")},
			targetList{workloadsMatching(workload.StatefulSet, "app=x"), workloadNamed(workload.Deployment, "web")}, workload.StatefulSet,
			[]string{"ConfigMap features Present", "StatefulSet db Unreadable", "Deployment web on ConfigMap features"},
		},
		"targets that reference a source": {
			sourceList{named(v1alpha1.ConfigMap, "features")}, nil, workload.StatefulSet,
			[]string{"ConfigMap features Present", "StatefulSet db Unreadable", "Deployment web on ConfigMap features"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := shop()
			c.unreadable = map[string]error{tc.denied: forbidden("things")}
			cw := watching(tc.sources, tc.targets)
			cw.Status = recorded
			o := observe(t, cw, c)
			g.Expect(summary(o)).To(HaveExactElements(tc.want))
			g.Expect(o.Incomplete).To(BeFalse(), "the others go on")
			g.Expect(o.Problems).To(HaveExactElements(And(
				HaveField("Reason", "PermissionDenied"),
				HaveField("Message", And(HavePrefix("the operator may not read every "+tc.denied), ContainSubstring("needs list and watch"))))))
		})
	}
}

func TestWhatIsNotNeededMayBeUnreadable(t *testing.T) {
	g := NewWithT(t)
	c := shop()
	c.unreadable = map[string]error{"Secret": forbidden("secrets"), workload.CronJob: informer.ErrNotSynced}
	o := observe(t, watching(sourceList{named(v1alpha1.ConfigMap, "features")}, targetList{workloadNamed(workload.Deployment, "web")}), c)
	g.Expect(o.Problems).To(BeEmpty())
	g.Expect(summary(o)).To(HaveExactElements("ConfigMap features Present", "Deployment web on ConfigMap features"))
}

func TestE7NothingIsSaidBeforeEverythingIsRead(t *testing.T) {
	for name, tc := range map[string]struct {
		kind string
		err  error
	}{
		"ConfigMaps are not read yet":         {"ConfigMap", informer.ErrNotSynced},
		"CronJobs are not read yet":           {workload.CronJob, informer.ErrNotSynced},
		"the API server can't be reached":     {"Secret", errors.New("connection refused")},
		"it can't be reached for Deployments": {workload.Deployment, errors.New("connection refused")},
	} {
		for omitted, cw := range map[string]*v1alpha1.ConfigWatch{
			"all listed": watching(sourceList{named(v1alpha1.Secret, "a"), named(v1alpha1.ConfigMap, "a")},
				targetList{workloadNamed(workload.CronJob, "a"), workloadNamed(workload.Deployment, "a")}),
			"targets omitted": watching(sourceList{named(v1alpha1.Secret, "a"), named(v1alpha1.ConfigMap, "a")}, nil),
			"sources omitted": watching(nil, targetList{workloadNamed(workload.CronJob, "a"), workloadNamed(workload.Deployment, "a")}),
		} {
			t.Run(name+", "+omitted, func(t *testing.T) {
				c := shop()
				c.unreadable = map[string]error{tc.kind: tc.err}
				o, err := Observe(cw, sourceCache{c}, workloadCache{c}, now)
				NewWithT(t).Expect(err).To(MatchError(tc.err))
				NewWithT(t).Expect(o).To(Equal(plan.Observation{}))
			})
		}
	}
}

// someHash is that of a source that has existed.
const someHash = "1:0123456789abcdef"

// many makes so many sources and Deployments, each of them labelled app=web.
func many(sources, deployments int) *cluster {
	c := &cluster{}
	for i := range sources {
		c.sources = append(c.sources, aConfigMap(fmt.Sprintf("config-%04d", i), "app=web"))
	}
	for i := range deployments {
		c.workloads = append(c.workloads, aWorkload(workload.Deployment, fmt.Sprintf("web-%04d", i), "app=web", "ConfigMap config-0000"))
	}
	return c
}

func TestWhatCanNotBeSelectedLeavesEverythingAsItIs(t *testing.T) {
	byLabel := sourceList{matching(v1alpha1.ConfigMap, "app=web")}
	deployments := targetList{workloadsMatching(workload.Deployment, "app=web")}
	oneSource := sourceList{named(v1alpha1.ConfigMap, "config-0000")}
	for name, tc := range map[string]struct {
		sources         sourceList
		targets         targetList
		cluster         *cluster
		reason, message string
	}{
		"an invalid selector of sources": {
			sourceList{{Kind: v1alpha1.ConfigMap, Selector: invalidSelector()}}, deployments, many(1, 1),
			"InvalidSelector", `spec.sources[0].selector can't be used: "Like" is not a valid label selector operator`,
		},
		"an invalid selector of targets": {
			oneSource, targetList{workloadNamed(workload.Deployment, "web-0000"), {Kind: workload.Deployment, Selector: invalidSelector()}},
			many(1, 1), "InvalidSelector", `spec.targets[1].selector can't be used: "Like" is not a valid label selector operator`,
		},
		"1,001 sources": {
			byLabel, targetList{workloadNamed(workload.Deployment, "web-0000")}, many(1001, 1),
			"TooManyMatches", "spec.sources[0].selector matches 1001 ConfigMaps: narrow it to at most 1000",
		},
		"1,001 targets": {
			oneSource, deployments, many(1, 1001),
			"TooManyMatches", "spec.targets[0].selector matches 1001 Deployments: narrow it to at most 1000",
		},
		"1,001 targets that reference a source": {
			oneSource, nil, many(1, 1001),
			"TooManyMatches", "there are 1001 targets: narrow spec.targets or spec.sources to at most 1000",
		},
		"1,001 sources of several entries": {
			append(sourceList{named(v1alpha1.ConfigMap, "one-more")}, byLabel...), targetList{workloadNamed(workload.Deployment, "web-0000")},
			many(1000, 1), "TooManyMatches", "there are 1001 sources: narrow spec.sources to at most 1000",
		},
		"3,030 pairs": {
			byLabel, deployments, many(101, 30), "TooManyMatches",
			"30 targets depend on 101 sources in 3030 pairs: narrow them to at most 3000 pairs, by follow: Referenced or in several ConfigWatches",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := observe(t, watching(tc.sources, tc.targets), tc.cluster)
			g.Expect(o.Incomplete).To(BeTrue())
			g.Expect(o.Problems).To(HaveExactElements(plan.Problem{Reason: tc.reason, Message: tc.message}))
		})
	}
}

func TestTheLimitsThemselvesAreAllowed(t *testing.T) {
	byLabel := sourceList{matching(v1alpha1.ConfigMap, "app=web")}
	for name, o := range map[string]plan.Observation{
		"1,000 sources": observe(t, watching(byLabel, targetList{workloadNamed(workload.Deployment, "web-0000")}), many(1000, 1)),
		"1,000 targets": observe(t, watching(sourceList{named(v1alpha1.ConfigMap, "config-0000")},
			targetList{workloadsMatching(workload.Deployment, "app=web")}), many(1, 1000)),
		"3,000 pairs": observe(t, watching(byLabel, targetList{workloadsMatching(workload.Deployment, "app=web")}), many(100, 30)),
	} {
		g := NewWithT(t)
		g.Expect(o.Incomplete).To(BeFalse(), name)
		g.Expect(o.Problems).To(BeEmpty(), name)
	}
}

func TestE6ASelectedSourceIsRememberedForAnHourAfterItsDeletion(t *testing.T) {
	minutesAgo := func(n int) *metav1.Time {
		at := metav1.NewTime(now.Add(-time.Duration(n) * time.Minute))
		return &at
	}
	bySelector := sourceList{matching(v1alpha1.ConfigMap, "app=web")}
	for name, tc := range map[string]struct {
		sources  sourceList
		recorded v1alpha1.SourceStatus
		cluster  *cluster
		want     []string
		forgetAt time.Time
	}{
		"deleted just now": {
			bySelector,
			v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "a", State: v1alpha1.SourcePresent, Hash: someHash, LastChangeTime: minutesAgo(600)},
			&cluster{}, []string{"ConfigMap a Missing"}, now.Add(time.Hour),
		},
		"deleted a while ago": {
			bySelector,
			v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "a", State: v1alpha1.SourceMissing, Hash: someHash, LastChangeTime: minutesAgo(59)},
			&cluster{}, []string{"ConfigMap a Missing"}, now.Add(time.Minute),
		},
		"deleted an hour ago": {
			bySelector,
			v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "a", State: v1alpha1.SourceMissing, Hash: someHash, LastChangeTime: minutesAgo(60)},
			&cluster{}, nil, time.Time{},
		},
		"named before, and never there": {
			bySelector,
			v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "a", State: v1alpha1.SourceMissing},
			&cluster{}, nil, time.Time{},
		},
		"back again": {
			bySelector,
			v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "a", State: v1alpha1.SourceMissing, Hash: someHash, LastChangeTime: minutesAgo(5)},
			&cluster{sources: []*source.Source{aConfigMap("a", "app=web")}}, []string{"ConfigMap a Present"}, time.Time{},
		},
		"back again in the middle of a pass": {
			bySelector,
			v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "a", State: v1alpha1.SourcePresent, Hash: someHash},
			&cluster{late: []*source.Source{aConfigMap("a", "app=web")}}, []string{"ConfigMap a Present"}, time.Time{},
		},
		"back again in the middle of a pass, and no longer selected": {
			bySelector,
			v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "a", State: v1alpha1.SourcePresent, Hash: someHash},
			&cluster{late: []*source.Source{aConfigMap("a", "app=db")}}, nil, time.Time{},
		},
		"back again in the middle of a pass, to be ignored": {
			bySelector,
			v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "a", State: v1alpha1.SourcePresent, Hash: someHash},
			&cluster{late: []*source.Source{ignored(aConfigMap("a", "app=web"))}}, nil, time.Time{},
		},
		"there, and no longer selected": {
			bySelector,
			v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "a", State: v1alpha1.SourcePresent, Hash: someHash},
			&cluster{sources: []*source.Source{aConfigMap("a", "app=db")}}, nil, time.Time{},
		},
		"of a kind that no selector selects": {
			bySelector,
			v1alpha1.SourceStatus{Kind: v1alpha1.Secret, Name: "a", State: v1alpha1.SourcePresent, Hash: someHash},
			&cluster{}, nil, time.Time{},
		},
		"listed by name": {
			append(sourceList{named(v1alpha1.ConfigMap, "a")}, bySelector...),
			v1alpha1.SourceStatus{Kind: v1alpha1.ConfigMap, Name: "a", State: v1alpha1.SourceMissing, Hash: someHash, LastChangeTime: minutesAgo(600)},
			&cluster{}, []string{"ConfigMap a Missing"}, time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cw := watching(tc.sources, targetList{workloadsMatching(workload.Deployment, "app=web")})
			cw.Status.Sources = []v1alpha1.SourceStatus{tc.recorded}
			o := observe(t, cw, tc.cluster)
			g.Expect(summary(o)).To(HaveExactElements(tc.want))
			for _, s := range o.Sources {
				g.Expect(s.ForgetAt).To(Equal(tc.forgetAt))
			}
		})
	}
}

// A new set of sources in the place of an old one is no more than the new set.
func TestE6DeletedSourcesAreForgottenSoonerWhereAllTogetherAreTooMany(t *testing.T) {
	byLabel := sourceList{matching(v1alpha1.ConfigMap, "app=web")}
	deployments := targetList{workloadsMatching(workload.Deployment, "app=web")}
	for name, tc := range map[string]struct {
		cluster *cluster
		deleted int
		kept    bool
	}{
		"1,000 sources":              {many(600, 1), 400, true},
		"1,001 sources":              {many(600, 1), 401, false},
		"3,000 pairs":                {many(60, 30), 40, true},
		"3,030 pairs":                {many(60, 30), 41, false},
		"1,000 and all others again": {many(1000, 1), 1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cw := watching(byLabel, deployments)
			for i := range tc.deleted {
				cw.Status.Sources = append(cw.Status.Sources, v1alpha1.SourceStatus{
					Kind: v1alpha1.ConfigMap, Name: fmt.Sprintf("deleted-%04d", i), State: v1alpha1.SourcePresent,
					Hash: someHash,
				})
			}
			want := len(tc.cluster.sources)
			if tc.kept {
				want += tc.deleted
			}
			o := observe(t, cw, tc.cluster)
			g.Expect(o.Incomplete).To(BeFalse())
			g.Expect(o.Problems).To(BeEmpty())
			g.Expect(o.Sources).To(HaveLen(want))
			for _, target := range o.Targets {
				g.Expect(target.Pairs).To(HaveLen(want))
			}
		})
	}
}

func TestTheSameIsObservedWhateverTheOrderOfTheCaches(t *testing.T) {
	g := NewWithT(t)
	specs := map[string]*v1alpha1.ConfigWatch{
		"sources":  watching(sourceList{matching(v1alpha1.ConfigMap, "app=web"), named(v1alpha1.Secret, "credentials")}, nil),
		"targets":  watching(nil, targetList{workloadsMatching(workload.Deployment, "app=web")}),
		"nearness": watching(sourceList{named(v1alpha1.ConfigMap, "app-confx")}, targetList{workloadNamed(workload.Deployment, "wex")}),
	}
	for name, cw := range specs {
		want := observe(t, cw, shop())
		for range 20 {
			c := shop()
			shuffle(c.sources)
			shuffle(c.workloads)
			g.Expect(observe(t, cw, c)).To(Equal(want), name)
		}
	}
}
