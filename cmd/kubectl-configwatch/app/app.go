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

// Package app has the commands of kubectl configwatch: each is a package of its own, with Options that are
// completed, validated and run.
//
// It promises that the flags which kubectl has for the API server mean here what they mean there. It doesn't
// know what the commands do.
package app

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ktechhub/configwatch/cmd/kubectl-configwatch/app/tail"
	"github.com/ktechhub/configwatch/internal/version"
)

// NewCommand is kubectl configwatch, which reads and writes by the streams.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	command := &cobra.Command{
		Use:           "kubectl-configwatch",
		Short:         "Watch configuration, and what its changes do",
		Version:       version.Version,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl configwatch"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	flags.AddFlags(command.PersistentFlags())
	command.AddCommand(
		tail.NewCommand(flags, streams),
	)
	return command
}
