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
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/workload"
	"github.com/ktechhub/configwatch/test/utils"
)

const (
	// canary begins every value that is planted in a Secret. Its length is a multiple of 3, so that
	// base64 of the value begins with base64 of it.
	canary = "canary5ecret"

	// shared names the ConfigMap that several Deployments have in common, and their ConfigWatch.
	shared = "shared"
	// key is the key of every source that is changed.
	key = "setting"
)

// values makes each value another.
var values atomic.Int64

// shop is a namespace with Deployments, what they are configured by, and ConfigWatches. It counts the
// changes that are made, each of which calls for one restart.
type shop struct {
	namespace string
	own       []string // each with a ConfigMap, a Secret and a ConfigWatch of the same name
	sharing   []string // with the ConfigMap shared
	changes   map[string]int64
	total     int64
	calmAt    map[string]int64 // what changes was when the ConfigWatches were last made
}

// openShop makes a shop. Half of its Deployments have pods.
func openShop(ctx context.Context, own, sharing int) *shop {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	Expect(k8sClient.Create(ctx, namespace)).To(Succeed())
	s := &shop{namespace: namespace.Name, changes: map[string]int64{}, calmAt: map[string]int64{}}
	for i := range own {
		name := fmt.Sprintf("own-%d", i)
		s.own = append(s.own, name)
		s.create(ctx,
			utils.MakeConfigMap(name).Data(key, "first").Obj(),
			utils.MakeSecret(name).Data(key, canary+"-first").Obj(),
			utils.MakeDeployment(name).Replicas(int32(i%2)).EnvFromConfigMap(name).EnvFromSecret(name).Obj())
	}
	if sharing > 0 {
		s.create(ctx, utils.MakeConfigMap(shared).Data(key, "first").Obj())
	}
	for i := range sharing {
		name := fmt.Sprintf("%s-%d", shared, i)
		s.sharing = append(s.sharing, name)
		s.create(ctx, utils.MakeDeployment(name).Replicas(int32(i%2)).EnvFromConfigMap(shared).Obj())
	}
	s.create(ctx, s.configWatches()...)
	DeferCleanup(k8sClient.DeleteAllOf, &v1alpha1.ConfigWatch{}, client.InNamespace(s.namespace))
	return s
}

// configWatches are the shop's, as they are made.
func (s *shop) configWatches() []client.Object {
	var all []client.Object
	for _, name := range s.own {
		all = append(all, utils.MakeConfigWatch(name).Target(workload.Deployment, name).Obj())
	}
	if len(s.sharing) > 0 {
		all = append(all, utils.MakeConfigWatch(shared).ConfigMap(shared).Obj())
	}
	return all
}

func (s *shop) create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		object.SetNamespace(s.namespace)
		Expect(k8sClient.Create(ctx, object)).To(Succeed())
	}
}

// change gives a source a content that it never had, and counts that.
func (s *shop) change(ctx context.Context, kind v1alpha1.SourceKind, name string) {
	GinkgoHelper()
	s.set(ctx, kind, name, strconv.FormatInt(values.Add(1), 10))
	s.count(name)
}

// count counts a change of a source.
func (s *shop) count(name string) {
	s.total++
	if name != shared {
		s.changes[name]++
		return
	}
	for _, d := range s.sharing {
		s.changes[d]++
	}
}

// set gives a source a content.
func (s *shop) set(ctx context.Context, kind v1alpha1.SourceKind, name, value string) {
	GinkgoHelper()
	setSource(ctx, s.namespace, kind, name, value)
}

// setSource gives a source of a namespace a content.
func setSource(ctx context.Context, namespace string, kind v1alpha1.SourceKind, name, value string) {
	GinkgoHelper()
	var object client.Object = utils.MakeConfigMap(name).Namespace(namespace).Obj()
	if kind == v1alpha1.Secret {
		object = utils.MakeSecret(name).Namespace(namespace).Obj()
		value = base64.StdEncoding.EncodeToString([]byte(canary + "-" + value))
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data": {%q: %q}}`, key, value))
	Expect(k8sClient.Patch(ctx, object, patch)).To(Succeed())
}

// settle waits until every change has restarted its Deployments, each once, and is recorded.
func (s *shop) settle(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, s.check).Should(Succeed())
	if s.stirred() {
		s.calm(ctx)
	}
}

// stirred tells whether a few more changes would slow a Deployment down, which has more than 6 in 10 minutes
// then (E15).
func (s *shop) stirred() bool {
	const few = 4
	for name, changes := range s.changes {
		if changes-s.calmAt[name] >= few {
			return true
		}
	}
	return false
}

