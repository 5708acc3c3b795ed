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
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one that the API server applies patches with
	appsv1 "k8s.io/api/apps/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

const mark = "restart.configwatch.ktechhub.io/web"

// deployment is one as the API server has it, with fields that no release of the API knows yet.
func deployment(uid string, annotations map[string]string) []byte {
	metadata := map[string]any{"labels": map[string]any{"app": "web"}, "futureField": "kept"}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "uid": uid, "resourceVersion": "7",
			"annotations": map[string]any{"other/annotation": "kept"},
		},
		"spec": map[string]any{
			"replicas": 3,
			"future":   map[string]any{"nested": []any{"kept", 1.5, nil}},
			"template": map[string]any{
				"metadata": metadata,
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "futureProbe": map[string]any{"x": true}}}},
			},
		},
		"status": map[string]any{"replicas": 3},
	})
	if err != nil {
		panic(err)
	}
	return data
}

// seen is what the cache makes of a Deployment.
func seen(t *testing.T, object []byte) *Workload {
	t.Helper()
	var d appsv1.Deployment
	NewWithT(t).Expect(json.Unmarshal(object, &d)).To(Succeed())
	return reduce(&d)
}

// patched is the object after a restart that was decided for what was seen.
func patched(t *testing.T, object, before []byte) ([]byte, error) {
	t.Helper()
	g := NewWithT(t)
	data, err := restartPatch(seen(t, before), "web", Mark{Number: 8, Digest: "0123456789abcdef"})
	g.Expect(err).NotTo(HaveOccurred())
	patch, err := jsonpatch.DecodePatch(data)
	g.Expect(err).NotTo(HaveOccurred())
	return patch.Apply(object)
}

func TestE8ARestartTouchesOneAnnotation(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"no annotations":                      nil,
		"others":                              {"prometheus.io/scrape": "true", "a/b~c": "kept"},
		"the mark of another ConfigWatch":     {"restart.configwatch.ktechhub.io/web-2": "3-aaaaaaaaaaaaaaaa"},
		"its own mark":                        {mark: "7-ffffffffffffffff", "prometheus.io/scrape": "true"},
		"a mark that no operator has written": {mark: `"quoted" <&> `},
		"an empty mark":                       {mark: ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := deployment("uid-1", annotations)
			after, err := patched(t, before, before)
			g.Expect(err).NotTo(HaveOccurred())

			expected := map[string]string{mark: "8-0123456789abcdef"}
			for key, value := range annotations {
				if key != mark {
					expected[key] = value
				}
			}
			g.Expect(after).To(MatchJSON(deployment("uid-1", expected)))
			g.Expect(seen(t, after).RestartMarks["web"]).To(Equal("8-0123456789abcdef"))
		})
	}
}

func TestE9ALateRestartChangesNothing(t *testing.T) {
	other := map[string]string{"prometheus.io/scrape": "true"}
	for name, tc := range map[string]struct{ decidedFor, found []byte }{
		"it is another workload of that name": {
			deployment("uid-1", nil), deployment("uid-2", nil),
		},
		"it is another workload of that name, marked alike": {
			deployment("uid-1", map[string]string{mark: "7-aaaaaaaaaaaaaaaa"}),
			deployment("uid-2", map[string]string{mark: "7-aaaaaaaaaaaaaaaa"}),
		},
		"the same restart was made before, without annotations": {
			deployment("uid-1", nil), deployment("uid-1", map[string]string{mark: "8-0123456789abcdef"}),
		},
		"the same restart was made before, beside others": {
			deployment("uid-1", other),
			deployment("uid-1", map[string]string{mark: "8-0123456789abcdef", "prometheus.io/scrape": "true"}),
		},
		"the same restart was made before, after another": {
			deployment("uid-1", map[string]string{mark: "7-aaaaaaaaaaaaaaaa"}),
			deployment("uid-1", map[string]string{mark: "8-0123456789abcdef"}),
		},
		"a later restart was made": {
			deployment("uid-1", map[string]string{mark: "7-aaaaaaaaaaaaaaaa"}),
			deployment("uid-1", map[string]string{mark: "9-bbbbbbbbbbbbbbbb"}),
		},
		"the template was replaced": {
			deployment("uid-1", map[string]string{mark: "7-aaaaaaaaaaaaaaaa"}), deployment("uid-1", other),
		},
		"the template lost all annotations": {
			deployment("uid-1", other), deployment("uid-1", nil),
		},
		"the template got its first annotation": {
			deployment("uid-1", nil), deployment("uid-1", other),
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := patched(t, tc.found, tc.decidedFor)
			NewWithT(t).Expect(err).To(HaveOccurred())
		})
	}
}

