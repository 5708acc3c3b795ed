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

package webhook

import (
	"bytes"
	"io"
	"sync"
)

// body is that of a request. It is dropped when it has been sent, as an answer may take long to come.
type body struct {
	mu    sync.Mutex // an http.Transport may still read when it has returned
	left  *bytes.Reader
	taken func() // nil once it was called
}

func newBody(text []byte, taken func()) *body {
	return &body{left: bytes.NewReader(text), taken: taken}
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.left.Read(into)
	if err == io.EOF {
		b.drop()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop()
	return nil
}

func (b *body) drop() {
	b.left.Reset(nil)
	if b.taken != nil {
		b.taken()
		b.taken = nil
	}
}
