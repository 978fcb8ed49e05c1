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

	"github.com/fumehood/fumehood/pkg/egress/segment"
)

// A gate stands between the wire and the stack: it lets those frames in that a plain
// host sends, and nothing else.
type gate struct {
	link  *Link
	open  atomic.Bool
	tells *rate.Limiter
}

// tellRate is how many datagrams a second a Handler is told of.
const tellRate = 100

func newGate(l *Link) *gate {
	return &gate{link: l, tells: rate.NewLimiter(tellRate, 2*tellRate)}
}

func (g *gate) openUp() { g.open.Store(true) }
func (g *gate) shut()   { g.open.Store(false) }

// isShut says that no frame is let in, or none ever was.
func (g *gate) isShut() bool { return !g.open.Load() }

// admit says whether the stack shall see a frame.
func (g *gate) admit(frame []byte) bool {
	if g.isShut() {
		return false
	}
	g.link.counts.frames.Add(1)
	p, ok := read(g.link.config.Segment, frame)
	if !ok {
		g.link.counts.odd.Add(1)
		return false
	}
	return g.pass(p)
}

// pass says whether the stack shall see p, and tells of what leads nowhere.
func (g *gate) pass(p packet) bool {
	switch {
	case p.protocol == header.TCPProtocolNumber:
		if !p.unicast {
			g.link.counts.odd.Add(1)
		}
		return p.unicast
	case p.protocol == header.UDPProtocolNumber && dns(g.link.config.Segment, p.to):
		return true
	case p.protocol == header.ICMPv6ProtocolNumber && housekeeping(p.icmp):
		return false
	}
	g.link.counts.datagrams.Add(1)
	if g.tells.Allow() {
		g.link.handler.Datagram(p.name(), p.to)
	}
	// The stack has no one to give UDP to, and says so to its sender.
	return p.protocol == header.UDPProtocolNumber && p.unicast
}

// housekeeping are the messages of ICMPv6 that a kernel sends by itself: for multicast
// groups, and for neighbours and routers.
func housekeeping(kind byte) bool {
	return kind >= 130 && kind <= 137 || kind == 143
}

// A packet is what the gate knows of a frame.
type packet struct {
	protocol tcpip.TransportProtocolNumber
	to       netip.AddrPort // its port is 0 for what has none
	unicast  bool           // both the frame and the packet are for one host
	icmp     byte           // the type of a message
}

// name returns the protocol as a Handler is told it.
func (p packet) name() string {
	switch p.protocol {
	case header.UDPProtocolNumber:
		return "udp"
	case header.ICMPv4ProtocolNumber, header.ICMPv6ProtocolNumber:
		return "icmp"
	}
	return fmt.Sprintf("ip %d", p.protocol)
}

// read returns what a frame holds; ok is false for one that no plain host sends.
func read(s segment.Segment, frame []byte) (p packet, ok bool) {
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
		p, ok = read4(b, s.Sandbox.V4)
	case header.IPv6ProtocolNumber:
		p, ok = read6(b, s.Sandbox.V6)
	}
	own := p.to.Addr() == s.Sandbox.V4 || p.to.Addr() == s.Sandbox.V6
	p.unicast = unicast && !p.to.Addr().IsMulticast() && p.to.Addr() != broadcast
	return p, ok && !own
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// read4 reads a packet from from.
func read4(b []byte, from netip.Addr) (p packet, ok bool) {
	const length = header.IPv4MinimumSize
	if len(b) < length+8 || b[0] != 4<<4|length/4 { // no options
		return p, false
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	fragment := binary.BigEndian.Uint16(b[6:]) &^ 0x4000 // but for "don't fragment"
	if total < length+8 || total > len(b) || fragment != 0 {
		return p, false
	}
	source, to := netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	if source != from || to.IsUnspecified() || to.IsLoopback() {
		return p, false
	}
	return transport(b[9], b[length:], to)
}

// read6 reads a packet from from.
func read6(b []byte, from netip.Addr) (p packet, ok bool) {
	const length = header.IPv6MinimumSize
	if len(b) < length+8 || b[0]>>4 != 6 {
		return p, false
	}
	payload := int(binary.BigEndian.Uint16(b[4:]))
	if payload < 8 || length+payload > len(b) || extension(b[6]) {
		return p, false
	}
	source, to := netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	if source != from || to.IsUnspecified() || to.IsLoopback() || to.Is4In6() {
		return p, false
	}
	return transport(b[6], b[length:], to)
}

// extension says whether a next header is one of IPv6's own: hop-by-hop, routing,
// fragment, authentication, encapsulation, none, destination, mobility, identity, shim.
func extension(next byte) bool {
	switch next {
	case 0, 43, 44, 50, 51, 59, 60, 135, 139, 140, 253, 254:
		return true
	}
	return false
}

// transport reads the first bytes behind the network header, of which there are eight.
func transport(protocol byte, b []byte, to netip.Addr) (p packet, ok bool) {
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
