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
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ktechhub/configwatch/test/utils"
)

// contender is one of the two that are measured.
type contender interface {
	start(ctx context.Context, c *cluster) error
	stop()
	pid() int
}

// managerProcess is the manager's own binary.
type managerProcess struct {
	binary string
	// memoryLimit is that of its container, in bytes; 0: that of the Deployment.
	memoryLimit int
	// args are more flags.
	args []string
	*utils.Manager
}

// memoryLimit is that of the Deployment's container, in bytes.
const memoryLimit = 128 << 20

func (m *managerProcess) start(ctx context.Context, c *cluster) (err error) {
	m.Manager, err = utils.StartManager(utils.ManagerOptions{
		Binary: m.binary, Kubeconfig: c.plane.Kubeconfig(), Args: m.args,
		Env: []string{fmt.Sprintf("MEMORY_LIMIT=%d", cmp.Or(m.memoryLimit, memoryLimit))},
	})
	if err != nil {
		return err
	}
	return m.WaitReady(ctx)
}

func (m *managerProcess) stop()    { m.Stop() }
func (m *managerProcess) pid() int { return m.PID() }

// floorProcess is the floor, in a process of its own too.
type floorProcess struct {
	command *exec.Cmd
}

func (f *floorProcess) start(ctx context.Context, c *cluster) error {
	self, err := selfPath()
	if err != nil {
		return err
	}
	f.command = exec.CommandContext(ctx, self)
	f.command.Env = append(os.Environ(), floorKubeconfig+"="+c.plane.Kubeconfig(),
		floorDeployments+"="+strconv.Itoa(c.size.workloads), floorShared+"="+strconv.Itoa(c.size.shared))
	f.command.Stderr = os.Stderr
	out, err := f.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := f.command.Start(); err != nil {
		return fmt.Errorf("starting the floor: %w", err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		return fmt.Errorf("starting the floor: %q, %w", line, errors.Join(err, errors.New("it is not ready")))
	}
	return nil
}

func (f *floorProcess) stop() {
	_ = f.command.Process.Kill() // fails only if it is gone already
	_ = f.command.Wait()
}

func (f *floorProcess) pid() int { return f.command.Process.Pid }

// memory is a process's resident memory, now and at its peak, in bytes.
func memory(pid int) (now, peak int64, err error) {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, 0, fmt.Errorf("reading the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			now = kilobytes << 10
		case "VmHWM:":
			peak = kilobytes << 10
		}
	}
	return now, peak, nil
}

// cpuSeconds is the time that a process has computed so far.
func cpuSeconds(pid int) (float64, error) {
	const ticksPerSecond = 100 // USER_HZ, which is the same everywhere Linux runs
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of a process: %w", err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, errors.New("reading the processor time of a process: too few fields")
	}
	userTicks, errUser := strconv.ParseFloat(fields[user], 64)
	systemTicks, errSystem := strconv.ParseFloat(fields[system], 64)
	return (userTicks + systemTicks) / ticksPerSecond, errors.Join(errUser, errSystem)
}
