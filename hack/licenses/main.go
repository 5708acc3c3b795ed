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

// Command licenses checks that all modules that the programs of a release are made of may be used under the licences
// that are listed here, and prints the licences of each.
//
//	go run ./hack/licenses
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are licences that ask for no more than their text and a notice.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// licenceFile is the name of a file that has a licence.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([.-].*)?$`)

// least is how much of a file, in percent, must be a licence's text.
const least = 75

// module is one that go list tells of.
type module struct {
	Path, Version, Dir string
	Main               bool
}

func main() {
	modules, err := modulesOf(context.Background(), "./cmd", "./cmd/kubectl-configwatch")
	if err == nil {
		err = check(os.Stdout, modules)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "checking licences:", err)
		os.Exit(1)
	}
}

// modulesOf are those whose packages are part of some programs.
func modulesOf(ctx context.Context, packages ...string) ([]module, error) {
	args := append([]string{"list", "-deps", "-json=Module"}, packages...)
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("listing modules: %w", err)
	}
	var modules []module
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var listed struct{ Module *module }
		err := decoder.Decode(&listed)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("listing modules: %w", err)
		}
		if listed.Module != nil && !listed.Module.Main && !slices.Contains(modules, *listed.Module) {
			modules = append(modules, *listed.Module)
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

// check prints the licences of modules, and fails if one of them isn't allowed, or isn't known.
func check(out io.Writer, modules []module) error {
	var errs []error
	for _, m := range modules {
		licences, err := licencesIn(m.Dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Path, err))
			continue
		}
		fmt.Fprintf(out, "%s %s: %s\n", m.Path, m.Version, strings.Join(licences, ", "))
		for _, licence := range licences {
			if !slices.Contains(allowed, licence) {
				errs = append(errs, fmt.Errorf("%s has the licence %s, which is none of %s", m.Path, licence, strings.Join(allowed, ", ")))
			}
		}
	}
	return errors.Join(errs...)
}

// licencesIn are those of the files in a folder that have a licence by their name.
func licencesIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading its files: %w", err)
	}
	var licences []string
	for _, entry := range entries {
		if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading its licence: %w", err)
		}
		coverage := licensecheck.Scan(text)
		if coverage.Percent < least {
			return nil, fmt.Errorf("%s is no licence that is known", entry.Name())
		}
		for _, match := range coverage.Match {
			if !match.IsURL && !slices.Contains(licences, match.ID) {
				licences = append(licences, match.ID)
			}
		}
	}
	if len(licences) == 0 {
		return nil, errors.New("it has no licence")
	}
	return licences, nil
}
