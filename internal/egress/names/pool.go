// SPDX-License-Identifier: Apache-2.0

package names

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"

	"github.com/fumehood/fumehood/internal/egress/segment"
)

// MaxNames is the maximum number of names in a Pool.
const MaxNames = 4096

// ErrFull means that a Pool has no address left for another name.
var ErrFull = errors.New("cannot give the name an address: too many names")

// A Pool gives each name one IPv4 and one IPv6 address from a Segment's pools. An address is
// given once in a Pool's life: after Forget, an address that a program kept leads to no name,
// never to another name.
type Pool struct {
	pool4, pool6 netip.Prefix // pool6 is the zero Prefix if there is no IPv6
	size         uint32       // the number of names that there are addresses for

	mu    sync.Mutex
	next  uint32 // the number of the next name, in both ranges
	names map[uint32]string
	nums  map[string]uint32
}

// NewPool returns an empty Pool of s's addresses, except for those reserved at the start and
// at the end.
func NewPool(s segment.Segment) *Pool {
	size := uint32(1)<<(32-s.Pool4.Bits()) - 2*segment.Reserved
	return &Pool{pool4: s.Pool4, pool6: s.Pool6, size: size, names: map[uint32]string{}, nums: map[string]uint32{}}
}

// AssignAddresses returns the addresses of name, which must come from Parse, and assigns them if needed.
// v6 is the zero Addr if there is no IPv6.
func (p *Pool) AssignAddresses(name string) (v4, v6 netip.Addr, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.nums[name]
	if !ok {
		if len(p.nums) >= MaxNames || p.next >= p.size {
			return v4, v6, ErrFull
		}
		n = p.next
		p.next++
		p.names[n], p.nums[name] = name, n
	}
	return p.address4(n), p.address6(n), nil
}

// Name returns the name that a was given to.
func (p *Pool) Name(a netip.Addr) (string, bool) {
	n, ok := p.addressNumber(a)
	if !ok {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name, ok := p.names[n]
	return name, ok
}

// HasAddresses reports whether name has addresses.
func (p *Pool) HasAddresses(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.nums[name]
	return ok
}

// ForgetAddresses invalidates all addresses given so far, as at the end of a command.
func (p *Pool) ForgetAddresses() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.names)
	clear(p.nums)
}

// IsSynthetic reports whether a is in the ranges used inside the sandbox. Such an address is not
// an outside address; without a name it is refused.
func (p *Pool) IsSynthetic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return p.pool4.Contains(a) || p.pool6.Contains(a)
}

func (p *Pool) address4(n uint32) netip.Addr {
	b := p.pool4.Addr().As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+segment.Reserved+n)
	return netip.AddrFrom4(b)
}

func (p *Pool) address6(n uint32) netip.Addr {
	if !p.pool6.IsValid() {
		return netip.Addr{}
	}
	b := p.pool6.Addr().As16()
	binary.BigEndian.PutUint32(b[12:], segment.Reserved+n)
	return netip.AddrFrom16(b)
}

// addressNumber is the inverse of address4 and address6.
func (p *Pool) addressNumber(a netip.Addr) (uint32, bool) {
	var at uint32
	switch {
	case a.Is4() && p.pool4.Contains(a):
		b, start := a.As4(), p.pool4.Addr().As4()
		at = binary.BigEndian.Uint32(b[:]) - binary.BigEndian.Uint32(start[:])
	case a.Is6() && a.Zone() == "" && p.pool6.Contains(a):
		b := a.As16()
		at = binary.BigEndian.Uint32(b[12:])
	}
	if at < segment.Reserved || at-segment.Reserved >= p.size {
		return 0, false
	}
	n := at - segment.Reserved
	// For an IPv6 address the other bits count too: only the exact address was given to the
	// name.
	return n, a == p.address4(n) || a == p.address6(n)
}
