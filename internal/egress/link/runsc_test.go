// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

// sandboxed does what runsc does with a namespace: it moves the device's addresses into
// gVisor's stack, removes them from the device, and reads its frames with a packet
// socket. The host kernel's own stack remains on the device.
func sandboxed(t *testing.T, w *world) *stack.Stack {
	t.Helper()
	var fd int
	w.inside(t, func() (err error) {
		device, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		addresses, err := netlink.AddrList(device, netlink.FAMILY_ALL)
		if err != nil {
			return err
		}
		for _, a := range addresses {
			if err := netlink.AddrDel(device, &a); err != nil {
				return err
			}
		}
		fd, err = packetSocket(device.Attrs().Index)
		return err
	})
	t.Cleanup(func() { unix.Close(fd) })
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	segment := w.space.Segment
	device, err := fdbased.New(&fdbased.Options{
		FDs: []int{fd}, MTU: uint32(segment.MTU), EthernetHeader: true, Address: tcpip.LinkAddress(segment.Sandbox.MAC),
		PacketDispatchMode: fdbased.RecvMMsg, RXChecksumOffload: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.RemoveNIC(nic); s.Destroy() })
	if err := errors.Join(occupy(s, device, w)...); err != nil {
		t.Fatal(err)
	}
	return s
}

func packetSocket(device int) (int, error) {
	all := uint16(unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(all))
	if err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device})
}

// occupy gives s the device with the sandbox's addresses, routes and neighbors.
func occupy(s *stack.Stack, device stack.LinkEndpoint, w *world) (errs []error) {
	try := func(err tcpip.Error) {
		if err != nil {
			errs = append(errs, errors.New(err.String()))
		}
	}
	try(s.CreateNIC(nic, device))
	for gateway, own := range w.Link.config.gatewayPeers() {
		number, all := tcpip.NetworkProtocolNumber(ipv4.ProtocolNumber), header.IPv4EmptySubnet
		if own.Is6() {
			number, all = ipv6.ProtocolNumber, header.IPv6EmptySubnet
		}
		try(s.AddProtocolAddress(nic, tcpip.ProtocolAddress{
			Protocol:          number,
			AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFromSlice(own.AsSlice()), PrefixLen: own.BitLen() - 2},
		}, stack.AddressProperties{}))
		via := tcpip.AddrFromSlice(gateway.AsSlice())
		try(s.AddStaticNeighbor(nic, number, via, tcpip.LinkAddress(w.space.Segment.Gateway.MAC)))
		s.AddRoute(tcpip.Route{Destination: all, Gateway: via, NIC: nic})
	}
	return errs
}

// The host kernel also sees every frame meant for gVisor's stack. It has no address
// there, so it neither answers nor resets the sandbox's connections.
func TestHostKernelStaysOutOfTheSandboxesConnections(t *testing.T) {
	lanetest.SkipShort(t)
	w := newWorld(t, &world{admit: admitEcho}, Config{})
	s := sandboxed(t, w)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			before, out := w.Stats(), kernelSends(t, w)
			to := netip.MustParseAddrPort(way.address)
			number := tcpip.NetworkProtocolNumber(ipv4.ProtocolNumber)
			if to.Addr().Is6() {
				number = ipv6.ProtocolNumber
			}
			c, err := gonet.DialTCP(s, tcpip.FullAddress{Addr: tcpip.AddrFromSlice(to.Addr().AsSlice()), Port: to.Port()}, number)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			size := sample.Rounds(t, 4<<20, 256<<10, 256<<10)
			go func() { _, _ = c.Write(make([]byte, size)); _ = c.CloseWrite() }()
			if n, err := io.Copy(io.Discard, c); n != int64(size) || err != nil {
				t.Errorf("%d of %d bytes came back: %v", n, size, err)
			}
			c.Close()
			if odd := w.Stats().Odd - before.Odd; odd != 0 {
				t.Errorf("%d odd frames", odd)
			}
			if sent := kernelSends(t, w) - out; sent != 0 {
				t.Errorf("the host kernel sent %d packets of its own", sent)
			}
		})
	}
}

// kernelSends returns how many packets the host kernel's stack in the namespace sent.
func kernelSends(t *testing.T, w *world) (sum int) {
	t.Helper()
	w.inside(t, func() error {
		b, err := os.ReadFile("/proc/thread-self/net/snmp6")
		if err != nil {
			return err
		}
		sent6, err := counter(string(b), "Ip6OutRequests")
		if err != nil {
			return err
		}
		b, err = os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		sent4, err := column(string(b), "Ip:", "OutRequests")
		sum = sent4 + sent6
		return err
	})
	return sum
}

// The host kernel also ignores frames that belong to no connection of the sandbox.
func TestHostKernelDoesNotAnswer(t *testing.T) {
	w := newWorld(t, &world{}, Config{})
	sandboxed(t, w)
	w.inside(t, func() error {
		listener, err := net.Listen("tcp", ":8080") // the host kernel's, on all its addresses
		if err != nil {
			return err
		}
		t.Cleanup(func() { listener.Close() })
		return nil
	})
	before, out := w.Stats().Frames, kernelSends(t, w)
	for i, own := range []netip.Addr{own4, own6, own4} {
		if i == 2 {
			eventually(t, "both are reset", func() bool { return w.Stats().Frames-before >= 2 })
		}
		gateway := w.space.Segment.Gateway.V4
		if own.Is6() {
			gateway = w.space.Segment.Gateway.V6
		}
		from, to := netip.AddrPortFrom(gateway, 1234), netip.AddrPortFrom(own, 8080)
		b := frame{gateway, own, 6, tcpSegment(from, to, header.TCPFlagSyn), nil}.bytes(w.Link)
		copy(b, w.space.Segment.Sandbox.MAC)
		copy(b[6:], w.space.Segment.Gateway.MAC)
		if _, err := unix.Write(w.Link.fd, b); err != nil {
			t.Fatal(err)
		}
	}
	// gVisor's stack resets unknown connections and does nothing else.
	// Its third comes after whatever else the first two led to.
	eventually(t, "all are reset", func() bool { return w.Stats().Frames-before >= 3 })
	if n := w.Stats().Frames - before; n != 3 {
		t.Errorf("%d frames came back, want the three resets of gVisor's stack", n)
	}
	if sent := kernelSends(t, w) - out; sent != 0 {
		t.Errorf("the host kernel sent %d packets of its own", sent)
	}
}

func counter(text, name string) (n int, err error) {
	for line := range lines(text) {
		if len(line) == 2 && line[0] == name {
			_, err = fmt.Sscan(line[1], &n)
			return n, err
		}
	}
	return 0, fmt.Errorf("no %s", name)
}

func column(text, table, name string) (n int, err error) {
	var names []string
	for line := range lines(text) {
		switch {
		case len(line) == 0 || line[0] != table:
		case names == nil:
			names = line
		default:
			for i := range names {
				if names[i] == name {
					_, err = fmt.Sscan(line[i], &n)
					return n, err
				}
			}
		}
	}
	return 0, fmt.Errorf("no %s", name)
}

func lines(text string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.Fields(line)) {
				return
			}
		}
	}
}
