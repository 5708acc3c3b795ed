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

package feed

import (
	"fmt"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
)

// Types of the CloudEvents that Changes become.
const (
	TypeAdded    = "io.ktechhub.configwatch.source.added.v1"
	TypeModified = "io.ktechhub.configwatch.source.modified.v1"
	TypeDeleted  = "io.ktechhub.configwatch.source.deleted.v1"
	TypeGap      = "io.ktechhub.configwatch.feed.gap.v1"
	TypeSynced   = "io.ktechhub.configwatch.feed.synced.v1"
)

// Data is the data of a CloudEvent, as JSON. Each field is that of the Change.
type Data struct {
	Event        EventType           `json:"event"`
	Namespace    string              `json:"namespace,omitempty"`
	Kind         v1alpha1.SourceKind `json:"kind,omitempty"`
	Name         string              `json:"name,omitempty"`
	Labels       map[string]string   `json:"labels,omitempty"`
	Hash         digest.Hash         `json:"hash,omitempty"`
	PreviousHash digest.Hash         `json:"previousHash,omitempty"`
	ChangedKeys  []string            `json:"changedKeys,omitempty"`
	Initial      bool                `json:"initial,omitempty"`
	Lost         int                 `json:"lost,omitempty"`
}

// Content is that of a ConfigMap, for those who asked for it.
type Content struct {
	Data map[string]string `json:"data"`
	// BinaryData is base64 in JSON.
	BinaryData map[string][]byte `json:"binaryData,omitempty"`
}

// DataWithContent is the data of a CloudEvent to which the content of a ConfigMap was added, as JSON.
type DataWithContent struct {
	Data
	Content
}

// AddTo adds the content to the data of a change's CloudEvent. There is data in it then, even if that is empty.
func (c Content) AddTo(e *event.Event) error {
	if c.Data == nil {
		c.Data = map[string]string{}
	}
	whole := DataWithContent{Content: c}
	err := e.DataAs(&whole.Data)
	if err == nil {
		err = e.SetData(event.ApplicationJSON, whole)
	}
	if err != nil {
		return fmt.Errorf("adding content to a CloudEvent: %w", err)
	}
	return nil
}

// CloudEvent is the change as CloudEvents 1.0 has it. Its source is the object's path in the API, such as
// /namespaces/shop/configmaps/app-config, and its subject is such as ConfigMap/app-config. A mark has the
// path of what its subscription is about, and no subject.
func (c Change) CloudEvent() (event.Event, error) {
	e := event.New()
	e.SetID(c.ID())
	e.SetType(c.cloudEventType())
	e.SetSource(c.path())
	e.SetTime(c.Time)
	if !c.IsMark() {
		e.SetSubject(string(c.Kind) + "/" + c.Name)
	}
	err := e.SetData(event.ApplicationJSON, Data{
		Event:        c.Type,
		Namespace:    c.Namespace,
		Kind:         c.Kind,
		Name:         c.Name,
		Labels:       c.Labels,
		Hash:         c.Hash,
		PreviousHash: c.PreviousHash,
		ChangedKeys:  c.ChangedKeys,
		Initial:      c.Initial,
		Lost:         c.Lost,
	})
	if err == nil {
		err = e.Validate()
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("making a CloudEvent of %s %s/%s: %w", c.Kind, c.Namespace, c.Name, err)
	}
	return e, nil
}

// ParseChange reads a change from its CloudEvent. It fails if that is another event.
func ParseChange(e event.Event) (Change, error) {
	var data Data
	if err := e.DataAs(&data); err != nil {
		return Change{}, fmt.Errorf("reading the data of a CloudEvent: %w", err)
	}
	c := Change{
		Type:         data.Event,
		Namespace:    data.Namespace,
		Kind:         data.Kind,
		Name:         data.Name,
		Labels:       data.Labels,
		Hash:         data.Hash,
		PreviousHash: data.PreviousHash,
		ChangedKeys:  data.ChangedKeys,
		Time:         e.Time(),
		Initial:      data.Initial,
		Lost:         data.Lost,
	}
	if c.cloudEventType() == "" || c.cloudEventType() != e.Type() {
		return Change{}, fmt.Errorf("a CloudEvent of the type %s is no change", e.Type())
	}
	if c.IsMark() {
		return c, nil
	}
	uid, version, _ := strings.Cut(e.ID(), "/")
	c.UID = types.UID(uid)
	if version != unknownVersion {
		c.ResourceVersion = version
	}
	return c, nil
}

// unknownVersion stands for the version of a deletion that no watch saw.
const unknownVersion = "deleted"

// ID is <uid>/<resourceVersion>, by which an event that comes twice is known. As an object is gone once
// only, <uid>/deleted stands for a deletion whose version is not known. Marks have their type and time.
func (c Change) ID() string {
	switch {
	case c.IsMark():
		return strings.ToLower(string(c.Type)) + "/" + c.Time.UTC().Format(time.RFC3339Nano)
	case c.ResourceVersion == "":
		return string(c.UID) + "/" + unknownVersion
	default:
		return string(c.UID) + "/" + c.ResourceVersion
	}
}

// IsMark tells that the change is not about a source: a Gap, or Synced.
func (c Change) IsMark() bool {
	return c.Type == Gap || c.Type == Synced
}

func (c Change) cloudEventType() string {
	switch c.Type {
	case Added:
		return TypeAdded
	case Modified:
		return TypeModified
	case Deleted:
		return TypeDeleted
	case Gap:
		return TypeGap
	case Synced:
		return TypeSynced
	default:
		return ""
	}
}

func (c Change) path() string {
	var path strings.Builder
	if c.Namespace != "" {
		path.WriteString("/namespaces/" + c.Namespace)
	}
	if c.Kind != "" {
		path.WriteString("/" + strings.ToLower(string(c.Kind)) + "s")
	}
	if c.Name != "" {
		path.WriteString("/" + c.Name)
	}
	if path.Len() == 0 {
		return "/"
	}
	return path.String()
}
