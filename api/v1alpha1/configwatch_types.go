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
// +kubebuilder:validation:Enum=Active;DryRun;Suspended
type Mode string

const (
	// ModeActive restarts targets. The default.
	ModeActive Mode = "Active"
	// ModeDryRun decides and reports everything, and patches nothing.
	ModeDryRun Mode = "DryRun"
	// ModeSuspended observes and reports, and acts on what is still stale once it is Active again.
	ModeSuspended Mode = "Suspended"
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
type ConfigWatchSpec struct {
	// mode says what the operator does about a change: Active (the default) restarts targets,
	// DryRun only reports what it would do, Suspended waits and acts on what is still stale once
	// it is Active again. No mode loses a change.
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
	// template references a source. A workload that several entries match is governed by the
	// first of them. No name may be listed twice.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.kind == a.kind && b.name == a.name))",message="a target is listed twice: list it once",messageExpression="self.map(a, has(a.name) && !self.exists_one(b, has(b.name) && b.kind == a.kind && b.name == a.name), a.kind + ' ' + a.name)[0] + ' is listed twice: list it once'"
	Targets []TargetSelector `json:"targets,omitempty"`
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
// +kubebuilder:validation:Enum=UpToDate;Pending;RollingOut;Failed;Blocked;Missing;Ignored
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

	// state is UpToDate, Pending, RollingOut, Failed, Blocked, Missing or Ignored.
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

	// sources has a record for each source of the target: what its pods were last started for.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	Sources []AppliedSource `json:"sources,omitempty"`
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
