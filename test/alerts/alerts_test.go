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

package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// rule is an alert.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Annotations map[string]string `json:"annotations"`
}

func TestEveryExpressionParses(t *testing.T) {
	p := parser.NewParser(parser.Options{})
	for _, r := range rules(t) {
		if _, err := p.ParseExpr(r.Expr); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(read(t, "config/grafana/configwatch.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("%s shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			if _, err := p.ParseExpr(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")); err != nil {
				t.Errorf("%s: %v", panel.Title, err)
			}
		}
	}
}

func TestEveryAlertHasARunbook(t *testing.T) {
	const pages = "https://github.com/ktechhub/configwatch/blob/main/"
	for _, r := range rules(t) {
		page, ok := strings.CutPrefix(r.Annotations["runbook_url"], pages)
		if !ok {
			t.Errorf("%s: runbook_url doesn't lead to %s", r.Alert, pages)
			continue
		}
		if title, _, _ := strings.Cut(string(read(t, page)), "\n"); title != "# "+r.Alert {
			t.Errorf("%s: the title of %s is %q", r.Alert, page, title)
		}
	}
}

// TestAlerts has for each alert when it fires, given a sample each minute.
func TestAlerts(t *testing.T) {
	const never = -1
	for name, tc := range map[string]struct {
		alert, load string
		fires       int // the minute, or never
	}{
		"a rollout fails": {"ConfigWatchRolloutFailed", `
			configwatch_targets{state="Failed", pod="leader"} 0 0 1x20
			configwatch_targets{state="Failed", pod="other"} 0x22`, 3},
		"it recovers at once": {"ConfigWatchRolloutFailed", `configwatch_targets{state="Failed"} 0 0 1 0x20`, never},
		"none fails": {"ConfigWatchRolloutFailed", `
			configwatch_targets{state="Failed"} 0x30
			configwatch_targets{state="UpToDate"} 5x30`, never},
		"a target waits": {"ConfigWatchTargetsStale", `configwatch_targets{state="Pending"} 0 2x40`, 16},
		"one after the other waits": {"ConfigWatchTargetsStale", `
			configwatch_targets{state="Pending"} 0 2x9 0x30
			configwatch_targets{state="Halted"} 0x9 1x30`, 16},
		"it waits for a while":  {"ConfigWatchTargetsStale", `configwatch_targets{state="Pending"} 0 2x10 0x30`, never},
		"targets only roll out": {"ConfigWatchTargetsStale", `configwatch_targets{state="RollingOut"} 3x40`, never},
		"all deliveries fail": {"ConfigWatchDeliveriesFailing", `
			configwatch_deliveries_total{result="delivered"} 0x60
			configwatch_deliveries_total{result="refused"} 0x60
			configwatch_deliveries_total{result="failed"} 0+1x60`, 16},
		"a few fail": {"ConfigWatchDeliveriesFailing", `
			configwatch_deliveries_total{result="delivered"} 0+10x60
			configwatch_deliveries_total{result="failed"} 0+1x60`, never},
		"there are no deliveries": {"ConfigWatchDeliveriesFailing", `
			configwatch_deliveries_total{result="delivered"} 0x60
			configwatch_deliveries_total{result="failed"} 0x60`, never},
		"it is forbidden": {"ConfigWatchPermissionMissing", `
			rest_client_requests_total{code="403", job="configwatch-controller-manager-metrics-service"} 0+2x30`, 6},
		"something else is forbidden": {"ConfigWatchPermissionMissing", `
			rest_client_requests_total{code="403", job="kube-controller-manager"} 0+2x30`, never},
		"it was forbidden once": {"ConfigWatchPermissionMissing", `
			rest_client_requests_total{code="403", job="configwatch-controller-manager-metrics-service"} 0 1x30`, never},
		"nobody leads": {"ConfigWatchLeaderAbsent", `
			leader_election_master_status{name="configwatch.ktechhub.io", pod="a"} 1 1 0x30
			leader_election_master_status{name="configwatch.ktechhub.io", pod="b"} 0x32`, 7},
		"another one leads": {"ConfigWatchLeaderAbsent", `
			leader_election_master_status{name="configwatch.ktechhub.io", pod="a"} 1 1 0x30
			leader_election_master_status{name="configwatch.ktechhub.io", pod="b"} 0 0 0 1x30`, never},
		"nobody is there": {"ConfigWatchLeaderAbsent", `up{job="something else"} 1x30`, 5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := firesAt(t, ruleOf(t, tc.alert), tc.load); got != tc.fires {
				t.Errorf("%s fires in minute %d, not %d", tc.alert, got, tc.fires)
			}
		})
	}
}

// firesAt is the first minute in which an alert fires, or -1: its expression has had a result for as long as it says.
func firesAt(t *testing.T, r rule, load string) int {
	t.Helper()
	const minutes = 30
	lasting, err := time.ParseDuration(r.For)
	if err != nil {
		t.Fatal(err)
	}
	storage := promqltest.LoadedStorage(t, "load 1m\n"+strings.ReplaceAll(strings.TrimSpace(load), "\t", "  ")+"\n")
	t.Cleanup(func() { _ = storage.Close() })
	engine := promqltest.NewTestEngine(t, false, 0, 10000)
	since := -1
	for minute := range minutes {
		query, err := engine.NewInstantQuery(t.Context(), storage, promql.NewPrometheusQueryOpts(false, 0, nil), r.Expr,
			time.Unix(0, 0).Add(time.Duration(minute)*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		result := query.Exec(t.Context())
		vector, err := result.Vector()
		if err != nil {
			t.Fatal(err)
		}
		active := len(vector) > 0
		query.Close()
		switch {
		case !active:
			since = -1
		case since < 0:
			since = minute
		}
		if active && time.Duration(minute-since)*time.Minute >= lasting {
			return minute
		}
	}
	return -1
}

func ruleOf(t *testing.T, alert string) rule {
	t.Helper()
	for _, r := range rules(t) {
		if r.Alert == alert {
			return r
		}
	}
	t.Fatalf("there is no alert %s", alert)
	return rule{}
}

func rules(t *testing.T) []rule {
	t.Helper()
	var object struct {
		Spec struct {
			Groups []struct {
				Rules []rule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(read(t, "config/prometheus/rules.yaml"), &map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(read(t, "config/prometheus/rules.yaml"), &object); err != nil {
		t.Fatal(err)
	}
	var found []rule
	for _, group := range object.Spec.Groups {
		found = append(found, group.Rules...)
	}
	if len(found) == 0 {
		t.Fatal("there are no alerts")
	}
	return found
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
