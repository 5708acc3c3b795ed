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

import "strings"

// chatMessage is the body for Slack and for Google Chat.
type chatMessage struct {
	Text string `json:"text"`
}

// slackMessage escapes the three characters that Slack's mrkdwn has escapes for, which are those of links and
// mentions. Quotes are shown as code, in which nothing else is markup.
// See https://docs.slack.dev/messaging/formatting-message-text.
func slackMessage(t text) chatMessage {
	return chatMessage{Text: t.withCode(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'"))}
}

// googleChatMessage shows quotes as code too. Google Chat has no escapes: the characters that begin and end a link or
// mention, and the backquote, give way to others that look alike.
// See https://developers.google.com/workspace/chat/format-messages.
func googleChatMessage(t text) chatMessage {
	return chatMessage{Text: t.withCode(strings.NewReplacer("<", "‹", ">", "›", "`", "'"))}
}

// withCode writes quotes between backquotes, with the replacements made.
func (t text) withCode(replace *strings.Replacer) string {
	var line strings.Builder
	for _, p := range t {
		if p.quoted {
			line.WriteString("`" + replace.Replace(p.text) + "`")
		} else {
			line.WriteString(p.text)
		}
	}
	return line.String()
}

// teamsMessage is what the trigger "When a Teams webhook request is received" of Workflows takes: see
// https://learn.microsoft.com/connectors/teams/#request-body-schema.
type teamsMessage struct {
	Type        string            `json:"type"`
	Attachments []teamsAttachment `json:"attachments"`
}

type teamsAttachment struct {
	ContentType string       `json:"contentType"`
	ContentURL  *string      `json:"contentUrl"`
	Content     adaptiveCard `json:"content"`
}

type adaptiveCard struct {
	Schema  string          `json:"$schema"`
	Type    string          `json:"type"`
	Version string          `json:"version"`
	Body    []richTextBlock `json:"body"`
}

type richTextBlock struct {
	Type    string    `json:"type"`
	Inlines []textRun `json:"inlines"`
}

type textRun struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	FontType string `json:"fontType,omitempty"`
}

// newTeamsMessage makes an Adaptive Card of one RichTextBlock, which has been there since version 1.2: unlike that of a
// TextBlock, the text of its runs is not Markdown, so that there is nothing to escape.
func newTeamsMessage(t text) teamsMessage {
	block := richTextBlock{Type: "RichTextBlock"}
	for _, p := range t {
		run := textRun{Type: "TextRun", Text: p.text}
		if p.quoted {
			run.FontType = "Monospace"
		}
		block.Inlines = append(block.Inlines, run)
	}
	return teamsMessage{Type: "message", Attachments: []teamsAttachment{{
		ContentType: "application/vnd.microsoft.card.adaptive",
		Content: adaptiveCard{
			Schema:  "http://adaptivecards.io/schemas/adaptive-card.json",
			Type:    "AdaptiveCard",
			Version: "1.2",
			Body:    []richTextBlock{block},
		},
	}}}
}
