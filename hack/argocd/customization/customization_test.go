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

package customization

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

const root = "../../.."

// healthTests is the layout of health_test.yaml, as Argo CD's own tests read it.
type healthTests struct {
	Tests []struct {
		HealthStatus Health `json:"healthStatus"`
		InputPath    string `json:"inputPath"`
	} `json:"tests"`
}

// actionTests is that of action_test.yaml.
type actionTests struct {
	DiscoveryTests []struct {
		InputPath string `json:"inputPath"`
		Result    []struct {
			Name     string `json:"name"`
			Disabled bool   `json:"disabled"`
		} `json:"result"`
	} `json:"discoveryTests"`
	ActionTests []struct {
		Action             string `json:"action"`
		InputPath          string `json:"inputPath"`
		ExpectedOutputPath string `json:"expectedOutputPath"`
	} `json:"actionTests"`
}

func TestTheHealthOfEveryState(t *testing.T) {
	g := NewWithT(t)
	scripts := scripts(t)
	var tests healthTests
	read(t, "health_test.yaml", &tests)
	tested := map[string]bool{}
	for _, tc := range tests.Tests {
		tested[filepath.Base(tc.InputPath)] = true
		health, err := scripts.HealthOf(t.Context(), object(t, tc.InputPath))
		g.Expect(err).NotTo(HaveOccurred(), tc.InputPath)
		g.Expect(health).To(Equal(tc.HealthStatus), tc.InputPath)
	}
	g.Expect(slices.Collect(maps.Keys(tested))).To(ConsistOf(fixtures(t)), "each fixture is tested")
}

func TestHealthSaysWhatKstatusSays(t *testing.T) {
	same := map[string]status.Status{
		"Healthy": status.CurrentStatus, "Progressing": status.InProgressStatus, "Degraded": status.FailedStatus,
	}
	// Where they differ, and why.
	different := map[string]status.Status{
		"new.yaml":               status.CurrentStatus,    // kstatus takes what has no status for something that never has one
		"suspended.yaml":         status.CurrentStatus,    // it has no word for it
		"suspended-changed.yaml": status.InProgressStatus, // the same
	}
	scripts := scripts(t)
	for _, name := range fixtures(t) {
		g := NewWithT(t)
		o := object(t, filepath.Join("testdata", name))
		health, err := scripts.HealthOf(t.Context(), o)
		g.Expect(err).NotTo(HaveOccurred())
		want, ok := different[name]
		if !ok {
			want = same[health.Status]
		}
		result, err := status.Compute(o)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Status).To(Equal(want), "%s: %s", name, result.Message)
	}
}

func TestFixturesHaveEveryReasonOfAConditionButThese(t *testing.T) {
	without := []string{
		v1alpha1.ReasonTooManyMatches, // its status has a thousand rows
		v1alpha1.ReasonHalted,         // while the failed target is restarted again: a moment
		v1alpha1.ReasonSuspended,      // told by the mode
	}
	seen := map[string]bool{}
	for _, name := range fixtures(t) {
		conditions, _, err := unstructured.NestedSlice(object(t, filepath.Join("testdata", name)).Object, "status", "conditions")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, c := range conditions {
			reason, _ := c.(map[string]any)["reason"].(string)
			seen[reason] = true
		}
	}
	for _, reason := range []string{
		v1alpha1.ReasonUpToDate, v1alpha1.ReasonObserving, v1alpha1.ReasonPending, v1alpha1.ReasonRollingOut, v1alpha1.ReasonBlocked,
		v1alpha1.ReasonNoTargets, v1alpha1.ReasonNoSources, v1alpha1.ReasonTooManyMatches, v1alpha1.ReasonInvalidSelector,
		v1alpha1.ReasonInvalidWindow, v1alpha1.ReasonSubscriberRefuses, v1alpha1.ReasonInvalidAnnotation, v1alpha1.ReasonDryRun,
		v1alpha1.ReasonSuspended, v1alpha1.ReasonPermissionDenied, v1alpha1.ReasonRolloutFailed, v1alpha1.ReasonSettling,
		v1alpha1.ReasonCoolingDown, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonOutsideWindow, v1alpha1.ReasonAwaitingTurn,
		v1alpha1.ReasonHalted,
	} {
		if !slices.Contains(without, reason) {
			NewWithT(t).Expect(seen).To(HaveKey(reason))
		}
	}
}

