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
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
)

// Options say what Start runs. The zero value is an API server alone.
type Options struct {
	// Components to run. Etcd and APIServer always run; Kwok needs ControllerManager. Default: Envtest.
	Components []Component
	// Args are added to those of a component. Its working directory is the state folder.
	Args map[Component][]string
	// AuditLog is the path of a file that gets a line of JSON for each request that the API server has answered (an
	// Event of audit.k8s.io/v1 at the level Metadata). Default: none.
	AuditLog string
	// LogDir is a folder, made if need be, that keeps the log of each component. Default: Stop removes the logs.
	LogDir string
	// Progress gets what is done when programs must be built first. Default: os.Stderr.
	Progress io.Writer
}

// Plane is a running control plane. Its methods may be called from many goroutines.
type Plane struct {
	options  Options
	programs string // folder
	dir      string // the state folder
	lock     *os.File
	starter  starter
	token    string
	port     int    // of the API server
	ca       []byte // PEM

	mu        sync.Mutex
	processes map[Component]*process
	stopped   bool
}

// Start runs a control plane and returns when it is ready: the API server answers; with ControllerManager, pods can be
// created in the namespace default; with Kwok, the node NodeName is ready for them. Programs that are not in the
// user's cache are built first. Ctx bounds the start only: the plane runs until Stop.
func Start(ctx context.Context, options Options) (*Plane, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	programs, err := findOrBuild(ctx, options)
	if err != nil {
		return nil, err
	}
	dir, lock, err := newStateFolder()
	if err != nil {
		return nil, err
	}
	p := &Plane{
		options:   options,
		programs:  programs,
		dir:       dir,
		lock:      lock,
		starter:   newStarter(),
		processes: map[Component]*process{},
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (o Options) complete() (Options, error) {
	if len(o.Components) == 0 {
		o.Components = Envtest()
	}
	for _, always := range []Component{APIServer, Etcd} {
		if !slices.Contains(o.Components, always) {
			o.Components = append([]Component{always}, o.Components...)
		}
	}
	if slices.Contains(o.Components, Kwok) && !slices.Contains(o.Components, ControllerManager) {
		return o, fmt.Errorf("%s needs %s, which makes its node usable", Kwok, ControllerManager)
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.LogDir != "" {
		if err := os.MkdirAll(o.LogDir, 0o755); err != nil {
			return o, fmt.Errorf("making the folder of logs: %w", err)
		}
	}
	if o.AuditLog != "" {
		var err error
		if o.AuditLog, err = filepath.Abs(o.AuditLog); err != nil {
			return o, fmt.Errorf("finding the audit log: %w", err)
		}
	}
	return o, nil
}

func findOrBuild(ctx context.Context, options Options) (string, error) {
	if dir, err := Path(options.Components); err == nil {
		return dir, nil
	}
	return Build(ctx, options.Components, options.Progress)
}

// start runs the components in the order in which they need each other.
func (p *Plane) start(ctx context.Context) error {
	if err := p.writeCredentials(); err != nil {
		return err
	}
	starts := []struct {
		component Component
		start     func(context.Context) error
	}{
		{Etcd, p.startEtcd},
		{APIServer, p.startFirstAPIServer},
		{ControllerManager, p.startControllerManager},
		{Scheduler, p.startScheduler},
		{Kwok, p.startKwok},
	}
	for _, s := range starts {
		if !p.runs(s.component) {
			continue
		}
		if err := s.start(ctx); err != nil {
			return fmt.Errorf("starting %s: %w", s.component, err)
		}
	}
	return nil
}

func (p *Plane) runs(component Component) bool {
	return slices.Contains(p.options.Components, component)
}

// Stop ends all components and removes the state folder. It may be called again, and does nothing then.
func (p *Plane) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	p.stopped = true
	for _, group := range [][]Component{{Kwok, Scheduler, ControllerManager}, {APIServer}, {Etcd}} {
		var stopping sync.WaitGroup
		for _, component := range group {
			if process := p.processes[component]; process != nil {
				stopping.Go(process.stop)
			}
		}
		stopping.Wait()
	}
	close(p.starter)
	defer p.lock.Close()
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("removing the state folder: %w", err)
	}
	return nil
}

// RESTConfig is for an administrator (the group system:masters) and does not limit requests.
func (p *Plane) RESTConfig() *rest.Config {
	return &rest.Config{
		Host:            p.URL(),
		BearerToken:     p.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: slices.Clone(p.ca)},
		QPS:             -1,
	}
}

