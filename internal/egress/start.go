// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/address"
	"github.com/fumehood/fumehood/internal/egress/confine"
	"github.com/fumehood/fumehood/internal/egress/netns"
	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// DoorName is the argument that starts this program as a gateway's process; the program
// then calls Main.
const DoorName = "gateway"

// Start makes the sandbox's network and starts the gateway's process at its other end.
// It returns when the process is confined and ready, or with a *proposal.StopError.
func Start(ctx context.Context, o Options) (*Gateway, error) {
	if o.Decide == nil || o.AnswerWithin <= 0 || o.Events <= 0 ||
		o.ObserveUnsafe && len(o.Credentials)+len(o.Proxies.Proxies()) > 0 {
		return nil, startError("the gateway's options are incomplete or contradict each other", nil)
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if len(o.Argv) == 0 {
		o.Argv = []string{"/proc/self/exe", DoorName}
	}
	ns, err := netns.Make(netns.Config{})
	if err != nil {
		return nil, err
	}
	g, err := startGateway(o, ns)
	if err != nil {
		ns.Close()
		return nil, err
	}
	if err := g.waitForHello(ctx); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

func startError(message string, err error) error {
	return &proposal.StopError{Code: "gateway.start", Message: message, Hint: hints["gateway.start"], Err: err}
}

func startGateway(o Options, ns *netns.Namespace) (*Gateway, error) {
	setup, err := setupOf(o, ns.Segment)
	if err != nil {
		return nil, startError("cannot set up the gateway", err)
	}
	conn, theirs, err := controlSocketPair()
	if err != nil {
		return nil, startError("cannot connect to the gateway", err)
	}
	defer theirs.Close()
	p, err := confine.Start(o.Argv, setup, theirs, ns.Tap)
	if err != nil {
		conn.Close()
		return nil, startError("cannot start the gateway's process", err)
	}
	ns.Tap.Close() // only the process keeps it
	return newGateway(o, ns, conn, p), nil
}

// newGateway returns the Gateway of a process at the other end of conn.
func newGateway(o Options, ns *netns.Namespace, conn net.Conn, p *confine.Process) *Gateway {
	g := &Gateway{o: o, ns: ns, conn: conn, process: p, hello: make(chan string, 1), failed: make(chan struct{}),
		done: make(chan struct{}), asks: make(chan struct{}, wire.MaxAsks), waiting: map[uint64]chan wire.Done{}}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	go g.readMessages()
	go g.sendPings()
	return g
}

func setupOf(o Options, s segment.Segment) ([]byte, error) {
	own, err := address.HostPrefixes()
	if err != nil {
		return nil, err
	}
	return wire.EncodeSetup(wire.Setup{Segment: s, Resolvers: o.Resolvers, Hosts: o.Hosts, Own: append(own, o.Own...),
		Roots: o.Roots, Credentials: o.Credentials, Proxies: o.Proxies})
}

// controlSocketPair returns both ends of the control socket.
func controlSocketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	conn, err := connOf(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// connOf takes ownership of f.
func connOf(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	control, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, errors.New("not a unix socket")
	}
	return control, nil
}

// waitForHello waits until the process is ready.
func (g *Gateway) waitForHello(ctx context.Context) error {
	select {
	case ca := <-g.hello:
		g.ca = []byte(ca)
		return nil
	case <-g.failed:
		return startError("the gateway's process ended before its greeting", g.err)
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(startGrace):
		return startError("the gateway's process did not send its greeting in time", nil)
	}
}
