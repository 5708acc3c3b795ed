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

package schema

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/window"
)

const (
	notASchedule = `not a schedule: write five fields, minute hour day-of-month month day-of-week, such as "0 2 * * 1-5", ` +
		"each of them *, a number, a range such as 1-5, a list such as 1,5 or a step such as */5"
	outOfRange = "not a schedule: minutes are 0-59, hours 0-23, days of the month 1-31, months 1-12 or JAN-DEC, " +
		"days of the week 0-6 (0 is Sunday) or SUN-SAT"
	zoneElsewhere = `the time zone goes into timeZone: write the five fields alone, such as "0 2 * * 1-5"`
	notATimeZone  = "not a time zone: use an IANA name, such as Europe/Berlin or UTC"
	nowhere       = "depends on where the operator runs: use an IANA name, such as Europe/Berlin or UTC"
	ofOnFailure   = `supported values: "Halt", "Continue"`
	ofApproval    = `supported values: "Automatic", "Manual"`
)

// withRollout is a spec around its rollout, in YAML.
func withRollout(rollout string) string {
	return web + "\nrollout: " + rollout
}

// withWindow is a spec with one maintenance window, in YAML.
func withWindow(manifest string) string {
	return withRollout("{windows: [" + manifest + "]}")
}

var _ = DescribeTable("A spec.rollout is refused, and told what to write instead, when",
	func(ctx SpecContext, rollout string, messages ...string) {
		Expect(complaints(create(ctx, withSpec("bad", withRollout(rollout))))).To(ConsistOf(messages))
	},

	Entry("it is a list", `[]`,
		`spec.rollout: Invalid value: "array": spec.rollout in body must be of type object: "array"`),
	Entry("it is a string", `Halt`,
		`spec.rollout: Invalid value: "string": spec.rollout in body must be of type object: "string"`),

	Entry("settleSeconds is negative", `{settleSeconds: -1}`,
		"spec.rollout.settleSeconds: Invalid value: -1: spec.rollout.settleSeconds in body should be greater than or equal to 0"),
	Entry("settleSeconds is more than an hour", `{settleSeconds: 3601}`,
		"spec.rollout.settleSeconds: Invalid value: 3601: spec.rollout.settleSeconds in body should be less than or equal to 3600"),
	Entry("settleSeconds has a unit", `{settleSeconds: 30s}`,
		`spec.rollout.settleSeconds: Invalid value: "string": spec.rollout.settleSeconds in body must be of type integer: "string"`),
	Entry("settleSeconds is a fraction", `{settleSeconds: 0.5}`,
		`spec.rollout.settleSeconds: Invalid value: "float64": spec.rollout.settleSeconds in body must be of type int32: "float64"`,
		`<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.rollout.settleSeconds`),
	Entry("cooldownSeconds is negative", `{cooldownSeconds: -1}`,
		"spec.rollout.cooldownSeconds: Invalid value: -1: spec.rollout.cooldownSeconds in body should be greater than or equal to 0"),
	Entry("cooldownSeconds is more than a day", `{cooldownSeconds: 86401}`,
		"spec.rollout.cooldownSeconds: Invalid value: 86401: "+
			"spec.rollout.cooldownSeconds in body should be less than or equal to 86400"),
	Entry("maxConcurrent is 0", `{maxConcurrent: 0}`,
		"spec.rollout.maxConcurrent: Invalid value: 0: spec.rollout.maxConcurrent in body should be greater than or equal to 1"),
	Entry("maxConcurrent is 1001", `{maxConcurrent: 1001}`,
		"spec.rollout.maxConcurrent: Invalid value: 1001: spec.rollout.maxConcurrent in body should be less than or equal to 1000"),
	Entry("maxConcurrent is a percentage", `{maxConcurrent: 25%}`,
		`spec.rollout.maxConcurrent: Invalid value: "string": spec.rollout.maxConcurrent in body must be of type integer: "string"`),
	Entry("progressDeadlineSeconds is 0", `{progressDeadlineSeconds: 0}`,
		"spec.rollout.progressDeadlineSeconds: Invalid value: 0: "+
			"spec.rollout.progressDeadlineSeconds in body should be greater than or equal to 1"),
	Entry("progressDeadlineSeconds is more than a day", `{progressDeadlineSeconds: 86401}`,
		"spec.rollout.progressDeadlineSeconds: Invalid value: 86401: "+
			"spec.rollout.progressDeadlineSeconds in body should be less than or equal to 86400"),
	Entry("progressDeadlineSeconds is no deadline, in the manner of a Deployment", `{progressDeadlineSeconds: 2147483647}`,
		"spec.rollout.progressDeadlineSeconds: Invalid value: 2147483647: "+
			"spec.rollout.progressDeadlineSeconds in body should be less than or equal to 86400"),

	Entry("onFailure is unknown", `{onFailure: Rollback}`,
		`spec.rollout.onFailure: Unsupported value: "Rollback": `+ofOnFailure),
	Entry("onFailure is in lower case", `{onFailure: halt}`, `spec.rollout.onFailure: Unsupported value: "halt": `+ofOnFailure),
	Entry("onFailure is the empty string", `{onFailure: ""}`, `spec.rollout.onFailure: Unsupported value: "": `+ofOnFailure),
	Entry("onFailure is a boolean", `{onFailure: off}`,
		`spec.rollout.onFailure: Invalid value: "boolean": spec.rollout.onFailure in body must be of type string: "boolean"`,
		`spec.rollout.onFailure: Unsupported value: false: `+ofOnFailure),
	Entry("approval is unknown", `{approval: Required}`, `spec.rollout.approval: Unsupported value: "Required": `+ofApproval),
	Entry("approval is in lower case", `{approval: manual}`, `spec.rollout.approval: Unsupported value: "manual": `+ofApproval),
	Entry("approval is the empty string", `{approval: ""}`, `spec.rollout.approval: Unsupported value: "": `+ofApproval),
	Entry("approval is a boolean", `{approval: true}`,
		`spec.rollout.approval: Invalid value: "boolean": spec.rollout.approval in body must be of type string: "boolean"`,
		`spec.rollout.approval: Unsupported value: true: `+ofApproval),

	Entry("windows is a map", `{windows: {schedule: "0 2 * * *", durationMinutes: 60}}`,
		`ConfigWatch in version "v1alpha1" cannot be handled as a ConfigWatch: strict decoding error: `+
			`unknown field "spec.rollout.windows.durationMinutes", unknown field "spec.rollout.windows.schedule"`),
	Entry("windows is a string", `{windows: "0 2 * * *"}`,
		`spec.rollout.windows: Invalid value: "string": spec.rollout.windows in body must be of type array: "string"`),
	Entry("a window is a string", `{windows: ["0 2 * * *"]}`,
		`spec.rollout.windows[0]: Invalid value: "string": spec.rollout.windows[0] in body must be of type object: "string"`),
	Entry("there are 17 windows", `{windows: [`+repeat(17, `{schedule: "%d 2 * * *", durationMinutes: 1}`)+`]}`,
		"spec.rollout.windows: Too many: 17: must have at most 16 items"),
	Entry("a window is empty", `{windows: [{}]}`,
		"spec.rollout.windows[0].schedule: Required value",
		"spec.rollout.windows[0].durationMinutes: Required value"),
	Entry("a window has no end", `{windows: [{schedule: "0 2 * * *"}]}`,
		"spec.rollout.windows[0].durationMinutes: Required value"),
	Entry("a window has no schedule", `{windows: [{durationMinutes: 60}]}`,
		"spec.rollout.windows[0].schedule: Required value"),
	Entry("durationMinutes is 0", `{windows: [{schedule: "0 2 * * *", durationMinutes: 0}]}`,
		"spec.rollout.windows[0].durationMinutes: Invalid value: 0: "+
			"spec.rollout.windows[0].durationMinutes in body should be greater than or equal to 1"),
	Entry("durationMinutes is more than a week", `{windows: [{schedule: "0 2 * * *", durationMinutes: 10081}]}`,
		"spec.rollout.windows[0].durationMinutes: Invalid value: 10081: "+
			"spec.rollout.windows[0].durationMinutes in body should be less than or equal to 10080"),
	Entry("durationMinutes has a unit", `{windows: [{schedule: "0 2 * * *", durationMinutes: 2h}]}`,
		`spec.rollout.windows[0].durationMinutes: Invalid value: "string": `+
			`spec.rollout.windows[0].durationMinutes in body must be of type integer: "string"`),
	Entry("durationMinutes is null", `{windows: [{schedule: "0 2 * * *", durationMinutes: null}]}`,
		"spec.rollout.windows[0].durationMinutes: Required value"),
	Entry("schedule is null", `{windows: [{schedule: null, durationMinutes: 60}]}`,
		"spec.rollout.windows[0].schedule: Required value"),
	Entry("schedule is a number", `{windows: [{schedule: 2, durationMinutes: 60}]}`,
		`spec.rollout.windows[0].schedule: Invalid value: "integer": `+
			`spec.rollout.windows[0].schedule in body must be of type string: "integer"`),
	Entry("schedule is the empty string", `{windows: [{schedule: "", durationMinutes: 60}]}`,
		`spec.rollout.windows[0].schedule: Invalid value: "": spec.rollout.windows[0].schedule in body should be at least 1 chars long`),
	Entry("schedule has 257 characters", `{windows: [{schedule: "0 2 * * `+strings.Repeat("1,", 124)+`1", durationMinutes: 60}]}`,
		"spec.rollout.windows[0].schedule: Too long: may not be more than 256 bytes"),
	Entry("timeZone is the empty string", `{windows: [{schedule: "0 2 * * *", durationMinutes: 60, timeZone: ""}]}`,
		`spec.rollout.windows[0].timeZone: Invalid value: "": spec.rollout.windows[0].timeZone in body should be at least 1 chars long`),
	Entry("timeZone is a number", `{windows: [{schedule: "0 2 * * *", durationMinutes: 60, timeZone: 1}]}`,
		`spec.rollout.windows[0].timeZone: Invalid value: "integer": `+
			`spec.rollout.windows[0].timeZone in body must be of type string: "integer"`),
	Entry("timeZone has 65 characters",
		`{windows: [{schedule: "0 2 * * *", durationMinutes: 60, timeZone: `+strings.Repeat("z", 65)+`}]}`,
		"spec.rollout.windows[0].timeZone: Too long: may not be more than 64 bytes"),

	Entry("timeZone has two slashes", `{windows: [{schedule: "0 2 * * *", durationMinutes: 60, timeZone: Europe//Berlin}]}`,
		`spec.rollout.windows[0].timeZone: Invalid value: "Europe//Berlin": `+notATimeZone),

	Entry("several numbers and words are wrong at once",
		`{maxConcurrent: 0, approval: manual, windows: [{schedule: "0 2 * * *", durationMinutes: 0}]}`,
		"spec.rollout.maxConcurrent: Invalid value: 0: spec.rollout.maxConcurrent in body should be greater than or equal to 1",
		`spec.rollout.approval: Unsupported value: "manual": `+ofApproval,
		"spec.rollout.windows[0].durationMinutes: Invalid value: 0: "+
			"spec.rollout.windows[0].durationMinutes in body should be greater than or equal to 1"),
	Entry("several windows are wrong at once",
		`{windows: [{schedule: "0 2 * * *", durationMinutes: 1}, {schedule: "@daily", durationMinutes: 1, timeZone: Local},
		{schedule: "TZ=UTC 0 2 * * 7", durationMinutes: 1, timeZone: "+1"}, {schedule: "0 24 * * *", durationMinutes: 1, timeZone: "?"}]}`,
		`spec.rollout.windows[1].schedule: Invalid value: "@daily": `+notASchedule,
		`spec.rollout.windows[1].timeZone: Invalid value: "Local": `+nowhere,
		`spec.rollout.windows[2].schedule: Invalid value: "TZ=UTC 0 2 * * 7": `+zoneElsewhere,
		`spec.rollout.windows[3].schedule: Invalid value: "0 24 * * *": `+outOfRange,
		`spec.rollout.windows[3].timeZone: Invalid value: "?": `+notATimeZone),
)

