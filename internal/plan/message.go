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

package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

const (
	// maxMessage is the length of a message in bytes, so that it fits an Event's note too.
	maxMessage = 1000
	// namedKeys and namedSources are how many are named in a message before the rest is counted.
	namedKeys    = 3
	namedSources = 3

	nextRun    = "a CronJob needs no restart: its next Job reads the present configuration"
	pausedNote = "spec.paused is true: its pods stay old until that is false"
)

// Event is something to tell the user. It is about the ConfigWatch; if it has a target, that is the
// related object, and OnTarget it is the other way round.
type Event struct {
	// Type is Normal or Warning.
	Type   string
	Reason string
	Action string
	Target *workload.Workload
	// OnTarget tells that the event is one of the target's.
	OnTarget bool
	Note     string
}

// name is the target's, of a row that has a workload.
func (r *row) name() string {
	return fmt.Sprintf("%s %s/%s", r.target.Kind, r.target.Workload.Namespace, r.target.Name)
}

// saying is the row as a sentence for a condition.
func (r *row) saying() string {
	return r.after.Kind + " " + r.after.Name + ": " + r.after.Message
}

// cause says what changed. A row that owes a restart for the same change goes on saying the same, as
// which keys changed may not be known any more.
func (d *Decision) cause(r *row) string {
	if len(r.stale) == 0 {
		return "the record of a restart was lost and is made again"
	}
	if r.owed() && !slices.ContainsFunc(r.stale, func(c change) bool { return d.news(c.Source) }) {
		return causeOf(r.before.Message)
	}
	slices.SortStableFunc(r.stale, func(a, b change) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	said := make([]string, 0, namedSources+1)
	for i, c := range r.stale {
		if i == namedSources {
			said = append(said, "and "+count(len(r.stale)-i, "more source"))
			break
		}
		said = append(said, c.String())
	}
	return strings.Join(said, "; ")
}

// news tells whether a source is in another state, or has other content, than recorded.
func (d *Decision) news(ref source.Ref) bool {
	before, now := d.records.sources[ref], d.observed[ref]
	return now != nil && (before == nil || before.State != now.State ||
		now.State == v1alpha1.SourcePresent && before.Hash != string(now.Hash))
}

// String is such as "ConfigMap app-config changed (LOG_LEVEL, +2 keys)".
func (c change) String() string {
	switch c.as {
	case v1alpha1.Added:
		return c.Source.String() + " appeared"
	case v1alpha1.Deleted:
		return c.Source.String() + " was deleted"
	case v1alpha1.Modified:
	}
	if !c.KeysKnown || len(c.ChangedKeys) == 0 {
		return c.Source.String() + " changed"
	}
	named := c.ChangedKeys[:min(namedKeys, len(c.ChangedKeys))]
	said := strings.Join(named, ", ")
	if more := len(c.ChangedKeys) - len(named); more > 0 {
		said += ", +" + count(more, "key")
	}
	return fmt.Sprintf("%s changed (%s)", c.Source, said)
}

// sentences joins a cause and what there is to say about it. causeOf takes it out again.
func sentences(cause, more string) string {
	return cause + sentenceEnd + more
}

// sentenceEnd ends a cause: names of sources and keys have no spaces, so it can't be in one.
const sentenceEnd = ". "

func causeOf(message string) string {
	cause, _, _ := strings.Cut(message, sentenceEnd)
	return cause
}

func baseline(target Target) string {
	said := "seen for the first time, nothing to restart for: it depends on " + count(len(target.Pairs), "source")
	if classes := target.Workload.SecretProviderClasses; len(classes) > 0 {
		said += "; SecretProviderClass " + strings.Join(classes, ", ") + " is not watched"
	}
	return said
}

func missingTarget(target Target) string {
	return "no such " + target.Kind + " exists; it is picked up when it appears" + hint(target.Hint)
}

func ignoredTarget(target Target) string {
	return fmt.Sprintf("left out: the %s is annotated %s: \"true\"", target.Kind, v1alpha1.IgnoreAnnotation)
}

func hint(said string) string {
	if said == "" {
		return ""
	}
	return " (" + said + ")"
}

func holdReason(hold workload.Hold) string {
	if hold == workload.HeldByPartition {
		return v1alpha1.ReasonPartitionedRollout
	}
	return v1alpha1.ReasonUpdateStrategyOnDelete
}

// noTargets says why there is no target: E25.
func noTargets(targets []Target) string {
	missing := slices.DeleteFunc(slices.Clone(targets), func(t Target) bool { return t.Workload != nil })
	switch {
	case len(targets) == 0:
		return "no workload in this namespace matches spec.targets, or references a source"
	case len(missing) == 0:
		return "every target is annotated " + v1alpha1.IgnoreAnnotation
	}
	return fmt.Sprintf("%s does not exist%s", missing[0].Ref, hint(missing[0].Hint)) + others(len(missing)-1, "target")
}

// noSources says why there is no source: E25.
func noSources(sources []Source) string {
	missing := slices.DeleteFunc(slices.Clone(sources), func(s Source) bool { return s.State != v1alpha1.SourceMissing })
	switch {
	case len(sources) == 0:
		return "there is nothing to watch: spec.sources matches no ConfigMap or Secret of this namespace, " +
			"or, where it is omitted, no target references one"
	case len(missing) == 0:
		return "every source is annotated " + v1alpha1.IgnoreAnnotation
	}
	return fmt.Sprintf("%s does not exist%s", missing[0].Ref, hint(missing[0].Hint)) + others(len(missing)-1, "source")
}

func others(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", nor %s", count(n, "other "+what))
}

