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

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Mode says what the operator does about a change.
// +kubebuilder:validation:Enum=Active;DryRun;Suspended;Observe
type Mode string

const (
	// ModeActive restarts targets. The default.
	ModeActive Mode = "Active"
	// ModeDryRun decides and reports everything, and patches nothing.
	ModeDryRun Mode = "DryRun"
	// ModeSuspended observes and reports, and acts on what is still stale once it is Active again.
	ModeSuspended Mode = "Suspended"
	// ModeObserve has no targets: sources are watched, subscribers are told, and nothing is ever restarted.
	ModeObserve Mode = "Observe"
)

// SourceKind is the kind of a source.
// +kubebuilder:validation:Enum=ConfigMap;Secret
type SourceKind string

const (
	// ConfigMap is the kind of a source whose data and binaryData count.
	ConfigMap SourceKind = "ConfigMap"
	// Secret is the kind of a source whose data counts.
	Secret SourceKind = "Secret"
)

// Change is a transition of a source, as a target sees it.
// +kubebuilder:validation:Enum=Added;Modified;Deleted
type Change string

const (
	// Added: the source was absent and is present.
	Added Change = "Added"
	// Modified: the content differs.
	Modified Change = "Modified"
	// Deleted: the source was present and is absent.
	Deleted Change = "Deleted"
)

// Follow says which sources restart a target.
// +kubebuilder:validation:Enum=Declared;Referenced
type Follow string

const (
	// FollowDeclared: every source that the spec lists.
	FollowDeclared Follow = "Declared"
	// FollowReferenced: only those that the target's pod template references.
	FollowReferenced Follow = "Referenced"
)

// ConfigWatchSpec declares what is watched and what is restarted.
//
// +kubebuilder:validation:XValidation:rule="(has(self.sources) && size(self.sources) > 0) || (has(self.targets) && size(self.targets) > 0)",message="nothing to do: list the ConfigMaps and Secrets to watch in sources, or the workloads to restart in targets, or both"
// +kubebuilder:validation:XValidation:rule="(has(self.sources) && size(self.sources) > 0) || !has(self.targets) || self.targets.all(t, !has(t.follow) || t.follow != 'Declared')",fieldPath=".targets",message="follow: Declared needs sources: list them in spec.sources, or remove follow to use whatever the pod template references"
// +kubebuilder:validation:XValidation:rule="!has(self.subscribers) || self.subscribers.all(s, !has(s.webhook.payload) || s.webhook.payload != 'Data') || !has(self.sources) || size(self.sources) == 0 || self.sources.exists(x, x.kind == 'ConfigMap')",fieldPath=".subscribers",message="payload: Data needs a ConfigMap among the sources, as the data of Secrets is never sent: list one, or use payload: Keys"
// +kubebuilder:validation:XValidation:rule="!has(self.subscribers) || self.subscribers.all(s, !has(s.webhook.payload) || s.webhook.payload != 'Data' || !has(s.webhook.format) || s.webhook.format == 'CloudEvents')",fieldPath=".subscribers",message="payload: Data is for format: CloudEvents only: chat messages name the changed keys"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Observe' || (has(self.sources) && size(self.sources) > 0)",fieldPath=".sources",message="mode: Observe needs sources, as it has no targets to find them by: list the ConfigMaps and Secrets to watch"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Observe' || !has(self.targets) || size(self.targets) == 0",fieldPath=".targets",message="mode: Observe restarts nothing: remove targets, or use mode: Suspended to hold restarts for a while"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Observe' || !has(self.rollout) || (self.rollout.settleSeconds == 2 && self.rollout.cooldownSeconds == 0 && self.rollout.maxConcurrent == 10 && self.rollout.onFailure == 'Halt' && self.rollout.progressDeadlineSeconds == 600 && self.rollout.approval == 'Automatic' && (!has(self.rollout.windows) || size(self.rollout.windows) == 0))",fieldPath=".rollout",message="mode: Observe restarts nothing: remove rollout, or use mode: Suspended to hold restarts for a while"
type ConfigWatchSpec struct {
	// mode says what the operator does about a change: Active (the default) restarts targets,
	// DryRun only reports what it would do, Suspended waits and acts on what is still stale once
	// it is Active again, Observe has no targets and only tells subscribers. In the first three no
	// change is lost; a mode that follows Observe begins with what is there then.
	// +optional
	// +default="Active"
	Mode Mode `json:"mode,omitempty"`

	// sources are the ConfigMaps and Secrets that are watched, in this ConfigWatch's namespace;
	// at most 64. Omitted: whatever the pod template of each target references. A source that
	// several entries match is governed by the first of them. No name may be listed twice.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.kind == a.kind && b.name == a.name))",message="a source is listed twice: list it once, with all of its keys and restartOn",messageExpression="self.map(a, has(a.name) && !self.exists_one(b, has(b.name) && b.kind == a.kind && b.name == a.name), a.kind + ' ' + a.name)[0] + ' is listed twice: list it once, with all of its keys and restartOn'"
	Sources []SourceSelector `json:"sources,omitempty"`

	// targets are the workloads that are restarted, in this ConfigWatch's namespace; at most 64.
	// Omitted: every Deployment, StatefulSet, DaemonSet and CronJob of the namespace whose pod
	// template references a source; in mode Observe, none. A workload that several entries match is
	// governed by the first of them. No name may be listed twice.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.kind == a.kind && b.name == a.name))",message="a target is listed twice: list it once",messageExpression="self.map(a, has(a.name) && !self.exists_one(b, has(b.name) && b.kind == a.kind && b.name == a.name), a.kind + ' ' + a.name)[0] + ' is listed twice: list it once'"
	Targets []TargetSelector `json:"targets,omitempty"`

	// rollout says when and in which steps targets are restarted.
	// +optional
	// +default={}
	Rollout RolloutSpec `json:"rollout,omitempty,omitzero"` //nolint:kubeapilinter // {} stands for the defaults

	// subscribers are told of changes of the sources, and of restarts; at most 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Subscribers []Subscriber `json:"subscribers,omitempty"`
}