func TestE8ARetryIsTheSamePatch(t *testing.T) {
	g := NewWithT(t)
	w := seen(t, deployment("uid-1", map[string]string{mark: "7-aaaaaaaaaaaaaaaa"}))
	one, err := restartPatch(w, "web", Mark{Number: 8, Digest: "0123456789abcdef"})
	g.Expect(err).NotTo(HaveOccurred())
	again, err := restartPatch(w, "web", Mark{Number: 8, Digest: "0123456789abcdef"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(one))
}

func TestE10AMarkThatTheOperatorCanNotHaveWrittenIsNone(t *testing.T) {
	for value, want := range map[string]Mark{
		"1-9f86d081884c7d65":                    {Number: 1, Digest: "9f86d081884c7d65"},
		"120-9f86d081884c7d65":                  {Number: 120, Digest: "9f86d081884c7d65"},
		"":                                      {},
		"7":                                     {},
		"7-":                                    {},
		"-":                                     {},
		"-9f86d081884c7d65":                     {},
		"-7-9f86d081884c7d65":                   {},
		"+7-9f86d081884c7d65":                   {},
		"007-9f86d081884c7d65":                  {},
		"0-9f86d081884c7d65":                    {},
		" 7-9f86d081884c7d65":                   {},
		"7.0-9f86d081884c7d65":                  {},
		"0x7-9f86d081884c7d65":                  {},
		"seven-9f86d081884c7d65":                {},
		"9223372036854775807-9f86d081884c7d65":  {}, // the next number would be negative
		"99999999999999999999-9f86d081884c7d65": {},

		"7-9f86d081884c7d65-2026-01-02T15:04:05Z": {
			Number: 7, Digest: "9f86d081884c7d65", RequestedAt: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
		},
		"7-9f86d081884c7d65-":                          {},
		"7-9f86d081884c7d65-soon":                      {},
		"7-9f86d081884c7d65-2026-01-02T15:04:05+00:00": {},
		"7-9f86d081884c7d65-2026-01-02T15:04:05.5Z":    {},
		"7-9f86d081884c7d65-0001-01-01T00:00:00Z":      {},
		"7--2026-01-02T15:04:05Z":                      {},
	} {
		t.Run(value, func(t *testing.T) {
			NewWithT(t).Expect(ParseMark(value)).To(Equal(want))
		})
	}
}

// FuzzParseMark: what is read is what would be written, and leaves room for further restarts.
func FuzzParseMark(f *testing.F) {
	for _, value := range []string{
		"", "1-9f86d081884c7d65", "7-", "-7-a", "+7-a", "007-a", "0-a", "a-b", "2026-01-02", "9223372036854775807-a",
		strconv.FormatInt(math.MaxInt64-1, 10) + "-a", "9007199254740992-a", "1-\x00", "١-a",
		"1-a-2026-01-02T15:04:05Z", "1-a-b-2026-01-02T15:04:05Z", "1-a-9999-12-31T23:59:59Z", "1-a-2026-01-02T15:04:05+01:00",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		m := ParseMark(value)
		if m == (Mark{}) {
			return
		}
		if m.String() != value {
			t.Errorf("%q is read as %q", value, m)
		}
		if m.Number < 1 || m.Digest == "" || m.Number > math.MaxInt64-1_000_000 {
			t.Errorf("%q is read as %#v", value, m)
		}
	})
}

func TestMarksAreReadAsTheyAreWritten(t *testing.T) {
	g := NewWithT(t)
	m := Mark{Number: 42, Digest: "0123456789abcdef"}
	g.Expect(m.String()).To(Equal("42-0123456789abcdef"))
	g.Expect(ParseMark(m.String())).To(Equal(m))
	m.RequestedAt = time.Date(2026, 1, 2, 16, 4, 5, 0, time.FixedZone("", 3600))
	g.Expect(m.String()).To(Equal("42-0123456789abcdef-2026-01-02T15:04:05Z"))
	g.Expect(ParseMark(m.String()).RequestedAt.Equal(m.RequestedAt)).To(BeTrue())
	g.Expect(v1alpha1.RestartAnnotationPrefix + "web").To(Equal(mark))
}
