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
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/window"
)

const (
	berlin   = "Europe/Berlin"
	lordHowe = "Australia/Lord_Howe"
	saoPaulo = "America/Sao_Paulo"
	apia     = "Pacific/Apia"
)

func TestE14AWindowIsOpenFromItsStartForItsDuration(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule string
		minutes  int
		at       string
		want     bool
	}{
		"just before it opens":                  {"0 2 * * 1-5", 120, "2026-12-01T01:59:59.999999999+01:00", false},
		"as it opens":                           {"0 2 * * 1-5", 120, "2026-12-01T02:00:00+01:00", true},
		"in it":                                 {"0 2 * * 1-5", 120, "2026-12-01T03:15:30+01:00", true},
		"just before it closes":                 {"0 2 * * 1-5", 120, "2026-12-01T03:59:59.999999999+01:00", true},
		"as it closes":                          {"0 2 * * 1-5", 120, "2026-12-01T04:00:00+01:00", false},
		"the same instant in UTC":               {"0 2 * * 1-5", 120, "2026-12-01T01:00:00Z", true},
		"on a Saturday":                         {"0 2 * * 1-5", 120, "2026-12-05T03:00:00+01:00", false},
		"after midnight":                        {"0 22 * * 5", 240, "2026-12-05T01:59:00+01:00", true},
		"on the last day of some":               {"0 22 * * 5", 60 * 60, "2026-12-07T09:59:00+01:00", true},
		"after the last day of some":            {"0 22 * * 5", 60 * 60, "2026-12-07T10:00:00+01:00", false},
		"in the next one, before this closes":   {"0 2 * * *", 36 * 60, "2026-12-02T20:00:00+01:00", true},
		"years after, of a day in four years":   {"0 0 29 2 *", 60, "2026-02-28T23:59:59+01:00", false},
		"on such a day":                         {"0 0 29 2 *", 60, "2028-02-29T00:59:59+01:00", true},
		"on either day, if both are restricted": {"0 2 13 * 5", 60, "2026-12-11T02:30:00+01:00", true},
	} {
		t.Run(name, func(t *testing.T) {
			windows := window.Windows{parsed(t, tc.schedule, tc.minutes, berlin)}
			NewWithT(t).Expect(windows.Open(instant(t, tc.at))).To(Equal(tc.want))
		})
	}
}

