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
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// E9: a restart for content that another replica has already moved on from would be one too many.
func TestE9AnObservationIsKnownToBeBehind(t *testing.T) {
	const none = ""
	for name, test := range map[string]struct {
		observed, live string
		behind         bool
	}{
		"as the API server has it":         {observed: "7", live: "7"},
		"older than the API server has it": {observed: "7", live: "12", behind: true},
		"newer than what was answered":     {observed: "12", live: "7"},
		"not there, as on the server":      {observed: none, live: none},
		"not there yet":                    {observed: none, live: "7", behind: true},
		"there still":                      {observed: "7", live: none, behind: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var live []runtime.Object
			if test.live != none {
				live = append(live, &metav1.PartialObjectMetadata{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: appConfig.Name, ResourceVersion: test.live},
				})
			}
			scheme := metadatafake.NewTestScheme()
			g.Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())
			c := newCache(t, fake.NewClientset())
			c.live = metadatafake.NewSimpleMetadataClient(scheme, live...)

			err := c.Confirm(t.Context(), "shop", Version{Ref: appConfig, ResourceVersion: test.observed})
			if test.behind {
				g.Expect(err).To(MatchError(ErrBehind))
				g.Expect(err.Error()).To(HavePrefix("ConfigMap app-config: "))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}

// A source that has become one that the cache leaves out must not be waited for.
func TestConfirmAsksForWhatTheCacheWatches(t *testing.T) {
	for kind, selector := range map[v1alpha1.SourceKind]string{
		v1alpha1.ConfigMap: "metadata.name=app",
		v1alpha1.Secret:    "metadata.name=app,type!=helm.sh/release.v1",
	} {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			scheme := metadatafake.NewTestScheme()
			g.Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())
			live := metadatafake.NewSimpleMetadataClient(scheme)
			c := newCache(t, fake.NewClientset())
			c.live = live

			g.Expect(c.Confirm(t.Context(), "shop", Version{Ref: Ref{Kind: kind, Name: "app"}})).To(Succeed())
			g.Expect(live.Actions()).To(HaveLen(1))
			list, ok := live.Actions()[0].(clienttesting.ListAction)
			g.Expect(ok).To(BeTrue())
			g.Expect(list.GetNamespace()).To(Equal("shop"))
			g.Expect(list.GetListRestrictions().Fields.String()).To(Equal(selector))
		})
	}
}

func TestE11AVersionThatCanNotBeLearntIsAnErrorOfItsOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		observed string
		refuse   error
		want     string
	}{
		"the list is refused": {
			"7", errors.New("connection refused"), "reading the version of ConfigMap app-config: connection refused",
		},
		"the version is no number": {
			"seven", nil, "comparing the versions of ConfigMap app-config: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := metadatafake.NewTestScheme()
			g.Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())
			live := metadatafake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: appConfig.Name, ResourceVersion: "7"},
			})
			live.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return tc.refuse != nil, nil, tc.refuse
			})
			c := newCache(t, fake.NewClientset())
			c.live = live

			err := c.Confirm(t.Context(), "shop", Version{Ref: appConfig, ResourceVersion: tc.observed})
			g.Expect(err).To(MatchError(HavePrefix(tc.want)))
			g.Expect(err).NotTo(MatchError(ErrBehind), "it isn't known to be behind")
		})
	}
}
