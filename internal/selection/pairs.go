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

package selection

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// pair says which sources each target depends on. Where they are too many, those that are only remembered
// give way: what was deleted is no reason to leave the changes of what exists alone.
func (o *observer) pair() {
	pairs := o.makePairs()
	room := o.room()
	if len(o.order) > maxMatches || pairs > maxPairs || room < leastRoom {
		o.order = slices.DeleteFunc(o.order, func(ref source.Ref) bool { return !o.selected[ref].forgetAt.IsZero() })
		pairs = o.makePairs()
		room = o.room()
	}
	switch {
	case len(o.out.Targets) > maxMatches:
		o.incomplete(v1alpha1.ReasonTooManyMatches,
			"there are %d targets: narrow spec.targets or spec.sources to at most %d", len(o.out.Targets), maxMatches)
	case len(o.order) > maxMatches:
		o.incomplete(v1alpha1.ReasonTooManyMatches,
			"there are %d sources: narrow spec.sources to at most %d", len(o.order), maxMatches)
	case pairs > maxPairs:
		o.incomplete(v1alpha1.ReasonTooManyMatches,
			"%s on %d sources in %d pairs%s: narrow them to at most %d pairs, by follow: Referenced or in several ConfigWatches",
			o.depending(), len(o.order), pairs, o.counted(), maxPairs)
	case room < leastRoom:
		o.incomplete(v1alpha1.ReasonTooManyMatches,
			"%s on %d sources in %d pairs%s, and the status may come to be %d KB too large to be stored, as their names are long: "+
				"make several ConfigWatches of it", o.depending(), len(o.order), pairs, o.counted(), (leastRoom-room+999)/1000)
	}
	o.out.Room = max(room, leastRoom)
}

// room is how many bytes an object has left for that part of its status which gives way.
func (o *observer) room() int {
	room := maxObject - plan.StatusSize(o.order, o.out.Targets, o.out.Subscriptions)
	if room > maxObject/4*3 {
		return room // without the work of looking at the spec each time
	}
	own, err := json.Marshal(v1alpha1.ConfigWatch{
		ObjectMeta: metav1.ObjectMeta{Labels: o.cw.Labels, Annotations: o.cw.Annotations}, Spec: o.cw.Spec,
	})
	if err != nil { // it came as JSON
		return room
	}
	return room - len(own)
}

// depending says who depends on sources.
func (o *observer) depending() string {
	switch {
	case len(o.out.Subscriptions) == 0:
		return fmt.Sprintf("%d targets depend", len(o.out.Targets))
	case len(o.out.Targets) == 0:
		return fmt.Sprintf("%d subscribers depend", len(o.out.Subscriptions))
	}
	return fmt.Sprintf("%d targets and %d subscribers depend", len(o.out.Targets), len(o.out.Subscriptions))
}

// counted says how pairs are counted, if that isn't plain.
func (o *observer) counted() string {
	if len(o.out.Subscriptions) == 0 {
		return ""
	}
	return fmt.Sprintf(" (a pair of a subscriber counts as %d)", subscriberPair)
}

// makePairs makes the pairs of every target, and counts them.
func (o *observer) makePairs() int {
	recorded := o.recordedHashes()
	pairs := 0
	for i := range o.out.Targets {
		target := &o.out.Targets[i]
		target.Pairs = nil
		if target.Workload == nil || target.Workload.Ignored {
			continue
		}
		for _, ref := range o.sourcesOf(target.Workload, o.followed[i]) {
			target.Pairs = append(target.Pairs, o.pairOf(ref, recorded[pairKey{target.Ref, ref}]))
		}
		pairs += len(target.Pairs)
	}
	return pairs + o.subscribe()
}

// subscriberPair is as how many pairs of a target one of a subscriber counts: with the event that waits for the
// subscriber, it takes as much of the status.
const subscriberPair = 2

// subscribe says what each subscriber may be told of: every source, but for those that are ignored. It counts the
// pairs.
func (o *observer) subscribe() int {
	o.out.Subscriptions = nil
	recorded := o.deliveredHashes()
	pairs := 0
	for i := range o.cw.Spec.Subscribers {
		s := plan.Subscription{Subscriber: o.cw.Spec.Subscribers[i]}
		for _, ref := range o.order {
			if o.selected[ref].state != v1alpha1.SourceIgnored {
				s.Pairs = append(s.Pairs, o.pairOf(ref, recorded[deliveredKey{s.Subscriber.Name, ref}]))
			}
		}
		o.out.Subscriptions = append(o.out.Subscriptions, s)
		pairs += subscriberPair * len(s.Pairs)
	}
	return pairs
}

