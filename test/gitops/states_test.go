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

package gitops

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/hack/argocd/customization"
	"github.com/ktechhub/configwatch/test/utils"
)

// update tells whether the fixtures are to be written rather than compared.
var update = os.Getenv("UPDATE_FIXTURES") != ""

// state is one that the operator reports of a ConfigWatch web. There are a ConfigMap app-config, and a Deployment web
// that uses it.
type state struct {
	// health is what Argo CD shows of it.
	health string
	// condition and reason are what it is waited for by, and part what the message of the condition has in it. None: it is
	// as the API server has created it.
	condition, reason, part string
	// spec changes the ConfigWatch before it is created.
	spec func(*v1alpha1.ConfigWatch)
	// targets are its Deployments, if there are others than web.
	targets []string
	// steps lead to it once the ConfigWatch has a baseline.
	steps []step
	// early makes a change after which the API server's answer is the state, before the operator has seen it.
	early func(context.Context, *v1alpha1.ConfigWatch)
}

type step func(context.Context, utils.Namespace)

const (
	progressing = "Progressing"
	healthy     = "Healthy"
	degraded    = "Degraded"
	onHold      = "Suspended"
)

// states are by the name of the fixture.
var states = map[string]state{
	"new": {health: progressing},
	"outdated": {health: progressing, condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonUpToDate,
		early: func(ctx context.Context, cw *v1alpha1.ConfigWatch) {
			Expect(utils.Change(ctx, k8sClient, cw, func(cw *v1alpha1.ConfigWatch) { cw.Spec.Rollout.MaxConcurrent = 5 })).To(Succeed())
		}},

	"up-to-date": {health: healthy, condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonUpToDate},
	"restarted": {health: healthy, condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonUpToDate,
		steps: []step{edit("debug"), await("web", v1alpha1.TargetRollingOut), finish("web"), await("web", v1alpha1.TargetUpToDate)}},
	"observing": {health: healthy, condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonObserving, spec: func(cw *v1alpha1.ConfigWatch) {
		cw.Spec = v1alpha1.ConfigWatchSpec{
			Mode: v1alpha1.ModeObserve, Sources: []v1alpha1.SourceSelector{{Kind: v1alpha1.ConfigMap, Name: "app-config"}},
		}
	}},

	"settling": reconciling(v1alpha1.ReasonSettling, rollout(func(r *v1alpha1.RolloutSpec) { r.SettleSeconds = new(int32(3600)) }), edit("debug")),
	"awaiting-approval": reconciling(v1alpha1.ReasonAwaitingApproval, rollout(func(r *v1alpha1.RolloutSpec) {
		r.Approval = v1alpha1.ApprovalManual
	}), edit("debug")),
	"outside-window": reconciling(v1alpha1.ReasonOutsideWindow, rollout(func(r *v1alpha1.RolloutSpec) {
		r.Windows = []v1alpha1.Window{{Schedule: "0 0 29 2 *", DurationMinutes: 1}}
	}), edit("debug")),
	"cooling-down": reconciling(v1alpha1.ReasonCoolingDown, rollout(func(r *v1alpha1.RolloutSpec) { r.CooldownSeconds = new(int32(86400)) }),
		edit("debug"), await("web", v1alpha1.TargetRollingOut), finish("web"), await("web", v1alpha1.TargetUpToDate), edit("trace")),
	"awaiting-turn": {health: progressing, condition: v1alpha1.ConditionReconciling, reason: v1alpha1.ReasonAwaitingTurn,
		targets: []string{"api", "web"}, spec: atOnce(1), steps: []step{edit("debug"), await("api", v1alpha1.TargetRollingOut)}},
	"rolling-out": reconciling(v1alpha1.ReasonRollingOut, nil, edit("debug"), await("web", v1alpha1.TargetRollingOut)),
	"rollout-paused": {health: progressing, condition: v1alpha1.ConditionReconciling, reason: v1alpha1.ReasonRollingOut, part: "pause",
		steps: []step{pause, edit("debug"), await("web", v1alpha1.TargetRollingOut)}},
	"restart-refused": reconciling(v1alpha1.ReasonPending, nil, refuse, edit("debug")),

	"dry-run":         {health: healthy, condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonUpToDate, spec: mode(v1alpha1.ModeDryRun)},
	"dry-run-changed": reconciling(v1alpha1.ReasonDryRun, mode(v1alpha1.ModeDryRun), edit("debug")),
	"suspended":       {health: onHold, condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonUpToDate, spec: mode(v1alpha1.ModeSuspended)},
	"suspended-changed": {health: onHold, condition: v1alpha1.ConditionReconciling, reason: v1alpha1.ReasonSuspended,
		spec: mode(v1alpha1.ModeSuspended), steps: []step{edit("debug")}},

	"rollout-failed": stalled(v1alpha1.ReasonRolloutFailed, nil, edit("debug"), await("web", v1alpha1.TargetRollingOut), fail("web")),
	"rollout-failed-in-part": {health: degraded, condition: v1alpha1.ConditionStalled, reason: v1alpha1.ReasonRolloutFailed,
		targets: []string{"api", "web"}, spec: atOnce(2),
		steps: []step{edit("debug"), await("api", v1alpha1.TargetRollingOut), await("web", v1alpha1.TargetRollingOut), fail("api")}},
	"halted": {health: degraded, condition: v1alpha1.ConditionStalled, reason: v1alpha1.ReasonRolloutFailed,
		targets: []string{"api", "web"}, spec: atOnce(1),
		steps: []step{edit("debug"), await("api", v1alpha1.TargetRollingOut), fail("api"), await("web", v1alpha1.TargetHalted)}},
	"blocked": stalled(v1alpha1.ReasonBlocked, func(cw *v1alpha1.ConfigWatch) {
		cw.Spec.Targets = []v1alpha1.TargetSelector{{Kind: statefulSet, Name: "cache"}}
	}, observeCache, edit("debug"), restarted("cache"), observeCache),
	"no-targets": stalled(v1alpha1.ReasonNoTargets, func(cw *v1alpha1.ConfigWatch) { cw.Spec.Targets[0].Name = "wbe" }),
	"no-sources": stalled(v1alpha1.ReasonNoSources, func(cw *v1alpha1.ConfigWatch) {
		cw.Spec.Sources = []v1alpha1.SourceSelector{{Kind: v1alpha1.ConfigMap, Name: "ap-config"}}
	}),
	"invalid-selector": stalled(v1alpha1.ReasonInvalidSelector, func(cw *v1alpha1.ConfigWatch) {
		cw.Spec.Targets = []v1alpha1.TargetSelector{{Kind: deployment, Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "not a label"},
		}}}
	}),
	"invalid-window": stalled(v1alpha1.ReasonInvalidWindow, rollout(func(r *v1alpha1.RolloutSpec) {
		r.Windows = []v1alpha1.Window{{Schedule: "0 2 * * *", DurationMinutes: 60, TimeZone: "Europe/Atlantis"}}
	})),
	"invalid-annotation": stalled(v1alpha1.ReasonInvalidAnnotation, func(cw *v1alpha1.ConfigWatch) {
		metav1.SetMetaDataAnnotation(&cw.ObjectMeta, v1alpha1.RestartRequestedAtAnnotation, "tomorrow")
	}),
	"subscriber-refuses": stalled(v1alpha1.ReasonSubscriberRefuses, func(cw *v1alpha1.ConfigWatch) {
		cw.Spec.Subscribers = []v1alpha1.Subscriber{{Name: "hook", Webhook: v1alpha1.Webhook{
			URL: "https://127.0.0.1:8443/", // where webhooks must not go
		}}}
	}, edit("debug"), await("web", v1alpha1.TargetRollingOut), finish("web"), await("web", v1alpha1.TargetUpToDate)),
	"permission-denied": stalled(v1alpha1.ReasonPermissionDenied, nil, forbid, edit("debug")),
}

