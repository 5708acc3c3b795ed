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
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	nothingToDo = "spec: Invalid value: nothing to do: list the ConfigMaps and Secrets to watch in sources, " +
		"or the workloads to restart in targets, or both"
	badName     = "not a valid name: use lower case letters, digits, '-' and '.', with a letter or digit first and last"
	badKey      = "not a valid key: use letters, digits, '-', '_' and '.', other than '.' alone or '..' at the start"
	badOperator = "spec.sources[0].selector.matchExpressions: Invalid value: " +
		"not a valid operator: use In, NotIn, Exists or DoesNotExist"
	valuesMissing = "spec.sources[0].selector.matchExpressions: Invalid value: " +
		"In and NotIn need values: list at least one, or use Exists or DoesNotExist"
	valuesForbidden = "spec.sources[0].selector.matchExpressions: Invalid value: " +
		"Exists and DoesNotExist take no values: remove them, or use In or NotIn"
	nameOrSelector = "spec.sources[0]: Invalid value: a source needs exactly one of name " +
		"(for one ConfigMap or Secret) and selector (for all whose labels match)"
	targetNameOrSelector = "spec.targets[0]: Invalid value: a target needs exactly one of name (for one workload) " +
		"and selector (for all of the kind whose labels match)"
	declaredNeedsSources = "spec.targets: Invalid value: follow: Declared needs sources: " +
		"list them in spec.sources, or remove follow to use whatever the pod template references"
	notRestartable = " is not a kind that can be restarted: use Deployment, StatefulSet, DaemonSet or CronJob"
	correctIt      = ": correct it, or leave it out"
	observeSources = "spec.sources: Invalid value: mode: Observe needs sources, as it has no targets to find them by: " +
		"list the ConfigMaps and Secrets to watch"
	observeTargets = "spec.targets: Invalid value: mode: Observe restarts nothing: remove targets, " +
		"or use mode: Suspended to hold restarts for a while"
	observeRollout = "spec.rollout: Invalid value: mode: Observe restarts nothing: remove rollout, " +
		"or use mode: Suspended to hold restarts for a while"
	ofMode     = `supported values: "Active", "DryRun", "Suspended", "Observe"`
	ofChange   = `supported values: "Added", "Modified", "Deleted"`
	jobRefused = "spec.targets[0].kind: Invalid value: a Job can't be restarted, its pod template is immutable: " +
		"name the CronJob that makes it, or delete and re-create the Job"
)

// observing is a spec in mode Observe with something in its rollout.
func observing(rollout string) string {
	return "{mode: Observe, sources: [{kind: ConfigMap, name: app-config}], rollout: {" + rollout + "}}"
}

