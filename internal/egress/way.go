// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/egress/address"
	"github.com/fumehood/fumehood/internal/egress/link"
	"github.com/fumehood/fumehood/internal/egress/names"
	"github.com/fumehood/fumehood/internal/egress/relay"
	"github.com/fumehood/fumehood/internal/egress/secrets"
	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/internal/egress/upstream"
	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// drainGrace is how long the end of a command waits for the connections it cut. It is
// less than the supervisor waits for the end.
const drainGrace = 30 * time.Second

// pendingDatagrams is the maximum number of datagrams that wait to be reported.
const pendingDatagrams = 64

// A way joins the parts of the gateway's process: it asks the supervisor about what
// arrives on the link, and relays what is allowed to the host of that name.
type way struct {
	segment  segment.Segment
	control  *control
	link     *link.Link
	pool     *names.Pool
	server   *names.Server
	resolver *names.Resolver
	dialer   *address.Dialer
	proxies  *upstream.Dialer
	relay    *relay.Relay

	datagrams chan datagram

	mu      sync.RWMutex
	current *span // nil between commands
}

// A span is the time in which one command runs. An event in it keeps it open until it is
// reported.
type span struct {
	ctx    context.Context
	cancel context.CancelFunc
	open   sync.WaitGroup

	answers answers
}

// A datagram keeps its span open until it is reported.
type datagram struct {
	egress proposal.Egress
	span   *span
}

func newWay(s wire.Setup, roots *x509.CertPool, ca *relay.CA, c *control) (*way, error) {
	w := &way{segment: s.Segment, control: c, pool: names.NewPool(s.Segment), dialer: address.NewDialer(s.Own),
		proxies: upstream.NewDialer(s.Proxies, roots), datagrams: make(chan datagram, pendingDatagrams)}
	var err error
	w.resolver, err = names.NewResolver(names.Upstream{Servers: s.Resolvers, Hosts: s.Hosts, Check: w.dialer.Check, Elsewhere: w.proxies.Used()})
	if err != nil {
		return nil, err
	}
	w.server, err = names.NewServer(names.Options{Pool: w.pool, Ask: w.ask, Find: w.resolver.Find, Elsewhere: w.proxies.Applies, Report: c.report})
	if err != nil {
		return nil, err
	}
	scanner, err := secrets.New()
	if err != nil {
		return nil, err
	}
	o := relay.Options{Ask: w.ask, Report: c.report, Roots: roots, CA: ca, Scan: scanner.Scan, Redact: scanner.Redact}
	for _, k := range s.Credentials {
		o.Credentials = append(o.Credentials, relay.Credential(k))
	}
	w.relay, err = relay.New(o)
	return w, err
}

// serve opens the link, greets the supervisor, and serves until the supervisor is gone.
func (w *way) serve(tap *os.File, ca string) error {
	l, err := link.New(tap, link.Config{Segment: w.segment}, w)
	if err != nil {
		return err
	}
	w.link = l
	tap.Close()
	if err := w.control.send(wire.KindHello, &wire.Hello{CA: ca}); err != nil {
		return err
	}
	go w.reportDatagrams()
	return w.control.serve(w.order)
}

func (w *way) order(kind wire.Kind) (wire.Done, error) {
	if kind == wire.KindBegin {
		return wire.Done{}, w.begin()
	}
	return w.end()
}

func (w *way) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil {
		return errors.New("a command began before the previous one ended")
	}
	s := &span{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	w.current = s
	return nil
}

// end returns when nothing of the command is left to ask or report.
func (w *way) end() (wire.Done, error) {
	w.mu.Lock()
	s := w.current
	w.current = nil
	w.mu.Unlock()
	if s == nil {
		return wire.Done{}, errors.New("no command has begun")
	}
	s.cancel()
	drained := make(chan struct{})
	go func() {
		w.link.Cut()
		s.open.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(drainGrace):
		return wire.Done{}, errors.New("a connection that was cut does not end")
	}
	w.pool.Forget()
	return wire.Done{Dropped: w.link.Stats().Odd}, nil
}

// enter returns the command's span, kept open, or nil when no command runs.
func (w *way) enter() *span {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.current != nil {
		w.current.open.Add(1)
	}
	return w.current
}

// within returns ctx, canceled by the end of s as well.
func (s *span) within(ctx context.Context) (context.Context, context.CancelFunc) {
	// A child of the span's context, so that it is canceled whenever the span is. Code
	// that reacts to its end may close the connection and checks which of the two
	// contexts ended.
	own, cancel := context.WithCancel(s.ctx)
	stop := context.AfterFunc(ctx, cancel)
	return own, func() { stop(); cancel() }
}

// Query answers a DNS query.
func (w *way) Query(ctx context.Context, _ string, message []byte) []byte {
	s := w.enter()
	if s == nil {
		return nil
	}
	defer s.open.Done()
	ctx, cancel := s.within(ctx)
	defer cancel()
	return w.server.Query(ctx, message)
}

// Datagram reports a datagram; datagrams never pass.
func (w *way) Datagram(protocol string, to netip.AddrPort) {
	s := w.enter()
	if s == nil {
		return
	}
	e := proposal.Egress{Kind: proposal.EgressDatagram, Address: to.Addr().String(), Port: int(to.Port()), Protocol: protocol}
	e.Name, _ = w.pool.Name(to.Addr())
	select {
	case w.datagrams <- datagram{e, s}:
	default:
		s.open.Done()
	}
}

// reportDatagrams asks policy for the rule to report, and refuses whatever policy answers.
func (w *way) reportDatagrams() {
	for d := range w.datagrams {
		w.tellDatagram(d)
	}
}
