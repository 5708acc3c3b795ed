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

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

const (
	examples = "../../config/samples/fleet/" // the manifests of the guide "Rolling a fleet"

	// broken is a CA bundle with which no program starts, and so is whatever begins with it.
	broken = "not a certificate"
	// programGate is the scheduling gate of pods whose programs playPrograms plays.
	programGate = "test.example/program"

	bundleChanged = "ConfigMap ca-bundle changed (ca.crt)"
)

var _ = Describe("A fleet", func() {
	It("of 300 halts at a CA bundle that breaks it (E17), and rolls in waves once it is mended (E16)", func(ctx SpecContext) {
		const size, wave = 300, 10
		names := numbered(size)
		first := names[:wave]
		kubectl(ctx, "apply", "-f", examples+"ca-bundle.yaml")
		playPrograms(ctx)
		createFleet(ctx, names)
		expectStates(ctx, "ca-bundle", states{v1alpha1.TargetUpToDate: size})
		rollouts := watchRollouts(ctx)

		By("breaking it")
		setProgressDeadline(ctx, first, 5)
		setBundle(ctx, broken)
		expectStates(ctx, "ca-bundle", states{v1alpha1.TargetFailed: wave, v1alpha1.TargetHalted: size - wave})
		Expect(rollouts.Begun()).To(ConsistOf(first), "no other is touched")
		status, err := here.Status(ctx, "ca-bundle")
		Expect(err).NotTo(HaveOccurred())
		for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionStalled} {
			Expect(here.Condition(ctx, "ca-bundle", condition)).To(SatisfyAll(
				HaveField("Reason", v1alpha1.ReasonRolloutFailed),
				HaveField("Message", "Deployment app-000: "+bundleChanged+". Progress deadline exceeded "+
					"(and 9 more: see status.targets). 290 targets are halted: mend the configuration, or to go on all "+
					"the same, annotate the ConfigWatch with "+v1alpha1.ApproveAnnotation+"="+status.ApprovalHash)))
		}
		kubectl(ctx, "wait", "--for=condition=Ready=false", "--for=condition=Stalled", "cw/ca-bundle")
		Eventually(here.Notes).WithArguments(ctx, v1alpha1.EventHalted).Should(ContainElement(MatchRegexp(
			"^ConfigWatch: Deployment .*/app-010 and 289 more targets: not restarted yet: .*" +
				" Halted, as Deployment app-00. failed to roll out for the same change$")))

		By("mending it")
		setProgressDeadline(ctx, first, 600) // which starts nothing: they are failed until they are complete
		setBundle(ctx, "mended")
		Eventually(rollouts.Begun).WithTimeout(patience).Should(HaveLen(wave + size))
		expectStates(ctx, "ca-bundle", states{v1alpha1.TargetUpToDate: size})
		mended := rollouts.Begun()[wave:]
		Expect(mended).To(ConsistOf(names), "each is restarted once")
		Expect(mended[:wave]).To(ConsistOf(first), "those that failed come first")
		Expect(rollouts.Most()).To(Equal(wave), "those that failed count too")
	})

	It("is left alone by a bundle that is put back, but for those that failed with the new one (E17)", func(ctx SpecContext) {
		names := numbered(6)
		kubectl(ctx, "apply", "-f", examples+"ca-bundle.yaml")
		kubectl(ctx, "patch", "cw/ca-bundle", "--type=merge", "-p", `{"spec":{"rollout":{"maxConcurrent":2}}}`)
		setBundle(ctx, "good")
		playPrograms(ctx)
		createFleet(ctx, names)
		expectStates(ctx, "ca-bundle", states{v1alpha1.TargetUpToDate: 6})
		rollouts := watchRollouts(ctx)
		setProgressDeadline(ctx, names[:2], 3)
		setBundle(ctx, broken)
		expectStates(ctx, "ca-bundle", states{v1alpha1.TargetFailed: 2, v1alpha1.TargetHalted: 4})

		setProgressDeadline(ctx, names[:2], 600)
		setBundle(ctx, "good")
		expectStates(ctx, "ca-bundle", states{v1alpha1.TargetUpToDate: 6})
		Expect(rollouts.Begun()).To(HaveLen(4))
		Expect(rollouts.Begun()[2:]).To(ConsistOf(names[:2]))
		Expect(here.Row(ctx, "ca-bundle", deployment, "app-005")).To(
			HaveField("Message", "the change was taken back before a restart was made"))
	})

	It("is restarted once, in waves, when that is asked for (restart-requested-at)", func(ctx SpecContext) {
		names := numbered(6)
		create(ctx, utils.MakeConfigMap("ca-bundle").Data("ca.crt", "good").Obj(),
			utils.MakeConfigWatch("app").ConfigMap("ca-bundle").Rollout(v1alpha1.RolloutSpec{MaxConcurrent: 2}).Obj())
		playPrograms(ctx)
		createFleet(ctx, names)
		expectStates(ctx, "app", states{v1alpha1.TargetUpToDate: 6})
		rollouts := watchRollouts(ctx)
		request := func(at time.Time) {
			kubectl(ctx, "annotate", "--overwrite", "cw/app",
				v1alpha1.RestartRequestedAtAnnotation+"="+at.UTC().Format(time.RFC3339))
		}
		now := time.Now()
		request(now)
		Eventually(rollouts.Begun).Should(HaveLen(6))
		expectStates(ctx, "app", states{v1alpha1.TargetUpToDate: 6})
		Expect(rollouts.Begun()).To(ConsistOf(names))
		Expect(rollouts.Most()).To(Equal(2))
		Expect(here.Row(ctx, "app", deployment, "app-005")).To(
			HaveField("Message", "a restart was requested at "+now.UTC().Format(time.RFC3339)))

		request(now.Add(-time.Hour))
		request(now)
		Consistently(rollouts.Begun).Should(HaveLen(6), "that was asked for before")
		request(now.Add(time.Second))
		Eventually(rollouts.Begun).Should(HaveLen(12))
		expectStates(ctx, "app", states{v1alpha1.TargetUpToDate: 6})
	})
})