type deliveredKey struct {
	subscriber string
	source     source.Ref
}

// deliveredHashes are the hashes that subscribers were told of, to tell which keys changed since.
func (o *observer) deliveredHashes() map[deliveredKey]digest.Hash {
	hashes := map[deliveredKey]digest.Hash{}
	for i := range o.cw.Status.Subscribers {
		row := &o.cw.Status.Subscribers[i]
		for j := range row.Sources {
			s := &row.Sources[j]
			hashes[deliveredKey{row.Name, source.Ref{Kind: s.Kind, Name: s.Name}}] = digest.Hash(s.DeliveredHash)
		}
	}
	return hashes
}

type pairKey struct {
	target workload.Ref
	source source.Ref
}

// recordedHashes are the applied hashes by pair, to tell which keys changed since.
func (o *observer) recordedHashes() map[pairKey]digest.Hash {
	hashes := map[pairKey]digest.Hash{}
	for i := range o.cw.Status.Targets {
		t := &o.cw.Status.Targets[i]
		target := workload.Ref{APIVersion: t.APIVersion, Kind: t.Kind, Name: t.Name}
		for j := range t.Sources {
			s := &t.Sources[j]
			hashes[pairKey{target, source.Ref{Kind: s.Kind, Name: s.Name}}] = digest.Hash(s.AppliedHash)
		}
	}
	return hashes
}

// sourcesOf are the sources that a target depends on, without those that are ignored.
func (o *observer) sourcesOf(w *workload.Workload, follow v1alpha1.Follow) []source.Ref {
	var refs []source.Ref
	for _, ref := range o.order {
		if o.selected[ref].state == v1alpha1.SourceIgnored {
			continue
		}
		if follow == v1alpha1.FollowDeclared || w.Uses(ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

func (o *observer) pairOf(ref source.Ref, recorded digest.Hash) plan.Pair {
	s := o.selected[ref]
	pair := plan.Pair{Source: ref, State: s.state, RestartOn: []v1alpha1.Change{v1alpha1.Modified}}
	var keys []string
	if s.entry != nil {
		keys = s.entry.Keys
		pair.Selected = s.entry.Selector != nil
		if len(s.entry.RestartOn) > 0 {
			pair.RestartOn = s.entry.RestartOn
		}
	}
	if s.observed == nil {
		return pair
	}
	pair.Keys, pair.UID = keys, string(s.observed.UID)
	pair.Hash, pair.ResourceVersion = s.observed.Content.Hash(keys), s.observed.ResourceVersion
	if recorded != "" && recorded != pair.Hash {
		pair.ChangedKeys, pair.KeysKnown = o.sources.ChangedKeys(s.observed, keys, recorded)
	}
	return pair
}

// result is the observation.
func (o *observer) result() plan.Observation {
	o.out.OnlyTold = len(o.cw.Spec.Subscribers) > 0 && len(o.cw.Spec.Targets) == 0
	for _, ref := range o.order {
		s := o.selected[ref]
		observed := plan.Source{Ref: ref, State: s.state, ForgetAt: s.forgetAt}
		switch {
		case s.observed != nil:
			observed.Hash, observed.Writer = s.observed.Content.Hash(nil), s.observed.Writer
		case s.state == v1alpha1.SourceMissing:
			observed.Hint = o.nearestSource(ref)
		}
		o.out.Sources = append(o.out.Sources, observed)
	}
	return o.out
}

func (o *observer) nearestSource(ref source.Ref) string {
	sources := o.sources.List(o.namespace(), ref.Kind)
	names := make([]string, 0, len(sources))
	for _, s := range sources {
		names = append(names, s.Name)
	}
	return didYouMean(ref.Name, names)
}

func (o *observer) nearestWorkload(kind, name string) string {
	workloads := o.workloads.List(o.namespace(), kind)
	names := make([]string, 0, len(workloads))
	for _, w := range workloads {
		names = append(names, w.Name)
	}
	return didYouMean(name, names)
}

// didYouMean suggests the name that takes the fewest edits to get to, if they are few.
func didYouMean(name string, names []string) string {
	best, fewest := "", max(2, len(name)/3)+1
	slices.Sort(names)
	for _, candidate := range names {
		if edits := distance(name, candidate, fewest); edits < fewest {
			best, fewest = candidate, edits
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// distance is the Levenshtein distance of two names, or limit if it is at least that.
func distance(a, b string, limit int) int {
	if abs(len(a)-len(b)) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j+1]+1, row[j]+1)
		}
	}
	return min(row[len(b)], limit)
}

func abs(n int) int {
	return max(n, -n)
}
