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

// Package webhook sends a message to a webhook subscriber: one attempt, and how it went (F6).
//
// A Message is made from a change of the feed or from an event of a rollout, and is written as a CloudEvent,
// signed after Standard Webhooks if there is a key, or as a line for Slack, Microsoft Teams or Google Chat. The
// package promises that an attempt ends in time, that no URL leads to where the operator's place in the cluster
// would give it more than the user has (F7), and that an Outcome says what to check and tells no secret. It
// doesn't know what was delivered before, or when the next attempt is made.
//
// # What it leaves alone
//
// Proxies of the environment are not used: a proxy resolves and dials by itself, so that no address could be
// checked. No connection is kept for a next attempt. A CA bundle takes the place of the system's certificate
// authorities, as in the webhook configurations of Kubernetes. HTTP is 1.1, TLS 1.2 or newer, and certificates are
// always verified.
package webhook
