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
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	pollInterval = 50 * time.Millisecond
	startTimeout = 2 * time.Minute // for one component; seconds are usual
	stopTimeout  = 5 * time.Second // from SIGTERM to SIGKILL
)

// starter starts processes from one OS thread that lives until the starter is closed: the kernel kills a process that
// has a parent-death signal when the thread that made it ends, be that long before the process of the thread.
type starter chan func()

func newStarter() starter {
	s := make(starter)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with this goroutine
		for start := range s {
			start()
		}
	}()
	return s
}

func (s starter) start(cmd *exec.Cmd) error {
	result := make(chan error)
	s <- func() { result <- cmd.Start() }
	return <-result
}

// process is a component that was started.
type process struct {
	log   string // path
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended and is reaped
}

// startProcess runs a program with nothing of the caller's environment, where variables could change what it does.
func (s starter) startProcess(program, home, log string, args []string) (*process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	defer output.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "TMPDIR=" + home}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = processAttributes()
	if err := s.start(cmd); err != nil {
		return nil, err
	}
	p := &process{log: log, cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(p.ended)
	}()
	return p, nil
}

// await polls until ready returns nil. It fails when the process ends first, or does not become ready in time.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	errEnded, notReady := errors.New("ended"), errors.New("not asked yet")
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, errEnded
		default:
			notReady = ready(ctx)
			return notReady == nil, nil
		}
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errEnded):
		return fmt.Errorf("it ended (%s); its log ends with:\n%s", p.cmd.ProcessState, p.logTail())
	default:
		return fmt.Errorf("it was not ready in time: %w: %w; its log ends with:\n%s", err, notReady, p.logTail())
	}
}

func (p *process) logTail() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(log)
}

func lastLines(text []byte) string {
	const count = 20
	lines := strings.SplitAfter(string(bytes.TrimSpace(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "")
}

// stop ends the process and returns when it is gone. A paused process is resumed first, or it would not see SIGTERM.
func (p *process) stop() {
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.kill()
	}
}

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func (p *process) signal(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal) // it fails only if the process has ended
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
