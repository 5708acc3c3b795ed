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

// Package window says whether a maintenance window is open, and when the next one opens.
//
// A window opens by a cron schedule in a time zone and stays open for a duration (E14). The package
// promises that no opening is lost where clocks are changed, and no nightly one made twice; and that
// a schedule it can't keep is refused with words that help. It is pure: it doesn't know what is done
// in a window, or what time it is.
//
// # Where clocks are changed
//
// A window opens at the first instant at which the clock of its time zone shows the scheduled time or
// a later one. On all other days that is the scheduled time. For a window at 02:30 in Europe/Berlin:
//
//   - In the spring night the clock goes from 02:00 to 03:00, and 02:30 doesn't exist. The window
//     opens at 03:00, the first instant after the gap. The same holds for a gap of half an hour, as
//     in Australia/Lord_Howe, and of a whole day, as in Pacific/Apia in 2011: the windows of the day
//     that was left out opened when the next one began.
//   - In the autumn night the clock goes from 03:00 back to 02:00, and 02:30 comes twice. The window
//     opens once, the first time.
//   - A schedule that names every hour of the day, such as "*/15 * * * *", also opens when the clock
//     shows a time again, so that it goes on through the repeated hour.
//
// The duration is time that passes, not what the clock shows: a window of two hours that opens at
// 01:00 in the spring night closes at 04:00, and in the autumn night at 02:00, the second time.
package window
