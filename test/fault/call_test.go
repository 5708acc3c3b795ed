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
	"net/http"
	"slices"
	"strings"

	"github.com/ktechhub/configwatch/internal/hashkey"
)

// call is a request of the manager, as RBAC sees it.
type call struct {
	verb      string
	resource  string // with a slash and the subresource, if there is one
	namespace string
	name      string
}

// String names the class of the call, such as "patch deployments" or "update configwatches/status".
func (c call) String() string {
	if c.resource == "secrets" && c.name == hashkey.SecretName {
		return c.verb + " hash key"
	}
	return c.verb + " " + c.resource
}

// callOf reads a request for a resource; one for something else has no verb.
func callOf(r *http.Request) call {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case segments[0] == "api" && len(segments) > 2:
		segments = segments[2:]
	case segments[0] == "apis" && len(segments) > 3:
		segments = segments[3:]
	default:
		return call{resource: r.URL.Path}
	}
	c := call{}
	if segments[0] == "namespaces" && len(segments) > 2 {
		c.namespace, segments = segments[1], segments[2:]
	}
	c.resource = segments[0]
	if len(segments) > 1 {
		c.name = segments[1]
	}
	if len(segments) > 2 {
		c.resource += "/" + segments[2]
	}
	query := r.URL.Query()
	named := c.name != ""
	if field, name, ok := strings.Cut(query.Get("fieldSelector"), "="); ok && field == "metadata.name" {
		c.name = name
	}
	if c.resource == "secrets" && r.Method == http.MethodPost && slices.Contains(query["fieldManager"], "configwatch") {
		c.name = hashkey.SecretName // the only Secret that the manager creates
	}
	c.verb = verbOf(r.Method, named, query.Get("watch"))
	return c
}

func verbOf(method string, named bool, watch string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	switch {
	case watch == "1" || watch == "true":
		return "watch"
	case named:
		return "get"
	}
	return "list"
}
