// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/fumehood/fumehood/internal/egress/address"
	"github.com/fumehood/fumehood/internal/egress/link"
	"github.com/fumehood/fumehood/internal/egress/names"
	"github.com/fumehood/fumehood/internal/egress/relay"
	"github.com/fumehood/fumehood/internal/egress/upstream"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An attempt is one connection that a program opens, from its first packet to its end.
type attempt struct {
	way      *gatewayServer
	span     *commandSpan
	began    time.Time
	to       netip.AddrPort // inside
	egress   proposal.Egress
	decision proposal.EgressDecision
	addrs    []netip.Addr
	proxy    *upstream.Proxy // nil for a direct connection
	upstream net.Conn
	status   int // the proxy's, where it refused
}

// Admit connects to the real host before the program sees its connection as
// established, so an unreachable host is refused as the host itself would refuse.
func (w *gatewayServer) Admit(ctx context.Context, _, to netip.AddrPort) link.Session {
	s := w.enterSpan()
	if s == nil {
		return nil
	}
	a := &attempt{way: w, span: s, began: time.Now(), to: to}
	ctx, cancel := s.withSpanContext(ctx)
	defer cancel()
	if code := a.admitConnection(ctx); code != "" {
		a.reportFlow(code)
		s.open.Done()
		return nil
	}
	return a
}

// admitConnection returns the reason to refuse the connection, or "".
func (a *attempt) admitConnection(ctx context.Context) string {
	a.egress = proposal.Egress{Kind: points.EgressConnect, Address: a.to.Addr().String(), Port: int(a.to.Port()),
		Protocol: "tcp"}
	if code := a.resolveName(ctx); code != "" {
		return code
	}
	if a.proxy != nil {
		return a.connectBy(ctx)
	}
	return a.connectUpstream(ctx)
}

// maxTries is the maximum number of a name's addresses that are tried.
const maxTries = 4

// connectUpstream tries the addresses in order, each only as policy permits it, until one
// answers. If any address must not be connected to, all are refused.
func (a *attempt) connectUpstream(ctx context.Context) string {
	code := "unreachable"
	for i, addr := range a.addrs[:min(len(a.addrs), maxTries)] {
		if i > 0 {
			a.egress.Address = addr.String()
		}
		if code = a.askPolicy(ctx); code != "" {
			return code
		}
		var err error
		a.upstream, err = a.way.dialer.Dial(ctx, []netip.Addr{addr}, a.to.Port(), a.decision.Private)
		if code = codeOf(ctx, err); code != "unreachable" {
			return code
		}
	}
	return code
}

// connectBy has the proxy connect, by name: which of its addresses the proxy then uses is not
// known. Every address that is known here must be allowed, and a name without any must be.
func (a *attempt) connectBy(ctx context.Context) string {
	if code := a.askPolicy(ctx); code != "" {
		return code
	}
	if len(a.addrs) == 0 && !a.decision.Unresolved {
		return "unresolved"
	}
	var err error
	a.upstream, err = a.redialFunc()(ctx)
	if err == nil {
		return ""
	}
	if ctx.Err() != nil {
		return names.CodeCut
	}
	a.recordDialError(err)
	return "upstream"
}

// recordDialError puts why the proxy did not connect into the record.
func (a *attempt) recordDialError(err error) {
	a.decision.Reason = &proposal.Reason{Rule: "egress.upstream", Effect: proposal.Deny, Message: err.Error(),
		Command: -1}
	if refused, ok := errors.AsType[*upstream.RefusedError](err); ok {
		a.status = refused.Status
	}
}

// askPolicy asks policy about the connection and checks its addresses. It returns the reason to
// refuse it, or "".
func (a *attempt) askPolicy(ctx context.Context) string {
	d, err := a.way.decideEgress(ctx, a.egress)
	if err != nil {
		return names.CodeCut
	}
	if a.decision = d; d.Effect != proposal.Allow {
		return "policy"
	}
	if a.way.proxies.Is(a.egress.Name, a.addrs, a.to.Port()) {
		return "address"
	}
	return codeOf(ctx, a.checkAddresses())
}

// checkAddresses checks all addresses, including those that are not tried.
func (a *attempt) checkAddresses() error {
	for _, addr := range a.addrs {
		if err := a.way.dialer.Check(addr, a.decision.Private); err != nil {
			return err
		}
	}
	return nil
}

