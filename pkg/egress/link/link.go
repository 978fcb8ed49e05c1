// SPDX-License-Identifier: Apache-2.0

// Package link is the gateway's end of the wire: it reads the frames that a sandbox
// sends, and makes connections and questions of them.
//
// # What it promises
//
// Only frames that a plain host would send are looked at: IPv4 without options and
// IPv6 without extension headers, whole, from the sandbox's own address. Everything else
// is dropped and counted: fragments, other ethertypes, ARP and neighbour discovery (both
// ends know each other), spoofed sources, source routes.
//
// Of those, TCP is put to the Handler one connection at a time, before the handshake is
// answered; questions to the gateway's port 53 are put to it one by one; every other
// datagram is told and goes nowhere: UDP is refused with an ICMP message so that its
// sender need not wait, ICMP gets no answer at all.
//
// Connections, handshakes under way, questions and all memory that a sandbox can fill
// are bounded. Nothing here connects to anything.
//
// # What it does not promise
//
// It does not know which names, hosts or bytes are allowed. A sandbox may flood its own
// wire; what it floods with is dropped.
package link

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/fumehood/fumehood/pkg/egress/segment"
)

// A Handler decides about what a sandbox tries. Its methods are called from many
// goroutines at a time, and must not keep what they are given beyond their return.
type Handler interface {
	// Admit is asked about a TCP connection that the sandbox opens, before its handshake
	// is answered. It may take its time, for example to connect to the real host first;
	// ctx ends when the connection is cut. Nil refuses it with a reset. Otherwise the
	// handshake is answered, and the Session is then either served or abandoned, once.
	Admit(ctx context.Context, from, to netip.AddrPort) Session
	// Query answers one DNS message, which came by "udp" or "tcp"; nil is no answer. An
	// answer that is longer than a datagram may be is cut and marked as truncated by the
	// handler.
	Query(ctx context.Context, protocol string, message []byte) []byte
	// Datagram is told of what is never let pass: "udp", "icmp", or "ip 132" for other
	// protocols, whose port is 0. It must not block. Of a flood only some are told.
	Datagram(protocol string, to netip.AddrPort)
}

// A Session is a connection that was admitted.
type Session interface {
	// Serve has the connection until it returns; then it is closed. conn has CloseRead
	// and CloseWrite, like a net.TCPConn (see Conn).
	Serve(ctx context.Context, conn Conn)
	// Abandon says that the sandbox did not complete its handshake.
	Abandon()
}

// A Conn is a connection whose peer is in the sandbox. LocalAddr is the address that
// the sandbox connected to.
type Conn interface {
	net.Conn
	CloseRead() error
	CloseWrite() error
}

// A Config bounds a Link.
type Config struct {
	Segment segment.Segment // the wire's addresses; required
	// Connections is how many may be open or being decided at a time; 0 is 1,024.
	// Beyond, they are reset.
	Connections int
	// Deciding is how many of them may be undecided; 0 is 128. Beyond, the sandbox's
	// kernel tries again by itself.
	Deciding int
	// Queries is how many questions may be open at a time; 0 is 64. Beyond, they are
	// dropped, and the resolver in the sandbox tries again.
	Queries int
}

func (c Config) withDefaults() Config {
	set := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	set(&c.Connections, 1024)
	set(&c.Deciding, 128)
	set(&c.Queries, 64)
	return c
}

// A Link is a running end of a wire.
type Link struct {
	config  Config
	handler Handler
	stack   *stack.Stack
	fd      int
	gate    *gate
	wire    *wire
	open    chan struct{} // a token for each connection
	wide    chan struct{} // a token for each connection with wide buffers
	queries chan struct{} // a token for each open question
	counts  counts

	mu    sync.Mutex
	epoch *epoch
	close sync.Once
}

// An epoch is the time between two cuts.
type epoch struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

func newEpoch() *epoch {
	ctx, cancel := context.WithCancel(context.Background())
	return &epoch{ctx: ctx, cancel: cancel}
}

// New starts answering on tap, of which it keeps a copy. The caller may close tap.
func New(tap *os.File, c Config, h Handler) (*Link, error) {
	c = c.withDefaults()
	if err := c.Segment.Check(); err != nil {
		return nil, err
	}
	fd, err := duplicate(tap)
	if err != nil {
		return nil, fmt.Errorf("cannot keep the wire: %v", err)
	}
	l := &Link{
		config: c, handler: h, fd: fd, epoch: newEpoch(),
		open:    make(chan struct{}, c.Connections),
		wide:    make(chan struct{}, wideConnections),
		queries: make(chan struct{}, c.Queries),
	}
	if err := l.start(); err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot start the network stack: %v", err)
	}
	return l, nil
}

// duplicate copies f's descriptor without making it block, as f.Fd would.
func duplicate(f *os.File) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var dupErr error
	err = raw.Control(func(old uintptr) {
		fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3)
	})
	if err != nil {
		return -1, err
	}
	return fd, dupErr
}

// join enters the present epoch; done leaves it.
func (l *Link) join() (ctx context.Context, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.epoch
	e.work.Add(1)
	return e.ctx, e.work.Done
}

// Cut ends every connection and every undecided one at once, with a reset. Later ones
// are put to the Handler as before. It returns when each Session has returned.
func (l *Link) Cut() {
	l.mu.Lock()
	old := l.epoch
	l.epoch = newEpoch()
	if l.gate.isShut() {
		l.epoch.cancel()
	}
	l.mu.Unlock()
	old.cancel()
	old.work.Wait()
}

// Close cuts everything and lets go of the wire.
func (l *Link) Close() error {
	l.close.Do(func() {
		if l.gate != nil {
			l.gate.shut()
		}
		if l.wire != nil {
			l.wire.end()
		}
		if l.stack != nil {
			l.Cut()
			l.Cut() // who came in meanwhile finds the gate shut
			_ = l.stack.RemoveNIC(nic)
			l.stack.Destroy()
		}
		unix.Close(l.fd)
	})
	return nil
}