func reconciling(reason string, spec func(*v1alpha1.ConfigWatch), steps ...step) state {
	return state{health: progressing, condition: v1alpha1.ConditionReconciling, reason: reason, spec: spec, steps: steps}
}

func stalled(reason string, spec func(*v1alpha1.ConfigWatch), steps ...step) state {
	return state{health: degraded, condition: v1alpha1.ConditionStalled, reason: reason, spec: spec, steps: steps}
}

func rollout(change func(*v1alpha1.RolloutSpec)) func(*v1alpha1.ConfigWatch) {
	return func(cw *v1alpha1.ConfigWatch) { change(&cw.Spec.Rollout) }
}

func atOnce(n int32) func(*v1alpha1.ConfigWatch) {
	return rollout(func(r *v1alpha1.RolloutSpec) { r.MaxConcurrent = n })
}

func mode(m v1alpha1.Mode) func(*v1alpha1.ConfigWatch) {
	return func(cw *v1alpha1.ConfigWatch) { cw.Spec.Mode = m }
}

func edit(value string) step {
	return func(ctx context.Context, ns utils.Namespace) { set(ctx, ns, "app-config", value) }
}

func finish(name string) step {
	return func(ctx context.Context, ns utils.Namespace) {
		Expect(utils.FinishRollout(ctx, k8sClient, ns.Name, name)).To(Succeed())
	}
}

