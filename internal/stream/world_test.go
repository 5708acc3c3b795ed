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
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/stream"
)

const (
	patience = 10 * time.Second // longer than anything takes that is on its way
	jane     = "jane"           // a user, and the token of theirs
)

// noon is when every test begins.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// reviewer lets everyone in whose token it is not told to refuse. A token is its user's name.
type reviewer struct {
	mu      sync.Mutex
	outage  error
	invalid map[string]bool
	denied  map[string]bool // resource, or resource/namespace/name
	asked   []string
}

func (r *reviewer) Authenticate(_ context.Context, token string) (user.Info, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outage != nil {
		return nil, r.outage
	}
	if r.invalid[token] {
		return nil, nil
	}
	return &user.DefaultInfo{Name: token}, nil
}

func (r *reviewer) MayWatch(_ context.Context, who user.Info, resource, namespace, name string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what := resource + "/" + namespace + "/" + name
	r.asked = append(r.asked, who.GetName()+" "+what)
	return !r.denied[resource] && !r.denied[what], r.outage
}

// change changes what it says.
func (r *reviewer) change(how func(*reviewer)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	how(r)
}

func (r *reviewer) questions() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// sources are some whose state the test sets. They have been read, unless it says otherwise.
type sources struct {
	mu      sync.Mutex
	step    func(step source.Step, before, after *source.Source)
	tell    func()
	unread  map[v1alpha1.SourceKind]error
	present map[source.Ref]*source.Source
	former  map[digest.Hash]digest.Content
	// namespaced tells that each namespace has a watch of its own.
	namespaced bool
}

func (s *sources) OnChange(func(before, after *source.Source)) error { return nil }

func (s *sources) OnStep(call func(step source.Step, before, after *source.Source)) error {
	s.step = call
	return nil
}

func (s *sources) OnState(call func()) { s.tell = call }

func (s *sources) Readable(kind v1alpha1.SourceKind, _ string) error { return s.unread[kind] }

// listed is a step that was made by a list, in one change.
func listed(kind v1alpha1.SourceKind, version string) source.Step {
	made := source.Step{Step: step(version), Kind: kind}
	made.Listed = true
	return made
}

// step is one that leads to a version, in all namespaces.
func step(version string) informer.Step {
	return informer.Step{Version: rv(version)}
}

func (s *sources) publish(before, after *source.Source) {
	object := cmp.Or(after, before)
	made := source.Step{Step: informer.Step{Version: object.ResourceVersion}, Kind: object.Kind}
	if s.namespaced {
		made.Namespace = object.Namespace
	}
	s.step(made, before, after)
}

// rv is the resource version that is called a version here: all are later than that of the first list.
func rv(version string) string {
	n, err := strconv.Atoi(version)
	if err != nil {
		return version
	}
	return strconv.Itoa(firstVersion + n)
}

// firstVersion is the resource version of the first list.
const firstVersion = 1000

// ChangedKeys is as that of a source.Cache.
func (s *sources) ChangedKeys(now *source.Source, _ []string, from digest.Hash) ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, known := s.former[from]
	return digest.ChangedKeys(content, now.Content), known
}

// set is an object's new version.
func (s *sources) set(object *source.Source) {
	s.mu.Lock()
	before := s.present[object.Ref()]
	s.present[object.Ref()] = object
	if before != nil {
		s.former[before.Content.Hash(nil)] = before.Content
	}
	s.mu.Unlock()
	s.publish(before, object)
}

// remove removes an object.
func (s *sources) remove(ref source.Ref, version string) {
	s.mu.Lock()
	gone := *s.present[ref]
	delete(s.present, ref)
	s.mu.Unlock()
	gone.ResourceVersion = rv(version)
	s.publish(&gone, nil)
}

// configMap is one of the namespace shop, with its data as keys and values by turns.
func configMap(name, version string, data ...string) *source.Source {
	return &source.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: rv(version)},
		Kind:       v1alpha1.ConfigMap,
		Content:    digest.Plain().Content(texts(data), nil),
	}
}

func secret(name, version string, data ...string) *source.Source {
	s := configMap(name, version)
	values := map[string][]byte{}
	for key, value := range texts(data) {
		values[key] = []byte(value)
	}
	s.UID, s.Kind = types.UID("uid-secret-"+name), v1alpha1.Secret
	s.Content = digest.Keyed([]byte("a key of the operator's own")).SecretContent(values)
	return s
}

func labelled(s *source.Source, key, value string) *source.Source {
	changed := *s
	changed.Labels = map[string]string{key: value}
	return &changed
}

