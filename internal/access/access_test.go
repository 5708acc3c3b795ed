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

package access_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/ktechhub/configwatch/internal/access"
)

// apiServer knows one token, of Jane, and allows what the test says.
type apiServer struct {
	mu      sync.Mutex
	outage  bool
	allowed bool
	denied  bool
	tokens  int // reviews
	asked   []authorizationv1.SubjectAccessReviewSpec
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outage {
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	var answer any
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		s.tokens++
		if review.Spec.Token == "good" {
			review.Status.Authenticated = true
			review.Status.User = authenticationv1.UserInfo{
				Username: "jane", UID: "1", Groups: []string{"staff"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"web"}},
			}
		}
		answer = review
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		s.asked = append(s.asked, review.Spec)
		review.Status.Allowed, review.Status.Denied = s.allowed, s.denied
		answer = review
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *apiServer) set(how func(*apiServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(s)
}

func (s *apiServer) questions() []authorizationv1.SubjectAccessReviewSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func run(t *testing.T) (*apiServer, *rest.Config, *http.Client) {
	t.Helper()
	s := &apiServer{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.ContentType = "application/json"
	return s, config, server.Client()
}

func reviewer(t *testing.T) (*apiServer, *access.Reviewer) {
	t.Helper()
	s, config, client := run(t)
	r, err := access.NewReviewer(config, client)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s, r
}

func TestATokenIsReadFromTheHeader(t *testing.T) {
	for header, want := range map[string]string{
		"":              "",
		"Bearer good":   "good",
		"bearer  good":  "",
		"BEARER good":   "good",
		"Bearer":        "",
		"Basic good":    "",
		"Bearer good x": "good",
	} {
		request := httptest.NewRequest(http.MethodGet, "/?access_token=other", nil)
		request.Header.Set("Authorization", header)
		NewWithT(t).Expect(access.Token(request)).To(Equal(want), header)
	}
}

func TestAUserIsWhoTheAPIServerSays(t *testing.T) {
	g := NewWithT(t)
	s, r := reviewer(t)
	for range 3 {
		g.Expect(r.Authenticate(t.Context(), "good")).To(Equal(&user.DefaultInfo{
			Name: "jane", UID: "1", Groups: []string{"staff"}, Extra: map[string][]string{"pod": {"web"}},
		}))
		g.Expect(r.Authenticate(t.Context(), "bad")).To(BeNil())
		g.Expect(r.Authenticate(t.Context(), "")).To(BeNil())
	}
	g.Expect(s.tokens).To(Equal(2), "answers are kept for a while")

	s.set(func(s *apiServer) { s.outage = true })
	_, err := r.Authenticate(t.Context(), "another")
	g.Expect(err).To(MatchError(HavePrefix("reviewing a token: ")))
	g.Expect(err).NotTo(MatchError(ContainSubstring("another")))
}

func TestAUserMayWatchWhatTheAPIServerSays(t *testing.T) {
	g := NewWithT(t)
	s, r := reviewer(t)
	jane := &user.DefaultInfo{Name: "jane", UID: "1", Groups: []string{"staff"}, Extra: map[string][]string{"pod": {"web"}}}
	g.Expect(r.MayWatch(t.Context(), jane, "secrets", "shop", "db")).To(BeFalse())
	g.Expect(s.questions()).To(HaveExactElements(authorizationv1.SubjectAccessReviewSpec{
		User: "jane", UID: "1", Groups: []string{"staff"}, Extra: map[string]authorizationv1.ExtraValue{"pod": {"web"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "watch", Version: "v1", Resource: "secrets", Namespace: "shop", Name: "db",
		},
	}))

	s.set(func(s *apiServer) { s.allowed = true })
	for range 3 {
		g.Expect(r.MayWatch(t.Context(), jane, "secrets", "shop", "db")).To(BeTrue())
	}
	g.Expect(s.questions()).To(HaveLen(2), "what is refused is asked again, and what is allowed is kept for a while")
	for n, who := range []user.Info{
		&user.DefaultInfo{Name: "john", UID: "1", Groups: []string{"staff"}, Extra: map[string][]string{"pod": {"web"}}},
		&user.DefaultInfo{Name: "jane", UID: "1", Groups: []string{"others"}},
	} {
		g.Expect(r.MayWatch(t.Context(), who, "secrets", "shop", "db")).To(BeTrue())
		g.Expect(s.questions()).To(HaveLen(3+n), "for nobody else")
	}

	s.set(func(s *apiServer) { s.denied = true })
	g.Expect(r.MayWatch(t.Context(), jane, "secrets", "", "")).To(BeFalse(), "a denial is worth more")
	s.set(func(s *apiServer) { s.outage = true })
	_, err := r.MayWatch(t.Context(), jane, "configmaps", "", "")
	g.Expect(err).To(MatchError(HavePrefix("reviewing access: ")))
}

func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	g := NewWithT(t)
	s, config, client := run(t)
	filter, err := access.Filter(config, client)
	g.Expect(err).NotTo(HaveOccurred())
	var log strings.Builder
	logger := funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{Verbosity: 10})
	var seen http.Header
	guarded, err := filter(logger, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header }))
	g.Expect(err).NotTo(HaveOccurred())
	get := func(token string) int {
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		recorder := httptest.NewRecorder()
		guarded.ServeHTTP(recorder, request)
		return recorder.Code
	}
	g.Expect(get("")).To(Equal(http.StatusUnauthorized))
	g.Expect(get("bad")).To(Equal(http.StatusUnauthorized))
	g.Expect(get("good")).To(Equal(http.StatusForbidden))
	g.Expect(s.questions()).To(HaveExactElements(HaveField("NonResourceAttributes",
		Equal(&authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}))))
	s.set(func(s *apiServer) { s.outage = true })
	g.Expect(get("good")).To(Equal(http.StatusInternalServerError))
	g.Expect(get("canary")).To(Equal(http.StatusUnauthorized))
	g.Expect(seen).To(BeNil())

	s.set(func(s *apiServer) { s.outage, s.allowed = false, true })
	g.Expect(get("good")).To(Equal(http.StatusOK))
	g.Expect(seen).NotTo(HaveKey("Authorization"))
	g.Expect(log.String()).To(ContainSubstring("its token could not be authenticated"))
	g.Expect(log.String()).NotTo(Or(ContainSubstring("canary"), ContainSubstring("good")))
}

func TestAnAPIServerThatCantBeNamed(t *testing.T) {
	g := NewWithT(t)
	config := &rest.Config{Host: "http://%"}
	_, err := access.NewReviewer(config, http.DefaultClient)
	g.Expect(err).To(MatchError(HavePrefix("making the client of TokenReviews: ")))
	_, err = access.Filter(config, http.DefaultClient)
	g.Expect(err).To(HaveOccurred())
}
