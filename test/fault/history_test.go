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

package fault

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// history is every status that a ConfigWatch has had, seen by a watch, which misses none.
type history struct {
	mu       sync.Mutex
	statuses []v1alpha1.ConfigWatchStatus
}

// recordHistory watches the only ConfigWatch of a namespace from now on, until the test is over.
func recordHistory(ctx context.Context, namespace string) *history {
	GinkgoHelper()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	w, err := k8sClient.Watch(watching, &v1alpha1.ConfigWatchList{}, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	h, ended := &history{}, make(chan struct{})
	DeferCleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		for event := range w.ResultChan() {
			if cw, ok := event.Object.(*v1alpha1.ConfigWatch); ok {
				h.mu.Lock()
				h.statuses = append(h.statuses, cw.Status)
				h.mu.Unlock()
			}
		}
	}()
	return h
}

// reasons are those that the row of a Deployment has had, without repetitions.
func (h *history) reasons(name string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var reasons []string
	for i := range h.statuses {
		row := rowIn(&h.statuses[i], name)
		if row != nil && (len(reasons) == 0 || reasons[len(reasons)-1] != row.Reason) {
			reasons = append(reasons, row.Reason)
		}
	}
	return reasons
}

// checkTimes is nil if nothing that was recorded of a wait, nor what its message says of the time, has become
// another before the wait was over (E14).
func (h *history) checkTimes() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := 1; i < len(h.statuses); i++ {
		was, is := &h.statuses[i-1], &h.statuses[i]
		for j := range is.Targets {
			after := &is.Targets[j]
			before := rowIn(was, after.Name)
			if before == nil || before.Wait == nil || after.Wait == nil || before.Wait.Digest != after.Wait.Digest {
				continue
			}
			if err := sameWait(before, after, was.ObservedGeneration == is.ObservedGeneration); err != nil {
				return fmt.Errorf("%s: %w", after.Name, err)
			}
		}
	}
	return nil
}

func sameWait(before, after *v1alpha1.TargetStatus, sameSpec bool) error {
	was, is := before.Wait.DeepCopy(), after.Wait.DeepCopy()
	was.Renew, is.Renew = false, false // it may turn out later that pods were started meanwhile
	if was.Template == nil {           // it could not be read at first
		is.Template = nil
	}
	if was.ApprovedHash == "" {
		is.ApprovedHash = ""
	}
	if was.RequestedAt == nil {
		is.RequestedAt = nil
	}
	if !equality.Semantic.DeepEqual(was, is) {
		return fmt.Errorf("it waited as %+v, and then as %+v", *was, *is)
	}
	switch after.Reason {
	case v1alpha1.ReasonSettling, v1alpha1.ReasonCoolingDown, v1alpha1.ReasonOutsideWindow:
		if sameSpec && before.Reason == after.Reason && before.Message != after.Message {
			return fmt.Errorf("it said %q, and then %q", before.Message, after.Message)
		}
	}
	return nil
}

func rowIn(status *v1alpha1.ConfigWatchStatus, name string) *v1alpha1.TargetStatus {
	for i := range status.Targets {
		if row := &status.Targets[i]; row.Name == name {
			return row
		}
	}
	return nil
}
