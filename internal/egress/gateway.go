// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/egress/confine"
	"github.com/fumehood/fumehood/internal/egress/netns"
	"github.com/fumehood/fumehood/internal/egress/upstream"
	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options configure a gateway: who decides, who receives the events, and what the process
// is given.
type Options struct {
	// Decide returns policy's answer. It is required and called from several goroutines
	// at a time. An error ends the gateway: nothing leaves without a decision. An Allow about
	// a lookup, connect or hello applies to the same question until the command's End, and
	// Decide is not called for it again: it must not depend on time or on earlier calls. Every
	// refusal, request and datagram is asked about.
	Decide func(context.Context, proposal.Egress) (proposal.EgressDecision, error)
	// ObserveUnsafe enforces nothing of what Decide answers, except for a Firm denial: lookups
	// and connections to public addresses are allowed on any port, unintercepted, and recorded with
	// proposal.VerdictObserved. Private addresses, those of this host and datagrams are refused as
	// always. Credentials must then be empty, since nothing could add them, and so must Proxies,
	// which would choose the addresses.
	ObserveUnsafe bool
	// AnswerWithin bounds Decide; it must be positive.
	AnswerWithin time.Duration
	// Event receives the outcome of each lookup, connection, request and datagram, one at
	// a time. It may be nil.
	Event func(proposal.Event)
	// Events limits how many of them one command may cause; it must be positive.
	Events int
	// Fail is called once, from a new goroutine, when the gateway has failed; by then
	// nothing leaves any more. Close is not a failure.
	Fail func(error)
	// Registries returns the names of the registries that a request belongs to, among
	// those that the host's tools use. Only those granted to the command are kept. nil
	// knows none.
	Registries func(name string, port int, path string) []string
	// Resolvers are queried in order for names that are not in Hosts; at least one is
	// required.
	Resolvers []netip.AddrPort
	Hosts     map[string][]netip.Addr
	// Own are addresses that are never connected to, in addition to the host's own.
	Own []netip.Prefix
	// Roots are PEM certificates that authenticate servers whose TLS is intercepted; ""
	// means the host's.
	Roots       string
	Credentials []wire.Credential
	// Proxies are those that the host's network requires, resolved. With any, Resolvers may be
	// empty.
	Proxies upstream.Config
	// Patience is how long the gateway's process may be silent; 0 means 30 seconds. A
	// process that ended is noticed at once; the allowance is for busy hosts.
	Patience time.Duration
	// Argv starts a program that calls Main as the gateway's process; nil means this
	// program's own gateway command.
	Argv []string
}

const (
	defaultPatience = 30 * time.Second
	// startGrace is how long the process may take to become ready.
	startGrace = 2 * time.Minute
)

// A Gateway is the only way out of one sandbox.
type Gateway struct {
	o       Options
	ns      *netns.Namespace
	conn    net.Conn
	process *confine.Process
	ca      []byte

	hello  chan string   // receives the certificate, once
	failed chan struct{} // closed: see Err
	done   chan struct{} // closed: nothing more is read or reported
	once   sync.Once
	err    error

	ctx    context.Context // for decisions under way; it ends with failed
	cancel context.CancelFunc
	asks   chan struct{} // one for each open question

	// Only the reader uses it.
	sequence uint64
	heard    bool // Hello was received

	mu      sync.Mutex
	command *command
	orders  uint64
	waiting map[uint64]chan wire.Done
}

// A command holds what is asked and reported while it runs.
type command struct {
	id     string
	phase  string
	grants []string
	events int
}

// Path returns the path of the sandbox's network namespace for its OCI spec. It is valid
// until Close.
func (g *Gateway) Path() string { return g.ns.Path() }

// Restore makes the namespace ready for another sandbox: each takes its addresses, and the one before
// must have ended.
func (g *Gateway) Restore() error { return g.ns.Restore() }

// CACertificate returns the certificate of the run's own authority, as PEM. The sandbox must trust
// it where TLS is intercepted. Its key is only in the gateway's process.
func (g *Gateway) CACertificate() []byte { return g.ca }

// Failed is closed when the gateway has ended or is no longer trusted.
func (g *Gateway) Failed() <-chan struct{} { return g.failed }

// Err returns why Failed was closed: a *proposal.StopError.
func (g *Gateway) Err() error {
	select {
	case <-g.failed:
		return g.err
	default:
		return nil
	}
}

// Begin enables the link for the command with this ID and the hosts in its grant. Before Begin and
// after End nothing on the link is answered.
func (g *Gateway) Begin(ctx context.Context, id string, grant proposal.Grant) error {
	g.mu.Lock()
	busy := g.command != nil
	if !busy {
		g.command = &command{id: id, phase: grant.Phase, grants: grant.Network}
	}
	g.mu.Unlock()
	if busy {
		return g.fail("gateway.protocol", "a command began before the previous one ended", nil)
	}
	return g.sendOrder(ctx, wire.KindBegin, &wire.Begin{})
}

// End cuts every connection of the command and returns when all its events have been
// reported. The addresses of names that it looked up become invalid.
func (g *Gateway) End() error {
	err := g.sendOrder(context.Background(), wire.KindEnd, &wire.End{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.command = nil
	return err
}

// Close ends the gateway and waits until its process is gone. It may be called more than
// once.
func (g *Gateway) Close() error {
	g.once.Do(func() { g.stopProcess(&proposal.StopError{Code: "gateway.gone", Message: "the gateway was closed"}) })
	<-g.done
	return g.ns.Close()
}

// fail ends the gateway permanently, unless it has already ended, and returns why it
// ended.
func (g *Gateway) fail(code, message string, cause error) error {
	return g.failWith(&proposal.StopError{Code: code, Message: message, Hint: hints[code], Err: cause})
}

func (g *Gateway) failWith(err error) error {
	g.once.Do(func() {
		g.stopProcess(err)
		if g.o.Fail != nil {
			go g.o.Fail(err)
		}
	})
	return g.err
}

// stopProcess kills the process first, because it holds the link.
func (g *Gateway) stopProcess(err error) {
	g.process.Kill()
	g.err = err
	close(g.failed)
	g.cancel()
	_ = g.conn.Close()
}

var hints = map[string]string{
	"gateway.start":    "run fumehood doctor, which shows what this host lacks",
	"gateway.gone":     "check whether the host has free memory; if it has, report this with the text above",
	"gateway.slow":     "run less at once on this host, or use one with more processors; if no decision came, shorten the rules of fumehood.egress that the policy has",
	"gateway.protocol": "report this: the gateway's process may have been taken over",
	"gateway.flood":    "let the command make fewer connections, or split it",
	"gateway.policy":   "check the rules of fumehood.egress with fumehood policy test",
}

// processError returns how the process ended, which explains more than that it was silent.
func (g *Gateway) processError() error {
	select {
	case <-g.process.Done():
	case <-time.After(min(g.o.Patience, 5*time.Second)):
	}
	return g.process.ExitError()
}
