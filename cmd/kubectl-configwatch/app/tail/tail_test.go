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

package tail_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gstruct"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/ktechhub/configwatch/cmd/kubectl-configwatch/app"
	"github.com/ktechhub/configwatch/internal/feed"
)

var errNotAllowed = errors.New("not allowed")

// running is a command that runs.
type running struct {
	*WithT
	out, errOut *gbytes.Buffer
	interrupt   context.CancelFunc
	ended       chan error
}

// run runs kubectl configwatch tail until it is interrupted, or the test ends.
func run(t *testing.T, s *server, args ...string) *running {
	t.Helper()
	r := &running{WithT: NewWithT(t), out: gbytes.NewBuffer(), errOut: gbytes.NewBuffer(), ended: make(chan error, 1)}
	command := app.NewCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: r.out, ErrOut: r.errOut})
	command.SetArgs(append([]string{"tail", "--kubeconfig", s.kubeconfig(t)}, args...))
	var ctx context.Context
	ctx, r.interrupt = context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.ended <- command.ExecuteContext(ctx)
	}()
	t.Cleanup(func() {
		r.interrupt()
		<-ended
	})
	return r
}

// watching runs it until it watches.
func watching(t *testing.T, s *server, args ...string) *running {
	t.Helper()
	r := run(t, s, args...)
	r.Eventually(r.errOut).Should(gbytes.Say("^Watching "))
	return r
}

// lines are what was written, without the times.
func (r *running) lines() []string {
	var lines []string
	for line := range strings.Lines(string(r.out.Contents())) {
		_, after, _ := strings.Cut(strings.TrimSpace(line), " ")
		lines = append(lines, strings.Join(strings.Fields(after), " "))
	}
	return lines
}

func TestF10TailShowsChangesAsTheyHappen(t *testing.T) {
	s := newServer(t)
	s.put(configMap("web", "LOG_LEVEL", "info"))
	r := watching(t, s)
	r.Expect(string(r.errOut.Contents())).To(Equal("Watching ConfigMaps and Secrets in namespace shop. Ctrl-C ends it.\n"))

	s.put(secret("db", "password", "hunter2-canary"))
	r.Eventually(r.lines).Should(HaveLen(1))
	s.put(configMap("web", "LOG_LEVEL", "debug-canary"))
	s.put(labelled(configMap("web", "LOG_LEVEL", "debug-canary"))) // no content
	s.put(elsewhere(configMap("web")))
	s.remove(configMap("web", "LOG_LEVEL", "debug-canary"))
	r.Eventually(r.lines).Should(HaveExactElements(
		"Added Secret shop/db (password)", "Modified ConfigMap shop/web (LOG_LEVEL)", "Deleted ConfigMap shop/web (LOG_LEVEL)"))

	r.interrupt()
	r.Eventually(r.ended).Should(Receive(BeNil()), "Ctrl-C is no error")
	r.Expect(string(r.out.Contents())).NotTo(ContainSubstring("canary"))
	r.Expect(s.asked()).To(HaveExactElements("configmaps", "secrets type!=helm.sh/release.v1"))
}

func TestF10TailReadsOnlyWhatIsAskedFor(t *testing.T) {
	s := newServer(t)
	s.put(labelled(configMap("web")))
	s.put(labelled(elsewhere(configMap("web"))))
	r := watching(t, s, "-A", "-l", "app=demo", "--kind", "configmap", "--initial")
	r.Expect(string(r.errOut.Contents())).To(HavePrefix("Watching ConfigMaps in all namespaces."))
	r.Eventually(r.lines).Should(HaveLen(3))
	s.put(configMap("web"))
	r.Eventually(r.lines).Should(HaveLen(4))
	s.put(labelled(configMap("web")))
	r.Eventually(r.lines).Should(HaveExactElements(
		"Present ConfigMap elsewhere/web", "Present ConfigMap shop/web", "Synced all that is there has been read",
		"Deleted ConfigMap shop/web", "Added ConfigMap shop/web"))
	r.Expect(s.asked()).To(HaveExactElements("configmaps app=demo"), "the API server does the selection, and Secrets are not read")
}

