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

// Command docs writes docs/reference, from the CRD and from the code, so that it can't be wrong.
//
//	go run ./hack/docs [folder of the repository]
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// page is a page of the reference, under docs/reference.
type page struct {
	file string
	// write makes its text from the repository in the folder root.
	write func(root string) (string, error)
}

// pages is every page that is generated.
var pages = []page{
	{"api.md", apiPage},
	{"constants.md", constantsPage},
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string) error {
	folder := filepath.Join(root, "docs", "reference")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder of the reference: %w", err)
	}
	for _, p := range pages {
		text, err := p.write(root)
		if err != nil {
			return fmt.Errorf("generating %s: %w", p.file, err)
		}
		if err := os.WriteFile(filepath.Join(folder, p.file), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the reference: %w", err)
		}
	}
	return nil
}

// generated is the first line of every page, which says where it comes from.
func generated(from string) string {
	return "<!-- Generated from " + from + " by `go run ./hack/docs`. DO NOT EDIT. -->\n\n"
}
