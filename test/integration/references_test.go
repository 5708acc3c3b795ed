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

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("References of a pod template (E20)", func() {
	reference := corev1.LocalObjectReference{Name: "used"}
	container := func(c corev1.Container) corev1.Container {
		c.Name, c.Image = "other", "other"
		return c
	}
	volume := func(v corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "v", VolumeSource: v}} }
	}
	env := func(from corev1.EnvVarSource) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: "KEY", ValueFrom: &from}}
	}
	changeUsed := func(ctx context.Context) {
		set(ctx, "used", "key", "after")
		setSecret(ctx, "used", "key", "after")
	}
	begin := func(ctx context.Context, object client.Object) {
		create(ctx, utils.MakeConfigMap("used").Data("key", "before").Obj(), utils.MakeSecret("used").Data("key", "before").Obj(), object)
	}

	DescribeTable("that count: restarts once when the source changes, for",
		func(ctx SpecContext, use func(*corev1.PodSpec)) {
			begin(ctx, utils.MakeDeployment("web").Pod(use).Obj())
			establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
			web := restartsOf(ctx, deployment, "web")
			Expect(status(ctx, "web").Sources).To(ConsistOf(HaveField("Name", "used")))
			changeUsed(ctx)
			expectRestarts(ctx, web, 1)
		},
		Entry("env of a ConfigMap's key", func(p *corev1.PodSpec) {
			p.Containers[0].Env = env(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: reference, Key: "key"}})
		}),
		Entry("env of a Secret's key, optional", func(p *corev1.PodSpec) {
			p.Containers[0].Env = env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: reference, Key: "key", Optional: new(true),
			}})
		}),
		Entry("envFrom a ConfigMap with a prefix", func(p *corev1.PodSpec) {
			p.Containers[0].EnvFrom = []corev1.EnvFromSource{{Prefix: "APP_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference}}}
		}),
		Entry("envFrom a Secret in an init container", func(p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{container(corev1.Container{EnvFrom: []corev1.EnvFromSource{{
				SecretRef: &corev1.SecretEnvSource{LocalObjectReference: reference},
			}}})}
		}),
		Entry("env in a native sidecar", func(p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{container(corev1.Container{
				RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
				Env:           env(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: reference, Key: "key"}}),
			})}
		}),
		Entry("env in a second container", func(p *corev1.PodSpec) {
			p.Containers = append(p.Containers, container(corev1.Container{
				Env: env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: reference, Key: "key"}}),
			}))
		}),
		Entry("a volume of a ConfigMap", volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: reference}})),
		Entry("a volume of a Secret", volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "used"}})),
		Entry("a projected ConfigMap", volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{DownwardAPI: &corev1.DownwardAPIProjection{}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: reference}},
		}}})),
		Entry("a projected Secret", volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: reference}},
		}}})),
	)

	DescribeTable("that are no configuration: doesn't restart for",
		func(ctx SpecContext, use func(*corev1.PodSpec)) {
			begin(ctx, utils.MakeDeployment("web").EnvFromConfigMap("app-config").Pod(use).Obj())
			create(ctx, utils.MakeConfigMap("app-config").Data("key", "before").Obj())
			establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
			web := restartsOf(ctx, deployment, "web")
			Expect(status(ctx, "web").Sources).To(ConsistOf(HaveField("Name", "app-config")))
			changeUsed(ctx)
			expectRestarts(ctx, web, 0)
		},
		Entry("imagePullSecrets", func(p *corev1.PodSpec) { p.ImagePullSecrets = []corev1.LocalObjectReference{reference} }),
		Entry("a service account's token", volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		}}})),
		Entry("the credentials of a volume's driver", volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: "csi.example.com", NodePublishSecretRef: &reference,
		}})),
	)

	It("says that a SecretProviderClass is not watched", func(ctx SpecContext) {
		begin(ctx, utils.MakeDeployment("web").EnvFromConfigMap("used").Pod(volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": "vault"},
		}})).Obj())
		establish(ctx, utils.MakeConfigWatch("web").Target(deployment, "web"))
		Eventually(row).WithArguments(ctx, "web", deployment, "web").Should(HaveField("Message", HaveSuffix("SecretProviderClass vault is not watched")))
	})

	It("finds every kind of workload that uses a source, without being told", func(ctx SpecContext) {
		begin(ctx, utils.MakeDeployment("web").EnvFromConfigMap("used").Obj())
		create(ctx, utils.MakeStatefulSet("cache").EnvFromConfigMap("used").Obj(), utils.MakeDaemonSet("proxy").EnvFromConfigMap("used").Obj(),
			utils.MakeDeployment("bystander").EnvFromSecret("used").Obj())
		establish(ctx, utils.MakeConfigWatch("ca-bundle").ConfigMap("used"))
		Eventually(status).WithArguments(ctx, "ca-bundle").Should(HaveField("Targets", HaveLen(3)))
		web, cache, proxy := restartsOf(ctx, deployment, "web"), restartsOf(ctx, statefulSet, "cache"), restartsOf(ctx, daemonSet, "proxy")
		bystander := restartsOf(ctx, deployment, "bystander")
		changeUsed(ctx)
		for _, restarts := range []*utils.Restarts{web, cache, proxy} {
			expectRestarts(ctx, restarts, 1)
		}
		expectRestarts(ctx, bystander, 0)
	})

	It("follows only what a target uses, where that is wanted", func(ctx SpecContext) {
		begin(ctx, utils.MakeDeployment("web").EnvFromConfigMap("used").Obj())
		create(ctx, utils.MakeDeployment("declared").Obj())
		establish(ctx, utils.MakeConfigWatch("web").ConfigMap("used").Secret("used").
			Target(deployment, "web").Follow("Referenced").Target(deployment, "declared"))
		web, declared := restartsOf(ctx, deployment, "web"), restartsOf(ctx, deployment, "declared")
		setSecret(ctx, "used", "key", "after")
		expectRestarts(ctx, declared, 1)
		expectRestarts(ctx, web, 0)
		set(ctx, "used", "key", "after")
		expectRestarts(ctx, declared, 2)
		expectRestarts(ctx, web, 1)
	})
})
