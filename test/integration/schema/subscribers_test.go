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

package schema

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

const (
	badSubscriberName = "not a valid name: use lower case letters, digits and '-', with a letter or digit first and last"

	notAnURL   = "not an address: write https://host/path, or http://name.namespace.svc/path for a Service of the cluster"
	noUserInfo = "no user name or password in an address: put a token into a Secret and name it in secretRef"
	httpsOnly  = "http is for Services of the cluster only, name.namespace.svc or name.namespace.svc.cluster.local: use https"
	needsData  = "spec.subscribers: Invalid value: payload: Data needs a ConfigMap among the sources, " +
		"as the data of Secrets is never sent: list one, or use payload: Keys"
	onlyCloudEvents = "spec.subscribers: Invalid value: payload: Data is for format: CloudEvents only: chat messages name the changed keys"
	noAddress       = "spec.subscribers[0].webhook: Invalid value: a webhook needs an address: write it into url, or, if it is a secret, " +
		"into the key url of a Secret, and name that in secretRef"
	ofEvent = `supported values: "Added", "Modified", "Deleted", "RestartTriggered", "RolloutCompleted", "RolloutFailed"`
)

// subscribed is a spec with a subscriber, in YAML, who has a name and a webhook unless the manifest says otherwise.
func subscribed(manifest string) string {
	return web + "\nsubscribers: [" + manifest + "]"
}

// to is one whose webhook has that URL.
func to(url string) string {
	return subscribed(fmt.Sprintf("{name: cache, webhook: {url: %q}}", url))
}

// invalid is what is said of a field of the first subscriber.
func invalid(field, value, message string) string {
	return fmt.Sprintf("spec.subscribers[0].%s: Invalid value: %q: %s", field, value, message)
}

var _ = DescribeTable("A spec.subscribers is refused, and told what to write instead, when",
	func(ctx SpecContext, spec string, messages ...string) {
		Expect(complaints(create(ctx, withSpec("bad", spec)))).To(ConsistOf(messages))
	},

	Entry("a subscriber is empty", subscribed(`{}`), "spec.subscribers[0].name: Required value", "spec.subscribers[0].webhook: Required value"),
	Entry("a webhook is empty", subscribed(`{name: cache, webhook: {}}`), noAddress),
	Entry("a webhook says how, and not where to", subscribed(`{name: cache, webhook: {format: Slack}}`), noAddress),
	Entry("two have the same name",
		subscribed(`{name: cache, webhook: {url: "https://example.com"}}, {name: cache, webhook: {url: "https://example.org"}}`),
		`spec.subscribers[1]: Duplicate value: {"name":"cache"}`),
	Entry("there are 17", subscribed(repeat(17, `{name: "cache-%d", webhook: {url: "https://example.com"}}`)),
		"spec.subscribers: Too many: 17: must have at most 16 items"),

	Entry("the name has a dot", subscribed(`{name: my.cache, webhook: {url: "https://example.com"}}`),
		invalid("name", "my.cache", badSubscriberName)),
	Entry("the name has an upper case letter", subscribed(`{name: Cache, webhook: {url: "https://example.com"}}`),
		invalid("name", "Cache", badSubscriberName)),
	Entry("the name is the empty string", subscribed(`{name: "", webhook: {url: "https://example.com"}}`),
		`spec.subscribers[0].name: Invalid value: "": spec.subscribers[0].name in body should be at least 1 chars long`),
	Entry("the name has 64 characters", subscribed(`{name: `+strings.Repeat("a", 64)+`, webhook: {url: "https://example.com"}}`),
		"spec.subscribers[0].name: Too long: may not be more than 63 bytes"),

	Entry("it wants no events", subscribed(`{name: cache, events: [], webhook: {url: "https://example.com"}}`),
		`spec.subscribers[0].events: Invalid value: 0: spec.subscribers[0].events in body should have at least 1 items`),
	Entry("it wants an unknown event", subscribed(`{name: cache, events: [Updated], webhook: {url: "https://example.com"}}`),
		`spec.subscribers[0].events[0]: Unsupported value: "Updated": `+ofEvent),
	Entry("it wants an event twice", subscribed(`{name: cache, events: [Added, Added], webhook: {url: "https://example.com"}}`),
		`spec.subscribers[0].events[1]: Duplicate value: "Added"`),

	Entry("the URL is the empty string", to(""),
		`spec.subscribers[0].webhook.url: Invalid value: "": spec.subscribers[0].webhook.url in body should be at least 1 chars long`),
	Entry("the URL is a host", to("example.com"), invalid("webhook.url", "example.com", notAnURL)),
	Entry("the URL is a path", to("/hook"), invalid("webhook.url", "/hook", notAnURL)),
	Entry("the URL has no host", to("https:///hook"), invalid("webhook.url", "https:///hook", notAnURL)),
	Entry("the URL has a port and no host", to("https://:8443/hook"), invalid("webhook.url", "https://:8443/hook", notAnURL)),
	Entry("the URL has another scheme", to("ftp://example.com/hook"), invalid("webhook.url", "ftp://example.com/hook", notAnURL)),
	Entry("the URL is a file", to("file:///etc/passwd"), invalid("webhook.url", "file:///etc/passwd", notAnURL)),
	Entry("the URL has a space", to("https://example.com /hook"), invalid("webhook.url", "https://example.com /hook", notAnURL)),
	Entry("the URL has user info", to("https://me:secret@example.com/hook"), invalid("webhook.url", "https://me:secret@example.com/hook", noUserInfo)),
	Entry("the URL has a user name", to("https://token@example.com"), invalid("webhook.url", "https://token@example.com", noUserInfo)),
	Entry("the URL is http, to a host elsewhere", to("http://example.com/hook"), invalid("webhook.url", "http://example.com/hook", httpsOnly)),
	Entry("the URL is http, to an address", to("http://10.0.0.7/hook"), invalid("webhook.url", "http://10.0.0.7/hook", httpsOnly)),
	Entry("the URL is http, to a name that only looks like a Service", to("http://cache.shop.svc.example.com/"), invalid("webhook.url", "http://cache.shop.svc.example.com/", httpsOnly)),
	Entry("the URL is http, to the name of a Service alone", to("http://cache/"), invalid("webhook.url", "http://cache/", httpsOnly)),
	Entry("the URL has 2049 characters", to("https://example.com/"+strings.Repeat("a", 2049-20)),
		"spec.subscribers[0].webhook.url: Too long: may not be more than 2048 bytes"),

	Entry("the format is unknown", subscribed(`{name: cache, webhook: {url: "https://example.com", format: Discord}}`),
		`spec.subscribers[0].webhook.format: Unsupported value: "Discord": supported values: "CloudEvents", "Slack", "MSTeams", "GoogleChat"`),
	Entry("the payload is unknown", subscribed(`{name: cache, webhook: {url: "https://example.com", payload: Values}}`),
		`spec.subscribers[0].webhook.payload: Unsupported value: "Values": supported values: "Keys", "Data"`),
	Entry("data is asked for of Secrets alone", `sources: [{kind: Secret, name: credentials}]
subscribers: [{name: cache, webhook: {url: "https://example.com", payload: Data}}]`, needsData),
	Entry("data is asked for in a chat", subscribed(`{name: cache, webhook: {url: "https://example.com", format: Slack, payload: Data}}`),
		onlyCloudEvents),

	Entry("secretRef is empty", subscribed(`{name: cache, webhook: {url: "https://example.com", secretRef: {}}}`),
		"spec.subscribers[0].webhook.secretRef.name: Required value"),
	Entry("secretRef is not a name", subscribed(`{name: cache, webhook: {url: "https://example.com", secretRef: {name: Hook_Auth}}}`),
		invalid("webhook.secretRef.name", "Hook_Auth", badName)),
)

