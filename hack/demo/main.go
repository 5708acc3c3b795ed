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

// Command demo shows ConfigWatch at work on a Kubernetes of its own: what is restarted when a ConfigMap
// or a Secret changes, and what is not. It starts the control plane of package controlplane and the
// manager, plays a story of four steps, checks after each how often a workload was restarted, and ends
// with status 0 if that was as expected. Whatever it prints it has observed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	keep := flag.Bool("keep", false, "leave all running at the end, to be tried out, until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, options{root: ".", keep: *keep, screen: newScreen(os.Stdout, wantsColours(os.Stdout))})
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nThe demo ended: %v\n", err)
		os.Exit(1)
	}
}