func TestHealthOfWhatIsHalfWritten(t *testing.T) {
	for name, text := range map[string]string{
		"no status":     `{"metadata":{"generation":1},"spec":{}}`,
		"no conditions": `{"metadata":{"generation":1},"spec":{},"status":{"observedGeneration":1}}`,
		"no generation": `{"metadata":{"generation":1},"spec":{},"status":{"conditions":[{"type":"Ready","status":"True","message":"x"}]}}`,
		"no Ready":      `{"metadata":{"generation":1},"spec":{},"status":{"observedGeneration":1,"conditions":[]}}`,
	} {
		o := &unstructured.Unstructured{}
		NewWithT(t).Expect(json.Unmarshal([]byte(text), &o.Object)).To(Succeed())
		health, err := scripts(t).HealthOf(t.Context(), o)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), name)
		NewWithT(t).Expect(health.Status).To(Equal("Progressing"), name)
	}
}

func TestActionsAreOfferedWhereTheyDoSomething(t *testing.T) {
	g := NewWithT(t)
	var tests actionTests
	read(t, "actions/action_test.yaml", &tests)
	g.Expect(tests.DiscoveryTests).NotTo(BeEmpty())
	for _, tc := range tests.DiscoveryTests {
		disabled, err := scripts(t).Disabled(t.Context(), object(t, filepath.Join("actions", tc.InputPath)))
		g.Expect(err).NotTo(HaveOccurred())
		want := map[string]bool{}
		for _, action := range tc.Result {
			want[action.Name] = action.Disabled
		}
		g.Expect(disabled).To(Equal(want), tc.InputPath)
		g.Expect(slices.Collect(maps.Keys(want))).To(ConsistOf(Actions()))
	}
}