// SubscriberEvent is what a subscriber is told of.
// +kubebuilder:validation:Enum=Added;Modified;Deleted;RestartTriggered;RolloutCompleted;RolloutFailed
type SubscriberEvent string

const (
	// SubscriberAdded: a source appeared.
	SubscriberAdded SubscriberEvent = "Added"
	// SubscriberModified: the content of a source is another.
	SubscriberModified SubscriberEvent = "Modified"
	// SubscriberDeleted: a source is gone.
	SubscriberDeleted SubscriberEvent = "Deleted"
	// SubscriberRestartTriggered: a target was restarted.
	SubscriberRestartTriggered SubscriberEvent = "RestartTriggered"
	// SubscriberRolloutCompleted: a restarted target is rolled out.
	SubscriberRolloutCompleted SubscriberEvent = "RolloutCompleted"
	// SubscriberRolloutFailed: the rollout of a restarted target failed.
	SubscriberRolloutFailed SubscriberEvent = "RolloutFailed"
)

// WebhookFormat is what the body of a webhook's request is.
// +kubebuilder:validation:Enum=CloudEvents;Slack;MSTeams;GoogleChat
type WebhookFormat string

const (
	// FormatCloudEvents: a CloudEvent 1.0 in binary mode. The default.
	FormatCloudEvents WebhookFormat = "CloudEvents"
	// FormatSlack: a message for an incoming webhook of Slack.
	FormatSlack WebhookFormat = "Slack"
	// FormatMSTeams: a card for a workflow webhook of Microsoft Teams.
	FormatMSTeams WebhookFormat = "MSTeams"
	// FormatGoogleChat: a message for a webhook of Google Chat.
	FormatGoogleChat WebhookFormat = "GoogleChat"
)

// WebhookPayload says how much a webhook is told of a change.
// +kubebuilder:validation:Enum=Keys;Data
type WebhookPayload string

const (
	// PayloadKeys: the names of the changed keys. The default.
	PayloadKeys WebhookPayload = "Keys"
	// PayloadData: the data of ConfigMaps too. That of Secrets is never sent.
	PayloadData WebhookPayload = "Data"
)

// Subscriber is told of changes: at least once, in order for each source, until it answers with success.
// What it could not be told it is told later, of each source only the latest content. What is there when the
// subscriber, or a source, is seen for the first time is no news.
type Subscriber struct {
	// name is the subscriber's name, as a DNS label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !format.dns1123Label().validate(self).hasValue()",message="not a valid name: use lower case letters, digits and '-', with a letter or digit first and last"
	Name string `json:"name,omitempty"`

	// events are what it is told of: Added, Modified and Deleted of a source, RestartTriggered,
	// RolloutCompleted and RolloutFailed of a target. Default: Added, Modified, Deleted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +default=["Added", "Modified", "Deleted"]
	Events []SubscriberEvent `json:"events,omitempty"`

	// webhook is where it is told.
	// +required
	Webhook Webhook `json:"webhook,omitzero"` //nolint:kubeapilinter // an empty one is refused, by the rule that it needs an address
}

