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
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/hack/controlplane"
	"github.com/ktechhub/configwatch/internal/hashkey"
	"github.com/ktechhub/configwatch/test/utils"
)

var (
	plane      *controlplane.Plane
	k8sClient  client.WithWatch
	binary     string // of the manager
	kubeconfig string // of the manager, without a proxy
	logs       = &everyLog{}
)

func TestFault(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Fault Suite")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	before := gleak.Goroutines()
	DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
	var err error
	plane, err = controlplane.Start(ctx, controlplane.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return plane.Stop() })
	k8sClient, err = utils.NewClient(plane.RESTConfig())
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err = utils.Install(ctx, plane, k8sClient)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(expectNoSecretInLogs)
	binary, err = utils.BuildManager(ctx)
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(30*time.Minute)) // programs that aren't in the cache are built first

// expectNoSecretInLogs proves that what the managers logged in all tests, at the highest level, with the
// bodies of requests that client-go logs at it, has none of the values that were planted in Secrets, and
// not the hash key either (E2).
func expectNoSecretInLogs(ctx SpecContext) {
	log := logs.String()
	if log == "" {
		return // no test that starts a manager was chosen
	}
	key := &corev1.Secret{}
	Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: utils.ManagerNamespace, Name: hashkey.SecretName}, key)).To(Succeed())
	log += dumped(log)
	Expect(strings.Contains(log, shared)).To(BeTrue(), "the log, and what was dumped in it, is read")
	for _, secret := range []string{canary, string(key.Data[hashkey.DataKey])} {
		Expect(strings.Contains(log, secret)).To(BeFalse())
		Expect(strings.Contains(log, base64.StdEncoding.EncodeToString([]byte(secret)))).To(BeFalse())
	}
}

// dumped is what client-go has dumped of bodies in protobuf, as 16 bytes a line in hexadecimal.
func dumped(log string) string {
	var all strings.Builder
	for line := range strings.Lines(log) {
		var entry struct{ Body string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || !strings.HasPrefix(entry.Body, "00000000  ") {
			continue
		}
		for row := range strings.Lines(entry.Body) {
			digits, _, _ := strings.Cut(strings.TrimLeft(row, "0123456789abcdef"), "|")
			content, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
			Expect(err).NotTo(HaveOccurred())
			all.Write(content)
		}
	}
	return all.String()
}

// launch starts a manager through a proxy; it ends with the test at the latest.
func launch(p *proxy, args ...string) *utils.Manager {
	GinkgoHelper()
	return launchIn(nil, p, args...)
}

// launchIn is launch, with more environment variables.
func launchIn(env []string, p *proxy, args ...string) *utils.Manager {
	GinkgoHelper()
	m, err := utils.StartManager(utils.ManagerOptions{
		Binary: binary, Kubeconfig: p.kubeconfig, Args: append([]string{"--zap-log-level=10"}, args...), Env: env, Output: logs,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			AddReportEntry("the manager's log", strings.Join(lines(m, "info", "error"), ""))
		}
		m.Kill()
	})
	return m
}

// run starts a manager through a proxy and waits until it is ready.
func run(ctx context.Context, p *proxy, args ...string) *utils.Manager {
	GinkgoHelper()
	m := launch(p, args...)
	Expect(m.WaitReady(ctx)).To(Succeed())
	return m
}

// lines are the lines of the manager's log at some levels.
func lines(m *utils.Manager, levels ...string) []string {
	var chosen []string
	for line := range strings.Lines(m.Log()) {
		if slices.ContainsFunc(levels, func(level string) bool { return strings.HasPrefix(line, `{"level":"`+level+`"`) }) {
			chosen = append(chosen, line)
		}
	}
	return chosen
}

// everyLog is what all managers have logged.
type everyLog struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *everyLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *everyLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}