// calm makes the ConfigWatches anew, so that it is forgotten how often sources have changed. The restarts are
// still counted: by the marks (E8).
func (s *shop) calm(ctx context.Context) {
	GinkgoHelper()
	Expect(k8sClient.DeleteAllOf(ctx, &v1alpha1.ConfigWatch{}, client.InNamespace(s.namespace))).To(Succeed())
	s.create(ctx, s.configWatches()...)
	s.calmAt = maps.Clone(s.changes)
	Eventually(ctx, s.check).Should(Succeed())
}

// check is nil if every change has restarted its Deployments, each once, and is recorded.
func (s *shop) check(ctx context.Context) error {
	var deployments appsv1.DeploymentList
	var configWatches v1alpha1.ConfigWatchList
	err := errors.Join(
		k8sClient.List(ctx, &deployments, client.InNamespace(s.namespace)),
		k8sClient.List(ctx, &configWatches, client.InNamespace(s.namespace)))
	if err != nil {
		return err
	}
	byName := map[string]*v1alpha1.ConfigWatch{}
	for i := range configWatches.Items {
		byName[configWatches.Items[i].Name] = &configWatches.Items[i]
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		cw := byName[d.Name]
		if cw == nil {
			cw = byName[shared]
		}
		if err := s.checkDeployment(d, cw); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return nil
}

func (s *shop) checkDeployment(d *appsv1.Deployment, cw *v1alpha1.ConfigWatch) error {
	want, have := s.changes[d.Name], d.Generation-1
	if have > want {
		return StopTrying(fmt.Sprintf("%s: doubled: %d changes made %d restarts", d.Name, want, have))
	}
	if have < want {
		return fmt.Errorf("missed so far: %d changes made %d restarts", want, have)
	}
	mark := workload.ParseMark(d.Spec.Template.Annotations[v1alpha1.RestartAnnotationPrefix+cw.Name])
	row := rowOf(cw, d.Name)
	switch {
	case mark.Number != want:
		return fmt.Errorf("%d changes, but the mark says %s", want, mark)
	case row == nil:
		return errors.New("it has no row")
	case row.Restarts != want:
		return fmt.Errorf("%d changes, but its row says %d", want, row.Restarts)
	case row.State != v1alpha1.TargetUpToDate && row.State != v1alpha1.TargetRollingOut:
		return fmt.Errorf("it is %s, %s: %s", row.State, row.Reason, row.Message)
	}
	return applied(cw, row)
}

// applied is nil if the row says that the Deployment's pods are started for what is observed.
func applied(cw *v1alpha1.ConfigWatch, row *v1alpha1.TargetStatus) error {
	for _, record := range row.Sources {
		for _, source := range cw.Status.Sources {
			if source.Kind == record.Kind && source.Name == record.Name && source.Hash != record.AppliedHash {
				return fmt.Errorf("%s %s is %s, applied is %s", source.Kind, source.Name, source.Hash, record.AppliedHash)
			}
		}
	}
	return nil
}

func rowOf(cw *v1alpha1.ConfigWatch, name string) *v1alpha1.TargetStatus {
	return rowIn(&cw.Status, name)
}

// tally is how many restarts there were too few and too many, of all that the changes called for.
func (s *shop) tally(ctx context.Context) (missed, doubled int64) {
	GinkgoHelper()
	var deployments appsv1.DeploymentList
	Expect(k8sClient.List(ctx, &deployments, client.InNamespace(s.namespace))).To(Succeed())
	for i := range deployments.Items {
		d := &deployments.Items[i]
		missed += max(s.changes[d.Name]-(d.Generation-1), 0)
		doubled += max(d.Generation-1-s.changes[d.Name], 0)
	}
	return missed, doubled
}

// row is the row of a Deployment in its ConfigWatch now.
func (s *shop) row(ctx context.Context, configWatch, name string) v1alpha1.TargetStatus {
	GinkgoHelper()
	row := rowOf(s.configWatch(ctx, configWatch), name)
	if row == nil {
		return v1alpha1.TargetStatus{}
	}
	return *row
}

func (s *shop) configWatch(ctx context.Context, name string) *v1alpha1.ConfigWatch {
	GinkgoHelper()
	cw := &v1alpha1.ConfigWatch{}
	Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: cmp.Or(name, shared)}, cw)).To(Succeed())
	return cw
}

// about tells whether a line of a log is about the shop.
func (s *shop) about(line string) bool {
	return strings.Contains(line, s.namespace)
}
