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
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/window"
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
	// Restart is the number of the restart that it is about, and Said what there is to say of it, of an event with a
	// Target.
	Restart int64
	Said    string
}

// name is the target's, of a row that has a workload.
func (r *row) name() string {
	return fmt.Sprintf("%s %s/%s", r.target.Kind, r.target.Workload.Namespace, r.target.Name)
}

// saying is the row as a sentence for a condition.
func (r *row) saying() string {
	return r.after.Kind + " " + r.after.Name + ": " + r.after.Message
}

// cause says why a restart is owed. A row that owes a restart for the same change goes on saying the same, as
// which keys changed may not be known any more.
func (d *Decision) cause(r *row) string {
	switch {
	case r.requested():
		return d.requestCause(r)
	case r.renewing():
		return causeOf(r.before.Message)
	case len(r.stale) == 0:
		return "the record of a restart was lost and is made again"
	}
	return d.changeCause(r)
}

// requestCause says that a restart was asked for, and what changed besides.
func (d *Decision) requestCause(r *row) string {
	said := requestedNote + r.request().UTC().Format(time.RFC3339)
	if len(r.stale) == 0 {
		return said
	}
	changed, _, _ := strings.Cut(d.changeCause(r), "; "+requestedNote) // and not what was asked for before
	return changed + "; " + said
}

