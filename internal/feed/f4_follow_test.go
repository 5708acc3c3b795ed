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

package feed_test

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
)

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)

// sources are some whose state the test sets. ConfigMaps and Secrets are not read until it says so.
type sources struct {
	publish            func(before, after *source.Source)
	tell               func()
	configMaps, others error
	objects            []*source.Source
	refusal            error
	step               func(step source.Step, before, after *source.Source)
	version            int
	namespace          string
}

func (s *sources) OnChange(call func(before, after *source.Source)) error {
	s.publish = call
	return s.refusal
}

// OnStep has each change make a step. Versions begin at 101.
func (s *sources) OnStep(call func(step source.Step, before, after *source.Source)) error {
	s.version = 100
	s.step = call
	s.publish = func(before, after *source.Source) {
		s.version++
		if object := cmp.Or(after, before); object != nil {
			made := stepTo(object.Kind, s.version)
			made.Namespace = s.namespace
			call(made, before, after)
		}
	}
	return s.refusal
}

// stepTo is one of the watch of a kind in all namespaces.
func stepTo(kind v1alpha1.SourceKind, version int) source.Step {
	return source.Step{Step: informer.Step{Version: strconv.Itoa(version)}, Kind: kind}
}

// listed is a step that was made by a list.
func listed(kind v1alpha1.SourceKind, version int, more bool) source.Step {
	made := stepTo(kind, version)
	made.Listed, made.More = true, more
	return made
}

func (s *sources) OnState(call func()) { s.tell = call }

func (s *sources) Readable(kind v1alpha1.SourceKind, _ string) error {
	if kind == v1alpha1.ConfigMap {
		return s.configMaps
	}
	return s.others
}

func followed(t *testing.T, namespaces ...string) (*feed.Broker, *sources) {
	t.Helper()
	b, s := newBroker(), &sources{configMaps: informer.ErrNotSynced, others: informer.ErrNotSynced}
	NewWithT(t).Expect(b.Follow(s, namespaces)).To(Succeed())
	return b, s
}

// read says that everything has been read.
func (s *sources) read() {
	s.configMaps, s.others = nil, nil
	for _, object := range s.objects {
		s.publish(nil, object)
	}
	if s.step != nil {
		for _, kind := range []v1alpha1.SourceKind{v1alpha1.ConfigMap, v1alpha1.Secret} {
			made := listed(kind, s.version, false)
			made.Namespace = s.namespace
			s.step(made, nil, nil)
		}
	}
	s.tell()
}

func TestF4TheInitialListIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, from := followed(t, "")
		plain, initial := subscribe(t, b, feed.Filter{}, 9), subscribe(t, b, feed.Filter{Initial: true}, 9)
		web, db := history("web", 3), history("db", 2)
		from.publish(nil, web[0])
		from.publish(nil, configMap("gone", "1"))
		from.publish(configMap("gone", "2"), nil)
		quiet(t, plain)
		quiet(t, initial)

		from.objects = []*source.Source{web[1], db[0]}
		from.read()
		expect(t, initial, "Added db@1 initial", "Added web@2 initial", "Synced")
		from.publish(web[0], web[1])
		from.publish(nil, db[0])
		quiet(t, plain)
		quiet(t, initial)

		from.publish(web[1], web[2])
		from.publish(db[1], nil)
		from.publish(nil, configMap("new", "4"))
		want := []string{"Modified web@3", "Deleted db@2", "Added new@4"}
		expect(t, plain, want...)
		expect(t, initial, want...)
	})
}

func TestF4WhatIsReadIsNotOlderThanWhatWasPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, from := followed(t, "")
		web := history("web", 2)
		from.publish(nil, web[0])
		from.publish(web[0], web[1])
		from.objects = web[:1]
		from.read()
		expect(t, subscribe(t, b, feed.Filter{Initial: true}, 9), "Added web@2 initial", "Synced")
	})
}

func TestF4OnlyWhatASubscriptionIsAboutHasToBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, from := followed(t, "shop", "other")
		configMaps := subscribe(t, b, feed.Filter{Kind: v1alpha1.ConfigMap, Initial: true}, 9)
		both := subscribe(t, b, feed.Filter{Namespace: "shop", Initial: true}, 9)
		from.publish(nil, configMap("web", "1"))
		from.publish(nil, in("other", configMap("web", "2")))
		from.configMaps = nil
		from.tell()
		from.publish(nil, configMap("new", "3"))
		from.publish(nil, secret("db", "1"))
		expect(t, configMaps, "Added web@2 initial", "Added web@1 initial", "Synced", "Added new@3")
		quiet(t, both)

		from.read()
		expect(t, both, "Added db@1 initial", "Added new@3 initial", "Added web@1 initial", "Synced")
	})
}

func TestF4AMissingPermissionHoldsUpNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, from := followed(t, "shop")
		plain, initial := subscribe(t, b, feed.Filter{}, 9), subscribe(t, b, feed.Filter{Initial: true}, 9)
		reread := subscribe(t, b, feed.Filter{}, 9)
		from.publish(nil, configMap("web", "1"))
		from.configMaps, from.others = nil, errForbidden
		from.tell()
		expect(t, initial, "Added web@1 initial", "Synced")
		reread.Reread()
		expect(t, reread, "Added web@1 initial", "Synced")

		from.publish(nil, secret("db", "2"))
		from.read()
		expect(t, initial, "Added db@2 initial")
		expect(t, reread, "Added db@2 initial")
		quiet(t, plain)
		from.publish(nil, secret("new", "3"))
		expect(t, initial, "Added new@3")
		expect(t, plain, "Added new@3")
	})
}

func TestF4AnAPIServerOutOfReachIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, from := followed(t, "")
		initial := subscribe(t, b, feed.Filter{Initial: true}, 9)
		from.configMaps, from.others = errForbidden, errors.New("connection refused")
		from.tell()
		quiet(t, initial)
		from.configMaps, from.others = errors.New("connection refused"), errForbidden
		from.tell()
		quiet(t, initial)
		from.read()
		expect(t, initial, "Synced")
	})
}

func TestF4AClosedSubscriptionIsToldNothingThatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, from := followed(t, "shop")
		s := subscribe(t, b, feed.Filter{Initial: true}, 9)
		s.Close()
		from.objects = []*source.Source{configMap("web", "1")}
		from.read()
		_, open := <-s.Events()
		NewWithT(t).Expect(open).To(BeFalse())
	})
}

func TestF4OnlyNamespacesThatAreFollowedCanBeSubscribedTo(t *testing.T) {
	g := NewWithT(t)
	b, _ := followed(t, "shop")
	_, err := b.Subscribe(feed.Filter{Namespace: "other"}, 1)
	g.Expect(err).To(MatchError("subscribing: namespace other is not watched by this operator"))
	subscribe(t, b, feed.Filter{Namespace: "shop"}, 1)
	subscribe(t, b, feed.Filter{}, 1)
}

func TestSourcesThatCantBeFollowed(t *testing.T) {
	err := newBroker().Follow(&sources{refusal: errors.New("stopped")}, []string{""})
	NewWithT(t).Expect(err).To(MatchError("following the sources: stopped"))
}

func TestF4TheSourceCacheIsFollowed(t *testing.T) {
	g := NewWithT(t)
	web := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: "1"},
		Data:       map[string]string{"LOG_LEVEL": "info"},
	}
	client := fake.NewClientset(web)
	namespaces := []string{"shop"}
	cache, err := source.NewCache(client, nil, namespaces, digest.Keyed([]byte("key")))
	g.Expect(err).NotTo(HaveOccurred())
	b := newBroker()
	g.Expect(b.Follow(cache, namespaces)).To(Succeed())
	plain, initial := subscribe(t, b, feed.Filter{}, 9), subscribe(t, b, feed.Filter{Initial: true}, 9)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cache.Start(ctx) }()
	defer func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	}()

	g.Expect(told(receive(t, initial, 2))).To(HaveExactElements("Added web@1 initial", "Synced"))
	web = web.DeepCopy()
	web.Data["LOG_LEVEL"], web.ResourceVersion = "debug", "2"
	_, err = client.CoreV1().ConfigMaps("shop").Update(ctx, web, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client.CoreV1().ConfigMaps("shop").Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
	for _, s := range []*feed.Subscription{plain, initial} {
		changes := receive(t, s, 2)
		g.Expect(told(changes)).To(HaveExactElements("Modified web@2", "Deleted web@"))
		g.Expect(changes[0].ChangedKeys).To(HaveExactElements("LOG_LEVEL"))
	}
}
