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
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// drainGrace is how long the end of a command waits for the connections it cut. It is
// less than the supervisor waits for the end.
const drainGrace = 30 * time.Second

// pendingDatagrams is the maximum number of datagrams that wait to be reported.
const pendingDatagrams = 64

// A gatewayServer joins the parts of the gateway's process: it asks the supervisor about what
// arrives on the link, and relays what is allowed to the host of that name.
type gatewayServer struct {
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
	current *commandSpan // nil between commands
}

// A commandSpan is the time in which one command runs. An event in it keeps it open until it is
// reported.
type commandSpan struct {
	ctx    context.Context
	cancel context.CancelFunc
	open   sync.WaitGroup

	answers answerCache
}

// A datagram keeps its span open until it is reported.
type datagram struct {
	egress proposal.Egress
	span   *commandSpan
}

func newGatewayServer(s wire.Setup, roots *x509.CertPool, ca *relay.CA, c *control) (*gatewayServer, error) {
	w := &gatewayServer{segment: s.Segment, control: c, pool: names.NewPool(s.Segment),
		dialer:  address.NewDialer(s.Own),
		proxies: upstream.NewDialer(s.Proxies, roots), datagrams: make(chan datagram, pendingDatagrams)}
	var err error
	w.resolver, err = names.NewResolver(names.Upstream{Servers: s.Resolvers, Hosts: s.Hosts, Check: w.dialer.Check,
		Elsewhere: w.proxies.HasProxy()})
	if err != nil {
		return nil, err
	}
	w.server, err = names.NewServer(names.Options{Pool: w.pool, Ask: w.decideEgress, Find: w.resolver.Find,
		Elsewhere: w.proxies.UsesProxyFor, Report: c.reportFlow})
	if err != nil {
		return nil, err
	}
	scanner, err := secrets.New()
	if err != nil {
		return nil, err
	}
	o := relay.Options{Ask: w.decideEgress, Report: c.reportFlow, Roots: roots, CA: ca, Scan: scanner.Scan,
		Redact: scanner.Redact}
	for _, k := range s.Credentials {
		o.Credentials = append(o.Credentials, relay.Credential(k))
	}
	w.relay, err = relay.New(o)
	return w, err
}

// serve opens the link, greets the supervisor, and serves until the supervisor is gone.
func (w *gatewayServer) serve(tap *os.File, ca string) error {
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
	return w.control.serve(w.handleOrder)
}

func (w *gatewayServer) handleOrder(kind wire.Kind) (wire.Done, error) {
	if kind == wire.KindBegin {
		return wire.Done{}, w.beginCommand()
	}
	return w.endCommand()
}

func (w *gatewayServer) beginCommand() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil {
		return errors.New("a command began before the previous one ended")
	}
	s := &commandSpan{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	w.current = s
	return nil
}

// endCommand returns when nothing of the command is left to ask or report.
func (w *gatewayServer) endCommand() (wire.Done, error) {
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
		w.link.CutConnections()
		s.open.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(drainGrace):
		return wire.Done{}, errors.New("a connection that was cut does not end")
	}
	w.pool.ForgetAddresses()
	return wire.Done{Dropped: w.link.Stats().Odd}, nil
}

// enterSpan returns the command's span, kept open, or nil when no command runs.
func (w *gatewayServer) enterSpan() *commandSpan {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.current != nil {
		w.current.open.Add(1)
	}
	return w.current
}

// withSpanContext returns ctx, canceled by the end of s as well.
func (s *commandSpan) withSpanContext(ctx context.Context) (context.Context, context.CancelFunc) {
	// A child of the span's context, so that it is canceled whenever the span is. Code
	// that reacts to its end may close the connection and checks which of the two
	// contexts ended.
	own, cancel := context.WithCancel(s.ctx)
	stop := context.AfterFunc(ctx, cancel)
	return own, func() { stop(); cancel() }
}

// Query answers a DNS query.
func (w *gatewayServer) Query(ctx context.Context, _ string, message []byte) []byte {
	s := w.enterSpan()
	if s == nil {
		return nil
	}
	defer s.open.Done()
	ctx, cancel := s.withSpanContext(ctx)
	defer cancel()
	return w.server.Query(ctx, message)
}

// Datagram reports a datagram; datagrams never pass.
func (w *gatewayServer) Datagram(protocol string, to netip.AddrPort) {
	s := w.enterSpan()
	if s == nil {
		return
	}
	e := proposal.Egress{Kind: points.EgressDatagram, Address: to.Addr().String(), Port: int(to.Port()),
		Protocol: protocol}
	e.Name, _ = w.pool.Name(to.Addr())
	select {
	case w.datagrams <- datagram{e, s}:
	default:
		s.open.Done()
	}
}

// reportDatagrams asks policy for the rule to report, and refuses whatever policy answers.
func (w *gatewayServer) reportDatagrams() {
	for d := range w.datagrams {
		w.tellDatagram(d)
	}
}