// resolveName resolves the name that the program wants to reach. It does not judge private
// addresses: check does, once policy has answered.
func (a *attempt) resolveName(ctx context.Context) string {
	name, ok := a.way.pool.Name(a.to.Addr())
	switch {
	case !ok && a.way.pool.IsSynthetic(a.to.Addr()):
		return "address" // the address was not given to any name
	case !ok:
		a.addrs, a.proxy = []netip.Addr{a.to.Addr()}, a.way.proxies.ProxyFor(a.egress.Address, a.to.Port())
		return ""
	}
	a.egress.Name, a.egress.Address, a.proxy = name, "", a.way.proxies.ProxyFor(name, a.to.Port())
	addrs, err := a.way.resolver.Resolve(ctx, name, true)
	if err == nil {
		a.addrs, a.egress.Address = addrs, addrs[0].String()
		return ""
	}
	code := codeOf(ctx, err)
	if a.proxy != nil && (code == "unresolved" || code == "unreachable") {
		return "" // the proxy may know it
	}
	a.egress.Address = a.to.Addr().String()
	return code
}

// codeOf returns the Code of a Flow that failed with err.
func codeOf(ctx context.Context, err error) string {
	var refused *address.Refused
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return "address"
	case ctx.Err() != nil:
		return names.CodeCut
	case errors.Is(err, names.ErrNotFound):
		return "unresolved"
	}
	return "unreachable"
}

// Serve relays an admitted connection.
func (a *attempt) Serve(ctx context.Context, client link.Conn) {
	defer a.span.open.Done()
	ctx, cancel := a.span.withSpanContext(ctx)
	defer cancel()
	if to, ok := a.upstream.RemoteAddr().(*net.TCPAddr); ok && a.proxy == nil {
		a.egress.Address = to.AddrPort().Addr().Unmap().String()
	}
	t := relay.Target{Egress: a.egress, Inside: a.syntheticAddress(), Upstream: a.upstream, Dial: a.redialFunc()}
	a.way.relay.Serve(ctx, client, t, a.decision)
}

// redialFunc returns a dialer for exactly the address of the first connection, or for the same name
// through the same proxy.
func (a *attempt) redialFunc() func(context.Context) (net.Conn, error) {
	if a.proxy != nil {
		host := cmp.Or(a.egress.Name, a.egress.Address)
		return func(ctx context.Context) (net.Conn, error) {
			return a.way.proxies.Dial(ctx, a.proxy, host, a.to.Port())
		}
	}
	addr, err := netip.ParseAddr(a.egress.Address)
	return func(ctx context.Context) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		return a.way.dialer.Dial(ctx, []netip.Addr{addr}, a.to.Port(), a.decision.Private)
	}
}

// Abandon is called when the program stops waiting for the connection.
func (a *attempt) Abandon() {
	defer a.span.open.Done()
	a.upstream.Close()
	a.reportFlow("closed")
}

func (a *attempt) reportFlow(code string) {
	a.way.control.reportFlow(proposal.Flow{Egress: a.egress, Decision: a.decision, Code: code,
		Inside: a.syntheticAddress(), Status: a.status,
		WallMS: time.Since(a.began).Milliseconds()})
}

// syntheticAddress returns the address the program connected to if a name was given it, or "".
func (a *attempt) syntheticAddress() string {
	if a.egress.Name == "" {
		return ""
	}
	return a.to.String()
}

// datagramAnswer is how long the record of a datagram waits for policy's answer, even if its
// command ends meanwhile: a program that is refused may end at once.
const datagramAnswer = 2 * time.Second

func (w *gatewayServer) tellDatagram(d datagram) {
	defer d.span.open.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.span.ctx), datagramAnswer)
	defer cancel()
	answer, err := w.control.askSupervisor(ctx, d.egress)
	if err != nil || answer.Effect == proposal.Allow {
		answer = proposal.EgressDecision{Rules: []string{}} // it never passes
	}
	f := proposal.Flow{Egress: d.egress, Decision: answer, Code: "policy"}
	if d.egress.Name != "" {
		f.Inside = netip.AddrPortFrom(netip.MustParseAddr(d.egress.Address), uint16(d.egress.Port)).String()
	}
	w.control.reportFlow(f)
}
