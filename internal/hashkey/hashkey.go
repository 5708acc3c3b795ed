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

// Package hashkey keeps the key under which Secrets are hashed (E2), in a Secret of the operator's own.
//
// It promises that the key is made once, that several replicas agree on one, and that a key that
// changes under a running operator ends it rather than let it compare hashes of two keys. It doesn't
// know what is hashed.
package hashkey

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

const (
	// SecretName is the name of the Secret that holds the key.
	SecretName = "configwatch-hash-key" //nolint:gosec // a name, and nothing secret
	// DataKey is the key of its data that holds the key.
	DataKey = "key"
	// size is the length of the key in bytes.
	size = 32
)

// errInvalid tells that the Secret has no usable key.
//
//nolint:staticcheck // Secret is the name of a kind
var errInvalid = fmt.Errorf("Secret %s needs %d random bytes in data.%s: delete it, and a new one is made",
	SecretName, size, DataKey)

// Store is where the key is kept.
type Store struct {
	Client    kubernetes.Interface
	Namespace string
}

// Ensure is the key; it is made if there is none yet. Whichever replica comes first makes it, and the
// others take what they find.
func (s *Store) Ensure(ctx context.Context) ([]byte, error) {
	key, err := s.read(ctx)
	if !apierrors.IsNotFound(err) {
		return key, err
	}
	key = make([]byte, size)
	rand.Read(key) // it never returns an error
	err = s.create(ctx, key)
	if apierrors.IsAlreadyExists(err) {
		return s.read(ctx)
	}
	return key, err
}

// EnsureWithin is Ensure, tried again until the time is over while the API server can't be reached.
func (s *Store) EnsureWithin(ctx context.Context, timeout time.Duration) (key []byte, err error) {
	logger := log.FromContext(ctx)
	waitErr := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, func(ctx context.Context) (bool, error) {
		key, err = s.Ensure(ctx)
		if err != nil {
			logger.Error(err, "Failed to get the hash key, trying again", "namespace", s.Namespace, "secret", SecretName)
		}
		return err == nil || errors.Is(err, errInvalid), nil
	})
	if err == nil {
		err = waitErr
	}
	if err != nil {
		return nil, fmt.Errorf("getting the hash key: %w", err)
	}
	return key, nil
}

func (s *Store) read(ctx context.Context) ([]byte, error) {
	secret, err := s.Client.CoreV1().Secrets(s.Namespace).Get(ctx, SecretName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", s.Namespace, SecretName, err)
	}
	return keyOf(secret)
}

func keyOf(secret *corev1.Secret) ([]byte, error) {
	key := secret.Data[DataKey]
	if len(key) != size {
		return nil, errInvalid
	}
	return key, nil
}

func (s *Store) create(ctx context.Context, key []byte) error {
	_, err := s.Client.CoreV1().Secrets(s.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:      SecretName,
			Namespace: s.Namespace,
			Labels:    map[string]string{"app.kubernetes.io/name": "configwatch", "app.kubernetes.io/managed-by": "configwatch"},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{DataKey: key},
	}, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	if err != nil {
		return fmt.Errorf("creating Secret %s/%s: %w", s.Namespace, SecretName, err)
	}
	return nil
}

// Guard watches the key while the operator runs under it.
type Guard struct {
	*Store
	// Key is the one that the operator runs under.
	Key []byte
}

// NeedLeaderElection is false: every replica hashes.
func (g *Guard) NeedLeaderElection() bool {
	return false
}

// Start puts a key that is deleted back, and ends with an error if another is put in its place: the
// operator then starts anew under that one, with a new baseline (E3).
func (g *Guard) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	secrets := g.Client.CoreV1().Secrets(g.Namespace)
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, SecretName).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return secrets.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return secrets.Watch(ctx, o)
		},
	}
	check := func(object any) {
		if err := g.check(object); err != nil {
			cancel(err)
		}
	}
	secret, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(lw, g.Client),
		ObjectType:    &corev1.Secret{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    check,
			UpdateFunc: func(_, object any) { check(object) },
			DeleteFunc: func(any) { g.restore(ctx) },
		},
	})
	var looking sync.WaitGroup
	looking.Go(func() { // it may be gone already: then no deletion is told
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) && len(secret.ListKeys()) == 0 {
			g.restore(ctx)
		}
	})
	informer.RunWithContext(ctx)
	looking.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (g *Guard) check(object any) error {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return nil
	}
	key, err := keyOf(secret)
	if err == nil && bytes.Equal(key, g.Key) {
		return nil
	}
	return fmt.Errorf("the hash key in Secret %s/%s was replaced: the operator ends, to start anew with it", g.Namespace, SecretName)
}

// restore puts the key back. It is tried until it succeeds, or another key is there, of which check
// hears: a start without the key would be a new baseline, and lose the changes made meanwhile.
func (g *Guard) restore(ctx context.Context) {
	logger := log.FromContext(ctx).WithValues("namespace", g.Namespace, "secret", SecretName)
	delay := wait.Backoff{Duration: time.Second, Factor: 2, Steps: math.MaxInt32, Cap: time.Minute}.DelayFunc()
	_ = delay.Until(ctx, true, true, func(ctx context.Context) (bool, error) { // it fails only if the operator ends
		err := g.create(ctx, g.Key)
		switch {
		case apierrors.IsAlreadyExists(err):
			return true, nil
		case err != nil:
			logger.Error(err, "Failed to put the deleted hash key back, trying again")
			return false, nil
		}
		logger.Info("Put the hash key back: its Secret was deleted")
		return true, nil
	})
}
