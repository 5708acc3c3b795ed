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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/binding/spec"
	"github.com/cloudevents/sdk-go/v2/types"

	"github.com/ktechhub/configwatch/internal/version"
)

// newRequest writes the message for the endpoint. taken is called when the body of the request isn't needed any more. An
// error is for the user, and tells no secret.
func newRequest(ctx context.Context, to Endpoint, m Message, now time.Time, taken func()) (*http.Request, error) {
	header, body, err := m.render(ctx, to.Format)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, newBody(body, taken))
	if err != nil {
		return nil, errors.New("its URL is not valid") // the error has the URL in it
	}
	request.ContentLength = int64(len(body))
	if err := checkURL(request.URL); err != nil {
		return nil, err
	}
	request.Header = header
	header.Set("User-Agent", "configwatch/"+version.Version)
	if err := authorize(header, to.Token); err != nil {
		return nil, err
	}
	if err := sign(header, to.HMACKey, m.ID(), now, body); err != nil {
		return nil, err
	}
	return request, nil
}

// render is the message in a format: its headers and body.
func (m Message) render(ctx context.Context, format Format) (http.Header, []byte, error) {
	if m.event.Context == nil {
		return nil, nil, errors.New("there is no message to send")
	}
	header := http.Header{"Content-Type": {"application/json"}}
	var body any
	switch format {
	case CloudEvents, "":
		err := binding.ToMessage(&m.event).ReadBinary(ctx, cloudEventHeader{header})
		return header, m.event.Data(), err
	case Slack:
		body = slackMessage(m.text)
	case GoogleChat:
		body = googleChatMessage(m.text)
	case MSTeams:
		body = newTeamsMessage(m.text)
	default:
		return nil, nil, fmt.Errorf("its format must be %s, %s, %s or %s", CloudEvents, Slack, MSTeams, GoogleChat)
	}
	encoded, err := json.Marshal(body)
	return header, encoded, err
}

// cloudEventHeader writes attributes as the HTTP binding of CloudEvents 1.0.2 has them in binary mode. The SDK's own
// package for it doesn't encode what a header must not have in it (3.1.3.2).
type cloudEventHeader struct{ http.Header }

func (h cloudEventHeader) SetAttribute(attribute spec.Attribute, value any) error {
	if attribute.Kind() == spec.DataContentType {
		return h.set("Content-Type", value)
	}
	return h.set("Ce-"+attribute.Name(), value)
}

func (h cloudEventHeader) SetExtension(name string, value any) error {
	return h.set("Ce-"+name, value)
}

func (h cloudEventHeader) set(name string, value any) error {
	written, err := types.Format(value)
	if err != nil {
		return fmt.Errorf("writing the attribute %s: %w", name, err)
	}
	h.Set(name, percentEncode(written))
	return nil
}

func (cloudEventHeader) Start(context.Context) error { return nil }
func (cloudEventHeader) SetData(io.Reader) error     { return nil } // the body is written apart
func (cloudEventHeader) End(context.Context) error   { return nil }

// percentEncode writes the characters that are not printable ASCII, the space, " and % as their bytes in UTF-8, and
// those of more as well.
func percentEncode(value string, more ...byte) string {
	var encoded strings.Builder
	for _, b := range []byte(strings.ToValidUTF8(value, "\uFFFD")) {
		if b <= ' ' || b >= 0x7f || b == '"' || b == '%' || bytes.IndexByte(more, b) >= 0 {
			fmt.Fprintf(&encoded, "%%%02X", b)
		} else {
			encoded.WriteByte(b)
		}
	}
	return encoded.String()
}

// authorize adds the bearer token. Secrets that were made from files often have a line break at their end.
func authorize(header http.Header, token []byte) error {
	token = bytes.TrimSpace(token)
	if len(token) == 0 {
		return nil
	}
	if bytes.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("the key token of its Secret must be in printable ASCII without spaces, to be sent in a header")
	}
	header.Set("Authorization", "Bearer "+string(token))
	return nil
}