func TestE14EveryOpeningIsMadeOnceWhereClocksAreChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule, zone, after string
		want                  []string
	}{
		"a time that doesn't exist": {
			"30 2 * * *", berlin, "2026-03-28T02:30:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		"a time that doesn't exist, of a weekly window": {
			"30 2 * * SUN", berlin, "2026-03-22T02:30:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-04-05T02:30:00+02:00"},
		},
		"times that don't exist": {
			"*/15 2 * * *", berlin, "2026-03-28T02:45:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"},
		},
		"times that don't exist, and the end of the gap": {
			"0 2,3 * * *", berlin, "2026-03-28T03:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"},
		},
		"the last minute before a gap": {
			"59 1 * * *", berlin, "2026-03-28T01:59:00+01:00",
			[]string{"2026-03-29T01:59:00+01:00", "2026-03-30T01:59:00+02:00"},
		},
		"a time that exists twice": {
			"30 2 * * *", berlin, "2026-10-24T02:30:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		"a time that exists twice, seen from the second": {
			"30 2 * * *", berlin, "2026-10-25T02:15:00+01:00",
			[]string{"2026-10-26T02:30:00+01:00"},
		},
		"the end of the repeated hour": {
			"0 3 * * *", berlin, "2026-10-24T03:00:00+02:00",
			[]string{"2026-10-25T03:00:00+01:00", "2026-10-26T03:00:00+01:00"},
		},
		"every hour, one of which doesn't exist": {
			"30 * * * *", berlin, "2026-03-29T00:30:00+01:00",
			[]string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"},
		},
		"every hour, one of which exists twice": {
			"30 * * * *", berlin, "2026-10-25T01:30:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"},
		},
		"every hour but one": {
			"30 0-22 * * *", berlin, "2026-10-25T01:30:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T03:30:00+01:00"},
		},
		"every hour of a day in the year, which exists twice": {
			"0 0-23 25 10 *", berlin, "2026-10-25T01:00:00+02:00",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"},
		},
		"a gap of half an hour": {
			"15 2 * * *", lordHowe, "2026-10-03T02:15:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		"a time after a gap of half an hour": {
			"0 3 * * *", lordHowe, "2026-10-03T03:00:00+10:30",
			[]string{"2026-10-04T03:00:00+11:00", "2026-10-05T03:00:00+11:00"},
		},
		"half an hour twice": {
			"45 1 * * *", lordHowe, "2026-04-04T01:45:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
		},
		"half an hour twice, of every hour": {
			"15,45 * * * *", lordHowe, "2026-04-05T01:15:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30", "2026-04-05T02:15:00+10:30"},
		},
		"half an hour twice, with nothing in it, of every hour": {
			"15 * * * *", lordHowe, "2026-04-05T01:15:00+11:00",
			[]string{"2026-04-05T02:15:00+10:30", "2026-04-05T03:15:00+10:30"},
		},
		"a midnight that doesn't exist": {
			"0 0 4 11 *", saoPaulo, "2018-01-01T00:00:00-02:00",
			[]string{"2018-11-04T01:00:00-02:00", "2019-11-04T00:00:00-03:00"},
		},
		"the hour before a midnight, twice": {
			"30 23 * * *", saoPaulo, "2018-02-16T23:30:00-02:00",
			[]string{"2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00"},
		},
		"a midnight after the hour that comes twice": {
			"0 0 * * *", saoPaulo, "2018-02-17T00:00:00-02:00",
			[]string{"2018-02-18T00:00:00-03:00", "2018-02-19T00:00:00-03:00"},
		},
		"a day that doesn't exist": {
			"0 2 * * *", apia, "2011-12-29T02:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2011-12-31T02:00:00+14:00"},
		},
		"a day that doesn't exist, of a yearly window": {
			"0 2 30 12 *", apia, "2011-01-01T00:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2012-12-30T02:00:00+14:00"},
		},
		"a clock that is never changed": {
			"30 2 * * *", "Asia/Kathmandu", "2026-03-28T02:30:00+05:45",
			[]string{"2026-03-29T02:30:00+05:45", "2026-03-30T02:30:00+05:45"},
		},
		"no time zone": {
			"30 2 * * *", "", "2026-03-28T02:30:00Z",
			[]string{"2026-03-29T02:30:00Z", "2026-03-30T02:30:00Z"},
		},
		"the last day of a leap year": {
			"0 2 * * *", berlin, "2040-12-30T02:00:00+01:00",
			[]string{"2040-12-31T02:00:00+01:00", "2041-01-01T02:00:00+01:00"},
		},
		"every hour of the last day of a leap year": {
			"0 * * * *", berlin, "2040-12-31T01:30:00+01:00",
			[]string{"2040-12-31T02:00:00+01:00", "2040-12-31T03:00:00+01:00"},
		},
		"eight years without a leap day": {
			"0 0 29 2 *", berlin, "2096-02-28T00:00:00+01:00",
			[]string{"2096-02-29T00:00:00+01:00", "2104-02-29T00:00:00+01:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			windows := window.Windows{parsed(t, tc.schedule, 10, tc.zone)}
			NewWithT(t).Expect(openings(windows, instant(t, tc.after), len(tc.want))).To(Equal(tc.want))
		})
	}
}

