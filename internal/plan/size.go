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

import "github.com/ktechhub/configwatch/internal/source"

// Sizes are in bytes, as the API server stores an object, without names. They include a row's key in managedFields.
const (
	// sizeOfConditions is that of all that isn't in rows.
	sizeOfConditions = 3000
	sizeOfSource     = 210
	// sizeOfTarget is that of one that is slowed down, rolls out, and waits.
	sizeOfTarget = 870
	sizeOfPair   = 85
	// sizeOfSubscriber is that of one that fails, with its message.
	sizeOfSubscriber = 350 + maxMessage
	// sizeOfTold is that of a source that a subscriber knows, and is to be told of.
	sizeOfTold = 310
	// sizeOfUnrepeatable is that of a target's event that waits, with the target's name.
	sizeOfUnrepeatable = 260 + longestWaitingMessage + 253
)

// StatusSize is how many bytes a status of so many rows may come to have, without what gives way if there is little
// Room: messages of targets, names of keys, and events that no later pass could make again.
func StatusSize(sources []source.Ref, targets []Target, subscriptions []Subscription) int {
	size := sizeOfConditions
	for _, ref := range sources {
		size += sizeOfSource + 2*len(ref.Name)
	}
	for i := range targets {
		size += sizeOfTarget + 2*len(targets[i].Name)
		for j := range targets[i].Pairs {
			size += sizeOfPair + len(targets[i].Pairs[j].Source.Name)
		}
	}
	for i := range subscriptions {
		size += sizeOfSubscriber
		for j := range subscriptions[i].Pairs {
			size += sizeOfTold + 2*len(subscriptions[i].Pairs[j].Source.Name)
		}
	}
	return size
}

// fitting is a limit of what gives way, made smaller if all of that together needs more room than there is.
func (o *Observation) fitting(limit int) int {
	needed := mostMessages + mostMessages/2 // why a target is slowed down is half as long
	if len(o.Subscriptions) > 0 {
		needed += mostKeyBytes + mostUnrepeatableInAll*sizeOfUnrepeatable
	}
	if o.Room == 0 || o.Room >= needed {
		return limit
	}
	return limit * o.Room / needed
}
