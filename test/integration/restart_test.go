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

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/hack/controlplane"
	"github.com/ktechhub/configwatch/test/utils"
)

const webMark = v1alpha1.RestartAnnotationPrefix + "web"

var _ = Describe("A restart", func() {
	getWeb := func(ctx context.Context) *appsv1.Deployment {
		return reload(ctx, utils.MakeDeployment("web").Namespace(namespace).Obj())
	}
	begin := func(ctx context.Context, d *utils.DeploymentBuilder) *utils.Restarts {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(), d.EnvFromConfigMap("app-config").Obj())
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
		return restartsOf(ctx, deployment, "web")
	}

	DescribeTable("is one patch of one annotation (E8), on a pod template",
		func(ctx SpecContext, d func() *utils.DeploymentBuilder) {
			web := begin(ctx, d())
			before, mark := getWeb(ctx), since()
			set(ctx, "app-config", "LOG_LEVEL", "debug")
			expectRestarts(ctx, web, 1)

			after := getWeb(ctx)
			Expect(after.Generation).To(Equal(before.Generation + 1))
			Expect(after.Spec.Template.Annotations).To(HaveKeyWithValue(webMark, MatchRegexp("^1-[0-9a-f]{16}$")))
			Expect(ownedFields(after)).To(ConsistOf("spec.template.metadata.annotations." + webMark))
			delete(after.Spec.Template.Annotations, webMark)
			if len(after.Spec.Template.Annotations) == 0 {
				after.Spec.Template.Annotations = nil
			}
			Expect(after.Spec).To(Equal(before.Spec), "nothing else is touched")
			Expect(requestsOf(utils.ManagerUser, mark)).To(ConsistOf(
				"patch deployments (apps) "+namespace+"/web: 200",
				"update configwatches/status (configwatch.ktechhub.io) "+namespace+"/web: 200",
				HavePrefix("create events (events.k8s.io) "+namespace+"/web."),
				HavePrefix("create events (events.k8s.io) "+namespace+"/web."),
			))
		},
		Entry("without annotations", func() *utils.DeploymentBuilder { return utils.MakeDeployment("web") }),
		Entry("with another tool's annotations", func() *utils.DeploymentBuilder {
			return utils.MakeDeployment("web").TemplateAnnotation("kubectl.kubernetes.io/restartedAt", "2026-01-01T00:00:00Z")
		}),
	)

	It("is numbered and unique, so that A→B→A rolls twice (E8)", func(ctx SpecContext) {
		web := begin(ctx, utils.MakeDeployment("web"))
		for n, level := range []string{"debug", "info", "debug"} {
			set(ctx, "app-config", "LOG_LEVEL", level)
			expectRestarts(ctx, web, n+1)
		}
		marks := web.Marks()
		Expect(marks[0]).To(HavePrefix("web=1-"))
		Expect(marks[1]).To(HavePrefix("web=2-"))
		Expect(marks[2]).To(Equal("web=3-"+strings.TrimPrefix(marks[0], "web=1-")), "the digest is that of the content")
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Restarts", int64(3)))
	})

	It("goes on counting from the number that it finds (E8)", func(ctx SpecContext) {
		web := begin(ctx, utils.MakeDeployment("web").TemplateAnnotation(webMark, "41-0123456789abcdef"))
		expectRestarts(ctx, web, 0)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 1)
		Expect(web.Marks()[0]).To(HavePrefix("web=42-"))
	})

	It("isn't repeated when another tool strips its annotation (E10)", func(ctx SpecContext) {
		web := begin(ctx, utils.MakeDeployment("web"))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 1)
		change(ctx, utils.MakeDeployment("web").Namespace(namespace).Obj(), func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil })
		expectRestarts(ctx, web, 1)
		Expect(getWeb(ctx).Spec.Template.Annotations).To(BeEmpty())

		set(ctx, "app-config", "LOG_LEVEL", "trace")
		expectRestarts(ctx, web, 2)
		Expect(web.Marks()[1]).To(HavePrefix("web=2-"))
	})

	It("isn't repeated when kubectl replace puts an older manifest in place (E10)", func(ctx SpecContext) {
		web := begin(ctx, utils.MakeDeployment("web"))
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		expectRestarts(ctx, web, 1)
		older := getWeb(ctx)
		set(ctx, "app-config", "LOG_LEVEL", "trace")
		expectRestarts(ctx, web, 2)

		older.APIVersion, older.Kind = "apps/v1", deployment
		older.ResourceVersion = ""
		kubectl(ctx, older, "replace", "-f", "-")
		expectRestarts(ctx, web, 2)
		Expect(getWeb(ctx).Spec.Template.Annotations).To(HaveKeyWithValue(webMark, HavePrefix("1-")))
		set(ctx, "app-config", "LOG_LEVEL", "warn")
		expectRestarts(ctx, web, 3)
		Expect(web.Marks()[2]).To(HavePrefix("web=3-"))
	})

	It("takes no notice of an annotation that it can't have written (E10)", func(ctx SpecContext) {
		web := begin(ctx, utils.MakeDeployment("web"))
		change(ctx, utils.MakeDeployment("web").Namespace(namespace).Obj(), func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{webMark: "by hand"}
		})
		settle(ctx)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(web.Marks).Should(ContainElement(HavePrefix("web=1-")))
		settle(ctx)
		Consistently(web.Marks).Should(HaveLen(2), "the one by hand, and one restart")
	})

	It("takes no notice of the annotation of another tool, which this one's predecessor used", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(),
			utils.MakeDeployment("web").Annotation("configwatch.ktechhub.io/configmap", "app-config").Obj())
		mark := since()
		before := getWeb(ctx)
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		settle(ctx)
		Consistently(func() int64 { return getWeb(ctx).Generation }).Should(Equal(before.Generation))
		Expect(requestsOf(utils.ManagerUser, mark)).To(BeEmpty())
	})
})