var _ = DescribeTable("E14: A schedule is refused that",
	func(ctx SpecContext, schedule, message string) {
		Expect(complaints(create(ctx, withSpec("bad", withWindow(`{schedule: "`+schedule+`", durationMinutes: 60}`))))).
			To(ConsistOf(`spec.rollout.windows[0].schedule: Invalid value: "` + schedule + `": ` + message))
		_, err := window.Parse(schedule, time.Hour, "UTC")
		Expect(err).To(HaveOccurred(), "the operator could do nothing with it either")
	},

	Entry("is blank", "  ", notASchedule),
	Entry("has four fields", "0 2 * *", notASchedule),
	Entry("has six fields, the first one of seconds", "0 0 2 * * *", notASchedule),
	Entry("is a name", "@daily", notASchedule),
	Entry("is a time", "02:00", notASchedule),
	Entry("is a duration", "@every 1h", notASchedule),
	Entry("has commas between the fields", "0,2,*,*,*", notASchedule),
	Entry("has a comma too many", "0, 2 * * *", notASchedule),
	Entry("has an empty item", "0,,5 2 * * *", notASchedule),
	Entry("has an open range", "0 2 * * 1-", notASchedule),
	Entry("has a range of three", "0 1-2-3 * * *", notASchedule),
	Entry("has a step of nothing", "*/ 2 * * *", notASchedule),
	Entry("has a step of zero", "*/0 2 * * *", notASchedule),
	Entry("has a step that is negative", "*/-5 2 * * *", notASchedule),
	Entry("has the last day of a month, in the manner of Quartz", "0 2 L-1-2 * *", notASchedule),
	Entry("has the first Monday, in the manner of Quartz", "0 2 * * 1#1", notASchedule),
	Entry("has digits of another script", "٠ 2 * * *", notASchedule),

	Entry("has a minute 60", "60 2 * * *", outOfRange),
	Entry("has a list with a minute 75", "0,75 2 * * *", outOfRange),
	Entry("has a minute of three digits", "100 2 * * *", outOfRange),
	Entry("has a minute of letters", "A 2 * * *", outOfRange),
	Entry("has an hour 24", "0 24 * * *", outOfRange),
	Entry("has a range up to hour 24", "0 22-24 * * *", outOfRange),
	Entry("has an hour with letters", "0 2am * * *", outOfRange),
	Entry("has a day 0", "0 2 0 * *", outOfRange),
	Entry("has a range from day 0", "0 2 0-5 * *", outOfRange),
	Entry("has a day 32", "0 2 32 * *", outOfRange),
	Entry("has the last day of the month", "0 2 L * *", outOfRange),
	Entry("has a month 0", "0 2 * 0 *", outOfRange),
	Entry("has a month 13", "0 2 * 13 *", outOfRange),
	Entry("has a Sunday 7", "0 2 * * 7", outOfRange),
	Entry("has a range up to Sunday 7", "0 2 * * 1-7", outOfRange),
	Entry("has a list with a weekday 10", "0 2 * * 1,10", outOfRange),

	Entry("has a time zone in front", "TZ=Europe/Berlin 0 2 * * *", zoneElsewhere),
	Entry("has a time zone in front, in the manner of Go's cron", "CRON_TZ=Europe/Berlin 0 2 * * *", zoneElsewhere),
	Entry("has a time zone in place of a field", "TZ=UTC 2 * * *", zoneElsewhere),
)

