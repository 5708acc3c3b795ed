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

package digest

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strings"
)

// version is the format version of hashes. Whoever changes what is hashed, or how, raises it, and
// recorded hashes are then read again as baselines.
const version = "1"

// hashDigits is the length of a hash after its format, in hexadecimal digits.
const hashDigits = 16

// idDigits is the length of the ids of keys and scopes within a format, in hexadecimal digits.
const idDigits = 8

// Hash is the digest of some content: a format, a colon and 16 hexadecimal digits.
//
//	1:9f86d081884c7d65                     all keys of a ConfigMap
//	1/5b0c6f2e:9f86d081884c7d65            the keys that scope 5b0c6f2e stands for
//	1.3fa9c1d2:9f86d081884c7d65            all keys of a Secret, under operator key 3fa9c1d2
//	1.3fa9c1d2/5b0c6f2e:9f86d081884c7d65   some keys of a Secret
//
// Hashes of different formats can't be compared.
type Hash string

// Format is the part before the colon: what was hashed and how.
func (h Hash) Format() string {
	format, _, _ := strings.Cut(string(h), ":")
	return format
}

// Comparable tells whether the two were made alike, so that they differ only if the content does.
func (h Hash) Comparable(other Hash) bool {
	return h.Format() == other.Format()
}

// SameMethod tells whether two hashes differ at most in their scope: if not, the format version or
// the operator's key is another.
func (h Hash) SameMethod(other Hash) bool {
	method, _, _ := strings.Cut(h.Format(), "/")
	otherMethod, _, _ := strings.Cut(other.Format(), "/")
	return method == otherMethod
}

// Field is the field of an object that a key is in.
type Field byte

const (
	// Data is a ConfigMap's or Secret's data.
	Data Field = 'd'
	// BinaryData is a ConfigMap's binaryData.
	BinaryData Field = 'b'

	// absent stands for a key of a scope that is in neither.
	absent Field = 'a'
)

// Hasher makes digests: with SHA-256, or with HMAC-SHA-256 under a key. It is safe for concurrent use.
type Hasher struct {
	key    []byte
	method string
}

// Plain makes digests that anyone can recompute.
func Plain() *Hasher {
	return &Hasher{method: version}
}

// Keyed makes digests that can only be recomputed, and guesses only be tested, with the key.
func Keyed(key []byte) *Hasher {
	h := &Hasher{key: bytes.Clone(key)}
	sum := h.new()
	sum.Write([]byte("configwatch key id"))
	h.method = version + "." + hex.EncodeToString(sum.Sum(nil))[:idDigits]
	return h
}

func (h *Hasher) new() hash.Hash {
	if h.key == nil {
		return sha256.New()
	}
	return hmac.New(sha256.New, h.key)
}

// entry is the digest of one key and its value.
type entry struct {
	key   string
	field Field
	sum   [sha256.Size]byte
}

func compareEntries(a, b entry) int {
	return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.field, b.field))
}

// Content is what is kept of the data of a source: a digest for each key, and no value.
type Content struct {
	hasher  *Hasher
	entries []entry
	hash    Hash
}

// Content reduces a source's data. Either map may be nil.
//
// E1: each entry is hashed with its field, and key and value with their lengths, so that no two
// different maps look alike; the order of keys does not matter.
func (h *Hasher) Content(data map[string]string, binaryData map[string][]byte) Content {
	c := Content{hasher: h, entries: make([]entry, 0, len(data)+len(binaryData))}
	for key, value := range data {
		c.entries = append(c.entries, h.entry(Data, key, []byte(value)))
	}
	for key, value := range binaryData {
		c.entries = append(c.entries, h.entry(BinaryData, key, value))
	}
	c.seal()
	return c
}

// SecretContent reduces a Secret's data.
func (h *Hasher) SecretContent(data map[string][]byte) Content {
	c := Content{hasher: h, entries: make([]entry, 0, len(data))}
	for key, value := range data {
		c.entries = append(c.entries, h.entry(Data, key, value))
	}
	c.seal()
	return c
}

