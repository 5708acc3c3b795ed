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
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

const (
	// maxMatches is how many objects one selector may match, and how many sources and how many
	// targets a ConfigWatch may have.
	maxMatches = 1000
	// maxPairs is how many pairs of target and source a ConfigWatch may have, so that its status fits
	// the API server's limit for an object.
	maxPairs = 3000
	// maxObject is how many bytes an object may have, by etcd's default.
	maxObject = 3 << 19
	// leastRoom is how many bytes of that are kept for the part of the status that gives way, such as messages.
	leastRoom = 100_000
	// remembered is how long the record of a source that a selector matched is kept after it was
	// deleted, so that it is compared with what it was if it comes back (E6).
	remembered = time.Hour
)

// Sources are all ConfigMaps and Secrets.
type Sources interface {
	Get(namespace string, ref source.Ref) *source.Source
	List(namespace string, kind v1alpha1.SourceKind) []*source.Source
	Readable(kind v1alpha1.SourceKind, namespace string) error
	ChangedKeys(s *source.Source, keys []string, from digest.Hash) (changed []string, known bool)
}

// Workloads are all workloads.
type Workloads interface {
	Get(namespace, kind, name string) *workload.Workload
	List(namespace, kind string) []*workload.Workload
	Using(namespace string, ref source.Ref) []*workload.Workload
	Readable(kind, namespace string) error
}

// Observe says what a ConfigWatch selects. It fails if that can't be said yet, because the caches are
// not filled or the API server can't be reached; what only a human can mend is a problem in the result.
func Observe(cw *v1alpha1.ConfigWatch, sources Sources, workloads Workloads, now time.Time) (plan.Observation, error) {
	o := &observer{
		cw: cw, sources: sources, workloads: workloads, now: now,
		denied: map[string]error{}, selected: map[source.Ref]*selected{}, targets: map[workload.Ref]bool{},
	}
	if err := o.checkReadable(); err != nil {
		return plan.Observation{}, err
	}
	o.selectSources()
	o.selectTargets()
	o.pair()
	return o.result(), nil
}

// observer is one observation in the making.
type observer struct {
	cw        *v1alpha1.ConfigWatch
	sources   Sources
	workloads Workloads
	now       time.Time

	denied   map[string]error // kinds that may not be read
	selected map[source.Ref]*selected
	order    []source.Ref
	targets  map[workload.Ref]bool
	followed []v1alpha1.Follow // of out.Targets, in their order
	out      plan.Observation
}

// selected is a source, and the entry of the spec that governs it; nil where sources are omitted.
type selected struct {
	observed *source.Source
	state    v1alpha1.SourceState
	entry    *v1alpha1.SourceSelector
	forgetAt time.Time
}

func (o *observer) namespace() string {
	return o.cw.Namespace
}