// Webhook is an HTTP endpoint that gets a POST request for each event.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) || has(self.secretRef)",message="a webhook needs an address: write it into url, or, if it is a secret, into the key url of a Secret, and name that in secretRef"
// +structType=atomic
type Webhook struct {
	// url is the endpoint's address, with https; http only to a Service of the cluster, by a name that ends
	// in .svc or .svc.cluster.local. Loopback and link-local addresses and the API server are refused. Omitted:
	// it is in the key url of the Secret that secretRef names, as is right where the address is a secret itself,
	// such as that of a chat.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || (isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '')",message="not an address: write https://host/path, or http://name.namespace.svc/path for a Service of the cluster"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[a-zA-Z]+://[^/?#]*@')",message="no user name or password in an address: put a token into a Secret and name it in secretRef"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getScheme() != 'http' || url(self).getHostname().endsWith('.svc') || url(self).getHostname().endsWith('.svc.cluster.local')",message="http is for Services of the cluster only, name.namespace.svc or name.namespace.svc.cluster.local: use https"
	URL string `json:"url,omitempty"`

	// format is CloudEvents (the default), Slack, MSTeams or GoogleChat.
	// +optional
	// +default="CloudEvents"
	Format WebhookFormat `json:"format,omitempty"`

	// payload is Keys (the default): the names of the changed keys; or Data: the data of ConfigMaps too, in
	// CloudEvents. The data of Secrets is never sent.
	// +optional
	// +default="Keys"
	Payload WebhookPayload `json:"payload,omitempty"`

	// secretRef names a Secret of the same namespace, of whose keys token is sent as a bearer token,
	// hmacKey signs the body, ca.crt verifies the server, and url is the address, where the field url is
	// omitted; each other may be left out. Tokens of service accounts and for bootstrapping are refused.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"` //nolint:kubeapilinter // there is one or not; an empty one is refused
}

// SecretReference names a Secret of the same namespace.
// +structType=atomic
type SecretReference struct {
	// name is the Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !format.dns1123Subdomain().validate(self).hasValue()",message="not a valid name: use lower case letters, digits, '-' and '.', with a letter or digit first and last"
	Name string `json:"name,omitempty"`
}

// OnFailure says what a failed rollout means for the targets that wait.
// +kubebuilder:validation:Enum=Halt;Continue
type OnFailure string

const (
	// OnFailureHalt: the targets that wait for the same change as the failed one are not restarted. The
	// default.
	OnFailureHalt OnFailure = "Halt"
	// OnFailureContinue: they are restarted all the same.
	OnFailureContinue OnFailure = "Continue"
)

// Approval says whether a change waits for a human.
// +kubebuilder:validation:Enum=Automatic;Manual
type Approval string

const (
	// ApprovalAutomatic: changes wait for nobody. The default.
	ApprovalAutomatic Approval = "Automatic"
	// ApprovalManual: a change waits until its hash is approved.
	ApprovalManual Approval = "Manual"
)

// RolloutSpec says when and in which steps targets are restarted. What has to wait is gathered: a target
// is restarted once for all that changed in the meantime, and no change is dropped.
//
// +structType=atomic
type RolloutSpec struct {
	// settleSeconds is the quiet time in seconds after a change before targets are restarted, so that
	// changes that belong together make one restart; 0 to 3600, default 2. It starts again at each
	// further change, at most four times over.
	// +optional
	// +default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	SettleSeconds *int32 `json:"settleSeconds,omitempty"`

	// cooldownSeconds is the least time in seconds between two restarts of one target; 0 to 86400,
	// default 0. A target whose sources change more than 6 times within 10 minutes has one of at
	// least 30 seconds, which doubles up to 10 minutes.
	// +optional
	// +default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`

	// maxConcurrent is how many targets of this ConfigWatch roll out at once; 1 to 1000, default 10. The
	// next one is restarted when the rollout of one is complete. One that failed, is paused or is blocked
	// holds up no other by its place.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxConcurrent int32 `json:"maxConcurrent,omitempty"`

	// onFailure says what happens when the rollout of a target fails: Halt (the default) stops the
	// targets that wait for the same change, until the failed one recovers, the source changes
	// again, or the annotation configwatch.ktechhub.io/approve allows it; Continue goes on.
	// +optional
	// +default="Halt"
	OnFailure OnFailure `json:"onFailure,omitempty"`

	// progressDeadlineSeconds is how long in seconds the rollout of a StatefulSet or DaemonSet may go
	// without another new pod before it has failed; 1 to 86400, default 600. A Deployment has a
	// deadline of its own, its spec.progressDeadlineSeconds.
	// +optional
	// +default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`

	// approval is Automatic (the default), or Manual: then targets wait until the annotation
	// configwatch.ktechhub.io/approve of this ConfigWatch is set to the hash in status.approvalHash. A
	// later change needs another approval. To remove the annotation takes no approval back that the
	// operator has seen: mode: Suspended stops what hasn't begun.
	// +optional
	// +default="Automatic"
	Approval Approval `json:"approval,omitempty"`

	// windows are the times when restarts may begin; at most 16. Omitted: any time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Windows []Window `json:"windows,omitempty"`
}

