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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// ConfigWatchBuilder makes a ConfigWatch.
type ConfigWatchBuilder struct {
	object *v1alpha1.ConfigWatch
}

// MakeConfigWatch makes one that names nothing yet, and restarts whatever there is to restart at once.
func MakeConfigWatch(name string) *ConfigWatchBuilder {
	b := &ConfigWatchBuilder{object: &v1alpha1.ConfigWatch{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	return b.Rollout(v1alpha1.RolloutSpec{SettleSeconds: new(int32(0)), MaxConcurrent: 1000})
}

// Rollout says when and in which steps targets are restarted.
func (b *ConfigWatchBuilder) Rollout(rollout v1alpha1.RolloutSpec) *ConfigWatchBuilder {
	b.object.Spec.Rollout = rollout
	return b
}

// Annotate sets an annotation of the ConfigWatch.
func (b *ConfigWatchBuilder) Annotate(key, value string) *ConfigWatchBuilder {
	metav1.SetMetaDataAnnotation(&b.object.ObjectMeta, key, value)
	return b
}

// Namespace puts it into a namespace.
func (b *ConfigWatchBuilder) Namespace(name string) *ConfigWatchBuilder {
	b.object.Namespace = name
	return b
}

// Mode says what is done about a change.
func (b *ConfigWatchBuilder) Mode(mode v1alpha1.Mode) *ConfigWatchBuilder {
	b.object.Spec.Mode = mode
	return b
}

// ConfigMap adds a ConfigMap to the sources.
func (b *ConfigWatchBuilder) ConfigMap(name string) *ConfigWatchBuilder {
	return b.Source(v1alpha1.SourceSelector{Kind: v1alpha1.ConfigMap, Name: name})
}

// Secret adds a Secret to the sources.
func (b *ConfigWatchBuilder) Secret(name string) *ConfigWatchBuilder {
	return b.Source(v1alpha1.SourceSelector{Kind: v1alpha1.Secret, Name: name})
}

// Sources adds all ConfigMaps or Secrets with a label to the sources.
func (b *ConfigWatchBuilder) Sources(kind v1alpha1.SourceKind, key, value string) *ConfigWatchBuilder {
	return b.Source(v1alpha1.SourceSelector{Kind: kind, Selector: labelled(key, value)})
}

// Source adds to the sources.
func (b *ConfigWatchBuilder) Source(source v1alpha1.SourceSelector) *ConfigWatchBuilder {
	b.object.Spec.Sources = append(b.object.Spec.Sources, source)
	return b
}

// Keys are the keys that matter of the last source.
func (b *ConfigWatchBuilder) Keys(keys ...string) *ConfigWatchBuilder {
	b.object.Spec.Sources[len(b.object.Spec.Sources)-1].Keys = keys
	return b
}

// RestartOn lists the changes of the last source that restart targets.
func (b *ConfigWatchBuilder) RestartOn(changes ...v1alpha1.Change) *ConfigWatchBuilder {
	b.object.Spec.Sources[len(b.object.Spec.Sources)-1].RestartOn = changes
	return b
}

// Target adds one workload to the targets.
func (b *ConfigWatchBuilder) Target(kind, name string) *ConfigWatchBuilder {
	b.object.Spec.Targets = append(b.object.Spec.Targets, v1alpha1.TargetSelector{Kind: kind, Name: name})
	return b
}

// Targets adds all workloads of a kind with a label to the targets.
func (b *ConfigWatchBuilder) Targets(kind, key, value string) *ConfigWatchBuilder {
	b.object.Spec.Targets = append(b.object.Spec.Targets, v1alpha1.TargetSelector{Kind: kind, Selector: labelled(key, value)})
	return b
}

// Follow says which sources restart the last target.
func (b *ConfigWatchBuilder) Follow(follow v1alpha1.Follow) *ConfigWatchBuilder {
	b.object.Spec.Targets[len(b.object.Spec.Targets)-1].Follow = follow
	return b
}

// Subscriber adds a subscriber, who has what the schema fills in where nothing is said.
func (b *ConfigWatchBuilder) Subscriber(subscriber v1alpha1.Subscriber) *ConfigWatchBuilder {
	b.object.Spec.Subscribers = append(b.object.Spec.Subscribers, subscriber)
	return b
}

// Obj is the ConfigWatch.
func (b *ConfigWatchBuilder) Obj() *v1alpha1.ConfigWatch {
	return b.object
}

func labelled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}