var _ = DescribeTable("E14: A time zone is refused that",
	func(ctx SpecContext, timeZone, message string) {
		Expect(complaints(create(ctx, withSpec("bad",
			withWindow(`{schedule: "0 2 * * *", durationMinutes: 60, timeZone: "`+timeZone+`"}`))))).
			To(ConsistOf(`spec.rollout.windows[0].timeZone: Invalid value: "` + timeZone + `": ` + message))
		_, err := window.Parse("0 2 * * *", time.Hour, timeZone)
		Expect(err).To(HaveOccurred(), "the operator could do nothing with it either")
	},

	Entry("is the machine's", "Local", nowhere),
	Entry("is the machine's, as a file", "localtime", nowhere),
	Entry("is blank", " ", notATimeZone),
	Entry("has a space", "Europe/New York", notATimeZone),
	Entry("is an offset", "+02:00", notATimeZone),
	Entry("is a path", "../etc/passwd", notATimeZone),
	Entry("begins with a slash", "/Europe/Berlin", notATimeZone),
	Entry("ends with a slash", "Europe/", notATimeZone),
	Entry("has letters of another script", "Europe/Zürich", notATimeZone),
)

var _ = DescribeTable("E14: A window is taken that",
	func(ctx SpecContext, schedule, timeZone string) {
		spec := withWindow(`{schedule: "` + schedule + `", durationMinutes: 60, timeZone: ` + timeZone + `}`)
		Expect(create(ctx, withSpec("good", spec))).To(Succeed())
		_, err := window.Parse(schedule, time.Hour, timeZone)
		Expect(err).NotTo(HaveOccurred(), "the operator can use it")
	},

	Entry("opens in the night of working days", "0 2 * * 1-5", "Europe/Berlin"),
	Entry("opens each minute", "* * * * *", "UTC"),
	Entry("has the highest numbers", "59 23 31 12 6", "UTC"),
	Entry("has the lowest numbers", "0 0 1 1 0", "UTC"),
	Entry("has lists, ranges and steps", "0,15-30,*/20 1-5/2 1,15 */3 0-6/2", "UTC"),
	Entry("has a step from a number on", "5/10 0 1/7 * *", "UTC"),
	Entry("has leading zeros", "00 02 01 09 *", "UTC"),
	Entry("has names", "0 2 * JAN-MAR,DEC MON-FRI", "UTC"),
	Entry("has names in lower case", "0 2 * jan sun,Sat", "UTC"),
	Entry("has question marks", "0 2 ? * 1", "UTC"),
	Entry("has more space than it needs", "  0  2 *   * 1 ", "UTC"),
	Entry("has tabs", "0\t2\t*\t*\t1", "UTC"),
	Entry("has 256 characters", "0 2 * * "+strings.Repeat("1,", 123)+"1 ", "UTC"),
	Entry("is in a time zone of three parts", "0 2 * * *", "America/Argentina/Buenos_Aires"),
	Entry("is in a time zone of one part", "0 2 * * *", "EST5EDT"),
	Entry("is in a time zone with a sign", "0 2 * * *", "Etc/GMT+2"),
)