var _ = Describe("--max-concurrent-rollouts (E18)", func() {
	It("holds for all ConfigWatches together, and each comes to its end", func(ctx SpecContext) {
		const most, size = 5, 10
		insteadOfManager()
		limited := run(ctx, fmt.Sprintf("--max-concurrent-rollouts=%d", most))
		DeferCleanup(limited.Stop)
		teams := []string{"blue", "green", "red"}
		for _, team := range teams {
			for i := range size {
				name := fmt.Sprintf("%s-%d", team, i)
				create(ctx, utils.MakeDeployment(name).Label("team", team).EnvFromConfigMap("app-config").Obj())
			}
			create(ctx, utils.MakeConfigWatch(team).ConfigMap("app-config").Targets(deployment, "team", team).Obj())
		}
		for _, team := range teams {
			expectStates(ctx, team, states{v1alpha1.TargetUpToDate: size})
		}
		rollouts := watchRollouts(ctx)
		set(ctx, "debug")
		for _, team := range teams {
			Eventually(here.Condition).WithArguments(ctx, team, v1alpha1.ConditionReady).Should(HaveField("Message", HaveSuffix(
				"It waits for its turn: as many targets of all ConfigWatches roll out as --max-concurrent-rollouts allows")))
		}
		Eventually(rollouts.Begun).WithTimeout(patience).Should(HaveLen(len(teams) * size))
		for _, team := range teams {
			expectStates(ctx, team, states{v1alpha1.TargetUpToDate: size})
		}
		Expect(rollouts.Begun()).To(HaveLen(len(teams)*size), "each is restarted once")
		Expect(rollouts.Most()).To(Equal(most))
	})
})

// patience is how long a fleet may take.
const patience = 3 * time.Minute

// numbered are so many names in their order, such as app-000.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("app-%03d", i)
	}
	return names
}

// createFleet creates Deployments of one replica that use the CA bundle, and whose programs playPrograms plays.
func createFleet(ctx context.Context, names []string) {
	GinkgoHelper()
	for _, name := range names {
		create(ctx, utils.MakeDeployment(name).Pod(usingBundle).Obj())
	}
}

// usingBundle makes a pod use the CA bundle, and wait for the program that playPrograms plays.
func usingBundle(pod *corev1.PodSpec) {
	pod.SchedulingGates = []corev1.PodSchedulingGate{{Name: programGate}}
	pod.Volumes = []corev1.Volume{{Name: "certificates", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "ca-bundle"}},
	}}}
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "certificates", MountPath: "/etc/ssl/certs"}}
}

// playPrograms plays the programs that use the CA bundle: each reads it once, when its pod has been created, and
// the pod becomes ready only if it isn't broken.
func playPrograms(ctx context.Context) {
	GinkgoHelper()
	playing, stop := context.WithCancel(context.WithoutCancel(ctx))
	w, err := k8sClient.Watch(playing, &corev1.PodList{}, client.InNamespace(here.Name))
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan struct{})
	DeferCleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		defer GinkgoRecover()
		begun := map[types.UID]bool{}
		for event := range w.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || begun[pod.UID] || playing.Err() != nil {
				continue
			}
			begun[pod.UID] = true
			if err := startProgram(playing, pod); playing.Err() == nil {
				Expect(err).NotTo(HaveOccurred())
			}
		}
	}()
}

// startProgram reads the CA bundle, and lets the pod become ready if it isn't broken.
func startProgram(ctx context.Context, pod *corev1.Pod) error {
	bundle := utils.MakeConfigMap("ca-bundle").Namespace(pod.Namespace).Obj()
	if err := utils.Reload(ctx, k8sClient, bundle); err != nil || strings.HasPrefix(bundle.Data["ca.crt"], broken) {
		return err
	}
	ungate := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/spec/schedulingGates"}]`))
	return client.IgnoreNotFound(k8sClient.Patch(ctx, pod, ungate))
}

func setBundle(ctx context.Context, content string) {
	GinkgoHelper()
	change(ctx, utils.MakeConfigMap("ca-bundle").Obj(), func(c *corev1.ConfigMap) { c.Data["ca.crt"] = content })
}

func setProgressDeadline(ctx context.Context, names []string, seconds int32) {
	GinkgoHelper()
	for _, name := range names {
		change(ctx, utils.MakeDeployment(name).Obj(), func(d *appsv1.Deployment) {
			d.Spec.ProgressDeadlineSeconds = &seconds
		})
	}
}

// watchRollouts watches the rollouts of the test's namespace from now on.
func watchRollouts(ctx context.Context) *utils.Rollouts {
	GinkgoHelper()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	rollouts, err := utils.WatchRollouts(watching, k8sClient, here.Name)
	Expect(err).NotTo(HaveOccurred())
	return rollouts
}

// states counts targets by their state.
type states map[v1alpha1.TargetState]int

func statesOf(ctx context.Context, configWatch string) (states, error) {
	status, err := here.Status(ctx, configWatch)
	counted := states{}
	for i := range status.Targets {
		counted[status.Targets[i].State]++
	}
	return counted, err
}

// expectStates waits until the targets of a ConfigWatch are in these states. It asks less often than others, as
// the status of a large fleet is large.
func expectStates(ctx context.Context, configWatch string, want states) {
	GinkgoHelper()
	Eventually(statesOf).WithArguments(ctx, configWatch).
		WithTimeout(patience).WithPolling(200 * time.Millisecond).Should(Equal(want))
}