// Window is a time that recurs, in which restarts may begin.
// +structType=atomic
type Window struct {
	// schedule says when it opens, as a cron expression of five fields: minute (0-59), hour (0-23), day of
	// the month (1-31), month (1-12 or JAN-DEC) and day of the week (0-6, 0 being Sunday, or SUN-SAT), such
	// as "0 2 * * 1-5". Each is *, a number, a range such as 1-5, a list such as 1,5 or a step such as */5.
	// Where both days are given, either of them counts.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="the time zone goes into timeZone: write the five fields alone, such as \"0 2 * * 1-5\""
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.contains('TZ=') || self.matches('^[ \\t]*((([*?]|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[1-9][0-9]*)?,)*([*?]|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[1-9][0-9]*)?([ \\t]+|$)){5}$')",message="not a schedule: write five fields, minute hour day-of-month month day-of-week, such as \"0 2 * * 1-5\", each of them *, a number, a range such as 1-5, a list such as 1,5 or a step such as */5"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[ \\t]*((([*?]|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[1-9][0-9]*)?,)*([*?]|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[1-9][0-9]*)?([ \\t]+|$)){5}$') || !self.matches('^[ \\t]*(([^ \\t]+[ \\t]+){0,2}[^ \\t]*[A-Za-z]|([^ \\t]*[-,])?([6-9][0-9]|[0-9]{3})|[^ \\t]+[ \\t]+([^ \\t]*[-,])?(2[4-9]|[3-9][0-9]|[0-9]{3})|([^ \\t]+[ \\t]+){2}([^ \\t]*[-,])?(0[^0-9]|3[2-9]|[4-9][0-9]|[0-9]{3})|([^ \\t]+[ \\t]+){3}([^ \\t]*[-,])?(0[^0-9]|1[3-9]|[2-9][0-9]|[0-9]{3})|([^ \\t]+[ \\t]+){4}([^ \\t]*[-,])?([7-9]|[1-9][0-9]))')",message="not a schedule: minutes are 0-59, hours 0-23, days of the month 1-31, months 1-12 or JAN-DEC, days of the week 0-6 (0 is Sunday) or SUN-SAT"
	Schedule string `json:"schedule,omitempty"`

	// durationMinutes is how many minutes it stays open; 1 to 10080, which is a week. Restarts that
	// have begun go on after it closes.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10080
	DurationMinutes int32 `json:"durationMinutes,omitempty"`

	// timeZone is the IANA name of the schedule's time zone, such as Europe/Berlin. Default: UTC.
	// +optional
	// +default="UTC"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$')",message="not a time zone: use an IANA name, such as Europe/Berlin or UTC"
	// +kubebuilder:validation:XValidation:rule="!(self in ['Local', 'localtime'])",message="depends on where the operator runs: use an IANA name, such as Europe/Berlin or UTC"
	TimeZone string `json:"timeZone,omitempty"`
}

// SourceSelector names one ConfigMap or Secret, or selects some by their labels.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="a source needs exactly one of name (for one ConfigMap or Secret) and selector (for all whose labels match)"
// +structType=atomic
type SourceSelector struct {
	// kind is ConfigMap or Secret.
	// +required
	Kind SourceKind `json:"kind,omitempty"`

	// name is the name of the ConfigMap or Secret; it need not exist yet. Exactly one of name and
	// selector is given.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !format.dns1123Subdomain().validate(self).hasValue()",message="not a valid name: use lower case letters, digits, '-' and '.', with a letter or digit first and last"
	Name string `json:"name,omitempty"`

	// selector selects all ConfigMaps or Secrets of the namespace whose labels match; at most
	// 1,000. An empty selector matches all. It has at most 16 matchLabels and 16 matchExpressions.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 16",fieldPath=".matchLabels",message="too many labels: use at most 16"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 16",fieldPath=".matchExpressions",message="too many expressions: use at most 16"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15].all(i, i >= size(self.matchExpressions) || self.matchExpressions[i].operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",fieldPath=".matchExpressions",message="not a valid operator: use In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15].all(i, i >= size(self.matchExpressions) || !(self.matchExpressions[i].operator in ['In', 'NotIn']) || (has(self.matchExpressions[i].values) && size(self.matchExpressions[i].values) > 0))",fieldPath=".matchExpressions",message="In and NotIn need values: list at least one, or use Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15].all(i, i >= size(self.matchExpressions) || !(self.matchExpressions[i].operator in ['Exists', 'DoesNotExist']) || !has(self.matchExpressions[i].values) || size(self.matchExpressions[i].values) == 0)",fieldPath=".matchExpressions",message="Exists and DoesNotExist take no values: remove them, or use In or NotIn"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// keys are the keys that matter, 1 to 256 of them. Omitted: all that there are. A key that is
	// absent is a value of its own, so that adding or removing it is a change.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="size(self) == 0 || (self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..'))",message="not a valid key: use letters, digits, '-', '_' and '.', other than '.' alone or '..' at the start"
	Keys []string `json:"keys,omitempty"`

	// restartOn lists the changes that restart targets: Added (absent to present), Modified
	// (content changed), Deleted (present to absent). Default: Modified.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +default=["Modified"]
	RestartOn []Change `json:"restartOn,omitempty"`
}

