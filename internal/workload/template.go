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

package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ktechhub/configwatch/internal/version"
)

// templateDigits is the length of a template's digest in hexadecimal digits.
const templateDigits = 16

// Template tells a workload's pod template, annotations and all, from others.
type Template struct {
	// Hash is "<version of the operator>:<16 hexadecimal digits>". Another version may know fields of a
	// template that this one doesn't, so hashes of different versions can't be compared.
	Hash string
	// Generation is the workload's metadata.generation, which rises with each change of its spec.
	Generation int64
}

func templateOf(generation int64, template *corev1.PodTemplateSpec) Template {
	encoded, err := template.Marshal() // with sorted keys, so that it is the same each time
	if err != nil {
		return Template{Generation: generation} // which can't be compared
	}
	sum := sha256.Sum256(encoded)
	return Template{Hash: version.Version + ":" + hex.EncodeToString(sum[:])[:templateDigits], Generation: generation}
}

// ReplacedSince tells whether it is certain that the template was another one before: this one was seen
// later, and differs.
func (t Template) ReplacedSince(before Template) bool {
	return t.comparable(before) && t.Generation > before.Generation && t.Hash != before.Hash
}

// PutBack tells whether it is certain that the template is what it was before a change that was made to
// it: the change and its reversal have both raised the generation.
func (t Template) PutBack(before Template) bool {
	return t.comparable(before) && t.Generation >= before.Generation+2 && t.Hash == before.Hash
}

func (t Template) comparable(other Template) bool {
	method, ok := t.method()
	otherMethod, otherOK := other.method()
	return ok && otherOK && method == otherMethod
}

func (t Template) method() (string, bool) {
	i := strings.LastIndex(t.Hash, ":")
	if i < 0 {
		return "", false
	}
	return t.Hash[:i], true
}