// What the schema can't tell is told by the operator: Stalled, with the reason InvalidWindow.
var _ = DescribeTable("E14: It is left to the operator to refuse a window that",
	func(ctx SpecContext, schedule, timeZone string) {
		spec := withWindow(`{schedule: "` + schedule + `", durationMinutes: 60, timeZone: ` + timeZone + `}`)
		Expect(create(ctx, withSpec("good", spec))).To(Succeed())
		_, err := window.Parse(schedule, time.Hour, timeZone)
		Expect(err).To(HaveOccurred())
	},

	Entry("has letters that are no names", "0 2 * * FOO", "UTC"),
	Entry("has a name in the wrong field", "0 2 * MON *", "UTC"),
	Entry("has a name in full", "0 2 * * MONDAY", "UTC"),
	Entry("has a range the wrong way round", "0 2 * * 5-1", "UTC"),
	Entry("never comes", "0 2 31 2 *", "UTC"),
	Entry("is in a time zone that doesn't exist", "0 2 * * *", "Europe/Atlantis"),
)

var _ = DescribeTable("A spec.rollout is taken when it",
	func(ctx SpecContext, rollout string) {
		Expect(create(ctx, withSpec("good", withRollout(rollout)))).To(Succeed())
	},

	Entry("has everything", `
  settleSeconds: 30
  cooldownSeconds: 600
  maxConcurrent: 5
  onFailure: Continue
  progressDeadlineSeconds: 300
  approval: Manual
  windows:
  - {schedule: "0 2 * * 1-5", durationMinutes: 120, timeZone: Europe/Berlin}
  - {schedule: "0 0 * * SAT", durationMinutes: 2880}`),
	Entry("has the lowest numbers", `{settleSeconds: 0, cooldownSeconds: 0, maxConcurrent: 1, progressDeadlineSeconds: 1,
		windows: [{schedule: "0 2 * * *", durationMinutes: 1}]}`),
	Entry("has the highest numbers", `{settleSeconds: 3600, cooldownSeconds: 86400, maxConcurrent: 1000,
		progressDeadlineSeconds: 86400, windows: [{schedule: "0 2 * * *", durationMinutes: 10080}]}`),
	Entry("has an empty list of windows", `{windows: []}`),
	Entry("has 16 windows, each as long as it may be", `{windows: [`+repeat(16,
		`{schedule: "`+strings.Repeat("0,", 123)+`%d 2 * * *", durationMinutes: 1, timeZone: `+strings.Repeat("z", 64)+`}`)+`]}`),
)

