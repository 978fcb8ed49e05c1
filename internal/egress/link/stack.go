// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/fumehood/fumehood/internal/egress/segment"
)

const nic tcpip.NICID = 1

// Buffer sizes, for each direction. A sandbox fills both buffers of a connection if it
// sends to a host that does not read and does not itself read what it requested. So
// only the first few open connections get the size that a full stream needs: all 1,024
// together, filled, take some 350 MiB. Narrow must not be smaller: the stack offers
// half of its buffer as window, and a window below one segment of 64 KiB stalls.
const (
	wideConnections = 16
	wideBuffer      = 1 << 20
	narrowBuffer    = 128 << 10
)

// startStack builds the stack and opens the link to it. It has ARP only for its table of
// neighbors (the gate admits none), no ICMP endpoints, no forwarding, and one route
// for each family: to the sandbox.
func (l *Link) startStack() error {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	l.stack = s
	if err := limitStack(s); err != nil {
		return err
	}
	l.gate = newFrameFilter(l)
	wire, err := newLinkEndpoint(l.fd, l.config.Segment.MTU, tcpip.LinkAddress(l.config.Segment.Gateway.MAC),
		l.gate.admitFrame)
	if err != nil {
		return err
	}
	forwarder := tcp.NewForwarder(s, narrowBuffer, l.config.Deciding, l.admitConnection)
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, forwarder.HandlePacket)

	l.wire = wire
	if err := s.CreateNIC(nic, wire); err != nil {
		return errors.New(err.String())
	}
	if err := l.assignAddresses(s); err != nil {
		return err
	}
	if err := l.listenDNS(); err != nil {
		return err
	}
	l.gate.openFilter()
	return nil
}

// limitStack limits what the stack keeps for a connection, and for how long.
func limitStack(s *stack.Stack) error {
	sack := tcpip.TCPSACKEnabled(true)
	wait := tcpip.TCPTimeWaitTimeoutOption(second)
	options := []tcpip.SettableTransportProtocolOption{
		&sack, &wait,
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: narrowBuffer, Max: wideBuffer},
		&tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: narrowBuffer, Max: wideBuffer},
	}
	for _, option := range options {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return errors.New(err.String())
		}
	}
	return nil
}

// assignAddresses gives the stack the gateway's addresses, and makes it answer for every other
// address as well: each belongs to a name, or the Handler refuses it.
func (l *Link) assignAddresses(s *stack.Stack) error {
	var failed tcpip.Error
	try := func(err tcpip.Error) {
		if failed == nil {
			failed = err
		}
	}
	try(s.SetPromiscuousMode(nic, true))
	try(s.SetSpoofing(nic, true))
	var routes []tcpip.Route
	for own, peer := range l.config.gatewayPeers() {
		number := tcpip.NetworkProtocolNumber(ipv4.ProtocolNumber)
		if own.Is6() {
			number = ipv6.ProtocolNumber
		}
		address := tcpip.ProtocolAddress{Protocol: number,
			AddressWithPrefix: tcpip.AddrFromSlice(own.AsSlice()).WithPrefix()}
		try(s.AddProtocolAddress(nic, address, stack.AddressProperties{}))
		to := tcpip.AddrFromSlice(peer.AsSlice())
		try(s.AddStaticNeighbor(nic, number, to, tcpip.LinkAddress(l.config.Segment.Sandbox.MAC)))
		routes = append(routes, tcpip.Route{Destination: to.WithPrefix().Subnet(), NIC: nic})
	}
	s.SetRouteTable(routes)
	if failed != nil {
		return errors.New(failed.String())
	}
	return nil
}

// gatewayPeers returns the gateway's addresses, each with the sandbox's of the same family.
func (c Config) gatewayPeers() map[netip.Addr]netip.Addr {
	s := c.Segment
	pairs := map[netip.Addr]netip.Addr{s.Gateway.V4: s.Sandbox.V4}
	if s.Gateway.V6 != (netip.Addr{}) {
		pairs[s.Gateway.V6] = s.Sandbox.V6
	}
	return pairs
}

// isDNSAddress reports whether to is the address at which the gateway answers DNS queries.
func isDNSAddress(s segment.Segment, to netip.AddrPort) bool {
	return to.Port() == 53 && (to.Addr() == s.Gateway.V4 || to.Addr() == s.Gateway.V6)
}

// addrPort converts an address of the stack to one of net/netip.
func addrPort(address tcpip.Address, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(address.AsSlice())
	return netip.AddrPortFrom(a, port)
}