// TargetSelector names one workload, or selects some of a kind by their labels.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="a target needs exactly one of name (for one workload) and selector (for all of the kind whose labels match)"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Job'",fieldPath=".kind",message="a Job can't be restarted, its pod template is immutable: name the CronJob that makes it, or delete and re-create the Job"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Pod'",fieldPath=".kind",message="a Pod can't be restarted, it is immutable: name the Deployment, StatefulSet or DaemonSet that owns it"
// +kubebuilder:validation:XValidation:rule="self.kind != 'ReplicaSet'",fieldPath=".kind",message="a ReplicaSet doesn't replace its pods when its template changes: name the Deployment that owns it"
// +kubebuilder:validation:XValidation:rule="size(self.kind) == 0 || self.kind in ['Job', 'Pod', 'ReplicaSet', 'Deployment', 'StatefulSet', 'DaemonSet', 'CronJob']",fieldPath=".kind",message="not a kind that can be restarted: use Deployment, StatefulSet, DaemonSet or CronJob",messageExpression="self.kind + ' is not a kind that can be restarted: use Deployment, StatefulSet, DaemonSet or CronJob'"
// +kubebuilder:validation:XValidation:rule="!(self.kind in ['Deployment', 'StatefulSet', 'DaemonSet']) || !has(self.apiVersion) || size(self.apiVersion) == 0 || self.apiVersion == 'apps/v1'",fieldPath=".apiVersion",message="the apiVersion of a Deployment, StatefulSet or DaemonSet is apps/v1: correct it, or leave it out",messageExpression="'the apiVersion of a ' + self.kind + ' is apps/v1, not ' + self.apiVersion + ': correct it, or leave it out'"
// +kubebuilder:validation:XValidation:rule="self.kind != 'CronJob' || !has(self.apiVersion) || size(self.apiVersion) == 0 || self.apiVersion == 'batch/v1'",fieldPath=".apiVersion",message="the apiVersion of a CronJob is batch/v1: correct it, or leave it out",messageExpression="'the apiVersion of a CronJob is batch/v1, not ' + self.apiVersion + ': correct it, or leave it out'"
// +structType=atomic
type TargetSelector struct {
	// apiVersion is the API group and version of the kind: apps/v1 for Deployment, StatefulSet and
	// DaemonSet, batch/v1 for CronJob. It may be omitted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is Deployment, StatefulSet, DaemonSet or CronJob.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name is the name of the workload; it need not exist yet. Exactly one of name and selector is
	// given.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !format.dns1123Subdomain().validate(self).hasValue()",message="not a valid name: use lower case letters, digits, '-' and '.', with a letter or digit first and last"
	Name string `json:"name,omitempty"`

	// selector selects all workloads of the kind in the namespace whose labels match; at most
	// 1,000. An empty selector matches all. It has at most 16 matchLabels and 16 matchExpressions.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 16",fieldPath=".matchLabels",message="too many labels: use at most 16"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 16",fieldPath=".matchExpressions",message="too many expressions: use at most 16"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15].all(i, i >= size(self.matchExpressions) || self.matchExpressions[i].operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",fieldPath=".matchExpressions",message="not a valid operator: use In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15].all(i, i >= size(self.matchExpressions) || !(self.matchExpressions[i].operator in ['In', 'NotIn']) || (has(self.matchExpressions[i].values) && size(self.matchExpressions[i].values) > 0))",fieldPath=".matchExpressions",message="In and NotIn need values: list at least one, or use Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15].all(i, i >= size(self.matchExpressions) || !(self.matchExpressions[i].operator in ['Exists', 'DoesNotExist']) || !has(self.matchExpressions[i].values) || size(self.matchExpressions[i].values) == 0)",fieldPath=".matchExpressions",message="Exists and DoesNotExist take no values: remove them, or use In or NotIn"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// follow says which sources restart the target: Declared, every one that the spec lists, or
	// Referenced, only those that its pod template references. Omitted: Declared where sources are
	// listed, else Referenced.
	// +optional
	Follow Follow `json:"follow,omitempty"`
}

// SourceState is what is known of a source.
// +kubebuilder:validation:Enum=Present;Missing;Ignored;Unreadable
type SourceState string

const (
	// SourcePresent: it exists, and its hash is that of its content.
	SourcePresent SourceState = "Present"
	// SourceMissing: it doesn't exist; the hash, if any, is of the content it last had.
	SourceMissing SourceState = "Missing"
	// SourceIgnored: it is annotated configwatch.ktechhub.io/ignore: "true".
	SourceIgnored SourceState = "Ignored"
	// SourceUnreadable: the operator may not read it, or hasn't been able to yet.
	SourceUnreadable SourceState = "Unreadable"
)

// TargetState is what is known of a target.
// +kubebuilder:validation:Enum=UpToDate;Pending;RollingOut;Failed;Halted;Blocked;Missing;Ignored
type TargetState string

