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

package version

import (
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestTheMetricTellsWhatRuns(t *testing.T) {
	NewWithT(t).Expect(testutil.CollectAndCompare(Collector(), strings.NewReader(`
# HELP configwatch_build_info Always 1: its labels are the version of the operator, the commit and the Go release that it was built from.
# TYPE configwatch_build_info gauge
configwatch_build_info{commit="unknown",goversion="`+runtime.Version()+`",version="devel"} 1
`))).To(Succeed())
}
