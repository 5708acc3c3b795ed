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

package hashkey

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const namespace = "configwatch-system"

func holding(key []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName},
		Data:       map[string][]byte{DataKey: key},
	}
}

func keyOfBytes(b byte) []byte {
	return bytes.Repeat([]byte{b}, 32)
}

func stored(t *testing.T, client *fake.Clientset) []byte {
	t.Helper()
	secret, err := client.CoreV1().Secrets(namespace).Get(t.Context(), SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return secret.Data[DataKey]
}

func TestE2TheKeyIsMadeOnce(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset()
	store := &Store{Client: client, Namespace: namespace}
	key, err := store.Ensure(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(key).To(HaveLen(32))
	g.Expect(stored(t, client)).To(Equal(key))

	again, err := store.Ensure(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(key), "the next start finds it")

	elsewhere, err := (&Store{Client: fake.NewClientset(), Namespace: namespace}).Ensure(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(elsewhere).NotTo(Equal(key), "it is random")
}

func TestE2AKeyThatIsThereIsTaken(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(holding(keyOfBytes(7)))
	key, err := (&Store{Client: client, Namespace: namespace}).EnsureWithin(t.Context(), time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(key).To(Equal(keyOfBytes(7)))
	for _, action := range client.Actions() {
		g.Expect(action.GetVerb()).To(Equal("get"))
	}
}

// All replicas find no key, and each then tries to make one.
func TestE2ReplicasAgreeOnAKey(t *testing.T) {
	const replicas = 5
	g := NewWithT(t)
	client := fake.NewClientset()
	var found sync.WaitGroup
	found.Add(replicas)
	replica := func() *fake.Clientset {
		asked := false
		own := fake.NewClientset()
		own.PrependReactor("*", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if !asked {
				asked = true
				found.Done()
				found.Wait()
				return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, SecretName)
			}
			object, err := client.Invokes(action, &corev1.Secret{})
			return true, object, err
		})
		return own
	}
	keys := make([][]byte, replicas)
	errs := make([]error, replicas)
	var running sync.WaitGroup
	for i := range replicas {
		store := &Store{Client: replica(), Namespace: namespace}
		running.Go(func() { keys[i], errs[i] = store.Ensure(t.Context()) })
	}
	running.Wait()
	for i := range replicas {
		g.Expect(errs[i]).NotTo(HaveOccurred())
		g.Expect(keys[i]).To(Equal(stored(t, client)))
	}
}

func TestE2AnUnusableKeyIsRefusedAtOnce(t *testing.T) {
	for name, secret := range map[string]*corev1.Secret{
		"too short": holding(make([]byte, 31)),
		"too long":  holding(make([]byte, 33)),
		"empty":     holding(nil),
		"under another name": {
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName},
			Data:       map[string][]byte{"hash-key": make([]byte, 32)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client := fake.NewClientset(secret)
			_, err := (&Store{Client: client, Namespace: namespace}).EnsureWithin(t.Context(), time.Hour)
			g.Expect(err).To(MatchError("getting the hash key: Secret configwatch-hash-key needs 32 random bytes in data.key: " +
				"delete it, and a new one is made"))
			g.Expect(client.Actions()).To(HaveLen(1), "it isn't tried again, nor overwritten")
		})
	}
}

func TestE2TheKeyIsTriedForWhileTheAPIServerCanNotBeReached(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(holding(keyOfBytes(7)))
	calls := 0
	client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		calls++
		return calls < 2, nil, errors.New("connection refused")
	})
	key, err := (&Store{Client: client, Namespace: namespace}).EnsureWithin(t.Context(), time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(key).To(Equal(keyOfBytes(7)))
	g.Expect(calls).To(Equal(2))
}

func TestE2WhyThereIsNoKeyIsSaid(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, SecretName, errors.New("no role"))
	for name, tc := range map[string]struct{ verb, want string }{
		"it may not be read": {"get", "getting the hash key: reading Secret configwatch-system/configwatch-hash-key: "},
		"it may not be made": {"create", "getting the hash key: creating Secret configwatch-system/configwatch-hash-key: "},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client := fake.NewClientset()
			client.PrependReactor(tc.verb, "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, forbidden
			})
			_, err := (&Store{Client: client, Namespace: namespace}).EnsureWithin(t.Context(), time.Millisecond)
			g.Expect(err).To(MatchError(HavePrefix(tc.want)))
			g.Expect(apierrors.IsForbidden(err)).To(BeTrue())
		})
	}
}