const (
	// TargetUpToDate: its pods were started for the present configuration and are rolled out.
	TargetUpToDate TargetState = "UpToDate"
	// TargetPending: a restart is owed and has not been made; the reason says what it waits for.
	TargetPending TargetState = "Pending"
	// TargetRollingOut: it was restarted, and the rollout is not complete.
	TargetRollingOut TargetState = "RollingOut"
	// TargetFailed: its rollout failed.
	TargetFailed TargetState = "Failed"
	// TargetHalted: a restart is owed, and is not made because another one for the same change failed.
	TargetHalted TargetState = "Halted"
	// TargetBlocked: it was restarted, and some pods stay old until a human acts.
	TargetBlocked TargetState = "Blocked"
	// TargetMissing: no such workload exists; it is picked up when it appears.
	TargetMissing TargetState = "Missing"
	// TargetIgnored: it is annotated configwatch.ktechhub.io/ignore: "true".
	TargetIgnored TargetState = "Ignored"
)

// ConfigWatchStatus is what the operator has seen and done. It is written by the operator alone.
type ConfigWatchStatus struct {
	// observedGeneration is the metadata.generation of the spec that this status is of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, which is always there, and Reconciling and Stalled, which are there
	// only while True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// sources has a row for each source.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	Sources []SourceStatus `json:"sources,omitempty"`

	// targets has a row for each target.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	Targets []TargetStatus `json:"targets,omitempty"`

	// subscribers has a row for each subscriber.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Subscribers []SubscriberStatus `json:"subscribers,omitempty"`

	// approvalHash is what the annotation configwatch.ktechhub.io/approve has to be set to, so that
	// targets that await approval, or are halted, are restarted. It is there while some are, and
	// another one when what is to be approved changes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ApprovalHash string `json:"approvalHash,omitempty"`

	// restartRequestedAt is the latest value of the annotation configwatch.ktechhub.io/restart-requested-at
	// that was acted on.
	// +optional
	RestartRequestedAt *metav1.Time `json:"restartRequestedAt,omitempty"`

	// summary counts the rows.
	// +optional
	Summary *Summary `json:"summary,omitempty"`
}

// SourceStatus is the row of a source.
// +structType=atomic
type SourceStatus struct {
	// kind is ConfigMap or Secret.
	// +required
	Kind SourceKind `json:"kind,omitempty"`

	// name is the name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// state is Present, Missing, Ignored or Unreadable.
	// +required
	State SourceState `json:"state,omitempty"`

	// hash is the digest of the whole content: a format, a colon and 16 hexadecimal digits. That of
	// a ConfigMap can be recomputed by anyone, that of a Secret only with the operator's key. Hashes
	// of different formats can't be compared. While the source is missing, it is that of the content
	// it last had.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash,omitempty"`

	// lastChangeTime is when the operator last saw the content change, appear or disappear.
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`
}

// TargetStatus is the row of a target.
// +structType=atomic
type TargetStatus struct {
	// apiVersion is the API group and version of the workload, such as apps/v1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name is the name of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid is the workload's metadata.uid: one that is deleted and created again is a new target,
	// whose pods are new anyway.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`

	// state is UpToDate, Pending, RollingOut, Failed, Halted, Blocked, Missing or Ignored.
	// +required
	State TargetState `json:"state,omitempty"`

	// reason is a constant in CamelCase that says why the target is in this state.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message says it for a reader: what changed, or what is awaited. Values never appear.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// restarts counts the restarts that this ConfigWatch has made of the target. It is the number
	// in the annotation on its pod template.
	// +required
	// +kubebuilder:validation:Minimum=0
	Restarts int64 `json:"restarts"` //nolint:kubeapilinter // zero is a count worth reading, so it is always written

	// lastRestartTime is when it was last restarted by this ConfigWatch.
	// +optional
	LastRestartTime *metav1.Time `json:"lastRestartTime,omitempty"`

	// wait is there while a restart is owed.
	// +optional
	Wait *Wait `json:"wait,omitempty"` //nolint:kubeapilinter // a pointer says plainly that there is none

	// rollout is there from a restart on until its rollout is complete.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"` //nolint:kubeapilinter // a pointer says plainly that there is none

	// recentChanges are the times of the latest changes of what the target is to be started for, as
	// many as tell whether it changes too often; oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=7
	RecentChanges []metav1.Time `json:"recentChanges,omitempty"`

	// slowdown is there while the target's sources change too often.
	// +optional
	Slowdown *Slowdown `json:"slowdown,omitempty"` //nolint:kubeapilinter // a pointer says plainly that there is none

	// sources has a record for each source of the target: what its pods were last started for.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	Sources []AppliedSource `json:"sources,omitempty"`
}

