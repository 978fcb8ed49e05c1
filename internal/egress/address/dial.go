// SPDX-License-Identifier: Apache-2.0

package address

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dialTimeout  = 10 * time.Second // for one Dial, all addresses together
	tryTimeout   = 4 * time.Second  // for one address
	maxTries     = 4
	keepIdle     = 30 * time.Second
	keepInterval = 10 * time.Second
)

// A Dialer connects only to addresses that pass Check. It makes only the system calls of
// a TCP connection, and bind.
type Dialer struct {
	own            []netip.Prefix
	probe4, probe6 *probe // nil where bind does not distinguish the host's own addresses
}

// NewDialer returns a Dialer for a host with the addresses own.
func NewDialer(own []netip.Prefix) *Dialer {
	return &Dialer{
		own:    own,
		probe4: newProbe(unix.AF_INET, netip.AddrFrom4([4]byte{192, 0, 2, 1})),
		probe6: newProbe(unix.AF_INET6, netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1})),
	}
}

// newProbe returns a probe, or nil where binding proves nothing: if ip_nonlocal_bind is
// set, every address can be bound, including nobodys.
func newProbe(family int, nobodys netip.Addr) *probe {
	p := &probe{family: family}
	if local, err := p.canBind(nobodys); err == nil && local {
		return nil
	}
	return p
}

// Dial connects to the first of addrs that answers; it tries the first four. All are
// checked before anything is sent: if one is refused, Dial returns its *Refused. The
// connection's RemoteAddr is the address that was connected to.
func (d *Dialer) Dial(ctx context.Context, addrs []netip.Addr, port uint16, private bool) (net.Conn, error) {
	if len(addrs) == 0 || port == 0 {
		return nil, errors.New("cannot connect: no address")
	}
	for _, a := range addrs {
		if err := d.Check(a, private); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var first error
	for _, a := range addrs[:min(len(addrs), maxTries)] {
		conn, err := d.dialAddress(ctx, netip.AddrPortFrom(a, port), private)
		if err == nil {
			return conn, nil
		}
		first = errors.Join(first, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// Check is the package's Check with the host's current addresses, including those added
// since the Dialer was made. If they cannot be determined, the address is refused.
func (d *Dialer) Check(a netip.Addr, private bool) error {
	if err := Check(a, d.own, private); err != nil {
		return err
	}
	probe := d.probe6
	if a.Is4() {
		probe = d.probe4
	}
	if probe == nil {
		return nil
	}
	local, err := probe.canBind(a)
	if err != nil {
		return fmt.Errorf("cannot determine whether %s is the host's own: %w", a, err)
	}
	if local {
		return &Refused{Addr: a, Kind: "own"}
	}
	return nil
}

func (d *Dialer) dialAddress(ctx context.Context, to netip.AddrPort, private bool) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout:         tryTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepIdle, Interval: keepInterval, Count: 3},
		// The final check before the system call, on the address the call will use.
		Control: func(network, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || at != to {
				return fmt.Errorf("cannot connect to %s: it is not %s, which was checked", address, to)
			}
			return Check(at.Addr(), d.own, private)
		},
	}
	dialer.SetMultipathTCP(false)
	network := "tcp6"
	if to.Addr().Is4() {
		network = "tcp4"
	}
	return dialer.DialContext(ctx, network, to.String())
}

// A probe is a socket that is kept to test addresses with: creating one each time would
// take longer than all other checks.
type probe struct {
	family int

	mu   sync.Mutex
	file *os.File // unbound; nil before the first test
}

// canBind reports whether the probe can bind to a, which is possible only for the
// host's own addresses. Nothing is sent, and a socket that does not listen receives
// nothing.
func (p *probe) canBind(a netip.Addr) (bool, error) {
	var to unix.Sockaddr = &unix.SockaddrInet6{Addr: a.As16()}
	if p.family == unix.AF_INET {
		to = &unix.SockaddrInet4{Addr: a.As4()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		fd, err := unix.Socket(p.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if errors.Is(err, unix.EAFNOSUPPORT) {
			return false, nil // a host without the address family has no address in it
		}
		if err != nil {
			return false, err
		}
		p.file = os.NewFile(uintptr(fd), "probe")
	}
	err := unix.Bind(int(p.file.Fd()), to)
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		return false, nil
	}
	p.file.Close() // now bound, or unusable
	p.file = nil
	return err == nil, err
}

// HostPrefixes returns the addresses of the host's devices, except for loopback, which Check
// knows. It needs a netlink socket, which the gateway's process must not open.
func HostPrefixes() ([]netip.Prefix, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("cannot list the host's addresses: %w", err)
	}
	var own []netip.Prefix
	for _, l := range list {
		p, err := netip.ParsePrefix(l.String())
		if err != nil {
			return nil, fmt.Errorf("cannot list the host's addresses: %w", err)
		}
		if a := p.Addr().Unmap(); !a.IsLoopback() {
			own = append(own, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return own, nil
}
