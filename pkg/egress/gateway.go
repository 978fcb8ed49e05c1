// SPDX-License-Identifier: Apache-2.0

//go:build linux

package egress

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/egress/confine"
	"github.com/fumehood/fumehood/pkg/egress/netns"
	"github.com/fumehood/fumehood/pkg/egress/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options say who decides, who is told, and what the gateway is given.
type Options struct {
	// Decide is policy's answer. It is required, and called from several goroutines at a
	// time. An error ends the gateway: nothing leaves that nobody decided about.
	Decide func(context.Context, proposal.Egress) (proposal.EgressDecision, error)
	// AnswerWithin bounds Decide; it must be positive.
	AnswerWithin time.Duration
	// Event is told what became of each lookup, connection, request and datagram, one
	// at a time. nil is told nothing.
	Event func(proposal.Event)
	// Events is how many of them one command may cause; it must be positive.
	Events int
	// Fail is called once, from a goroutine of its own, when the gateway has failed; by
	// then nothing leaves any more. Close is no failure.
	Fail func(error)
	// Registries names the registries that a request belongs to, of those the host's
	// tools use; of a command only those that it was granted are kept. nil knows none.
	Registries func(name string, port int, path string) []string
	// Resolvers are asked for names, in order, but for those in Hosts; there must be one.
	Resolvers []netip.AddrPort
	Hosts     map[string][]netip.Addr
	// Own are addresses that are never connected to, beside the host's own.
	Own []netip.Prefix
	// Roots are PEM certificates for servers whose TLS is intercepted; "" is the host's.
	Roots       string
	Credentials []wire.Credential
	// Patience is how long the gateway's process may be silent; 0 is half a minute. A
	// process that is gone is noticed at once, and a busy host makes it slow.
	Patience time.Duration
	// Argv starts the gateway's process, by a call of Main; nil is this program's own
	// door for it.
	Argv []string
}

const (
	defaultPatience = 30 * time.Second
	// startGrace is how long the process may take until it is in force.
	startGrace = 2 * time.Minute
)

// A Gateway is the only way out of one sandbox.
type Gateway struct {
	o       Options
	ns      *netns.Namespace
	conn    *net.UnixConn
	process *confine.Process
	ca      []byte

	hello  chan string   // the certificate, once
	failed chan struct{} // closed: see Err
	done   chan struct{} // closed: nothing more is read or told
	once   sync.Once
	err    error

	ctx    context.Context // of what is being decided; it ends with failed
	cancel context.CancelFunc
	asks   chan struct{} // one for each question that is open

	// The reader's alone.
	sequence uint64
	heard    bool // Hello

	mu      sync.Mutex
	command *command
	orders  uint64
	waiting map[uint64]chan wire.Done
}

// A command is what is asked and told while it runs.
type command struct {
	id     string
	phase  string
	grants []string
	events int
}

// Path names the sandbox's network namespace for its OCI spec, until Close.
func (g *Gateway) Path() string { return g.ns.Path() }

// CA returns the certificate of the run's own authority, as PEM: what the sandbox must
// trust where TLS is intercepted. Its key is in the gateway's process and nowhere else.
func (g *Gateway) CA() []byte { return g.ca }

// Failed is closed when the gateway has ended or is no longer believed.
func (g *Gateway) Failed() <-chan struct{} { return g.failed }

// Err says why Failed was closed: a *proposal.StopError.
func (g *Gateway) Err() error {
	select {
	case <-g.failed:
		return g.err
	default:
		return nil
	}
}

// Begin opens the wire for one command, for what its grant names. Until then, and
// after End, nothing is answered on it.
func (g *Gateway) Begin(ctx context.Context, x proposal.Execution) error {
	g.mu.Lock()
	busy := g.command != nil
	if !busy {
		g.command = &command{id: x.ID, phase: x.Grant.Phase, grants: x.Grant.Network}
	}
	g.mu.Unlock()
	if busy {
		return g.fail("gateway.protocol", "a command began before the one before it had ended", nil)
	}
	return g.order(ctx, wire.KindBegin, &wire.Begin{})
}

// End cuts every connection of the command, and returns when all that it did has been
// told. Names that it looked up stand for nothing afterwards.
func (g *Gateway) End() error {
	err := g.order(context.Background(), wire.KindEnd, &wire.End{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.command = nil
	return err
}

// Close ends the gateway and waits until its process is gone. It may be called again.
func (g *Gateway) Close() error {
	g.once.Do(func() { g.stop(&proposal.StopError{Code: "gateway.gone", Message: "the gateway was closed"}) })
	<-g.done
	return g.ns.Close()
}

// fail ends the gateway for good, unless it has ended, and returns why it did.
func (g *Gateway) fail(code, message string, cause error) error {
	return g.failWith(&proposal.StopError{Code: code, Message: message, Hint: hints[code], Err: cause})
}

func (g *Gateway) failWith(err error) error {
	g.once.Do(func() {
		g.stop(err)
		if g.o.Fail != nil {
			go g.o.Fail(err)
		}
	})
	return g.err
}

// stop kills the process first: it holds the wire.
func (g *Gateway) stop(err error) {
	g.process.Kill()
	g.err = err
	close(g.failed)
	g.cancel()
	_ = g.conn.Close()
}

var hints = map[string]string{
	"gateway.start":    "run fumehood doctor, which says what this host lacks",
	"gateway.gone":     "look whether the host has memory left; if it has, report this with the text above",
	"gateway.slow":     "look at what the policy does for each connection; a host without a free processor is slow too",
	"gateway.protocol": "report this: the gateway's process may have been taken over",
	"gateway.flood":    "let the command make fewer connections, or split it",
	"gateway.policy":   "look at the rules of fumehood.egress: fumehood policy test",
}

// ended says how the process ended, in place of what its silence looked like.
func (g *Gateway) ended() error {
	select {
	case <-g.process.Done():
	case <-time.After(min(g.o.Patience, 5*time.Second)):
	}
	return g.process.How()
}