func fail(name string) step {
	return func(ctx context.Context, ns utils.Namespace) {
		Expect(utils.FailRollout(ctx, k8sClient, ns.Name, name)).To(Succeed())
	}
}

// await waits for the state of a target.
func await(name string, state v1alpha1.TargetState) step {
	return func(ctx context.Context, ns utils.Namespace) {
		Eventually(ns.Row).WithArguments(ctx, "web", deployment, name).Should(HaveField("State", state))
	}
}

// restarted waits until a StatefulSet is restarted.
func restarted(name string) step {
	return func(ctx context.Context, ns utils.Namespace) {
		Eventually(ns.Row).WithArguments(ctx, "web", statefulSet, name).Should(HaveField("Restarts", int64(1)))
	}
}

func pause(ctx context.Context, ns utils.Namespace) {
	web := utils.MakeDeployment("web").Namespace(ns.Name).Obj()
	Expect(utils.Change(ctx, k8sClient, web, func(d *appsv1.Deployment) { d.Spec.Paused = true })).To(Succeed())
}

// observeCache has the StatefulSet's controller see its pod template, of which no pod is made until an old one is deleted.
func observeCache(ctx context.Context, ns utils.Namespace) {
	cache := utils.MakeStatefulSet("cache").Namespace(ns.Name).Obj()
	Expect(utils.Reload(ctx, k8sClient, cache)).To(Succeed())
	cache.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: cache.Generation, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, CurrentReplicas: 1,
		CurrentRevision: "cache-old", UpdateRevision: "cache-new",
	}
	Expect(k8sClient.Status().Update(ctx, cache)).To(Succeed())
}

