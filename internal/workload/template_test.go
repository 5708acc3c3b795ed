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

package workload

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ktechhub/configwatch/internal/version"
)

// withMaps is a pod template with many maps, whose order is another each time they are walked.
func withMaps() corev1.PodTemplateSpec {
	t := template()
	t.Labels, t.Spec.NodeSelector = map[string]string{}, map[string]string{}
	limits := corev1.ResourceList{}
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		t.Annotations["more/"+key], t.Labels[key], t.Spec.NodeSelector[key] = key, key, key
		limits[corev1.ResourceName("example.com/"+key)] = resource.MustParse("1")
	}
	t.Spec.Containers[0].Resources.Limits = limits
	return t
}

func TestE13TheHashOfATemplateIsTheSameEachTime(t *testing.T) {
	g := NewWithT(t)
	first := withMaps()
	want := templateOf(4, &first)
	g.Expect(want.Hash).To(MatchRegexp(`^` + version.Version + `:[0-9a-f]{16}$`))
	g.Expect(want.Generation).To(BeEquivalentTo(4))
	for range 100 {
		again := withMaps()
		g.Expect(templateOf(4, &again)).To(Equal(want))
	}
	before := withMaps()
	g.Expect(first).To(Equal(before), "what was hashed is as it was")
}

func TestE13TheHashOfATemplateTellsItFromOthers(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) string {
		d := rolledOut()
		d.Spec.Template = template()
		change(d)
		return reduce(d).Template.Hash
	}
	hashes := map[string]string{}
	for name, change := range map[string]func(*corev1.PodTemplateSpec){
		"as it is":                         func(*corev1.PodTemplateSpec) {},
		"another image":                    func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "web:2" },
		"an environment variable":          func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}} },
		"another reference":                func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].EnvFrom = nil },
		"a label":                          func(p *corev1.PodTemplateSpec) { p.Labels = map[string]string{"a": "b"} },
		"an annotation":                    func(p *corev1.PodTemplateSpec) { p.Annotations["more"] = "x" },
		"no annotations":                   func(p *corev1.PodTemplateSpec) { p.Annotations = nil },
		"kubectl rollout restart":          func(p *corev1.PodTemplateSpec) { p.Annotations["kubectl.kubernetes.io/restartedAt"] = "now" },
		"its mark":                         func(p *corev1.PodTemplateSpec) { p.Annotations[mark] = "3-aaaaaaaaaaaaaaaa" },
		"E26: the mark of another":         func(p *corev1.PodTemplateSpec) { p.Annotations[mark+"-2"] = "1-aaaaaaaaaaaaaaaa" },
		"E26: the mark of another is gone": func(p *corev1.PodTemplateSpec) { delete(p.Annotations, "restart.configwatch.ktechhub.io/other") },
	} {
		hash := deployment(func(d *appsv1.Deployment) { change(&d.Spec.Template) })
		NewWithT(t).Expect(hashes).NotTo(HaveKey(hash), name)
		hashes[hash] = name
	}
	for name, change := range map[string]func(*appsv1.Deployment){
		"scaled":                func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) },
		"paused":                func(d *appsv1.Deployment) { d.Spec.Paused = true },
		"another strategy":      func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType },
		"another generation":    func(d *appsv1.Deployment) { d.Generation++ },
		"labels and the status": func(d *appsv1.Deployment) { d.Labels, d.Status.Replicas = map[string]string{"a": "b"}, 9 },
		"an empty map for none": func(d *appsv1.Deployment) { d.Spec.Template.Labels = map[string]string{} },
		"the same in a new map": func(d *appsv1.Deployment) { d.Spec.Template.Annotations = maps.Clone(d.Spec.Template.Annotations) },
	} {
		NewWithT(t).Expect(hashes).To(HaveKeyWithValue(deployment(change), "as it is"), name)
	}
}

const (
	hashA = "v1.2.0:aaaaaaaaaaaaaaaa"
	hashB = "v1.2.0:bbbbbbbbbbbbbbbb"
)

// E13: that the pods are new anyway has to be certain. What can't be compared is not.
func TestE13ATemplateWasReplacedOnlyIfThatIsCertain(t *testing.T) {
	for name, tc := range map[string]struct {
		before, now Template
		replaced    bool
	}{
		"another one, later":              {Template{hashA, 4}, Template{hashB, 5}, true},
		"another one, much later":         {Template{hashA, 4}, Template{hashB, 90}, true},
		"the same":                        {Template{hashA, 4}, Template{hashA, 4}, false},
		"the same, of a later generation": {Template{hashA, 4}, Template{hashA, 5}, false}, // scaled, for example
		"another one that is older":       {Template{hashA, 4}, Template{hashB, 3}, false}, // a cache that lags behind
		"another one of the same time":    {Template{hashA, 4}, Template{hashB, 4}, false},
		"of another version":              {Template{hashA, 4}, Template{"v1.3.0:bbbbbbbbbbbbbbbb", 5}, false},
		"of a version with a colon":       {Template{"v1:2:aaaaaaaaaaaaaaaa", 4}, Template{"v1:2:bbbbbbbbbbbbbbbb", 5}, true},
		"of another one with a colon":     {Template{"v1:2:aaaaaaaaaaaaaaaa", 4}, Template{"v1:3:bbbbbbbbbbbbbbbb", 5}, false},
		"not known before":                {Template{}, Template{hashB, 5}, false},
		"not known now":                   {Template{hashA, 4}, Template{Generation: 5}, false},
		"not known at all":                {Template{Generation: 4}, Template{Generation: 5}, false},
		"something else before":           {Template{"aaaaaaaaaaaaaaaa", 4}, Template{"bbbbbbbbbbbbbbbb", 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.now.ReplacedSince(tc.before)).To(Equal(tc.replaced))
		})
	}
}

// E24: a restart and its reversal are two changes. One that hasn't arrived in the cache is none of both.
func TestE24ATemplateWasPutBackOnlyIfThatIsCertain(t *testing.T) {
	for name, tc := range map[string]struct {
		before, now Template
		putBack     bool
	}{
		"changed, and put back":                {Template{hashA, 4}, Template{hashA, 6}, true},
		"changed several times, and put back":  {Template{hashA, 4}, Template{hashA, 9}, true},
		"the change has not been seen":         {Template{hashA, 4}, Template{hashA, 4}, false},
		"something else has changed":           {Template{hashA, 4}, Template{hashA, 5}, false},
		"changed":                              {Template{hashA, 4}, Template{hashB, 5}, false},
		"changed, and changed again":           {Template{hashA, 4}, Template{hashB, 6}, false},
		"of before":                            {Template{hashA, 4}, Template{hashA, 2}, false},
		"the same digits, of another version":  {Template{hashA, 4}, Template{"v1.3.0:aaaaaaaaaaaaaaaa", 6}, false},
		"not known before":                     {Template{Generation: 4}, Template{hashA, 6}, false},
		"not known now":                        {Template{hashA, 4}, Template{Generation: 6}, false},
		"not known at all":                     {Template{Generation: 4}, Template{Generation: 6}, false},
		"the same, but of no version that was": {Template{"aaaaaaaaaaaaaaaa", 4}, Template{"aaaaaaaaaaaaaaaa", 6}, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.now.PutBack(tc.before)).To(Equal(tc.putBack))
		})
	}
}