// URL of the API server.
func (p *Plane) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", p.port) }

// CA is the certificate, in PEM, by which clients know the API server.
func (p *Plane) CA() []byte { return slices.Clone(p.ca) }

// Kubeconfig is the path of an administrator's kubeconfig. Stop removes the file.
func (p *Plane) Kubeconfig() string { return p.kubeconfigPath("admin") }

// KubeconfigFor writes a kubeconfig with a token, for one from the TokenRequest API say, and returns its path. Stop
// removes the file. A file of the same name is overwritten.
func (p *Plane) KubeconfigFor(name, token string) (string, error) {
	path := p.kubeconfigPath(name)
	return path, writeKubeconfig(path, p.URL(), p.ca, token)
}

// Program is the path of a component's program.
func (p *Plane) Program(component Component) string {
	return filepath.Join(p.programs, string(component))
}

// EtcdSocket is the path of the Unix socket on which etcd serves gRPC and its JSON gateway, without authentication.
func (p *Plane) EtcdSocket() string { return p.file("etcd.sock") }

// StopAPIServer ends the API server in good order; StartAPIServer starts it again.
func (p *Plane) StopAPIServer() error { return p.withAPIServer((*process).stop) }

// KillAPIServer ends the API server by SIGKILL; StartAPIServer starts it again.
func (p *Plane) KillAPIServer() error { return p.withAPIServer((*process).kill) }

// PauseAPIServer stops the API server from running: connections stay open, nothing is answered. It may answer for
// another moment, until the kernel has stopped all its threads.
func (p *Plane) PauseAPIServer() error {
	return p.withAPIServer(func(process *process) { process.signal(syscall.SIGSTOP) })
}

// ResumeAPIServer ends a pause.
func (p *Plane) ResumeAPIServer() error {
	return p.withAPIServer(func(process *process) { process.signal(syscall.SIGCONT) })
}

func (p *Plane) withAPIServer(do func(*process)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return errStopped
	}
	do(p.processes[APIServer])
	return nil
}

// StartAPIServer starts the API server again, with the same URL, state and credentials, and waits until it is ready.
func (p *Plane) StartAPIServer(ctx context.Context) error {
	if err := p.run(ctx, APIServer, p.apiServerArgs(p.port), p.serverReady(p.port)); err != nil {
		return fmt.Errorf("starting %s again: %w", APIServer, err)
	}
	return nil
}

var errStopped = errors.New("the control plane is stopped")

// run starts a component and waits until it is ready.
func (p *Plane) run(ctx context.Context, component Component, args []string, ready func(context.Context) error) error {
	process, err := p.launch(component, append(args, p.options.Args[component]...))
	if err != nil {
		return err
	}
	return process.await(ctx, ready)
}

func (p *Plane) launch(component Component, args []string) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, errStopped
	}
	if running := p.processes[component]; running != nil && !running.hasEnded() {
		return nil, errors.New("it is running already")
	}
	process, err := p.starter.startProcess(p.Program(component), p.dir, p.logPath(component), args)
	if err != nil {
		return nil, err
	}
	p.processes[component] = process
	return process, nil
}

// serve runs a component that listens on a loopback port, and returns the port. It was free when it was chosen, yet
// may be taken before the component has it: then another is tried.
func (p *Plane) serve(ctx context.Context, component Component, args func(port int) []string,
	ready func(port int) func(context.Context) error,
) (int, error) {
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return 0, err
		}
		err = p.run(ctx, component, args(port), ready(port))
		if err == nil || attempt == 5 || !strings.Contains(err.Error(), "address already in use") {
			return port, err
		}
	}
}

func (p *Plane) logPath(component Component) string {
	return filepath.Join(cmp.Or(p.options.LogDir, p.dir), string(component)+".log")
}

func (p *Plane) file(name string) string { return filepath.Join(p.dir, name) }

func (p *Plane) kubeconfigPath(name string) string { return p.file(name + ".kubeconfig") }