var _ = DescribeTable("A spec.subscribers is taken with",
	func(ctx SpecContext, spec string) {
		Expect(create(ctx, withSpec("good", spec))).To(Succeed())
	},

	Entry("https to a host", to("https://example.com")),
	Entry("https to an address and a port", to("https://10.0.0.7:8443/hook?key=value#part")),
	Entry("https to an IPv6 address", to("https://[fd00::7]:8443/hook")),
	Entry("https and an @ in the path", to("https://example.com/@me")),
	Entry("http to a Service", to("http://cache.shop.svc/hook")),
	Entry("http to a Service by its long name and a port", to("http://cache.shop.svc.cluster.local:8080/hook")),
	Entry("a URL of 2048 characters", to("https://example.com/"+strings.Repeat("a", 2048-20))),
	Entry("the URL in a Secret", subscribed(`{name: chat, webhook: {format: Slack, secretRef: {name: chat}}}`)),
	Entry("16 of them, each with everything", subscribed(repeat(16, `{name: "cache-%d",
  events: [Added, Modified, Deleted, RestartTriggered, RolloutCompleted, RolloutFailed],
  webhook: {url: "https://example.com", format: CloudEvents, payload: Data, secretRef: {name: hook-auth}}}`))),
	Entry("data of whatever the targets reference", subscribed(`{name: cache, webhook: {url: "https://example.com", payload: Data}}`)),
	Entry("data of one ConfigMap among Secrets", `sources: [{kind: Secret, name: credentials}, {kind: ConfigMap, name: app-config}]
subscribers: [{name: cache, webhook: {url: "https://example.com", payload: Data}}]`),
)

var _ = Describe("A subscriber", func() {
	It("gets defaults", func(ctx SpecContext) {
		Expect(create(ctx, withSpec("web", to("https://example.com")))).To(Succeed())
		Expect(get(ctx, "web").Spec.Subscribers).To(Equal([]v1alpha1.Subscriber{{
			Name: "cache", Events: []v1alpha1.SubscriberEvent{"Added", "Modified", "Deleted"},
			Webhook: v1alpha1.Webhook{URL: "https://example.com", Format: v1alpha1.FormatCloudEvents, Payload: v1alpha1.PayloadKeys},
		}}))
	})

	It("has a row with all that is recorded, at its limits", func(ctx SpecContext) {
		Expect(create(ctx, withSpec("web", to("https://example.com")))).To(Succeed())
		watch := get(ctx, "web")
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		name := strings.Repeat("a", 253)
		watch.Status = upToDate()
		watch.Status.Subscribers = []v1alpha1.SubscriberStatus{{
			Name: "cache", LastDeliveryTime: &now, Failures: 7, Refusals: 5, NextAttemptTime: &now,
			Message: strings.Repeat("a", 1000), Dropped: 3,
			Sources: []v1alpha1.DeliveredSource{{Kind: v1alpha1.Secret, Name: name, DeliveredHash: "1.k:0123456789abcdef", Absent: true}},
			Waiting: []v1alpha1.WaitingEvent{{
				ID: strings.Repeat("a", 256), Event: v1alpha1.SubscriberModified, Kind: "ConfigMap", Name: name, Hash: "1:0123456789abcdef",
				ChangedKeys: []string{name}, Time: now,
			}, {
				ID: "b", Event: v1alpha1.SubscriberRolloutFailed, Kind: "Deployment", Name: "web", Message: strings.Repeat("a", 400), Time: now,
			}},
		}}
		want := watch.Status.DeepCopy()
		Expect(k8sClient.Status().Update(ctx, watch)).To(Succeed())
		Expect(get(ctx, "web").Status).To(Equal(*want))
	})
})
