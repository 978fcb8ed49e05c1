// SPDX-License-Identifier: Apache-2.0

package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/fumehood/fumehood/internal/egress/address"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

func check(a netip.Addr, private bool) error { return address.Check(a, nil, private) }

// resolverOf returns a Resolver that waits for servers without a time limit.
func resolverOf(t testing.TB, servers ...*upstream) *Resolver {
	t.Helper()
	u := Upstream{Check: check}
	for _, s := range servers {
		u.Servers = append(u.Servers, s.addr)
	}
	r, err := NewResolver(u)
	if err != nil {
		t.Fatal(err)
	}
	r.patience = resolverTimeouts{time.Minute, time.Minute, time.Minute}
	return r
}

// outcome formats the result of Resolve as one line.
func outcome(addrs []netip.Addr, err error) string {
	var refused *address.Refused
	switch {
	case errors.As(err, &refused):
		return "refused " + refused.Kind
	case errors.Is(err, ErrNotFound):
		return "not found"
	case err != nil:
		return "failed"
	}
	var list []string
	for _, a := range addrs {
		list = append(list, a.String())
	}
	return strings.Join(list, " ")
}

func TestResolve(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	const name = "a.example"
	many := func(n int) (list []dnsmessage.Resource) {
		for i := range n {
			list = append(list, at(name, fmt.Sprintf("8.8.%d.%d", i/250, i%250+1), 60))
		}
		return list
	}
	chain := func(n int) (list []dnsmessage.Resource) {
		from := name
		for i := range n {
			to := fmt.Sprintf("c%d.example", i)
			list, from = append(list, alias(from, to, 60)), to
		}
		return append(list, at(from, "8.8.8.8", 60))
	}
	// Cases that end only by our own timeout: everything not limited here must
	// answer.
	unanswered := map[string]resolverTimeouts{
		"silence for IPv6 alone": {time.Minute, time.Minute, 10 * moment},
		"lost once":              {time.Minute, time.Second, time.Minute},
		"silent":                 {time.Minute, moment, time.Minute},
		"lies alone":             {10 * moment, time.Minute, time.Minute},
	}
	for _, tt := range []struct {
		name    string
		answer  func(asked)
		private bool
		want    string
	}{
		{"one address", func(a asked) { a.replyOwn(at(name, "8.8.8.8", 60)) }, false, "8.8.8.8"},
		{"both families, IPv4 first", func(a asked) { a.replyOwn(at(name, "2600::1", 60), at(name, "8.8.8.8", 60)) }, false, "8.8.8.8 2600::1"},
		{"IPv6 alone", func(a asked) { a.replyOwn(at(name, "2600::1", 60)) }, false, "2600::1"},
		{"one address twice", func(a asked) { a.replyOwn(at(name, "8.8.8.8", 60), at(name, "8.8.8.8", 60)) }, false, "8.8.8.8"},
		{"in another case", func(a asked) {
			a.q.Name = dnsmessage.MustNewName("A.eXample.")
			a.replyOwn(at("a.EXAMPLE", "8.8.8.8", 60))
		}, false, "8.8.8.8"},

		{"no data", func(a asked) { a.replyOwn() }, false, "not found"},
		{"no such name", func(a asked) { a.replyCode(dnsmessage.RCodeNameError) }, false, "not found"},
		{"no such name, with an address", func(a asked) {
			m := a.message(at(name, "8.8.8.8", 60))
			m.RCode = dnsmessage.RCodeNameError
			a.reply(m)
		}, false, "not found"},
		{"no such name for IPv6 alone", func(a asked) {
			if a.q.Type == dnsmessage.TypeAAAA {
				a.replyCode(dnsmessage.RCodeNameError)
				return
			}
			a.replyOwn(at(name, "8.8.8.8", 60))
		}, false, "8.8.8.8"},
		{"a failure for IPv6 alone", func(a asked) {
			if a.q.Type == dnsmessage.TypeAAAA {
				a.replyCode(dnsmessage.RCodeServerFailure)
				return
			}
			a.replyOwn(at(name, "8.8.8.8", 60))
		}, false, "8.8.8.8"},
		{"silence for IPv6 alone", func(a asked) {
			if a.q.Type == dnsmessage.TypeA {
				a.replyOwn(at(name, "8.8.8.8", 60))
			}
		}, false, "8.8.8.8"},
		{"a failure", func(a asked) { a.replyCode(dnsmessage.RCodeServerFailure) }, false, "failed"},
		{"refused", func(a asked) { a.replyCode(dnsmessage.RCodeRefused) }, false, "failed"},

		{"loopback", func(a asked) { a.replyOwn(at(name, "127.0.0.1", 60)) }, true, "refused loopback"},
		{"metadata", func(a asked) { a.replyOwn(at(name, "169.254.169.254", 60)) }, true, "refused metadata"},
		{"private, not let", func(a asked) { a.replyOwn(at(name, "10.0.0.1", 60)) }, false, "refused private"},
		{"private, let", func(a asked) { a.replyOwn(at(name, "10.0.0.1", 60)) }, true, "10.0.0.1"},
		{"one of many loopback", func(a asked) { a.replyOwn(append(many(20), at(name, "127.0.0.1", 60))...) }, false, "refused loopback"},
		{"loopback in the other family", func(a asked) { a.replyOwn(at(name, "8.8.8.8", 60), at(name, "::1", 60)) }, false, "refused loopback"},
		{"mapped loopback", func(a asked) { a.replyOwn(at(name, "::ffff:127.0.0.1", 60)) }, false, "refused embedded"},

		{"an alias", func(a asked) { a.replyOwn(alias(name, "b.example", 60), at("b.example", "8.8.8.8", 60)) }, false, "8.8.8.8"},
		{"an alias, records turned round", func(a asked) { a.replyOwn(at("b.example", "8.8.8.8", 60), alias(name, "b.example", 60)) }, false, "8.8.8.8"},
		{"a chain of aliases", func(a asked) { a.replyOwn(chain(10)...) }, false, "8.8.8.8"},
		{"a chain too long", func(a asked) { a.replyOwn(chain(20)...) }, false, "failed"},
		{"an alias of itself", func(a asked) { a.replyOwn(alias(name, name, 60)) }, false, "failed"},
		{"aliases in a ring", func(a asked) { a.replyOwn(alias(name, "b.example", 60), alias("b.example", name, 60)) }, false, "failed"},
		{"aliases in a ring, one by one", func(a asked) {
			if a.name == name {
				a.replyOwn(alias(name, "b.example", 60))
				return
			}
			a.replyOwn(alias("b.example", name, 60))
		}, false, "failed"},
		{"an alias of two names", func(a asked) { a.replyOwn(alias(name, "b.example", 60), alias(name, "c.example", 60)) }, false, "failed"},
		{"an alias to ask for", func(a asked) {
			if a.name == name {
				a.replyOwn(alias(name, "b.example", 60))
				return
			}
			a.replyOwn(at("b.example", "8.8.8.8", 60))
		}, false, "8.8.8.8"},
		{"an alias of loopback", func(a asked) { a.replyOwn(alias(name, "localhost", 60), at("localhost", "127.0.0.1", 60)) }, false, "refused loopback"},
		{"an alias of nothing", func(a asked) { a.replyOwn(alias(name, "b.example", 60)) }, false, "not found"},

		{"an address of another name", func(a asked) { a.replyOwn(at("evil.example", "8.8.4.4", 60)) }, false, "not found"},
		{"addresses of another name beside", func(a asked) { a.replyOwn(at("evil.example", "127.0.0.1", 60), at(name, "8.8.8.8", 60)) }, false, "8.8.8.8"},
		{"an address of another class", func(a asked) {
			r := at(name, "8.8.8.8", 60)
			r.Header.Class = dnsmessage.ClassCHAOS
			a.replyOwn(r)
		}, false, "not found"},
		{"an address in the additional section", func(a asked) {
			m := a.message()
			m.Additionals = []dnsmessage.Resource{at(name, "8.8.8.8", 60)}
			a.reply(m)
		}, false, "not found"},
		{"an address of the other family", func(a asked) {
			if a.q.Type == dnsmessage.TypeAAAA {
				a.reply(a.message(at(name, "8.8.8.8", 60)))
				return
			}
			a.replyOwn()
		}, false, "not found"},

		{"sixty-four addresses", func(a asked) {
			if a.network == "udp" && a.q.Type == dnsmessage.TypeA {
				a.send(truncated(a))
				return
			}
			a.replyOwn(many(64)...)
		}, false, outcome(listed(many(64)), nil)},
		{"more", func(a asked) {
			if a.network == "udp" {
				a.send(truncated(a))
				return
			}
			a.replyOwn(many(65)...)
		}, false, "failed"},
		{"huge", func(a asked) {
			if a.network == "udp" {
				a.send(truncated(a))
				return
			}
			a.replyOwn(many(2000)...)
		}, false, "failed"},
		{"cut off, then by TCP", func(a asked) {
			if a.network == "udp" {
				a.send(truncated(a))
				return
			}
			a.replyOwn(at(name, "8.8.8.8", 60))
		}, false, "8.8.8.8"},
		{"cut off by TCP too", func(a asked) { a.send(truncated(a)) }, false, "failed"},
		{"an address in what was cut off", func(a asked) {
			m := a.message(at(name, "8.8.4.4", 60))
			m.Truncated = true
			if a.network == "udp" {
				a.reply(m)
				return
			}
			a.replyOwn(at(name, "8.8.8.8", 60))
		}, false, "8.8.8.8"},

		{"the true answer after lies", func(a asked) {
			for _, lie := range lies(a) {
				a.send(lie)
			}
			a.replyOwn(at(name, "8.8.8.8", 60))
		}, false, "8.8.8.8"},
		{"lies alone", func(a asked) {
			for _, lie := range lies(a) {
				a.send(lie)
			}
		}, false, "failed"},
		{"a flood of wrong ids", func(a asked) {
			a.id++
			for range 2 * maxForeign {
				a.replyOwn(at(name, "8.8.4.4", 60))
			}
		}, false, "failed"},
		{"a record cut short", func(a asked) {
			m := a.message(at(name, "8.8.8.8", 60))
			b, _ := m.Pack()
			a.send(b[:len(b)-2])
		}, false, "failed"},
		{"slow", func(a asked) { time.Sleep(moment); a.replyOwn(at(name, "8.8.8.8", 60)) }, false, "8.8.8.8"},
		{"lost once", lostOnce(func(a asked) { a.replyOwn(at(name, "8.8.8.8", 60)) }), false, "8.8.8.8"},
		{"silent", func(asked) {}, false, "failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := resolverOf(t, newUpstream(t, tt.answer))
			if p, ok := unanswered[tt.name]; ok {
				r.patience = p
			}
			if got := outcome(r.Resolve(context.Background(), name, tt.private)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func listed(records []dnsmessage.Resource) (list []netip.Addr) {
	for _, r := range records {
		list = append(list, netip.AddrFrom4(r.Body.(*dnsmessage.AResource).A))
	}
	return list
}

func truncated(a asked) []byte {
	m := a.message()
	m.Truncated = true
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

// lostOnce leaves the first query of each type unanswered.
func lostOnce(answer func(asked)) func(asked) {
	var mu sync.Mutex
	seen := map[dnsmessage.Type]bool{}
	return func(a asked) {
		mu.Lock()
		had := seen[a.q.Type]
		seen[a.q.Type] = true
		mu.Unlock()
		if had {
			answer(a)
		}
	}
}

// Results are cached: a name that changes immediately does not change between the
// lookup and the connection.
func TestResolveKeeps(t *testing.T) {
	var turned atomic.Bool
	u := newUpstream(t, func(a asked) {
		if turned.Load() {
			a.replyOwn(at("a.example", "127.0.0.1", 0))
			return
		}
		a.replyOwn(at("a.example", "8.8.8.8", 0))
	})
	r := resolverOf(t, u)
	for range 3 {
		if got := outcome(r.Resolve(context.Background(), "a.example", false)); got != "8.8.8.8" {
			t.Errorf("got %q", got)
		}
		turned.Store(true)
	}
	if n := u.counted("udp A a.example"); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	// When the name is looked up again, the new addresses are checked.
	r.mu.Lock()
	f := r.kept["a.example"]
	if left := time.Until(f.until); left < minKept-time.Second || left > minKept {
		t.Errorf("kept for %v, want %v", left, minKept)
	}
	f.until = time.Now()
	r.kept["a.example"] = f
	r.mu.Unlock()
	if got := outcome(r.Resolve(context.Background(), "a.example", false)); got != "refused loopback" {
		t.Errorf("after it turned: %q", got)
	}
}

// Cached addresses are checked again for each caller: one may connect to private
// addresses, another may not.
func TestResolveJudgesWhatIsKept(t *testing.T) {
	r := resolverOf(t, newUpstream(t, func(a asked) { a.replyOwn(at("a.example", "10.0.0.1", 600)) }))
	for private, want := range map[bool]string{true: "10.0.0.1", false: "refused private"} {
		for range 2 {
			if got := outcome(r.Resolve(context.Background(), "a.example", private)); got != want {
				t.Errorf("private %v: %q, want %q", private, got, want)
			}
		}
	}
}

func TestResolveKeepsAsLongAsTheAnswerSays(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ttl     uint32
		minimum time.Duration
	}{{"not at all", 0, minKept}, {"two minutes", 120, 2 * time.Minute}, {"for ever", 1<<31 - 1, maxKept}, {"beyond RFC 2181", 1<<32 - 1, maxKept}} {
		t.Run(tt.name, func(t *testing.T) {
			r := resolverOf(t, newUpstream(t, func(a asked) {
				a.replyOwn(alias("a.example", "b.example", 1<<31-1), at("b.example", "8.8.8.8", tt.ttl))
			}))
			if got := outcome(r.Resolve(context.Background(), "a.example", false)); got != "8.8.8.8" {
				t.Fatal(got)
			}
			if left := time.Until(r.kept["a.example"].until); left > tt.minimum || left < tt.minimum-5*time.Second {
				t.Errorf("kept for %v, want %v", left, tt.minimum)
			}
		})
	}
}

// Concurrent lookups of one name send one query; a caller that gives up does not
// cancel it for the others.
func TestResolveOnceForAll(t *testing.T) {
	answer := make(chan struct{})
	u := newUpstream(t, func(a asked) { <-answer; a.replyOwn(at("a.example", "8.8.8.8", 60)) })
	r := resolverOf(t, u)
	ctx, cancel := context.WithCancel(context.Background())
	var first, others sync.WaitGroup
	first.Go(func() {
		if _, err := r.Resolve(ctx, "a.example", false); !errors.Is(err, context.Canceled) {
			t.Errorf("who went away: %v", err)
		}
	})
	for u.counted("udp A a.example") == 0 {
		time.Sleep(time.Millisecond)
	}
	for range 50 {
		others.Go(func() {
			if got := outcome(r.Resolve(context.Background(), "A.example.", false)); got != "8.8.8.8" {
				t.Errorf("got %q", got)
			}
		})
	}
	cancel()
	first.Wait()
	close(answer)
	others.Wait()
	if n := u.counted("udp A a.example"); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

func TestResolveAsksTheNextServer(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	silent := newUpstream(t, func(asked) {})
	broken := newUpstream(t, func(a asked) { a.replyCode(dnsmessage.RCodeServerFailure) })
	good := newUpstream(t, func(a asked) { a.replyOwn(at("a.example", "8.8.8.8", 60)) })
	gone, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	nobody := &upstream{addr: gone.LocalAddr().(*net.UDPAddr).AddrPort()}
	gone.Close()
	for name, first := range map[string]*upstream{"silent": silent, "broken": broken, "nobody": nobody} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := resolverOf(t, first, good)
			if name == "silent" {
				r.patience.try = time.Second
			}
			if got := outcome(r.Resolve(context.Background(), "a.example", false)); got != "8.8.8.8" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestResolveHosts(t *testing.T) {
	u := newUpstream(t, func(a asked) { a.replyOwn(at(a.name, "8.8.8.8", 60)) })
	r, err := NewResolver(Upstream{Servers: []netip.AddrPort{u.addr}, Check: check, Hosts: map[string][]netip.Addr{
		"static.example":  {netip.MustParseAddr("2600::1"), netip.MustParseAddr("9.9.9.9")},
		"localhost":       {netip.MustParseAddr("127.0.0.1")},
		"nowhere.example": {},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"static.example": "9.9.9.9 2600::1", "STATIC.example.": "9.9.9.9 2600::1", "localhost": "refused loopback",
		"nowhere.example": "not found", "other.example": "8.8.8.8", "127.0.0.1": "failed",
	} {
		if got := outcome(r.Resolve(context.Background(), name, true)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if n := u.counted("udp A static.example"); n != 0 {
		t.Errorf("a static name was asked for %d times", n)
	}
}

// The cache stays bounded, and a name that was evicted is queried again.
func TestResolverIsBounded(t *testing.T) {
	r := resolverOf(t, newUpstream(t, func(asked) {}))
	for i := range 3 * MaxNames {
		r.cacheResult(fmt.Sprint("h", i, ".example"), lookupResult{until: time.Now().Add(time.Hour)})
	}
	if n := len(r.kept); n > MaxNames {
		t.Errorf("%d names are kept, at most %d", n, MaxNames)
	}
}

func TestNewResolverNeedsWhatItNeeds(t *testing.T) {
	server := netip.MustParseAddrPort("127.0.0.1:53")
	for name, u := range map[string]Upstream{
		"no check":       {Servers: []netip.AddrPort{server}},
		"no server":      {Check: check},
		"invalid server": {Check: check, Servers: []netip.AddrPort{{}}},
		"no port":        {Check: check, Servers: []netip.AddrPort{netip.AddrPortFrom(server.Addr(), 0)}},
	} {
		if _, err := NewResolver(u); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
