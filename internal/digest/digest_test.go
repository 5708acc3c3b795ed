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
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/digest"
)

// text and blob are the types of a ConfigMap's data and binaryData.
type (
	text = map[string]string
	blob = map[string][]byte
)

// appConfig is the content that docs/reference/hash.md takes as its example.
func appConfig() digest.Content {
	return digest.Plain().Content(text{"LOG_LEVEL": "debug", "FEATURES": "a,b"}, blob{"logo": {0xff, 0x00, 0xfe}})
}

func credentials(key []byte) digest.Content {
	return digest.Keyed(key).SecretContent(blob{"user": []byte("admin"), "password": []byte("hunter2")})
}

// Hashes are recorded in status: whoever makes one of these differ must raise the format version, or
// an upgrade restarts everything (E3).
func TestE2HashesStayTheSameForEver(t *testing.T) {
	key := operatorKey()
	for name, tc := range map[string]struct{ got, want digest.Hash }{
		"an empty ConfigMap":            {digest.Plain().Content(nil, nil).Hash(nil), "1:e3b0c44298fc1c14"},
		"a ConfigMap":                   {appConfig().Hash(nil), "1:3067d7b4cd573a26"},
		"two keys of a ConfigMap":       {appConfig().Hash([]string{"LOG_LEVEL", "FEATURES"}), "1/c7cce044:a292a1967b2a44f4"},
		"a key that is not there":       {appConfig().Hash([]string{"LOG_LEVEL", "gone"}), "1/5fff92ab:0ac654cc0539eb33"},
		"an empty Secret":               {digest.Keyed(key).SecretContent(nil).Hash(nil), "1.ffaa4027:d38b42096d80f45f"},
		"a Secret":                      {credentials(key).Hash(nil), "1.ffaa4027:adf3c8264d45dffc"},
		"a key of a Secret":             {credentials(key).Hash([]string{"password"}), "1.ffaa4027/708a2bdf:4c3b09d6f8dbb0bd"},
		"a value that looks like a map": {digest.Plain().Content(text{"a": "1;b=2"}, nil).Hash(nil), "1:9a0e73f215f5a3ef"},
		"a map like that value":         {digest.Plain().Content(text{"a": "1", "b": "2"}, nil).Hash(nil), "1:c04762e3a8d1b489"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.got).To(Equal(tc.want))
		})
	}
}

func TestE2HashesAreMadeOfTheDocumentedBytes(t *testing.T) {
	key := operatorKey()
	method := "1." + hmacSHA256(key, []byte("configwatch key id"))[:8]
	names := concat(prefixed("password"), prefixed("zzz"))
	keyed := func(b []byte) []byte { return unhex(t, hmacSHA256(key, b)) }
	plain := func(b []byte) []byte { return unhex(t, sha256Hex(b)) }

	for name, tc := range map[string]struct{ got, want string }{
		"a ConfigMap": {
			string(appConfig().Hash(nil)),
			"1:" + sha256Hex(concat(
				plain(concat("d", prefixed("FEATURES"), prefixed("a,b"))),
				plain(concat("d", prefixed("LOG_LEVEL"), prefixed("debug"))),
				plain(concat("b", prefixed("logo"), prefixed("\xff\x00\xfe")))))[:16],
		},
		"a Secret": {
			string(credentials(key).Hash(nil)),
			method + ":" + hmacSHA256(key, concat(
				keyed(concat("d", prefixed("password"), prefixed("hunter2"))),
				keyed(concat("d", prefixed("user"), prefixed("admin")))))[:16],
		},
		"keys of a Secret, one of them absent": {
			string(credentials(key).Hash([]string{"zzz", "password"})),
			method + "/" + sha256Hex(names)[:8] + ":" + hmacSHA256(key, concat(
				keyed(concat("d", prefixed("password"), prefixed("hunter2"))),
				keyed(concat("a", prefixed("zzz"), prefixed("")))))[:16],
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.got).To(Equal(tc.want))
		})
	}
}

