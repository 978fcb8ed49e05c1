// SPDX-License-Identifier: Apache-2.0

package names

import (
	"context"
	"errors"
	"net/netip"
)

// ErrNotFound says that a name does not exist, or has no address.
var ErrNotFound = errors.New("no such name")

// Upstream says whom a Resolver asks.
type Upstream struct {
	Servers []netip.AddrPort        // asked in order; not checked as what they answer is
	Hosts   map[string][]netip.Addr // names that are not asked for, as in /etc/hosts
	// Check judges each address: Dialer.Check of pkg/egress/address.
	Check func(a netip.Addr, private bool) error
}

// A Resolver finds names. It keeps what it found for as long as the answer said,
// within bounds, and asks once for all who want the same name at a time.
type Resolver struct {
	u Upstream
}

// NewResolver returns a Resolver.
func NewResolver(u Upstream) (*Resolver, error) { return &Resolver{u: u}, nil }

// Resolve returns the addresses of name, IPv4 first. All passed Check with private:
// one that does not refuses the name, with the error of Check (an *address.Refused).
// A name that is nowhere is an ErrNotFound; any other error means that no server gave
// an answer that counts, within five seconds.
func (r *Resolver) Resolve(ctx context.Context, name string, private bool) ([]netip.Addr, error) {
	return nil, errors.New("cannot resolve: not there yet")
}

// Find is Resolve for callers that need no address.
func (r *Resolver) Find(ctx context.Context, name string, private bool) error {
	_, err := r.Resolve(ctx, name, private)
	return err
}
