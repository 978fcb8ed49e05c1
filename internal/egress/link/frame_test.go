// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/binary"
	"net/netip"
	"os"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A frame is what a test sends on the link.
type frame struct {
	from, to netip.Addr
	protocol byte
	payload  []byte
	// odd changes the whole frame, after its checksums were computed.
	odd func(b []byte) []byte
}

func (f frame) bytes(l *Link) []byte {
	s := l.config.Segment
	b := append([]byte(nil), s.Gateway.MAC...)
	b = append(b, s.Sandbox.MAC...)
	if f.to.Is4() {
		b = append(b, 0x08, 0x00)
		ip := make(header.IPv4, header.IPv4MinimumSize)
		ip.Encode(&header.IPv4Fields{
			TotalLength: uint16(len(ip) + len(f.payload)), TTL: 64, Protocol: f.protocol,
			SrcAddr: tcpip.AddrFromSlice(f.from.AsSlice()), DstAddr: tcpip.AddrFromSlice(f.to.AsSlice()),
		})
		ip.SetChecksum(^ip.CalculateChecksum())
		b = append(b, ip...)
	} else {
		b = append(b, 0x86, 0xdd)
		ip := make(header.IPv6, header.IPv6MinimumSize)
		ip.Encode(&header.IPv6Fields{
			PayloadLength: uint16(len(f.payload)), HopLimit: 64, TransportProtocol: tcpip.TransportProtocolNumber(f.protocol),
			SrcAddr: tcpip.AddrFromSlice(f.from.AsSlice()), DstAddr: tcpip.AddrFromSlice(f.to.AsSlice()),
		})
		b = append(b, ip...)
	}
	b = append(b, f.payload...)
	if f.odd != nil {
		b = f.odd(b)
	}
	return b
}

// tcpSegment returns a TCP segment with its checksum.
func tcpSegment(from, to netip.AddrPort, flags header.TCPFlags) []byte {
	b := make(header.TCP, header.TCPMinimumSize)
	b.Encode(&header.TCPFields{
		SrcPort: from.Port(), DstPort: to.Port(), SeqNum: 1000, DataOffset: header.TCPMinimumSize,
		Flags: flags, WindowSize: 65535,
	})
	b.SetChecksum(^b.CalculateChecksum(pseudo(header.TCPProtocolNumber, from, to, len(b))))
	return b
}

func udpDatagram(from, to netip.AddrPort, data []byte) []byte {
	b := make(header.UDP, header.UDPMinimumSize, header.UDPMinimumSize+len(data))
	b.Encode(&header.UDPFields{SrcPort: from.Port(), DstPort: to.Port(), Length: uint16(len(b) + len(data))})
	sum := pseudo(header.UDPProtocolNumber, from, to, len(b)+len(data))
	b.SetChecksum(^b.CalculateChecksum(checksum.Checksum(data, sum)))
	return append(b, data...)
}

func pseudo(protocol tcpip.TransportProtocolNumber, from, to netip.AddrPort, size int) uint16 {
	return header.PseudoHeaderChecksum(protocol, tcpip.AddrFromSlice(from.Addr().AsSlice()),
		tcpip.AddrFromSlice(to.Addr().AsSlice()), uint16(size))
}

// syn is the first frame of a connection to 198.18.0.77:443.
func syn(l *Link) []byte {
	from := netip.AddrPortFrom(l.config.Segment.Sandbox.V4, 40000)
	to := netip.MustParseAddrPort("198.18.0.77:443")
	return frame{from.Addr(), to.Addr(), 6, tcpSegment(from, to, header.TCPFlagSyn), nil}.bytes(l)
}

// receives waits for a frame.
func receives(peer *os.File, b []byte) bool {
	_ = peer.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := peer.Read(b)
	return err == nil
}

func put16(at int, value uint16) func([]byte) []byte {
	return func(b []byte) []byte {
		binary.BigEndian.PutUint16(b[at:], value)
		return b
	}
}
