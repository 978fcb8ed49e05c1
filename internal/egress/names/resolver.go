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

// A resolverTimeouts holds a Resolver's timeouts.
type resolverTimeouts struct {
	resolve time.Duration // for one name
	try     time.Duration // for one message to one server
	family  time.Duration // that one family's answer waits for the other's
}

var defaultPatience = resolverTimeouts{resolve: 5 * time.Second, try: 1500 * time.Millisecond, family: time.Second}

const (
	maxChases = 8 // alias targets that need their own query

	minKept     = 30 * time.Second // so that a name cannot change between two steps
	maxKept     = 5 * time.Minute
	absenceKept = 5 * time.Second
)

// ErrNotFound means that a name does not exist or has no address.
var ErrNotFound = errors.New("no such name")

// Upstream lists the sources of a Resolver.
type Upstream struct {
	Servers []netip.AddrPort        // queried in order; Check is not applied to them
	Hosts   map[string][]netip.Addr // names that are not queried, as in /etc/hosts
	// Check checks each address: Dialer.Check of internal/egress/address.
	Check func(a netip.Addr, private bool) error
	// Elsewhere says that a proxy can resolve what these sources cannot: there may be none, and
	// that no server answers is remembered like an answer.
	Elsewhere bool
}

// A Resolver resolves names. It caches results for the answer's TTL, within bounds,
// and combines concurrent lookups of the same name.
//
// # Why
//
// The standard library's resolver reads the files of the host that it runs on and
// accepts every address in an answer, whichever name it belongs to. This one uses
// only what it is given.
type Resolver struct {
	u        Upstream
	patience resolverTimeouts
	flight   singleflight.Group

	mu   sync.Mutex
	kept map[string]lookupResult
}

// lookupResult is the result for a name: no addresses and no error if it does not exist.
type lookupResult struct {
	addrs []netip.Addr
	err   error // no server answered
	until time.Time
}

// NewResolver returns a Resolver. u needs a Check, and at least one server or host.
func NewResolver(u Upstream) (*Resolver, error) {
	if u.Check == nil {
		return nil, errors.New("cannot resolve names: no check of addresses")
	}
	if len(u.Servers) == 0 && len(u.Hosts) == 0 && !u.Elsewhere {
		return nil, errors.New("cannot resolve names: no server")
	}
	for _, s := range u.Servers {
		if !s.IsValid() || s.Port() == 0 {
			return nil, fmt.Errorf("cannot resolve names: invalid server %s", s)
		}
	}
	return &Resolver{u: u, patience: defaultPatience, kept: map[string]lookupResult{}}, nil
}

// Resolve returns the addresses of name, IPv4 first. All passed Check with private:
// if one does not, Resolve returns Check's error (an *address.Refused). A name that
// does not exist is ErrNotFound; any other error means that no server gave a valid
// answer within five seconds.
func (r *Resolver) Resolve(ctx context.Context, name string, private bool) ([]netip.Addr, error) {
	name, err := Parse(name)
	if err != nil {
		return nil, err
	}
	addrs, ok := r.u.Hosts[name]
	if !ok {
		if addrs, err = r.findAddresses(ctx, name); err != nil {
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
	return sortUniqueAddresses(addrs), nil
}

// Find is Resolve for callers that do not need the addresses.
func (r *Resolver) Find(ctx context.Context, name string, private bool) error {
	_, err := r.Resolve(ctx, name, private)
	return err
}

// findAddresses returns the addresses of name from the cache or the servers, unchecked.
func (r *Resolver) findAddresses(ctx context.Context, name string) ([]netip.Addr, error) {
	if f, ok := r.cachedResult(name); ok {
		return f.addrs, f.err
	}
	// The first caller may give up; the others still need the answer.
	answer := r.flight.DoChan(name, func() (any, error) {
		if f, ok := r.cachedResult(name); ok { // added in the meantime
			return f.addrs, f.err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.patience.resolve)
		defer cancel()
		f, err := r.lookupFamilies(ctx, name)
		if err != nil && r.u.Elsewhere {
			f = lookupResult{err: err, until: time.Now().Add(minKept)}
		}
		if err == nil || r.u.Elsewhere {
			r.cacheResult(name, f)
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

// lookupFamilies queries both families at once. They fail independently: some servers never
// answer for IPv6.
func (r *Resolver) lookupFamilies(ctx context.Context, name string) (lookupResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type family struct {
		reply
		err error
	}
	answers := make(chan family, 2)
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		go func() {
			rep, err := r.queryFollowingAlias(ctx, question{name, kind})
			answers <- family{rep, err}
		}()
	}
	var addrs []netip.Addr
	var failed error
	ttl := uint32(maxKept / time.Second)
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
		return lookupResult{until: time.Now().Add(absenceKept)}, failed
	}
	return lookupResult{addrs: addrs, until: time.Now().Add(max(minKept, time.Duration(ttl)*time.Second))}, nil
}

// queryFollowingAlias queries q, and if the answer is only an alias, its target.
func (r *Resolver) queryFollowingAlias(ctx context.Context, q question) (reply, error) {
	ttl := uint32(maxKept / time.Second)
	for range maxChases {
		rep, err := queryServers(ctx, r.u.Servers, r.patience.try, q)
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

func (r *Resolver) cachedResult(name string) (lookupResult, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.kept[name]
	return f, ok && time.Now().Before(f.until)
}

func (r *Resolver) cacheResult(name string, f lookupResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= MaxNames {
		clear(r.kept)
	}
	r.kept[name] = f
}

// sortUniqueAddresses returns addrs without duplicates, with IPv4, which works on more hosts,
// first.
func sortUniqueAddresses(addrs []netip.Addr) []netip.Addr {
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
