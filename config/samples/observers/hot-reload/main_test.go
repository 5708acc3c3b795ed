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
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/config/samples/observers/changes"
)

func modified(data map[string]string) changes.Change {
	return changes.Change{Event: changes.Modified, Kind: "ConfigMap", Name: "app-config", Data: data}
}

// get is the status and the body of an answer.
func get(a *app, path string) (int, string) {
	answer := httptest.NewRecorder()
	a.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

func TestAChangeTakesEffectWithoutARestart(t *testing.T) {
	g := NewWithT(t)
	a := newApp()
	_, before := get(a, "/")
	g.Expect(before).To(Equal("Hello\n"))
	g.Expect(a.level.Level()).To(Equal(slog.LevelInfo))

	a.observe(modified(map[string]string{"LOG_LEVEL": "debug", "FEATURES": "other, polite"}))
	_, after := get(a, "/")
	g.Expect(after).To(Equal("Good day to you\n"))
	g.Expect(a.level.Level()).To(Equal(slog.LevelDebug))
	_, settings := get(a, "/settings")
	g.Expect(settings).To(MatchJSON(`{"logLevel":"DEBUG","features":["other","polite"]}`))

	a.observe(modified(map[string]string{}))
	_, settings = get(a, "/settings")
	g.Expect(settings).To(MatchJSON(`{"logLevel":"INFO","features":[]}`), "what is left out has its default")
}

func TestWhatCantBeUsedLeavesTheLastSettingsInForce(t *testing.T) {
	for name, change := range map[string]changes.Change{
		"a level that is none":    modified(map[string]string{"LOG_LEVEL": "loud", "FEATURES": ""}),
		"no data, as it was gone": modified(nil),
		"a deletion":              {Event: changes.Deleted},
		"a gap":                   {Event: changes.Gap},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp()
			a.observe(modified(map[string]string{"LOG_LEVEL": "warn", "FEATURES": "polite"}))
			a.observe(change)
			_, settings := get(a, "/settings")
			NewWithT(t).Expect(settings).To(MatchJSON(`{"logLevel":"WARN","features":["polite"]}`))
		})
	}
}

func TestItIsReadyOnceTheConfigMapHasBeenLookedFor(t *testing.T) {
	g := NewWithT(t)
	a := newApp()
	code, _ := get(a, "/readyz")
	g.Expect(code).To(Equal(http.StatusServiceUnavailable))
	a.observe(changes.Change{Event: changes.Synced})
	code, _ = get(a, "/readyz")
	g.Expect(code).To(Equal(http.StatusOK))
}