var _ = DescribeTable("A spec.rollout gets the defaults when it",
	func(ctx SpecContext, rollout string) {
		Expect(create(ctx, withSpec("web", web+rollout))).To(Succeed())
		Expect(get(ctx, "web").Spec.Rollout).To(Equal(defaultRollout()))
	},

	Entry("is left out", ""),
	Entry("is null", "\nrollout: null"),
	Entry("has no value", "\nrollout:"),
	Entry("is empty", "\nrollout: {}"),
	Entry("has a null for each field", "\nrollout: {settleSeconds: null, cooldownSeconds: null, maxConcurrent: null, "+
		"onFailure: null, progressDeadlineSeconds: null, approval: null, windows: null}"),
)

var _ = Describe("A spec.rollout", func() {
	It("gets the defaults beside what is given, of windows too", func(ctx SpecContext) {
		Expect(create(ctx, withSpec("web", withRollout(`
  settleSeconds: 0
  windows:
  - {schedule: "0 2 * * *", durationMinutes: 60}
  - {schedule: "0 3 * * *", durationMinutes: 60, timeZone: null}`)))).To(Succeed())
		want := defaultRollout()
		want.SettleSeconds = new(int32(0))
		want.Windows = []v1alpha1.Window{
			{Schedule: "0 2 * * *", DurationMinutes: 60, TimeZone: "UTC"},
			{Schedule: "0 3 * * *", DurationMinutes: 60, TimeZone: "UTC"},
		}
		Expect(get(ctx, "web").Spec.Rollout).To(Equal(want))
	})

	It("has the defaults that the operator takes where the API server has filled in none", func() {
		Expect(defaultRollout()).To(Equal(v1alpha1.RolloutSpec{
			SettleSeconds: new(v1alpha1.DefaultSettleSeconds), CooldownSeconds: new(v1alpha1.DefaultCooldownSeconds),
			MaxConcurrent: v1alpha1.DefaultMaxConcurrent, ProgressDeadlineSeconds: v1alpha1.DefaultProgressDeadlineSeconds,
			OnFailure: v1alpha1.OnFailureHalt, Approval: v1alpha1.ApprovalAutomatic,
		}))
	})

	It("is explained by kubectl", func(ctx SpecContext) {
		for path, begins := range map[string]string{
			"":                         "rollout says when and in which steps targets are restarted.",
			".settleSeconds":           "settleSeconds is ",
			".cooldownSeconds":         "cooldownSeconds is ",
			".maxConcurrent":           "maxConcurrent is ",
			".onFailure":               "onFailure says ",
			".progressDeadlineSeconds": "progressDeadlineSeconds is ",
			".approval":                "approval is ",
			".windows":                 "windows are ",
			".windows.schedule":        "schedule says ",
			".windows.durationMinutes": "durationMinutes is ",
			".windows.timeZone":        "timeZone is ",
		} {
			Expect(kubectl(ctx, "explain", "configwatch.spec.rollout"+path)).To(ContainSubstring("DESCRIPTION:\n    "+begins), path)
		}
	})
})

// defaultRollout is spec.rollout as the API server fills it in.
func defaultRollout() v1alpha1.RolloutSpec {
	return v1alpha1.RolloutSpec{
		SettleSeconds: new(int32(2)), CooldownSeconds: new(int32(0)), MaxConcurrent: 10,
		OnFailure: v1alpha1.OnFailureHalt, ProgressDeadlineSeconds: 600, Approval: v1alpha1.ApprovalAutomatic,
	}
}
