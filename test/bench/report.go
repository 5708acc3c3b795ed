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

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// row is a figure of the report.
type row struct {
	Name string `json:"name"`
	// Unit is that of Manager and Floor.
	Unit    string  `json:"unit"`
	Manager float64 `json:"manager"`
	// Floor is what the floor takes, where it can do the same at all.
	Floor *float64 `json:"floor,omitempty"`
	// Ratio is Manager / Floor.
	Ratio *float64 `json:"ratio,omitempty"`
	// Limit is what must be reached, by the ratio where there is one, else by the manager's figure.
	Limit *float64 `json:"limit,omitempty"`
	// Reached tells whether it is.
	Reached *bool `json:"reached,omitempty"`
}

type report struct {
	Rows []row `json:"rows"`
}

func compared(name string, limit float64, manager, floor time.Duration) row {
	r := row{Name: name, Unit: "ms", Manager: milliseconds(manager), Floor: new(milliseconds(floor))}
	r.Ratio = new(r.Manager / *r.Floor)
	if limit > 0 {
		r.Limit = &limit
	}
	return r
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

func (r *report) add(rows ...row) {
	for _, added := range rows {
		if added.Limit != nil {
			figure := added.Manager
			if added.Ratio != nil {
				figure = *added.Ratio
			}
			added.Reached = new(figure <= *added.Limit)
		}
		r.Rows = append(r.Rows, added)
	}
}

func (r *report) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tmanager\tfloor\tratio\tlimit\treached")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%s\t%.1f %s\t%s\t%s\t%s\t%s\n", row.Name, row.Manager, row.Unit,
			optional(row.Floor, "%.1f"), optional(row.Ratio, "%.2f"), optional(row.Limit, "%g"), reached(row.Reached))
	}
	_ = w.Flush() // the terminal is gone: nobody is left to tell
}

func optional(v *float64, format string) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf(format, *v)
}

func reached(v *bool) string {
	switch {
	case v == nil:
		return "–"
	case *v:
		return "yes"
	}
	return "NO"
}

func (r *report) write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
