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
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("A decision", func() {
	BeforeEach(func(ctx SpecContext) {
		create(ctx,
			utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Data("a", "1").Data("b", "1").Data("c", "1").Obj(),
			utils.MakeSecret("credentials").Data("password", "before").Obj(),
			utils.MakeDeployment("web").EnvFromConfigMap("app-config").EnvFromSecret("credentials").Obj())
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
	})

	It("is told by the row, an Event on the ConfigWatch, one on the workload, and one log line (E27)", func(ctx SpecContext) {
		logged := len(manager.Log())
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		const cause = "ConfigMap app-config changed (LOG_LEVEL)"
		note := "Restarted Deployment " + namespace + "/web: " + cause
		Eventually(notes).WithArguments(ctx, v1alpha1.EventRestartTriggered).Should(ConsistOf("ConfigWatch: "+note, "Deployment: "+note))
		Expect(row(ctx, "web", deployment, "web")).To(SatisfyAll(HaveField("Message", cause), HaveField("LastRestartTime", Not(BeNil()))))
		Expect(condition(ctx, "web", v1alpha1.ConditionReconciling).Message).To(
			Equal("1 rolling out of 1 target: Deployment web: " + cause))

		cw := reload(ctx, utils.MakeConfigWatch("web").Namespace(namespace).Obj())
		web := reload(ctx, utils.MakeDeployment("web").Namespace(namespace).Obj())
		events := &eventsv1.EventList{}
		Expect(k8sClient.List(ctx, events, client.InNamespace(namespace))).To(Succeed())
		for _, e := range events.Items {
			Expect(e).To(SatisfyAll(HaveField("Type", corev1.EventTypeNormal), HaveField("Action", v1alpha1.ActionRestart),
				HaveField("ReportingController", "configwatch")))
			about, related := e.Regarding, *e.Related
			if about.Kind == deployment {
				about, related = related, about
			}
			Expect(about).To(SatisfyAll(HaveField("Kind", "ConfigWatch"), HaveField("Name", "web"), HaveField("UID", cw.UID)))
			Expect(related).To(SatisfyAll(HaveField("Kind", deployment), HaveField("Name", "web"), HaveField("UID", web.UID)))
		}

		var lines []map[string]any
		for line := range strings.Lines(manager.Log()[logged:]) {
			entry := map[string]any{}
			if strings.Contains(line, namespace) && json.Unmarshal([]byte(line), &entry) == nil {
				lines = append(lines, entry)
			}
		}
		Expect(lines).To(HaveLen(1))
		Expect(lines[0]).To(SatisfyAll(HaveKeyWithValue("msg", note), HaveKeyWithValue("level", "info"),
			HaveKeyWithValue("reason", v1alpha1.EventRestartTriggered), HaveKeyWithValue("namespace", namespace), HaveKeyWithValue("name", "web")))
	})

	It("names sources and changed keys, a few of many, and no value (E27)", func(ctx SpecContext) {
		change(ctx, utils.MakeConfigWatch("web").Namespace(namespace).Obj(), func(cw *v1alpha1.ConfigWatch) {
			cw.Spec.Mode = v1alpha1.ModeSuspended
		})
		settle(ctx)
		change(ctx, configMap("app-config"), func(c *corev1.ConfigMap) {
			c.Data = map[string]string{"LOG_LEVEL": "debug", "a": "2", "b": "2", "d": "new"}
		})
		setSecret(ctx, "credentials", "password", "after")
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Message",
			"ConfigMap app-config changed (LOG_LEVEL, a, b, +2 keys); Secret credentials changed (password)"))
	})

	It("costs one status write a pass, and a steady state costs no request at all (E28)", func(ctx SpecContext) {
		names := []string{"one", "two", "three"}
		b := utils.MakeConfigWatch("many").ConfigMap("app-config")
		for _, name := range names {
			create(ctx, utils.MakeDeployment(name).Obj())
			b = b.Target(deployment, name)
		}
		Expect(k8sClient.Delete(ctx, utils.MakeConfigWatch("web").Namespace(namespace).Obj())).To(Succeed())
		establish(ctx, b)
		mark := since()
		set(ctx, "app-config", "LOG_LEVEL", "debug")
		Eventually(notes).WithArguments(ctx, v1alpha1.EventRestartTriggered).Should(HaveLen(2 * len(names)))
		settle(ctx)
		Expect(requestsOf(utils.ManagerUser, mark)).To(ConsistOf(
			"update configwatches/status (configwatch.ktechhub.io) "+namespace+"/many: 200",
			HavePrefix("patch deployments"), HavePrefix("patch deployments"), HavePrefix("patch deployments"),
			HavePrefix("create events"), HavePrefix("create events"), HavePrefix("create events"),
			HavePrefix("create events"), HavePrefix("create events"), HavePrefix("create events"),
		))

		mark = since()
		Consistently(idleRequests).WithArguments(mark).WithTimeout(steadyWhile).Should(BeEmpty())
	})
})
