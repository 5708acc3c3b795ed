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

package changes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// longestLine is how long a line may be: a ConfigMap of 1 MiB takes several times as much as JSON.
const longestLine = 16 << 20

// errUnreadable tells that the stream can't be understood. It can't be resumed, as the same would come again.
var errUnreadable = errors.New("the stream can't be read")

// frame is what comes between two empty lines of Server-Sent Events.
type frame struct {
	event, data string
	// id is what to resume after, if hasID; empty: from there on it can't be resumed.
	id    string
	hasID bool
	// retry is how long to wait before connecting again; 0 if it isn't said.
	retry time.Duration
}

// frames reads Server-Sent Events: https://html.spec.whatwg.org/multipage/server-sent-events.html.
type frames struct {
	lines *bufio.Scanner
	// heard is called for each line: also for heartbeats, which are comments.
	heard func()
}

func newFrames(body io.Reader, heard func()) *frames {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, longestLine)
	return &frames{lines: lines, heard: heard}
}

// next is the next frame. One that is broken off is dropped: it comes again.
func (r *frames) next() (frame, error) {
	var f frame
	for r.lines.Scan() {
		r.heard()
		line := r.lines.Text()
		if line == "" {
			f.data = strings.TrimSuffix(f.data, "\n")
			return f, nil
		}
		f.take(line)
	}
	switch err := r.lines.Err(); {
	case err == nil:
		return f, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return f, fmt.Errorf("%w: %w", errUnreadable, err)
	default:
		return f, err
	}
}

func (f *frame) take(line string) {
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "event":
		f.event = value
	case "data":
		f.data += value + "\n"
	case "id":
		f.id, f.hasID = value, true
	case "retry":
		if milliseconds, err := strconv.ParseUint(value, 10, 31); err == nil {
			f.retry = time.Duration(milliseconds) * time.Millisecond
		}
	}
}
