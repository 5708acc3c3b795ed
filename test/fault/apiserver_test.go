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
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/test/utils"
)

var _ = Describe("A manager whose API server fails", Ordered, func() {
	var (
		p *proxy
		s *shop
		m *utils.Manager
	)

	BeforeAll(func(ctx SpecContext) {
		p = newProxy()
		s = openShop(ctx, 4, 3)
		m = run(ctx, p)
		s.settle(ctx)
	})

	AfterEach(func(ctx SpecContext) {
		p.lift()
		s.settle(ctx)
		Consistently(ctx, s.check).WithTimeout(300 * time.Millisecond).Should(Succeed())
		Expect(m.Exited()).NotTo(BeClosed())
	})

	It("is not ready while it is gone, and makes each restart once when it is back (E9, E7)", func(ctx SpecContext) {
		hit := p.add(&fault{on: patchDeployments, nth: 2, after: func(context.Context) (*http.Response, error) {
			return nil, plane.KillAPIServer()
		}})
		Expect(m.Ready(ctx)).To(Succeed())
		s.change(ctx, v1alpha1.ConfigMap, shared)
		Eventually(hit).Should(BeClosed())
		Eventually(m.Ready).WithContext(ctx).ShouldNot(Succeed())

		Expect(plane.StartAPIServer(ctx)).To(Succeed())
		s.change(ctx, v1alpha1.ConfigMap, s.own[0])
		s.change(ctx, v1alpha1.Secret, s.own[1])
		s.settle(ctx)
		Eventually(m.Ready).WithContext(ctx).Should(Succeed())
	})

	It("makes each restart once when it pauses in the middle (E9)", func(ctx SpecContext) {
		paused := make(chan struct{})
		hit := p.add(&fault{on: patchDeployments, nth: 2, before: hold(paused)})
		s.change(ctx, v1alpha1.ConfigMap, shared)
		Eventually(hit).Should(BeClosed())
		Expect(plane.PauseAPIServer()).To(Succeed())
		DeferCleanup(func() error { return plane.ResumeAPIServer() })
		close(paused) // a patch waits for its answer
		Consistently(m.Exited()).WithTimeout(3 * time.Second).ShouldNot(BeClosed())
		Expect(plane.ResumeAPIServer()).To(Succeed())
		s.change(ctx, v1alpha1.ConfigMap, s.own[2])
	})

	It("misses nothing that it has forgotten when watches come back, 410 Gone (E7)", func(ctx SpecContext) {
		for _, name := range s.own { // so that the watches aren't too young to be made again from where they were
			s.change(ctx, v1alpha1.ConfigMap, name)
		}
		s.settle(ctx)
		p.wire.cut()
		Eventually(m.Ready).WithContext(ctx).ShouldNot(Succeed())
		for _, name := range s.own {
			s.set(ctx, v1alpha1.ConfigMap, name, "passing")
			s.change(ctx, v1alpha1.ConfigMap, name)
		}
		s.change(ctx, v1alpha1.ConfigMap, shared)
		compact(ctx)
		Expect(plane.StopAPIServer()).To(Succeed())
		Expect(plane.StartAPIServer(ctx)).To(Succeed(), "its own memory of past changes is empty now")
		p.wire.mend()
		s.settle(ctx)
		Expect(p.gone.Load()).To(BeNumerically(">", 0), "watches were refused because their beginning is gone")
		Eventually(m.Ready).WithContext(ctx).Should(Succeed())
	})
})

// compact makes etcd forget everything but the present.
func compact(ctx context.Context) {
	GinkgoHelper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", plane.EtcdSocket())
	}}
	defer transport.CloseIdleConnections()
	etcd := &http.Client{Transport: transport}
	var now struct{ Header struct{ Revision string } }
	post(ctx, etcd, "range", map[string]any{"key": []byte("/")}, &now)
	post(ctx, etcd, "compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, &now)
}

func post(ctx context.Context, etcd *http.Client, call string, request, answer any) {
	GinkgoHelper()
	body, err := json.Marshal(request)
	Expect(err).NotTo(HaveOccurred())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+call, bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	response, err := etcd.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	Expect(response).To(HaveHTTPStatus(http.StatusOK))
	Expect(json.NewDecoder(response.Body).Decode(answer)).To(Succeed())
}
