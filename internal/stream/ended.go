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
	"fmt"
	"strconv"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/internal/feed"
)

const (
	// Ended is the last event of a stream that the server ends, and says why.
	Ended feed.EventType = "Ended"
	// TypeEnded is the type of its CloudEvent, whose data is an EndedData.
	TypeEnded = "io.ktechhub.configwatch.feed.ended.v1"
)

// EndedData is the data of the CloudEvent of Ended, as JSON.
type EndedData struct {
	Event feed.EventType `json:"event"`
	// Reason is Unauthorized, Forbidden or ServiceUnavailable.
	Reason metav1.StatusReason `json:"reason"`
	// Message is a sentence for people.
	Message string `json:"message"`
}

// farewell is the last frame of a stream. The client is asked to connect again after a while.
func farewell(mark feed.Change, because *refusal, after time.Duration) (frame, error) {
	e, err := ended(mark, because)
	if err != nil {
		return nil, fmt.Errorf("making the event of the end: %w", err)
	}
	f, err := newFrame(Ended, e)
	if err != nil {
		return nil, err
	}
	return append(retry(after), f...), nil
}

// ended has the time and the source of a mark of the feed.
func ended(mark feed.Change, because *refusal) (event.Event, error) {
	e, err := mark.CloudEvent()
	if err != nil {
		return e, err
	}
	e.SetType(TypeEnded)
	e.SetID("ended/" + mark.Time.UTC().Format(time.RFC3339Nano))
	data := EndedData{Event: Ended, Reason: because.Reason, Message: because.Message}
	return e, e.SetData(event.ApplicationJSON, data)
}

// retry is the line that says after how long to connect again.
func retry(after time.Duration) []byte {
	return []byte("retry: " + strconv.FormatInt(after.Milliseconds(), 10) + "\n")
}
