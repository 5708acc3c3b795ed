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

package schema

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

var _ = DescribeTable("A spec is taken when it has",
	func(ctx SpecContext, spec string) {
		Expect(create(ctx, withSpec("good", spec))).To(Succeed())
	},

	Entry("a target alone", `
targets:
- {kind: Deployment, name: web}`),
	Entry("a source alone", `
sources:
- {kind: ConfigMap, name: ca-bundle}`),
	Entry("everything", `
mode: Active
sources:
- kind: ConfigMap
  name: app-config
  keys: [LOG_LEVEL, FEATURES]
  restartOn: [Modified]
- kind: Secret
  selector: {matchLabels: {app: web}}
targets:
- kind: Deployment
  name: web
- kind: StatefulSet
  selector: {matchLabels: {tier: cache}}
  follow: Referenced
- kind: DaemonSet
  name: proxy
  follow: Declared
- apiVersion: batch/v1
  kind: CronJob
  name: report`),
	Entry("the mode DryRun", `{mode: DryRun, targets: [{kind: Deployment, name: web}]}`),
	Entry("the mode Suspended", `{mode: Suspended, targets: [{kind: Deployment, name: web}]}`),
	Entry("the mode Observe", `{mode: Observe, sources: [{kind: ConfigMap, name: app-config}]}`),
	Entry("the mode Observe and empty lists", `{mode: Observe, sources: [{kind: Secret, selector: {}}], targets: [], rollout: {windows: []}}`),
	Entry("the mode Observe and the defaults of rollout", observing(
		`settleSeconds: 2, cooldownSeconds: 0, maxConcurrent: 10, onFailure: Halt, progressDeadlineSeconds: 600, approval: Automatic`)),
	Entry("a mode without a value", "mode:\ntargets: [{kind: Deployment, name: web}]"),
	Entry("an empty list of sources beside targets", `{sources: [], targets: [{kind: Deployment, name: web}]}`),

	Entry("a ConfigMap and a Secret of the same name",
		`sources: [{kind: ConfigMap, name: web}, {kind: Secret, name: web}]`),
	Entry("workloads of the same name",
		`targets: [{kind: Deployment, name: web}, {kind: StatefulSet, name: web}, {kind: DaemonSet, name: web}]`),
	Entry("a name that a selector may match as well",
		`sources: [{kind: Secret, name: db, restartOn: [Deleted]}, {kind: Secret, selector: {matchLabels: {app: web}}}]`),
	Entry("one selector twice, with different keys", `
sources:
- {kind: Secret, keys: [tls.crt], selector: {matchLabels: {app: web}}}
- {kind: Secret, keys: [token], selector: {matchLabels: {app: web}}}`),

	Entry("a name with dots", `sources: [{kind: ConfigMap, name: kube-root-ca.crt}]`),
	Entry("a name that begins with a digit", `sources: [{kind: ConfigMap, name: 0a}]`),
	Entry("a name of digits, quoted", `sources: [{kind: ConfigMap, name: "2024"}]`),
	Entry("names of 253 characters",
		`{sources: [{kind: Secret, name: `+longName(1)+`}], targets: [{kind: Deployment, name: `+longName(2)+`}]}`),

	Entry("keys of every allowed character",
		`sources: [{kind: ConfigMap, name: a, keys: [.env, -x, a_b.C-9, "8080", a..b]}]`),
	Entry("a key of 253 characters",
		`sources: [{kind: ConfigMap, name: a, keys: [`+strings.Repeat("K", 253)+`]}]`),
	Entry("restartOn with one change", `sources: [{kind: ConfigMap, name: a, restartOn: [Deleted]}]`),
	Entry("restartOn with all changes", `sources: [{kind: ConfigMap, name: a, restartOn: [Added, Modified, Deleted]}]`),

	Entry("an empty selector, which matches all",
		`{sources: [{kind: Secret, selector: {}}], targets: [{kind: Deployment, selector: {}}]}`),
	Entry("a selector with every operator", `
targets:
- kind: Deployment
  selector:
    matchLabels: {app.kubernetes.io/part-of: shop}
    matchExpressions:
    - {key: tier, operator: In, values: [web, cache]}
    - {key: tier, operator: NotIn, values: [db]}
    - {key: app, operator: Exists}
    - {key: legacy, operator: DoesNotExist, values: []}`),

	Entry("the apiVersion of a built-in kind", `
targets:
- {apiVersion: apps/v1, kind: Deployment, name: a}
- {apiVersion: apps/v1, kind: StatefulSet, name: b}
- {apiVersion: apps/v1, kind: DaemonSet, name: c}
- {apiVersion: batch/v1, kind: CronJob, name: d}`),
	Entry("follow: Referenced without sources", `targets: [{kind: Deployment, name: web, follow: Referenced}]`),
	Entry("follow: Declared with sources",
		`{sources: [{kind: Secret, selector: {}}], targets: [{kind: Deployment, name: web, follow: Declared}]}`),
)

