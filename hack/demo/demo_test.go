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
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/test/utils"
)

// TestDemo plays the demo with --keep, and presses Ctrl-C when it says how.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	g := NewWithT(t)
	ctx, ctrlC := context.WithTimeout(t.Context(), 30*time.Minute) // programs that aren't in the cache are built first
	defer ctrlC()
	var out bytes.Buffer
	watched := writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("Ctrl-C")) {
			defer ctrlC()
		}
		return out.Write(p)
	})

	err := run(ctx, options{root: filepath.Join("..", ".."), keep: true, screen: newScreen(watched, false)})
	t.Log(out.String())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.String()).NotTo(ContainSubstring("\x1b"), "colours, which nobody asked for")
	g.Expect(strings.Count(out.String(), "✓")).To(Equal(8), "four steps and the summary of each")
	g.Expect(out.String()).To(And(
		ContainSubstring("RestartTriggered: Restarted Deployment default/web: ConfigMap web-config changed (LOG_LEVEL)"),
		ContainSubstring("RestartTriggered: Restarted Deployment default/web: Secret web-credentials changed"),
		MatchRegexp(`(?m)^     web +True +UpToDate +2 +1 +1 `),
		MatchRegexp(`export KUBECONFIG=\S+`),
	))
	kubeconfig := strings.Fields(strings.SplitAfter(out.String(), "export KUBECONFIG=")[1])[0]
	g.Expect(kubeconfig).NotTo(BeAnExistingFile(), "the control plane was left behind")
}

func TestDemoSaysWhyItFailed(t *testing.T) {
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Skip("needs a program to stand for the manager")
	}
	g := NewWithT(t)
	d := &demo{world: newWorld(newScreen(io.Discard, false))}
	d.manager, err = utils.StartManager(utils.ManagerOptions{Binary: echo, Kubeconfig: "from.here"})
	g.Expect(err).NotTo(HaveOccurred())
	d.exited = d.manager.Exited()

	err = d.wait(t.Context(), "pigs fly", func() bool { return false })

	g.Expect(d.explain(t.Context(), err)).To(MatchError(And(
		ContainSubstring("the manager exited while the demo waited until pigs fly"),
		ContainSubstring("The manager's log ends with:\n--kubeconfig=from.here"),
	)))
}

func TestDemoSaysThatItWasInterrupted(t *testing.T) {
	g := NewWithT(t)
	d := &demo{world: newWorld(newScreen(io.Discard, false))}
	ctx, ctrlC := context.WithCancel(t.Context())
	ctrlC()

	err := d.wait(ctx, "pigs fly", func() bool { return false })

	g.Expect(d.explain(ctx, err)).To(MatchError(ContainSubstring("interrupted")))
}

func TestColoursAreForTerminalsOnly(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	g.Expect(wantsColours(file)).To(BeFalse())

	var out bytes.Buffer
	newScreen(&out, true).verdict(true, "well")
	newScreen(&out, false).verdict(false, "badly")
	g.Expect(out.String()).To(Equal("   \x1b[32m✓ \x1b[0mwell\n   ✗ badly\n"))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
