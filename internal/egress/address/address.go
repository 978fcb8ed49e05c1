// SPDX-License-Identifier: Apache-2.0

// Package address decides which outside addresses may be connected to, and connects
// only to those.
//
// Check knows every form in which an address can be written and the ranges that are not
// the public internet: loopback, private, link-local, multicast, documentation,
// benchmarks, the metadata services of clouds, forms of IPv6 that hold an IPv4 address,
// the host's own addresses. Any IPv6 address outside the range assigned to the public
// internet is refused.
//
// It does not protect against what the routers behind the host do: a public address of
// a neighbor on the host's own network, the host's address on the far side of a NAT,
// and a NAT64 prefix that a network chose among public addresses cannot be
// distinguished from other addresses.
package address

import (
	"fmt"
	"net/netip"
)

// A Refused is an address that must not be connected to.
type Refused struct {
	Addr netip.Addr
	Kind string // "loopback", "private", "metadata", "own", …: see the tables
}

func (r *Refused) Error() string {
	return fmt.Sprintf("address %s is refused: %s", r.Addr, r.Kind)
}

// Check returns nil if a may be connected to, and a *Refused if not. own are the host's
// own addresses. With private, the ranges of private networks (RFC 1918, shared address
// space, unique local IPv6) are allowed, and so are the ranges for documentation, which
// some networks use for hosts that the internet must not reach. Metadata services and
// own are never allowed.
func Check(a netip.Addr, own []netip.Prefix, private bool) error {
	if kind := refusalReason(a, own, private); kind != "" {
		return &Refused{Addr: a, Kind: kind}
	}
	return nil
}

// refusalReason returns why a is refused, or "".
func refusalReason(a netip.Addr, own []netip.Prefix, private bool) string {
	switch {
	case !a.IsValid():
		return "invalid"
	case a.Zone() != "":
		return "zone"
	case a.Is4In6():
		// There is no legitimate reason for a name to have such an address, and dialing
		// it dials IPv4.
		return "embedded"
	}
	kind := rangeKind(a)
	switch {
	case kind == "metadata":
		return kind
	case isInPrefixes(a, own):
		return "own"
	case kind == "nat64":
		return refusalReason(lastIPv4(a), own, false)
	case (kind == "private" || kind == "documentation") && private:
		return ""
	case kind == "" && a.Is6() && !public6.Contains(a):
		return "reserved"
	case kind == "" && a.Is6() && isISATAP(a):
		return "embedded"
	}
	return kind
}

func isInPrefixes(a netip.Addr, prefixes []netip.Prefix) bool {
	for _, p := range prefixes {
		if p.Contains(a) || p.Addr().Unmap() == a {
			return true
		}
	}
	return false
}

// lastIPv4 returns the IPv4 address in a's last four bytes.
func lastIPv4(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// isISATAP reports whether a has the interface identifier of RFC 5214, which embeds an
// IPv4 address under any prefix.
func isISATAP(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^3 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
