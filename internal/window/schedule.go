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
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	shapes     = `*, a number, a range such as 1-5, a list such as 1,5 and a step such as */5`
	fiveFields = `write five fields: minute hour day-of-month month day-of-week, such as "0 2 * * 1-5"`
)

// field is one of those of a schedule.
type field struct {
	name, values string
	option       cron.ParseOption
}

func fields() []field {
	return []field{
		{"minute", "0-59", cron.Minute},
		{"hour", "0-23", cron.Hour},
		{"day of month", "1-31", cron.Dom},
		{"month", "1-12 or JAN-DEC", cron.Month},
		{"day of week", "0-6 (0 is Sunday) or SUN-SAT", cron.Dow},
	}
}

// item is one of a field's list.
const item = `([*?]|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[1-9][0-9]*)?`

// wellFormed is what a field looks like. The cron package alone would take more: "*-3" for "*" and
// "," for never; and it panics at "TZ=UTC".
var wellFormed = regexp.MustCompile(`^` + item + `(,` + item + `)*$`)

// check says what is wrong with a field, in the words of whoever wrote it.
func (f field) check(text string) error {
	if !wellFormed.MatchString(text) {
		return fmt.Errorf("the %s %q is none of %s; %s", f.name, text, shapes, fiveFields)
	}
	if _, err := cron.NewParser(f.option).Parse(text); err == nil {
		return nil
	}
	order := ""
	if strings.Contains(text, "-") {
		order = ", the lower end of a range first"
	}
	return fmt.Errorf("the %s must be %s%s, not %q; %s", f.name, f.values, order, text, fiveFields)
}

// parseSchedule reads five fields. Next of what it returns is right only in UTC, and the zero time if
// there is nothing within five years.
func parseSchedule(schedule string) (cron.Schedule, error) {
	// The cron package would take it, and it would win over timeZone.
	if strings.Contains(schedule, "TZ=") {
		return nil, errors.New("the time zone goes into timeZone; " + fiveFields)
	}
	texts, known := strings.Fields(schedule), fields()
	if len(texts) != len(known) {
		return nil, fmt.Errorf("the number of fields is %d; %s", len(texts), fiveFields)
	}
	var options cron.ParseOption
	for i, f := range known {
		if err := f.check(texts[i]); err != nil {
			return nil, err
		}
		options |= f.option
	}
	parsed, err := cron.NewParser(options).Parse(schedule)
	if err == nil && parsed.Next(beforeLeapYear()).IsZero() {
		return nil, errors.New("no year has such a day, so the window would never open; write a day that the month has")
	}
	return parsed, err
}

// beforeLeapYear is the last instant before one, so that the five years after it have every day there is.
func beforeLeapYear() time.Time {
	return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC).Add(-1)
}

// namesEveryHour tells whether each hour of the day is in the schedule.
func namesEveryHour(schedule cron.Schedule) bool {
	const hours = 1<<24 - 1
	spec, ok := schedule.(*cron.SpecSchedule)
	return ok && spec.Hour&hours == hours
}
