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

package webhook

import (
	"bytes"
	"net/netip"
	"slices"
)

// forbidden are the addresses that lead to the operator's own host or network, and not to a webhook (F7). Private
// addresses are not among them: Services of the cluster have these.
var forbidden = []struct {
	what     string
	prefixes []netip.Prefix
}{
	{"a loopback address", prefixes("127.0.0.0/8", "::1/128")},
	{"an unspecified address", prefixes("0.0.0.0/8", "::/128")}, // Linux takes 0.0.0.0 for the host itself
	{"a link-local address", prefixes("169.254.0.0/16", "fe80::/10")},
	{"a multicast address", prefixes("224.0.0.0/4", "ff00::/8")},
	{"a reserved address", prefixes("192.0.0.0/24", "240.0.0.0/4")}, // with metadata of Oracle Cloud, and broadcast
	// What isn't link-local: of AWS and EKS Pod Identity, Google, Azure, Alibaba (two), Oracle, Linode, Scaleway.
	{"an address of cloud metadata", prefixes("fd00:ec2::/32", "fd20:ce::254/128", "168.63.129.16/32", "100.100.100.200/32",
		"fd00:100::100:200/128", "fd00:c1::a9fe:a9fe/128", "fd00:a9fe:a9fe::1/128", "fd00:42::42/128")},
	// Each network has its own layout there (RFC 8215), so that the IPv4 address within can't be told.
	{"an address of local translation to IPv4", prefixes("64:ff9b:1::/48")},
}

func prefixes(written ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(written))
	for i, prefix := range written {
		parsed[i] = netip.MustParsePrefix(prefix)
	}
	return parsed
}

// embeddings are the IPv6 addresses that stand for an IPv4 address: it is the four bytes from the given one on.
var embeddings = []struct {
	prefix   netip.Prefix
	from     int
	inverted bool
}{
	{netip.MustParsePrefix("::/96"), 12, false},           // IPv4-compatible, RFC 4291
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, false}, // IPv4-translated, RFC 2765
	{netip.MustParsePrefix("64:ff9b::/96"), 12, false},    // NAT64, RFC 6052
	{netip.MustParsePrefix("2002::/16"), 2, false},        // 6to4, RFC 3056
	{netip.MustParsePrefix("2001::/32"), 12, true},        // Teredo, RFC 4380
}

// whyForbidden says what a forbidden address is. It is empty if webhooks may go there.
func whyForbidden(address netip.Addr) string {
	for _, form := range forms(address) {
		contains := func(prefix netip.Prefix) bool { return prefix.Contains(form) }
		for _, f := range forbidden {
			if slices.ContainsFunc(f.prefixes, contains) {
				return f.what
			}
		}
	}
	return ""
}

// forms are the address, without its zone and as IPv4 if it is mapped, and the IPv4 addresses that it may stand for.
func forms(address netip.Addr) []netip.Addr {
	address = address.WithZone("").Unmap()
	found := []netip.Addr{address}
	if !address.Is6() {
		return found
	}
	b := address.As16()
	for _, e := range embeddings {
		if e.prefix.Contains(address) {
			found = append(found, embedded(b[e.from:], e.inverted))
		}
	}
	if isISATAP(b[8:12]) {
		found = append(found, embedded(b[12:], false))
	}
	return found
}

func embedded(b []byte, inverted bool) netip.Addr {
	v4 := [4]byte(b[:4])
	if inverted {
		for i := range v4 {
			v4[i] = ^v4[i]
		}
	}
	return netip.AddrFrom4(v4)
}

// isISATAP tells whether it begins an interface identifier with an IPv4 address in it, under any prefix (RFC 5214).
func isISATAP(identifier []byte) bool {
	return bytes.Equal(identifier, []byte{0x00, 0x00, 0x5e, 0xfe}) || bytes.Equal(identifier, []byte{0x02, 0x00, 0x5e, 0xfe})
}