func TestE1DifferentContentHasDifferentHashes(t *testing.T) {
	type content struct {
		data   text
		binary blob
	}
	for name, tc := range map[string]struct{ one, other content }{
		"a separator in a value":        {content{data: text{"a": "1;b=2"}}, content{data: text{"a": "1", "b": "2"}}},
		"a value that moves to the key": {content{data: text{"ab": "c"}}, content{data: text{"a": "bc"}}},
		"a boundary between two keys":   {content{data: text{"a": "bc", "d": "e"}}, content{data: text{"a": "b", "cd": "e"}}},
		"the field that a key is in":    {content{data: text{"a": "1"}}, content{binary: blob{"a": []byte("1")}}},
		"values that change places":     {content{data: text{"a": "1", "b": "2"}}, content{data: text{"a": "2", "b": "1"}}},
		"a key without a value":         {content{data: text{"a": ""}}, content{}},
		"a line feed at the end":        {content{data: text{"a": "1"}}, content{data: text{"a": "1\n"}}},
		"a byte that is not UTF-8":      {content{binary: blob{"a": {0xff}}}, content{binary: blob{"a": []byte("\ufffd")}}},
		"zero bytes":                    {content{binary: blob{"a": {0}}}, content{binary: blob{"a": {0, 0}}}},
		"upper and lower case":          {content{data: text{"a": "x"}}, content{data: text{"A": "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			one := digest.Plain().Content(tc.one.data, tc.one.binary)
			other := digest.Plain().Content(tc.other.data, tc.other.binary)
			g.Expect(one.Hash(nil)).NotTo(Equal(other.Hash(nil)))
			g.Expect(one.Equal(other)).To(BeFalse())
			g.Expect(digest.ChangedKeys(one, other)).NotTo(BeEmpty())
		})
	}
}

func TestE1EmptyAndAbsentMapsAreTheSame(t *testing.T) {
	g := NewWithT(t)
	none := digest.Plain().Content(nil, nil)
	empty := digest.Plain().Content(text{}, blob{})
	g.Expect(empty.Equal(none)).To(BeTrue())
	g.Expect(empty.Hash(nil)).To(Equal(none.Hash(nil)))

	secret := digest.Keyed(operatorKey())
	g.Expect(secret.SecretContent(blob{}).Equal(secret.SecretContent(nil))).To(BeTrue())
	g.Expect(secret.SecretContent(blob{"a": {}}).Equal(secret.SecretContent(blob{"a": nil}))).
		To(BeTrue(), "a value that is empty is the same however it is written")
}

func TestE1OnlyTheKeysOfTheSpecCount(t *testing.T) {
	g := NewWithT(t)
	keys := []string{"LOG_LEVEL", "gone"}
	content := func(data text) digest.Hash { return digest.Plain().Content(data, nil).Hash(keys) }
	before := content(text{"LOG_LEVEL": "debug", "other": "1"})

	g.Expect(content(text{"LOG_LEVEL": "debug", "other": "2", "more": "3"})).To(Equal(before), "other keys")
	g.Expect(content(text{"LOG_LEVEL": "info", "other": "1"})).NotTo(Equal(before), "a key that counts")
	g.Expect(content(text{"other": "1"})).NotTo(Equal(before), "a key that counts is removed")
	g.Expect(content(text{"LOG_LEVEL": "debug", "gone": ""})).NotTo(Equal(before), "a key that was absent is added, empty")
	g.Expect(digest.Plain().Content(nil, blob{"LOG_LEVEL": []byte("debug")}).Hash(keys)).
		NotTo(Equal(before), "a key moves to the other field")
}

func TestE1OrderAndRepetitionOfKeysDoNotMatter(t *testing.T) {
	g := NewWithT(t)
	c := appConfig()
	hash := c.Hash([]string{"FEATURES", "LOG_LEVEL"})
	keys := []string{"LOG_LEVEL", "FEATURES", "LOG_LEVEL"}
	g.Expect(c.Hash(keys)).To(Equal(hash))
	g.Expect(keys).To(Equal([]string{"LOG_LEVEL", "FEATURES", "LOG_LEVEL"}), "the caller's keys stay as they are")
	g.Expect(c.Hash([]string{})).To(Equal(c.Hash(nil)), "no keys are all keys")
}

func TestE1ScopesAreToldApart(t *testing.T) {
	g := NewWithT(t)
	c := digest.Plain().Content(text{"a": "1"}, nil)
	scopes := [][]string{nil, {"a"}, {"b"}, {"a", "b"}, {"ab"}, {"a", "b", "ab"}}
	for i, one := range scopes {
		for j, other := range scopes {
			g.Expect(c.Hash(one).Comparable(c.Hash(other))).To(Equal(i == j), "%v and %v", one, other)
			g.Expect(c.Hash(one).SameMethod(c.Hash(other))).To(BeTrue(), "%v and %v", one, other)
		}
	}
}

func TestE3HashesOfOtherFormatsCanNotBeCompared(t *testing.T) {
	for name, tc := range map[string]struct {
		one, other             digest.Hash
		comparable, sameMethod bool
	}{
		"the same":           {"1:aaaa", "1:bbbb", true, true},
		"another version":    {"1:aaaa", "2:aaaa", false, false},
		"another scope":      {"1/11111111:aaaa", "1/22222222:aaaa", false, true},
		"with and without":   {"1/11111111:aaaa", "1:aaaa", false, true},
		"another key":        {"1.11111111:aaaa", "1.22222222:aaaa", false, false},
		"another key, scope": {"1.11111111/33333333:aaaa", "1.22222222/33333333:aaaa", false, false},
		"keyed and plain":    {"1.11111111:aaaa", "1:aaaa", false, false},
		"of the same key":    {"1.11111111:aaaa", "1.11111111/33333333:bbbb", false, true},
		"no hash":            {"", "1:aaaa", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tc.one.Comparable(tc.other)).To(Equal(tc.comparable))
			g.Expect(tc.other.Comparable(tc.one)).To(Equal(tc.comparable))
			g.Expect(tc.one.SameMethod(tc.other)).To(Equal(tc.sameMethod))
			g.Expect(tc.other.SameMethod(tc.one)).To(Equal(tc.sameMethod))
		})
	}
}

