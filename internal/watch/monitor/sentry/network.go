// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/marshal"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/socket"

	"github.com/fumehood/fumehood/internal/watch/monitor/calls"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

const (
	maxAddress  = 128 // size of a sockaddr_storage, in bytes
	messageSize = 64  // size of a struct mmsghdr
	maxMessage  = 64  // the number of them that are read in one call
)

// reportNetwork reports connections, listening sockets and datagrams with an address.
func (g *execGate) reportNetwork(s observedCall) {
	number := int32(s.args[0])
	switch s.call.Class {
	case calls.Connect:
		addr := ""
		if s.errno == 0 {
			addr = peerAddress(s.t, number) // the kernel's own record; the caller's memory may have changed
		}
		if addr == "" {
			addr = formatAddress(kindOf(s.t, number), copyInAddress(s.t, s.args[1], s.args[2]))
		}
		g.tellAddress(s, wire.EventConnect, addr)
	case calls.Bind:
		g.tellAddress(s, wire.EventListen, formatAddress(kindOf(s.t, number), copyInAddress(s.t, s.args[1], s.args[2])))
	case calls.Listen:
		g.tellAddress(s, wire.EventListen, localAddress(s.t, number))
	case calls.SendTo:
		if s.args[4] != 0 {
			g.tellOnce(s, formatAddress(kindOf(s.t, number), copyInAddress(s.t, s.args[4], s.args[5])))
		}
	case calls.SendMsg:
		g.reportMessageAddress(s, s.args[1])
	case calls.SendMMsg:
		for i := range max(1, min(s.result, maxMessage)) {
			g.reportMessageAddress(s, s.args[1]+uint64(i)*messageSize)
		}
	}
}

// reportMessageAddress reports the address in the msghdr at an address in the caller's
// memory.
func (g *execGate) reportMessageAddress(s observedCall, at uint64) {
	var b [12]byte
	if n, err := s.t.CopyInBytes(hostarch.Addr(at), b[:]); err != nil || n != len(b) {
		return
	}
	if name := binary.LittleEndian.Uint64(b[:]); name != 0 {
		addr := copyInAddress(s.t, name, uint64(binary.LittleEndian.Uint32(b[8:])))
		g.tellOnce(s, formatAddress(kindOf(s.t, int32(s.args[0])), addr))
	}
}

func (g *execGate) tellOnce(s observedCall, addr string) {
	if g.isFirstReport(g.lineages.generationOf(s.t.ThreadGroup()).hashParts(s.call.Name, addr,
		strconv.Itoa(int(processID(s.t))), strconv.Itoa(int(s.errno)))) {
		g.tellAddress(s, wire.EventSend, addr)
	}
}

func (g *execGate) tellAddress(s observedCall, kind uint8, addr string) {
	if addr == "" {
		addr = "unknown"
	}
	e := g.newEvent(s.t, kind)
	e.Address, e.Call, e.Errno = addr, s.call.Name, s.errno
	g.reportEvent(e)
}

func socketOf(t *kernel.Task, number int32, use func(socket.Socket)) {
	f := t.GetFile(number)
	if f == nil {
		return
	}
	defer f.DecRef(t)
	if s, ok := f.Impl().(socket.Socket); ok {
		use(s)
	}
}

// kindOf returns "tcp", "udp" or the name of a socket's other protocol.
func kindOf(t *kernel.Task, number int32) (kind string) {
	kind = "socket"
	socketOf(t, number, func(s socket.Socket) {
		family, typ, _ := s.Type()
		switch {
		case family == linux.AF_UNIX:
			kind = "unix"
		case typ == linux.SOCK_STREAM:
			kind = "tcp"
		case typ == linux.SOCK_DGRAM:
			kind = "udp"
		case typ == linux.SOCK_RAW:
			kind = "raw"
		}
	})
	return kind
}

func peerAddress(t *kernel.Task, number int32) (text string) {
	socketOf(t, number, func(s socket.Socket) {
		if a, size, err := s.GetPeerName(t); err == nil {
			text = formatAddress(kindOf(t, number), marshalAddress(a, size))
		}
	})
	return text
}

func localAddress(t *kernel.Task, number int32) (text string) {
	socketOf(t, number, func(s socket.Socket) {
		if a, size, err := s.GetSockName(t); err == nil {
			text = formatAddress(kindOf(t, number), marshalAddress(a, size))
		}
	})
	return text
}

func marshalAddress(a linux.SockAddr, size uint32) []byte {
	b := marshal.Marshal(a)
	return b[:min(int(size), len(b))]
}

func copyInAddress(t *kernel.Task, at, size uint64) []byte {
	if at == 0 || size < 2 || size > maxAddress {
		return nil
	}
	b := make([]byte, size)
	if _, err := t.CopyInBytes(hostarch.Addr(at), b); err != nil {
		return nil
	}
	return b
}

// formatAddress formats a sockaddr: "tcp 192.0.2.1:443", "unix /run/x".
func formatAddress(kind string, b []byte) string {
	if len(b) < 2 {
		return ""
	}
	switch family := binary.LittleEndian.Uint16(b); {
	case family == linux.AF_INET && len(b) >= 8:
		return kind + " " + netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])),
			binary.BigEndian.Uint16(b[2:])).String()
	case family == linux.AF_INET6 && len(b) >= 24:
		return kind + " " + netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])),
			binary.BigEndian.Uint16(b[2:])).String()
	case family == linux.AF_UNIX && len(b) > 2 && b[2] == 0:
		return "unix @" + strings.TrimRight(string(b[3:]), "\x00")
	case family == linux.AF_UNIX:
		name, _, _ := strings.Cut(string(b[2:]), "\x00")
		return "unix " + name
	case family == linux.AF_UNSPEC:
		return kind + " none"
	default:
		return fmt.Sprintf("%s family %d", kind, family)
	}
}
