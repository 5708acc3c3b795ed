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

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/ktechhub/configwatch/internal/stream"
)

func TestF8AReplicaHasAsManyStreamsAsFitIntoItsMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		limit string // empty: none
		want  int
	}{
		"no limit":                     {"", stream.DefaultMaxStreams},
		"that of config/manager":       {"128Mi", 1024},
		"that of the stream component": {streamComponentLimit(t), stream.DefaultMaxStreams},
		"a large one":                  {"10Gi", stream.DefaultMaxStreams},
		"a small one":                  {"64Mi", leastStreams},
		"one for a little more":        {"100Mi", 128},
	} {
		t.Run(name, func(t *testing.T) {
			var bytes int64
			if tc.limit != "" {
				limit := resource.MustParse(tc.limit)
				bytes = limit.Value()
			}
			NewWithT(t).Expect(maxStreams(bytes, tc.limit != "")).To(Equal(tc.want))
		})
	}
}

// streamComponentLimit is the memory limit that config/components/stream gives the container.
func streamComponentLimit(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join("..", "config", "components", "stream", "kustomization.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var component struct{ Patches []struct{ Patch string } }
	g.Expect(yaml.Unmarshal(text, &component)).To(Succeed())
	g.Expect(component.Patches).To(HaveLen(1))
	var operations []struct {
		Op, Path string
		Value    any
	}
	g.Expect(yaml.Unmarshal([]byte(component.Patches[0].Patch), &operations)).To(Succeed())
	for _, operation := range operations {
		if operation.Op == "replace" && operation.Path == "/spec/template/spec/containers/0/resources/limits/memory" {
			limit, ok := operation.Value.(string)
			g.Expect(ok).To(BeTrue())
			return limit
		}
	}
	t.Fatal("the component has no memory limit")
	return ""
}

func TestF8TheCollectorLeavesRoomForWhatItDoesNotCount(t *testing.T) {
	for limit, want := range map[string]string{"128Mi": "90Mi", "256Mi": "179Mi", "1Gi": "928Mi"} {
		of, most := resource.MustParse(limit), resource.MustParse(want)
		NewWithT(t).Expect(collectorLimit(of.Value())).To(BeNumerically("~", most.Value(), 1<<20), limit)
	}
}