func TestE2ASecretsHashTakesTheKey(t *testing.T) {
	g := NewWithT(t)
	otherKey := bytes.Repeat([]byte{7}, 32)
	plain := digest.Plain().SecretContent(blob{"user": []byte("admin"), "password": []byte("hunter2")})
	one, other := credentials(operatorKey()), credentials(otherKey)

	g.Expect(one.Hash(nil).Format()).NotTo(Equal(other.Hash(nil).Format()), "the id of the key tells the two apart")
	g.Expect(one.Hash(nil).SameMethod(other.Hash(nil))).To(BeFalse())
	g.Expect(one.Hash(nil).SameMethod(plain.Hash(nil))).To(BeFalse())
	g.Expect(one.Equal(other)).To(BeFalse())
	g.Expect(digits(one)).NotTo(Equal(digits(other)))
	g.Expect(digits(one)).NotTo(Equal(digits(plain)))

	scoped := []string{"password"}
	g.Expect(strings.Split(string(one.Hash(scoped)), ":")[1]).
		NotTo(Equal(strings.Split(string(plain.Hash(scoped)), ":")[1]))
	g.Expect(one.Hash([]string{"gone"})).NotTo(Equal(other.Hash([]string{"gone"})))
}

func TestE2TheKeyIsCopied(t *testing.T) {
	g := NewWithT(t)
	key := operatorKey()
	h := digest.Keyed(key)
	before := h.SecretContent(blob{"a": []byte("1")}).Hash(nil)
	clear(key)
	g.Expect(h.SecretContent(blob{"a": []byte("1")}).Hash(nil)).To(Equal(before))
}

func TestHashesFitTheStatus(t *testing.T) {
	g := NewWithT(t)
	for _, h := range []digest.Hash{
		appConfig().Hash(nil), appConfig().Hash([]string{"a"}),
		credentials(operatorKey()).Hash(nil), credentials(operatorKey()).Hash([]string{"a"}),
	} {
		g.Expect(string(h)).To(MatchRegexp(`^1(\.[0-9a-f]{8})?(/[0-9a-f]{8})?:[0-9a-f]{16}$`))
		g.Expect(len(h)).To(BeNumerically("<=", 64), "the schema's limit for a hash")
	}
}

func TestNoContentHasNoHash(t *testing.T) {
	g := NewWithT(t)
	var none digest.Content
	g.Expect(none.Hash(nil)).To(BeEmpty())
	g.Expect(none.Hash([]string{"a"})).To(BeEmpty())
	g.Expect(digest.ChangedKeys(none, appConfig())).To(Equal([]string{"FEATURES", "LOG_LEVEL", "logo"}))
}

func TestE27ChangedKeysAreNamed(t *testing.T) {
	before := digest.Plain().Content(text{"b": "1", "d": "1", "f": "1"}, blob{"h": {1}})
	for name, tc := range map[string]struct {
		data   text
		binary blob
		want   []string
	}{
		"none":                     {text{"f": "1", "d": "1", "b": "1"}, blob{"h": {1}}, nil},
		"one changed":              {text{"b": "1", "d": "2", "f": "1"}, blob{"h": {1}}, []string{"d"}},
		"first added":              {text{"a": "1", "b": "1", "d": "1", "f": "1"}, blob{"h": {1}}, []string{"a"}},
		"last added":               {text{"b": "1", "d": "1", "f": "1", "z": ""}, blob{"h": {1}}, []string{"z"}},
		"first removed":            {text{"d": "1", "f": "1"}, blob{"h": {1}}, []string{"b"}},
		"last removed":             {text{"b": "1", "d": "1", "f": "1"}, nil, []string{"h"}},
		"all removed":              {nil, nil, []string{"b", "d", "f", "h"}},
		"one renamed":              {text{"b": "1", "e": "1", "f": "1"}, blob{"h": {1}}, []string{"d", "e"}},
		"moved to binaryData":      {text{"b": "1", "f": "1"}, blob{"d": []byte("1"), "h": {1}}, []string{"d"}},
		"moved to data":            {text{"b": "1", "d": "1", "f": "1", "h": "\x01"}, nil, []string{"h"}},
		"moved, and a later added": {text{"b": "1", "f": "1"}, blob{"d": []byte("1"), "e": nil, "h": {1}}, []string{"d", "e"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			after := digest.Plain().Content(tc.data, tc.binary)
			g.Expect(digest.ChangedKeys(before, after)).To(Equal(tc.want))
			g.Expect(digest.ChangedKeys(after, before)).To(Equal(tc.want), "it is the same either way")
		})
	}
}

