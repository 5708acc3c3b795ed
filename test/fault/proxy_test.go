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
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// proxy stands between a manager and the API server. It lets everything through, watches too, but for
// what its faults do.
type proxy struct {
	server     *httptest.Server
	upstream   *http.Transport
	kubeconfig string
	wire       *wire // by which managers reach it

	mu     sync.Mutex
	faults []*fault
	// choose makes a fault for a call that none of the faults hits, or nil.
	choose func(call) *fault
	seen   []seen
	stalls map[string]chan struct{} // by class; closed when the streams flow on
	// tear tells whether a watch of a class is to be cut, when it has brought something so many times.
	tear func(class string, brought int) bool
	// torn counts the watches that were cut by it.
	torn atomic.Int64
	// gone counts the watches that the API server has ended because it no longer knows their beginning.
	gone atomic.Int64
}

// seen is a call that has passed the proxy, or has been stopped by it.
type seen struct {
	call

	at time.Time
}

// fault is what happens to some of the calls of a class.
type fault struct {
	// on is the class of the calls.
	on string
	// of is the name of the object; empty: any.
	of string
	// nth is the first call that is hit; 0 and 1 are the very first.
	nth int
	// times is how many calls are hit; 0: one; always: every one until the fault is lifted.
	times int
	// before is done instead of passing the call on, unless it returns nil, nil.
	before func(context.Context) (*http.Response, error)
	// after is done once the API server has answered; what it returns, if anything, is passed back.
	after func(context.Context) (*http.Response, error)
	// late passes the call on even if the manager doesn't wait for the answer any more.
	late bool

	calls    int
	hit      chan struct{} // closed at the first hit
	answered atomic.Int32  // the code of the API server's last answer
}

const always = -1

// errCut makes the proxy cut the connection, with all calls and watches on it.
var errCut = errors.New("cut by the proxy")

type connectionKey struct{}

// newProxy makes a proxy that lasts as long as the test, and a kubeconfig for it.
func newProxy() *proxy {
	GinkgoHelper()
	target, err := url.Parse(plane.URL())
	Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(plane.CA())).To(BeTrue())
	p := &proxy{stalls: map[string]chan struct{}{}, upstream: &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:  true,
		DisableCompression: true, // it's between the two at the ends
	}}
	silent := log.New(io.Discard, "", 0)
	p.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p,
		FlushInterval: -1,
		ErrorLog:      silent,
		ErrorHandler:  func(_ http.ResponseWriter, r *http.Request, _ error) { cutConnection(r) },
	})
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = silent
	p.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	p.server.StartTLS()
	p.wire = newWire(p.server.Listener.Addr().String())
	DeferCleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
		p.upstream.CloseIdleConnections()
	})
	p.writeKubeconfig()
	return p
}

// writeKubeconfig makes the manager's kubeconfig lead to the proxy.
func (p *proxy) writeKubeconfig() {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + p.wire.address
		cluster.CertificateAuthority = ""
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	}
	p.kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, p.kubeconfig)).To(Succeed())
}

// cutConnection cuts the connection that the request came by, and ends its handler.
func cutConnection(r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(net.Conn); ok {
		_ = c.Close() // it may be closed already
	}
	panic(http.ErrAbortHandler)
}

// RoundTrip passes a request on and the answer back, with whatever faults are due.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	c := callOf(r)
	due := p.due(c)
	if due != nil && due.late {
		var err error
		if r, err = detach(context.WithoutCancel(r.Context()), r); err != nil {
			return nil, err
		}
	}
	if due != nil && due.before != nil {
		if response, err := due.before(r.Context()); response != nil || err != nil {
			return response, err
		}
	}
	response, err := p.upstream.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if due != nil {
		due.answered.Store(int32(response.StatusCode))
	}
	if due != nil && due.after != nil {
		if instead, err := due.after(r.Context()); instead != nil || err != nil {
			_ = response.Body.Close() // what it says is lost anyway
			return instead, err
		}
	}
	if c.verb == "watch" {
		response.Body = &watched{ReadCloser: response.Body, proxy: p, class: c.String()}
	}
	return response, nil
}

