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

package source

import (
	"context"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/informer"
)

var appConfig = Ref{Kind: v1alpha1.ConfigMap, Name: "app-config"}

// newCache is a Cache of all namespaces that isn't started.
func newCache(t *testing.T, client *fake.Clientset) *Cache {
	t.Helper()
	c, err := NewCache(client, nil, []string{metav1.NamespaceAll}, testReducer().keyed)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

// start runs the Cache until stop is called or the test ends.
func start(t *testing.T, c *Cache) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the cache ended: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func readable(c *Cache) func() error {
	return func() error {
		if err := c.Readable(v1alpha1.Secret, ""); err != nil {
			return err
		}
		return c.Readable(v1alpha1.ConfigMap, "")
	}
}

func TestNoValueIsInTheCache(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(configMap(), secret())
	c := newCache(t, client)
	stop := start(t, c)
	g.Eventually(readable(c)).Should(Succeed())

	updated := secret()
	updated.Data["more"] = []byte("more of " + canary)
	_, err := client.CoreV1().Secrets("shop").Update(t.Context(), updated, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	password := Ref{Kind: v1alpha1.Secret, Name: "app-config"}
	want := testReducer().reduce(updated).Content.Hash(nil)
	g.Eventually(func() digest.Hash { return c.Get("shop", password).Content.Hash(nil) }).Should(Equal(want))

	stop() // what its goroutines hold can't be looked at while they run
	kept := reachable(c)
	g.Expect(kept).To(ContainElement("LOG_LEVEL"), "the search gets to the informers' stores")
	g.Expect(kept).To(ContainElement("more"))
	g.Expect(kept).NotTo(ContainElement(ContainSubstring(canary)))
}

func TestHelmsReleaseSecretsAreNotAskedFor(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset()
	var mu sync.Mutex
	asked := map[string][]string{}
	note := func(action clienttesting.Action, selector string) {
		mu.Lock()
		defer mu.Unlock()
		asked[action.GetResource().Resource] = append(asked[action.GetResource().Resource], selector)
	}
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		note(action, action.(clienttesting.ListAction).GetListRestrictions().Fields.String())
		return false, nil, nil
	})
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		note(action, action.(clienttesting.WatchAction).GetWatchRestrictions().Fields.String())
		return false, nil, nil
	})
	c := newCache(t, client)
	start(t, c)
	g.Eventually(readable(c)).Should(Succeed())
	g.Eventually(func() int {
		mu.Lock()
		defer mu.Unlock()
		return min(len(asked["secrets"]), len(asked["configmaps"]))
	}).Should(BeNumerically(">=", 2), "a list and a watch of each")

	mu.Lock()
	defer mu.Unlock()
	g.Expect(asked["secrets"]).To(HaveEach("type!=helm.sh/release.v1"))
	g.Expect(asked["configmaps"]).To(HaveEach(""))
}

