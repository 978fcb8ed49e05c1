// SPDX-License-Identifier: Apache-2.0

package address

import (
	"errors"
	"net/netip"
	"testing"
)

// hosts are the own addresses of the tables below.
var hosts = []netip.Prefix{
	netip.MustParsePrefix("20.1.2.3/32"),
	netip.MustParsePrefix("10.9.8.7/32"),
	netip.MustParsePrefix("2600:1f18::7/128"),
	netip.MustParsePrefix("fd12:3456::7/128"),
}

// forms lists each form of an address, with the result of Check without and with
// private.
var forms = []struct {
	name, addr   string
	kind, opened string
}{
	{"public", "93.184.216.34", "", ""},
	{"public, before a range", "9.255.255.255", "", ""},
	{"public, after a range", "11.0.0.0", "", ""},
	{"public, after shared space", "100.128.0.0", "", ""},
	{"public, after link-local", "169.255.0.0", "", ""},
	{"public, after private 172", "172.32.0.0", "", ""},
	{"public, after benchmarks", "198.20.0.0", "", ""},
	{"public, last before multicast", "223.255.255.255", "", ""},
	{"public IPv6", "2606:2800:220:1:248:1893:25c8:1946", "", ""},
	{"public IPv6, after IETF protocols", "2001:200::1", "", ""},
	{"public IPv6, after 6to4", "2003::1", "", ""},

	{"unspecified", "0.0.0.0", "unspecified", "unspecified"},
	{"this network", "0.1.2.3", "unspecified", "unspecified"},
	{"loopback", "127.0.0.1", "loopback", "loopback"},
	{"loopback, another", "127.255.255.254", "loopback", "loopback"},
	{"private 10", "10.0.0.1", "private", ""},
	{"private 172, first", "172.16.0.0", "private", ""},
	{"private 172, last", "172.31.255.255", "private", ""},
	{"private 192", "192.168.1.1", "private", ""},
	{"shared, first", "100.64.0.0", "private", ""},
	{"shared, last", "100.127.255.255", "private", ""},
	{"link-local", "169.254.1.1", "link-local", "link-local"},
	{"multicast", "224.0.0.251", "multicast", "multicast"},
	{"multicast, last", "239.255.255.255", "multicast", "multicast"},
	{"reserved", "240.0.0.1", "reserved", "reserved"},
	{"broadcast", "255.255.255.255", "broadcast", "broadcast"},
	{"IETF protocols", "192.0.0.8", "reserved", "reserved"},
	{"documentation 1", "192.0.2.1", "documentation", ""},
	{"documentation 2", "198.51.100.1", "documentation", ""},
	{"documentation 3", "203.0.113.1", "documentation", ""},
	{"benchmarks", "198.18.0.1", "benchmark", "benchmark"},
	{"benchmarks, last", "198.19.255.255", "benchmark", "benchmark"},
	{"relays of 6to4", "192.88.99.1", "reserved", "reserved"},
	{"AS112", "192.31.196.1", "reserved", "reserved"},
	{"AMT", "192.52.193.1", "reserved", "reserved"},
	{"AS112, direct", "192.175.48.1", "reserved", "reserved"},

	{"metadata", "169.254.169.254", "metadata", "metadata"},
	{"metadata of containers", "169.254.170.2", "metadata", "metadata"},
	{"metadata of pods", "169.254.170.23", "metadata", "metadata"},
	{"metadata, Tencent", "169.254.0.23", "metadata", "metadata"},
	{"metadata, Alibaba", "100.100.100.200", "metadata", "metadata"},
	{"metadata, Volcengine", "100.96.0.96", "metadata", "metadata"},
	{"metadata, Azure", "168.63.129.16", "metadata", "metadata"},
	{"metadata, Oracle", "192.0.0.192", "metadata", "metadata"},
	{"metadata, AWS IPv6", "fd00:ec2::254", "metadata", "metadata"},
	{"metadata, AWS names", "fd00:ec2::253", "metadata", "metadata"},
	{"metadata, AWS pods", "fd00:ec2::23", "metadata", "metadata"},
	{"metadata, Google IPv6", "fd20:ce::254", "metadata", "metadata"},
	{"metadata, Scaleway", "fd00:42::42", "metadata", "metadata"},
	{"metadata, Oracle IPv6", "fd00:c1::a9fe:a9fe", "metadata", "metadata"},
	{"metadata, OpenStack", "fe80::a9fe:a9fe", "metadata", "metadata"},
	{"service of a mesh", "100.100.100.100", "metadata", "metadata"},
	{"service of a mesh, IPv6", "fd7a:115c:a1e0::53", "metadata", "metadata"},

	{"own", "20.1.2.3", "own", "own"},
	{"own, private", "10.9.8.7", "own", "own"},
	{"own, IPv6", "2600:1f18::7", "own", "own"},
	{"own, unique local", "fd12:3456::7", "own", "own"},
	{"neighbour of own", "20.1.2.4", "", ""},

	{"mapped public", "::ffff:93.184.216.34", "embedded", "embedded"},
	{"mapped loopback", "::ffff:127.0.0.1", "embedded", "embedded"},
	{"mapped metadata, in hex", "::ffff:a9fe:a9fe", "embedded", "embedded"},
	{"mapped private", "::ffff:10.0.0.1", "embedded", "embedded"},
	{"compatible loopback", "::127.0.0.1", "embedded", "embedded"},
	{"compatible metadata", "::169.254.169.254", "embedded", "embedded"},
	{"compatible public", "::8.8.8.8", "embedded", "embedded"},
	{"translated", "::ffff:0:169.254.169.254", "embedded", "embedded"},
	{"NAT64 of public", "64:ff9b::93.184.216.34", "", ""},
	{"NAT64 of loopback", "64:ff9b::7f00:1", "loopback", "loopback"},
	{"NAT64 of metadata", "64:ff9b::169.254.169.254", "metadata", "metadata"},
	{"NAT64 of Azure's", "64:ff9b::168.63.129.16", "metadata", "metadata"},
	{"NAT64 of private", "64:ff9b::10.0.0.1", "private", "private"},
	{"NAT64 of own", "64:ff9b::20.1.2.3", "own", "own"},
	{"NAT64 of broadcast", "64:ff9b::255.255.255.255", "broadcast", "broadcast"},
	{"NAT64 of a network", "64:ff9b:1::169.254.169.254", "embedded", "embedded"},
	{"NAT64 of a network, public", "64:ff9b:1:abcd::8.8.8.8", "embedded", "embedded"},
	{"beside NAT64", "64:ff9b:2::1", "reserved", "reserved"},
	{"6to4 of metadata", "2002:a9fe:a9fe::1", "embedded", "embedded"},
	{"6to4 of public", "2002:5db8:d822::1", "embedded", "embedded"},
	{"Teredo", "2001:0:5ef5:79fb:0:59b:5601:5601", "embedded", "embedded"},
	{"ISATAP", "2606:2800:220:1:0:5efe:a9fe:a9fe", "embedded", "embedded"},
	{"ISATAP, universal", "2606:2800:220:1:200:5efe:8.8.8.8", "embedded", "embedded"},
	{"ISATAP, link-local", "fe80::5efe:127.0.0.1", "link-local", "link-local"},
	{"ISATAP, unique local", "fd00:1::5efe:10.0.0.1", "private", ""},

	{"unspecified IPv6", "::", "unspecified", "unspecified"},
	{"loopback IPv6", "::1", "loopback", "loopback"},
	{"loopback IPv6 with a zone", "::1%lo", "zone", "zone"},
	{"unique local", "fd00::1", "private", ""},
	{"unique local, unassigned half", "fc00::1", "private", ""},
	{"unique local with a zone", "fd00::1%eth0", "zone", "zone"},
	{"public with a zone", "2606:2800:220:1::1%eth0", "zone", "zone"},
	{"link-local IPv6", "fe80::1", "link-local", "link-local"},
	{"link-local IPv6 with a zone", "fe80::1%eth0", "zone", "zone"},
	{"link-local IPv6, end of range", "febf::1", "link-local", "link-local"},
	{"site-local", "fec0::1", "reserved", "reserved"},
	{"multicast IPv6", "ff02::fb", "multicast", "multicast"},
	{"discard", "100::1", "reserved", "reserved"},
	{"benchmarks IPv6", "2001:2::1", "benchmark", "benchmark"},
	{"ORCHID", "2001:20::1", "reserved", "reserved"},
	{"documentation IPv6", "2001:db8::1", "documentation", ""},
	{"documentation IPv6, new", "3fff:1::1", "documentation", ""},
	{"6bone", "3ffe::1", "reserved", "reserved"},
	{"AS112 IPv6", "2620:4f:8000::1", "reserved", "reserved"},
	{"segment routing", "5f00::1", "reserved", "reserved"},
	{"not given to anybody, low", "1fff::1", "reserved", "reserved"},
	{"not given to anybody, high", "4000::1", "reserved", "reserved"},
	{"not given to anybody, top", "fbff::1", "reserved", "reserved"},
}

func kindOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var refused *Refused
	if !errors.As(err, &refused) {
		t.Fatalf("not a *Refused: %v", err)
	}
	return refused.Kind
}

func TestCheckEveryForm(t *testing.T) {
	for _, tt := range forms {
		t.Run(tt.name, func(t *testing.T) {
			a := netip.MustParseAddr(tt.addr)
			if got := kindOf(t, Check(a, hosts, false)); got != tt.kind {
				t.Errorf("Check(%s) = %q, want %q", a, got, tt.kind)
			}
			if got := kindOf(t, Check(a, hosts, true)); got != tt.opened {
				t.Errorf("Check(%s) with private = %q, want %q", a, got, tt.opened)
			}
		})
	}
}

func TestCheckNoAddress(t *testing.T) {
	if got := kindOf(t, Check(netip.Addr{}, nil, true)); got != "invalid" {
		t.Errorf("Check of the zero Addr = %q, want invalid", got)
	}
}

// The edges of every range: its first and last address belong to it, or to a narrower
// range.
func TestCheckEdgesOfRanges(t *testing.T) {
	for _, s := range specials {
		if s.kind == "nat64" {
			continue
		}
		for _, a := range []netip.Addr{s.prefix.Addr(), last(s.prefix)} {
			if Check(a, nil, false) == nil {
				t.Errorf("%s of %s (%s) is let through", a, s.prefix, s.kind)
			}
		}
	}
}