func texts(pairs []string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// world is a server and what it needs, which runs until the test is over.
type world struct {
	*sources
	t        testing.TB
	clock    *clocktesting.FakeClock
	reviewer *reviewer
	broker   *feed.Broker
	history  *feed.History
	client   *fake.Clientset
	server   *stream.Server
	url      string
	stop     func()
}

type setting struct {
	options    stream.Options
	unread     map[v1alpha1.SourceKind]error
	namespaces []string
	history    int
	realTime   bool
	secure     bool // by HTTPS
}

func newWorld(t testing.TB, settings ...func(*setting)) *world {
	t.Helper()
	var set setting
	set.namespaces, set.history = []string{""}, stream.RecentChanges
	for _, change := range settings {
		change(&set)
	}
	w := &world{
		t:        t,
		clock:    clocktesting.NewFakeClock(noon),
		reviewer: &reviewer{invalid: map[string]bool{}, denied: map[string]bool{}},
		client:   fake.NewClientset(),
		sources: &sources{
			namespaced: set.namespaces[0] != "", unread: set.unread, present: map[source.Ref]*source.Source{}, former: map[digest.Hash]digest.Content{},
		},
	}
	set.options.Clock, set.options.BindAddress = w.clock, "127.0.0.1:0"
	if set.realTime {
		set.options.Clock = clock.RealClock{}
	}
	w.broker = feed.NewBroker(set.options.Clock)
	w.history = feed.NewHistory(w.broker, set.history)
	NewWithT(t).Expect(w.history.Follow(w.sources, set.namespaces)).To(Succeed())
	for _, namespace := range set.namespaces {
		for _, kind := range []v1alpha1.SourceKind{v1alpha1.ConfigMap, v1alpha1.Secret} {
			made := listed(kind, "0")
			made.Namespace = namespace
			w.step(made, nil, nil)
		}
	}
	w.tell()
	if set.options.Reviewer == nil {
		set.options.Reviewer = w.reviewer
	}
	set.options.History, set.options.Former = w.history, w.sources
	set.options.ConfigMaps = w.client.CoreV1()
	if set.options.Log.GetSink() == nil {
		set.options.Log = logr.Discard()
	}
	w.server = stream.New(set.options)
	listener, err := w.server.Listen(context.Background())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	w.url = "http://" + listener.Addr().String()
	if set.secure {
		w.url = "https://" + listener.Addr().String()
		listener, err = w.server.Secure(listener)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	w.serve(listener)
	return w
}

func (w *world) serve(listener net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(ctx, listener) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			NewWithT(w.t).Expect(err).NotTo(HaveOccurred())
		case <-time.After(2 * patience):
			w.t.Error("the server doesn't end")
		}
	})
	w.t.Cleanup(w.stop)
}

// answer is what a request got. A stream is still to be read.
type answer struct {
	Code   int
	Header http.Header
	status metav1.Status
	stream io.ReadCloser
}

// get asks as Jane, whatever comes of it.
func (w *world) get(path string, headers ...string) answer {
	w.t.Helper()
	return w.ask(http.MethodGet, path, append([]string{"Authorization", "Bearer " + jane}, headers...)...)
}

func (w *world) ask(method, path string, headers ...string) answer {
	w.t.Helper()
	request, err := http.NewRequest(method, w.url+path, nil)
	NewWithT(w.t).Expect(err).NotTo(HaveOccurred())
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return w.do(request)
}

func (w *world) do(request *http.Request) answer {
	w.t.Helper()
	g := NewWithT(w.t)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	w.t.Cleanup(func() { response.Body.Close() })
	a := answer{Code: response.StatusCode, Header: response.Header, stream: response.Body}
	if a.Header.Get("Content-Type") != "application/json" || request.Method == http.MethodHead {
		return a
	}
	g.Expect(json.NewDecoder(response.Body).Decode(&a.status)).To(Succeed())
	g.Expect(a.status.Kind).To(Equal("Status"))
	g.Expect(a.status.APIVersion).To(Equal("v1"))
	g.Expect(a.status.Status).To(Equal(metav1.StatusFailure))
	g.Expect(int(a.status.Code)).To(Equal(a.Code))
	return a
}

func haveHeader(name, value string) gomegatypes.GomegaMatcher {
	return HaveField("Header", HaveKeyWithValue(http.CanonicalHeaderKey(name), []string{value}))
}