// allWell is the message of Ready=True.
func (d *Decision) allWell() string {
	exist := 0
	var missing *row
	for _, r := range d.rows {
		switch {
		case r.after.State == v1alpha1.TargetUpToDate:
			exist++
		case missing == nil && r.after.State == v1alpha1.TargetMissing:
			missing = r
		}
	}
	said := fmt.Sprintf("%s up to date with %s", count(exist, "target"), count(len(d.status.Sources), "source"))
	if missing != nil {
		said += fmt.Sprintf("; %s does not exist%s", missing.target.Ref, hint(missing.target.Hint))
	}
	for _, s := range d.in.Observed.Sources {
		if s.State == v1alpha1.SourceMissing {
			return said + fmt.Sprintf("; %s does not exist%s", s.Ref, hint(s.Hint))
		}
	}
	return said
}

// progress is such as "1 of 3 targets is pending, 1 is rolling out".
func progress(all, pending, rolling int) string {
	var said []string
	if pending > 0 {
		said = append(said, fmt.Sprintf("%d pending", pending))
	}
	if rolling > 0 {
		said = append(said, fmt.Sprintf("%d rolling out", rolling))
	}
	return strings.Join(said, " and ") + " of " + count(all, "target")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func truncate(message string) string {
	const ellipsis = "…"
	if len(message) <= maxMessage {
		return message
	}
	cut := maxMessage - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + ellipsis
}

func aboutTarget(r *row, eventType, reason, action, note string) Event {
	return Event{Type: eventType, Reason: reason, Action: action, Target: r.target.Workload, Note: truncate(note)}
}

// onBoth is an event of the ConfigWatch, and the same of the target.
func onBoth(e Event) []Event {
	onTarget := e
	onTarget.OnTarget = true
	return []Event{e, onTarget}
}

func restartedEvents(r *row, cause string) []Event {
	return onBoth(aboutTarget(r, corev1.EventTypeNormal, v1alpha1.EventRestartTriggered, v1alpha1.ActionRestart,
		fmt.Sprintf("Restarted %s: %s", r.name(), cause)))
}

// rolloutChanged tells how the rollout of a restarted target went on.
func rolloutChanged(r *row) []Event {
	switch r.after.State {
	case v1alpha1.TargetUpToDate:
		return []Event{aboutTarget(r, corev1.EventTypeNormal, v1alpha1.EventRolloutCompleted, v1alpha1.ActionObserve,
			fmt.Sprintf("%s is rolled out: %s", r.name(), r.after.Message))}
	case v1alpha1.TargetFailed:
		return onBoth(aboutTarget(r, corev1.EventTypeWarning, v1alpha1.EventRolloutFailed, v1alpha1.ActionObserve,
			fmt.Sprintf("%s failed to roll out: %s", r.name(), r.after.Message)))
	case v1alpha1.TargetBlocked:
		return onBoth(aboutTarget(r, corev1.EventTypeWarning, v1alpha1.EventRolloutBlocked, v1alpha1.ActionObserve,
			fmt.Sprintf("%s keeps old pods: %s", r.name(), r.after.Message)))
	case v1alpha1.TargetPending, v1alpha1.TargetRollingOut, v1alpha1.TargetMissing, v1alpha1.TargetIgnored:
	}
	return nil
}

func held(r *row, mode v1alpha1.Mode, cause string) Event {
	note := fmt.Sprintf("%s would be restarted (spec.mode is %s): %s", r.name(), mode, cause)
	if mode == v1alpha1.ModeSuspended {
		note = fmt.Sprintf("%s is restarted once spec.mode is Active again: %s", r.name(), cause)
	}
	return aboutTarget(r, corev1.EventTypeNormal, v1alpha1.EventRestartHeld, v1alpha1.ActionRestart, note)
}

func notRestarted(r *row, c change) Event {
	on := make([]string, len(c.RestartOn))
	for i, change := range c.RestartOn {
		on[i] = string(change)
	}
	return aboutTarget(r, corev1.EventTypeNormal, v1alpha1.EventNotRestarted, v1alpha1.ActionObserve,
		fmt.Sprintf("%s was not restarted: %s, and restartOn is %s", r.name(), c, strings.Join(on, ", ")))
}

func readsAtNextRun(r *row, c change) Event {
	return aboutTarget(r, corev1.EventTypeNormal, v1alpha1.EventNotRestarted, v1alpha1.ActionObserve,
		fmt.Sprintf("%s was not restarted: %s, and %s", r.name(), c, nextRun))
}

func newBaseline() Event {
	return Event{
		Type: corev1.EventTypeWarning, Reason: v1alpha1.EventNewBaseline, Action: v1alpha1.ActionObserve,
		Note: "The operator's hash key or hash format is another, so recorded hashes can't be compared with the present ones. " +
			"They were recorded anew and nothing was restarted: restart targets yourself if a source changed in the meantime",
	}
}

func stalledEvent(problem *Problem) Event {
	return Event{
		Type: corev1.EventTypeWarning, Reason: v1alpha1.EventStalled, Action: v1alpha1.ActionObserve,
		Note: truncate(problem.Reason + ": " + problem.Message),
	}
}
