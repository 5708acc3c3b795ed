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

// Annotations. What they are read or written on is said with each.
const (
	// RestartAnnotationPrefix, followed by the name of a ConfigWatch, is the annotation on a target's
	// pod template by which it is restarted. Its value is "<number of the restart>-<digest of the
	// content it was made for>".
	RestartAnnotationPrefix = "restart.configwatch.ktechhub.io/"

	// IgnoreAnnotation with the value "true", on a source or a workload, leaves it out.
	IgnoreAnnotation = "configwatch.ktechhub.io/ignore"

	// ApproveAnnotation, on a ConfigWatch, with the value of its status.approvalHash, lets the targets
	// that await approval, or are halted, be restarted. A later change needs another approval. What was
	// approved stays so without it.
	ApproveAnnotation = "configwatch.ktechhub.io/approve"

	// RestartRequestedAtAnnotation, on a ConfigWatch, with a time as in RFC 3339 that is later than the
	// one before, restarts its targets now: waves are kept, windows and the like are not.
	RestartRequestedAtAnnotation = "configwatch.ktechhub.io/restart-requested-at"
)

// FieldManager is the name under which the operator's writes appear in managedFields.
const FieldManager = "configwatch"

// Conditions of a ConfigWatch, in the vocabulary of kstatus.
const (
	// ConditionReady is always there. True: every source is readable, and every target is at the
	// present configuration and rolled out.
	ConditionReady = "Ready"

	// ConditionReconciling is there while targets are pending or rolling out.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is there while something waits that only a human can mend.
	ConditionStalled = "Stalled"
)

// Reasons of the conditions.
const (
	// ReasonUpToDate: every target is at the present configuration.
	ReasonUpToDate = "UpToDate"
	// ReasonObserving: every source is watched, and spec.mode is Observe, so that there are no targets.
	ReasonObserving = "Observing"
	// ReasonPending: targets wait to be restarted.
	ReasonPending = "Pending"
	// ReasonRollingOut: targets were restarted, and the rollouts are not complete.
	ReasonRollingOut = "RollingOut"
	// ReasonBlocked: pods of a restarted target stay old until a human acts.
	ReasonBlocked = "Blocked"
	// ReasonNoTargets: none of the targets exists.
	ReasonNoTargets = "NoTargets"
	// ReasonNoSources: none of the sources exists.
	ReasonNoSources = "NoSources"
	// ReasonTooManyMatches: selectors match more than a ConfigWatch can hold.
	ReasonTooManyMatches = "TooManyMatches"
	// ReasonInvalidSelector: a label selector can't be used.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonInvalidWindow: a maintenance window can't be used.
	ReasonInvalidWindow = "InvalidWindow"
	// ReasonSubscriberRefuses: the endpoint of a subscriber refuses what it is told.
	ReasonSubscriberRefuses = "SubscriberRefuses"
	// ReasonInvalidAnnotation: an annotation of the ConfigWatch can't be used.
	ReasonInvalidAnnotation = "InvalidAnnotation"
)

// Reasons of conditions and of targets.
const (
	// ReasonDryRun: a target would be restarted if spec.mode were not DryRun.
	ReasonDryRun = "DryRun"
	// ReasonSuspended: a restart waits until spec.mode is no longer Suspended.
	ReasonSuspended = "Suspended"
	// ReasonPermissionDenied: the operator's role lacks a permission.
	ReasonPermissionDenied = "PermissionDenied"
	// ReasonRestartFailed: the API server did not take the patch; it is tried again.
	ReasonRestartFailed = "RestartFailed"
	// ReasonRolloutFailed: the target's own controller gave the rollout up, or it made no progress until
	// the deadline.
	ReasonRolloutFailed = "RolloutFailed"
	// ReasonSettling: more changes may come within the quiet time.
	ReasonSettling = "Settling"
	// ReasonCoolingDown: the target was restarted not long ago.
	ReasonCoolingDown = "CoolingDown"
	// ReasonAwaitingApproval: the change has to be approved.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonOutsideWindow: no maintenance window is open.
	ReasonOutsideWindow = "OutsideWindow"
	// ReasonAwaitingTurn: as many targets as may roll out at once do, or one whose rollout failed goes first.
	ReasonAwaitingTurn = "AwaitingTurn"
	// ReasonHalted: the restart of another target for the same change failed.
	ReasonHalted = "Halted"
)

// Reasons of targets.
const (
	// ReasonBaseline: seen for the first time; there is nothing to restart for.
	ReasonBaseline = "Baseline"
	// ReasonRolloutInProgress: the rollout is not complete.
	ReasonRolloutInProgress = "RolloutInProgress"
	// ReasonRolloutComplete: restarted, and every pod is new.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonRolloutPaused: restarted, and the rollout waits because spec.paused is true.
	ReasonRolloutPaused = "RolloutPaused"
	// ReasonScaledToZero: restarted, and there are no pods.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonNoRestartNeeded: a CronJob, whose next Job reads the present configuration.
	ReasonNoRestartNeeded = "NoRestartNeeded"
	// ReasonUpdateStrategyOnDelete: restarted, and its pods stay old until they are deleted.
	ReasonUpdateStrategyOnDelete = "UpdateStrategyOnDelete"
	// ReasonPartitionedRollout: restarted, and the pods below the partition stay old.
	ReasonPartitionedRollout = "PartitionedRollout"
	// ReasonSupersededByRollout: another rollout has renewed the pods since the change.
	ReasonSupersededByRollout = "SupersededByRollout"
	// ReasonTemplateReverted: restarted, and the pod template was put back before the rollout was complete.
	ReasonTemplateReverted = "TemplateReverted"
	// ReasonNotFound: no such workload exists.
	ReasonNotFound = "NotFound"
	// ReasonIgnoredByAnnotation: left out by its annotation.
	ReasonIgnoredByAnnotation = "IgnoredByAnnotation"
)

// Reasons of Events.
const (
	// EventRestartTriggered: a target's pod template was patched.
	EventRestartTriggered = "RestartTriggered"
	// EventRestartFailed: the patch was refused; it is tried again.
	EventRestartFailed = "RestartFailed"
	// EventRolloutCompleted: a restarted target is rolled out.
	EventRolloutCompleted = "RolloutCompleted"
	// EventRolloutFailed: the rollout of a restarted target failed.
	EventRolloutFailed = "RolloutFailed"
	// EventRolloutBlocked: pods of a restarted target stay old until a human acts.
	EventRolloutBlocked = "RolloutBlocked"
	// EventRestartHeld: a target would be restarted if spec.mode were Active.
	EventRestartHeld = "RestartHeld"
	// EventRestartDelayed: restarts wait for a window, an approval, their turn or the end of a cooldown.
	EventRestartDelayed = "RestartDelayed"
	// EventRestartSuperseded: another rollout has renewed the pods, so no restart was made.
	EventRestartSuperseded = "RestartSuperseded"
	// EventHalted: targets are not restarted because another restart for the same change failed.
	EventHalted = "Halted"
	// EventSlowedDown: a target's sources change too often.
	EventSlowedDown = "SlowedDown"
	// EventNotRestarted: a source changed, and the change calls for no restart.
	EventNotRestarted = "NotRestarted"
	// EventNewBaseline: recorded hashes can't be compared with the present ones any more.
	EventNewBaseline = "NewBaseline"
	// EventStalled: only a human can mend what is in the way.
	EventStalled = "Stalled"
)

// Actions of Events: what the operator was doing.
const (
	// ActionRestart: restarting a target.
	ActionRestart = "Restart"
	// ActionObserve: observing sources, targets and rollouts.
	ActionObserve = "Observe"
)
