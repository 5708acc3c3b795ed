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
		address, ns := freeAddress(), newNamespace(ctx)
		m, err := utils.StartManager(utils.ManagerOptions{Binary: binary, Kubeconfig: kubeconfig, Args: []string{
			"--leader-elect=true", "--watch-namespaces=" + ns.Name, "--stream-bind-address=" + freeAddress(),
			"--metrics-bind-address=" + address, "--metrics-secure=false",
		}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(m.Stop)
		Expect(m.WaitReady(ctx)).To(Succeed())
		Expect(ns.Create(ctx, utils.MakeConfigMap("app-config").Data("LOG_LEVEL", "info").Obj())).To(Succeed())
		var scraped string
		Eventually(func() string {
			scraped = get("http://" + address + "/metrics")
			return scraped
		}).Should(ContainSubstring("\nconfigwatch_source_changes_total{"), "which is there once something has changed")
		expectReference(scraped)

		labels := map[string][]string{}
		for _, line := range exported.FindAllStringSubmatch(scraped, -1) {
			found := append(labels[line[1]], added...)
			for _, label := range matcher.FindAllStringSubmatch(quoted.ReplaceAllString(line[2], ""), -1) {
				found = append(found, label[1])
			}
			labels[line[1]] = found
		}

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

// described is a metric of the operator's own, with its help and type.
var described = regexp.MustCompile(`(?m)^# HELP (configwatch_\w+) (.*)\n# TYPE \w+ (\w+)\n\w+(?:\{(.*)\})? `)

// expectReference compares the page of metrics with what a manager has, or writes it.
func expectReference(scraped string) {
	GinkgoHelper()
	page := "# Metrics\n\nWritten by `UPDATE_FIXTURES=1 go test ./test/gitops` from what a manager has. Those of controller-runtime " +
		"and client-go are there too.\n\n| metric | type | labels | |\n|---|---|---|---|\n"
	for _, metric := range described.FindAllStringSubmatch(scraped, -1) {
		var names []string
		for _, label := range matcher.FindAllStringSubmatch(quoted.ReplaceAllString(metric[4], ""), -1) {
			if label[1] != "le" {
				names = append(names, "`"+label[1]+"`")
			}
		}
		page += "| `" + metric[1] + "` | " + metric[3] + " | " + strings.Join(names, ", ") + " | " + metric[2] + " |\n"
	}
	file := filepath.Join(root, "docs", "reference", "metrics.md")
	if update {
		Expect(os.WriteFile(file, []byte(page), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred(), again)
	Expect(page).To(Equal(string(want)), again)
}

func get(url string) string {
	GinkgoHelper()
	response, err := http.Get(url)
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