func (c *Content) seal() {
	slices.SortFunc(c.entries, compareEntries)
	c.hash = c.hasher.sum(c.hasher.method, c.entries)
}

func (h *Hasher) entry(field Field, key string, value []byte) entry {
	e := entry{key: key, field: field}
	sum := h.new()
	sum.Write([]byte{byte(field)})
	writePrefixed(sum, []byte(key))
	writePrefixed(sum, value)
	sum.Sum(e.sum[:0])
	return e
}

// sum combines the digests of entries, in their order.
func (h *Hasher) sum(format string, entries []entry) Hash {
	sum := h.new()
	for i := range entries {
		sum.Write(entries[i].sum[:])
	}
	return Hash(format + ":" + hex.EncodeToString(sum.Sum(nil))[:hashDigits])
}

// writePrefixed writes b after its length, as 8 bytes, the most significant first.
func writePrefixed(w hash.Hash, b []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(b)))
	w.Write(length[:])
	w.Write(b)
}

// Hash is the digest of the content as far as the keys go; of all of it where there are none. The
// order of keys, and naming one twice, does not matter. An absent key is a value of its own.
func (c Content) Hash(keys []string) Hash {
	if len(keys) == 0 || c.hasher == nil {
		return c.hash
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	entries := make([]entry, 0, len(keys))
	for _, key := range keys {
		found := c.find(key)
		if len(found) == 0 {
			found = []entry{c.hasher.entry(absent, key, nil)}
		}
		entries = append(entries, found...)
	}
	return c.hasher.sum(c.hasher.method+"/"+scope(keys), entries)
}

// find is the entries of a key: none or one, as the API server allows a key in one field only.
func (c Content) find(key string) []entry {
	from, _ := slices.BinarySearchFunc(c.entries, entry{key: key}, compareEntries)
	to := from
	for to < len(c.entries) && c.entries[to].key == key {
		to++
	}
	return c.entries[from:to]
}

// scope names a sorted list of keys.
func scope(keys []string) string {
	sum := sha256.New()
	for _, key := range keys {
		writePrefixed(sum, []byte(key))
	}
	return hex.EncodeToString(sum.Sum(nil))[:idDigits]
}

// Equal tells whether the content is the same. Content of different hashers is not.
func (c Content) Equal(other Content) bool {
	return c.hash == other.hash
}

// ChangedKeys is the sorted names of the keys that were added, removed or changed between two
// contents of the same hasher.
func ChangedKeys(before, after Content) []string {
	var changed []string
	b, a := before.entries, after.entries
	for len(b) > 0 || len(a) > 0 {
		switch {
		case len(b) > 0 && len(a) > 0 && b[0] == a[0]:
			b, a = b[1:], a[1:]
		case len(a) == 0 || len(b) > 0 && compareEntries(b[0], a[0]) < 0:
			changed, b = append(changed, b[0].key), b[1:]
		case len(b) == 0 || compareEntries(b[0], a[0]) > 0:
			changed, a = append(changed, a[0].key), a[1:]
		default:
			changed, b, a = append(changed, b[0].key), b[1:], a[1:]
		}
	}
	return slices.Compact(changed)
}

// Part is one source's share in the digest of a restart.
type Part struct {
	// Kind and Name are those of the source.
	Kind, Name string
	// Hash is that of its content, empty if it has never had any.
	Hash Hash
	// Absent tells that it does not exist.
	Absent bool
}

// Combine is the digest of the content that a restart is made for, in 16 hexadecimal digits. The
// order of the parts does not matter.
func Combine(parts []Part) string {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b Part) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	sum := sha256.New()
	for _, p := range parts {
		writePrefixed(sum, []byte(p.Kind))
		writePrefixed(sum, []byte(p.Name))
		if p.Absent {
			sum.Write([]byte{byte(absent)})
			continue
		}
		sum.Write([]byte{byte(Data)})
		writePrefixed(sum, []byte(p.Hash))
	}
	return hex.EncodeToString(sum.Sum(nil))[:hashDigits]
}