var _ = Describe("A target that can't be restarted (E4, E11)", func() {
	It("holds up no other, says why, and is restarted once it can be", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj())
		targets := map[string]*utils.Restarts{}
		b := utils.MakeConfigWatch("all").ConfigMap("app-config")
		for _, name := range []string{"a", "stubborn", "z"} {
			create(ctx, utils.MakeDeployment(name).Obj())
			targets[name] = restartsOf(ctx, deployment, name)
			b = b.Target(deployment, name)
		}
		establish(ctx, b)
		recorded := row(ctx, "all", deployment, "stubborn").Sources
		allow := refuse(ctx, "stubborn")

		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(row).WithArguments(ctx, "all", deployment, "stubborn").Should(SatisfyAll(
			HaveField("State", v1alpha1.TargetPending), HaveField("Reason", v1alpha1.ReasonRestartFailed),
			HaveField("Message", SatisfyAll(HavePrefix("ConfigMap app-config changed (LOG_LEVEL). The restart is tried again: "), ContainSubstring("not today"))),
			HaveField("Sources", Equal(recorded)), HaveField("Restarts", BeZero())))
		expectRestarts(ctx, targets["a"], 1)
		expectRestarts(ctx, targets["z"], 1)
		Expect(condition(ctx, "all", v1alpha1.ConditionReady)).To(SatisfyAll(
			HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("not today"))))
		Eventually(notes).WithArguments(ctx, v1alpha1.EventRestartFailed).Should(ConsistOf(SatisfyAll(
			HavePrefix("ConfigWatch: Deployment "+namespace+"/stubborn was not restarted: "), ContainSubstring("not today"))))

		By("restarting it when the API server takes the patch again, and no other")
		allow()
		expectRestarts(ctx, targets["stubborn"], 1)
		Eventually(row).WithArguments(ctx, "all", deployment, "stubborn").Should(SatisfyAll(
			HaveField("State", v1alpha1.TargetRollingOut), HaveField("Message", "ConfigMap app-config changed (LOG_LEVEL)"),
			HaveField("Restarts", int64(1))))
		expectRestarts(ctx, targets["a"], 1)
		expectRestarts(ctx, targets["z"], 1)
	})

	It("doesn't lose a change that comes while it waits, and makes one restart of both", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj(), utils.MakeDeployment("stubborn").Obj())
		establish(ctx, utils.MakeConfigWatch("all").ConfigMap("app-config").Target(deployment, "stubborn"))
		stubborn := restartsOf(ctx, deployment, "stubborn")
		allow := refuse(ctx, "stubborn")
		for _, level := range []string{"debug", "trace"} {
			before := sourceRow(ctx, "all", v1alpha1.ConfigMap, "app-config").Hash
			set(ctx, "app-config", "LOG_LEVEL", level)
			Eventually(sourceRow).WithArguments(ctx, "all", v1alpha1.ConfigMap, "app-config").ShouldNot(HaveField("Hash", before))
		}
		allow()
		expectRestarts(ctx, stubborn, 1)
		Eventually(row).WithArguments(ctx, "all", deployment, "stubborn").Should(HaveField("Sources",
			ConsistOf(HaveField("AppliedHash", sourceRow(ctx, "all", v1alpha1.ConfigMap, "app-config").Hash))))
	})
})

// ownedFields are the leaves that the manager owns of a Deployment.
func ownedFields(d *appsv1.Deployment) []string {
	GinkgoHelper()
	var paths []string
	var walk func(path string, fields map[string]any)
	walk = func(path string, fields map[string]any) {
		for key, value := range fields {
			below, _ := value.(map[string]any)
			switch name := strings.TrimPrefix(key, "f:"); {
			case key == ".": // the map itself, made because there was none
			case len(below) == 0:
				paths = append(paths, path+name)
			default:
				walk(path+name+".", below)
			}
		}
	}
	for _, entry := range d.ManagedFields {
		if entry.Manager != v1alpha1.FieldManager {
			continue
		}
		fields := map[string]any{}
		Expect(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields)).To(Succeed())
		walk("", fields)
	}
	return paths
}

// refuse makes the API server refuse changes of one Deployment, until the result is called.
func refuse(ctx context.Context, name string) (allow func()) {
	GinkgoHelper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse-" + namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("object.metadata.name != %q", name), Message: "not today"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse-" + namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policy.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace},
			}},
		},
	}
	Expect(k8sClient.Create(ctx, policy)).To(Succeed())
	Expect(k8sClient.Create(ctx, binding)).To(Succeed())
	Eventually(func() error {
		d := reload(ctx, utils.MakeDeployment(name).Namespace(namespace).Obj())
		d.Spec.MinReadySeconds = 1
		return k8sClient.Update(ctx, d, client.DryRunAll)
	}).Should(MatchError(ContainSubstring("not today")), "the policy is in force")
	return func() {
		Expect(k8sClient.Delete(ctx, binding, &client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})).To(Succeed())
		Expect(k8sClient.Delete(ctx, policy)).To(Succeed())
	}
}

// kubectl runs the real one in the test's namespace, with an object as its input.
func kubectl(ctx context.Context, input any, args ...string) string {
	GinkgoHelper()
	stdin, err := json.Marshal(input)
	Expect(err).NotTo(HaveOccurred())
	args = append([]string{"--kubeconfig", plane.Kubeconfig(), "--namespace", namespace}, args...)
	command := exec.CommandContext(ctx, plane.Program(controlplane.Kubectl), args...)
	command.Stdin = strings.NewReader(string(stdin))
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}
