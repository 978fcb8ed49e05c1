// SPDX-License-Identifier: Apache-2.0

//go:build linux

package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/fumehood/fumehood/pkg/egress/address"
	"github.com/fumehood/fumehood/pkg/egress/link"
	"github.com/fumehood/fumehood/pkg/egress/names"
	"github.com/fumehood/fumehood/pkg/egress/relay"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An attempt is one connection that a program opens, from its first packet to its end.
type attempt struct {
	way      *way
	span     *span
	began    time.Time
	to       netip.AddrPort // inside
	egress   proposal.Egress
	decision proposal.EgressDecision
	addrs    []netip.Addr
	upstream net.Conn
}

// Admit connects to what the program means before it lets it believe that it is
// connected: a host that cannot be reached is refused as a host would refuse.
func (w *way) Admit(ctx context.Context, _, to netip.AddrPort) link.Session {
	s := w.enter()
	if s == nil {
		return nil
	}
	a := &attempt{way: w, span: s, began: time.Now(), to: to}
	ctx, cancel := s.within(ctx)
	defer cancel()
	if code := a.admit(ctx); code != "" {
		a.tell(code)
		s.open.Done()
		return nil
	}
	return a
}

// admit returns why the connection is refused, or "".
func (a *attempt) admit(ctx context.Context) string {
	a.egress = proposal.Egress{Kind: proposal.EgressConnect, Address: a.to.Addr().String(), Port: int(a.to.Port()), Protocol: "tcp"}
	if code := a.locate(ctx); code != "" {
		return code
	}
	return a.connect(ctx)
}

// mostTries is how many addresses of a name are tried.
const mostTries = 4

// connect tries one address after another, each as policy says about it, until one
// answers. One that must not be connected to refuses all of them.
func (a *attempt) connect(ctx context.Context) string {
	code := "unreachable"
	for i, addr := range a.addrs[:min(len(a.addrs), mostTries)] {
		if i > 0 {
			a.egress.Address = addr.String()
		}
		d, err := a.way.control.ask(ctx, a.egress)
		if err != nil {
			return "cut"
		}
		if a.decision = d; d.Effect != proposal.Allow {
			return "policy"
		}
		if code = codeOf(ctx, a.check()); code != "" {
			return code
		}
		a.upstream, err = a.way.dialer.Dial(ctx, []netip.Addr{addr}, a.to.Port(), d.Private)
		if code = codeOf(ctx, err); code != "unreachable" {
			return code
		}
	}
	return code
}

// check checks all addresses, those that are not tried as well.
func (a *attempt) check() error {
	for _, addr := range a.addrs {
		if err := a.way.dialer.Check(addr, a.decision.Private); err != nil {
			return err
		}
	}
	return nil
}

// locate finds the addresses of the name that the program means. Whether a private one
// may be connected to is judged when policy has said so, by check.
func (a *attempt) locate(ctx context.Context) string {
	name, ok := a.way.pool.Name(a.to.Addr())
	switch {
	case !ok && a.way.pool.Synthetic(a.to.Addr()):
		return "address" // it stands for nothing
	case !ok:
		a.addrs = []netip.Addr{a.to.Addr()}
		return ""
	}
	a.egress.Name = name
	addrs, err := a.way.resolver.Resolve(ctx, name, true)
	if err != nil {
		return codeOf(ctx, err)
	}
	a.addrs, a.egress.Address = addrs, addrs[0].String()
	return ""
}

// codeOf is the Code of a Flow that came to nothing for err.
func codeOf(ctx context.Context, err error) string {
	var refused *address.Refused
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return "address"
	case ctx.Err() != nil:
		return "cut"
	case errors.Is(err, names.ErrNotFound):
		return "unresolved"
	}
	return "unreachable"
}

// Serve relays what was admitted.
func (a *attempt) Serve(ctx context.Context, client link.Conn) {
	defer a.span.open.Done()
	ctx, cancel := a.span.within(ctx)
	defer cancel()
	if to, ok := a.upstream.RemoteAddr().(*net.TCPAddr); ok {
		a.egress.Address = to.AddrPort().Addr().Unmap().String()
	}
	t := relay.Target{Egress: a.egress, Inside: a.inside(), Upstream: a.upstream, Dial: a.again()}
	a.way.relay.Serve(ctx, client, t, a.decision)
}

// again returns what connects to the very address that the first connection is to.
func (a *attempt) again() func(context.Context) (net.Conn, error) {
	addr, err := netip.ParseAddr(a.egress.Address)
	return func(ctx context.Context) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		return a.way.dialer.Dial(ctx, []netip.Addr{addr}, a.to.Port(), a.decision.Private)
	}
}

// Abandon is called when the program did not wait for what it asked for.
func (a *attempt) Abandon() {
	defer a.span.open.Done()
	a.upstream.Close()
	a.tell("closed")
}

func (a *attempt) tell(code string) {
	a.way.control.tell(proposal.Flow{Egress: a.egress, Decision: a.decision, Code: code, Inside: a.inside(),
		WallMS: time.Since(a.began).Milliseconds()})
}

// inside is where the program connected to, if that stands for a name.
func (a *attempt) inside() string {
	if a.egress.Name == "" {
		return ""
	}
	return a.to.String()
}

func (w *way) tellDatagram(d datagram) {
	defer d.span.open.Done()
	answer, err := w.control.ask(d.span.ctx, d.egress)
	if err != nil || answer.Effect == proposal.Allow {
		answer = proposal.EgressDecision{Rules: []string{}} // nothing makes it pass
	}
	f := proposal.Flow{Egress: d.egress, Decision: answer, Code: "policy"}
	if d.egress.Name != "" {
		f.Inside = netip.AddrPortFrom(netip.MustParseAddr(d.egress.Address), uint16(d.egress.Port)).String()
	}
	w.control.tell(f)
}
