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
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
)

// Types of the CloudEvents that Rollouts become.
const (
	TypeTriggered = "io.ktechhub.configwatch.rollout.triggered.v1"
	TypeCompleted = "io.ktechhub.configwatch.rollout.completed.v1"
	TypeFailed    = "io.ktechhub.configwatch.rollout.failed.v1"
)

// Message is what is told, in the form for programs and in that for people. It is the same at each attempt, and
// safe for concurrent use. Its zero value is no message.
type Message struct {
	event event.Event
	// text never has data of a source in it: it is made from names.
	text text
	// taken is called by Deliver, unless it is nil.
	taken func()
}

// WhenTaken is the message with a function that Deliver calls once, as soon as it has no more need of the message. Most
// often that is before the endpoint answers.
func (m Message) WhenTaken(call func()) Message {
	m.taken = call
	return m
}

// ID is by which a message that comes twice is known: that of the CloudEvent.
func (m Message) ID() string {
	return m.event.ID()
}

// Size is how many bytes its data has.
func (m Message) Size() int {
	return len(m.event.Data())
}

// ConfigMapData is the content of a ConfigMap, for those who asked for it.
type ConfigMapData = feed.Content

// FromChange makes the message of a change, with the envelope that the feed gives it. data is added to the
// CloudEvent as data and binaryData, unless it is nil; chats never get it. The hash in the change should be that of
// the data.
//
// A mark is no message, and data of anything but a ConfigMap is refused: both are an error.
func FromChange(c feed.Change, data *ConfigMapData) (Message, error) {
	if c.IsMark() {
		return Message{}, fmt.Errorf("a %s is about no source", c.Type)
	}
	e, err := c.CloudEvent()
	if err != nil {
		return Message{}, err
	}
	if data != nil {
		err = addData(&e, c, *data)
	}
	if err != nil {
		return Message{}, fmt.Errorf("adding the data of %s %s/%s: %w", c.Kind, c.Namespace, c.Name, err)
	}
	return Message{event: e, text: changeText(c)}, nil
}

func addData(e *event.Event, c feed.Change, data ConfigMapData) error {
	if c.Kind != v1alpha1.ConfigMap {
		return errors.New("only that of a ConfigMap is ever sent")
	}
	return data.AddTo(e)
}

// RolloutEvent says what a Rollout is; the values are those of spec.subscribers[].events.
type RolloutEvent string

const (
	// RestartTriggered: the target was restarted.
	RestartTriggered RolloutEvent = "RestartTriggered"
	// RolloutCompleted: every pod of the target is of the restart, and available.
	RolloutCompleted RolloutEvent = "RolloutCompleted"
	// RolloutFailed: the rollout was given up.
	RolloutFailed RolloutEvent = "RolloutFailed"
)

// Rollout is an event of one restart of one target. As JSON it is the data of its CloudEvent.
type Rollout struct {
	Event RolloutEvent `json:"event"`
	// Namespace is that of the ConfigWatch and of the target.
	Namespace string `json:"namespace"`
	// ConfigWatch is the name of the one that restarted the target.
	ConfigWatch string `json:"configWatch"`
	// UID is that of the ConfigWatch.
	UID    types.UID `json:"-"`
	Target Target    `json:"target"`
	// Restart is the number of the restart, as in the mark on the pod template.
	Restart int64 `json:"restart"`
	// Cause says why it was restarted, such as "ConfigMap app-config changed (LOG_LEVEL)". It has no values in it.
	Cause string `json:"cause,omitempty"`
	// Outcome says how the rollout ended, such as why it failed.
	Outcome string    `json:"outcome,omitempty"`
	Time    time.Time `json:"-"`
}

// Target is the workload that was restarted.
type Target struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"-"`
}

// FromRollout makes the message of a rollout's event. Its CloudEvent's source is such as
// /namespaces/shop/configwatches/web, its subject such as Deployment/web, and its id
// <uid of the ConfigWatch>/<uid of the target>/<number of the restart>/triggered, or completed, or failed.
//
// An event of another kind, or without one of the UIDs, is an error.
func FromRollout(r Rollout) (Message, error) {
	e := event.New()
	eventType, step := r.cloudEventType()
	e.SetType(eventType)
	e.SetSource("/namespaces/" + r.Namespace + "/configwatches/" + r.ConfigWatch)
	e.SetSubject(r.Target.Kind + "/" + r.Target.Name)
	e.SetTime(r.Time)
	if r.UID != "" && r.Target.UID != "" {
		e.SetID(strings.Join([]string{string(r.UID), string(r.Target.UID), strconv.FormatInt(r.Restart, 10), step}, "/"))
	}
	err := e.SetData(event.ApplicationJSON, r)
	if err == nil {
		err = e.Validate()
	}
	if err != nil {
		return Message{}, fmt.Errorf("making a CloudEvent of a rollout of %s %s/%s: %w",
			r.Target.Kind, r.Namespace, r.Target.Name, err)
	}
	return Message{event: e, text: rolloutText(r)}, nil
}

func (r Rollout) cloudEventType() (eventType, step string) {
	switch r.Event {
	case RestartTriggered:
		return TypeTriggered, "triggered"
	case RolloutCompleted:
		return TypeCompleted, "completed"
	case RolloutFailed:
		return TypeFailed, "failed"
	default:
		return "", ""
	}
}