func TestE1MetadataIsNoChange(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(configMap())
	c := newCache(t, client)
	told := make(chan string, 100)
	g.Expect(c.OnChange(func(before, after *Source) {
		told <- fmt.Sprintf("%t %t", before != nil, after != nil)
	})).To(Succeed())
	start(t, c)
	g.Eventually(told).Should(Receive(Equal("false true")))

	update := func(change func(*corev1.ConfigMap)) {
		object := configMap()
		change(object)
		_, err := client.CoreV1().ConfigMaps("shop").Update(t.Context(), object, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	update(func(c *corev1.ConfigMap) { c.Annotations["more"] = "x"; c.ResourceVersion = "8" })
	update(func(c *corev1.ConfigMap) { c.ManagedFields = nil; c.ResourceVersion = "9" })
	update(func(c *corev1.ConfigMap) { c.Data["LOG_LEVEL"] = "info"; c.ResourceVersion = "10" })
	g.Eventually(told).Should(Receive(Equal("true true")), "of the three updates one is a change")
	g.Expect(client.CoreV1().ConfigMaps("shop").Delete(t.Context(), "app-config", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(told).Should(Receive(Equal("true false")))
	g.Expect(c.Get("shop", appConfig)).To(BeNil())
	g.Expect(told).To(BeEmpty())
}

func TestE11EachKindIsReadableOrNotOnItsOwn(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(configMap())
	deny := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
	}
	client.PrependReactor("list", "secrets", deny)
	c := newCache(t, client)
	g.Expect(c.Readable(v1alpha1.ConfigMap, "shop")).To(MatchError(informer.ErrNotSynced))
	g.Expect(c.Settled()).To(BeFalse())
	told := make(chan struct{}, 100)
	c.OnState(func() { told <- struct{}{} })
	start(t, c)

	g.Eventually(func() error { return c.Readable(v1alpha1.ConfigMap, "shop") }).Should(Succeed())
	g.Eventually(func() error { return c.Readable(v1alpha1.Secret, "shop") }).Should(MatchError(apierrors.IsForbidden, "IsForbidden"))
	g.Eventually(c.Settled).Should(BeTrue())
	g.Eventually(told).Should(HaveLen(2), "one is read, the other refused")
	g.Expect(c.Get("shop", appConfig)).NotTo(BeNil())
	g.Expect(c.List("shop", v1alpha1.ConfigMap)).To(HaveExactElements(c.Get("shop", appConfig)))
	g.Expect(c.List("elsewhere", v1alpha1.ConfigMap)).To(BeEmpty())
	g.Expect(c.Readable("Pod", "shop")).To(MatchError("Pod is not a kind of source"))
	g.Expect(c.NeedLeaderElection()).To(BeFalse())
}

// content is a ConfigMap app-config in namespace shop with that data.
func content(data map[string]string) *Source {
	return testReducer().reduce(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app-config"}, Data: data,
	})
}

func TestE27TheKeysThatChangedAreRemembered(t *testing.T) {
	g := NewWithT(t)
	c := newCache(t, fake.NewClientset())
	first := content(map[string]string{"a": "1", "b": "1", "c": "1"})
	second := content(map[string]string{"a": "2", "b": "1", "c": "1"})
	third := content(map[string]string{"a": "2", "b": "2"})

	_, known := c.ChangedKeys(first, nil, second.Content.Hash(nil))
	g.Expect(known).To(BeFalse(), "nothing has changed yet")

	c.remember(nil, first)
	c.remember(first, second)
	c.remember(second, third)
	for name, tc := range map[string]struct {
		keys []string
		from *Source
		want []string
	}{
		"the last change":         {nil, second, []string{"b", "c"}},
		"several changes":         {nil, first, []string{"a", "b", "c"}},
		"of some keys":            {[]string{"c", "a"}, first, []string{"a", "c"}},
		"of keys, of which one":   {[]string{"a", "x"}, first, []string{"a"}},
		"of keys that don't hurt": {[]string{"x"}, first, nil},
	} {
		changed, known := c.ChangedKeys(third, tc.keys, tc.from.Content.Hash(tc.keys))
		g.Expect(known).To(BeTrue(), name)
		g.Expect(changed).To(HaveExactElements(tc.want), name)
	}

	_, known = c.ChangedKeys(third, nil, "1:0123456789abcdef")
	g.Expect(known).To(BeFalse(), "content of before the start")
	_, known = c.ChangedKeys(third, []string{"a"}, first.Content.Hash(nil))
	g.Expect(known).To(BeFalse(), "a hash of all keys is not one of some")

	other := content(map[string]string{"a": "2"})
	other.Namespace = "elsewhere"
	_, known = c.ChangedKeys(other, nil, first.Content.Hash(nil))
	g.Expect(known).To(BeFalse(), "one of the same name in another namespace")
	otherKind := content(map[string]string{"a": "2"})
	otherKind.Kind = v1alpha1.Secret
	_, known = c.ChangedKeys(otherKind, nil, first.Content.Hash(nil))
	g.Expect(known).To(BeFalse(), "one of the same name and another kind")
}

func TestE6TheContentBeforeADeletionIsRemembered(t *testing.T) {
	g := NewWithT(t)
	c := newCache(t, fake.NewClientset())
	before := content(map[string]string{"a": "1"})
	after := content(map[string]string{"a": "2"})
	c.remember(before, nil)
	c.remember(nil, after)
	changed, known := c.ChangedKeys(after, nil, before.Content.Hash(nil))
	g.Expect(known).To(BeTrue())
	g.Expect(changed).To(Equal([]string{"a"}))
}

func TestAChangeOfLabelsIsNotRemembered(t *testing.T) {
	g := NewWithT(t)
	c := newCache(t, fake.NewClientset())
	before, after := content(map[string]string{"a": "1"}), content(map[string]string{"a": "1"})
	after.Labels = map[string]string{"app": "web"}
	c.remember(before, after)
	_, known := c.ChangedKeys(after, nil, before.Content.Hash(nil))
	g.Expect(known).To(BeFalse())
}

func TestOnlyTheLastEightContentsAreRemembered(t *testing.T) {
	g := NewWithT(t)
	c := newCache(t, fake.NewClientset())
	version := func(n int) *Source { return content(map[string]string{"a": fmt.Sprint(n)}) }
	for n := range 10 {
		c.remember(version(n), version(n+1))
	}
	for n, want := range []bool{false, false, true, true, true, true, true, true, true, true} {
		changed, known := c.ChangedKeys(version(10), nil, version(n).Content.Hash(nil))
		g.Expect(known).To(Equal(want), "version %d", n)
		if want {
			g.Expect(changed).To(Equal([]string{"a"}))
		}
	}
}

func TestOnlyTheSourcesThatChangedLatelyAreRemembered(t *testing.T) {
	g := NewWithT(t)
	c := newCache(t, fake.NewClientset())
	named := func(n int, value string) *Source {
		s := content(map[string]string{"a": value})
		s.Name = fmt.Sprint(n)
		return s
	}
	for n := range rememberedSources + 1 {
		c.remember(named(n, "1"), named(n, "2"))
	}
	known := func(n int) bool {
		_, known := c.ChangedKeys(named(n, "2"), nil, named(n, "1").Content.Hash(nil))
		return known
	}
	g.Expect(known(0)).To(BeFalse(), "the one that changed longest ago")
	g.Expect(known(1)).To(BeTrue())
	g.Expect(known(rememberedSources)).To(BeTrue())
}