// open opens a stream, and waits until nothing that happens from now on is missed.
func (w *world) open(path string, headers ...string) *reader {
	w.t.Helper()
	a := w.get(path, headers...)
	g := NewWithT(w.t)
	g.Expect(a.Code).To(Equal(http.StatusOK), a.status.Message)
	g.Expect(a).To(haveHeader("Content-Type", "text/event-stream"))
	r := read(w.t, a.stream)
	g.Expect(r.block().retry).To(Equal("3000"))
	return r
}

// block is what comes between two empty lines of a stream.
type block struct {
	id, name, data, comment, retry string
	hasID                          bool
}

// reader reads a stream, as the specification of Server-Sent Events has it.
type reader struct {
	t      testing.TB
	body   io.Closer
	blocks chan block
	lastID string
}

func read(t testing.TB, body io.ReadCloser) *reader {
	r := &reader{t: t, body: body, blocks: make(chan block, 10_000)}
	go func() {
		defer close(r.blocks)
		lines := bufio.NewReader(body)
		var b block
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			switch line = strings.TrimSuffix(line, "\n"); line {
			case "":
				r.blocks <- b
				b = block{}
			default:
				b.add(line)
			}
		}
	}()
	return r
}

func (b *block) add(line string) {
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "":
		b.comment = value
	case "id":
		b.id, b.hasID = value, true
	case "event":
		b.name = value
	case "data":
		b.data += value
	case "retry":
		b.retry = value
	}
}

// block is the next block.
func (r *reader) block() block {
	r.t.Helper()
	select {
	case b, ok := <-r.blocks:
		if !ok {
			r.t.Fatal("the stream has ended")
		}
		if b.hasID {
			r.lastID = b.id
		}
		return b
	case <-time.After(patience):
		r.t.Fatal("nothing comes")
	}
	return block{}
}

// event is the next event, after heartbeats.
func (r *reader) event() (block, event.Event) {
	r.t.Helper()
	for {
		b := r.block()
		if b.data == "" {
			continue
		}
		var e event.Event
		NewWithT(r.t).Expect(json.Unmarshal([]byte(b.data), &e)).To(Succeed())
		return b, e
	}
}

// data is the data of the next event.
func (r *reader) data() feed.DataWithContent {
	r.t.Helper()
	_, e := r.event()
	var data feed.DataWithContent
	NewWithT(r.t).Expect(e.DataAs(&data)).To(Succeed())
	return data
}

// line is the next event in short, such as "Added web@3", "Added web@3 initial" or "Gap 7".
func (r *reader) line() string {
	r.t.Helper()
	b, e := r.event()
	var data feed.Data
	NewWithT(r.t).Expect(e.DataAs(&data)).To(Succeed())
	line := b.name
	switch {
	case b.name == string(feed.Gap) && data.Lost > 0:
		return line + " " + strconv.Itoa(data.Lost)
	case data.Name != "" && b.name != string(feed.Gap) && b.name != string(feed.Synced):
		_, version, _ := strings.Cut(e.ID(), "/")
		if n, err := strconv.Atoi(version); err == nil {
			version = strconv.Itoa(n - firstVersion)
		}
		line += " " + data.Name + "@" + version
	}
	if data.Initial {
		line += " initial"
	}
	return line
}

// expect checks that these lines come next.
func (r *reader) expect(lines ...string) {
	r.t.Helper()
	got := make([]string, len(lines))
	for i := range lines {
		got[i] = r.line()
	}
	NewWithT(r.t).Expect(got).To(HaveExactElements(lines))
}

// ended is why the server ends the stream.
func (r *reader) ended() stream.EndedData {
	r.t.Helper()
	g := NewWithT(r.t)
	b, e := r.event()
	g.Expect(b.name).To(Equal("Ended"))
	g.Expect(e.Type()).To(Equal(stream.TypeEnded))
	var data stream.EndedData
	g.Expect(e.DataAs(&data)).To(Succeed())
	g.Eventually(r.blocks, patience).Should(BeClosed())
	return data
}

func (r *reader) close() { _ = r.body.Close() }

// settle makes sure that what was published before has come: the last of it is what the test publishes here.
func (w *world) settle(readers ...*reader) {
	w.t.Helper()
	w.set(configMap("settle", strconv.FormatInt(time.Now().UnixNano(), 10), "at", time.Now().String()))
	for _, r := range readers {
		NewWithT(w.t).Expect(r.line()).To(ContainSubstring("settle@"))
	}
}

// beat lets a heartbeat pass.
func (w *world) beat(r *reader) {
	w.t.Helper()
	w.clock.Step(stream.Heartbeat)
	NewWithT(w.t).Expect(r.block().comment).To(Equal("heartbeat"))
}

var errOutage = errors.New("connection refused")

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
