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

package fault

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/test/utils"
)

// keeper starts a manager again as soon as it has been killed, as a Deployment does.
type keeper struct {
	proxy *proxy

	mu    sync.Mutex
	lives []*utils.Manager
	err   error
}

// keep keeps a manager running until the test is over.
func keep(opts utils.ManagerOptions) *keeper {
	GinkgoHelper()
	k := &keeper{proxy: newProxy()}
	opts.Binary, opts.Kubeconfig, opts.Output = binary, k.proxy.kubeconfig, logs
	opts.Args = append([]string{"--zap-log-level=10"}, opts.Args...)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for k.live(opts, over) {
		}
	}()
	DeferCleanup(func() {
		close(over)
		<-ended
		Expect(k.err).NotTo(HaveOccurred())
		if CurrentSpecReport().Failed() {
			k.report()
		}
	})
	return k
}

// live is one life. It tells whether there is to be another.
func (k *keeper) live(opts utils.ManagerOptions, over <-chan struct{}) bool {
	m, err := utils.StartManager(opts)
	k.mu.Lock()
	k.lives, k.err = append(k.lives, m), err
	k.mu.Unlock()
	if err != nil {
		return false
	}
	select {
	case <-m.Exited():
		return true
	case <-over:
		m.Kill()
		return false
	}
}

// kill ends the present life.
func (k *keeper) kill() {
	k.mu.Lock()
	m := k.lives[len(k.lives)-1]
	k.mu.Unlock()
	m.Kill()
}

// report shows what was logged in all lives.
func (k *keeper) report() {
	for i, m := range k.lives {
		AddReportEntry(fmt.Sprintf("the manager's log, life %d", i), strings.Join(lines(m, "info", "error"), ""))
	}
}

// side is when a manager is killed at a call: before it reaches the API server, or after it has been answered.
type side string

const (
	never  side = ""
	before side = "before"
	after  side = "after"
)

// killer has managers killed at the calls that they make about a namespace. How far the story is that this
// interrupts is told by the number of writes that the API server has taken: a call that is made again after a
// kill, with nothing written in between, is made at the same point.
type killer struct {
	namespace string
	// choose says whether to kill at a call. There were so many others at this point, and so many of these were
	// the same call.
	choose func(point, calls, same int) side

	mu    sync.Mutex
	point int
	calls int
	same  map[call]int
	kills int
}

// killAround kills at each call of a story twice: when it is first made, before, and when it is made again, after.
// So no status is written by a manager that lives on to send Events.
func killAround(_, _, same int) side {
	return []side{before, after, never}[min(same, 2)]
}

// killOnce kills once at each point of a story, now before the first call that is made there, now after it.
func killOnce(point, calls, _ int) side {
	if calls > 0 {
		return never
	}
	return []side{after, before}[point%2]
}

// arm makes the killer kill what a keeper keeps.
func (k *killer) arm(keepers ...*keeper) {
	for _, keeper := range keepers {
		keeper.proxy.chooseBy(func(c call) *fault { return k.faultAt(c, keeper.kill) })
	}
}

// faultAt is what becomes of a call.
func (k *killer) faultAt(c call, kill func()) *fault {
	if c.namespace != k.namespace || c.verb == "list" || c.verb == "watch" {
		return nil
	}
	f := &fault{}
	f.after = func(context.Context) (*http.Response, error) {
		k.answered(c, f.answered.Load())
		return nil, nil //nolint:nilnil // as agreed: pass it on
	}
	switch k.sideAt(c) {
	case before:
		f.before = func(context.Context) (*http.Response, error) {
			kill()
			return nil, errCut
		}
	case after:
		f.after = func(context.Context) (*http.Response, error) {
			k.answered(c, f.answered.Load())
			kill()
			return nil, errCut
		}
	case never:
	}
	return f
}

// sideAt counts a call and says whether to kill at it.
func (k *killer) sideAt(c call) side {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.choose(k.point, k.calls, k.same[c])
	if k.same == nil {
		k.same = map[call]int{}
	}
	k.calls++
	k.same[c]++
	if s != never {
		k.kills++
	}
	return s
}

// answered goes on to the next point after a write.
func (k *killer) answered(c call, code int32) {
	if c.verb == "get" || c.resource == "events" || code != http.StatusOK {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.point, k.calls, k.same = k.point+1, 0, nil
}

// String tells how much was killed.
func (k *killer) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprintf("%d kills around %d writes", k.kills, k.point)
}
