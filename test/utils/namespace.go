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

package utils

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// Namespace is the one of a test, with what a test reads and writes in it.
type Namespace struct {
	Client client.WithWatch
	Name   string
}

// NewNamespace creates one.
func NewNamespace(ctx context.Context, c client.WithWatch) (Namespace, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(ctx, ns); err != nil {
		return Namespace{}, fmt.Errorf("creating a namespace: %w", err)
	}
	return Namespace{Client: c, Name: ns.Name}, nil
}

// Create creates objects, in this namespace if they name none.
func (n Namespace) Create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if object.GetNamespace() == "" {
			object.SetNamespace(n.Name)
		}
		if err := n.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// Reload reads an object anew: what it had before is gone.
func Reload(ctx context.Context, c client.Client, object client.Object) error {
	key := client.ObjectKeyFromObject(object)
	reflect.ValueOf(object).Elem().SetZero()
	if err := c.Get(ctx, key, object); err != nil {
		return fmt.Errorf("reading %T %s: %w", object, key, err)
	}
	return nil
}

// Change reads an object anew, changes it and writes it.
func Change[T client.Object](ctx context.Context, c client.Client, object T, how func(T)) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := Reload(ctx, c, object); err != nil {
			return err
		}
		how(object)
		return c.Update(ctx, object)
	})
	if err != nil {
		return fmt.Errorf("changing %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// Status is that of a ConfigWatch.
func (n Namespace) Status(ctx context.Context, configWatch string) (v1alpha1.ConfigWatchStatus, error) {
	cw := MakeConfigWatch(configWatch).Namespace(n.Name).Obj()
	err := Reload(ctx, n.Client, cw)
	return cw.Status, err
}

// Row is that of a target, empty if there is none.
func (n Namespace) Row(ctx context.Context, configWatch, kind, name string) (v1alpha1.TargetStatus, error) {
	status, err := n.Status(ctx, configWatch)
	for _, row := range status.Targets {
		if row.Kind == kind && row.Name == name {
			return row, err
		}
	}
	return v1alpha1.TargetStatus{}, err
}

// SourceRow is that of a source, empty if there is none.
func (n Namespace) SourceRow(ctx context.Context, configWatch string, kind v1alpha1.SourceKind, name string) (v1alpha1.SourceStatus, error) {
	status, err := n.Status(ctx, configWatch)
	for _, row := range status.Sources {
		if row.Kind == kind && row.Name == name {
			return row, err
		}
	}
	return v1alpha1.SourceStatus{}, err
}

// Condition is a condition of a ConfigWatch without its generation and time, empty if it isn't there.
func (n Namespace) Condition(ctx context.Context, configWatch, conditionType string) (metav1.Condition, error) {
	status, err := n.Status(ctx, configWatch)
	c := meta.FindStatusCondition(status.Conditions, conditionType)
	if c == nil {
		return metav1.Condition{}, err
	}
	return metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}, err
}

// Notes are what the Events with that reason say, each after the kind of the object that it is about.
func (n Namespace) Notes(ctx context.Context, reason string) ([]string, error) {
	events := &eventsv1.EventList{}
	if err := n.Client.List(ctx, events, client.InNamespace(n.Name)); err != nil {
		return nil, fmt.Errorf("reading Events: %w", err)
	}
	var said []string
	for i := range events.Items {
		if e := &events.Items[i]; e.Reason == reason {
			said = append(said, e.Regarding.Kind+": "+e.Note)
		}
	}
	return said, nil
}
