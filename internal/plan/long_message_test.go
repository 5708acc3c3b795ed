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
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// longName is as long as a name may be.
func longName(prefix string) string {
	return prefix + strings.Repeat("x", 253-len(prefix))
}

// What is long is what changed; what a human has to know, or to do, comes after it.
func TestE27ALongMessageIsCutWhereItSaysWhatChanged(t *testing.T) {
	g := NewWithT(t)
	first, second := configMap(longName("one-"), "A"), configMap(longName("two-"), "A")
	failing, waiting := deployment("web"), deployment("worker")
	s := settled(first, second, failing, waiting)
	s.rollout.MaxConcurrent = 1
	keys := data{}
	for i := range 3 {
		keys[longName(fmt.Sprintf("key-%d-", i))] = "B"
	}
	first.write(keys)
	second.write(keys)
	s.pass()
	g.Expect(s.row(failing).Message).To(And(HaveSuffix("; and 1 more source"), Not(ContainSubstring("two-"))),
		"it names as many as fit")
	failing.fails()
	failed := s.pass()
	g.Expect(s.row(waiting).Message).To(HaveSuffix(". Halted, as Deployment web failed to roll out for the same change"))
	g.Expect(failed.note(v1alpha1.EventHalted)).To(And(
		HavePrefix("Deployment shop/worker: not restarted yet: ConfigMap one-"), HaveSuffix(" failed to roll out for the same change")))
	g.Expect(s.message(v1alpha1.ConditionStalled)).To(And(HavePrefix("Deployment web: ConfigMap one-"),
		ContainSubstring(". Progress deadline exceeded. 1 target is halted: "), HaveSuffix("approve="+s.status.ApprovalHash)))
	g.Expect(failed.note(v1alpha1.EventStalled)).To(HaveSuffix("approve=<status.approvalHash>"))
}

// The more targets there are, the shorter a row may be.
func TestE27ARowOfALargeFleetSaysWhatItWaitsFor(t *testing.T) {
	g := NewWithT(t)
	config := configMap(longName("config-"), "A")
	objects := []any{config}
	var last *tgt
	for i := range 1000 {
		last = deployment(fmt.Sprintf("web-%d", i))
		objects = append(objects, last)
	}
	s := settled(objects...)
	s.rollout.Approval = v1alpha1.ApprovalManual
	config.set("B")
	s.pass()
	g.Expect(s.row(last).Message).To(And(HavePrefix("ConfigMap config-xxx"), HaveSuffix("approve="+s.status.ApprovalHash)))
	g.Expect(len(s.row(last).Message)).To(BeNumerically("<=", 150))
}
