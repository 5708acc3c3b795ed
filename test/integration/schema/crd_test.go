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
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

var _ = Describe("The status", func() {
	It("can't be written with the spec", func(ctx SpecContext) {
		Expect(create(ctx, withSpec("web", web)+
			"\nstatus: {observedGeneration: 5}\n")).To(Succeed())
		watch := get(ctx, "web")
		Expect(watch.Status).To(Equal(v1alpha1.ConfigWatchStatus{}))

		watch.Status.ObservedGeneration = 5
		Expect(k8sClient.Update(ctx, watch)).To(Succeed())
		Expect(get(ctx, "web").Status).To(Equal(v1alpha1.ConfigWatchStatus{}))
	})

	It("is written through its subresource, which leaves the spec and the generation alone", func(ctx SpecContext) {
		Expect(create(ctx, withSpec("web", web))).To(Succeed())
		watch := get(ctx, "web")
		spec := watch.Spec.DeepCopy()
		watch.Spec.Mode = v1alpha1.ModeSuspended
		status := upToDate()
		watch.Status = *status.DeepCopy()
		Expect(k8sClient.Status().Update(ctx, watch)).To(Succeed())

		watch = get(ctx, "web")
		Expect(watch.Spec).To(Equal(*spec))
		Expect(watch.Generation).To(Equal(int64(1)))
		Expect(watch.Status).To(Equal(status))
	})

	It("is the same after it was written, with what a restart waits for", func(ctx SpecContext) {
		Expect(create(ctx, withSpec("web", web))).To(Succeed())
		watch := get(ctx, "web")
		status := waiting()
		watch.Status = *status.DeepCopy()
		Expect(k8sClient.Status().Update(ctx, watch)).To(Succeed())
		Expect(get(ctx, "web").Status).To(Equal(status))
	})

	DescribeTable("is refused when",
		func(ctx SpecContext, spoil func(*v1alpha1.ConfigWatchStatus), messages ...string) {
			Expect(create(ctx, withSpec("web", web))).To(Succeed())
			watch := get(ctx, "web")
			watch.Status = waiting()
			spoil(&watch.Status)
			Expect(complaints(k8sClient.Status().Update(ctx, watch))).To(ConsistOf(messages))
		},

		Entry("a source's state is unknown",
			func(s *v1alpha1.ConfigWatchStatus) { s.Sources[0].State = "Gone" },
			`status.sources[0].state: Unsupported value: "Gone": `+
				`supported values: "Present", "Missing", "Ignored", "Unreadable"`),
		Entry("a target's state is unknown",
			func(s *v1alpha1.ConfigWatchStatus) { s.Targets[0].State = "Stale" },
			`status.targets[0].state: Unsupported value: "Stale": supported values: "UpToDate", "Pending", `+
				`"RollingOut", "Failed", "Halted", "Blocked", "Missing", "Ignored"`),
		Entry("a source has two rows",
			func(s *v1alpha1.ConfigWatchStatus) { s.Sources = append(s.Sources, s.Sources[0]) },
			`status.sources[1]: Duplicate value: {"kind":"ConfigMap","name":"app-config"}`),
		Entry("a target has two rows",
			func(s *v1alpha1.ConfigWatchStatus) { s.Targets = append(s.Targets, s.Targets[0]) },
			`status.targets[1]: Duplicate value: {"apiVersion":"apps/v1","kind":"Deployment","name":"web"}`),
		Entry("a target has two records of a source",
			func(s *v1alpha1.ConfigWatchStatus) {
				s.Targets[0].Sources = append(s.Targets[0].Sources, s.Targets[0].Sources[0])
			},
			`status.targets[0].sources[1]: Duplicate value: {"kind":"ConfigMap","name":"app-config"}`),
		Entry("a hash has 65 characters",
			func(s *v1alpha1.ConfigWatchStatus) { s.Sources[0].Hash = strings.Repeat("f", 65) },
			"status.sources[0].hash: Too long: may not be more than 64 bytes"),
		Entry("a count is negative",
			func(s *v1alpha1.ConfigWatchStatus) { s.Targets[0].Restarts = -1 },
			"status.targets[0].restarts: Invalid value: -1: "+
				"targets[0].restarts in body should be greater than or equal to 0"),
		Entry("there are eight recent changes",
			func(s *v1alpha1.ConfigWatchStatus) {
				s.Targets[0].RecentChanges = append(s.Targets[0].RecentChanges, metav1.Now())
			},
			"status.targets[0].recentChanges: Too many: 8: must have at most 7 items"),
		Entry("a target settles a fifth time",
			func(s *v1alpha1.ConfigWatchStatus) { s.Targets[0].Wait.SettlingRestarts = 5 },
			"status.targets[0].wait.settlingRestarts: Invalid value: 5: "+
				"targets[0].wait.settlingRestarts in body should be less than or equal to 4"),
		Entry("a slowdown is less than half a minute",
			func(s *v1alpha1.ConfigWatchStatus) { s.Targets[0].Slowdown.CooldownSeconds = 29 },
			"status.targets[0].slowdown.cooldownSeconds: Invalid value: 29: "+
				"targets[0].slowdown.cooldownSeconds in body should be greater than or equal to 30"),
		Entry("a slowdown is more than ten minutes",
			func(s *v1alpha1.ConfigWatchStatus) { s.Targets[0].Slowdown.CooldownSeconds = 601 },
			"status.targets[0].slowdown.cooldownSeconds: Invalid value: 601: "+
				"targets[0].slowdown.cooldownSeconds in body should be less than or equal to 600"),
	)
})

