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

// Command bench measures the manager's own binary on a real API server, side by side with a floor: a
// bare watch and patch loop that knows beforehand which workload depends on which ConfigMap. Both run
// one at a time, in turns, in one run; ratios count, as machines are noisy.
//
// It prints a table and writes bench.json.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ktechhub/configwatch/internal/stream"
)

// size is how much is measured.
type size struct {
	workloads      int // Deployments, each with a ConfigMap, a Secret and a ConfigWatch of its own
	shared         int // of them also read one shared ConfigMap
	changes        int // changes made one at a time, for the latency
	repeats        int // how often bursts and fan-outs are measured in each of the rounds
	rounds         int // how often each of the others is measured; the median counts
	metadataWrites int
	downChanges    int
	kills          int
	scale          []int         // numbers of targets and of ConfigWatches on one source, rising
	foreign        []int         // numbers of foreign Secrets, rising
	subscriptions  []int         // numbers of subscriptions to the feed, rising
	streams        int           // whose memory is measured
	quickStreams   int           // whose latency is
	rest           time.Duration // in which a manager that has no work left makes no call
}

func standard() size {
	return size{
		workloads: 200, shared: 100, changes: 200, repeats: 5, rounds: 5, metadataWrites: 2000, downChanges: 100, kills: 7,
		scale: []int{10, 100, 1000}, foreign: []int{1000, 10000},
		subscriptions: []int{1, 100, 1000, 10000}, streams: stream.DefaultMaxStreams, quickStreams: 200,
		rest: 1500 * time.Millisecond,
	}
}

// small is for a smoke test of the benchmark itself: its figures say nothing.
func small() size {
	return size{workloads: 6, shared: 3, changes: 5, repeats: 1, rounds: 1, metadataWrites: 20, downChanges: 3, kills: 1,
		scale: []int{1, 2}, foreign: []int{20},
		subscriptions: []int{1, 100}, streams: 200, quickStreams: 20,
		rest: 400 * time.Millisecond,
	}
}

func main() {
	smoke := flag.Bool("smoke", false, "Measure next to nothing, to see whether the benchmark works.")
	output := flag.String("output", "bench.json", "The file to write the figures to.")
	only := flag.String("only", "", "The steps to make, separated by commas: adoption, speed, work, noise, down, kill, memory, scale, feed, stream. Default: all.")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if isFloor() {
		exit(runFloor(ctx))
	}
	what := standard()
	if *smoke {
		what = small()
	}
	ctrl.SetLogger(logr.Discard())
	report, err := measure(ctx, what, *only)
	if err != nil {
		exit(err)
	}
	report.print(os.Stdout)
	exit(report.write(*output))
}

func exit(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
