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
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/hashkey"
	"github.com/ktechhub/configwatch/test/utils"
)

// hashKey is the Secret with the key under which Secrets are hashed.
func hashKey(ctx context.Context) *corev1.Secret {
	return reload(ctx, utils.MakeSecret(hashkey.SecretName).Namespace(utils.ManagerNamespace).Obj())
}

var _ = Describe("The key of Secrets' hashes", func() {
	var web *utils.Restarts

	BeforeEach(func(ctx SpecContext) {
		create(ctx, utils.MakeSecret("credentials").Data("password", "before").Obj(), utils.MakeConfigMap("app-config").Data("k", "v").Obj(),
			utils.MakeDeployment("web").EnvFromSecret("credentials").EnvFromConfigMap("app-config").Obj())
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
		web = restartsOf(ctx, deployment, "web")
	})

	It("is what a Secret's hash needs, and a ConfigMap's doesn't (E2)", func(ctx SpecContext) {
		key := hashKey(ctx).Data[hashkey.DataKey]
		Expect(key).To(HaveLen(32))
		data := map[string][]byte{"password": []byte("before")}
		Expect(sourceRow(ctx, "web", v1alpha1.Secret, "credentials").Hash).To(SatisfyAll(
			Equal(string(digest.Keyed(key).SecretContent(data).Hash(nil))),
			Not(HaveSuffix(string(digest.Plain().SecretContent(data).Hash(nil))[2:]))))
		Expect(sourceRow(ctx, "web", v1alpha1.ConfigMap, "app-config").Hash).To(
			Equal(string(digest.Plain().Content(map[string]string{"k": "v"}, nil).Hash(nil))))
	})

	It("is made once, even by two managers that start at once, and is the same at each start (E2)", func(ctx SpecContext) {
		recorded := func() string { return sourceRow(ctx, "web", v1alpha1.Secret, "credentials").Hash }
		before := recorded()
		insteadOfManager()
		Expect(k8sClient.Delete(ctx, hashKey(ctx))).To(Succeed())
		mark := since()
		one, two := launch(kubeconfig, "--leader-elect=true"), launch(kubeconfig, "--leader-elect=true")
		DeferCleanup(one.Stop)
		DeferCleanup(two.Stop)
		Expect(one.WaitReady(ctx)).To(Succeed())
		Expect(two.WaitReady(ctx)).To(Succeed())
		made, err := audit.Since(mark, func(r utils.Request) bool {
			return r.Resource == "secrets" && r.Verb == "create" && r.Namespace == utils.ManagerNamespace && r.Code == http.StatusCreated
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(made).To(HaveLen(1))
		key := hashKey(ctx).Data[hashkey.DataKey]

		Eventually(recorded).ShouldNot(Equal(before), "what changes before the new baseline is part of it (E3)")
		settle(ctx)
		setSecret(ctx, "credentials", "password", "after")
		expectRestarts(ctx, web, 1)
		one.Stop()
		two.Stop()
		three := run(ctx, kubeconfig)
		DeferCleanup(three.Stop)
		expectRestarts(ctx, web, 1)
		Expect(hashKey(ctx).Data).To(HaveKeyWithValue(hashkey.DataKey, key))
	})

	It("is put back when its Secret is deleted (E3)", func(ctx SpecContext) {
		before := hashKey(ctx)
		Expect(k8sClient.Delete(ctx, before.DeepCopy())).To(Succeed())
		Eventually(func() error {
			return k8sClient.Get(ctx, client.ObjectKeyFromObject(before), &corev1.Secret{})
		}).Should(Succeed())
		after := hashKey(ctx)
		Expect(after.UID).NotTo(Equal(before.UID))
		Expect(after.Data).To(Equal(before.Data))
		Expect(manager.Log()).To(ContainSubstring("Put the hash key back"))
		setSecret(ctx, "credentials", "password", "after")
		expectRestarts(ctx, web, 1)
	})

	It("ends the manager when it is replaced, which then starts with a new baseline and restarts nothing (E3)", func(ctx SpecContext) {
		insteadOfManager()
		m := run(ctx, kubeconfig)
		DeferCleanup(func() { m.Stop() })
		before := sourceRow(ctx, "web", v1alpha1.Secret, "credentials").Hash
		change(ctx, hashKey(ctx), func(s *corev1.Secret) { s.Data[hashkey.DataKey] = []byte("0123456789abcdef0123456789abcdef") })
		Eventually(m.Exited()).Should(BeClosed())
		Expect(m.Log()).To(ContainSubstring("was replaced"))

		m = run(ctx, kubeconfig)
		Eventually(notes).WithArguments(ctx, v1alpha1.EventNewBaseline).Should(ConsistOf(HavePrefix("ConfigWatch: The operator's hash key or hash format is another")))
		expectRestarts(ctx, web, 0)
		Expect(sourceRow(ctx, "web", v1alpha1.Secret, "credentials").Hash).NotTo(Equal(before))
		setSecret(ctx, "credentials", "password", "after")
		expectRestarts(ctx, web, 1)
	})

	It("keeps the manager from starting when it is no key, and says what to do", func(ctx SpecContext) {
		insteadOfManager()
		good := hashKey(ctx).Data
		DeferCleanup(func(ctx SpecContext) {
			change(ctx, hashKey(ctx), func(s *corev1.Secret) { s.Data = good })
		})
		change(ctx, hashKey(ctx), func(s *corev1.Secret) { s.Data = map[string][]byte{hashkey.DataKey: []byte("short")} })
		m := launch(kubeconfig)
		DeferCleanup(m.Kill)
		Eventually(m.Exited()).Should(BeClosed())
		Expect(m.Log()).To(ContainSubstring("Secret configwatch-hash-key needs 32 random bytes in data.key: delete it, and a new one is made"))
	})
})

var _ = Describe("The value of a Secret", func() {
	It("is nowhere but in the Secret, nor is what it could be guessed by (E2)", func(ctx SpecContext) {
		const canary, later = "canary-3c9a7f51e2", "canary-b85d06e4a7"
		insteadOfManager()
		address := freeAddress()
		m := run(ctx, kubeconfig, "--zap-log-level=10", "--metrics-bind-address="+address, "--metrics-secure=false")
		DeferCleanup(m.Stop)
		create(ctx, utils.MakeSecret("credentials").Data("password", canary).Obj(), utils.MakeConfigMap("app-config").Data("k", canary).Obj(),
			utils.MakeDeployment("web").EnvFromSecret("credentials").EnvFromConfigMap("app-config").Obj())
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
		web := restartsOf(ctx, deployment, "web")
		setSecret(ctx, "credentials", "password", later)
		expectRestarts(ctx, web, 1)
		set(ctx, "app-config", "k", later)
		expectRestarts(ctx, web, 2)
		m.Kill() // and once more, as a start lists everything
		again := run(ctx, kubeconfig, "--zap-log-level=10", "--metrics-bind-address="+address, "--metrics-secure=false")
		DeferCleanup(again.Stop)
		settle(ctx)

		told := map[string]string{
			"log": m.Log() + again.Log(), "metrics": get("http://" + address + "/metrics"), "Events": asJSON(ctx, &eventsv1.EventList{}),
			"ConfigWatches": asJSON(ctx, &v1alpha1.ConfigWatchList{}), "Deployments": asJSON(ctx, &appsv1.DeploymentList{}),
		}
		expectNone("log", told["log"], "Request Body") // which would be a dump, in which a value is hard to find
		expectNone("log", told["log"], "Response Body")
		key := string(hashKey(ctx).Data[hashkey.DataKey])
		for where, what := range told {
			Expect(what).To(ContainSubstring("web"), "there is something to search in the %s", where)
			for _, value := range []string{canary, later} {
				expectNoTrace(where, what, value)
				content := map[string][]byte{"password": []byte(value)}
				expectNone(where, what, string(digest.Plain().SecretContent(content).Hash(nil))[2:])
			}
			expectNoTrace(where, what, key)
		}
	})
})

// expectNoTrace checks that a text has no value as it is, nor as programs write it.
func expectNoTrace(where, text, value string) {
	GinkgoHelper()
	for _, form := range []string{
		value, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value)),
	} {
		expectNone(where, text, form)
	}
}

func expectNone(where, text, value string) {
	GinkgoHelper()
	Expect(text == "" || !strings.Contains(text, value)).To(BeTrue(), "%q is in the %s", value, where)
}

func asJSON(ctx context.Context, list client.ObjectList) string {
	GinkgoHelper()
	Expect(k8sClient.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	out, err := json.Marshal(list)
	Expect(err).NotTo(HaveOccurred())
	return string(out)
}

func get(url string) string {
	GinkgoHelper()
	response, err := http.Get(url)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}