func TestF10TailReactsOnlyToSomeEvents(t *testing.T) {
	s := newServer(t)
	s.put(configMap("web"))
	r := watching(t, s, "-n", "shop", "--kind=Secret", "--events", "added,Deleted")
	s.put(secret("db"))
	s.put(secret("db", "a", "1"))
	s.remove(secret("db", "a", "1"))
	r.Eventually(r.lines).Should(HaveExactElements("Added Secret shop/db", "Deleted Secret shop/db (a)"))
}

// A watch begins after its list, and brings each event of what came in between, as that of the API server does.
func TestF10TheTestsServerTellsAWatchOfEverythingSinceItsList(t *testing.T) {
	g := NewWithT(t)
	s := newServer(t)
	s.put(secret("old"))
	s.put(labelled(secret("db")))
	s.put(secret("db", "a", "1"))
	s.remove(secret("db"))
	response, err := http.Get(s.URL + "/api/v1/namespaces/shop/secrets?watch=true&resourceVersion=1&labelSelector=app%3Ddemo")
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	events := json.NewDecoder(response.Body)
	for _, want := range []string{"ADDED 2", "DELETED 3"} {
		var e struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		g.Expect(events.Decode(&e)).To(Succeed())
		g.Expect(e.Type + " " + e.Object.ResourceVersion).To(Equal(want))
	}
}

func TestF10TailCounts(t *testing.T) {
	s := newServer(t)
	s.put(configMap("web"))
	s.put(secret("db"))
	r := watching(t, s, "--count", "--events=Added")
	r.Eventually(r.lines).Should(HaveExactElements("1 ConfigMaps, 1 Secrets; 0 added, 0 modified, 0 deleted, 0 lost"))
	s.put(configMap("web", "a", "1"))
	s.put(configMap("new"))
	r.Eventually(r.lines).Should(HaveExactElements(HavePrefix("1 "), "2 ConfigMaps, 1 Secrets; 1 added, 1 modified, 0 deleted, 0 lost"))

	inJSON := watching(t, s, "--count", "-o", "json")
	inJSON.Eventually(func() string { return string(inJSON.out.Contents()) }).Should(
		MatchJSON(`{"present":{"ConfigMap":2,"Secret":1},"events":{"Added":0,"Modified":0,"Deleted":0},"lost":0}`))
}

func TestF10TailWritesCloudEvents(t *testing.T) {
	s := newServer(t)
	r := watching(t, s, "-o", "json")
	s.put(configMap("web", "a", "1"))
	r.Eventually(func() string { return string(r.out.Contents()) }).Should(HaveSuffix("\n"))
	var e event.Event
	r.Expect(json.Unmarshal(r.out.Contents(), &e)).To(Succeed())
	r.Expect(e.Validate()).To(Succeed())
	r.Expect(e.Type()).To(Equal(feed.TypeAdded))
	var data feed.Data
	r.Expect(e.DataAs(&data)).To(Succeed())
	r.Expect(data).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Namespace": Equal("shop"), "Name": Equal("web"), "ChangedKeys": HaveExactElements("a"),
	}))
}

