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

package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// maxNumber is the highest number of a restart that is believed: the highest that every reader of JSON
// takes without loss. No operator gets there, and the numbers after it must not overflow.
const maxNumber = 1 << 53

// Mark is what the restart annotation says: the number of a restart, the digest of the content that it was
// made for, and the time of the request that it was made for, in whole seconds; zero: nobody asked for it.
type Mark struct {
	Number      int64
	Digest      string
	RequestedAt time.Time
}

// String is the value of the annotation, such as 7-0f3a5c7e9b1d2846 or 7-0f3a5c7e9b1d2846-2026-01-02T15:04:05Z.
func (m Mark) String() string {
	value := strconv.FormatInt(m.Number, 10) + "-" + m.Digest
	if !m.RequestedAt.IsZero() {
		value += "-" + m.RequestedAt.UTC().Format(time.RFC3339)
	}
	return value
}

// ParseMark reads the value of a restart annotation. One that the operator can't have written is as
// good as none (E10).
func ParseMark(value string) Mark {
	number, rest, _ := strings.Cut(value, "-")
	digest, requested, isRequested := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	mark := Mark{Number: n, Digest: digest}
	if isRequested {
		at, invalid := time.Parse(time.RFC3339, requested)
		err = cmp.Or(err, invalid)
		mark.RequestedAt = at
	}
	if err != nil || n < 1 || n > maxNumber || digest == "" || mark.String() != value {
		return Mark{}
	}
	return mark
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// restartPatch is a JSON patch that sets one annotation on the pod template and touches nothing else
// (E8). It applies only to the workload, and on top of the mark, that the restart was decided for:
// whoever comes late, because it was stopped in the middle of a pass or is no longer the leader,
// changes nothing (E9).
func restartPatch(w *Workload, name string, mark Mark) ([]byte, error) {
	const annotations = "/spec/template/metadata/annotations"
	key := strings.ReplaceAll(v1alpha1.RestartAnnotationPrefix+name, "/", "~1")
	patch := []operation{{Op: "test", Path: "/metadata/uid", Value: w.UID}}
	before, marked := w.RestartMarks[name]
	switch {
	case marked:
		patch = append(patch,
			operation{Op: "test", Path: annotations + "/" + key, Value: before},
			operation{Op: "replace", Path: annotations + "/" + key, Value: mark.String()})
	case w.TemplateAnnotated:
		patch = append(patch,
			operation{Op: "test", Path: annotations + "/" + key, Value: nil},
			operation{Op: "add", Path: annotations + "/" + key, Value: mark.String()})
	default:
		patch = append(patch,
			operation{Op: "test", Path: annotations, Value: nil},
			operation{Op: "add", Path: annotations, Value: map[string]string{v1alpha1.RestartAnnotationPrefix + name: mark.String()}})
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of %s: %w", w.Ref(), err)
	}
	return data, nil
}