var _ = DescribeTable("A spec is refused, and told what to write instead, when",
	func(ctx SpecContext, spec string, messages ...string) {
		Expect(complaints(create(ctx, withSpec("bad", spec)))).To(ConsistOf(messages))
	},

	Entry("it is empty", `{}`, nothingToDo),
	Entry("sources is an empty list", `sources: []`, nothingToDo),
	Entry("targets is an empty list", `targets: []`, nothingToDo),
	Entry("both lists are empty", `{sources: [], targets: []}`, nothingToDo),
	Entry("it has a mode alone", `mode: DryRun`, nothingToDo),
	Entry("it is a list", `[]`,
		`spec: Invalid value: "array": spec in body must be of type object: "array"`),

	Entry("mode is unknown", `{mode: Paused, targets: [{kind: Deployment, name: web}]}`,
		`spec.mode: Unsupported value: "Paused": `+ofMode),
	Entry("mode is in lower case", `{mode: active, targets: [{kind: Deployment, name: web}]}`,
		`spec.mode: Unsupported value: "active": `+ofMode),
	Entry("mode is the empty string", `{mode: "", targets: [{kind: Deployment, name: web}]}`,
		`spec.mode: Unsupported value: "": `+ofMode),
	Entry("mode is Observe, and there are no sources", `mode: Observe`, nothingToDo, observeSources),
	Entry("mode is Observe, and there are targets alone", `{mode: Observe, targets: [{kind: Deployment, name: web}]}`,
		observeSources, observeTargets),
	Entry("mode is Observe, and there are targets too",
		`{mode: Observe, sources: [{kind: ConfigMap, name: app-config}], targets: [{kind: Deployment, name: web}]}`, observeTargets),
	Entry("mode is Observe, and changes settle longer", observing(`settleSeconds: 3`), observeRollout),
	Entry("mode is Observe, and there is a cooldown", observing(`cooldownSeconds: 1`), observeRollout),
	Entry("mode is Observe, and there are waves", observing(`maxConcurrent: 1`), observeRollout),
	Entry("mode is Observe, and failures halt nothing", observing(`onFailure: Continue`), observeRollout),
	Entry("mode is Observe, and there is a deadline", observing(`progressDeadlineSeconds: 60`), observeRollout),
	Entry("mode is Observe, and someone has to approve", observing(`approval: Manual`), observeRollout),
	Entry("mode is Observe, and there are windows", observing(`windows: [{schedule: "0 2 * * *", durationMinutes: 60}]`), observeRollout),
	Entry("mode is a number", `{mode: 1, targets: [{kind: Deployment, name: web}]}`,
		`spec.mode: Invalid value: "integer": spec.mode in body must be of type string: "integer"`,
		"spec.mode: Unsupported value: 1: "+ofMode),
	Entry("mode is a boolean", `{mode: off, targets: [{kind: Deployment, name: web}]}`,
		`spec.mode: Invalid value: "boolean": spec.mode in body must be of type string: "boolean"`,
		"spec.mode: Unsupported value: false: "+ofMode),

	Entry("sources is a map", `sources: {kind: ConfigMap, name: app-config}`,
		`ConfigWatch in version "v1alpha1" cannot be handled as a ConfigWatch: strict decoding error: `+
			`unknown field "spec.sources.kind", unknown field "spec.sources.name"`),
	Entry("sources is a string", `sources: app-config`,
		`spec.sources: Invalid value: "string": spec.sources in body must be of type array: "string"`),
	Entry("a source is a string", `sources: [app-config]`,
		`spec.sources[0]: Invalid value: "string": spec.sources[0] in body must be of type object: "string"`),
	Entry("there are 65 sources", `sources: [`+repeat(65, `{kind: ConfigMap, name: c%d}`)+`]`,
		"spec.sources: Too many: 65: must have at most 64 items"),
	Entry("a source has no kind", `sources: [{name: app-config}]`,
		"spec.sources[0].kind: Required value"),
	Entry("a source's kind is in lower case", `sources: [{kind: configmap, name: app-config}]`,
		`spec.sources[0].kind: Unsupported value: "configmap": supported values: "ConfigMap", "Secret"`),
	Entry("a source's kind is in the plural", `sources: [{kind: Secrets, name: db}]`,
		`spec.sources[0].kind: Unsupported value: "Secrets": supported values: "ConfigMap", "Secret"`),
	Entry("a source's kind is the empty string", `sources: [{kind: "", name: db}]`,
		`spec.sources[0].kind: Unsupported value: "": supported values: "ConfigMap", "Secret"`),
	Entry("a source is a workload", `sources: [{kind: Deployment, name: web}]`,
		`spec.sources[0].kind: Unsupported value: "Deployment": supported values: "ConfigMap", "Secret"`),

	Entry("a source has neither name nor selector", `sources: [{kind: Secret}]`, nameOrSelector),
	Entry("a source has both name and selector", `sources: [{kind: Secret, name: db, selector: {}}]`, nameOrSelector),
	Entry("a source's selector is null", `sources: [{kind: Secret, selector: null}]`, nameOrSelector),
	Entry("a source is listed twice",
		`sources: [{kind: ConfigMap, name: app-config}, {kind: ConfigMap, name: app-config}]`,
		"spec.sources: Invalid value: ConfigMap app-config is listed twice: list it once, with all of its "+
			"keys and restartOn"),
	Entry("a source is listed twice among others, with different keys",
		`sources: [{kind: ConfigMap, name: db}, {kind: Secret, selector: {}}, {kind: Secret, name: db, keys: [a]},
		{kind: Secret, name: tls}, {kind: Secret, name: db, keys: [b]}]`,
		"spec.sources: Invalid value: Secret db is listed twice: list it once, with all of its keys and "+
			"restartOn"),

	Entry("a source's name is the empty string", `sources: [{kind: ConfigMap, name: ""}]`,
		`spec.sources[0].name: Invalid value: "": spec.sources[0].name in body should be at least 1 chars `+
			"long"),
	Entry("a source's name has an upper case letter", `sources: [{kind: ConfigMap, name: App-config}]`,
		`spec.sources[0].name: Invalid value: "App-config": `+badName),
	Entry("a source's name has an underscore", `sources: [{kind: ConfigMap, name: app_config}]`,
		`spec.sources[0].name: Invalid value: "app_config": `+badName),
	Entry("a source's name has a namespace", `sources: [{kind: ConfigMap, name: shop/app-config}]`,
		`spec.sources[0].name: Invalid value: "shop/app-config": `+badName),
	Entry("a source's name has a wildcard", `sources: [{kind: ConfigMap, name: app-*}]`,
		`spec.sources[0].name: Invalid value: "app-*": `+badName),
	Entry("a source's name ends in a hyphen", `sources: [{kind: ConfigMap, name: app-}]`,
		`spec.sources[0].name: Invalid value: "app-": `+badName),
	Entry("a source's name has an empty label", `sources: [{kind: ConfigMap, name: app..config}]`,
		`spec.sources[0].name: Invalid value: "app..config": `+badName),
	Entry("a source's name has 254 characters",
		`sources: [{kind: ConfigMap, name: `+strings.Repeat("a", 254)+`}]`,
		"spec.sources[0].name: Too long: may not be more than 253 bytes"),
	Entry("a source's name is a number", `sources: [{kind: ConfigMap, name: 5}]`,
		`spec.sources[0].name: Invalid value: "integer": spec.sources[0].name in body must be of type `+
			`string: "integer"`),

	Entry("keys is an empty list", `sources: [{kind: ConfigMap, name: app-config, keys: []}]`,
		"spec.sources[0].keys: Invalid value: 0: spec.sources[0].keys in body should have at least 1 items"),
	Entry("keys is a string", `sources: [{kind: ConfigMap, name: app-config, keys: LOG_LEVEL}]`,
		`spec.sources[0].keys: Invalid value: "string": spec.sources[0].keys in body must be of type array: `+
			`"string"`),
	Entry("there are 257 keys", `sources: [{kind: ConfigMap, name: app-config, keys: [`+repeat(257, `k%d`)+`]}]`,
		"spec.sources[0].keys: Too many: 257: must have at most 256 items"),
	Entry("a key has a slash", `sources: [{kind: ConfigMap, name: app-config, keys: [conf.d/app.yaml]}]`,
		`spec.sources[0].keys[0]: Invalid value: "conf.d/app.yaml": `+badKey),
	Entry("a key has a space", `sources: [{kind: ConfigMap, name: app-config, keys: [LOG_LEVEL, "LOG LEVEL"]}]`,
		`spec.sources[0].keys[1]: Invalid value: "LOG LEVEL": `+badKey),
	Entry("a key is a wildcard", `sources: [{kind: ConfigMap, name: app-config, keys: ["*"]}]`,
		`spec.sources[0].keys[0]: Invalid value: "*": `+badKey),
	Entry("a key is a letter of another script", `sources: [{kind: ConfigMap, name: app-config, keys: [größe]}]`,
		`spec.sources[0].keys[0]: Invalid value: "größe": `+badKey),
	Entry("a key ends in a line break", `sources: [{kind: ConfigMap, name: app-config, keys: ["LOG_LEVEL\n"]}]`,
		`spec.sources[0].keys[0]: Invalid value: "LOG_LEVEL\n": `+badKey),
	Entry("a key is a dot", `sources: [{kind: ConfigMap, name: app-config, keys: ["."]}]`,
		`spec.sources[0].keys[0]: Invalid value: ".": `+badKey),
	Entry("a key begins with two dots", `sources: [{kind: ConfigMap, name: app-config, keys: [..data]}]`,
		`spec.sources[0].keys[0]: Invalid value: "..data": `+badKey),
	Entry("a key is the empty string", `sources: [{kind: ConfigMap, name: app-config, keys: [""]}]`,
		`spec.sources[0].keys[0]: Invalid value: "": spec.sources[0].keys[0] in body should be at least 1 `+
			"chars long"),
	Entry("a key is a number", `sources: [{kind: ConfigMap, name: app-config, keys: [8080]}]`,
		`spec.sources[0].keys[0]: Invalid value: "integer": spec.sources[0].keys[0] in body must be of type `+
			`string: "integer"`),
	Entry("a key has 254 characters",
		`sources: [{kind: ConfigMap, name: app-config, keys: [`+strings.Repeat("K", 254)+`]}]`,
		"spec.sources[0].keys[0]: Too long: may not be more than 253 bytes"),
	Entry("a key is listed twice", `sources: [{kind: ConfigMap, name: app-config, keys: [A, B, A]}]`,
		`spec.sources[0].keys[2]: Duplicate value: "A"`),

	Entry("restartOn is an empty list", `sources: [{kind: Secret, name: db, restartOn: []}]`,
		"spec.sources[0].restartOn: Invalid value: 0: spec.sources[0].restartOn in body should have at least "+
			"1 items"),
	Entry("restartOn is a string", `sources: [{kind: Secret, name: db, restartOn: Modified}]`,
		`spec.sources[0].restartOn: Invalid value: "string": spec.sources[0].restartOn in body must be of `+
			`type array: "string"`),
	Entry("restartOn has an unknown change", `sources: [{kind: Secret, name: db, restartOn: [Updated]}]`,
		`spec.sources[0].restartOn[0]: Unsupported value: "Updated": `+ofChange),
	Entry("restartOn has a change in upper case", `sources: [{kind: Secret, name: db, restartOn: [Added, DELETED]}]`,
		`spec.sources[0].restartOn[1]: Unsupported value: "DELETED": `+ofChange),
	Entry("restartOn has a change twice", `sources: [{kind: Secret, name: db, restartOn: [Modified, Modified]}]`,
		`spec.sources[0].restartOn[1]: Duplicate value: "Modified"`),
	Entry("restartOn has four changes",
		`sources: [{kind: Secret, name: db, restartOn: [Added, Modified, Deleted, Added]}]`,
		"spec.sources[0].restartOn: Too many: 4: must have at most 3 items",
		`spec.sources[0].restartOn[3]: Duplicate value: "Added"`),

	Entry("a selector is a string", `sources: [{kind: Secret, selector: app=web}]`,
		`spec.sources[0].selector: Invalid value: "string": spec.sources[0].selector in body must be of type `+
			`object: "string"`),
	Entry("matchLabels is a list", `sources: [{kind: Secret, selector: {matchLabels: [app]}}]`,
		`spec.sources[0].selector.matchLabels: Invalid value: "array": spec.sources[0].selector.matchLabels `+
			`in body must be of type object: "array"`),
	Entry("a label's value is a number", `sources: [{kind: Secret, selector: {matchLabels: {tier: 1}}}]`,
		`spec.sources[0].selector.matchLabels.tier: Invalid value: "integer": `+
			`spec.sources[0].selector.matchLabels.tier in body must be of type string: "integer"`),
	Entry("there are 17 labels", `sources: [{kind: Secret, selector: {matchLabels: {`+repeat(17, `l%d: x`)+`}}}]`,
		"spec.sources[0].selector.matchLabels: Invalid value: too many labels: use at most 16"),
	Entry("there are 17 expressions",
		`sources: [{kind: Secret, selector: {matchExpressions: [`+repeat(17, `{key: l%d, operator: Exists}`)+`]}}]`,
		"spec.sources[0].selector.matchExpressions: Invalid value: too many expressions: use at most 16"),
	Entry("an operator is unknown",
		`sources: [{kind: Secret, selector: {matchExpressions: [{key: app, operator: Equals, values: [web]}]}}]`,
		badOperator),
	Entry("an operator is in lower case",
		`sources: [{kind: Secret, selector: {matchExpressions: [{key: app, operator: in, values: [web]}]}}]`,
		badOperator),
	Entry("the last operator of 16 is unknown",
		`sources: [{kind: Secret, selector: {matchExpressions: [`+repeat(15, `{key: l%d, operator: Exists}`)+
			`, {key: app, operator: Is}]}}]`, badOperator),
	Entry("In has no values",
		`sources: [{kind: Secret, selector: {matchExpressions: [{key: app, operator: In}]}}]`, valuesMissing),
	Entry("NotIn has an empty list of values",
		`sources: [{kind: Secret, selector: {matchExpressions: [{key: app, operator: NotIn, values: []}]}}]`,
		valuesMissing),
	Entry("Exists has values",
		`sources: [{kind: Secret, selector: {matchExpressions: [{key: app, operator: Exists, values: [web]}]}}]`,
		valuesForbidden),
	Entry("DoesNotExist has values",
		`sources: [{kind: Secret, selector: {matchExpressions: [{key: app, operator: DoesNotExist, values: [web]}]}}]`,
		valuesForbidden),
	Entry("an expression has no operator",
		`sources: [{kind: Secret, selector: {matchExpressions: [{key: app}]}}]`,
		"spec.sources[0].selector.matchExpressions[0].operator: Required value"),
	Entry("an expression has no key",
		`sources: [{kind: Secret, selector: {matchExpressions: [{operator: Exists}]}}]`,
		"spec.sources[0].selector.matchExpressions[0].key: Required value"),
	Entry("the values of an expression are a string",
		`sources: [{kind: Secret, selector: {matchExpressions: [{key: app, operator: In, values: web}]}}]`,
		`spec.sources[0].selector.matchExpressions[0].values: Invalid value: "string": `+
			`spec.sources[0].selector.matchExpressions[0].values in body must be of type array: "string"`),

	Entry("targets is a map", `targets: {kind: Deployment, name: web}`,
		`ConfigWatch in version "v1alpha1" cannot be handled as a ConfigWatch: strict decoding error: `+
			`unknown field "spec.targets.kind", unknown field "spec.targets.name"`),
	Entry("a target is a string", `targets: [deployment/web]`,
		`spec.targets[0]: Invalid value: "string": spec.targets[0] in body must be of type object: "string"`),
	Entry("there are 65 targets", `targets: [`+repeat(65, `{kind: Deployment, name: d%d}`)+`]`,
		"spec.targets: Too many: 65: must have at most 64 items"),
	Entry("a target has no kind", `targets: [{name: web}]`,
		"spec.targets[0].kind: Required value"),
	Entry("a target's kind is the empty string", `targets: [{kind: "", name: web}]`,
		`spec.targets[0].kind: Invalid value: "": spec.targets[0].kind in body should be at least 1 chars `+
			"long"),
	Entry("a target's kind is in lower case", `targets: [{kind: deployment, name: web}]`,
		"spec.targets[0].kind: Invalid value: deployment"+notRestartable),
	Entry("a target's kind is in the plural", `targets: [{kind: Deployments, name: web}]`,
		"spec.targets[0].kind: Invalid value: Deployments"+notRestartable),
	Entry("a target's kind has 64 characters", `targets: [{kind: `+strings.Repeat("K", 64)+`, name: web}]`,
		"spec.targets[0].kind: Too long: may not be more than 63 bytes"),
	Entry("a target is a Job", `targets: [{kind: Job, name: migrate}]`,
		jobRefused),
	Entry("a target is a Job, with its apiVersion", `targets: [{apiVersion: batch/v1, kind: Job, name: migrate}]`,
		jobRefused),
	Entry("a target is a Pod", `targets: [{kind: Pod, name: web-0}]`,
		"spec.targets[0].kind: Invalid value: a Pod can't be restarted, it is immutable: name the "+
			"Deployment, StatefulSet or DaemonSet that owns it"),
	Entry("a target is a Pod, with its apiVersion", `targets: [{apiVersion: v1, kind: Pod, selector: {}}]`,
		"spec.targets[0].kind: Invalid value: a Pod can't be restarted, it is immutable: name the "+
			"Deployment, StatefulSet or DaemonSet that owns it"),
	Entry("a target is a ReplicaSet", `targets: [{kind: ReplicaSet, name: web-5d4f8}]`,
		"spec.targets[0].kind: Invalid value: a ReplicaSet doesn't replace its pods when its template "+
			"changes: name the Deployment that owns it"),
	Entry("a target is a ReplicationController", `targets: [{apiVersion: v1, kind: ReplicationController, name: web}]`,
		"spec.targets[0].kind: Invalid value: ReplicationController"+notRestartable),
	Entry("a target is of a kind that isn't built in",
		`targets: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: canary}]`,
		"spec.targets[0].kind: Invalid value: Rollout"+notRestartable),
	Entry("a target is a ConfigMap", `targets: [{kind: ConfigMap, name: app-config}]`,
		"spec.targets[0].kind: Invalid value: ConfigMap"+notRestartable),
	Entry("a Deployment's apiVersion has no group", `targets: [{apiVersion: v1, kind: Deployment, name: web}]`,
		"spec.targets[0].apiVersion: Invalid value: the apiVersion of a Deployment is apps/v1, not v1"+correctIt),
	Entry("a Deployment's apiVersion has no version", `targets: [{apiVersion: apps, kind: Deployment, name: web}]`,
		"spec.targets[0].apiVersion: Invalid value: the apiVersion of a Deployment is apps/v1, not apps"+correctIt),
	Entry("a DaemonSet's apiVersion is an old one",
		`targets: [{apiVersion: extensions/v1beta1, kind: DaemonSet, name: proxy}]`,
		"spec.targets[0].apiVersion: Invalid value: the apiVersion of a DaemonSet is apps/v1, not "+
			"extensions/v1beta1"+correctIt),
	Entry("a StatefulSet's apiVersion is that of a CronJob",
		`targets: [{apiVersion: batch/v1, kind: StatefulSet, name: db}]`,
		"spec.targets[0].apiVersion: Invalid value: the apiVersion of a StatefulSet is apps/v1, not batch/v1"+correctIt),
	Entry("a CronJob's apiVersion is that of a Deployment",
		`targets: [{apiVersion: apps/v1, kind: CronJob, name: report}]`,
		"spec.targets[0].apiVersion: Invalid value: the apiVersion of a CronJob is batch/v1, not apps/v1"+correctIt),
	Entry("an apiVersion is the empty string", `targets: [{apiVersion: "", kind: Deployment, name: web}]`,
		`spec.targets[0].apiVersion: Invalid value: "": spec.targets[0].apiVersion in body should be at `+
			"least 1 chars long"),
	Entry("an apiVersion has 254 characters",
		`targets: [{apiVersion: `+strings.Repeat("a", 254)+`, kind: Deployment, name: web}]`,
		"spec.targets[0].apiVersion: Too long: may not be more than 253 bytes"),
	Entry("a target has neither name nor selector", `targets: [{kind: Deployment}]`, targetNameOrSelector),
	Entry("a target has both name and selector",
		`targets: [{kind: Deployment, name: web, selector: {matchLabels: {app: web}}}]`, targetNameOrSelector),
	Entry("a target is listed twice, once with its apiVersion",
		`targets: [{kind: Deployment, name: web}, {kind: StatefulSet, name: web},
		{apiVersion: apps/v1, kind: Deployment, name: web, follow: Referenced}]`,
		"spec.targets: Invalid value: Deployment web is listed twice: list it once"),
	Entry("a target's name is the empty string", `targets: [{kind: Deployment, name: ""}]`,
		`spec.targets[0].name: Invalid value: "": spec.targets[0].name in body should be at least 1 chars `+
			"long"),
	Entry("a target's name has an upper case letter", `targets: [{kind: Deployment, name: Web}]`,
		`spec.targets[0].name: Invalid value: "Web": `+badName),
	Entry("a target's name has 254 characters",
		`targets: [{kind: Deployment, name: `+strings.Repeat("a", 254)+`}]`,
		"spec.targets[0].name: Too long: may not be more than 253 bytes"),
	Entry("a target's selector has every fault",
		`targets: [{kind: Deployment, selector: {matchLabels: {`+repeat(17, `l%d: x`)+`}, matchExpressions: [
		{key: a, operator: Is}, {key: b, operator: In}, {key: c, operator: Exists, values: [x]}]}}]`,
		"spec.targets[0].selector.matchLabels: Invalid value: too many labels: use at most 16",
		"spec.targets[0].selector.matchExpressions: Invalid value: not a valid operator: use In, NotIn, "+
			"Exists or DoesNotExist",
		"spec.targets[0].selector.matchExpressions: Invalid value: In and NotIn need values: list at least "+
			"one, or use Exists or DoesNotExist",
		"spec.targets[0].selector.matchExpressions: Invalid value: Exists and DoesNotExist take no values: "+
			"remove them, or use In or NotIn"),
	Entry("follow is Declared without sources", `targets: [{kind: Deployment, name: web, follow: Declared}]`,
		declaredNeedsSources),
	Entry("follow is Declared with an empty list of sources",
		`{sources: [], targets: [{kind: Deployment, name: web}, {kind: StatefulSet, name: db, follow: Declared}]}`,
		declaredNeedsSources),
	Entry("follow is unknown", `targets: [{kind: Deployment, name: web, follow: Mounted}]`,
		`spec.targets[0].follow: Unsupported value: "Mounted": supported values: "Declared", "Referenced"`),
	Entry("follow is in lower case", `targets: [{kind: Deployment, name: web, follow: referenced}]`,
		`spec.targets[0].follow: Unsupported value: "referenced": supported values: "Declared", "Referenced"`),
	Entry("follow is the empty string", `targets: [{kind: Deployment, name: web, follow: ""}]`,
		`spec.targets[0].follow: Unsupported value: "": supported values: "Declared", "Referenced"`),

	Entry("several things are wrong at once",
		`{sources: [{kind: ConfigMap, name: App, keys: [a/b]}, {kind: Secret}], targets: [{kind: Job, name: migrate}]}`,
		jobRefused,
		`spec.sources[0].name: Invalid value: "App": `+badName,
		`spec.sources[0].keys[0]: Invalid value: "a/b": `+badKey,
		"spec.sources[1]: Invalid value: a source needs exactly one of name (for one ConfigMap or Secret) "+
			"and selector (for all whose labels match)"),
)

