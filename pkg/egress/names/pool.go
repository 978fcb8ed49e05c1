// SPDX-License-Identifier: Apache-2.0

package names

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
)

// The addresses inside a sandbox: of the network that its device is on, and of the
// first two hosts there. Neither range is ever connected to outside.
var (
	Net4     = netip.MustParsePrefix("198.18.0.0/15")
	Net6     = netip.MustParsePrefix("fd66:756d:6500::/64")
	Gateway4 = netip.MustParseAddr("198.18.0.1") // default route, and DNS
	Gateway6 = netip.MustParseAddr("fd66:756d:6500::1")
	Guest4   = netip.MustParseAddr("198.18.0.2")
	Guest6   = netip.MustParseAddr("fd66:756d:6500::2")
)

const (
	reserved = 256                // addresses at the start of each range that stand for no name
	poolSize = 1<<17 - 2*reserved // of the IPv4 range, but for its start and end
	// MaxNames is how many names a Pool knows at a time.
	MaxNames = 4096
)

// ErrFull says that a Pool has no address left for another name.
var ErrFull = errors.New("cannot give the name an address: too many names")

// A Pool gives each name one IPv4 and one IPv6 address. An address is given once in a
// Pool's life: after Forget, a look-up that a program kept leads to no name, never to
// another's.
type Pool struct {
	mu    sync.Mutex
	next  uint32 // the number of the next name, in both ranges
	names map[uint32]string
	nums  map[string]uint32
}

// NewPool returns an empty Pool.
func NewPool() *Pool {
	return &Pool{names: map[uint32]string{}, nums: map[string]uint32{}}
}

// Take returns the addresses that stand for name, which Parse returned.
func (p *Pool) Take(name string) (v4, v6 netip.Addr, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.nums[name]
	if !ok {
		if len(p.nums) >= MaxNames || p.next >= poolSize {
			return v4, v6, ErrFull
		}
		n = p.next
		p.next++
		p.names[n], p.nums[name] = name, n
	}
	return address4(n), address6(n), nil
}

// Name returns the name that a stands for.
func (p *Pool) Name(a netip.Addr) (string, bool) {
	n, ok := number(a)
	if !ok {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name, ok := p.names[n]
	return name, ok
}

// Has says whether name has addresses.
func (p *Pool) Has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.nums[name]
	return ok
}

// Forget ends what all addresses stand for, as at the end of a command.
func (p *Pool) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.names)
	clear(p.nums)
}

// Synthetic says whether a is of the ranges inside the sandbox. Such an address that
// stands for no name is refused; it is no address of the outside.
func Synthetic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return Net4.Contains(a) || Net6.Contains(a)
}

func address4(n uint32) netip.Addr {
	b := Net4.Addr().As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+reserved+n)
	return netip.AddrFrom4(b)
}

func address6(n uint32) netip.Addr {
	b := Net6.Addr().As16()
	binary.BigEndian.PutUint32(b[12:], reserved+n)
	return netip.AddrFrom16(b)
}

// number is the inverse of address4 and address6.
func number(a netip.Addr) (uint32, bool) {
	var at uint32
	switch {
	case a.Is4() && Net4.Contains(a):
		b, start := a.As4(), Net4.Addr().As4()
		at = binary.BigEndian.Uint32(b[:]) - binary.BigEndian.Uint32(start[:])
	case a.Is6() && a.Zone() == "" && Net6.Contains(a):
		b := a.As16()
		if binary.BigEndian.Uint32(b[8:12]) != 0 {
			return 0, false
		}
		at = binary.BigEndian.Uint32(b[12:])
	}
	if at < reserved || at-reserved >= poolSize {
		return 0, false
	}
	return at - reserved, true
}
