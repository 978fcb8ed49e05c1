// SPDX-License-Identifier: Apache-2.0

// Package segment defines the addresses on the link between a sandbox and its gateway.
// It is pure data, so that the packages that make the link (netns), answer on it (link)
// and assign addresses (names) agree.
//
// Both ends know each other's hardware address from the start. So the link needs
// neither ARP nor neighbor discovery, and the gateway ignores both.
package segment

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// An End is one of the two hosts on the link. V6 is the zero Addr if the link has no
// IPv6.
type End struct {
	MAC net.HardwareAddr
	V4  netip.Addr
	V6  netip.Addr
}

// A Segment is the link: the sandbox's end, the gateway's, and the pools whose first
// addresses they have. Every address beyond is reached through the gateway.
type Segment struct {
	Pool4   netip.Prefix
	Pool6   netip.Prefix // the zero Prefix if there is no IPv6
	Gateway End
	Sandbox End
	MTU     int
}

// MTU is the largest frame size for which measurements showed a gain: 64 KiB less a
// page's worth of headers.
const MTU = 65521

// Reserved is the number of addresses at the start of each pool, and at the end, that
// are never given to a name.
const Reserved = 256

// Default returns the link that every sandbox gets: 198.18.0.0/15, which is reserved
// for benchmarks and routed nowhere (RFC 2544), and a unique local /64 (RFC 4193). Each
// sandbox has its own network, so all can use the same addresses.
func Default() Segment {
	s, err := New(netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("fd66:756d:6568::/64"))
	if err != nil {
		panic("segment: internal error: " + err.Error())
	}
	return s
}

// New returns a link with addresses of the two pools; pool6 may be the zero Prefix.
func New(pool4, pool6 netip.Prefix) (Segment, error) {
	s := Segment{Pool4: pool4.Masked(), MTU: MTU}
	if !pool4.Addr().Is4() || pool4.Bits() == 0 || pool4.Bits() > 20 {
		return Segment{}, fmt.Errorf("invalid pool %s: want an IPv4 prefix of at most 20 bits", pool4)
	}
	if pool6 != (netip.Prefix{}) {
		if !pool6.Addr().Is6() || pool6.Addr().Is4In6() || pool6.Bits() > 96 {
			return Segment{}, fmt.Errorf("invalid pool %s: want an IPv6 prefix of at most 96 bits", pool6)
		}
		s.Pool6 = pool6.Masked()
	}
	s.Gateway = s.hostEnd(1)
	s.Sandbox = s.hostEnd(2)
	return s, nil
}

// hostEnd returns the n-th host of both pools.
func (s Segment) hostEnd(n int) End {
	e := End{MAC: net.HardwareAddr{0x02, 'f', 'h', 0, 0, byte(n)}, V4: s.Pool4.Addr()}
	if s.Pool6.IsValid() {
		e.V6 = s.Pool6.Addr()
	}
	for range n {
		e.V4 = e.V4.Next()
		if e.V6.IsValid() {
			e.V6 = e.V6.Next()
		}
	}
	return e
}

// WithoutIPv6 returns s without IPv6, for a host whose kernel has none.
func (s Segment) WithoutIPv6() Segment {
	s.Pool6, s.Gateway.V6, s.Sandbox.V6 = netip.Prefix{}, netip.Addr{}, netip.Addr{}
	return s
}

// Check returns an error if s is not a Segment that New could have made.
func (s Segment) Check() error {
	want, err := New(s.Pool4, s.Pool6)
	if err != nil {
		return err
	}
	same := func(a, b End) bool { return a.V4 == b.V4 && a.V6 == b.V6 }
	host := func(mac net.HardwareAddr) bool { return len(mac) == 6 && mac[0]&1 == 0 }
	switch {
	case !same(want.Gateway, s.Gateway), !same(want.Sandbox, s.Sandbox):
		return errors.New("invalid segment: its ends are not the first hosts of its pools")
	case !host(s.Gateway.MAC), !host(s.Sandbox.MAC), bytes.Equal(s.Gateway.MAC, s.Sandbox.MAC):
		return errors.New("invalid segment: its hardware addresses are not those of two hosts")
	case s.MTU < 1280 || s.MTU > MTU:
		return fmt.Errorf("invalid MTU %d", s.MTU)
	}
	return nil
}
