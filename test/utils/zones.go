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

package utils

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ktechhub/configwatch/api/v1alpha1"
)

// Zones is a folder of time zones of a test's own making, by which windows open at a second of its choice: a
// schedule has nothing finer than minutes, but a clock may be ahead by seconds.
type Zones string

// Env makes a manager know them.
func (z Zones) Env() string {
	return "ZONEINFO=" + string(z)
}

// Window opens at that second, each day, for so many minutes.
func (z Zones) Window(opening time.Time, minutes int32) (v1alpha1.Window, error) {
	behind := opening.Unix() % 60
	name := fmt.Sprintf("Behind%d", behind)
	if err := os.WriteFile(filepath.Join(string(z), name), fixedZone(-int32(behind)), 0o600); err != nil {
		return v1alpha1.Window{}, fmt.Errorf("making a time zone: %w", err)
	}
	shown := opening.UTC().Add(-time.Duration(behind) * time.Second)
	return v1alpha1.Window{
		Schedule: fmt.Sprintf("%d %d * * *", shown.Minute(), shown.Hour()), DurationMinutes: minutes, TimeZone: name,
	}, nil
}

// fixedZone is a time zone whose clock is never changed, as a file has it (RFC 8536, section 3).
func fixedZone(secondsAhead int32) []byte {
	const abbreviation = "TST\x00"
	file := append([]byte("TZif"), make([]byte, 16)...) // version 1, and what is reserved
	for _, count := range []uint32{0, 0, 0, 0, 1, uint32(len(abbreviation))} {
		file = binary.BigEndian.AppendUint32(file, count)
	}
	file = binary.BigEndian.AppendUint32(file, uint32(secondsAhead))
	file = append(file, 0, 0) // no daylight saving time, and the first abbreviation
	return append(file, abbreviation...)
}