func (d *Decision) changeCause(r *row) string {
	if r.owed() && !slices.ContainsFunc(r.stale, func(c change) bool { return d.news(c.Source) }) {
		return causeOf(r.before.Message)
	}
	slices.SortStableFunc(r.stale, func(a, b change) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	said := make([]string, 0, len(r.stale))
	for _, c := range r.stale {
		said = append(said, c.String())
	}
	return firstSources(said, r.longestCause())
}

// firstSources is what is said of the first sources, of as many as fit into so many bytes but one at least. The rest is
// counted.
func firstSources(each []string, longest int) string {
	said := each[0]
	for i, one := range each[1:] {
		if i+1 == namedSources || len(said)+len("; ")+len(one) > longest {
			return said + "; and " + count(len(each)-i-1, "more source")
		}
		said += "; " + one
	}
	return said
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

// What a restart waits for.
const (
	sharedTurnNote       = "It waits for its turn: as many targets of all ConfigWatches roll out as --max-concurrent-rollouts allows"
	neverOpensNote       = "No window of spec.rollout.windows can be used: see the Stalled condition"
	unapprovedNote       = "It awaits approval"
	takenBackTooLateNote = "a change was taken back, and pods may have been started before it was"
	undoneNote           = "another rollout that had started pods for a change was undone before it was complete"
	triesAgainNote       = "the spec was edited, and the pod template had been put back"
	requestedNote        = "a restart was requested at "
	takenBackNote        = "the change was taken back before a restart was made"
	approveToGoOn        = "annotate the ConfigWatch with " + v1alpha1.ApproveAnnotation + "="
	otherHashNote        = "the annotation " + v1alpha1.ApproveAnnotation + " names another hash"
)

func settlingNote(until time.Time) string {
	return "It is restarted once no more changes come, at " + shownTime(until)
}

func coolingNote(cooldown int32, until time.Time, why string) string {
	said := fmt.Sprintf("It is restarted at most every %d seconds, next at %s", cooldown, shownTime(until))
	if why != "" {
		said += ": " + why
	}
	return said
}

func windowNote(opening time.Time) string {
	return "The next window opens " + window.Format(opening)
}

func turnNote(most int) string {
	said := fmt.Sprintf("at most %d targets roll out at once", most)
	if most == 1 {
		said = "one target rolls out at a time"
	}
	return "It waits for its turn: " + said + " (spec.rollout.maxConcurrent)"
}

func shownTime(t time.Time) string {
	return t.UTC().Truncate(time.Second).Format(time.RFC3339)
}

func haltedNote(by *row) string {
	return fmt.Sprintf("Halted, as %s failed to roll out for the same change", by.target.Ref)
}

// restartSaid names a restart whose cause is no longer recorded.
func restartSaid(number int64) string {
	return fmt.Sprintf("restart %d, after which there was another change", number)
}

// failedFirstNote says which target is restarted first, and when, if that can be said.
func failedFirstNote(first *row, at time.Time) string {
	said := first.target.String() + ", whose rollout failed, is restarted first"
	if at.IsZero() {
		return said
	}
	return said + ", at " + shownTime(at)
}

// haltedSummary says how many are halted, and how they go on.
func (d *Decision) haltedSummary(n int) string {
	said := fmt.Sprintf(". %s halted: mend the configuration", count(n, "target"))
	if n == 1 {
		said = strings.Replace(said, "halted", "is halted", 1)
	} else {
		said = strings.Replace(said, "halted", "are halted", 1)
	}
	if approval := d.status.ApprovalHash; approval != "" {
		said += ", or to go on all the same, " + approveToGoOn + approval
		if d.in.Approved != "" && d.in.Approved != approval {
			said += " (" + otherHashNote + ")"
		}
	}
	return said
}

func revertedNote(w *workload.Workload) string {
	who, whom := w.Owner, w.Owner
	if w.Owner == "" {
		who, whom = "Another client", "that client"
	}
	return fmt.Sprintf("%s put the pod template back before the rollout was complete, so that old pods stay. "+
		"It is not restarted again for this change: let %s restart it, or leave the annotation %s... alone",
		who, whom, v1alpha1.RestartAnnotationPrefix)
}

// failureNote says why a rollout has failed.
func (d *Decision) failureNote(rollout workload.Rollout) string {
	switch {
	case rollout.Progress == workload.Failed:
		return rollout.Detail
	case !rollout.NoDeadline:
		return "Its rollout failed and is not complete yet"
	}
	return fmt.Sprintf("There was no other new pod for %d seconds (spec.rollout.progressDeadlineSeconds); %s ready",
		int(d.deadline().Seconds()), isAre(int(rollout.NewPods), "new pod"))
}

func isAre(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return count(n, what) + " are"
}

func flappingNote(sources []*Source, longest int) string {
	said := make([]string, 0, len(sources))
	for _, s := range sources {
		by := ""
		if s.Writer != "" {
			by = ", last written by " + s.Writer
		}
		said = append(said, s.String()+by)
	}
	if len(said) == 0 {
		said = []string{"its sources"}
	}
	return fmt.Sprintf("more than %d changes within %d minutes (%s)", mostChanges, int(flappingTime.Minutes()), firstSources(said, longest))
}

func invalidWindow(i int, err error) Problem {
	return Problem{v1alpha1.ReasonInvalidWindow, fmt.Sprintf("spec.rollout.windows[%d] can't be used: %v", i, err)}
}

func invalidRequest(value, why string) Problem {
	return Problem{v1alpha1.ReasonInvalidAnnotation, fmt.Sprintf("annotation %s: %q %s: write the present time, such as %s",
		v1alpha1.RestartRequestedAtAnnotation, truncateTo(value, 64), why, "2026-01-02T15:04:05Z")}
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

// well is what Ready=True says.
func (d *Decision) well() *Problem {
	if d.observing() {
		return &Problem{Reason: v1alpha1.ReasonObserving, Message: d.watched() + d.missingSource()}
	}
	return &Problem{Reason: v1alpha1.ReasonUpToDate, Message: d.upToDate() + d.missingSource()}
}

// watched says what there is in mode Observe.
func (d *Decision) watched() string {
	said := count(len(d.status.Sources), "source") + " watched"
	if n := len(d.in.Observed.Subscriptions); n > 0 {
		said += ", " + count(n, "subscriber") + " told of changes"
	}
	return said + "; nothing is restarted, as spec.mode is Observe"
}

// upToDate says which targets there are.
func (d *Decision) upToDate() string {
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
	return said
}

// missingSource says which source doesn't exist, if one doesn't.
func (d *Decision) missingSource() string {
	for _, s := range d.in.Observed.Sources {
		if s.State == v1alpha1.SourceMissing {
			return fmt.Sprintf("; %s does not exist%s", s.Ref, hint(s.Hint))
		}
	}
	return ""
}

// progressSaid is such as "250 pending and 10 rolling out of 300 targets".
func progressSaid(all, pending, rolling int) string {
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
	return truncateTo(message, maxMessage)
}

// truncateTo cuts a message. What is left out of a cause and what there is to say about it is the end of the cause, but
// for a third that it may always have.
func truncateTo(message string, length int) string {
	cause, more, ok := strings.Cut(message, sentenceEnd)
	if len(message) <= length || !ok {
		return cutTo(message, length)
	}
	return cutTo(sentences(cutTo(cause, max(length/3, length-len(sentenceEnd)-len(more))), more), length)
}

func cutTo(message string, length int) string {
	const ellipsis = "…"
	if len(message) <= length {
		return message
	}
	cut := length - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + ellipsis
}

func aboutTarget(r *row, eventType, reason, action, note string) Event {
	return Event{
		Type: eventType, Reason: reason, Action: action, Target: r.target.Workload, Note: truncate(note),
		Restart: r.after.Restarts, Said: r.after.Message,
	}
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
func rolloutChanged(r *row, state v1alpha1.TargetState, said string) []Event {
	var events []Event
	switch state {
	case v1alpha1.TargetUpToDate:
		events = []Event{aboutTarget(r, corev1.EventTypeNormal, v1alpha1.EventRolloutCompleted, v1alpha1.ActionObserve,
			fmt.Sprintf("%s is rolled out: %s", r.name(), said))}
	case v1alpha1.TargetFailed:
		events = onBoth(aboutTarget(r, corev1.EventTypeWarning, v1alpha1.EventRolloutFailed, v1alpha1.ActionObserve,
			fmt.Sprintf("%s failed to roll out: %s", r.name(), said)))
	case v1alpha1.TargetBlocked:
		events = onBoth(aboutTarget(r, corev1.EventTypeWarning, v1alpha1.EventRolloutBlocked, v1alpha1.ActionObserve,
			fmt.Sprintf("%s keeps old pods: %s", r.name(), said)))
	case v1alpha1.TargetPending, v1alpha1.TargetRollingOut, v1alpha1.TargetHalted, v1alpha1.TargetMissing, v1alpha1.TargetIgnored:
	}
	for i := range events {
		events[i].Said = said
	}
	return events
}

func supersededEvent(r *row) Event {
	return aboutTarget(r, corev1.EventTypeNormal, v1alpha1.EventRestartSuperseded, v1alpha1.ActionObserve,
		fmt.Sprintf("%s was not restarted: %s, and another rollout has started its pods since", r.name(), r.cause))
}

func slowedDownEvent(r *row) Event {
	return aboutTarget(r, corev1.EventTypeWarning, v1alpha1.EventSlowedDown, v1alpha1.ActionObserve,
		fmt.Sprintf("%s is restarted less often: %s", r.name(), r.after.Slowdown.Message))
}

// delays tells which targets have begun to wait, and for what: one event for all that wait for the same.
// That more changes may come within seconds is no news.
func (d *Decision) delays() []Event {
	var events []Event
	for _, reason := range []string{
		v1alpha1.ReasonCoolingDown, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonOutsideWindow, v1alpha1.ReasonAwaitingTurn,
		v1alpha1.ReasonHalted,
	} {
		var first *row
		more := -1
		for _, r := range d.rows {
			if !r.owing || r.after.Reason != reason || r.knownToWait() {
				continue
			}
			more++
			if first == nil {
				first = r
			}
		}
		if first != nil {
			events = append(events, delayed(first, reason, more))
		}
	}
	return events
}

func delayed(r *row, reason string, more int) Event {
	who := r.name()
	if more > 0 {
		who += " and " + count(more, "more target")
	}
	eventType, event := corev1.EventTypeNormal, v1alpha1.EventRestartDelayed
	if reason == v1alpha1.ReasonHalted {
		eventType, event = corev1.EventTypeWarning, v1alpha1.EventHalted
	}
	return aboutTarget(r, eventType, event, v1alpha1.ActionRestart, fmt.Sprintf("%s: not restarted yet: %s", who, r.after.Message))
}

// knownToWait tells whether the record says that the target waits for the same. Further changes are news, but not
// of a target that is slowed down because there are so many (E15).
func (r *row) knownToWait() bool {
	return r.before != nil && r.before.Reason == r.after.Reason && (r.sameWait() || r.before.Slowdown != nil)
}

// sameWait tells whether the target waits for the same restart as it is recorded to.
func (r *row) sameWait() bool {
	return r.wait() != nil && r.after.Wait != nil && r.wait().Digest == r.after.Wait.Digest
}

// tellHowToApprove completes the messages of those that await approval.
func (d *Decision) tellHowToApprove(approval string) {
	note := unapprovedNote + ": " + approveToGoOn + approval
	if d.in.Approved != "" {
		note += " (" + otherHashNote + ")"
	}
	for _, r := range d.rows {
		if r.owing && r.after.Reason == v1alpha1.ReasonAwaitingApproval {
			r.set(r.after.State, r.after.Reason, sentences(r.cause, note))
		}
	}
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
			"They were recorded anew, nothing was restarted, and no subscriber was told: restart targets yourself if a source changed " +
			"in the meantime",
	}
}

// stalledEvent names no hash to approve: it stays as it is, while each further failure makes another hash.
func (d *Decision) stalledEvent(problem *Problem) Event {
	said := problem.Message
	if d.status.ApprovalHash != "" {
		said = strings.ReplaceAll(said, approveToGoOn+d.status.ApprovalHash, approveToGoOn+"<status.approvalHash>")
	}
	return Event{
		Type: corev1.EventTypeWarning, Reason: v1alpha1.EventStalled, Action: v1alpha1.ActionObserve,
		Note: truncate(problem.Reason + ": " + said),
	}
}
