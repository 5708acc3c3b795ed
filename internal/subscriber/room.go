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
	// twice as much in one, and endpoints may keep them waiting for ten seconds each.
	largeRoom = 16 << 20
	// mostMade is how many large messages are made at once, each of which takes several times its size.
	mostMade = 4
	// smallLabels is how many bytes of labels are small. Names of keys are few.
	smallLabels = 16 << 10
)

// room bounds the memory that large messages take: those with data, or with labels as large. The others are small, and
// never wait for it.
type room struct {
	making *semaphore.Weighted
	bytes  *semaphore.Weighted
}

func newRoom() *room {
	return &room{making: semaphore.NewWeighted(mostMade), bytes: semaphore.NewWeighted(largeRoom)}
}

// take waits until there is room, writes a message, which says how large it is, and keeps as much until it was sent.
func (r *room) take(ctx context.Context, write func() (size int, err error)) (sent func(), err error) {
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