func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Own addresses may be given in mapped form, and as ranges.
func TestCheckOwnForms(t *testing.T) {
	own := []netip.Prefix{netip.MustParsePrefix("::ffff:20.1.2.3/128"), netip.MustParsePrefix("20.2.0.0/16")}
	for _, a := range []string{"20.1.2.3", "20.2.200.1"} {
		if got := kindOf(t, Check(netip.MustParseAddr(a), own, true)); got != "own" {
			t.Errorf("Check(%s) = %q, want own", a, got)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, tt := range forms {
		f.Add(netip.MustParseAddr(tt.addr).AsSlice(), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, private bool) {
		a, ok := netip.AddrFromSlice(b)
		if !ok || Check(a, hosts, private) != nil {
			return
		}
		// The standard library must not classify more addresses than our tables.
		inside := a
		if a.Is6() && netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
			inside = lastIPv4(a)
		}
		if inside.IsLoopback() || inside.IsMulticast() || inside.IsLinkLocalUnicast() || inside.IsUnspecified() ||
			inside.Is4In6() || (inside.IsPrivate() && !private) || !inside.IsGlobalUnicast() {
			t.Errorf("%s is let through", a)
		}
		if Check(a, hosts, true) != nil {
			t.Errorf("%s passes only without private", a)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	a := netip.MustParseAddr("2606:2800:220:1:248:1893:25c8:1946")
	for b.Loop() {
		if err := Check(a, hosts, false); err != nil {
			b.Fatal(err)
		}
	}
}
