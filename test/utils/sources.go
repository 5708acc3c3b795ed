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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigMapBuilder makes a ConfigMap.
type ConfigMapBuilder struct {
	object *corev1.ConfigMap
}

// MakeConfigMap makes an empty one.
func MakeConfigMap(name string) *ConfigMapBuilder {
	return &ConfigMapBuilder{object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// Namespace puts it into a namespace.
func (b *ConfigMapBuilder) Namespace(name string) *ConfigMapBuilder {
	b.object.Namespace = name
	return b
}

// Label labels it.
func (b *ConfigMapBuilder) Label(key, value string) *ConfigMapBuilder {
	metav1.SetMetaDataLabel(&b.object.ObjectMeta, key, value)
	return b
}

// Annotation annotates it.
func (b *ConfigMapBuilder) Annotation(key, value string) *ConfigMapBuilder {
	metav1.SetMetaDataAnnotation(&b.object.ObjectMeta, key, value)
	return b
}

// Data sets a key of data.
func (b *ConfigMapBuilder) Data(key, value string) *ConfigMapBuilder {
	if b.object.Data == nil {
		b.object.Data = map[string]string{}
	}
	b.object.Data[key] = value
	return b
}

// BinaryData sets a key of binaryData.
func (b *ConfigMapBuilder) BinaryData(key string, value []byte) *ConfigMapBuilder {
	if b.object.BinaryData == nil {
		b.object.BinaryData = map[string][]byte{}
	}
	b.object.BinaryData[key] = value
	return b
}

// Obj is the ConfigMap.
func (b *ConfigMapBuilder) Obj() *corev1.ConfigMap {
	return b.object
}

// SecretBuilder makes a Secret.
type SecretBuilder struct {
	object *corev1.Secret
}

// MakeSecret makes an empty one.
func MakeSecret(name string) *SecretBuilder {
	return &SecretBuilder{object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// Namespace puts it into a namespace.
func (b *SecretBuilder) Namespace(name string) *SecretBuilder {
	b.object.Namespace = name
	return b
}

// Label labels it.
func (b *SecretBuilder) Label(key, value string) *SecretBuilder {
	metav1.SetMetaDataLabel(&b.object.ObjectMeta, key, value)
	return b
}

// Annotation annotates it.
func (b *SecretBuilder) Annotation(key, value string) *SecretBuilder {
	metav1.SetMetaDataAnnotation(&b.object.ObjectMeta, key, value)
	return b
}

// Data sets a key of data.
func (b *SecretBuilder) Data(key, value string) *SecretBuilder {
	if b.object.Data == nil {
		b.object.Data = map[string][]byte{}
	}
	b.object.Data[key] = []byte(value)
	return b
}

// Immutable makes the API server refuse changes of its data.
func (b *SecretBuilder) Immutable() *SecretBuilder {
	b.object.Immutable = new(true)
	return b
}

// Obj is the Secret.
func (b *SecretBuilder) Obj() *corev1.Secret {
	return b.object
}
