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

// Command controlplane builds and runs a Kubernetes control plane; see the package of the same name.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/ktechhub/configwatch/hack/controlplane"
)

const usage = `usage: controlplane COMMAND

  build [--for envtest|full]  build what is not in the cache yet, print the folder of the programs
  path  [--for envtest|full]  print that folder, or fail
  up                          run a full control plane until Ctrl-C
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	switch args[0] {
	case "build":
		return withComponents(args, func(components []controlplane.Component) (string, error) {
			return controlplane.Build(ctx, components, os.Stderr)
		})
	case "path":
		return withComponents(args, controlplane.Path)
	case "up":
		return up(ctx)
	default:
		return fmt.Errorf("unknown command %q\n%s", args[0], usage)
	}
}

// withComponents prints the folder that a command finds for the components asked for.
func withComponents(args []string, find func([]controlplane.Component) (string, error)) error {
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	purpose := flags.String("for", "full", "envtest or full")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	components := controlplane.Full()
	switch *purpose {
	case "full":
	case "envtest":
		components = controlplane.Envtest()
	default:
		return fmt.Errorf("--for %s: want envtest or full", *purpose)
	}
	dir, err := find(components)
	if err != nil {
		return err
	}
	fmt.Println(dir)
	return nil
}

func up(ctx context.Context) error {
	plane, err := controlplane.Start(ctx, controlplane.Options{Components: controlplane.Full()})
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\n", plane.Kubeconfig())
	fmt.Fprintf(os.Stderr, "The control plane is ready; kubectl is %s. Ctrl-C ends it.\n",
		plane.Program(controlplane.Kubectl))
	<-ctx.Done()
	return plane.Stop()
}