var _ = DescribeTable("A field that doesn't exist is named, rather than ignored:",
	func(ctx SpecContext, spec string, fields ...string) {
		var errors []string
		for _, field := range fields {
			errors = append(errors, fmt.Sprintf("unknown field %q", field))
		}
		Expect(complaints(create(ctx, withSpec("bad", spec)))).To(ConsistOf(
			`ConfigWatch in version "v1alpha1" cannot be handled as a ConfigWatch: strict decoding error: ` +
				strings.Join(errors, ", ")))
	},

	Entry("source for sources", `source: [{kind: ConfigMap, name: app-config}]`, "spec.source"),
	Entry("target for targets", `target: {kind: Deployment, name: web}`, "spec.target"),
	Entry("suspend for mode", `{suspend: true, targets: [{kind: Deployment, name: web}]}`, "spec.suspend"),
	Entry("a source's namespace", `sources: [{kind: ConfigMap, name: ca-bundle, namespace: shared}]`,
		"spec.sources[0].namespace"),
	Entry("a source's apiVersion", `sources: [{apiVersion: v1, kind: ConfigMap, name: ca-bundle}]`,
		"spec.sources[0].apiVersion"),
	Entry("key for keys", `sources: [{kind: ConfigMap, name: ca-bundle, key: ca.crt}]`, "spec.sources[0].key"),
	Entry("follow at a source", `sources: [{kind: ConfigMap, name: ca-bundle, follow: Declared}]`,
		"spec.sources[0].follow"),
	Entry("a target's namespace", `targets: [{kind: Deployment, name: web, namespace: shop}]`,
		"spec.targets[0].namespace"),
	Entry("restartOn at a target", `targets: [{kind: Deployment, name: web, restartOn: [Added]}]`,
		"spec.targets[0].restartOn"),
	Entry("a selector in the manner of a Service", `targets: [{kind: Deployment, selector: {app: web}}]`,
		"spec.targets[0].selector.app"),
	Entry("settleSeconds beside rollout", `{targets: [{kind: Deployment, name: web}], settleSeconds: 2}`, "spec.settleSeconds"),
	Entry("settle and cooldown without their unit", `{targets: [{kind: Deployment, name: web}], rollout: {settle: 2, cooldown: 60}}`,
		"spec.rollout.cooldown", "spec.rollout.settle"),
	Entry("window for windows", `{targets: [{kind: Deployment, name: web}], rollout: {window: {schedule: "0 2 * * *"}}}`,
		"spec.rollout.window"),
	Entry("duration and timezone of a window", `{targets: [{kind: Deployment, name: web}],
		rollout: {windows: [{schedule: "0 2 * * *", duration: 2h, timezone: UTC}]}}`,
		"spec.rollout.windows[0].duration", "spec.rollout.windows[0].timezone"),
	Entry("a rollout of a target's own", `targets: [{kind: Deployment, name: web, rollout: {maxConcurrent: 1}}]`,
		"spec.targets[0].rollout"),

	Entry("a subscriber's url beside webhook", `{targets: [{kind: Deployment, name: web}],
		subscribers: [{name: cache, url: "https://example.com", webhook: {url: "https://example.com"}}]}`, "spec.subscribers[0].url"),
	Entry("a token in a webhook", `{targets: [{kind: Deployment, name: web}],
		subscribers: [{name: cache, webhook: {url: "https://example.com", token: "123"}}]}`, "spec.subscribers[0].webhook.token"),
	// Fields of later releases.
	Entry("action and refresh", `targets: [{kind: DaemonSet, name: proxy, action: Refresh, refresh: {port: 9090}}]`,
		"spec.targets[0].action", "spec.targets[0].refresh"),
)

