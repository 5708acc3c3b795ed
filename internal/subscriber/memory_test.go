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

package subscriber_test

import (
	"runtime"
	buildinfo "runtime/debug"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/webhook"
)

// inUse is how many bytes the heap and the stacks take.
func inUse() int64 {
	for range 4 { // each halves the stacks that are too large
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// A thousand attempts may be under way at once. With 128 MiB for the manager, of which the collector may fill 90, they have
// some 70 KB each, beside all else.
func TestF6AnAttemptThatIsUnderWayTakesLittleMemory(t *testing.T) {
	const attempts = 300
	most := int64(70 << 10)
	info, _ := buildinfo.ReadBuildInfo()
	if slices.Contains(info.Settings, buildinfo.BuildSetting{Key: "-race", Value: "true"}) {
		most *= 3 // it takes memory of its own
	}
	g := NewWithT(t)
	h := serve(t)
	sender, err := webhook.New(webhook.Options{Guard: anywhere, Timeout: 5 * time.Minute})
	g.Expect(err).NotTo(HaveOccurred())
	h.Sender = sender
	url, taken := silent(t)
	before := inUse()
	h.tellMany(t, attempts, toURL(url))
	g.Eventually(taken.Load).WithTimeout(time.Minute).Should(BeEquivalentTo(attempts))
	g.Eventually(func() int64 { return (inUse() - before) / attempts }).WithTimeout(time.Minute).Should(BeNumerically("<", most))
}