var _ = Describe("A ConfigWatch", func() {
	It("may have a name of 63 characters", func(ctx SpecContext) {
		Expect(create(ctx, withSpec(strings.Repeat("a", 63), web))).To(Succeed())
	})

	It("may reach every limit at once without exceeding the API server's own", func(ctx SpecContext) {
		var spec strings.Builder
		spec.WriteString("sources:\n")
		for i := range 64 {
			fmt.Fprintf(&spec, "- {kind: Secret, name: %s, restartOn: [Added, Modified, Deleted], keys: [%s]}\n",
				longName(i), repeat(256, "key-number-%d.properties"))
		}
		spec.WriteString("targets:\n")
		for i := range 64 {
			fmt.Fprintf(&spec, "- {apiVersion: apps/v1, kind: StatefulSet, name: %s, follow: Declared}\n", longName(i))
		}
		spec.WriteString("rollout: {windows: [" + repeat(16, `{schedule: "`+strings.Repeat("0,", 123)+
			`%d 2 * * *", durationMinutes: 1, timeZone: `+strings.Repeat("z", 64)+`}`) + "]}\n")
		Expect(create(ctx, withSpec("names", spec.String()))).To(Succeed())

		selector := `{matchLabels: {` + repeat(16, `label-%d: value`) + `}, matchExpressions: [` +
			repeat(16, `{key: key-%d, operator: In, values: [a, b, c]}`) + `]}`
		Expect(create(ctx, withSpec("selectors", `
sources: [`+strings.Repeat(`{kind: Secret, selector: `+selector+`}, `, 64)+`]
targets: [`+strings.Repeat(`{kind: Deployment, selector: `+selector+`}, `, 64)+`]`))).To(Succeed())
	})

	It("gets the defaults, and none for follow", func(ctx SpecContext) {
		Expect(create(ctx, withSpec("web", "sources: [{kind: Secret, name: db}]\n"+web))).To(Succeed())
		Expect(get(ctx, "web").Spec).To(Equal(v1alpha1.ConfigWatchSpec{
			Mode: v1alpha1.ModeActive,
			Sources: []v1alpha1.SourceSelector{{
				Kind: v1alpha1.Secret, Name: "db", RestartOn: []v1alpha1.Change{v1alpha1.Modified},
			}},
			Targets: []v1alpha1.TargetSelector{{Kind: "Deployment", Name: "web"}},
			Rollout: defaultRollout(),
		}))
	})

	It("is the same after a Go program has written it", func(ctx SpecContext) {
		watch := &v1alpha1.ConfigWatch{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec: v1alpha1.ConfigWatchSpec{
				Mode: v1alpha1.ModeDryRun,
				Sources: []v1alpha1.SourceSelector{{
					Kind: v1alpha1.ConfigMap, Name: "app-config", Keys: []string{"LOG_LEVEL"},
					RestartOn: []v1alpha1.Change{v1alpha1.Added, v1alpha1.Deleted},
				}},
				Targets: []v1alpha1.TargetSelector{{
					APIVersion: "apps/v1", Kind: "Deployment", Follow: v1alpha1.FollowReferenced,
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				}},
				Rollout: v1alpha1.RolloutSpec{
					SettleSeconds: new(int32(0)), CooldownSeconds: new(int32(60)), MaxConcurrent: 1,
					OnFailure: v1alpha1.OnFailureContinue, ProgressDeadlineSeconds: 30, Approval: v1alpha1.ApprovalManual,
					Windows: []v1alpha1.Window{{Schedule: "0 2 * * 1-5", DurationMinutes: 120, TimeZone: "Europe/Berlin"}},
				},
			},
		}
		want := watch.DeepCopy()
		Expect(k8sClient.Create(ctx, watch, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
		Expect(get(ctx, "web").Spec).To(Equal(want.Spec))
	})

	It("can't be edited into one that is refused", func(ctx SpecContext) {
		Expect(create(ctx, withSpec("web", web))).To(Succeed())
		watch := get(ctx, "web")
		watch.Spec.Targets[0].Follow = v1alpha1.FollowDeclared
		Expect(complaints(k8sClient.Update(ctx, watch))).To(ConsistOf(declaredNeedsSources))
	})
})

// longName is a valid name of 253 characters.
func longName(number int) string {
	return fmt.Sprintf("%s-%03d", strings.Repeat("n", 249), number)
}