// Wait is what is known of a restart that is owed.
// +structType=atomic
type Wait struct {
	// digest stands for the changes that the restart is owed for: the sources that changed, and what they hold.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`

	// sourceVersions stands for the versions of these sources, by their uids and resourceVersions. If they are others
	// by now, they may have held something else meanwhile.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	SourceVersions string `json:"sourceVersions,omitempty"`

	// since is when the first of the changes was seen that it waits with.
	// +required
	Since metav1.MicroTime `json:"since,omitempty,omitzero"` //nolint:kubeapilinter // it is never the zero time

	// settlingSince is when the quiet time of spec.rollout.settleSeconds began.
	// +required
	SettlingSince metav1.MicroTime `json:"settlingSince,omitempty,omitzero"` //nolint:kubeapilinter // it is never the zero time

	// settlingRestarts is how many times it began again.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4
	SettlingRestarts int32 `json:"settlingRestarts,omitempty"` //nolint:kubeapilinter // none is as good as zero

	// template is the pod template as it was read after the change, once no pods were being started: if
	// it is another since, the target's pods are new anyway.
	// +optional
	Template *Template `json:"template,omitempty"` //nolint:kubeapilinter // a pointer says plainly that there is none

	// approvedHash is the value of status.approvalHash by which the restart was approved.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ApprovedHash string `json:"approvedHash,omitempty"`

	// renew tells that the pods are to be renewed even if the changes are taken back: they may have been
	// started meanwhile, and run what is neither recorded nor there any more.
	// +optional
	Renew bool `json:"renew,omitempty"` //nolint:kubeapilinter // a fact with two values, not a choice that could grow

	// requestedAt is the value of the annotation configwatch.ktechhub.io/restart-requested-at that asked
	// for the restart.
	// +optional
	RequestedAt *metav1.Time `json:"requestedAt,omitempty"`
}

// RolloutStatus is what is known of a rollout that is not complete.
// +structType=atomic
type RolloutStatus struct {
	// template is the pod template as it was before the restart, or before the rollout that superseded
	// it: if it is that again, someone has put it back.
	// +optional
	Template *Template `json:"template,omitempty"` //nolint:kubeapilinter // a pointer says plainly that there is none

	// firstTemplate is the pod template as it was before the first of several restarts, if none of their
	// rollouts was complete when the next one was made: that is what an owner puts back.
	// +optional
	FirstTemplate *Template `json:"firstTemplate,omitempty"` //nolint:kubeapilinter // a pointer says plainly that there is none

	// newPods is how many pods of the present template have been ready at once, where the workload has
	// no deadline of its own.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NewPods int32 `json:"newPods,omitempty"` //nolint:kubeapilinter // none is as good as zero

	// failed tells that it has failed. It recovers when it is complete, and not before: other targets wait
	// for that.
	// +optional
	Failed bool `json:"failed,omitempty"` //nolint:kubeapilinter // a fact with two values, not a choice that could grow

	// lastProgressTime is when there was last another new pod, or the restart.
	// +required
	LastProgressTime metav1.Time `json:"lastProgressTime,omitempty,omitzero"` //nolint:kubeapilinter // it is never the zero time
}

// Template tells a pod template from others.
// +structType=atomic
type Template struct {
	// hash is the version of the operator and a digest. Hashes of different versions can't be compared.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`

	// generation is the workload's metadata.generation.
	// +required
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation,omitempty"`
}

