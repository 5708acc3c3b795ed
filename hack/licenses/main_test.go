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
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// zlib is a licence that is known, and not listed.
const zlib = `This software is provided 'as-is', without any express or implied warranty. In no event will the authors be held
liable for any damages arising from the use of this software.

Permission is granted to anyone to use this software for any purpose, including commercial applications, and to alter it and
redistribute it freely, subject to the following restrictions:

1. The origin of this software must not be misrepresented; you must not claim that you wrote the original software. If you use
   this software in a product, an acknowledgment in the product documentation would be appreciated but is not required.
2. Altered source versions must be plainly marked as such, and must not be misrepresented as being the original software.
3. This notice may not be removed or altered from any source distribution.
`

func TestTheModulesOfAReleaseMayBeUsed(t *testing.T) {
	g := NewWithT(t)
	modules, err := modulesOf(t.Context(), "../../cmd", "../../cmd/kubectl-configwatch")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(modules).To(ContainElement(HaveField("Path", "k8s.io/client-go")))
	g.Expect(modules).NotTo(ContainElement(HaveField("Path", "github.com/onsi/gomega")), "which is for tests")
	var out strings.Builder
	g.Expect(check(&out, modules)).To(Succeed())
	g.Expect(out.String()).To(MatchRegexp(`(?m)^k8s.io/client-go v\S+: Apache-2.0$`))
}

func TestWhatMayNotBeUsed(t *testing.T) {
	apache, err := os.ReadFile("../../LICENSE")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, tc := range map[string]struct{ file, text, message string }{
		"no licence":                   {"README.md", "", "example.com/m: it has no licence"},
		"a licence that nobody knows":  {"LICENSE", "All rights reserved.", "example.com/m: LICENSE is no licence that is known"},
		"a licence that isn't allowed": {"COPYING", zlib, "example.com/m has the licence Zlib, which is none of Apache-2.0, "},
		"one that is":                  {"LICENSE.txt", string(apache), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(folder, tc.file), []byte(tc.text), 0o600)).To(Succeed())
			err := check(&strings.Builder{}, []module{{Path: "example.com/m", Version: "v1.0.0", Dir: folder}})
			if tc.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.message)))
		})
	}
}
