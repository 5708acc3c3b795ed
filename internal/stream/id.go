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

package stream

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
)

// noID is that of a place from which a stream can't be resumed: whoever comes back with it is told of a Gap. An empty
// one would have a client come back as if it had never been there, and what it missed would be lost silently.
const noID = "-"

// mostTold is how many objects an id may name. A client that is told of more objects' later versions at once, which is
// rare, can't resume until it has come to some of these.
const mostTold = 16

// place is where a client is in the stream, and what it has to know to go on from there. As text it is the id of an
// event, such as
//
//	ConfigMap=812,Secret=790
//
// which every replica understands. A version of an object stands beside those of the kinds if the client was told of
// it with data, and is not there yet:
//
//	ConfigMap=812,Secret=790,bc1faff6-8c0d-46af-ac34-d61765e03821=815
type place struct {
	position feed.Position
	// told is the version up to which objects have been told, where that is beyond the position (F8).
	told map[types.UID]string
}

// id is the place as text. It is noID if there is no going on from it.
func (p *place) id() string {
	if !p.position.IsKnown() || len(p.told) > mostTold {
		return noID
	}
	var id strings.Builder
	for n, reached := range p.position {
		if n > 0 {
			id.WriteByte(',')
		}
		id.WriteString(string(reached.Kind))
		if reached.Namespace != "" {
			id.WriteString("/" + reached.Namespace)
		}
		id.WriteString("=" + reached.Version)
	}
	for _, uid := range slices.Sorted(maps.Keys(p.told)) {
		id.WriteString("," + string(uid) + "=" + p.told[uid])
	}
	return id.String()
}

// parsePlace reads an id. What is none, such as that of an earlier version, has no position.
func parsePlace(id string) place {
	var p place
	for entry := range strings.SplitSeq(id, ",") {
		what, version, _ := strings.Cut(entry, "=")
		if !isNumber(version) {
			return place{}
		}
		kind, namespace, _ := strings.Cut(what, "/")
		switch v1alpha1.SourceKind(kind) {
		case v1alpha1.ConfigMap, v1alpha1.Secret:
			if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 || p.position.Has(v1alpha1.SourceKind(kind), namespace) {
				return place{}
			}
			p.position = append(p.position, feed.Reached{
				Kind: v1alpha1.SourceKind(kind), Namespace: namespace, Version: version,
			})
		default:
			_, repeated := p.told[types.UID(what)]
			if len(validation.IsDNS1123Label(what)) > 0 || repeated || len(p.told) == mostTold {
				return place{}
			}
			p.tell(types.UID(what), version)
		}
	}
	return p
}

// isNumber tells whether it is a decimal number as resource versions are.
func isNumber(text string) bool {
	return text != "" && text[0] != '0' && strings.Trim(text, "0123456789") == ""
}

// tell takes in that an object was told up to a version.
func (p *place) tell(uid types.UID, version string) {
	if p.told == nil {
		p.told = map[types.UID]string{}
	}
	p.told[uid] = version
}

// knows tells whether a change was told with an earlier one, as the object had moved on by the time that its data
// was read (F8).
func (p *place) knows(change *feed.Change) bool {
	version, ok := p.told[change.UID]
	return ok && change.ResourceVersion != "" && !feed.Earlier(version, change.ResourceVersion)
}

// move takes in that a change was told, or that there is no need to.
func (p *place) move(change *feed.Change) {
	if change.Step == nil {
		return // one that was there
	}
	p.position.Advance(change.Step)
	p.prune()
}

// prune forgets the objects that the position has come to.
func (p *place) prune() {
	maps.DeleteFunc(p.told, func(_ types.UID, version string) bool {
		for _, reached := range p.position {
			if reached.Kind == v1alpha1.ConfigMap && (reached.Version == "" || feed.Earlier(reached.Version, version)) {
				return false
			}
		}
		return true
	})
}
