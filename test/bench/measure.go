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
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

const (
	patience = 2 * time.Minute
	// breath is left between single changes, so that each finds a machine at rest.
	breath = 50 * time.Millisecond
)

// bench is a run.
type bench struct {
	*cluster
	manager   *managerProcess
	floor     *floorProcess
	observers map[string]*observer
	serial    int
	report    report
}

// measure makes the run: all steps, or only those named, separated by commas.
func measure(ctx context.Context, s size, only string) (*report, error) {
	binary, err := utils.BuildManager(ctx)
	if err != nil {
		return nil, err
	}
	progress("Setting up %d workloads in each of two namespaces", s.workloads)
	c, err := newCluster(ctx, s)
	if err != nil {
		return nil, err
	}
	b := &bench{cluster: c, manager: &managerProcess{binary: binary}, floor: &floorProcess{}, observers: map[string]*observer{}}
	defer func() {
		if err := c.plane.Stop(); err != nil {
			progress("Stopping the control plane: %v", err)
		}
	}()
	for _, namespace := range []string{manyNamespace, oneNamespace, floorNamespace} {
		if b.observers[namespace], err = observe(ctx, c, namespace); err != nil {
			return nil, err
		}
	}
	for _, step := range b.steps() {
		if only != "" && !slices.Contains(strings.Split(only, ","), step.name) {
			continue
		}
		if err := step.run(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return &b.report, nil
}

type step struct {
	name string
	run  func(context.Context) error
}

func (b *bench) steps() []step {
	return []step{
		{"adoption", b.adoption},
		{"speed", b.speed},
		{"work", b.work},
		{"noise", b.noise},
		{"down", b.down},
		{"kill", b.killed},
		{"memory", b.memory},
		{"scale", b.scale},
		{"feed", b.feed},
		{"stream", b.streams},
	}
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// value is one that no ConfigMap has had.
func (b *bench) value() string {
	b.serial++
	return fmt.Sprintf("value-%06d", b.serial)
}

// with runs a contender, and the function once it is warm.
func (b *bench) with(ctx context.Context, who contender, namespace string, call func() error) error {
	if err := who.start(ctx, b.cluster); err != nil {
		return err
	}
	defer who.stop()
	if who == contender(b.manager) { // a change before the baseline would be part of it
		if err := b.quiet(ctx); err != nil {
			return err
		}
	}
	if err := b.rest(ctx, namespace); err != nil {
		return err
	}
	const warmUps = 5
	for range warmUps {
		if _, err := b.time(ctx, namespace, []string{ownConfig(0)}, []string{deploymentName(0)}); err != nil {
			return err
		}
	}
	if err := b.rest(ctx, namespace); err != nil {
		return err
	}
	return call()
}

// rest waits until nothing is left to do, of what was measured before and of the calming after it.
func (b *bench) rest(ctx context.Context, namespace string) error {
	if err := b.settled(ctx); err != nil {
		return err
	}
	if err := b.calm(ctx, namespace); err != nil {
		return err
	}
	return b.settled(ctx)
}

// calm makes the operator forget how often targets of a namespace changed lately: what changes more than 6 times
// within 10 minutes is slowed down, and the benchmark would measure that.
func (b *bench) calm(ctx context.Context, namespace string) error {
	list := &v1alpha1.ConfigWatchList{}
	if err := b.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing ConfigWatches: %w", err)
	}
	return b.each(ctx, len(list.Items), func(ctx context.Context, i int) error {
		cw, changed := &list.Items[i], false
		for j := range cw.Status.Targets {
			t := &cw.Status.Targets[j]
			changed = changed || len(t.RecentChanges) > 0
			t.RecentChanges, t.Slowdown = nil, nil
		}
		if !changed {
			return nil
		}
		return b.client.Status().Update(ctx, cw)
	})
}

// time is how long it takes from the first change of the ConfigMaps until all of the Deployments are
// patched.
func (b *bench) time(ctx context.Context, namespace string, configMaps, deployments []string) (time.Duration, error) {
	value := b.value()
	before := b.observers[namespace].count()
	start := time.Now()
	err := b.each(ctx, len(configMaps), func(ctx context.Context, i int) error {
		return b.change(ctx, namespace, configMaps[i], value)
	})
	if err != nil {
		return 0, err
	}
	err = b.observers[namespace].await(before, deployments, patience)
	return time.Since(start), err
}

// timeAtRest is time, once nothing is left to do of what was measured before.
func (b *bench) timeAtRest(ctx context.Context, namespace string, configMaps, deployments []string) (time.Duration, error) {
	if err := b.rest(ctx, namespace); err != nil {
		return 0, err
	}
	return b.time(ctx, namespace, configMaps, deployments)
}

func (b *bench) deployments(n int) []string {
	return names(n, deploymentName)
}

func names(n int, name func(int) string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
	}
	return all
}

// adoption installs the manager where workloads and ConfigWatches are there already.
func (b *bench) adoption(ctx context.Context) error {
	progress("Adoption")
	if err := b.manager.start(ctx, b.cluster); err != nil {
		return err
	}
	defer b.manager.stop()
	if err := b.quiet(ctx); err != nil {
		return err
	}
	restarts := 0
	for _, namespace := range []string{manyNamespace, oneNamespace} {
		for _, n := range b.observers[namespace].count() {
			restarts += n
		}
	}
	b.report.add(row{Name: fmt.Sprintf("restarts by installing it on %d workloads", b.size.workloads+b.size.shared), Unit: "restarts",
		Manager: float64(restarts), Limit: new(0.0)})
	return nil
}

// speed measures latency, burst and fan-out, the manager and the floor in turns.
func (b *bench) speed(ctx context.Context) error {
	single := map[string][]time.Duration{}
	all := map[string]map[string][]time.Duration{}
	const burst, sharedBy = "burst", "shared"
	record := func(who, what string, took time.Duration) {
		if all[who] == nil {
			all[who] = map[string][]time.Duration{}
		}
		all[who][what] = append(all[who][what], took)
	}
	fanOut := func(who, namespace string) error {
		for range b.size.repeats {
			took, err := b.timeAtRest(ctx, namespace, []string{sharedConfig}, b.deployments(b.size.shared))
			if err != nil {
				return err
			}
			record(who, sharedBy, took)
		}
		return nil
	}
	many := func(who, namespace string) error {
		for range max(1, b.size.changes/b.size.rounds) {
			time.Sleep(breath)
			i := 1 + rand.IntN(b.size.workloads-1)
			took, err := b.time(ctx, namespace, []string{ownConfig(i)}, []string{deploymentName(i)})
			if err != nil {
				return err
			}
			single[who] = append(single[who], took)
		}
		for range b.size.repeats {
			took, err := b.timeAtRest(ctx, namespace, names(b.size.workloads, ownConfig), b.deployments(b.size.workloads))
			if err != nil {
				return err
			}
			record(who, burst, took)
		}
		return fanOut(who, namespace)
	}
	for round := range b.size.rounds {
		progress("Speed, round %d of %d", round+1, b.size.rounds)
		err := b.with(ctx, b.floor, floorNamespace, func() error { return many(floorNamespace, floorNamespace) })
		if err != nil {
			return err
		}
		err = b.with(ctx, b.manager, manyNamespace, func() error {
			if err := many(manyNamespace, manyNamespace); err != nil {
				return err
			}
			return fanOut(oneNamespace, oneNamespace)
		})
		if err != nil {
			return err
		}
	}
	b.report.add(
		compared("one change → pod template patched, p50", 1.25, percentile(single[manyNamespace], 50), percentile(single[floorNamespace], 50)),
		compared("one change → pod template patched, p99", 0, percentile(single[manyNamespace], 99), percentile(single[floorNamespace], 99)),
		compared(fmt.Sprintf("%d ConfigMaps at once → all patched", b.size.workloads), 1.4,
			percentile(all[manyNamespace][burst], 50), percentile(all[floorNamespace][burst], 50)),
		compared(fmt.Sprintf("1 ConfigMap → %d workloads, %d ConfigWatches", b.size.shared, b.size.shared), 1.8,
			percentile(all[manyNamespace][sharedBy], 50), percentile(all[floorNamespace][sharedBy], 50)),
		compared(fmt.Sprintf("1 ConfigMap → %d workloads, one ConfigWatch", b.size.shared), 1.3,
			percentile(all[oneNamespace][sharedBy], 50), percentile(all[floorNamespace][sharedBy], 50)),
	)
	return nil
}

func percentile(of []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

// work counts the API calls and the processor time of restarts.
func (b *bench) work(ctx context.Context) error {
	progress("API calls and processor time")
	return b.with(ctx, b.manager, manyNamespace, func() error {
		if err := b.settled(ctx); err != nil {
			return err
		}
		before, err := b.requests(ctx)
		if err != nil {
			return err
		}
		cpu, err := cpuSeconds(b.manager.pid())
		if err != nil {
			return err
		}
		restarts := 0
		for range b.size.rounds {
			if _, err := b.time(ctx, manyNamespace, names(b.size.workloads, ownConfig), b.deployments(b.size.workloads)); err != nil {
				return err
			}
			restarts += b.size.workloads
		}
		if err := b.settled(ctx); err != nil {
			return err
		}
		after, err := b.requests(ctx)
		if err != nil {
			return err
		}
		now, err := cpuSeconds(b.manager.pid())
		if err != nil {
			return err
		}
		per := func(calls ...string) float64 { return float64(difference(before, after, calls...)) / float64(restarts) }
		b.report.add(
			row{Name: "status writes per restart", Unit: "calls", Manager: per("PUT configwatches/status"), Limit: new(1.0)},
			row{Name: "Events per restart (one on the ConfigWatch, one on the workload)", Unit: "calls", Manager: per("POST events"), Limit: new(2.0)},
			row{Name: "GETs and LISTs per restart", Unit: "calls", Manager: per(reads()...), Limit: new(0.0)},
			row{Name: "processor time per restart", Unit: "ms", Manager: (now - cpu) * 1000 / float64(restarts), Limit: new(5.0)},
		)
		return nil
	})
}

func reads() []string {
	var calls []string
	for _, resource := range []string{"configmaps", "secrets", "deployments", "statefulsets", "daemonsets", "cronjobs", "configwatches"} {
		calls = append(calls, "GET "+resource, "LIST "+resource)
	}
	return calls
}

func difference(before, after map[string]int, calls ...string) int {
	n := 0
	for _, call := range calls {
		n += after[call] - before[call]
	}
	return n
}

// settled waits until the manager makes no more calls.
func (b *bench) settled(ctx context.Context) error {
	const enough = 3
	calls := []string{"PATCH deployments", "PUT configwatches/status", "POST events"}
	last, same := -1, 0
	for same < enough {
		counts, err := b.requests(ctx)
		if err != nil {
			return err
		}
		now := difference(nil, counts, calls...)
		if now == last {
			same++
		} else {
			last, same = now, 0
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(b.size.rest / enough):
		}
	}
	return nil
}

// noise writes metadata that doesn't matter.
func (b *bench) noise(ctx context.Context) error {
	progress("%d writes of metadata", b.size.metadataWrites)
	return b.with(ctx, b.manager, manyNamespace, func() error {
		if err := b.settled(ctx); err != nil {
			return err
		}
		before, err := b.requests(ctx)
		if err != nil {
			return err
		}
		restarts := b.observers[manyNamespace].count()
		err = b.each(ctx, b.size.metadataWrites, func(ctx context.Context, i int) error {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"written-by":"bench-%d"}}}`, i)
			name := ownConfig(i % b.size.workloads)
			_, err := b.typed.CoreV1().ConfigMaps(manyNamespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
		if err != nil {
			return err
		}
		if err := b.settled(ctx); err != nil {
			return err
		}
		after, err := b.requests(ctx)
		if err != nil {
			return err
		}
		missed, doubled := b.observers[manyNamespace].compare(restarts, nil)
		calls := append(reads(), "PATCH deployments", "PUT configwatches/status", "POST events")
		b.report.add(
			row{Name: fmt.Sprintf("restarts by %d writes of metadata", b.size.metadataWrites), Unit: "restarts", Manager: float64(missed + doubled), Limit: new(0.0)},
			row{Name: fmt.Sprintf("API calls by %d writes of metadata", b.size.metadataWrites), Unit: "calls", Manager: float64(difference(before, after, calls...)), Limit: new(0.0)},
		)
		return nil
	})
}

// down makes changes while no manager runs.
func (b *bench) down(ctx context.Context) error {
	progress("%d changes while it is down", b.size.downChanges)
	if err := b.calm(ctx, manyNamespace); err != nil {
		return err
	}
	expected := map[string]int{}
	before := b.observers[manyNamespace].count()
	for i := range b.size.downChanges {
		expected[deploymentName(i)] = 1
		if err := b.change(ctx, manyNamespace, ownConfig(i), b.value()); err != nil {
			return err
		}
	}
	if err := b.manager.start(ctx, b.cluster); err != nil {
		return err
	}
	defer b.manager.stop()
	if err := b.observers[manyNamespace].await(before, b.deployments(b.size.downChanges), patience); err != nil {
		return err
	}
	if err := b.settled(ctx); err != nil {
		return err
	}
	missed, doubled := b.observers[manyNamespace].compare(before, expected)
	b.report.add(
		row{Name: fmt.Sprintf("missed, of %d changes while it was down", b.size.downChanges), Unit: "changes", Manager: float64(missed), Limit: new(0.0)},
		row{Name: "doubled among them", Unit: "changes", Manager: float64(doubled), Limit: new(0.0)},
	)
	return nil
}

// killed kills the manager again and again while each ConfigMap changes once.
func (b *bench) killed(ctx context.Context) error {
	progress("%d × kill -9 during %d changes", b.size.kills, b.size.workloads)
	if err := b.calm(ctx, manyNamespace); err != nil {
		return err
	}
	before := b.observers[manyNamespace].count()
	expected := map[string]int{}
	changed := make(chan error, 1)
	for i := range b.size.workloads {
		expected[deploymentName(i)] = 1
	}
	go func() {
		for i := range b.size.workloads {
			if err := b.change(ctx, manyNamespace, ownConfig(i), fmt.Sprintf("killed-%d", i)); err != nil {
				changed <- err
				return
			}
			time.Sleep(10 * time.Millisecond) // so that the changes last while the manager starts and dies
		}
		changed <- nil
	}()
	for range b.size.kills {
		if err := b.manager.start(ctx, b.cluster); err != nil {
			return err
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		b.manager.Kill()
	}
	if err := <-changed; err != nil {
		return err
	}
	if err := b.manager.start(ctx, b.cluster); err != nil {
		return err
	}
	defer b.manager.stop()
	if err := b.observers[manyNamespace].await(before, b.deployments(b.size.workloads), patience); err != nil {
		return err
	}
	if err := b.settled(ctx); err != nil {
		return err
	}
	missed, doubled := b.observers[manyNamespace].compare(before, expected)
	b.report.add(
		row{Name: fmt.Sprintf("missed, %d × kill -9 during %d changes", b.size.kills, b.size.workloads), Unit: "changes", Manager: float64(missed), Limit: new(0.0)},
		row{Name: "doubled among them", Unit: "changes", Manager: float64(doubled), Limit: new(0.0)},
	)
	return nil
}

// memory is read with more and more Secrets that nobody refers to: while they are made, and after a
// start with them.
func (b *bench) memory(ctx context.Context) error {
	limits := map[int]row{
		1000:  {Limit: new(48.0)},
		10000: {Limit: new(65.0)},
	}
	made := 0
	for _, n := range b.size.foreign {
		progress("Memory with %d foreign Secrets", n)
		if err := b.foreign(ctx, made, n); err != nil {
			return err
		}
		made = n
		err := b.with(ctx, b.manager, manyNamespace, func() error {
			if err := b.settled(ctx); err != nil {
				return err
			}
			now, peak, err := memory(b.manager.pid())
			if err != nil {
				return err
			}
			b.report.add(
				row{Name: fmt.Sprintf("resident memory, %d × 10 KiB foreign Secrets", n), Unit: "MB", Manager: float64(now) / 1e6, Limit: limits[n].Limit},
				row{Name: fmt.Sprintf("peak memory, %d × 10 KiB foreign Secrets", n), Unit: "MB", Manager: float64(peak) / 1e6, Limit: new(128.0)},
			)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
