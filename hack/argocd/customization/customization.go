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

package customization

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
)

// Folder is where the scripts are in the repository, as Argo CD's own repository lays them out.
const Folder = "config/argocd/resource_customizations/configwatch.ktechhub.io/ConfigWatch"

// Actions are the names of the actions.
func Actions() []string {
	return []string{"restart", "approve", "suspend", "resume"}
}

// Scripts are all of the scripts.
type Scripts struct {
	Health    string
	Discovery string
	// Actions are by name.
	Actions map[string]string
}

// Read reads the scripts of a repository.
func Read(root string) (Scripts, error) {
	var problems []error
	read := func(path ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{root, Folder}, path...)...))
		problems = append(problems, err)
		return string(text)
	}
	s := Scripts{Health: read("health.lua"), Discovery: read("actions", "discovery.lua"), Actions: map[string]string{}}
	for _, name := range Actions() {
		s.Actions[name] = read("actions", name, "action.lua")
	}
	if err := errors.Join(problems...); err != nil {
		return Scripts{}, fmt.Errorf("reading the scripts: %w", err)
	}
	return s, nil
}

// Health is what Argo CD shows of an object.
type Health struct {
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// HealthOf runs the health check.
func (s Scripts) HealthOf(ctx context.Context, object *unstructured.Unstructured) (Health, error) {
	var health Health
	return health, run(ctx, s.Health, object, &health)
}

// Disabled is the state of each action that is offered for an object: whether it is there to see only.
func (s Scripts) Disabled(ctx context.Context, object *unstructured.Unstructured) (map[string]bool, error) {
	var offered map[string]struct {
		Disabled bool `json:"disabled"`
	}
	if err := run(ctx, s.Discovery, object, &offered); err != nil {
		return nil, err
	}
	disabled := map[string]bool{}
	for name, action := range offered {
		disabled[name] = action.Disabled
	}
	return disabled, nil
}

// Run is what an action makes of an object. Argo CD sends the difference as a merge patch.
func (s Scripts) Run(ctx context.Context, action string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	script, ok := s.Actions[action]
	if !ok {
		return nil, fmt.Errorf("there is no action %s", action)
	}
	result := map[string]any{}
	if err := run(ctx, script, object, &result); err != nil {
		return nil, err
	}
	keepEmpty(result, object.Object)
	return &unstructured.Unstructured{Object: result}, nil
}

// run runs a script about an object, and decodes what it returns.
func run(ctx context.Context, script string, object *unstructured.Unstructured, result any) error {
	const timeout = time.Second // Argo CD's
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return fmt.Errorf("opening the library %s: %w", name, err)
		}
	}
	if err := clockOnly(state); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	state.SetContext(ctx)
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("encoding the object: %w", err)
	}
	value, err := luajson.Decode(state, encoded)
	if err != nil {
		return fmt.Errorf("handing the object over: %w", err)
	}
	state.SetGlobal("obj", value)
	if err := state.DoString(script); err != nil {
		return fmt.Errorf("running the script: %w", err)
	}
	returned, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return fmt.Errorf("the script returned a %s, not a table", state.Get(-1).Type())
	}
	encoded, err = luajson.Encode(returned)
	if err != nil {
		return fmt.Errorf("encoding what the script returned: %w", err)
	}
	if err := json.Unmarshal(encoded, result); err != nil {
		return fmt.Errorf("decoding what the script returned: %w", err)
	}
	return nil
}

// clockOnly leaves of the library os what tells the time, as Argo CD does.
func clockOnly(state *lua.LState) error {
	if err := state.CallByParam(lua.P{Fn: state.NewFunction(lua.OpenOs), Protect: true}, lua.LString(lua.OsLibName)); err != nil {
		return fmt.Errorf("opening the library os: %w", err)
	}
	whole := state.GetGlobal(lua.OsLibName)
	clock := state.NewTable()
	for _, name := range []string{"date", "time"} {
		state.SetField(clock, name, state.GetField(whole, name))
	}
	state.SetGlobal(lua.OsLibName, clock)
	state.SetField(state.GetField(state.GetGlobal("package"), "loaded"), lua.OsLibName, clock)
	return nil
}

// keepEmpty puts back the empty objects that were there before: to Lua they are the same as empty lists.
func keepEmpty(after, before map[string]any) {
	for key, value := range before {
		switch was := value.(type) {
		case map[string]any:
			switch is := after[key].(type) {
			case map[string]any:
				keepEmpty(is, was)
			case []any:
				if len(is) == 0 {
					after[key] = was
				}
			}
		case []any:
			if is, ok := after[key].([]any); ok && len(is) == len(was) {
				keepEmptyIn(is, was)
			}
		}
	}
}

func keepEmptyIn(after, before []any) {
	for i := range before {
		was, wasObject := before[i].(map[string]any)
		if is, ok := after[i].(map[string]any); ok && wasObject {
			keepEmpty(is, was)
		}
	}
}
