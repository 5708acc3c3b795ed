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

package stream_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/stream"
)

func TestF8AnIDIsReadAsItIsWritten(t *testing.T) {
	for _, id := range []string{
		"ConfigMap=812", "ConfigMap=812,Secret=790", "ConfigMap/shop=1,ConfigMap/blog=22,Secret/shop=3,Secret/blog=4",
		"ConfigMap=812,bc1faff6-8c0d-46af-ac34-d61765e03821=815,d61765e0-8c0d-46af-ac34-d61765e03821=816",
		"ConfigMap=" + strings.Repeat("9", 40),
	} {
		NewWithT(t).Expect(stream.ReadID(id)).To(Equal(id))
	}
}

func TestF8WhatIsNoIDIsNoPlace(t *testing.T) {
	for _, id := range []string{
		"", "0", "812", "nonsense", "ConfigMap", "ConfigMap=", "ConfigMap=0", "ConfigMap=0812", "ConfigMap=-1", "ConfigMap=1.5", "ConfigMap=81a",
		"=812", "ConfigMap=812,", "Pod=812", "configmap=812", "LV6Z4HG3VFNVWV6KWDYGSDBVII-1", "bc1faff6=815", "ConfigMap=812,a b=3",
		"ConfigMap=1" + manyObjects(),
		"-", "ConfigMap=812,ConfigMap=812", "ConfigMap/shop=1,Secret/shop=2,ConfigMap/shop=3", "ConfigMap=812,bc1faff6=815,bc1faff6=816",
	} {
		NewWithT(t).Expect(stream.ReadID(id)).To(Equal("-"), id)
	}
}

// manyObjects are more than an id may have.
func manyObjects() string {
	var entries strings.Builder
	for n := range 17 {
		entries.WriteString(",uid-" + string(rune('a'+n)) + "=1")
	}
	return entries.String()
}

func FuzzF8ID(f *testing.F) {
	for _, id := range []string{"ConfigMap=812,Secret=790", "ConfigMap/shop=1", "ConfigMap=1,bc1faff6=2", "ConfigMap=1,ConfigMap=2", "a=1,,", "=\n"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		g := NewWithT(t)
		written := stream.ReadID(id)
		g.Expect(strings.ContainsAny(written, "\r\n\x00 ")).To(BeFalse(), "it is one line of a stream, and a header")
		g.Expect(stream.ReadID(written)).To(Equal(written))
	})
}
