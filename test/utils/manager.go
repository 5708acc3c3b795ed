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

// Package utils has what the suites share: one way to run the manager, one set of builders, one way to
// wait.
package utils

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// ManagerNamespace is the manager's own namespace in tests.
const ManagerNamespace = "configwatch-system"

// BuildManager builds the manager's binary, as a release has it, and is its path.
func BuildManager(ctx context.Context) (string, error) {
	return build(ctx, "manager", "./cmd")
}

// BuildPlugin builds the kubectl plugin, as a release has it, and is its path.
func BuildPlugin(ctx context.Context) (string, error) {
	return build(ctx, "kubectl-configwatch", "./cmd/kubectl-configwatch")
}

// build builds a program. Suites that build at once wait for each other.
func build(ctx context.Context, name, folder string) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	built := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(built, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(built, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("waiting for another build: %w", err)
	}
	binary := filepath.Join(built, name)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, folder)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/ktechhub/configwatch").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// Manager is a running manager process.
type Manager struct {
	command *exec.Cmd
	probes  string
	log     *lockedBuffer
	exited  chan struct{}
}

// ManagerOptions say how to run it.
type ManagerOptions struct {
	// Binary is what BuildManager made.
	Binary string
	// Kubeconfig is the path of the file that says where the API server is, and as whom.
	Kubeconfig string
	// Args are more flags. Leader election is off, and any number of targets roll out at once, unless they
	// say otherwise.
	Args []string
	// Env are more environment variables, each as NAME=value.
	Env []string
	// Output gets a copy of the log, if set.
	Output io.Writer
}

// StartManager starts the manager and doesn't wait for anything.
func StartManager(opts ManagerOptions) (*Manager, error) {
	probes, err := freeAddress()
	if err != nil {
		return nil, err
	}
	m := &Manager{probes: probes, log: &lockedBuffer{}, exited: make(chan struct{})}
	args := append([]string{
		"--kubeconfig=" + opts.Kubeconfig, "--namespace=" + ManagerNamespace,
		"--health-probe-bind-address=" + probes, "--leader-elect=false",
		"--max-concurrent-rollouts=0", // where there are no controllers, no rollout is ever complete
	}, opts.Args...)
	m.command = exec.Command(opts.Binary, args...)
	m.command.Env = append(os.Environ(), opts.Env...)
	m.command.SysProcAttr = endWithParent()
	m.command.Stdout = m.log
	if opts.Output != nil {
		m.command.Stdout = io.MultiWriter(m.log, opts.Output)
	}
	m.command.Stderr = m.command.Stdout
	if err := m.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the manager: %w", err)
	}
	go func() {
		defer close(m.exited)
		_ = m.command.Wait() // the exit state is read from ProcessState
	}()
	return m, nil
}

// WaitReady waits until the manager says that it is ready.
func (m *Manager) WaitReady(ctx context.Context) error {
	const interval, timeout = 10 * time.Millisecond, time.Minute
	err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-m.exited:
			return false, errors.New("it exited")
		default:
		}
		return m.Ready(ctx) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the manager to be ready: %w\n%s", err, m.Log())
	}
	return nil
}

// Ready is nil if the manager says that it is ready, or else what it says.
func (m *Manager) Ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.probes+"/readyz?verbose", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return err
}

// Kill ends the manager at once, as kill -9 does, and waits until it is gone.
func (m *Manager) Kill() {
	_ = m.command.Process.Kill() // fails only if it is gone already
	<-m.exited
}

// Stop ends the manager as Kubernetes does, and waits until it is gone.
func (m *Manager) Stop() {
	const patience = 30 * time.Second
	_ = m.command.Process.Signal(syscall.SIGTERM) // fails only if it is gone already
	select {
	case <-m.exited:
	case <-time.After(patience):
		m.Kill()
	}
}

// Signal sends a signal, such as SIGSTOP.
func (m *Manager) Signal(signal os.Signal) error {
	return m.command.Process.Signal(signal)
}

// PID is the id of the manager's process.
func (m *Manager) PID() int {
	return m.command.Process.Pid
}

// Exited is closed when the process is gone.
func (m *Manager) Exited() <-chan struct{} {
	return m.exited
}

// Log is what the manager has logged so far.
func (m *Manager) Log() string {
	return m.log.String()
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
