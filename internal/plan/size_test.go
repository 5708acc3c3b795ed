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

package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// The API server takes objects of 1.5 MiB, of which managedFields need a part.
func TestAStatusAtAllLimitsFitsAnObject(t *testing.T) {
	g := NewWithT(t)
	const targets, sources = 1000, 3
	long := func(prefix string, i int) string {
		return fmt.Sprintf("%s-%s-%04d", prefix, strings.Repeat("x", 30), i)
	}
	var objects []any
	var configs []*src
	for i := range sources {
		configs = append(configs, configMap(long("config", i), "A"))
		objects = append(objects, configs[i])
	}
	for i := range targets {
		target := deployment(long("web", i))
		target.uid = fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
		objects = append(objects, target)
	}
	s := settled(objects...)
	for change := range 10 { // so many that all are slowed down, roll out, and wait with the next
		for _, config := range configs {
			config.set(fmt.Sprint(change))
		}
		s.at(s.now.Add(time.Second))
	}
	status, err := json.Marshal(s.status)
	g.Expect(err).NotTo(HaveOccurred())
	row := s.status.Targets[targets-1]
	g.Expect(row.State).To(Equal(v1alpha1.TargetPending))
	g.Expect([]bool{row.Wait != nil, row.Rollout != nil, row.Slowdown != nil, len(row.Message) > 140}).To(HaveEach(true))
	g.Expect(len(status)).To(BeNumerically("<", 1_450_000))
}
