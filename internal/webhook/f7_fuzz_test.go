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

package webhook_test

import (
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/ktechhub/configwatch/internal/webhook"
)

// embeddingsOf are the IPv6 addresses that lead to an IPv4 address, written down once more.
func embeddingsOf(b [4]byte) []netip.Addr {
	v4 := b[:]
	inverted := []byte{^b[0], ^b[1], ^b[2], ^b[3]}
	var found []netip.Addr
	for _, parts := range [][][]byte{
		{make([]byte, 12), v4},                             // ::a.b.c.d
		{make([]byte, 10), {0xff, 0xff}, v4},               // ::ffff:a.b.c.d
		{make([]byte, 8), {0xff, 0xff, 0, 0}, v4},          // ::ffff:0:a.b.c.d
		{{0, 0x64, 0xff, 0x9b}, make([]byte, 8), v4},       // 64:ff9b::a.b.c.d
		{{0x20, 0x02}, v4, make([]byte, 10)},               // 2002:ab:cd::
		{{0x20, 0x02}, v4, []byte("0123456789")},           // 2002:ab:cd:…
		{{0x20, 0x01, 0, 0}, []byte("01234567"), inverted}, // 2001:0:…
		{[]byte("%2345678"), {0, 0, 0x5e, 0xfe}, v4},       // …:0:5efe:a.b.c.d
		{[]byte("%2345678"), {2, 0, 0x5e, 0xfe}, v4},       // …:200:5efe:a.b.c.d
	} {
		address, _ := netip.AddrFromSlice(slices.Concat(parts...))
		found = append(found, address)
	}
	return found
}

// The guard agrees with the standard library about what is never a webhook, and about an IPv4 address it says the same
// however that is written.
func FuzzF7Addresses(f *testing.F) {
	for _, seed := range []string{
		"127.0.0.1", "0.0.0.0", "10.0.0.1", "169.254.169.254", "224.0.0.1", "255.255.255.255", "100.100.100.200", "168.63.129.16",
		"::", "::1", "::2", "fe80::1", "ff02::1", "fd00::1", "fd00:ec2::254", "2002:7f00:1::", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",
		"2001::1", "2001:db8::5efe:a00:1", "::ffff:10.96.0.1", "2606:4700::1",
	} {
		b := netip.MustParseAddr(seed).As16()
		f.Add(b[:])
	}
	guard, err := webhook.NewGuard(nil, "10.96.0.1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g := NewWithT(t)
		if len(b) < 16 {
			return
		}
		address := netip.AddrFrom16([16]byte(b))
		for _, a := range []netip.Addr{address, address.Unmap(), address.WithZone("eth0")} {
			plain := a.WithZone("").Unmap()
			never := plain.IsLoopback() || plain.IsUnspecified() || plain.IsLinkLocalUnicast() || plain.IsMulticast()
			if never {
				g.Expect(guard(t.Context(), a)).NotTo(Succeed(), a.String())
			}
			g.Expect(guard(t.Context(), a) == nil).To(Equal(guard(t.Context(), plain) == nil), a.String())
		}
		v4 := netip.AddrFrom4([4]byte(b))
		refused := guard(t.Context(), v4) != nil
		for _, a := range embeddingsOf([4]byte(b)) {
			if refused {
				g.Expect(guard(t.Context(), a)).NotTo(Succeed(), "%s, which is %s", a, v4)
			}
		}
		if v4.IsPrivate() && v4.String() != "10.96.0.1" {
			g.Expect(refused).To(BeFalse(), v4.String())
		}
	})
}
