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
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// Window is a time in which targets may be restarted, that comes again and again. It is made by
// Parse, and safe for concurrent use.
type Window struct {
	schedule  cron.Schedule
	everyHour bool
	duration  time.Duration
	location  *time.Location
}

// Parse makes a window that opens by a schedule, in a time zone, for a duration.
//
// The schedule has the five fields of cron: minute, hour, day of month, month and day of week. If
// both days are restricted, either of them counts, as in cron. The duration is a minute or more; if
// it reaches over the next opening, the window stays open. The time zone is an IANA name, such as
// Europe/Berlin; empty is UTC.
//
// An error names the field of the spec, what is wrong with it and what to write instead. A schedule
// that never comes, such as that of February 31st, is one.
func Parse(schedule string, duration time.Duration, timeZone string) (Window, error) {
	parsed, err := parseSchedule(schedule)
	if err != nil {
		return Window{}, fmt.Errorf("schedule %q: %w", schedule, err)
	}
	if duration < time.Minute {
		return Window{}, fmt.Errorf("durationMinutes: the window would be open for %s; write 1 or more", duration)
	}
	location, err := loadLocation(timeZone)
	if err != nil {
		return Window{}, fmt.Errorf("timeZone %q: %w", timeZone, err)
	}
	return Window{schedule: parsed, everyHour: namesEveryHour(parsed), duration: duration, location: location}, nil
}

// open tells whether the window has opened at some instant s such that s <= now < s+duration.
func (w Window) open(now time.Time) bool {
	return !w.next(now.Add(-w.duration)).After(now)
}

// next is the first opening after t.
func (w Window) next(t time.Time) time.Time {
	t = t.In(w.location)
	opening := firstShowing(w.scheduled(latestShown(t)), w.location)
	if w.everyHour {
		return w.shownAgain(t, opening)
	}
	return opening
}

// shownAgain is the first instant after t, and before the given one, at which the clock shows a
// scheduled time that it has shown already; if there is none, it is the given one.
func (w Window) shownAgain(t, before time.Time) time.Time {
	shown := local(t)
	for at := t; at.Before(before) && at.Sub(t) < maxChange; {
		change := unchangedUntil(at)
		again := showing(w.scheduled(shown), at)
		if again.Before(before) && again.Before(change) {
			return again
		}
		at, shown = change, local(change).Add(-1)
	}
	return before
}

// scheduled is the first local time of the schedule after another.
func (w Window) scheduled(after time.Time) time.Time {
	next := w.schedule.Next(after)
	for next.IsZero() {
		// cron looks five years ahead. After February 29th, 2096, there is none for eight.
		after = after.AddDate(5, 0, 0)
		next = w.schedule.Next(after)
	}
	return next
}

// Windows are those of a ConfigWatch.
type Windows []Window

// Open tells whether one of the windows is open: whether it has opened at some instant s such that
// s <= now < s+duration. Where there are no windows, it is always open.
func (w Windows) Open(now time.Time) bool {
	for _, window := range w {
		if window.open(now) {
			return true
		}
	}
	return len(w) == 0
}

// Next is the earliest opening after now of any of the windows, be one open already or not. It is in
// the time zone of the window that opens. Where there are no windows, there is none.
func (w Windows) Next(now time.Time) (opening time.Time, ok bool) {
	for _, window := range w {
		if next := window.next(now); !ok || next.Before(opening) {
			opening, ok = next, true
		}
	}
	return opening, ok
}

// Format writes an opening for people: 2026-12-01T02:00 Europe/Berlin.
func Format(opening time.Time) string {
	return opening.Format("2006-01-02T15:04 ") + opening.Location().String()
}
