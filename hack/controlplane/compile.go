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

package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// stagesFile stands beside kwok's program and tells kwok what a node and its pods go through.
const stagesFile = "kwok-stages.yaml"

func (b *builder) compile(ctx context.Context, component Component, path string) error {
	src := sources()[component]
	name := string(component) + " " + b.versions[component]
	b.say("%s: building; usually %s the first time on 2 cores, seconds with a warm Go build cache", name, src.usual)

	var output compilerOutput
	cmd := b.goCommand(ctx, src.folder, "build", "-v", "-mod=readonly", "-trimpath", "-ldflags", b.linkerFlags(),
		"-o", path, src.module+src.command)
	cmd.Stderr = &output

	started := time.Now()
	stop := every(15*time.Second, func() {
		b.say("%s: %s, %s", name, time.Since(started).Round(time.Second), output.progress())
	})
	err := cmd.Run()
	stop()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, output.tail())
	}
	b.say("%s: built in %s", name, time.Since(started).Round(time.Second))
	return nil
}

// goCommand runs in the module that pins the programs, for this machine whatever the caller's environment asks for.
func (b *builder) goCommand(ctx context.Context, folder string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.source, folder)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	// Unlike a kill, an interrupt lets the go command end its compilers.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// linkerFlags make the programs report the version that they are, as Kubernetes' own releases do.
func (b *builder) linkerFlags() string {
	const variable = " -X k8s.io/component-base/version."
	version := b.versions[APIServer]
	numbers := strings.Split(strings.TrimPrefix(version, "v"), ".")
	return "-s -w" + variable + "gitVersion=" + version +
		variable + "gitMajor=" + numbers[0] + variable + "gitMinor=" + numbers[1]
}

// copyStages joins the stages of kwok's module that make a node Ready and let pods start, end and be deleted at once.
func (b *builder) copyStages(ctx context.Context) error {
	src := sources()[Kwok]
	folder, err := b.goCommand(ctx, src.folder, "list", "-m", "-mod=readonly", "-f", "{{.Dir}}", src.module).Output()
	if err != nil {
		return fmt.Errorf("finding the module %s: %w", src.module, err)
	}
	var stages bytes.Buffer
	for _, name := range []string{
		"node/fast/node-initialize.yaml",
		"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
		"pod/fast/pod-ready.yaml",
		"pod/fast/pod-complete.yaml",
		"pod/fast/pod-delete.yaml",
	} {
		stage, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "kustomize", "stage", name))
		if err != nil {
			return fmt.Errorf("reading a stage of kwok: %w", err)
		}
		stages.WriteString("---\n")
		stages.Write(stage)
	}
	return os.WriteFile(filepath.Join(b.dir, stagesFile), stages.Bytes(), 0o600)
}

// every calls do at each interval until stop, which returns when no call is under way.
func every(interval time.Duration, do func()) (stop func()) {
	ended := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				do()
			}
		}
	})
	return func() {
		close(ended)
		running.Wait()
	}
}

// compilerOutput keeps what the go command says: a package's path a line as it is compiled, and errors.
type compilerOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *compilerOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *compilerOutput) progress() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	packages, last := 0, "reading or linking"
	for line := range strings.Lines(o.text.String()) {
		last = strings.TrimSpace(line)
		if !strings.HasPrefix(last, "go: ") {
			packages++
		}
	}
	return fmt.Sprintf("%d packages compiled: %s", packages, last)
}

func (o *compilerOutput) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return lastLines(o.text.Bytes())
}