var _ = Describe("A manifest is refused when", func() {
	It("has a field twice", func(ctx SpecContext) {
		Expect(complaints(create(ctx, withSpec("bad", "mode: Active\nmode: DryRun\n"+web)))).
			To(ConsistOf(
				`ConfigWatch in version "v1alpha1" cannot be handled as a ConfigWatch: strict decoding error: yaml: ` +
					"unmarshal errors:\n  line 6: key \"mode\" already set in map"))
	})

	It("has no spec", func(ctx SpecContext) {
		manifest, _, _ := strings.Cut(withSpec("bad", web), "spec:")
		Expect(complaints(create(ctx, manifest))).
			To(ConsistOf(
				"spec: Required value"))
	})

	It("has a name of 64 characters", func(ctx SpecContext) {
		Expect(complaints(create(ctx, withSpec(strings.Repeat("a", 64), web)))).
			To(ConsistOf(
				"metadata: Invalid value: metadata.name is too long: use at most 63 characters, because it is part " +
					"of an annotation key on the targets"))
	})

	It("has a name in upper case", func(ctx SpecContext) {
		Expect(complaints(create(ctx, withSpec("Web", web)))).To(ConsistOf(
			`metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must consist of lower case ` +
				"alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. " +
				"'example.com', regex used for validation is " +
				`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`))
	})
})

// repeat joins count copies of format, each with its number.
func repeat(count int, format string) string {
	var items []string
	for i := range count {
		items = append(items, fmt.Sprintf(format, i))
	}
	return strings.Join(items, ", ")
}