// detach makes a request independent of whoever sent it.
func detach(ctx context.Context, r *http.Request) (*http.Request, error) {
	r = r.Clone(ctx)
	if r.Body == nil {
		return r, nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, err
}

// due is the fault that hits the call, if one does.
func (p *proxy) due(c call) *fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, seen{call: c, at: time.Now()})
	for _, f := range p.faults {
		if f.on != c.String() || f.of != "" && f.of != c.name {
			continue
		}
		f.calls++
		if f.calls < max(f.nth, 1) || f.times != always && f.calls >= max(f.nth, 1)+max(f.times, 1) {
			continue
		}
		if f.hit != nil {
			close(f.hit)
			f.hit = nil
		}
		return f
	}
	if p.choose != nil {
		return p.choose(c)
	}
	return nil
}

// add adds a fault. The channel is closed at its first hit.
func (p *proxy) add(f *fault) (hit <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.hit = make(chan struct{})
	p.faults = append(p.faults, f)
	return f.hit
}

// lift ends all faults.
func (p *proxy) lift() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.choose = nil, nil
}

// chooseBy has a fault chosen for each call that none of those that were added hits, until all are lifted.
func (p *proxy) chooseBy(choose func(call) *fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.choose = choose
}

// calls is how many calls of the class there were since a time.
func (p *proxy) calls(class string, since time.Time) int {
	return len(p.seenSince(class, since))
}

// seenSince are the calls of the class since a time.
func (p *proxy) seenSince(class string, since time.Time) []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.seen), func(s seen) bool {
		return s.String() != class || s.at.Before(since)
	})
}

// watched is the stream of a watch.
type watched struct {
	io.ReadCloser

	proxy   *proxy
	class   string
	brought int
	torn    bool
}

func (w *watched) Read(b []byte) (int, error) {
	if w.torn {
		return 0, errCut
	}
	n, err := w.ReadCloser.Read(b)
	if bytes.Contains(b[:n], []byte(metav1.StatusReasonExpired)) { // the words differ: the watch cache's, or etcd's
		w.proxy.gone.Add(1)
	}
	if stall := w.proxy.stalled(w.class); stall != nil {
		<-stall
	}
	const end = 3 // bytes without which nothing can be made of the last event
	if w.brought++; n > end && w.proxy.tears(w.class, w.brought) {
		w.torn = true
		return n - end, nil
	}
	return n, err
}

// tearBy has watches cut in the middle of an event; by nil, none is from now on.
func (p *proxy) tearBy(tear func(class string, brought int) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tear = tear
}

func (p *proxy) tears(class string, brought int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tear == nil || !p.tear(class, brought) {
		return false
	}
	p.torn.Add(1)
	return true
}

// stall keeps what the watches of a class bring, until it is told to resume.
func (p *proxy) stall(class string) (resume func()) {
	stall := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalls[class] = stall
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.stalls, class)
		close(stall)
	})
}

func (p *proxy) stalled(class string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalls[class]
}

// cut cuts the connection.
func cut(context.Context) (*http.Response, error) {
	return nil, errCut
}

// answer answers in the API server's stead.
func answer(code int, reason metav1.StatusReason) func(context.Context) (*http.Response, error) {
	return func(context.Context) (*http.Response, error) {
		body, err := json.Marshal(&metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "made up: " + strings.ToLower(http.StatusText(code)),
		})
		if err != nil {
			return nil, err
		}
		header := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
		if code == http.StatusTooManyRequests {
			header.Set("Retry-After", "1")
		}
		return &http.Response{
			StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: header,
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	}
}

// delay holds calls up, and then lets them pass.
func delay(d time.Duration) func(context.Context) (*http.Response, error) {
	return func(context.Context) (*http.Response, error) {
		time.Sleep(d)
		return nil, nil //nolint:nilnil // as agreed: pass it on
	}
}

// hold holds calls up until the channel is closed, and then lets them pass.
func hold(until <-chan struct{}) func(context.Context) (*http.Response, error) {
	return func(context.Context) (*http.Response, error) {
		<-until
		return nil, nil //nolint:nilnil // as agreed: pass it on
	}
}
