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

package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ktechhub/configwatch/internal/feed"
)

// framesKept is how many bytes of frames are kept for clients that want them a little later.
const framesKept = 2 << 20

// frame is an event as it is sent: lines of Server-Sent Events, and an empty one. It is shared and must not be
// changed. The id, which differs from client to client, is not in it.
type frame []byte

// newFrame is an event under a name. Its JSON has no line breaks.
func newFrame(name feed.EventType, e event.Event) (frame, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding a CloudEvent: %w", err)
	}
	var f bytes.Buffer
	f.WriteString("event: " + string(name) + "\ndata: ")
	f.Write(data)
	f.WriteString("\n\n")
	return f.Bytes(), nil
}

// frames makes frames of changes, each once, however many clients get it.
type frames struct {
	mu    sync.Mutex
	known map[frameKey]frame
	order []frameKey // oldest first
	size  int
}

// frameKey tells changes apart: an object becomes each version once, which is Added to some and Modified for
// others.
type frameKey struct {
	uid     types.UID
	version string
	event   feed.EventType
}

func keyOf(c *feed.Change) frameKey {
	return frameKey{uid: c.UID, version: c.ResourceVersion, event: c.Type}
}

func newFrames() *frames {
	return &frames{known: map[frameKey]frame{}}
}

// of is the frame of a change of a source.
func (f *frames) of(c *feed.Change) (frame, error) {
	if c.Initial {
		return encode(c)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := keyOf(c)
	if known, ok := f.known[key]; ok {
		return known, nil
	}
	made, err := encode(c)
	if err == nil {
		f.keep(key, made)
	}
	return made, err
}

func (f *frames) keep(key frameKey, made frame) {
	f.known[key] = made
	f.order = append(f.order, key)
	f.size += len(made)
	for f.size > framesKept {
		f.size -= len(f.known[f.order[0]])
		delete(f.known, f.order[0])
		f.order = f.order[1:]
	}
}

func encode(c *feed.Change) (frame, error) {
	e, err := c.CloudEvent()
	if err != nil {
		return nil, err
	}
	return newFrame(c.Type, e)
}