func TestE14TheDurationIsTimeThatPasses(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule        string
		minutes         int
		opens, closesAt string
	}{
		"over the gap":               {"0 1 * * *", 120, "2026-03-29T01:00:00+01:00", "2026-03-29T04:00:00+02:00"},
		"from the gap on":            {"30 2 * * *", 120, "2026-03-29T03:00:00+02:00", "2026-03-29T05:00:00+02:00"},
		"over the repeated hour":     {"0 1 * * *", 120, "2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+01:00"},
		"from the first of two":      {"30 2 * * *", 30, "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00"},
		"a day of a day of 25 hours": {"0 0 * * *", 24 * 60, "2026-10-25T00:00:00+02:00", "2026-10-25T23:00:00+01:00"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			windows := window.Windows{parsed(t, tc.schedule, tc.minutes, berlin)}
			closes := instant(t, tc.closesAt)
			g.Expect(openings(windows, instant(t, tc.opens).Add(-1), 1)).To(Equal([]string{tc.opens}))
			g.Expect(windows.Open(instant(t, tc.opens))).To(BeTrue())
			g.Expect(windows.Open(closes.Add(-1))).To(BeTrue())
			g.Expect(windows.Open(closes)).To(BeFalse())
		})
	}
}

func TestE14AWindowAsLongAsItsPeriodIsAlwaysOpen(t *testing.T) {
	for _, tc := range []struct {
		schedule string
		minutes  int
	}{
		{"* * * * *", 1},
		{"*/15 * * * *", 15},
		{"59 * * * *", 60},
		{"0 0 * * *", 25 * 60},
		{"30 2 * * 0", 7*24*60 + 60},
	} {
		t.Run(tc.schedule, func(t *testing.T) {
			for _, zone := range []string{berlin, lordHowe} {
				windows := window.Windows{parsed(t, tc.schedule, tc.minutes, zone)}
				for _, day := range []string{"2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24"} {
					from := instant(t, day+"T00:00:00Z")
					for at := from; at.Before(from.Add(48 * time.Hour)); at = at.Add(time.Minute) {
						if !windows.Open(at) || !windows.Open(at.Add(time.Minute-1)) {
							t.Fatalf("in %s it is closed at %s", zone, at)
						}
					}
				}
			}
		})
	}
}

func TestE14AnyOfSeveralWindowsWillDo(t *testing.T) {
	g := NewWithT(t)
	windows := window.Windows{
		parsed(t, "0 2 * * *", 60, berlin),
		parsed(t, "30 18 * * *", 60, "America/New_York"),
		parsed(t, "0 1 * * *", 60, "UTC"),
	}
	next := func(at string) string {
		opening, ok := windows.Next(instant(t, at))
		g.Expect(ok).To(BeTrue())
		return window.Format(opening)
	}
	g.Expect(windows.Open(instant(t, "2026-12-01T00:59:59Z"))).To(BeFalse())
	g.Expect(next("2026-12-01T00:59:59Z")).To(Equal("2026-12-01T02:00 Europe/Berlin"), "the first of two")
	g.Expect(windows.Open(instant(t, "2026-12-01T01:00:00Z"))).To(BeTrue())
	g.Expect(next("2026-12-01T01:00:00Z")).To(Equal("2026-12-01T18:30 America/New_York"), "not the open one")
	g.Expect(windows.Open(instant(t, "2026-12-01T02:00:00Z"))).To(BeFalse())
	g.Expect(windows.Open(instant(t, "2026-12-02T00:29:59Z"))).To(BeTrue())
}

func TestE14WithoutWindowsItIsAlwaysOpen(t *testing.T) {
	g := NewWithT(t)
	now := instant(t, "2026-12-01T02:00:00Z")
	g.Expect(window.Windows(nil).Open(now)).To(BeTrue())
	_, ok := window.Windows{}.Next(now)
	g.Expect(ok).To(BeFalse())
}

func TestE14AnOpeningIsWrittenWithItsTimeZone(t *testing.T) {
	for zone, want := range map[string]string{
		berlin: "2026-12-01T02:00 Europe/Berlin",
		"UTC":  "2026-12-01T02:00 UTC",
		"":     "2026-12-01T02:00 UTC",
	} {
		opening, _ := window.Windows{parsed(t, "0 2 * * *", 60, zone)}.Next(instant(t, "2026-11-30T12:00:00Z"))
		NewWithT(t).Expect(window.Format(opening)).To(Equal(want))
	}
}

