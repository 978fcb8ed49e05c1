// SPDX-License-Identifier: Apache-2.0

package names

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"

	"github.com/fumehood/fumehood/pkg/egress/segment"
)

// MaxNames is how many names a Pool knows at a time.
const MaxNames = 4096

// ErrFull says that a Pool has no address left for another name.
var ErrFull = errors.New("cannot give the name an address: too many names")

// A Pool gives each name one IPv4 and one IPv6 address of a Segment's pools. An address
// is given once in a Pool's life: after Forget, a look-up that a program kept leads to
// no name, never to another's.
type Pool struct {
	pool4, pool6 netip.Prefix // pool6 is the zero Prefix where there is no IPv6
	size         uint32       // how many names there are addresses for

	mu    sync.Mutex
	next  uint32 // the number of the next name, in both ranges
	names map[uint32]string
	nums  map[string]uint32
}

// NewPool returns an empty Pool of s's addresses, but for those that are reserved at the
// start, and as many at the end.
func NewPool(s segment.Segment) *Pool {
	size := uint32(1)<<(32-s.Pool4.Bits()) - 2*segment.Reserved
	return &Pool{pool4: s.Pool4, pool6: s.Pool6, size: size, names: map[uint32]string{}, nums: map[string]uint32{}}
}

// Take returns the addresses that stand for name, which Parse returned. v6 is the zero
// Addr where there is no IPv6.
func (p *Pool) Take(name string) (v4, v6 netip.Addr, err error) {
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

// Name returns the name that a stands for.
func (p *Pool) Name(a netip.Addr) (string, bool) {
	n, ok := p.number(a)
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
func (p *Pool) Synthetic(a netip.Addr) bool {
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

// number is the inverse of address4 and address6.
func (p *Pool) number(a netip.Addr) (uint32, bool) {
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
	// Of an IPv6 address the rest counts too: what is not the very address stands for nothing.
	return n, a == p.address4(n) || a == p.address6(n)
}
