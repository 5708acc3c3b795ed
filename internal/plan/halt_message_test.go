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
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

const goOnAllTheSame = "Deployment d0: ConfigMap config changed (KEY). Progress deadline exceeded. 2 targets are halted: " +
	"mend the configuration, or to go on all the same, annotate the ConfigWatch with configwatch.ktechhub.io/approve="

// An approval copied from an older message would otherwise do nothing, and say nothing.
func TestE17AnApprovalOfAnotherHashSaysSo(t *testing.T) {
	g := NewWithT(t)
	_, _, s := haltedFleet(3)
	g.Expect(s.message(v1alpha1.ConditionReady)).To(Equal(goOnAllTheSame + s.status.ApprovalHash))
	s.approved = "0123456789abcdef"
	g.Expect(s.pass().restarts).To(BeEmpty())
	g.Expect(s.message(v1alpha1.ConditionReady)).To(Equal(goOnAllTheSame + s.status.ApprovalHash +
		" (the annotation configwatch.ktechhub.io/approve names another hash)"))
}

// The Event stays as it is, while each further failure makes another hash.
func TestE17TheEventOfAHaltNamesNoHash(t *testing.T) {
	g := NewWithT(t)
	config, d, s := fleet(3)
	s.rollout.MaxConcurrent = 1
	config.set("B")
	s.pass()
	d[0].fails()
	g.Expect(s.pass().note(v1alpha1.EventStalled)).To(Equal("RolloutFailed: " + goOnAllTheSame + "<status.approvalHash>"))
}
