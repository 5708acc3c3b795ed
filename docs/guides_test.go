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

package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestGuidesShowManifestsOfTheTreeAsTheyAre(t *testing.T) {
	shown := regexp.MustCompile("(?s)\\]\\(([^)\\s]+\\.yaml)\\):\n\n```yaml\n(.*?)```")
	found := 0
	for _, page := range pages(t) {
		if !strings.HasPrefix(page, filepath.Join("docs", "guides")) {
			continue
		}
		for _, match := range shown.FindAllStringSubmatch(read(t, page), -1) {
			manifest := read(t, filepath.Join(filepath.Dir(page), match[1]))
			NewWithT(t).Expect(match[2]).To(Equal(manifest), "%s shows %s", page, match[1])
			found++
		}
	}
	NewWithT(t).Expect(found).To(BeNumerically(">=", 3))
}
