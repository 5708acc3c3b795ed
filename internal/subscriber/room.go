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

package subscriber

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/ktechhub/configwatch/internal/feed"
)

const (
	// largeRoom is how many bytes large messages may have that are on their way at once. A ConfigMap of 1 MiB is up to
	// twice as much in one. Endpoints that take none in may keep them waiting for ten seconds each.
	largeRoom = 16 << 20
	// mostRetried is how many large messages may be on their way at once that are told again: those of endpoints that
	// have failed are a part of the room only, and keep none of the others waiting (F6).
	mostRetried = 4
	// mostMade is how many large messages are made at once, each of which takes several times its size.
	mostMade = 4
	// smallLabels is how many bytes of labels are small. Names of keys are few.
	smallLabels = 16 << 10
)

// room bounds the memory that large messages take: those with data, or with labels as large. The others are small, and
// never wait for it.
type room struct {
	retried *semaphore.Weighted
	making  *semaphore.Weighted
	bytes   *semaphore.Weighted
}

func newRoom() *room {
	return &room{
		retried: semaphore.NewWeighted(mostRetried),
		making:  semaphore.NewWeighted(mostMade),
		bytes:   semaphore.NewWeighted(largeRoom),
	}
}

// take waits until there is room, writes a message, which says how large it is, and keeps as much until it was sent.
func (r *room) take(ctx context.Context, retry bool, write func() (size int, err error)) (sent func(), err error) {
	if !retry {
		return r.takeNew(ctx, write)
	}
	if err := r.retried.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	leave, err := r.takeNew(ctx, write)
	if err != nil {
		r.retried.Release(1)
		return nil, err
	}
	return func() {
		leave()
		r.retried.Release(1)
	}, nil
}

func (r *room) takeNew(ctx context.Context, write func() (size int, err error)) (sent func(), err error) {
	if err := r.making.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer r.making.Release(1)
	size, err := write()
	if err != nil {
		return nil, err
	}
	taken := int64(min(size, largeRoom))
	if err := r.bytes.Acquire(ctx, taken); err != nil {
		return nil, err
	}
	return func() { r.bytes.Release(taken) }, nil
}

func labelSize(change feed.Change) int {
	size := 0
	for name, value := range change.Labels {
		size += len(name) + len(value)
	}
	return size
}