func (o *observer) problem(reason, format string, args ...any) {
	o.out.Problems = append(o.out.Problems, plan.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (o *observer) incomplete(reason, format string, args ...any) {
	o.problem(reason, format, args...)
	o.out.Incomplete = true
}

// checkReadable tells kinds that may not be read (E11) from those that can't be read just now.
func (o *observer) checkReadable() error {
	for _, kind := range o.neededSourceKinds() {
		if err := o.check(string(kind), o.sources.Readable(kind, o.namespace())); err != nil {
			return err
		}
	}
	for _, kind := range o.neededWorkloadKinds() {
		if err := o.check(kind, o.workloads.Readable(kind, o.namespace())); err != nil {
			return err
		}
	}
	return nil
}

func (o *observer) check(kind string, err error) error {
	if err == nil {
		return nil
	}
	if !apierrors.IsForbidden(err) {
		return err
	}
	o.denied[kind] = err
	o.problem(v1alpha1.ReasonPermissionDenied,
		"the operator may not read every %s it needs: its role needs list and watch (%s)", kind, err)
	return nil
}

func (o *observer) neededSourceKinds() []v1alpha1.SourceKind {
	if len(o.cw.Spec.Sources) == 0 {
		return []v1alpha1.SourceKind{v1alpha1.ConfigMap, v1alpha1.Secret}
	}
	var kinds []v1alpha1.SourceKind
	for i := range o.cw.Spec.Sources {
		kinds = append(kinds, o.cw.Spec.Sources[i].Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func (o *observer) neededWorkloadKinds() []string {
	if o.cw.Spec.Mode == v1alpha1.ModeObserve {
		return nil
	}
	if len(o.cw.Spec.Targets) == 0 {
		return workload.Kinds()
	}
	var kinds []string
	for i := range o.cw.Spec.Targets {
		kinds = append(kinds, o.cw.Spec.Targets[i].Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// selectSources selects what the spec lists. Where it lists nothing, sources are selected as targets
// turn out to reference them.
func (o *observer) selectSources() {
	for i := range o.cw.Spec.Sources {
		entry := &o.cw.Spec.Sources[i]
		if entry.Name != "" {
			o.selectSource(source.Ref{Kind: entry.Kind, Name: entry.Name}, entry)
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(entry.Selector)
		if err != nil {
			o.incomplete(v1alpha1.ReasonInvalidSelector, "spec.sources[%d].selector can't be used: %v", i, err)
			continue
		}
		o.selectMatching(i, entry, selector)
	}
	o.selectRemembered()
}

func (o *observer) selectMatching(i int, entry *v1alpha1.SourceSelector, selector labels.Selector) {
	if o.denied[string(entry.Kind)] != nil {
		o.selectRecorded(entry)
		return
	}
	var names []string
	for _, s := range o.sources.List(o.namespace(), entry.Kind) {
		if selector.Matches(labels.Set(s.Labels)) && !s.Ignored {
			names = append(names, s.Name)
		}
	}
	if len(names) > maxMatches {
		o.incomplete(v1alpha1.ReasonTooManyMatches,
			"spec.sources[%d].selector matches %d %ss: narrow it to at most %d", i, len(names), entry.Kind, maxMatches)
		return
	}
	slices.Sort(names)
	for _, name := range names {
		o.selectSource(source.Ref{Kind: entry.Kind, Name: name}, entry)
	}
}

// selectRecorded stands for the matches of a selector while they can't be read.
func (o *observer) selectRecorded(entry *v1alpha1.SourceSelector) {
	for i := range o.cw.Status.Sources {
		if s := &o.cw.Status.Sources[i]; s.Kind == entry.Kind {
			o.selectSource(source.Ref{Kind: s.Kind, Name: s.Name}, entry)
		}
	}
}

// selectRemembered selects sources that a selector matched and that were deleted not long ago.
func (o *observer) selectRemembered() {
	for i := range o.cw.Status.Sources {
		recorded := &o.cw.Status.Sources[i]
		ref := source.Ref{Kind: recorded.Kind, Name: recorded.Name}
		entry := o.selectorOf(ref.Kind)
		if entry == nil || o.selected[ref] != nil {
			continue
		}
		if present := o.sources.Get(o.namespace(), ref); present != nil {
			// It may have been created again since its kind was listed. To take it for one that is no longer
			// selected would be to forget what it was, and to miss the change.
			if matching := o.matching(present); matching != nil {
				o.selectSource(ref, matching)
			}
			continue
		}
		if recorded.Hash == "" {
			continue // it was named, and never existed: there is nothing to compare with
		}
		deleted := o.now
		if recorded.State == v1alpha1.SourceMissing && recorded.LastChangeTime != nil {
			deleted = recorded.LastChangeTime.Time
		}
		if forgetAt := deleted.Add(remembered); forgetAt.After(o.now) {
			o.selectSource(ref, entry)
			o.selected[ref].forgetAt = forgetAt
		}
	}
}

// matching is the first entry whose selector matches a source, nil if there is none or if that can't be said.
func (o *observer) matching(s *source.Source) *v1alpha1.SourceSelector {
	if o.out.Incomplete || s.Ignored {
		return nil
	}
	for i := range o.cw.Spec.Sources {
		entry := &o.cw.Spec.Sources[i]
		if entry.Kind != s.Kind || entry.Selector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(entry.Selector)
		if err == nil && selector.Matches(labels.Set(s.Labels)) {
			return entry
		}
	}
	return nil
}

// selectorOf is the first entry that selects sources of the kind by labels.
func (o *observer) selectorOf(kind v1alpha1.SourceKind) *v1alpha1.SourceSelector {
	i := slices.IndexFunc(o.cw.Spec.Sources, func(s v1alpha1.SourceSelector) bool { return s.Kind == kind && s.Selector != nil })
	if i < 0 {
		return nil
	}
	return &o.cw.Spec.Sources[i]
}

// selectSource adds a source, unless an entry before has.
func (o *observer) selectSource(ref source.Ref, entry *v1alpha1.SourceSelector) {
	if o.selected[ref] != nil {
		return
	}
	s := &selected{entry: entry, state: v1alpha1.SourcePresent}
	s.observed = o.sources.Get(o.namespace(), ref)
	switch {
	case o.denied[string(ref.Kind)] != nil:
		s.state, s.observed = v1alpha1.SourceUnreadable, nil
	case s.observed == nil:
		s.state = v1alpha1.SourceMissing
	case s.observed.Ignored:
		s.state = v1alpha1.SourceIgnored
	}
	o.selected[ref] = s
	o.order = append(o.order, ref)
}

// selectTargets selects the workloads that the spec lists, or, where it lists none, all that reference
// a source. In mode Observe there are no targets.
func (o *observer) selectTargets() {
	if o.cw.Spec.Mode == v1alpha1.ModeObserve {
		return
	}
	if len(o.cw.Spec.Targets) == 0 {
		o.selectUsing()
		return
	}
	for i := range o.cw.Spec.Targets {
		entry := &o.cw.Spec.Targets[i]
		follow := o.follow(entry)
		if entry.Name != "" {
			o.selectTarget(entry.Kind, entry.Name, o.workloads.Get(o.namespace(), entry.Kind, entry.Name), follow)
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(entry.Selector)
		if err != nil {
			o.incomplete(v1alpha1.ReasonInvalidSelector, "spec.targets[%d].selector can't be used: %v", i, err)
			continue
		}
		o.selectMatchingTargets(i, entry, selector, follow)
	}
}

// follow is which sources restart the targets of an entry.
func (o *observer) follow(entry *v1alpha1.TargetSelector) v1alpha1.Follow {
	listed := v1alpha1.FollowReferenced
	if len(o.cw.Spec.Sources) > 0 {
		listed = v1alpha1.FollowDeclared
	}
	return cmp.Or(entry.Follow, listed)
}

func (o *observer) selectMatchingTargets(i int, entry *v1alpha1.TargetSelector, selector labels.Selector, follow v1alpha1.Follow) {
	if o.denied[entry.Kind] != nil {
		o.selectRecordedTargets(entry.Kind, follow)
		return
	}
	var matching []*workload.Workload
	for _, w := range o.workloads.List(o.namespace(), entry.Kind) {
		if selector.Matches(labels.Set(w.Labels)) && !w.Ignored {
			matching = append(matching, w)
		}
	}
	if len(matching) > maxMatches {
		o.incomplete(v1alpha1.ReasonTooManyMatches,
			"spec.targets[%d].selector matches %d %ss: narrow it to at most %d", i, len(matching), entry.Kind, maxMatches)
		return
	}
	o.selectAll(matching, follow)
}

func (o *observer) selectUsing() {
	var using []*workload.Workload
	for _, ref := range o.order {
		if o.selected[ref].state == v1alpha1.SourceIgnored {
			continue
		}
		for _, w := range o.workloads.Using(o.namespace(), ref) {
			if !w.Ignored {
				using = append(using, w)
			}
		}
	}
	for _, kind := range workload.Kinds() {
		if o.denied[kind] != nil {
			o.selectRecordedTargets(kind, v1alpha1.FollowReferenced)
		}
	}
	o.selectAll(using, v1alpha1.FollowReferenced)
}

// selectRecordedTargets stands for workloads of a kind while it can't be read.
func (o *observer) selectRecordedTargets(kind string, follow v1alpha1.Follow) {
	for i := range o.cw.Status.Targets {
		if t := &o.cw.Status.Targets[i]; t.Kind == kind {
			o.selectTarget(kind, t.Name, nil, follow)
		}
	}
}

func (o *observer) selectAll(workloads []*workload.Workload, follow v1alpha1.Follow) {
	kinds := workload.Kinds()
	slices.SortFunc(workloads, func(a, b *workload.Workload) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), strings.Compare(a.Name, b.Name))
	})
	for _, w := range workloads {
		o.selectTarget(w.Kind, w.Name, w, follow)
	}
}

// selectTarget adds a workload, unless an entry before has.
func (o *observer) selectTarget(kind, name string, w *workload.Workload, follow v1alpha1.Follow) {
	ref := workload.Ref{APIVersion: workload.APIVersion(kind), Kind: kind, Name: name}
	if o.targets[ref] {
		return
	}
	o.targets[ref] = true
	target := plan.Target{Ref: ref, Workload: w}
	switch {
	case o.denied[kind] != nil:
		target.Workload, target.Unreadable = nil, true
	case w == nil:
		target.Hint = o.nearestWorkload(kind, name)
	case len(o.cw.Spec.Sources) == 0:
		for _, used := range w.References {
			o.selectSource(used, nil)
		}
	}
	o.out.Targets = append(o.out.Targets, target)
	o.followed = append(o.followed, follow)
}
