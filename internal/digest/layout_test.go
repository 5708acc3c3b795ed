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
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/digest"
)

// The layout of docs/reference/hash.md once more, written from the page and not from the code.

// operatorKey is a key as the operator makes them: 32 bytes.
func operatorKey() []byte {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i)
	}
	return key
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// hmacSHA256 is RFC 2104 by hand.
func hmacSHA256(key, message []byte) string {
	inner, outer := bytes.Repeat([]byte{0x36}, sha256.BlockSize), bytes.Repeat([]byte{0x5c}, sha256.BlockSize)
	for i, b := range key {
		inner[i] ^= b
		outer[i] ^= b
	}
	sum := sha256.Sum256(append(inner, message...))
	return sha256Hex(append(outer, sum[:]...))
}

func prefixed(s string) string {
	n := len(s)
	length := []byte{0, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return string(length) + s
}

func concat[S string | []byte](parts ...S) []byte {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

const page = "../../docs/reference/hash.md"

// documented are the commands of the page, and what it says they print, by the keys they name.
func documented(t *testing.T, text string) map[string]digest.Hash {
	t.Helper()
	commands := regexp.MustCompile(`(?m)^\$ .*hash\.py ?(.*)\n(.*)$`).FindAllStringSubmatch(text, -1)
	NewWithT(t).Expect(commands).To(HaveLen(3))
	hashes := map[string]digest.Hash{}
	for _, c := range commands {
		hashes[c[1]] = digest.Hash(c[2])
	}
	return hashes
}

// block is the page's one code block in a language.
func block(t *testing.T, text, language string) string {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1)
	NewWithT(t).Expect(blocks).To(HaveLen(1))
	return blocks[0][1]
}

func TestE2ThePageSaysWhatTheCodeGives(t *testing.T) {
	g := NewWithT(t)
	text := read(t, page)
	var configMap struct {
		Data       map[string]string
		BinaryData map[string][]byte
	}
	g.Expect(json.Unmarshal([]byte(block(t, text, "json")), &configMap)).To(Succeed())
	content := digest.Plain().Content(configMap.Data, configMap.BinaryData)
	for keys, want := range documented(t, text) {
		g.Expect(content.Hash(strings.Fields(keys))).To(Equal(want), "keys %q", keys)
	}
}

func TestE2ThePagesProgramGivesWhatThePageSays(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	text := read(t, page)
	script := filepath.Join(t.TempDir(), "hash.py")
	NewWithT(t).Expect(os.WriteFile(script, []byte(block(t, text, "python")), 0o600)).To(Succeed())
	run := func(t *testing.T, object, keys string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), python, append([]string{script}, strings.Fields(keys)...)...)
		command.Stdin = strings.NewReader(object)
		out, err := command.CombinedOutput()
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(out))
		return strings.TrimSpace(string(out))
	}
	for keys, want := range documented(t, text) {
		NewWithT(t).Expect(run(t, block(t, text, "json"), keys)).To(Equal(string(want)), "keys %q", keys)
	}
	empty := string(digest.Plain().Content(nil, nil).Hash(nil))
	NewWithT(t).Expect(run(t, `{"data": null}`, "")).To(Equal(empty))
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}