var _ = Describe("kubectl get", func() {
	BeforeEach(func(ctx SpecContext) {
		Expect(create(ctx, withSpec("web", web))).To(Succeed())
		watch := get(ctx, "web")
		watch.Status = upToDate()
		Expect(k8sClient.Status().Update(ctx, watch)).To(Succeed())
	})

	It("prints how things stand", func(ctx SpecContext) {
		header, row := table(kubectl(ctx, "get", "configwatches"))
		Expect(header).To(Equal([]string{
			"NAME", "READY", "REASON", "SOURCES", "TARGETS", "UP-TO-DATE", "LAST RESTART", "AGE",
		}))
		Expect(row[:7]).To(Equal([]string{"web", "True", "UpToDate", "1", "3", "2", "15m"}))
		Expect(row).To(HaveLen(8))
	})

	It("prints the message too, with -o wide", func(ctx SpecContext) {
		header, row := table(kubectl(ctx, "get", "configwatches", "-o", "wide"))
		Expect(header).To(Equal([]string{
			"NAME", "READY", "REASON", "SOURCES", "TARGETS", "UP-TO-DATE", "LAST RESTART", "AGE", "MESSAGE",
		}))
		Expect(row[8]).To(Equal("All is well"))
	})

	It("prints a ConfigWatch that no operator has seen yet", func(ctx SpecContext) {
		Expect(create(ctx, withSpec("new", web))).To(Succeed())
		_, row := table(kubectl(ctx, "get", "configwatches", "new"))
		Expect(row).To(HaveExactElements(Equal("new"), MatchRegexp(`^\d+s$`)))
	})

	It("knows the short name and the category", func(ctx SpecContext) {
		for _, name := range []string{"cw", "configwatch"} {
			Expect(kubectl(ctx, "get", name, "--output", "name")).
				To(Equal("configwatch.configwatch.ktechhub.io/web\n"), name)
			Expect(kubectl(ctx, "get", name, "web", "--output", "name")).
				To(Equal("configwatch.configwatch.ktechhub.io/web\n"), name)
		}
	})

	It("selects by mode", func(ctx SpecContext) {
		Expect(create(ctx, withSpec("held", "mode: Suspended\n"+web))).To(Succeed())
		Expect(kubectl(ctx, "get", "cw", "--field-selector", "spec.mode=Suspended", "--output", "name")).
			To(Equal("configwatch.configwatch.ktechhub.io/held\n"))
		Expect(kubectl(ctx, "get", "cw", "--field-selector", "spec.mode=Active", "--output", "name")).
			To(Equal("configwatch.configwatch.ktechhub.io/web\n"), "a mode that was filled in counts too")

		watches := &v1alpha1.ConfigWatchList{}
		Expect(k8sClient.List(ctx, watches, client.InNamespace(namespace),
			client.MatchingFields{"spec.mode": "DryRun"})).To(Succeed())
		Expect(watches.Items).To(BeEmpty())
	})
})