func TestE14AWindowThatCannotBeKeptIsRefused(t *testing.T) {
	const (
		shapes = ` is none of *, a number, a range such as 1-5, a list such as 1,5 and a step such as */5; `
		write  = `write five fields: minute hour day-of-month month day-of-week, such as "0 2 * * 1-5"`
		never  = `no year has such a day, so the window would never open; write a day that the month has`
		zone   = `write an IANA name such as "Europe/Berlin", or leave it out for UTC`
	)
	for name, tc := range map[string]struct {
		schedule string
		duration time.Duration
		zone     string
		want     string
	}{
		"a minute too high": {"61 2 * * *", time.Hour, "",
			`schedule "61 2 * * *": the minute must be 0-59, not "61"; ` + write},
		"an hour too high": {"0 24 * * *", time.Hour, "",
			`schedule "0 24 * * *": the hour must be 0-23, not "24"; ` + write},
		"a day too low": {"0 2 0 * *", time.Hour, "",
			`schedule "0 2 0 * *": the day of month must be 1-31, not "0"; ` + write},
		"a month by another name": {"0 2 * mai *", time.Hour, "",
			`schedule "0 2 * mai *": the month must be 1-12 or JAN-DEC, not "mai"; ` + write},
		"Sunday as 7": {"0 2 * * 7", time.Hour, "",
			`schedule "0 2 * * 7": the day of week must be 0-6 (0 is Sunday) or SUN-SAT, not "7"; ` + write},
		"a range over midnight": {"0 22-4 * * *", time.Hour, "",
			`schedule "0 22-4 * * *": the hour must be 0-23, the lower end of a range first, not "22-4"; ` + write},
		"half a range": {"0 2- * * *", time.Hour, "",
			`schedule "0 2- * * *": the hour "2-"` + shapes + write},
		"a range from any": {"*-3 2 * * *", time.Hour, "",
			`schedule "*-3 2 * * *": the minute "*-3"` + shapes + write},
		"a list of nothing": {", 2 * * *", time.Hour, "",
			`schedule ", 2 * * *": the minute ","` + shapes + write},
		"a step of nothing": {"*/0 2 * * *", time.Hour, "",
			`schedule "*/0 2 * * *": the minute "*/0"` + shapes + write},
		"a step that is no number": {"0 2 */99999999999999999999 * *", time.Hour, "",
			`schedule "0 2 */99999999999999999999 * *": the day of month must be 1-31, not "*/99999999999999999999"; ` + write},
		"an extension of cron": {"0 2 * * 5#2", time.Hour, "",
			`schedule "0 2 * * 5#2": the day of week "5#2"` + shapes + write},
		"seconds": {"0 0 2 * * *", time.Hour, "",
			`schedule "0 0 2 * * *": the number of fields is 6; ` + write},
		"a shortcut": {"@daily", time.Hour, "",
			`schedule "@daily": the number of fields is 1; ` + write},
		"nothing": {"", time.Hour, "",
			`schedule "": the number of fields is 0; ` + write},
		"a time zone in the schedule": {"TZ=Europe/Berlin 0 2 * * *", time.Hour, "",
			`schedule "TZ=Europe/Berlin 0 2 * * *": the time zone goes into timeZone; ` + write},
		"a time zone in the schedule, by its other name": {"CRON_TZ=Asia/Tokyo 0 2 * * *", time.Hour, berlin,
			`schedule "CRON_TZ=Asia/Tokyo 0 2 * * *": the time zone goes into timeZone; ` + write},
		"a time zone alone": {"TZ=UTC", time.Hour, "",
			`schedule "TZ=UTC": the time zone goes into timeZone; ` + write},
		"February 31st":    {"0 0 31 2 *", time.Hour, "", `schedule "0 0 31 2 *": ` + never},
		"the 31st of none": {"0 0 31 4,6,9,11 *", time.Hour, "", `schedule "0 0 31 4,6,9,11 *": ` + never},
		"no duration":      {"0 2 * * *", 0, "", `durationMinutes: the window would be open for 0s; write 1 or more`},
		"less than nothing": {"0 2 * * *", -time.Minute, "",
			`durationMinutes: the window would be open for -1m0s; write 1 or more`},
		"an unknown time zone": {"0 2 * * *", time.Hour, "Europe/Berln",
			`timeZone "Europe/Berln": no such time zone; ` + zone},
		"an abbreviation": {"0 2 * * *", time.Hour, "CEST",
			`timeZone "CEST": no such time zone; ` + zone},
		"a folder of time zones": {"0 2 * * *", time.Hour, "Europe",
			`timeZone "Europe": no such time zone; ` + zone},
		"a path": {"0 2 * * *", time.Hour, "../../../etc/passwd",
			`timeZone "../../../etc/passwd": no such time zone; ` + zone},
		"the operator's time zone": {"0 2 * * *", time.Hour, "Local",
			`timeZone "Local": that depends on where the operator runs; ` + zone},
		"the operator's time zone, by the name of its file": {"0 2 * * *", time.Hour, "localtime",
			`timeZone "localtime": that depends on where the operator runs; ` + zone},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := window.Parse(tc.schedule, tc.duration, tc.zone)
			NewWithT(t).Expect(err).To(MatchError(tc.want))
		})
	}
}

