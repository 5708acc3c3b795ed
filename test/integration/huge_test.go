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
	"crypto/rand"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("Sources at their limits", func() {
	// limit is what the API server lets keys and values take together.
	const limit = corev1.MaxSecretSize

	It("restarts once for one byte of a ConfigMap of 1 MiB", func(ctx SpecContext) {
		create(ctx, utils.MakeConfigMap("huge").Data("k", strings.Repeat("x", limit-1)).Obj(), utils.MakeDeployment("web").Obj())
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("huge").Target(deployment, "web"))
		web := restartsOf(ctx, deployment, "web")
		set(ctx, "huge", "k", strings.Repeat("x", limit-2)+"y")
		expectRestarts(ctx, web, 1)
	})

	It("restarts once for one of 10,000 keys, and names it", func(ctx SpecContext) {
		many := utils.MakeConfigMap("many")
		for n := range 10_000 {
			many = many.Data(fmt.Sprintf("key-%05d", n), "v")
		}
		create(ctx, many.Obj(), utils.MakeDeployment("web").Obj())
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("many").Target(deployment, "web"))
		web := restartsOf(ctx, deployment, "web")
		set(ctx, "many", "key-07777", "w")
		expectRestarts(ctx, web, 1)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Message", "ConfigMap many changed (key-07777)"))
		change(ctx, configMap("many"), func(c *corev1.ConfigMap) { c.Data = nil })
		expectRestarts(ctx, web, 2)
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Message", "ConfigMap many changed (key-00000, key-00001, key-00002, +9997 keys)"))
	})

	It("restarts once for binaryData that is no text", func(ctx SpecContext) {
		blob := make([]byte, 100<<10)
		_, _ = rand.Read(blob) // never fails
		create(ctx, utils.MakeConfigMap("blob").BinaryData("blob", blob).Obj(), utils.MakeDeployment("web").Obj())
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("blob").Target(deployment, "web"))
		web := restartsOf(ctx, deployment, "web")
		change(ctx, configMap("blob"), func(c *corev1.ConfigMap) { c.BinaryData["blob"][len(blob)-1]++ })
		expectRestarts(ctx, web, 1)
	})

	It("works with names as long as they may be", func(ctx SpecContext) {
		long := strings.Repeat("a.b-", 63) + "c"
		watch := strings.Repeat("w", 63)
		create(ctx, utils.MakeConfigMap(long).Data(strings.Repeat("K", 253), "v").Obj())
		d := utils.MakeDeployment("web").Obj()
		d.Name = long
		create(ctx, d)
		establish(ctx, utils.MakeConfigWatch(watch).ConfigMap(long).Target(deployment, long))
		web := restartsOf(ctx, deployment, long)
		set(ctx, long, strings.Repeat("K", 253), "w")
		expectRestarts(ctx, web, 1)
		Eventually(notes).WithArguments(ctx, "RestartTriggered").Should(HaveLen(2))
	})
})
