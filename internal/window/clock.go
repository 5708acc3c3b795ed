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

package window

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // So that the same names are known wherever the operator runs.
)

// The cron package could count in a time zone itself, but where clocks are changed it loses openings,
// even some at times that exist, makes others twice, and never returns for a day that was left out.
// So it counts in local time, of which every day has 24 hours, and what follows finds out when the
// clock shows it. A local time is kept as if it were in UTC.

const (
	// maxOffset is more than any clock is ahead of UTC, or behind it (RFC 8536, section 3.2).
	maxOffset = 26 * time.Hour
	// maxChange is more than any clock is changed by.
	maxChange = 2 * maxOffset
)

// loadLocation is the time zone of a name; empty is UTC.
func loadLocation(name string) (*time.Location, error) {
	const instead = `write an IANA name such as "Europe/Berlin", or leave it out for UTC`
	if name == "Local" || name == "localtime" {
		return nil, errors.New("that depends on where the operator runs; " + instead)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		// Its words depend on the files of the machine.
		return nil, fmt.Errorf("no such time zone; %s", instead)
	}
	return location, nil
}

// local is what the clock of t's location shows at t.
func local(t time.Time) time.Time {
	return t.Add(offset(t)).UTC()
}

// showing is the instant at which the clock shows a local time, if it is set as at the given instant.
func showing(wanted, set time.Time) time.Time {
	return wanted.Add(-offset(set)).In(set.Location())
}

// offset is how far the clock of t's location is ahead of UTC.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// unchangedUntil is an instant after t until which the clock of t's location isn't changed.
func unchangedUntil(t time.Time) time.Time {
	const day = 24 * time.Hour
	if _, end := t.ZoneBounds(); end.After(t) {
		return end
	}
	// It is never changed again; or t is in the last day, in UTC, of a leap year, which ZoneBounds
	// leaves out of the time that the day belongs to (https://go.dev/issue/81583).
	return t.Truncate(day).Add(day)
}

// latestShown is the latest local time that the clock of t's location has shown until t. It is not
// what it shows at t while it goes through a time again.
func latestShown(t time.Time) time.Time {
	latest := local(t)
	for change := unchangedUntil(t.Add(-maxChange)); !change.After(t); change = unchangedUntil(change) {
		if shown := local(change.Add(-1)); shown.After(latest) {
			latest = shown
		}
	}
	return latest
}

// firstShowing is the first instant at which the clock of a location shows a local time or a later
// one: the first of two, or the end of the gap that the time is in.
func firstShowing(wanted time.Time, location *time.Location) time.Time {
	at := wanted.Add(-maxOffset).In(location)
	for {
		change, shows := unchangedUntil(at), showing(wanted, at)
		switch {
		case shows.Before(at):
			return at
		case shows.Before(change):
			return shows
		}
		at = change
	}
}
