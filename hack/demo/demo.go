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
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/hack/controlplane"
	"github.com/ktechhub/configwatch/test/utils"
)

// patience is how long anything that is waited for may take. Seconds are usual.
const patience = 60 * time.Second

type options struct {
	root   string // of the repository
	keep   bool
	screen *screen
}

// demo is the stage: the control plane, the manager, and what is seen of them.
type demo struct {
	*world
	root       string // of the repository
	plane      *controlplane.Plane
	client     client.WithWatch
	barrier    *utils.Barrier
	binary     string // of the manager
	kubeconfig string // of the manager
	manager    *utils.Manager
	exited     <-chan struct{} // of the manager; nil while it is stopped on purpose
}

// run is the whole demo. Its error is for the user.
func run(ctx context.Context, opts options) (err error) {
	ctrl.SetLogger(logr.Discard()) // the demo's own clients return their errors
	klog.SetLogger(logr.Discard())
	started := time.Now()
	d := &demo{world: newWorld(opts.screen), root: opts.root}
	ctx, cancel := context.WithCancel(ctx)
	defer func() { err = errors.Join(d.explain(ctx, err), d.end(cancel)) }()
	d.screen.title("ConfigWatch: workloads restart when their configuration changes, and only then")
	d.screen.say("A real Kubernetes control plane on this machine. Only its node is simulated (by kwok):")
	d.screen.say("pods become ready at once, and no container runs.")
	d.screen.print("\n")
	if err := d.prepare(ctx); err != nil {
		return err
	}
	good, err := d.play(ctx, story(), started)
	if err != nil {
		return err
	}
	if !good {
		return errors.New("not everything was as expected")
	}
	if opts.keep {
		return d.leaveRunning(ctx)
	}
	return nil
}

// prepare builds and starts what the story needs.
func (d *demo) prepare(ctx context.Context) error {
	for _, preparation := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"Build the manager", d.buildManager},
		{"Start Kubernetes", d.startPlane},
		{"Install the CRD and the manager's roles", d.install},
		{"Start the manager with the rights of its roles", d.startManager},
	} {
		done := d.screen.doing(preparation.what)
		err := preparation.do(ctx)
		done(err)
		if err != nil {
			return err
		}
	}
	version, err := discovery.NewDiscoveryClientForConfigOrDie(d.plane.RESTConfig()).ServerVersion()
	if err != nil {
		return fmt.Errorf("asking for the version of Kubernetes: %w", err)
	}
	d.screen.say("Kubernetes " + version.GitVersion + " answers, and the manager is ready.")
	return d.watch(ctx, d.client)
}

func (d *demo) buildManager(ctx context.Context) (err error) {
	d.binary, err = utils.BuildManager(ctx)
	return err
}

func (d *demo) startPlane(ctx context.Context) (err error) {
	if d.plane, err = controlplane.Start(ctx, controlplane.Options{Components: controlplane.Full()}); err != nil {
		return err
	}
	d.client, err = utils.NewClient(d.plane.RESTConfig())
	return err
}

func (d *demo) install(ctx context.Context) (err error) {
	if d.kubeconfig, err = utils.Install(ctx, d.plane, d.client); err != nil {
		return err
	}
	d.barrier, err = utils.NewBarrier(ctx, d.client)
	return err
}

func (d *demo) startManager(ctx context.Context) (err error) {
	if d.manager, err = utils.StartManager(utils.ManagerOptions{Binary: d.binary, Kubeconfig: d.kubeconfig}); err != nil {
		return err
	}
	d.exited = d.manager.Exited()
	return d.manager.WaitReady(ctx)
}

func (d *demo) stopManager() {
	d.exited = nil
	d.manager.Stop()
}

// explain makes an error say what helps: that it was the user who ended the demo, or what the manager logged last.
func (d *demo) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing is left running")
	}
	if d.manager == nil {
		return err
	}
	const lines = 15
	log := slices.DeleteFunc(strings.SplitAfter(strings.TrimSpace(d.manager.Log()), "\n"), func(line string) bool {
		return strings.Contains(line, "healthz check failed") // as long as it isn't ready
	})
	return fmt.Errorf("%w\n\nThe manager's log ends with:\n%s", err, strings.Join(log[max(0, len(log)-lines):], ""))
}

// end ends all that was started.
func (d *demo) end(cancel func()) error {
	cancel()
	if d.manager != nil {
		d.manager.Stop()
	}
	if d.plane == nil {
		return nil
	}
	return d.plane.Stop()
}

// wait takes what the watches bring until a condition is met.
func (d *demo) wait(ctx context.Context, what string, met func() bool) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !met() {
		select {
		case happened := <-d.feed:
			if err := happened(); err != nil {
				return err
			}
		case <-d.exited:
			return fmt.Errorf("the manager exited while the demo waited until %s", what)
		case <-deadline.C:
			return fmt.Errorf("waited %s in vain until %s", patience, what)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// sawEverything returns when the manager has seen all that came before, and the watches have brought what it did then.
func (d *demo) sawEverything(ctx context.Context) error {
	passed := false
	go func() {
		err := d.barrier.Pass(ctx)
		select {
		case d.feed <- func() error { d.now, passed = time.Now(), true; return err }:
		case <-ctx.Done():
		}
	}()
	if err := d.wait(ctx, "the manager has seen everything", func() bool { return passed }); err != nil {
		return err
	}
	now := &appsv1.Deployment{}
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: web}, now); err != nil {
		return fmt.Errorf("reading Deployment web: %w", err)
	}
	return d.wait(ctx, "the watch has brought what is read", func() bool { return d.web.Generation >= now.Generation })
}

// change changes a ConfigMap or Secret by kubectl. What is seen next counts from when the API server announced it.
func (d *demo) change(ctx context.Context, source string, args ...string) error {
	before := d.changes[source]
	if err := d.kubectl(ctx, args...); err != nil {
		return err
	}
	return d.wait(ctx, "the API server announces the change", func() bool { return d.changes[source] > before })
}

// kubectl runs the real one and shows the command and its output.
func (d *demo) kubectl(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, d.plane.Program(controlplane.Kubectl), args...)
	command.Dir = d.root
	command.Env = []string{"KUBECONFIG=" + d.plane.Kubeconfig(), "HOME=" + filepath.Dir(d.plane.Kubeconfig())}
	output, err := command.CombinedOutput()
	d.screen.command("kubectl "+quoted(args), string(output))
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", quoted(args), err)
	}
	return nil
}

// quoted is a command line as a shell would need it.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, word := range args {
		if strings.ContainsAny(word, ` "{}`) {
			word = "'" + word + "'"
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}
