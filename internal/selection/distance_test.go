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

package selection

import (
	"math/rand/v2"
	"testing"
)

func shuffle[T any](items []T) {
	rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
}

// levenshtein is the distance by its definition.
func levenshtein(a, b string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		for j := range table[i] {
			switch {
			case i == 0:
				table[i][j] = j
			case j == 0:
				table[i][j] = i
			case a[i-1] == b[j-1]:
				table[i][j] = table[i-1][j-1]
			default:
				table[i][j] = 1 + min(table[i-1][j-1], table[i-1][j], table[i][j-1])
			}
		}
	}
	return table[len(a)][len(b)]
}

// FuzzDistance: it is Levenshtein's, as far as the limit.
func FuzzDistance(f *testing.F) {
	f.Add("", "", uint8(3))
	f.Add("app-config", "app-confg", uint8(3))
	f.Add("kitten", "sitting", uint8(9))
	f.Add("abc", "", uint8(0))
	f.Add("a", "b", uint8(1))
	f.Add("web", "bew", uint8(3))
	f.Add("\xff\x00", "ü", uint8(4))
	f.Fuzz(func(t *testing.T, a, b string, limit uint8) {
		if len(a) > 253 || len(b) > 253 {
			t.Skip("no name is as long")
		}
		want := min(levenshtein(a, b), int(limit))
		if got := distance(a, b, int(limit)); got != want {
			t.Errorf("distance(%q, %q, %d) = %d, want %d", a, b, limit, got, want)
		}
	})
}
