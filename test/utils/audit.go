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

package utils

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// AuditLog is the path of the file in which a control plane's API server logs its requests.
type AuditLog string

// Request is a request that the API server has answered, or a watch that it has begun to.
type Request struct {
	// Verb is that of RBAC, such as list, watch or patch.
	Verb string
	// Resource is the plural name, followed by a slash and the subresource if there is one.
	Resource        string
	Group           string
	Namespace, Name string
	// User is the name of whoever asked.
	User string
	// Agent is the name of the program that asked.
	Agent string
	// Code is the HTTP status.
	Code int
	// URI is the path and the query.
	URI string
}

// String is the request for a reader.
func (r Request) String() string {
	return fmt.Sprintf("%s %s (%s) %s/%s: %d", r.Verb, r.Resource, r.Group, r.Namespace, r.Name, r.Code)
}

// Mark is a place in the log: its present end.
func (l AuditLog) Mark() (int64, error) {
	info, err := os.Stat(string(l))
	if err != nil {
		return 0, fmt.Errorf("finding the end of the audit log: %w", err)
	}
	return info.Size(), nil
}

// Since is the requests after a place in the log for which the filter is true.
func (l AuditLog) Since(mark int64, filter func(Request) bool) ([]Request, error) {
	file, err := os.Open(string(l))
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(mark, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	var requests []Request
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF { //nolint:errorlint // a reader returns it as it is; the line that has no end yet is being written
			return requests, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		request, ok, err := parseRequest(line)
		if err != nil {
			return nil, err
		}
		if ok && filter(request) {
			requests = append(requests, request)
		}
	}
}

// parseRequest reads a line. A watch has two, of which the one at its end is left out.
func parseRequest(line []byte) (request Request, ok bool, err error) {
	var event struct {
		Stage, Verb, RequestURI, UserAgent string
		User                               struct{ Username string }
		ObjectRef                          struct{ Resource, Subresource, APIGroup, Namespace, Name string }
		ResponseStatus                     struct{ Code int }
	}
	if err := json.Unmarshal(bytes.TrimSpace(line), &event); err != nil {
		return Request{}, false, fmt.Errorf("reading a line of the audit log: %w", err)
	}
	agent, _, _ := strings.Cut(event.UserAgent, "/")
	request = Request{
		Verb: event.Verb, Resource: event.ObjectRef.Resource, Group: event.ObjectRef.APIGroup,
		Namespace: event.ObjectRef.Namespace, Name: event.ObjectRef.Name,
		User: event.User.Username, Agent: agent, Code: event.ResponseStatus.Code, URI: event.RequestURI,
	}
	if sub := event.ObjectRef.Subresource; sub != "" {
		request.Resource += "/" + sub
	}
	began := event.Stage == "ResponseStarted"
	return request, request.Verb != "watch" && event.Stage == "ResponseComplete" || request.Verb == "watch" && (began || request.Code >= 400), nil
}
