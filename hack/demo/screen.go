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
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// screen is where the demo is watched: a terminal, or a file.
type screen struct {
	out     io.Writer
	colours bool
}

// The styles of a terminal.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func newScreen(out io.Writer, colours bool) *screen {
	return &screen{out: out, colours: colours}
}

// wantsColours tells whether a file is a terminal whose user has nothing against colours (no-color.org).
func wantsColours(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func (s *screen) print(text string) {
	_, _ = io.WriteString(s.out, text) // there is nobody to tell
}

func (s *screen) styled(style, text string) string {
	if !s.colours {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (s *screen) title(text string) {
	s.print("\n" + s.styled(bold, text) + "\n")
}

func (s *screen) say(text string) {
	s.print("   " + text + "\n")
}

// doing tells what takes a while, and done that it is over and how long it took.
func (s *screen) doing(what string) (done func(error)) {
	const width = 50
	started := time.Now()
	s.print(fmt.Sprintf("   %-*s ", width, what))
	return func(err error) {
		if err != nil {
			s.print(s.styled(red, "✗") + "\n")
			return
		}
		s.print(s.styled(dim, seconds(time.Since(started))) + "\n")
	}
}

// seen is something that was observed some time after what caused it.
func (s *screen) seen(after time.Duration, what string) {
	s.print(fmt.Sprintf("   %s  %s\n", s.styled(dim, "+"+seconds(after)), what))
}

func (s *screen) command(line, output string) {
	s.print("   " + s.styled(cyan, "$ "+line) + "\n")
	for line := range strings.Lines(output) {
		s.print("     " + s.styled(dim, strings.TrimRight(line, "\n ")) + "\n")
	}
}

func (s *screen) verdict(good bool, text string) {
	if good {
		s.print("   " + s.styled(green, "✓ ") + text + "\n")
		return
	}
	s.print("   " + s.styled(red, "✗ ") + text + "\n")
}

func seconds(d time.Duration) string {
	return fmt.Sprintf("%.2f s", d.Seconds())
}