func TestE1HugeContent(t *testing.T) {
	t.Run("a value of 1 MiB", func(t *testing.T) {
		g := NewWithT(t)
		value := bytes.Repeat([]byte{0x80}, 1<<20)
		before := digest.Plain().Content(nil, blob{"a": value})
		value[1<<19]++
		after := digest.Plain().Content(nil, blob{"a": value})
		g.Expect(after.Hash(nil)).NotTo(Equal(before.Hash(nil)))
		g.Expect(digest.ChangedKeys(before, after)).To(Equal([]string{"a"}))
	})
	t.Run("10,000 keys", func(t *testing.T) {
		g := NewWithT(t)
		data := text{}
		for i := range 10_000 {
			data[fmt.Sprintf("key-%d", i)] = "value"
		}
		before := digest.Plain().Content(data, nil)
		g.Expect(digest.Plain().Content(data, nil).Equal(before)).To(BeTrue())
		data["key-7777"] = "other"
		g.Expect(digest.ChangedKeys(before, digest.Plain().Content(data, nil))).To(Equal([]string{"key-7777"}))
	})
}

func TestE8TheDigestOfARestartDependsOnEveryPart(t *testing.T) {
	g := NewWithT(t)
	parts := []digest.Part{
		{Kind: "ConfigMap", Name: "app-config", Hash: "1:9f86d081884c7d65"},
		{Kind: "Secret", Name: "db", Hash: "1.3fa9c1d2:0123456789abcdef"},
		{Kind: "ConfigMap", Name: "old", Hash: "1:aaaaaaaaaaaaaaaa", Absent: true},
	}
	combined := digest.Combine(parts)
	g.Expect(combined).To(Equal("d1022b928f83287c"), "a digest is on pod templates: another one restarts them")
	g.Expect(digest.Combine(nil)).To(Equal("e3b0c44298fc1c14"))

	for name, change := range map[string]func([]digest.Part) []digest.Part{
		"a kind":           func(p []digest.Part) []digest.Part { p[0].Kind = "Secret"; return p },
		"a name":           func(p []digest.Part) []digest.Part { p[0].Name = "app-confih"; return p },
		"a hash":           func(p []digest.Part) []digest.Part { p[0].Hash = "1:9f86d081884c7d66"; return p },
		"one goes":         func(p []digest.Part) []digest.Part { p[0].Absent = true; return p },
		"one comes":        func(p []digest.Part) []digest.Part { p[2].Absent = false; return p },
		"one less":         func(p []digest.Part) []digest.Part { return p[1:] },
		"one more":         func(p []digest.Part) []digest.Part { return append(p, digest.Part{Kind: "Secret", Name: "x"}) },
		"a moved boundary": func(p []digest.Part) []digest.Part { p[0].Kind, p[0].Name = "ConfigMapa", "pp-config"; return p },
	} {
		g.Expect(digest.Combine(change(slices.Clone(parts)))).NotTo(Equal(combined), name)
	}
	gone := slices.Clone(parts)
	gone[2].Hash = ""
	g.Expect(digest.Combine(gone)).To(Equal(combined), "what an absent source was before doesn't matter")
}

func TestE8TheOrderOfPartsDoesNotMatter(t *testing.T) {
	g := NewWithT(t)
	parts := []digest.Part{
		{Kind: "ConfigMap", Name: "a", Hash: "1:1"}, {Kind: "ConfigMap", Name: "b", Hash: "1:2"},
		{Kind: "Secret", Name: "a", Hash: "1:3"}, {Kind: "Secret", Name: "b", Absent: true},
	}
	combined := digest.Combine(parts)
	forEachOrder(parts, func(order []digest.Part) {
		given := slices.Clone(order)
		g.Expect(digest.Combine(order)).To(Equal(combined))
		g.Expect(order).To(Equal(given), "the caller's parts stay as they are")
	})
}

// forEachOrder calls the function with every permutation of the items.
func forEachOrder[T any](items []T, call func([]T)) {
	var permute func(done, rest []T)
	permute = func(done, rest []T) {
		if len(rest) == 0 {
			call(done)
			return
		}
		for i := range rest {
			permute(append(slices.Clone(done), rest[i]), slices.Concat(rest[:i], rest[i+1:]))
		}
	}
	permute(nil, items)
}

// digits is the part of the hash after its format.
func digits(c digest.Content) string {
	_, after, _ := strings.Cut(string(c.Hash(nil)), ":")
	return after
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return b
}