var _ = Describe("The samples", func() {
	It("are taken by kubectl apply", func(ctx SpecContext) {
		samples, err := filepath.Glob(filepath.Join(root, "config", "samples", "configwatch_*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(samples).NotTo(BeEmpty())

		out := kubectl(ctx, "apply", "--kustomize", filepath.Join(root, "config", "samples"),
			"--dry-run=server", "--validate=strict", "--output", "name")
		for _, sample := range samples {
			listed := kubectl(ctx, "apply", "--filename", sample, "--dry-run=server", "--validate=strict", "--output", "name")
			Expect(out).To(ContainSubstring(listed), "kustomization.yaml lists it")
		}
	})
})

// upToDate is a status as the operator may write it, with a restart a quarter of an hour ago.
func upToDate() v1alpha1.ConfigWatchStatus {
	restart := metav1.NewTime(time.Now().Add(-15*time.Minute - 20*time.Second).Truncate(time.Second))
	return v1alpha1.ConfigWatchStatus{
		ObservedGeneration: 1,
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1,
			Reason: v1alpha1.ReasonUpToDate, Message: "All is well", LastTransitionTime: restart,
		}},
		Sources: []v1alpha1.SourceStatus{{
			Kind: v1alpha1.ConfigMap, Name: "app-config", State: v1alpha1.SourcePresent,
			Hash: "1:9f86d081884c7d65", LastChangeTime: &restart,
		}},
		Targets: []v1alpha1.TargetStatus{{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "c2b7a9d4-0000-4000-8000-000000000000",
			State: v1alpha1.TargetUpToDate, Reason: v1alpha1.ReasonRolloutComplete,
			Message: "ConfigMap app-config changed (LOG_LEVEL)", Restarts: 7, LastRestartTime: &restart,
			Sources: []v1alpha1.AppliedSource{{
				Kind: v1alpha1.ConfigMap, Name: "app-config", AppliedHash: "1:9f86d081884c7d65",
			}},
		}},
		Summary: &v1alpha1.Summary{Sources: 1, Targets: 3, UpToDate: 2, LastRestartTime: &restart},
	}
}

// waiting is a status as the operator may write it, of a target that was restarted and is owed another restart.
func waiting() v1alpha1.ConfigWatchStatus {
	status := upToDate()
	last := *status.Targets[0].LastRestartTime
	began := metav1.NewMicroTime(last.Add(time.Minute + 250*time.Microsecond))
	template := &v1alpha1.Template{Hash: "v0.2.0:0123456789abcdef", Generation: 4}
	status.ApprovalHash, status.RestartRequestedAt = "0f3a5c7e9b1d2846", &last
	t := &status.Targets[0]
	t.State, t.Reason = v1alpha1.TargetPending, v1alpha1.ReasonAwaitingApproval
	t.Wait = &v1alpha1.Wait{
		Digest: "0123456789abcdef", Since: began, SettlingSince: began, SettlingRestarts: 4, Template: template,
		ApprovedHash: "0f3a5c7e9b1d2846", Renew: true, RequestedAt: &last,
	}
	t.Rollout = &v1alpha1.RolloutStatus{Template: template, NewPods: 2, LastProgressTime: last}
	t.RecentChanges = []metav1.Time{last, last, last, last, last, last, last}
	t.Slowdown = &v1alpha1.Slowdown{CooldownSeconds: 600, Message: "more than 6 changes within 10 minutes"}
	t.Sources[0].Changed = true
	return status
}

// table takes the header and the first row of what kubectl prints apart.
func table(printed string) (header, row []string) {
	GinkgoHelper()
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	Expect(lines).To(HaveLen(2), printed)
	gap := regexp.MustCompile(` {2,}`)
	return gap.Split(strings.TrimSpace(lines[0]), -1), gap.Split(strings.TrimSpace(lines[1]), -1)
}