// guarded is a Guard of the key 7 that runs, and the channel on which its end comes.
func guarded(t *testing.T, client *fake.Clientset) (stop context.CancelFunc, ended <-chan error) {
	t.Helper()
	watching := make(chan struct{})
	client.PrependWatchReactor("secrets", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := client.Tracker().Watch(action.GetResource(), namespace)
		close(watching)
		return true, w, err
	})
	guard := &Guard{Store: &Store{Client: client, Namespace: namespace}, Key: keyOfBytes(7)}
	NewWithT(t).Expect(guard.NeedLeaderElection()).To(BeFalse(), "every replica hashes")
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	end := make(chan error, 1)
	go func() { end <- guard.Start(ctx) }()
	NewWithT(t).Eventually(watching).Should(BeClosed())
	return cancel, end
}

func TestE3AKeyThatIsDeletedIsPutBack(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(holding(keyOfBytes(7)))
	stop, ended := guarded(t, client)
	g.Expect(client.CoreV1().Secrets(namespace).Delete(t.Context(), SecretName, metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() []byte { return stored(t, client) }).Should(Equal(keyOfBytes(7)))
	g.Expect(ended).NotTo(Receive())
	stop()
	g.Eventually(ended).Should(Receive(BeNil()), "the operator that is told to end ends well")
}

func TestE3AKeyThatWasDeletedBeforeTheGuardLookedIsPutBack(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset()
	_, ended := guarded(t, client)
	g.Eventually(func() []byte { return stored(t, client) }).Should(Equal(keyOfBytes(7)))
	g.Expect(ended).NotTo(Receive())
}

func TestE3AKeyThatCanNotBePutBackAtOnceIsPutBackLater(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(holding(keyOfBytes(7)))
	refusals := 0
	client.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		refusals++
		return refusals < 2, nil, errors.New("connection refused")
	})
	guarded(t, client)
	g.Expect(client.CoreV1().Secrets(namespace).Delete(t.Context(), SecretName, metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() []byte { return stored(t, client) }, "10s").Should(Equal(keyOfBytes(7)))
}

func TestE3AnotherKeyEndsTheOperator(t *testing.T) {
	for name, key := range map[string][]byte{"another": keyOfBytes(8), "an unusable one": nil} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client := fake.NewClientset(holding(keyOfBytes(7)))
			_, ended := guarded(t, client)
			_, err := client.CoreV1().Secrets(namespace).Update(t.Context(), holding(key), metav1.UpdateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Eventually(ended).Should(Receive(MatchError(
				"the hash key in Secret configwatch-system/configwatch-hash-key was replaced: the operator ends, to start anew with it")))
		})
	}
}

func TestE3AKeyThatWasReplacedBeforeTheGuardLookedEndsTheOperator(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(holding(keyOfBytes(8)))
	guard := &Guard{Store: &Store{Client: client, Namespace: namespace}, Key: keyOfBytes(7)}
	g.Expect(guard.Start(t.Context())).To(MatchError(ContainSubstring("was replaced")))
}

func TestE3ANewLabelOnTheKeyIsNoReplacement(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(holding(keyOfBytes(7)))
	stop, ended := guarded(t, client)
	labelled := holding(keyOfBytes(7))
	labelled.Labels = map[string]string{"new": "label"}
	_, err := client.CoreV1().Secrets(namespace).Update(t.Context(), labelled, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	// The deletion comes after the update: once it is put right, the update has been seen.
	g.Expect(client.CoreV1().Secrets(namespace).Delete(t.Context(), SecretName, metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() []byte { return stored(t, client) }).Should(Equal(keyOfBytes(7)))
	stop()
	g.Eventually(ended).Should(Receive(BeNil()))
}

func TestOnlyTheOnesOwnSecretIsWatched(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(holding(keyOfBytes(7)))
	var mu sync.Mutex
	asked := map[string]string{}
	client.PrependReactor("list", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		asked["list "+action.GetNamespace()] = action.(clienttesting.ListAction).GetListRestrictions().Fields.String()
		return false, nil, nil
	})
	client.PrependWatchReactor("secrets", func(action clienttesting.Action) (bool, watch.Interface, error) {
		mu.Lock()
		defer mu.Unlock()
		asked["watch "+action.GetNamespace()] = action.(clienttesting.WatchAction).GetWatchRestrictions().Fields.String()
		return false, nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- (&Guard{Store: &Store{Client: client, Namespace: namespace}, Key: keyOfBytes(7)}).Start(ctx)
	}()
	g.Eventually(func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		return map[string]string{"list": asked["list "+namespace], "watch": asked["watch "+namespace]}
	}).Should(Equal(map[string]string{"list": "metadata.name=configwatch-hash-key", "watch": "metadata.name=configwatch-hash-key"}))
	cancel()
	g.Eventually(done).Should(Receive(BeNil()))
}
