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
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
)

// E9: a restart for content that another replica has already moved on from would be one too many.
func TestE9TheCacheIsKnownToBeBehind(t *testing.T) {
	const none = ""
	for name, test := range map[string]struct {
		cached, live string
		behind       bool
	}{
		"as the API server has it":         {cached: "7", live: "7"},
		"older than the API server has it": {cached: "7", live: "12", behind: true},
		"newer than what was answered":     {cached: "12", live: "7"},
		"not there, as on the server":      {cached: none, live: none},
		"not there yet":                    {cached: none, live: "7", behind: true},
		"there still":                      {cached: "7", live: none, behind: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var cached []runtime.Object
			if test.cached != none {
				cached = append(cached, &corev1.ConfigMap{ObjectMeta: versioned(test.cached)})
			}
			var live []runtime.Object
			if test.live != none {
				live = append(live, &metav1.PartialObjectMetadata{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
					ObjectMeta: versioned(test.live),
				})
			}
			scheme := metadatafake.NewTestScheme()
			g.Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())
			c := newCache(t, fake.NewClientset(cached...))
			c.live = metadatafake.NewSimpleMetadataClient(scheme, live...)
			start(t, c)
			g.Eventually(readable(c)).Should(Succeed())

			err := c.Confirm(t.Context(), "shop", appConfig)
			if test.behind {
				g.Expect(err).To(MatchError(errBehind))
				g.Expect(err.Error()).To(HavePrefix("ConfigMap app-config: "))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}

func versioned(resourceVersion string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: appConfig.Name, ResourceVersion: resourceVersion}
}