// Slowdown is what is known of sources that change too often.
// +structType=atomic
type Slowdown struct {
	// cooldownSeconds is the least time in seconds between two restarts of the target.
	// +required
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=600
	CooldownSeconds int32 `json:"cooldownSeconds,omitempty"`

	// message names the source, and who writes it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// AppliedSource records what the pods of a target were last started for, as far as one source goes.
// +structType=atomic
type AppliedSource struct {
	// kind is ConfigMap or Secret.
	// +required
	Kind SourceKind `json:"kind,omitempty"`

	// name is the name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// appliedHash is the digest of the content, as far as the source's keys go, that the target's
	// pods were last started for. Omitted: the source has not existed yet.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	AppliedHash string `json:"appliedHash,omitempty"`

	// absent tells that the target's pods were last started while the source did not exist;
	// appliedHash is then that of the content before.
	// +optional
	Absent bool `json:"absent,omitempty"` //nolint:kubeapilinter // a fact with two values, not a choice that could grow

	// changed tells that the latest restart of the target was for a change of this source.
	// +optional
	Changed bool `json:"changed,omitempty"` //nolint:kubeapilinter // a fact with two values, not a choice that could grow

	// failed tells that a rollout for a change to this content failed, and that the target has not been
	// rolled out since, whatever it was restarted for. Other targets with the same change wait for that.
	// +optional
	Failed bool `json:"failed,omitempty"` //nolint:kubeapilinter // a fact with two values, not a choice that could grow
}

// SubscriberStatus is the row of a subscriber.
// +structType=atomic
type SubscriberStatus struct {
	// name is the subscriber's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// lastDeliveryTime is when it last took an event.
	// +optional
	LastDeliveryTime *metav1.Time `json:"lastDeliveryTime,omitempty"`

	// failures counts the attempts that failed since.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failures int32 `json:"failures,omitempty"` //nolint:kubeapilinter // none is nothing to say

	// refusals counts those of them, one after the other, that the endpoint refused for good.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Refusals int32 `json:"refusals,omitempty"` //nolint:kubeapilinter // none is nothing to say

	// nextAttemptTime is when the next attempt is due, after one that failed.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`

	// message says what went wrong in the latest attempt, if it failed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// dropped counts the events of restarts and rollouts that it will not be told of, as more waited than
	// are kept.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Dropped int32 `json:"dropped,omitempty"` //nolint:kubeapilinter // none is nothing to say

	// sources has a record for each source: what it was last told of.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	Sources []DeliveredSource `json:"sources,omitempty"`

	// waiting are the events that it has not been told of, in their order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2000
	Waiting []WaitingEvent `json:"waiting,omitempty"`
}

// DeliveredSource records what a subscriber was last told of a source.
// +structType=atomic
type DeliveredSource struct {
	// kind is ConfigMap or Secret.
	// +required
	Kind SourceKind `json:"kind,omitempty"`

	// name is the name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// deliveredHash is the digest of the content, as far as the source's keys go. Omitted: the source has
	// not existed yet.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	DeliveredHash string `json:"deliveredHash,omitempty"`

	// absent tells that the source did not exist; deliveredHash is then that of the content before.
	// +optional
	Absent bool `json:"absent,omitempty"` //nolint:kubeapilinter // a fact with two values, not a choice that could grow
}

// WaitingEvent is an event that a subscriber has not been told of.
// +structType=atomic
type WaitingEvent struct {
	// id is that of the event, the same in each attempt.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ID string `json:"id,omitempty"`

	// event is what happened.
	// +required
	Event SubscriberEvent `json:"event,omitempty"`

	// kind is that of the source or target.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name is that of the source or target.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// hash is the digest of the source's content, if it exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash,omitempty"`

	// changedKeys are the names of the changed keys, as far as they are known.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ChangedKeys []string `json:"changedKeys,omitempty"`

	// message says what happened to a target.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// time is when it was seen.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"` //nolint:kubeapilinter // always a time
}

// Summary counts the rows of a status, for the printer columns.
// +structType=atomic
type Summary struct {
	// sources is the number of sources.
	// +required
	// +kubebuilder:validation:Minimum=0
	Sources int32 `json:"sources"` //nolint:kubeapilinter // zero is a count worth reading, so it is always written

	// targets is the number of targets.
	// +required
	// +kubebuilder:validation:Minimum=0
	Targets int32 `json:"targets"` //nolint:kubeapilinter // zero is a count worth reading, so it is always written

	// upToDate is the number of targets in state UpToDate.
	// +required
	// +kubebuilder:validation:Minimum=0
	UpToDate int32 `json:"upToDate"` //nolint:kubeapilinter // zero is a count worth reading, so it is always written

	// lastRestartTime is the latest of the targets' lastRestartTime.
	// +optional
	LastRestartTime *metav1.Time `json:"lastRestartTime,omitempty"`
}

// ConfigWatch restarts workloads when the ConfigMaps and Secrets that they depend on change.
// Everything it names is in its own namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cw,categories=configwatch
// +kubebuilder:selectablefield:JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether every target is at the present configuration and rolled out"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is ready or not"
// +kubebuilder:printcolumn:name="Sources",type=integer,JSONPath=`.status.summary.sources`,description="How many ConfigMaps and Secrets are watched"
// +kubebuilder:printcolumn:name="Targets",type=integer,JSONPath=`.status.summary.targets`,description="How many workloads depend on them"
// +kubebuilder:printcolumn:name="Up-To-Date",type=integer,JSONPath=`.status.summary.upToDate`,description="How many of the targets are up to date"
// +kubebuilder:printcolumn:name="Last Restart",type=date,JSONPath=`.status.summary.lastRestartTime`,description="How long ago a target was last restarted"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="What the Ready condition says"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="metadata.name is too long: use at most 63 characters, because it is part of an annotation key on the targets"
type ConfigWatch struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name has at most 63 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec declares what is watched and what is restarted.
	// +required
	Spec ConfigWatchSpec `json:"spec,omitzero"`

	// status is what the operator has seen and done.
	// +optional
	Status ConfigWatchStatus `json:"status,omitempty,omitzero"`
}

// ConfigWatchList is a list of ConfigWatches.
//
// +kubebuilder:object:root=true
type ConfigWatchList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ConfigWatches.
	// +required
	Items []ConfigWatch `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(s *runtime.Scheme) error {
		s.AddKnownTypes(SchemeGroupVersion, &ConfigWatch{}, &ConfigWatchList{})
		return nil
	})
}
