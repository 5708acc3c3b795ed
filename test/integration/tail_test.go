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
	"encoding/json"
	"os/exec"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/hack/controlplane"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("kubectl configwatch tail", Ordered, func() {
	const user = "system:serviceaccount:default:developer" // no such account has to exist
	var plugin string

	BeforeAll(func(ctx SpecContext) {
		var err error
		plugin, err = utils.BuildPlugin(ctx)
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(10*time.Minute))

	// tail runs it as the user, in the test's namespace, until the test ends.
	tail := func(args ...string) *gexec.Session {
		GinkgoHelper()
		args = append([]string{"tail", "--kubeconfig", plane.Kubeconfig(), "--as", user, "-n", namespace}, args...)
		session, err := gexec.Start(exec.Command(plugin, args...), GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { session.Kill().Wait() })
		return session
	}
	// watching is tail, when it has read everything.
	watching := func(args ...string) *gexec.Session {
		GinkgoHelper()
		session := tail(args...)
		Eventually(session.Err).Should(gbytes.Say("Watching "))
		return session
	}
	// lines are what a session wrote, without the times.
	lines := func(session *gexec.Session) []string {
		var found []string
		for line := range strings.Lines(string(session.Out.Contents())) {
			_, after, _ := strings.Cut(strings.TrimSpace(line), " ")
			found = append(found, strings.Join(strings.Fields(after), " "))
		}
		return found
	}
	// grant lets the user do what the verbs say, and waits until the API server knows it.
	grant := func(ctx SpecContext, resource string, verbs ...string) {
		GinkgoHelper()
		create(ctx, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: resource},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}},
		}, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: resource},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: resource},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
		Eventually(func() error {
			return exec.CommandContext(ctx, plane.Program(controlplane.Kubectl), "--kubeconfig", plane.Kubeconfig(), "--as", user,
				"-n", namespace, "auth", "can-i", verbs[len(verbs)-1], resource).Run()
		}).Should(Succeed())
	}

	It("needs the rights to list and watch, shows keys and no values, and ends with 0 on Ctrl-C (F10)", func(ctx SpecContext) {
		grant(ctx, "configmaps", "list", "watch")
		grant(ctx, "secrets", "list", "watch")
		create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj())
		session := watching()
		create(ctx, utils.MakeSecret("credentials").Data("password", "canary-1").Obj())
		Eventually(lines).WithArguments(session).Should(HaveLen(1))
		setSecret(ctx, "credentials", "password", "canary-2")
		Eventually(lines).WithArguments(session).Should(HaveLen(2))
		change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) { c.Labels = map[string]string{"a": "b"} })
		set(ctx, "app-config", "LOG_LEVEL", "canary-3")
		Eventually(lines).WithArguments(session).Should(HaveLen(3))
		Expect(k8sClient.Delete(ctx, configMap("app-config"))).To(Succeed())
		Eventually(lines).WithArguments(session).Should(HaveExactElements(
			"Added Secret "+namespace+"/credentials (password)",
			"Modified Secret "+namespace+"/credentials (password)",
			"Modified ConfigMap "+namespace+"/app-config (LOG_LEVEL)",
			"Deleted ConfigMap "+namespace+"/app-config (LOG_LEVEL)",
		))
		Expect(string(session.Out.Contents())).NotTo(ContainSubstring("canary"))

		session.Interrupt()
		Eventually(session).Should(gexec.Exit(0))
	})

	It("names the permission that is missing (F10)", func(ctx SpecContext) {
		grant(ctx, "configmaps", "list", "watch")
		grant(ctx, "secrets", "list")
		session := tail()
		Eventually(session).Should(gexec.Exit(1))
		Expect(session.Err).To(gbytes.Say("error: no permission to watch Secrets in namespace %s; --kind ConfigMap leaves Secrets out", namespace))

		alone := watching("--kind", "ConfigMap")
		create(ctx, utils.MakeConfigMap("app-config").Obj())
		Eventually(lines).WithArguments(alone).Should(HaveExactElements("Added ConfigMap " + namespace + "/app-config"))
	})

	It("begins with what is there, and follows labels as a watch does (F4, F10)", func(ctx SpecContext) {
		grant(ctx, "configmaps", "list", "watch")
		create(ctx,
			utils.MakeConfigMap("web").Label("app", "demo").Data("a", "1").Obj(),
			utils.MakeConfigMap("other").Data("a", "1").Obj())
		session := watching("-l", "app=demo", "--kind=ConfigMap", "--initial")
		counts := watching("-l", "app=demo", "--kind=ConfigMap", "--count")
		change(ctx, configMap("other"), func(c *corev1.ConfigMap) { c.Labels = map[string]string{"app": "demo"} })
		set(ctx, "other", "a", "2")
		change(ctx, configMap("web"), func(c *corev1.ConfigMap) { c.Labels = nil })
		Eventually(lines).WithArguments(session).Should(HaveExactElements(
			"Present ConfigMap "+namespace+"/web (a)", "Synced all that is there has been read",
			"Added ConfigMap "+namespace+"/other (a)", "Modified ConfigMap "+namespace+"/other (a)",
			"Deleted ConfigMap "+namespace+"/web (a)"))
		Eventually(lines).WithArguments(counts).Should(ContainElement(
			"1 ConfigMaps, 0 Secrets; 1 added, 1 modified, 1 deleted, 0 lost"))
	})

	It("writes CloudEvents (F10)", func(ctx SpecContext) {
		grant(ctx, "configmaps", "list", "watch")
		session := watching("--kind=ConfigMap", "-o", "json")
		create(ctx, utils.MakeConfigMap("app-config").Obj())
		Eventually(session.Out).Should(gbytes.Say("\n"))
		var e event.Event
		Expect(json.Unmarshal(session.Out.Contents(), &e)).To(Succeed())
		made := reload(ctx, configMap("app-config"))
		Expect(e.ID()).To(Equal(string(made.UID) + "/" + made.ResourceVersion))
		Expect(e.Source()).To(Equal("/namespaces/" + namespace + "/configmaps/app-config"))
	})
})