// refuse makes the API server refuse changes of the Deployments in a namespace.
func refuse(ctx context.Context, ns utils.Namespace) {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse-" + ns.Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "releases are frozen"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns.Name},
			}},
		},
	}
	Expect(k8sClient.Create(ctx, policy)).To(Succeed())
	Expect(k8sClient.Create(ctx, binding)).To(Succeed())
	Eventually(func() error {
		web := utils.MakeDeployment("web").Namespace(ns.Name).Obj()
		return k8sClient.Patch(ctx, web, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"minReadySeconds":1}}`)), client.DryRunAll)
	}).Should(MatchError(ContainSubstring("releases are frozen")), "the policy is in force")
}

// forbid takes the right to patch workloads from the manager, until the test ends.
func forbid(ctx context.Context, _ utils.Namespace) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "configwatch-manager-role"}}
	Expect(utils.Reload(ctx, k8sClient, role)).To(Succeed())
	granted, less := role.DeepCopy().Rules, role.DeepCopy().Rules
	change := func(ctx context.Context, rules []rbacv1.PolicyRule) {
		Expect(utils.Change(ctx, k8sClient, role, func(r *rbacv1.ClusterRole) { r.Rules = rules })).To(Succeed())
	}
	DeferCleanup(change, granted)
	for i := range less {
		if slices.Contains(less[i].Resources, "deployments") {
			less[i].Verbs = slices.DeleteFunc(less[i].Verbs, func(verb string) bool { return verb == "patch" })
		}
	}
	change(ctx, less)
}

var _ = Describe("The states that the operator reports", Ordered, func() {
	// What takes a while begins first, and is looked at last.
	slow := []string{"no-sources", "no-targets", "subscriber-refuses"}
	begun := map[string]utils.Namespace{}
	BeforeAll(func(ctx SpecContext) {
		for _, name := range slow {
			begun[name] = states[name].begin(ctx)
		}
	})
	quick := slices.DeleteFunc(slices.Sorted(maps.Keys(states)), func(name string) bool { return slices.Contains(slow, name) })
	for _, name := range append(quick, slow...) {
		It("are those of the fixtures: "+name, func(ctx SpecContext) {
			ns, ok := begun[name]
			if !ok {
				ns = states[name].begin(ctx)
			}
			got := states[name].end(ctx, ns)
			file := filepath.Join(root, customization.Folder, "testdata", name+".yaml")
			if update {
				Expect(os.WriteFile(file, []byte(got), 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred(), again)
			Expect(got).To(Equal(string(want)), again)
			Expect(healthOf(ctx, name).Status).To(Equal(states[name].health))
		})
	}
	It("are shown by Argo CD as health_test.yaml has it", func(ctx SpecContext) {
		said := "# The health of each state. Written with the fixtures, by UPDATE_FIXTURES=1 go test ./test/gitops\ntests:\n"
		for _, name := range slices.Sorted(maps.Keys(states)) {
			health := healthOf(ctx, name)
			said += fmt.Sprintf("- healthStatus:\n    status: %s\n    message: %q\n  inputPath: testdata/%s.yaml\n",
				states[name].health, health.Message, name)
		}
		file := filepath.Join(root, customization.Folder, "health_test.yaml")
		if update {
			Expect(os.WriteFile(file, []byte(said), 0o644)).To(Succeed())
		}
		want, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred(), again)
		Expect(said).To(Equal(string(want)), again)
	})
})

// again is how the fixtures are written anew.
const again = "UPDATE_FIXTURES=1 go test ./test/gitops writes it anew"

// healthOf is what Argo CD shows of a fixture.
func healthOf(ctx context.Context, name string) customization.Health {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, customization.Folder, "testdata", name+".yaml"))
	Expect(err).NotTo(HaveOccurred(), again)
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(text, &object.Object)).To(Succeed())
	scripts, err := customization.Read(root)
	Expect(err).NotTo(HaveOccurred())
	health, err := scripts.HealthOf(ctx, object)
	Expect(err).NotTo(HaveOccurred())
	return health
}

// begin takes the steps that lead to the state.
func (s state) begin(ctx context.Context) utils.Namespace {
	GinkgoHelper()
	ns := newNamespace(ctx)
	Expect(ns.Create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(),
		utils.MakeStatefulSet("cache").OnDelete().EnvFromConfigMap("app-config").Obj())).To(Succeed())
	builder := utils.MakeConfigWatch("web").Namespace(ns.Name)
	for _, name := range s.deployments() {
		Expect(ns.Create(ctx, utils.MakeDeployment(name).EnvFromConfigMap("app-config").Obj())).To(Succeed())
		Expect(utils.FinishRollout(ctx, k8sClient, ns.Name, name)).To(Succeed())
		builder.Target(deployment, name)
	}
	Expect(barrier.Pass(ctx)).To(Succeed())
	cw := builder.Obj()
	if s.spec != nil {
		s.spec(cw)
	}
	if s.condition == "" {
		return ns
	}
	Expect(ns.Create(ctx, cw)).To(Succeed())
	Eventually(ns.Status).WithArguments(ctx, "web").Should(SatisfyAll(
		HaveField("ObservedGeneration", cw.Generation), Not(HaveField("Conditions", BeEmpty()))))
	for _, step := range s.steps {
		step(ctx, ns)
	}
	return ns
}

// end waits for the state, and is the ConfigWatch as a fixture.
func (s state) end(ctx context.Context, ns utils.Namespace) string {
	GinkgoHelper()
	cw := utils.MakeConfigWatch("web").Namespace(ns.Name).Target(deployment, "web").Obj()
	if s.condition == "" {
		Expect(ns.Create(ctx, cw)).To(Succeed())
		return fixture(cw, ns.Name)
	}
	Eventually(ns.Condition).WithArguments(ctx, "web", s.condition).Should(SatisfyAll(
		HaveField("Reason", s.reason), HaveField("Message", ContainSubstring(s.part))), func() string {
		status, err := ns.Status(ctx, "web")
		return fmt.Sprintf("%+v %v", status, err)
	})
	Expect(barrier.Pass(ctx)).To(Succeed()) // so that nothing of it is still on its way
	Expect(utils.Reload(ctx, k8sClient, cw)).To(Succeed())
	if s.early != nil {
		s.early(ctx, cw)
	}
	return fixture(cw, ns.Name)
}

func (s state) deployments() []string {
	if s.targets == nil {
		return []string{"web"}
	}
	return s.targets
}

// What is different in each run.
var (
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	uids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// fixture is a ConfigWatch as YAML, without what is different in each run.
func fixture(cw *v1alpha1.ConfigWatch, namespace string) string {
	GinkgoHelper()
	cw = cw.DeepCopy()
	cw.ManagedFields, cw.ResourceVersion = nil, ""
	cw.Status.Subscribers = nil
	for i := range cw.Status.Targets { // what only the operator itself reads
		cw.Status.Targets[i].RecentChanges, cw.Status.Targets[i].Wait, cw.Status.Targets[i].Rollout = nil, nil, nil
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cw)
	Expect(err).NotTo(HaveOccurred())
	object["apiVersion"], object["kind"] = v1alpha1.GroupVersion.String(), "ConfigWatch"
	if len(cw.Status.Conditions) == 0 {
		unstructured.RemoveNestedField(object, "status")
	}
	text, err := yaml.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	said := times.ReplaceAllString(string(text), "2026-01-01T00:00:00Z")
	said = uids.ReplaceAllString(said, "00000000-0000-0000-0000-000000000000")
	return strings.ReplaceAll(said, namespace, "shop")
}