func TestF10AMissingPermissionIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		lacking []string
		args    []string
		want    string
	}{
		"one verb": {[]string{"watch secrets"}, nil,
			"no permission to watch Secrets in namespace shop; --kind ConfigMap leaves Secrets out: " +
				"secrets: secrets is forbidden: not allowed"},
		"both verbs": {[]string{"list configmaps", "watch configmaps"}, nil,
			"no permission to list and watch ConfigMaps in namespace shop; --kind Secret leaves ConfigMaps out: " +
				"configmaps: configmaps is forbidden: not allowed"},
		"in all namespaces, of one kind": {[]string{"list secrets"}, []string{"-A", "--kind", "Secret"},
			"no permission to list Secrets in all namespaces: secrets: secrets is forbidden: not allowed"},
		"and to ask for permissions neither": {[]string{"list secrets", "create selfsubjectaccessreviews"}, []string{"--kind", "Secret"},
			"no permission to list and watch Secrets in namespace shop: secrets: secrets is forbidden: not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			for _, verb := range tc.lacking {
				s.lacking[verb] = true
			}
			r := run(t, s, tc.args...)
			r.Eventually(r.ended, "10s").Should(Receive(MatchError(tc.want)))
			r.Expect(r.out.Contents()).To(BeEmpty())
		})
	}
}

func TestF10AnAPIServerThatCantBeUsedIsAnError(t *testing.T) {
	t.Run("out of reach", func(t *testing.T) {
		s := newServer(t)
		s.Close()
		r := run(t, s)
		r.Eventually(r.ended, "10s").Should(Receive(MatchError(And(
			HavePrefix("reading ConfigMaps in namespace shop: "), ContainSubstring("connection refused")))))
	})
	t.Run("unknown user", func(t *testing.T) {
		s := newServer(t)
		s.fail(apierrors.NewUnauthorized("who are you?"))
		r := run(t, s)
		r.Eventually(r.ended, "10s").Should(Receive(MatchError("reading ConfigMaps in namespace shop: configmaps: who are you?")))
	})
	t.Run("busy", func(t *testing.T) {
		s := newServer(t)
		s.fail(apierrors.NewTooManyRequestsError("later"))
		r := run(t, s)
		r.Eventually(s.asked).ShouldNot(BeEmpty())
		s.fail(nil)
		r.Eventually(r.errOut, "20s").Should(gbytes.Say("^Watching "))
	})
}

func TestF11ALostConnectionIsTold(t *testing.T) {
	logged := gbytes.NewBuffer()
	t.Cleanup(klog.CaptureState().Restore) //nolint:logcheck // client-go logs by klog
	klog.SetLogger(funcr.New(func(_, args string) { _, _ = logged.Write([]byte(args)) }, funcr.Options{}))
	s := newServer(t)
	s.put(configMap("web", "a", "1"))
	r := watching(t, s, "--kind=ConfigMap")
	s.fail(apierrors.NewServiceUnavailable("down"))
	s.cut()
	r.Eventually(r.errOut, "20s").Should(gbytes.Say("Lost the connection, and trying again: configmaps: down"))
	s.put(configMap("web", "a", "2"))
	s.fail(nil)
	r.Eventually(r.errOut, "20s").Should(gbytes.Say(`Connected again\. What changed in the meantime is shown\.`))
	r.Eventually(r.lines).Should(HaveExactElements("Modified ConfigMap shop/web (a)"))
	r.Expect(string(logged.Contents())).To(BeEmpty(), "client-go doesn't say it again")
}

func TestF10FlagsThatCantBeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a kind":     {[]string{"--kind", "Pod"}, `--kind must be ConfigMap, Secret or all, not "Pod"`},
		"an event":   {[]string{"--events", "Added,Synced"}, `--events must be of Added, Modified and Deleted, not "Synced"`},
		"a selector": {[]string{"-l", "app==="}, `--selector "app===" can't be used: `},
		"an output":  {[]string{"-o", "yaml"}, `--output must be text or json, not "yaml"`},
		"a name":     {[]string{"web"}, `unknown command "web" for "kubectl configwatch tail"`},
		"a context":  {[]string{"--context", "other"}, `finding the API server: context "other" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			r := run(t, s, tc.args...)
			r.Eventually(r.ended).Should(Receive(MatchError(HavePrefix(tc.want))))
			r.Expect(s.asked()).To(BeEmpty())
			r.Expect(r.out.Contents()).To(BeEmpty(), "no usage: the message says what to write")
		})
	}
}
