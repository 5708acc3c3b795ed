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

package window_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ktechhub/configwatch/internal/window"
)

// The zones are changed by an hour, half an hour, two, three and a whole day; at midnight, at 00:01, in
// the night and in the afternoon; twice a year, four times, once for all, and never.
var zones = []string{
	"", "UTC", "Europe/Berlin", "Europe/Dublin", "Europe/London", "America/New_York", "America/Sao_Paulo",
	"America/Havana", "America/St_Johns", "America/Caracas", "America/Nuuk", "America/Scoresbysund",
	"Australia/Lord_Howe", "Antarctica/Troll", "Antarctica/Casey", "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut",
	"Asia/Gaza", "Asia/Kathmandu", "Asia/Pyongyang", "Asia/Tehran", "Pacific/Apia", "Pacific/Chatham", "Pacific/Kwajalein",
}

// FuzzWindow compares a window with a clock that is looked at every minute.
func FuzzWindow(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(randomBytes(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) { compare(t, in) })
}

func TestE14AnyWindowOpensAsTheClockShows(t *testing.T) {
	for seed := range uint64(250) {
		if compare(t, randomBytes(seed)); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzParse: whatever is written, there is an error that helps, or a window that opens again and again.
func FuzzParse(f *testing.F) {
	for _, schedule := range []string{
		"0 2 * * 1-5", "*/15 9-17 1,15 JAN-MAR sun", "0 0 29 2 *", "0 0 31 2 *", "61 2 * * *", "@daily", "TZ=UTC",
		"0 TZ=x * * *", "*-3 , ? */0 1/99999999999999999999", "", "\x00 \xff é 1 2",
	} {
		f.Add(schedule, int64(time.Hour), "Europe/Berlin", int64(1_800_000_000))
	}
	f.Add("* * * * *", int64(-1), "Local", int64(0))
	f.Add("* * * * *", int64(1<<62), "../etc/passwd", int64(-1<<33))
	f.Fuzz(func(t *testing.T, schedule string, duration int64, zone string, unix int64) {
		now := time.Unix(unix%(1<<33), 0)
		w, err := window.Parse(schedule, time.Duration(duration), zone)
		if err != nil {
			if !strings.Contains(err.Error(), "write ") {
				t.Errorf("no help: %s", err)
			}
			return
		}
		for range 3 {
			next, ok := window.Windows{w}.Next(now)
			if !ok || !next.After(now) || !(window.Windows{w}).Open(next) {
				t.Fatalf("after %s it opens %s", now, next)
			}
			now = next
		}
	})
}

func randomBytes(seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	in := make([]byte, 64)
	for i := range in {
		in[i] = byte(random.Uint32())
	}
	return in
}

// compare checks a window, and instants near the openings of some days, that the bytes stand for.
func compare(t *testing.T, in []byte) {
	b := bytesOf(in)
	c := b.calendar()
	zone := choose(&b, zones...)
	duration := time.Duration(choose(&b, 1, 10, 59, 60, 61, 120, 720, 1440, 1500, 4320)) * time.Minute
	w, err := window.Parse(c.String(), duration, zone)
	if err != nil {
		t.Fatal(err)
	}
	now := b.instant(t, zone)
	from, to := now.Add(-duration-12*time.Hour), now.Add(48*time.Hour)
	openings := c.openings(from, to)
	for _, at := range instants(now, openings, duration) {
		if at.Before(from.Add(duration)) || !at.Before(to) {
			continue
		}
		checkOpen(t, w, at, duration, openings)
		checkNext(t, w, at, to, openings)
	}
	if t.Failed() {
		t.Fatalf("the window %q of %s in %s, around %s", c, duration, zone, now)
	}
}

// instants are those at which most can go wrong: when something opens or closes, and just before.
func instants(now time.Time, openings []time.Time, duration time.Duration) []time.Time {
	found := []time.Time{now}
	for _, opening := range openings[:min(len(openings), 50)] {
		closing := opening.Add(duration)
		found = append(found, opening.Add(-1), opening, opening.Add(1), closing.Add(-1), closing)
	}
	return found
}

func checkOpen(t *testing.T, w window.Window, at time.Time, duration time.Duration, openings []time.Time) {
	want := slices.ContainsFunc(openings, func(s time.Time) bool { return !s.After(at) && at.Before(s.Add(duration)) })
	if got := (window.Windows{w}).Open(at); got != want {
		t.Errorf("at %s it is open: %t", at, got)
	}
}

func checkNext(t *testing.T, w window.Window, at, to time.Time, openings []time.Time) {
	got, _ := window.Windows{w}.Next(at)
	i := slices.IndexFunc(openings, func(s time.Time) bool { return s.After(at) })
	switch {
	case i < 0 && got.Before(to):
		t.Errorf("after %s it opens %s, which it should not", at, got)
	case i >= 0 && !got.Equal(openings[i]):
		t.Errorf("after %s it opens %s, not %s", at, got, openings[i])
	}
}

// calendar is a schedule, written down as sets.
type calendar struct {
	minute, hour, day, month, weekday set
}

// set is a field of a schedule: its text, and the values that it stands for.
type set struct {
	text   string
	values []int
}

func (c calendar) String() string {
	return strings.Join([]string{c.minute.text, c.hour.text, c.day.text, c.month.text, c.weekday.text}, " ")
}

// matches tells whether a local time is in the schedule. If both kinds of day are restricted, either counts.
func (c calendar) matches(local time.Time) bool {
	day, weekday := slices.Contains(c.day.values, local.Day()), slices.Contains(c.weekday.values, int(local.Weekday()))
	onDay := day && weekday
	if c.day.text != "*" && c.weekday.text != "*" {
		onDay = day || weekday
	}
	return onDay && slices.Contains(c.month.values, int(local.Month())) &&
		slices.Contains(c.hour.values, local.Hour()) && slices.Contains(c.minute.values, local.Minute())
}

// openings are those in a time, found by looking at the clock once a minute: whatever is scheduled for a
// minute up to the one it shows, and hasn't been shown before, opens now.
func (c calendar) openings(from, to time.Time) []time.Time {
	var found []time.Time
	// A clock that is set back goes through times that it has shown before: look from well before.
	at := from.Add(-30 * time.Hour).Truncate(time.Minute)
	shown := shownAt(at)
	for ; at.Before(to); at = at.Add(time.Minute) {
		now := shownAt(at)
		opens := len(c.hour.values) == 24 && c.matches(now)
		for shown.Before(now) {
			shown = shown.Add(time.Minute)
			opens = opens || c.matches(shown)
		}
		if opens && !at.Before(from) {
			found = append(found, at)
		}
	}
	return found
}

// shownAt is what the clock shows.
func shownAt(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
}

// bytesOf are bytes to make choices by.
type bytesOf []byte

func (b *bytesOf) next(n int) int {
	if len(*b) == 0 {
		return 0
	}
	choice := int((*b)[0]) % n
	*b = (*b)[1:]
	return choice
}

func choose[T any](b *bytesOf, from ...T) T {
	return from[b.next(len(from))]
}

func (b *bytesOf) calendar() calendar {
	c := calendar{
		minute: b.set(0, 59), hour: b.set(0, 23), day: b.set(1, 31), month: b.set(1, 12), weekday: b.set(0, 6),
	}
	if b.next(4) > 0 { // Else there is seldom anything to see on the days that are looked at.
		c.month = all(1, 12)
	}
	if b.next(2) > 0 {
		c.day, c.weekday = all(1, 31), all(0, 6)
	}
	if !slices.ContainsFunc(c.day.values, func(d int) bool { return d < 29 }) {
		c.month = all(1, 12) // There is no February 30th.
	}
	return c
}

func (b *bytesOf) set(low, high int) set {
	first := low + b.next(high-low+1)
	last := first + b.next(high-first+1)
	switch b.next(6) {
	case 0:
		return all(low, high)
	case 1:
		step := 2 + b.next(20)
		return set{fmt.Sprintf("*/%d", step), steps(low, high, step)}
	case 2:
		return set{fmt.Sprintf("%d-%d", first, last), steps(first, last, 1)}
	case 3:
		return set{fmt.Sprintf("%d,%d", last, first), []int{first, last}}
	case 4:
		return set{fmt.Sprintf("%d-%d", low, high), steps(low, high, 1)}
	default:
		return set{fmt.Sprint(first), []int{first}}
	}
}

func all(low, high int) set {
	return set{"*", steps(low, high, 1)}
}

func steps(low, high, step int) []int {
	var values []int
	for value := low; value <= high; value += step {
		values = append(values, value)
	}
	return values
}

// instant is one from 1975 to 2102, most often within a day of a change of the clock.
func (b *bytesOf) instant(t *testing.T, zone string) time.Time {
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(1975+b.next(128), time.Month(1+b.next(12)), 1+b.next(31), 0, 0, 0, 0, time.UTC).In(location)
	if b.next(4) > 0 {
		at = nextChange(at)
	}
	return at.Add(time.Duration(b.next(48)-24)*time.Hour + time.Duration(b.next(60))*time.Minute +
		time.Duration(b.next(60))*time.Second + time.Duration(b.next(2))*time.Millisecond)
}

// nextChange is the day before the clock is changed, or the same day if it isn't for a year.
func nextChange(t time.Time) time.Time {
	_, before := t.Zone()
	for day := range 366 {
		next := t.AddDate(0, 0, day+1)
		if _, after := next.Zone(); after != before {
			return t.AddDate(0, 0, day)
		}
	}
	return t
}
