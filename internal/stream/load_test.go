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

package stream_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/ktechhub/configwatch/internal/stream"
)

// crowdVariable has a child process be many clients: their number, the address and how to speak to it.
const crowdVariable = "CONFIGWATCH_TEST_CROWD"

func TestMain(m *testing.M) {
	if crowd := os.Getenv(crowdVariable); crowd != "" {
		if err := beCrowd(strings.Fields(crowd)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beCrowd connects all clients, says "connected", and then the number of each event when all have got it.
func beCrowd(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	events := make(chan struct{}, n)
	failed := make(chan error, n)
	atOnce := make(chan struct{}, 50)
	var connected sync.WaitGroup
	for range n {
		atOnce <- struct{}{}
		connected.Go(func() {
			defer func() { <-atOnce }()
			lines, err := connect(args[1], args[2] == "https")
			if err != nil {
				failed <- err
				return
			}
			go func() { failed <- follow(lines, events) }()
		})
	}
	connected.Wait()
	fmt.Println("connected")
	for got := 1; ; got++ {
		select {
		case <-events:
			if got%n == 0 {
				fmt.Println(got / n)
			}
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil // the server has ended
			}
			return err
		}
	}
}

func connect(address string, secure bool) (*bufio.Reader, error) {
	var conn net.Conn
	var err error
	if secure {
		conn, err = tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	} else {
		conn, err = net.Dial("tcp", address)
	}
	if err != nil {
		return nil, err
	}
	token := strings.Repeat("t", 1000) // as long as those of ServiceAccounts
	_, err = fmt.Fprintf(conn, "GET /v1/namespaces/shop/changes?kind=ConfigMap HTTP/1.1\r\nHost: test\r\n"+
		"Authorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", token)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewReaderSize(conn, 1024)
	for line := ""; !strings.HasPrefix(line, "retry:"); {
		if line, err = lines.ReadString('\n'); err != nil {
			return nil, err
		}
		if strings.HasPrefix(line, "HTTP/1.1 ") && !strings.HasPrefix(line, "HTTP/1.1 200") {
			return nil, errors.New(line)
		}
	}
	return lines, nil
}

func follow(lines *bufio.Reader, events chan<- struct{}) error {
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(line), "event:") {
			events <- struct{}{}
		}
	}
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// everyone is one user, who may do anything.
type everyone struct{}

func (everyone) Authenticate(context.Context, string) (user.Info, error) {
	return &user.DefaultInfo{Name: "system:serviceaccount:shop:web"}, nil
}

func (everyone) MayWatch(context.Context, user.Info, string, string, string) (bool, error) {
	return true, nil
}

// crowd is many clients in a process of their own, so that the memory of this one is the server's.
type crowd struct {
	t     testing.TB
	said  *bufio.Reader
	count int
}

func newCrowd(t testing.TB, n int, address, scheme string) *crowd {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s", crowdVariable, n, address, scheme))
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(command.Start()).To(Succeed())
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended
		_ = command.Wait()
	})
	c := &crowd{t: t, said: bufio.NewReader(out)}
	g.Expect(c.said.ReadString('\n')).To(Equal("connected\n"))
	return c
}

// wait waits until all have got the next event.
func (c *crowd) wait() {
	c.t.Helper()
	c.count++
	NewWithT(c.t).Expect(c.said.ReadString('\n')).To(Equal(strconv.Itoa(c.count) + "\n"))
}

// usage is what the process takes, in bytes.
type usage struct {
	memory   uint64 // of the heap and of stacks
	resident uint64 // of all, as the kernel sees it
}

func measure() usage {
	for range 8 {
		runtime.GC() // each halves the stacks that are too large
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{memory: m.HeapInuse + m.StackInuse}
	statm, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		pages, _ := strconv.ParseUint(strings.Fields(string(statm))[1], 10, 64)
		u.resident = pages * uint64(os.Getpagesize())
	}
	return u
}

// loaded is a world with a crowd, how much memory each of it takes, and how long it takes until all have a change.
func loaded(t testing.TB, n int, scheme string) (w *world, c *crowd, each usage) {
	t.Helper()
	w = newWorld(t, func(s *setting) {
		s.realTime = true
		s.options.Reviewer = everyone{}
		s.options.MaxStreams, s.options.MaxStreamsPerUser = n, n
		s.secure = scheme == "https"
	})
	w.set(labelled(configMap("web", "1"), "app", "demo"))
	before := measure()
	_, address, _ := strings.Cut(w.url, "://")
	c = newCrowd(t, n, address, scheme)
	for version := range 5 {
		w.set(labelled(configMap("web", strconv.Itoa(version+2), "n", strconv.Itoa(version)), "app", "demo"))
		c.wait()
	}
	after := measure()
	NewWithT(t).Expect(w.server.Streams()).To(Equal(n))
	return w, c, usage{
		memory:   (after.memory - before.memory) / uint64(n),
		resident: (after.resident - min(before.resident, after.resident)) / uint64(n),
	}
}

func TestF8AClientTakesLittleMemory(t *testing.T) {
	const clients = 300
	most := 20 << 10
	if raceDetector() {
		most *= 2 // it takes memory of its own
	}
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			NewWithT(t).Eventually(func() uint64 { // the runtime chooses the size of stacks by what it has seen before
				w, _, each := loaded(t, clients, scheme)
				w.stop()
				t.Logf("a client takes %d bytes of the heap and of stacks", each.memory)
				return each.memory
			}, patience).Should(BeNumerically("<", most))
		})
	}
}

func TestF8AChangeReaches200ClientsAtOnce(t *testing.T) {
	const clients, changes, most = 200, 50, 250 * time.Millisecond
	g := NewWithT(t)
	w := newWorld(t, func(s *setting) { s.realTime = true })
	var mu sync.Mutex
	var took []time.Duration
	var sent atomic.Int64
	var received sync.WaitGroup
	for range clients {
		r := w.open("/v1/namespaces/shop/changes")
		go func() {
			for b := range r.blocks {
				if b.name != "Added" && b.name != "Modified" {
					continue
				}
				mu.Lock()
				took = append(took, time.Duration(time.Now().UnixNano()-sent.Load()))
				mu.Unlock()
				received.Done()
			}
		}()
	}
	for n := range changes {
		received.Add(clients)
		sent.Store(time.Now().UnixNano())
		w.set(configMap("web", strconv.Itoa(n+1), "n", strconv.Itoa(n)))
		received.Wait()
	}
	w.stop()
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("p50 %v, p99 %v", took[len(took)/2], p99)
	g.Expect(p99).To(BeNumerically("<", most))
}

// BenchmarkF8Streams has 5,000 clients, and reports what each of them takes and how long a change is on its way
// until the last one has it.
func BenchmarkF8Streams(b *testing.B) {
	for _, scheme := range []string{"http", "https"} {
		b.Run(scheme, func(b *testing.B) {
			w, c, each := loaded(b, stream.DefaultMaxStreams, scheme)
			version := 10
			for b.Loop() {
				version++
				w.set(labelled(configMap("web", strconv.Itoa(version), "n", strconv.Itoa(version)), "app", "demo"))
				c.wait()
			}
			b.ReportMetric(float64(each.memory), "B/client")
			b.ReportMetric(float64(each.resident), "resident-B/client")
			w.stop()
		})
	}
}
