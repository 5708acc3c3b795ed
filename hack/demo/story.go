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
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/hack/controlplane"
)

// step is a part of the story.
type step struct {
	title string
	// restarts is how many it must cause.
	restarts int
	play     func(*demo, context.Context) error
	moral    string
}

func story() []step {
	return []step{
		{"An application arrives, and a ConfigWatch", 0, (*demo).arrive, "First sight restarts nothing"},
		{"A ConfigMap changes", 1, (*demo).changeConfigMap, "One change, one rollout"},
		{"A label of the ConfigMap changes", 0, (*demo).changeLabel, "Only content counts"},
		{"A Secret changes while the manager is stopped", 1, (*demo).changeSecretMeanwhile, "Nothing is missed, nothing is done twice"},
	}
}

// play plays the steps and tells whether each caused as many restarts as it must.
func (d *demo) play(ctx context.Context, steps []step, started time.Time) (good bool, err error) {
	good = true
	counts := make([]int, len(steps))
	for i, s := range steps {
		d.screen.title(fmt.Sprintf("%d. %s", i+1, s.title))
		before := len(d.restarts)
		if err := s.play(d, ctx); err != nil {
			return false, err
		}
		if err := d.sawEverything(ctx); err != nil {
			return false, err
		}
		if s.restarts == 0 {
			d.see("The manager has seen this and what came before it")
		}
		counts[i] = len(d.restarts) - before
		good = good && counts[i] == s.restarts
		said := fmt.Sprintf("%s. Restarts: %d; Deployment web is at generation %d.", s.moral, counts[i], d.web.Generation)
		d.screen.verdict(counts[i] == s.restarts, said)
	}
	d.screen.title("Summary")
	for i, s := range steps {
		d.screen.verdict(counts[i] == s.restarts, fmt.Sprintf("%-48s restarts expected %d, observed %d", s.title, s.restarts, counts[i]))
	}
	d.screen.say(fmt.Sprintf("All of it took %.0f seconds.", time.Since(started).Seconds()))
	return good, nil
}

func (d *demo) arrive(ctx context.Context) error {
	d.cause = time.Now()
	if err := d.kubectl(ctx, "apply", "-k", "config/samples"); err != nil {
		return err
	}
	if err := d.wait(ctx, "Deployment web is rolled out", d.rolledOut); err != nil {
		return err
	}
	d.see("Deployment web is rolled out: " + strings.Join(d.podNames(), ", "))
	return d.wait(ctx, "the ConfigWatches web and ca-bundle are Ready", func() bool { return d.ready[web] && d.ready["ca-bundle"] })
}

func (d *demo) changeConfigMap(ctx context.Context) error {
	err := d.rolloutAfter(ctx, func() error {
		return d.change(ctx, "web-config", "patch", "configmap", "web-config", "--type", "merge", "-p", `{"data":{"LOG_LEVEL":"debug"}}`)
	})
	if err != nil {
		return err
	}
	return d.kubectl(ctx, "get", "cw")
}

func (d *demo) changeLabel(ctx context.Context) error {
	return d.change(ctx, "web-config", "label", "configmap", "web-config", "team=shop")
}

func (d *demo) changeSecretMeanwhile(ctx context.Context) error {
	d.stopManager()
	d.screen.say("The manager is stopped.")
	err := d.rolloutAfter(ctx, func() error {
		err := d.change(ctx, "web-credentials",
			"patch", "secret", "web-credentials", "--type", "merge", "-p", `{"stringData":{"API_TOKEN":"another"}}`)
		if err != nil {
			return err
		}
		d.cause = time.Now()
		done := d.screen.doing("Start the manager again")
		err = d.startManager(ctx)
		done(err)
		return err
	})
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "get", "cw"); err != nil {
		return err
	}
	return d.kubectl(ctx, "events", "--for", "configwatch/web")
}

// rolloutAfter makes a change and follows the rollout until the ConfigWatch says that it is complete, and it is.
func (d *demo) rolloutAfter(ctx context.Context, change func() error) error {
	old := d.podNames()
	completed := d.events[v1alpha1.EventRolloutCompleted]
	if err := change(); err != nil {
		return err
	}
	err := d.wait(ctx, "the old pods are gone and the new ones are ready", func() bool { return d.gone(old) && d.rolledOut() })
	if err != nil {
		return err
	}
	d.see(fmt.Sprintf("Pods %s are gone; %s are ready", strings.Join(old, ", "), strings.Join(d.podNames(), ", ")))
	return d.wait(ctx, "ConfigWatch web says that the rollout is complete", func() bool {
		return d.events[v1alpha1.EventRolloutCompleted] > completed && d.ready[web]
	})
}

// leaveRunning tells what can be tried, and returns on Ctrl-C.
func (d *demo) leaveRunning(ctx context.Context) error {
	if err := d.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "barrier"}}); err != nil {
		return fmt.Errorf("removing what the story needed: %w", err)
	}
	d.screen.title("It is left running: try it in another terminal")
	for _, line := range []string{
		"export KUBECONFIG=" + d.plane.Kubeconfig(),
		"alias kubectl=" + d.plane.Program(controlplane.Kubectl),
		"kubectl get cw --watch",
		`kubectl patch configmap web-config --type merge -p '{"data":{"LOG_LEVEL":"trace"}}'`,
		"kubectl events --for configwatch/web --watch",
		`kubectl patch cw web --type merge -p '{"spec":{"mode":"DryRun"}}'`,
		"kubectl explain cw.spec",
	} {
		d.screen.say(line)
	}
	d.screen.print("\n")
	d.screen.say("Ctrl-C ends it, and leaves nothing behind.")
	select {
	case <-ctx.Done():
		return nil
	case <-d.exited:
		return errors.New("the manager exited")
	}
}