func TestAnActionChangesWhatItIsForAndNothingElse(t *testing.T) {
	for name, tc := range map[string]struct {
		action, fixture, want string
	}{
		"restart":   {"restart", "up-to-date.yaml", `{"metadata":{"annotations":{"configwatch.ktechhub.io/restart-requested-at":"NOW"}}}`},
		"again":     {"restart", "invalid-annotation.yaml", `{"metadata":{"annotations":{"configwatch.ktechhub.io/restart-requested-at":"NOW"}}}`},
		"suspended": {"restart", "suspended.yaml", `{"metadata":{"annotations":{"configwatch.ktechhub.io/restart-requested-at":"NOW"}}}`},
		"approve":   {"approve", "awaiting-approval.yaml", `{"metadata":{"annotations":{"configwatch.ktechhub.io/approve":"HASH"}}}`},
		"halted":    {"approve", "halted.yaml", `{"metadata":{"annotations":{"configwatch.ktechhub.io/approve":"HASH"}}}`},
		"suspend":   {"suspend", "up-to-date.yaml", `{"spec":{"mode":"Suspended"}}`},
		"resume":    {"resume", "suspended-changed.yaml", `{"spec":{"mode":"Active"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := object(t, filepath.Join("testdata", tc.fixture))
			began := time.Now().Truncate(time.Second)
			after, err := scripts(t).Run(t.Context(), tc.action, before)
			g.Expect(err).NotTo(HaveOccurred())
			requested := after.GetAnnotations()[v1alpha1.RestartRequestedAtAnnotation]
			want := strings.ReplaceAll(tc.want, "NOW", requested)
			if tc.action == "restart" {
				at, err := time.Parse(time.RFC3339, requested)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(at).To(BeTemporally(">=", began))
				g.Expect(at).To(BeTemporally("<=", time.Now()))
			}
			hash, _, err := unstructured.NestedString(before.Object, "status", "approvalHash")
			g.Expect(err).NotTo(HaveOccurred())
			if tc.action == "approve" {
				g.Expect(hash).NotTo(BeEmpty())
			}
			g.Expect(difference(t, before, after)).To(MatchJSON(strings.ReplaceAll(want, "HASH", hash)))
		})
	}
}

func TestAnActionSaysWhyItDoesNothing(t *testing.T) {
	for action, tc := range map[string]struct{ fixture, why string }{
		"restart": {"observing.yaml", "spec.mode is Observe: there are no targets to restart"},
		"approve": {"up-to-date.yaml", "nothing awaits approval: there is no status.approvalHash"},
		"suspend": {"dry-run.yaml", "spec.mode is DryRun: there is nothing to hold"},
		"resume":  {"dry-run.yaml", "spec.mode is DryRun, not Suspended"},
	} {
		_, err := scripts(t).Run(t.Context(), action, object(t, filepath.Join("testdata", tc.fixture)))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.why)))
	}
}

func TestTheExpectedOutputsAreWhatTheActionsMake(t *testing.T) {
	g := NewWithT(t)
	var tests actionTests
	read(t, "actions/action_test.yaml", &tests)
	tested := map[string]bool{}
	for _, tc := range tests.ActionTests {
		tested[tc.Action] = true
		after, err := scripts(t).Run(t.Context(), tc.Action, object(t, filepath.Join("actions", tc.InputPath)))
		g.Expect(err).NotTo(HaveOccurred())
		want := object(t, filepath.Join("actions", tc.ExpectedOutputPath))
		if tc.Action == "restart" { // the time is another
			annotations := after.GetAnnotations()
			annotations[v1alpha1.RestartRequestedAtAnnotation] = want.GetAnnotations()[v1alpha1.RestartRequestedAtAnnotation]
			after.SetAnnotations(annotations)
		}
		g.Expect(difference(t, want, after)).To(MatchJSON(`{}`), tc.ExpectedOutputPath)
	}
	g.Expect(slices.Collect(maps.Keys(tested))).To(ConsistOf(Actions()))
}

func TestEmptyObjectsStayObjects(t *testing.T) {
	o := &unstructured.Unstructured{}
	NewWithT(t).Expect(json.Unmarshal([]byte(`{"metadata":{"labels":{}},"spec":{"targets":[{"kind":"Deployment","selector":{}}]}}`),
		&o.Object)).To(Succeed())
	after, err := scripts(t).Run(t.Context(), "suspend", o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(difference(t, o, after)).To(MatchJSON(`{"spec":{"mode":"Suspended"}}`))
}

func TestAScriptHasNoMoreThanArgoCDGivesIt(t *testing.T) {
	for _, script := range []string{`return {status = os.getenv("HOME")}`, `return {status = io.open("/etc/passwd")}`, `return {status = string.upper("a")}`} {
		_, err := Scripts{Health: script}.HealthOf(t.Context(), &unstructured.Unstructured{Object: map[string]any{}})
		NewWithT(t).Expect(err).To(HaveOccurred(), script)
	}
}

func scripts(t *testing.T) Scripts {
	t.Helper()
	s, err := Read(root)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s
}

// fixtures are the names of the files that have the states of a ConfigWatch.
func fixtures(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, Folder, "testdata"))
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	g.Expect(names).NotTo(BeEmpty())
	return names
}

func object(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, Folder, file))
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	encoded, err := yaml.YAMLToJSON(text)
	g.Expect(err).NotTo(HaveOccurred())
	o := &unstructured.Unstructured{}
	g.Expect(o.UnmarshalJSON(encoded)).To(Succeed())
	return o
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, Folder, file))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(yaml.Unmarshal(text, into)).To(Succeed(), file)
}

// difference is the merge patch that leads from one object to another: what Argo CD sends.
func difference(t *testing.T, before, after *unstructured.Unstructured) string {
	t.Helper()
	g := NewWithT(t)
	from, err := json.Marshal(before.Object)
	g.Expect(err).NotTo(HaveOccurred())
	to, err := json.Marshal(after.Object)
	g.Expect(err).NotTo(HaveOccurred())
	patch, err := jsonpatch.CreateMergePatch(from, to)
	g.Expect(err).NotTo(HaveOccurred())
	return string(patch)
}
