// SPDX-License-Identifier: Apache-2.0

package names

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sync/singleflight"
)

// A patience is how long a Resolver waits.
type patience struct {
	resolve time.Duration // for all of one name
	try     time.Duration // for one message to one server
	family  time.Duration // of one family's answer for the other's
}

var defaultPatience = patience{resolve: 5 * time.Second, try: 1500 * time.Millisecond, family: time.Second}

const (
	maxChases = 8 // aliases that are asked for on their own

	leastKept   = 30 * time.Second // so that a name cannot change between two steps
	mostKept    = 5 * time.Minute
	absenceKept = 5 * time.Second
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
//
// # Why
//
// The standard library's resolver reads the files of the host that it happens to run
// on and takes every address of an answer, whoever's it is. This one knows only what
// it is given.
type Resolver struct {
	u        Upstream
	patience patience
	flight   singleflight.Group

	mu   sync.Mutex
	kept map[string]found
}

// found is what a name leads to: no addresses when it is not there.
type found struct {
	addrs []netip.Addr
	until time.Time
}

// NewResolver returns a Resolver, which needs a Check, and a server or a host.
func NewResolver(u Upstream) (*Resolver, error) {
	if u.Check == nil {
		return nil, errors.New("cannot resolve names: no check of addresses")
	}
	if len(u.Servers) == 0 && len(u.Hosts) == 0 {
		return nil, errors.New("cannot resolve names: no server")
	}
	for _, s := range u.Servers {
		if !s.IsValid() || s.Port() == 0 {
			return nil, fmt.Errorf("cannot resolve names: invalid server %s", s)
		}
	}
	return &Resolver{u: u, patience: defaultPatience, kept: map[string]found{}}, nil
}

// Resolve returns the addresses of name, IPv4 first. All passed Check with private:
// one that does not refuses the name, with the error of Check (an *address.Refused).
// A name that is nowhere is an ErrNotFound; any other error means that no server gave
// an answer that counts, within five seconds.
func (r *Resolver) Resolve(ctx context.Context, name string, private bool) ([]netip.Addr, error) {
	name, err := Parse(name)
	if err != nil {
		return nil, err
	}
	addrs, ok := r.u.Hosts[name]
	if !ok {
		if addrs, err = r.find(ctx, name); err != nil {
			return nil, err
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("cannot resolve %s: %w", name, ErrNotFound)
	}
	for _, a := range addrs {
		if err := r.u.Check(a, private); err != nil {
			return nil, fmt.Errorf("cannot connect to %s: %w", name, err)
		}
	}
	return ordered(addrs), nil
}

// Find is Resolve for callers that need no address.
func (r *Resolver) Find(ctx context.Context, name string, private bool) error {
	_, err := r.Resolve(ctx, name, private)
	return err
}

// find returns the addresses of name as kept or as the servers have them, unjudged.
func (r *Resolver) find(ctx context.Context, name string) ([]netip.Addr, error) {
	if f, ok := r.remembered(name); ok {
		return f.addrs, nil
	}
	// Whoever asked first may go away; the others still want to know.
	answer := r.flight.DoChan(name, func() (any, error) {
		if f, ok := r.remembered(name); ok { // since we looked
			return f.addrs, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.patience.resolve)
		defer cancel()
		f, err := r.lookup(ctx, name)
		if err == nil {
			r.remember(name, f)
		}
		return f.addrs, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-answer:
		if a.Err != nil {
			return nil, fmt.Errorf("cannot resolve %s: %w", name, a.Err)
		}
		return a.Val.([]netip.Addr), nil
	}
}

// lookup asks for both families at once. One family's failure is none of the other's:
// some servers never answer for IPv6.
func (r *Resolver) lookup(ctx context.Context, name string) (found, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type family struct {
		reply
		err error
	}
	answers := make(chan family, 2)
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		go func() {
			rep, err := r.chase(ctx, question{name, kind})
			answers <- family{rep, err}
		}()
	}
	var addrs []netip.Addr
	var failed error
	ttl := uint32(mostKept / time.Second)
	for range 2 {
		a := <-answers
		if a.err != nil {
			failed = errors.Join(failed, a.err)
		}
		if len(a.addrs) > 0 {
			addrs, ttl = append(addrs, a.addrs...), min(ttl, a.ttl)
			defer time.AfterFunc(r.patience.family, cancel).Stop()
		}
	}
	if len(addrs) == 0 {
		return found{until: time.Now().Add(absenceKept)}, failed
	}
	return found{addrs, time.Now().Add(max(leastKept, time.Duration(ttl)*time.Second))}, nil
}

// chase asks q, and where the answer is only an alias, for what that stands for.
func (r *Resolver) chase(ctx context.Context, q question) (reply, error) {
	ttl := uint32(mostKept / time.Second)
	for range maxChases {
		rep, err := ask(ctx, r.u.Servers, r.patience.try, q)
		if err != nil {
			return reply{}, err
		}
		if len(rep.addrs) > 0 || rep.alias != "" {
			ttl = min(ttl, rep.ttl)
			rep.ttl = ttl
		}
		if rep.alias == "" || rep.absent {
			return rep, nil
		}
		q.name = rep.alias
	}
	return reply{}, errors.New("invalid answer: too many aliases")
}

func (r *Resolver) remembered(name string) (found, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.kept[name]
	return f, ok && time.Now().Before(f.until)
}

func (r *Resolver) remember(name string, f found) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= MaxNames {
		clear(r.kept)
	}
	r.kept[name] = f
}

// ordered returns addrs with IPv4 first, which works on more hosts, each once.
func ordered(addrs []netip.Addr) []netip.Addr {
	var list []netip.Addr
	seen := map[netip.Addr]bool{}
	for _, v4 := range []bool{true, false} {
		for _, a := range addrs {
			if a.Is4() == v4 && !seen[a] {
				seen[a] = true
				list = append(list, a)
			}
		}
	}
	return list
}