func TestE14WhatCronKnowsIsTaken(t *testing.T) {
	for name, tc := range map[string]struct{ schedule, want string }{
		"names, in any case":           {"0 2 * jan Mon-FRI", "2027-01-01T02:00 UTC"},
		"a list of ranges and steps":   {"0 1-2,5-9/2,20 * * *", "2026-12-01T20:00 UTC"},
		"a step from a number on":      {"10/20 * * * *", "2026-12-01T12:10 UTC"},
		"a question mark for any":      {"0 13 ? * ?", "2026-12-01T13:00 UTC"},
		"more than one space":          {"  0  13 *\t*\n* ", "2026-12-01T13:00 UTC"},
		"either day of two":            {"0 2 31 2 1", "2027-02-01T02:00 UTC"},
		"a day that some months have":  {"0 2 31 * *", "2026-12-31T02:00 UTC"},
		"a leap day, of another year":  {"0 2 29 2 *", "2028-02-29T02:00 UTC"},
		"the present minute, next day": {"0 12 * * *", "2026-12-02T12:00 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			opening, _ := window.Windows{parsed(t, tc.schedule, 1, "UTC")}.Next(instant(t, "2026-12-01T12:00:00Z"))
			NewWithT(t).Expect(window.Format(opening)).To(Equal(tc.want))
		})
	}
}

// The cost must not grow with the number of openings within the duration.
func BenchmarkOpen(b *testing.B) {
	now := time.Date(2026, time.December, 1, 2, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		schedule string
		duration time.Duration
	}{
		"nightly":               {"0 2 * * 1-5", 2 * time.Hour},
		"every minute":          {"* * * * *", time.Minute},
		"every minute, a month": {"* * * * *", 30 * 24 * time.Hour},
		"a leap day":            {"0 0 29 2 *", time.Hour},
	} {
		w, err := window.Parse(tc.schedule, tc.duration, berlin)
		if err != nil {
			b.Fatal(err)
		}
		windows := window.Windows{w}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				windows.Open(now)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := window.Parse("0 2 * * 1-5", 2*time.Hour, berlin); err != nil {
			b.Fatal(err)
		}
	}
}

func parsed(t *testing.T, schedule string, minutes int, zone string) window.Window {
	t.Helper()
	w, err := window.Parse(schedule, time.Duration(minutes)*time.Minute, zone)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return w
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return at
}

// openings are the next few, with what the clock is ahead of UTC.
func openings(windows window.Windows, after time.Time, n int) []string {
	var found []string
	for range n {
		after, _ = windows.Next(after)
		found = append(found, after.Format(time.RFC3339))
	}
	return found
}
