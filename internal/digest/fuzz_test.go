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

package digest_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/ktechhub/configwatch/internal/digest"
)

// object is what a ConfigMap holds.
type object struct {
	data   text
	binary blob
}

// decode makes an object of any bytes: for each entry a byte whose highest bit is the field and whose
// others are the length of the key, the key, a byte that is the length of the value, and the value.
func decode(in []byte) object {
	o := object{text{}, blob{}}
	next := func(n int) []byte {
		n = min(n, len(in))
		var part []byte
		part, in = in[:n], in[n:]
		return part
	}
	for len(in) > 0 {
		head := next(1)[0]
		key := string(next(int(head & 0x7f)))
		var value []byte
		if length := next(1); len(length) > 0 {
			value = next(int(length[0]))
		}
		if head&0x80 == 0 {
			o.data[key] = string(value)
		} else {
			o.binary[key] = value
		}
	}
	return o
}

func (o object) content(h *digest.Hasher) digest.Content {
	return h.Content(o.data, o.binary)
}

// rebuilt is the same object, its keys inserted in another order, and values in memory of their own.
func (o object) rebuilt() object {
	again := object{text{}, blob{}}
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(o.data))) {
		again.data[key] = o.data[key]
	}
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(o.binary))) {
		again.binary[key] = slices.Clone(o.binary[key])
	}
	return again
}

// differences are the keys in which two objects differ, by comparing the maps.
func differences(before, after object) []string {
	changed := map[string]bool{}
	for _, o := range []object{before, after} {
		for key := range o.data {
			b, inBefore := before.data[key]
			a, inAfter := after.data[key]
			if inBefore != inAfter || b != a {
				changed[key] = true
			}
		}
		for key := range o.binary {
			b, inBefore := before.binary[key]
			a, inAfter := after.binary[key]
			if inBefore != inAfter || string(b) != string(a) {
				changed[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

func addSeeds(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte("\x01a\x051;b=2"), []byte("\x01a\x011\x01b\x012"))
	f.Add([]byte("\x01a\x011"), []byte("\x81a\x011"))
	f.Add([]byte("\x02ab\x01c"), []byte("\x01a\x02bc"))
	f.Add([]byte("\x00\x00"), []byte("\x80\x00"))
	f.Add([]byte("\x01a\x011\x81a\x012"), []byte("\x01a\x012\x81a\x011"))
	f.Add([]byte("\x01b\x011\x01a\x012"), []byte("\x01a\x012\x01b\x011"))
	f.Add([]byte("\x81\xff\x02\xff\xfe"), []byte("\x01\xff\x02\xff\xfe"))
}

// FuzzContent: two objects have the same hash if, and only if, they are the same (E1).
func FuzzContent(f *testing.F) {
	addSeeds(f)
	hashers := []*digest.Hasher{digest.Plain(), digest.Keyed(operatorKey())}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		one, other := decode(a), decode(b)
		same := len(differences(one, other)) == 0
		for _, h := range hashers {
			if one.content(h).Hash(nil) != one.rebuilt().content(h).Hash(nil) {
				t.Errorf("%v has two hashes", one)
			}
			x, y := one.content(h), other.content(h)
			if (x.Hash(nil) == y.Hash(nil)) != same || x.Equal(y) != same {
				t.Errorf("%v is %s, %v is %s", one, x.Hash(nil), other, y.Hash(nil))
			}
			for key := range one.data {
				keys := []string{key, "absent"}
				unchanged := !slices.ContainsFunc(differences(one, other), func(k string) bool { return slices.Contains(keys, k) })
				if (x.Hash(keys) == y.Hash(keys)) != unchanged {
					t.Errorf("of the keys %q, %v is %s, %v is %s", keys, one, x.Hash(keys), other, y.Hash(keys))
				}
			}
		}
	})
}

// FuzzChangedKeys: they are those in which the maps differ, none if the hashes are the same.
func FuzzChangedKeys(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		before, after := decode(a), decode(b)
		x, y := before.content(digest.Plain()), after.content(digest.Plain())
		got := digest.ChangedKeys(x, y)
		if want := differences(before, after); !slices.Equal(got, want) {
			t.Errorf("between %v and %v: got %q, want %q", before, after, got, want)
		}
		if (len(got) == 0) != (x.Hash(nil) == y.Hash(nil)) {
			t.Errorf("%q changed between %s and %s", got, x.Hash(nil), y.Hash(nil))
		}
	})
}

func BenchmarkContent(b *testing.B) {
	for _, size := range []struct{ keys, bytes int }{{1, 64}, {10, 1 << 10}, {1, 1 << 20}, {10_000, 64}} {
		data := make(map[string][]byte, size.keys)
		for i := range size.keys {
			data[fmt.Sprintf("key-%d", i)] = make([]byte, size.bytes)
		}
		for name, h := range map[string]*digest.Hasher{"plain": digest.Plain(), "keyed": digest.Keyed(operatorKey())} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, size.keys, size.bytes), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size.keys * size.bytes))
				for b.Loop() {
					h.SecretContent(data)
				}
			})
		}
	}
}
