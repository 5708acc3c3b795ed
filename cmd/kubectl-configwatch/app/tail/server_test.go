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
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// server speaks as much of the API server's HTTP as a watch of ConfigMaps and Secrets takes. It doesn't
// stream lists, as older API servers.
type server struct {
	*httptest.Server

	mu       sync.Mutex
	version  int
	objects  map[string]object // by resource, namespace and name
	history  []change          // oldest first
	watchers map[*watcher]bool
	requests []string
	lacking  map[string]bool        // verb and resource, such as "list secrets"
	failure  *apierrors.StatusError // of every call, if there is one
	user     string                 // of the kubeconfig, in YAML
	secure   bool                   // whether the kubeconfig says https, without which there are no tokens
}

type object interface {
	runtime.Object
	metav1.Object
}

// change is what an object was and has become, nil if it wasn't there or is gone.
type change struct {
	version       int
	before, after object
}

// watcher is a watch that a client has begun.
type watcher struct {
	what   selection
	events chan metav1.WatchEvent
}

// selection is what a list or watch is about.
type selection struct {
	resource, namespace string
	labels              labels.Selector
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{objects: map[string]object{}, watchers: map[*watcher]bool{}, lacking: map[string]bool{}, user: "{}"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/{resource}", s.read)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/{resource}", s.read)
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", s.review)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.cut()
		s.Close()
	})
	return s
}

func configMap(name string, data ...string) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	object.APIVersion, object.Kind = "v1", "ConfigMap"
	object.Data = map[string]string{}
	for i := 0; i+1 < len(data); i += 2 {
		object.Data[data[i]] = data[i+1]
	}
	return object
}

func secret(name string, data ...string) *corev1.Secret {
	from := configMap(name, data...)
	object := &corev1.Secret{ObjectMeta: from.ObjectMeta, Data: map[string][]byte{}}
	object.APIVersion, object.Kind = "v1", "Secret"
	for key, value := range from.Data {
		object.Data[key] = []byte(value)
	}
	return object
}

func labelled[T object](object T) T {
	object.SetLabels(map[string]string{"app": "demo"})
	return object
}

func elsewhere[T object](object T) T {
	object.SetNamespace("elsewhere")
	return object
}

func resourceOf(o object) string {
	return strings.ToLower(o.GetObjectKind().GroupVersionKind().Kind) + "s"
}

func keyOf(o object) string {
	return resourceOf(o) + "/" + o.GetNamespace() + "/" + o.GetName()
}

func (w selection) has(o object) bool {
	return w.resource == resourceOf(o) && (w.namespace == "" || w.namespace == o.GetNamespace()) && w.labels.Matches(labels.Set(o.GetLabels()))
}

// put creates or updates an object, and tells the watchers.
func (s *server) put(o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[keyOf(o)]
	s.objects[keyOf(o)] = o
	s.changed(o, before, o)
}

func (s *server) remove(o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[keyOf(o)]
	delete(s.objects, keyOf(o))
	s.changed(o, before, nil)
}

// changed gives a change its version, which the object gets, and tells the watchers.
func (s *server) changed(o, before, after object) {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	c := change{s.version, before, after}
	s.history = append(s.history, c)
	for w := range s.watchers {
		w.tell(c)
	}
}

// tell tells of a change as it concerns what is watched.
func (w *watcher) tell(c change) {
	was, is := c.before != nil && w.what.has(c.before), c.after != nil && w.what.has(c.after)
	var event string
	var o object
	switch {
	case was && is:
		event, o = "MODIFIED", c.after
	case is:
		event, o = "ADDED", c.after
	case was:
		event, o = "DELETED", c.before.DeepCopyObject().(object)
		o.SetResourceVersion(strconv.Itoa(c.version))
	default:
		return
	}
	w.events <- metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Object: o}}
}

// cut ends every watch.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		close(w.events)
	}
	clear(s.watchers)
}

// fail has every call fail, until it is told to fail with nothing.
func (s *server) fail(failure *apierrors.StatusError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = failure
}

// asked are the resources that were asked for, with the selectors, such as "configmaps app=demo".
func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(s.requests)))
}

func (s *server) read(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	parsed, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	what := selection{r.PathValue("resource"), r.PathValue("namespace"), parsed}
	verb := "list"
	if query.Get("watch") != "" {
		verb = "watch"
	}
	s.mu.Lock()
	s.requests = append(s.requests, strings.Join(strings.Fields(what.resource+" "+query.Get("labelSelector")+" "+query.Get("fieldSelector")), " "))
	refusal := s.refusal(verb, what)
	s.mu.Unlock()
	switch {
	case refusal != nil:
		answer(w, int(refusal.ErrStatus.Code), &refusal.ErrStatus)
	case query.Get("sendInitialEvents") != "":
		invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
		answer(w, int(invalid.ErrStatus.Code), &invalid.ErrStatus)
	case verb == "watch":
		s.watch(w, r, what)
	default:
		s.list(w, what)
	}
}

func (s *server) refusal(verb string, what selection) *apierrors.StatusError {
	if s.failure != nil {
		return s.failure
	}
	if !s.lacking[verb+" "+what.resource] {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: what.resource}, "", errNotAllowed)
}

func (s *server) list(w http.ResponseWriter, what selection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []object{}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if what.has(s.objects[key]) {
			items = append(items, s.objects[key])
		}
	}
	kind := "ConfigMapList"
	if what.resource == "secrets" {
		kind = "SecretList"
	}
	s.version++
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}
	answer(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": kind, "metadata": meta, "items": items})
}

func (s *server) watch(w http.ResponseWriter, r *http.Request, what selection) {
	began := &watcher{what: what, events: make(chan metav1.WatchEvent, 100)}
	s.mu.Lock()
	if from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion")); from > 0 { // what came after the list
		for _, c := range s.history {
			if c.version > from {
				began.tell(c)
			}
		}
	}
	s.watchers[began] = true
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	encoder := json.NewEncoder(w)
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			s.mu.Lock()
			delete(s.watchers, began)
			s.mu.Unlock()
			return
		case event, open := <-began.events:
			if !open || encoder.Encode(event) != nil {
				return
			}
		}
	}
}

// review answers what the user may do.
func (s *server) review(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	review, ok := decoded.(*authorizationv1.SelfSubjectAccessReview)
	if err != nil || !ok {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lacking["create selfsubjectaccessreviews"] {
		refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectaccessreviews"}, "", nil)
		answer(w, http.StatusForbidden, &refusal.ErrStatus)
		return
	}
	attributes := review.Spec.ResourceAttributes
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	review.Status.Allowed = !s.lacking[attributes.Verb+" "+attributes.Resource]
	answer(w, http.StatusCreated, review)
}

func answer(w http.ResponseWriter, code int, body any) {
	if status, ok := body.(*metav1.Status); ok {
		typed := *status // it may be the answer to other requests too
		typed.APIVersion, typed.Kind = "v1", "Status"
		body = &typed
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// kubeconfig is a file that leads to the server, in the namespace shop.
func (s *server) kubeconfig(t *testing.T) string {
	t.Helper()
	file, address := filepath.Join(t.TempDir(), "kubeconfig"), s.URL
	if s.secure {
		address = strings.Replace(address, "http:", "https:", 1)
	}
	text := `{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: "` + address + `"}}],
contexts: [{name: c, context: {cluster: c, user: u, namespace: shop}}],
users: [{name: u, user: ` + s.user + `}]}`
	NewWithT(t).Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return file
}
