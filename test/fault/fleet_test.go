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

package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/workload"
	"github.com/ktechhub/configwatch/test/utils"
)

// rolled names the ConfigWatch of a fleet.
const rolled = "fleet"

// fleet is a namespace with Deployments of one pod each, that share a ConfigMap and a Secret, and a ConfigWatch
// that rolls them. Their rollouts are complete when the test says so.
type fleet struct {
	utils.Namespace

	names    []string
	history  *history
	rollouts *utils.Rollouts
	restarts map[string]*utils.Restarts
}

// openFleet makes a fleet whose rollouts are complete.
func openFleet(ctx context.Context, rollout v1alpha1.RolloutSpec, names ...string) *fleet {
	GinkgoHelper()
	namespace, err := utils.NewNamespace(ctx, k8sClient)
	Expect(err).NotTo(HaveOccurred())
	f := &fleet{Namespace: namespace, names: names, restarts: map[string]*utils.Restarts{}}
	Expect(f.Create(ctx, utils.MakeConfigMap(shared).Data(key, "first").Obj(), utils.MakeSecret(shared).Data(key, canary+"-first").Obj())).To(Succeed())
	cw := utils.MakeConfigWatch(rolled).Rollout(rollout)
	for _, name := range names {
		Expect(f.Create(ctx, utils.MakeDeployment(name).EnvFromConfigMap(shared).EnvFromSecret(shared).Obj())).To(Succeed())
		f.finish(ctx, name)
		cw = cw.Target(workload.Deployment, name)
	}
	Expect(f.Create(ctx, cw.Obj())).To(Succeed())
	DeferCleanup(k8sClient.Delete, cw.Obj())
	f.watch(ctx)
	return f
}

// watch records what happens from now on.
func (f *fleet) watch(ctx context.Context) {
	GinkgoHelper()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	var err error
	f.rollouts, err = utils.WatchRollouts(watching, k8sClient, f.Name)
	Expect(err).NotTo(HaveOccurred())
	for _, name := range f.names {
		f.restarts[name], err = utils.WatchRestarts(watching, k8sClient, workload.Deployment, f.Name, name)
		Expect(err).NotTo(HaveOccurred())
	}
	f.history = recordHistory(ctx, f.Name)
}

// change gives a source a content that it never had.
func (f *fleet) change(ctx context.Context, kind v1alpha1.SourceKind) {
	GinkgoHelper()
	setSource(ctx, f.Name, kind, shared, fmt.Sprint(values.Add(1)))
}

// edit changes spec.rollout.
func (f *fleet) edit(ctx context.Context, how func(*v1alpha1.RolloutSpec)) {
	GinkgoHelper()
	cw := utils.MakeConfigWatch(rolled).Namespace(f.Name).Obj()
	Expect(utils.Change(ctx, k8sClient, cw, func(cw *v1alpha1.ConfigWatch) { how(&cw.Spec.Rollout) })).To(Succeed())
}

// annotate sets an annotation of the ConfigWatch.
func (f *fleet) annotate(ctx context.Context, annotation, value string) {
	GinkgoHelper()
	cw := utils.MakeConfigWatch(rolled).Namespace(f.Name).Obj()
	Expect(utils.Change(ctx, k8sClient, cw, func(cw *v1alpha1.ConfigWatch) {
		cw.Annotations = map[string]string{annotation: value}
	})).To(Succeed())
}

// finish completes the rollout of a Deployment.
func (f *fleet) finish(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(utils.FinishRollout(ctx, k8sClient, f.Name, name)).To(Succeed())
}

// row is that of a Deployment.
func (f *fleet) row(ctx context.Context, name string) (v1alpha1.TargetStatus, error) {
	return f.Row(ctx, rolled, workload.Deployment, name)
}

// await waits until the rows of all have a reason.
func (f *fleet) await(ctx context.Context, reason string) {
	GinkgoHelper()
	for _, name := range f.names {
		Eventually(f.row).WithContext(ctx).WithArguments(name).WithTimeout(time.Minute).Should(HaveField("Reason", reason), name)
	}
}

// roll completes rollouts once they are recorded, in the order of the spec, until all have been restarted so many
// times.
func (f *fleet) roll(ctx context.Context, times int) {
	GinkgoHelper()
	for _, name := range f.names {
		Eventually(f.row).WithContext(ctx).WithArguments(name).WithTimeout(time.Minute).Should(And(
			HaveField("Reason", v1alpha1.ReasonRolloutInProgress), HaveField("Restarts", int64(times))), name)
		f.finish(ctx, name)
	}
	Eventually(ctx, f.check).WithArguments(times).WithTimeout(time.Minute).Should(Succeed())
}

// check is nil if all have been restarted so many times, which is recorded, and are up to date.
func (f *fleet) check(ctx context.Context, times int) error {
	for _, name := range f.names {
		row, err := f.row(ctx, name)
		if err != nil {
			return err
		}
		d := utils.MakeDeployment(name).Namespace(f.Name).Obj()
		if err := utils.Reload(ctx, k8sClient, d); err != nil {
			return err
		}
		switch marks := f.restarts[name].Marks(); {
		case len(marks) > times || d.Generation-1 > int64(times):
			return StopTrying(fmt.Sprintf("%s: doubled: %d restarts, %v", name, d.Generation-1, marks))
		case len(marks) < times:
			return fmt.Errorf("%s: missed so far: %v", name, marks)
		case row.Restarts != int64(times):
			return fmt.Errorf("%s: its row says %d restarts, not %d", name, row.Restarts, times)
		case row.State != v1alpha1.TargetUpToDate || row.Wait != nil || row.Rollout != nil:
			return fmt.Errorf("%s: it is %s, %s: %s", name, row.State, row.Reason, row.Message)
		}
	}
	return nil
}

// patched are the times at which patches of Deployments were sent through proxies, since a time.
func patched(since time.Time, proxies ...*proxy) map[string][]time.Time {
	times := map[string][]time.Time{}
	for _, p := range proxies {
		for _, s := range p.seenSince(patchDeployments, since) {
			times[s.name] = append(times[s.name], s.at)
		}
	}
	return times
}

// expectPatches checks that each Deployment of a fleet was patched, and never before a time that is its own.
func (f *fleet) expectPatches(sent map[string][]time.Time, notBefore func(name string) time.Time) {
	GinkgoHelper()
	for _, name := range f.names {
		Expect(sent[name]).NotTo(BeEmpty(), name)
		Expect(sent[name]).To(HaveEach(BeTemporally(">=", notBefore(name))), name)
	}
}

// expectCanary checks that no value of a Secret is in an Event or in the ConfigWatch. The logs are searched when
// all tests are over.
func (f *fleet) expectCanary(ctx context.Context) {
	GinkgoHelper()
	var events corev1.EventList
	var configWatches v1alpha1.ConfigWatchList
	Expect(errors.Join(
		k8sClient.List(ctx, &events, client.InNamespace(f.Name)), k8sClient.List(ctx, &configWatches, client.InNamespace(f.Name)))).To(Succeed())
	Expect(fmt.Sprint(configWatches.Items)).To(And(ContainSubstring(shared), Not(ContainSubstring(canary))))
	Expect(fmt.Sprint(events.Items)).NotTo(ContainSubstring(canary))
}
