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

package gitops

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/test/utils"
)

// What expressions name.
var (
	quoted   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	selector = regexp.MustCompile(`\b((?:configwatch|rest_client|leader_election)_\w+)(?:\{([^}]*)\})?`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	matcher  = regexp.MustCompile(`(\w+)=`)
	exported = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? \S+$`)
)

// added are the labels that Prometheus adds.
var added = []string{"job"}

var _ = Describe("Alerts and the dashboard", func() {
	It("name metrics and labels that a manager has, from its start", func(ctx SpecContext) {
		address := freeAddress()
		m, err := utils.StartManager(utils.ManagerOptions{Binary: binary, Kubeconfig: kubeconfig, Args: []string{
			"--leader-elect=true", "--watch-namespaces=" + newNamespace(ctx).Name, "--stream-bind-address=" + freeAddress(),
			"--metrics-bind-address=" + address, "--metrics-secure=false",
		}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(m.Stop)
		Expect(m.WaitReady(ctx)).To(Succeed())
		labels := map[string][]string{}
		for _, line := range exported.FindAllStringSubmatch(get("http://"+address+"/metrics"), -1) {
			found := append(labels[line[1]], added...)
			for _, label := range matcher.FindAllStringSubmatch(quoted.ReplaceAllString(line[2], ""), -1) {
				found = append(found, label[1])
			}
			labels[line[1]] = found
		}
		// Counted only once something happens.
		labels["configwatch_source_changes_total"] = []string{"kind", "event"}

		names := map[string]bool{}
		for _, file := range []string{"config/prometheus/rules.yaml", "config/grafana/configwatch.json"} {
			text, err := os.ReadFile(filepath.Join(root, file))
			Expect(err).NotTo(HaveOccurred())
			for line := range strings.Lines(strings.ReplaceAll(string(text), `\"`, `"`)) {
				var metrics []string
				for _, match := range selector.FindAllStringSubmatch(line, -1) {
					names[match[1]] = true
					metrics = append(metrics, match[1])
					Expect(labels).To(HaveKey(match[1]), file)
					for _, label := range matcher.FindAllStringSubmatch(quoted.ReplaceAllString(match[2], ""), -1) {
						Expect(labels[match[1]]).To(ContainElement(label[1]), "%s: %s", file, match[0])
					}
				}
				for _, by := range grouping.FindAllStringSubmatch(line, -1) {
					for label := range strings.SplitSeq(by[1], ", ") {
						Expect(metrics).NotTo(BeEmpty(), line)
						Expect(labels[metrics[0]]).To(ContainElement(label), line)
					}
				}
			}
		}
		for name := range labels {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
			if strings.HasPrefix(name, "configwatch_") && !strings.HasSuffix(name, "_bucket") && name != "configwatch_build_info" {
				Expect(names).To(Or(HaveKey(name), HaveKey(name+"_bucket")), "the dashboard shows it")
			}
		}
	})
})

func get(url string) string {
	GinkgoHelper()
	response, err := http.Get(url) //nolint:gosec // of this test's manager
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}
