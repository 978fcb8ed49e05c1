// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync/atomic"

	"golang.org/x/time/rate"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/fumehood/fumehood/internal/egress/segment"
)

// A frameFilter filters the frames that reach the stack: it admits only what a plain host
// sends.
type frameFilter struct {
	link    *Link
	open    atomic.Bool
	reports *rate.Limiter
}

// reportRate is the maximum number of datagrams per second that are reported to a
// Handler.
const reportRate = 100

func newFrameFilter(l *Link) *frameFilter {
	return &frameFilter{link: l, reports: rate.NewLimiter(reportRate, 2*reportRate)}
}

func (g *frameFilter) openFilter()  { g.open.Store(true) }
func (g *frameFilter) closeFilter() { g.open.Store(false) }

// isShut reports whether the gate admits no frames: it has not been opened or has been
// shut.
func (g *frameFilter) isShut() bool { return !g.open.Load() }

// admitFrame reports whether the stack should see a frame.
func (g *frameFilter) admitFrame(frame []byte) bool {
	if g.isShut() {
		return false
	}
	g.link.counts.frames.Add(1)
	p, ok := parseFrame(g.link.config.Segment, frame)
	if !ok {
		g.link.counts.odd.Add(1)
		return false
	}
	return g.admitPacket(p)
}

// admitPacket reports whether the stack should see p, and reports datagrams that go nowhere to
// the Handler.
func (g *frameFilter) admitPacket(p packet) bool {
	switch {
	case p.protocol == header.TCPProtocolNumber:
		if !p.unicast {
			g.link.counts.odd.Add(1)
		}
		return p.unicast
	case p.protocol == header.UDPProtocolNumber && isDNSAddress(g.link.config.Segment, p.to):
		return true
	case p.protocol == header.ICMPv6ProtocolNumber && isHousekeepingICMPv6(p.icmp):
		return false
	}
	g.link.counts.datagrams.Add(1)
	if g.reports.Allow() {
		g.link.handler.Datagram(p.protocolName(), p.to)
	}
	// The stack has no receiver for UDP and says so to the sender.
	return p.protocol == header.UDPProtocolNumber && p.unicast
}

// isHousekeepingICMPv6 reports whether kind is an ICMPv6 message that a kernel sends of its own
// accord: for multicast groups, neighbors and routers.
func isHousekeepingICMPv6(kind byte) bool {
	return kind >= 130 && kind <= 137 || kind == 143
}

// A packet is what the gate knows of a frame.
type packet struct {
	protocol tcpip.TransportProtocolNumber
	to       netip.AddrPort // the port is 0 for protocols without ports
	unicast  bool           // frame and packet are both for a single host
	icmp     byte           // the ICMP message type
}

// protocolName returns the protocol's name as it is reported to a Handler.
func (p packet) protocolName() string {
	switch p.protocol {
	case header.UDPProtocolNumber:
		return "udp"
	case header.ICMPv4ProtocolNumber, header.ICMPv6ProtocolNumber:
		return "icmp"
	}
	return fmt.Sprintf("ip %d", p.protocol)
}

// parseFrame returns the packet in a frame; ok is false for a frame that no plain host sends.
func parseFrame(s segment.Segment, frame []byte) (p packet, ok bool) {
	if len(frame) < header.EthernetMinimumSize {
		return p, false
	}
	unicast := bytes.Equal(frame[:6], s.Gateway.MAC)
	if (!unicast && frame[0]&1 == 0) || !bytes.Equal(frame[6:12], s.Sandbox.MAC) {
		return p, false
	}
	b := frame[header.EthernetMinimumSize:]
	switch tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(frame[12:])) {
	case header.IPv4ProtocolNumber:
		p, ok = parseIPv4(b, s.Sandbox.V4)
	case header.IPv6ProtocolNumber:
		p, ok = parseIPv6(b, s.Sandbox.V6)
	}
	own := p.to.Addr() == s.Sandbox.V4 || p.to.Addr() == s.Sandbox.V6
	p.unicast = unicast && !p.to.Addr().IsMulticast() && p.to.Addr() != broadcast
	return p, ok && !own
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// parseIPv4 reads a packet from from.
func parseIPv4(b []byte, from netip.Addr) (p packet, ok bool) {
	const length = header.IPv4MinimumSize
	if len(b) < length+8 || b[0] != 4<<4|length/4 { // no options
		return p, false
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	fragment := binary.BigEndian.Uint16(b[6:]) &^ 0x4000 // except for "don't fragment"
	if total < length+8 || total > len(b) || fragment != 0 {
		return p, false
	}
	source, to := netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	if source != from || to.IsUnspecified() || to.IsLoopback() {
		return p, false
	}
	return parseTransport(b[9], b[length:], to)
}

// parseIPv6 reads a packet from from.
func parseIPv6(b []byte, from netip.Addr) (p packet, ok bool) {
	const length = header.IPv6MinimumSize
	if len(b) < length+8 || b[0]>>4 != 6 {
		return p, false
	}
	payload := int(binary.BigEndian.Uint16(b[4:]))
	if payload < 8 || length+payload > len(b) || isIPv6Extension(b[6]) {
		return p, false
	}
	source, to := netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	if source != from || to.IsUnspecified() || to.IsLoopback() || to.Is4In6() {
		return p, false
	}
	return parseTransport(b[6], b[length:], to)
}

// isIPv6Extension reports whether a next header is an IPv6 extension: hop-by-hop, routing,
// fragment, authentication, encapsulation, none, destination, mobility, identity, shim.
func isIPv6Extension(next byte) bool {
	switch next {
	case 0, 43, 44, 50, 51, 59, 60, 135, 139, 140, 253, 254:
		return true
	}
	return false
}

// parseTransport reads the first eight bytes after the network header, which must exist.
func parseTransport(protocol byte, b []byte, to netip.Addr) (p packet, ok bool) {
	p.protocol = tcpip.TransportProtocolNumber(protocol)
	var port uint16
	switch p.protocol {
	case header.TCPProtocolNumber, header.UDPProtocolNumber:
		port = binary.BigEndian.Uint16(b[2:])
	case header.ICMPv4ProtocolNumber:
		if to.Is6() {
			return p, false
		}
	case header.ICMPv6ProtocolNumber:
		if to.Is4() {
			return p, false
		}
		p.icmp = b[0]
	}
	p.to = netip.AddrPortFrom(to, port)
	return p, true
}
