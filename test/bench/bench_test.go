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
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The benchmark runs itself as the floor.
func TestMain(m *testing.M) {
	if isFloor() {
		if err := runFloor(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// A smoke test: times and memory say nothing here, but what is counted must be right.
func TestCountsAreReached(t *testing.T) {
	g := NewWithT(t)
	report, err := measure(t.Context(), small(), "")
	g.Expect(err).NotTo(HaveOccurred())

	counted := 0
	for _, row := range report.Rows {
		if row.Limit == nil || !slices.Contains([]string{"restarts", "changes", "calls", "events", "allocations"}, row.Unit) {
			continue
		}
		counted++
		g.Expect(row.Manager).To(BeNumerically("<=", *row.Limit), row.Name)
	}
	g.Expect(counted).To(Equal(13))
	for _, row := range report.Rows {
		if row.Ratio != nil {
			g.Expect(*row.Floor).To(BeNumerically(">", 0), row.Name)
		}
	}
}
