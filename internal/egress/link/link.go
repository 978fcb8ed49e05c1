// SPDX-License-Identifier: Apache-2.0

// Package link is the gateway's end of a sandbox's network link: it turns the frames
// that a sandbox sends into connections and DNS queries.
//
// # What it guarantees
//
// Only frames that a plain host would send are processed: whole packets of IPv4 without
// options or IPv6 without extension headers, from the sandbox's own address. Everything
// else is dropped and counted: fragments, other ethertypes, ARP and neighbor discovery
// (both ends know each other), spoofed sources, source routes.
//
// The Handler decides each TCP connection before its handshake is answered, and each DNS
// query to the gateway's port 53. Every other datagram is reported and dropped: UDP is
// refused with an ICMP message so that its sender need not wait, ICMP gets no answer at
// all.
//
// Connections, handshakes in progress, queries and all memory that a sandbox can fill
// are bounded. This package never opens an outgoing connection.
//
// # What it does not guarantee
//
// It does not know which names, hosts or bytes are allowed. A sandbox can flood its own
// link; the excess is dropped.
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

	"github.com/fumehood/fumehood/internal/egress/segment"
)

// A Handler decides what a sandbox may do. Its methods are called from many goroutines
// at a time, and must not keep their arguments after they return.
type Handler interface {
	// Admit decides a TCP connection that the sandbox opens, before its handshake is
	// answered. It may take its time, for example to connect to the real host first; ctx
	// ends when the connection is cut. Nil refuses the connection with a reset.
	// Otherwise the handshake is answered, and the Session is then either served or
	// abandoned, once.
	Admit(ctx context.Context, from, to netip.AddrPort) Session
	// Query answers one DNS message, which arrived by "udp" or "tcp"; nil means no
	// answer. The handler must truncate an answer that is too long for a datagram, and
	// mark it as truncated.
	Query(ctx context.Context, protocol string, message []byte) []byte
	// Datagram reports a datagram, which never passes: "udp", "icmp", or "ip 132" for
	// other protocols, whose port is 0. It must not block. Of a flood only some are
	// reported.
	Datagram(protocol string, to netip.AddrPort)
}

// A Session is an admitted connection.
type Session interface {
	// Serve handles the connection, which is closed when it returns. conn has CloseRead
	// and CloseWrite, like a net.TCPConn (see Conn).
	Serve(ctx context.Context, conn Conn)
	// Abandon is called when the sandbox did not complete its handshake.
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
	Segment segment.Segment // the link's addresses; required
	// Connections is the maximum number open or being decided at a time; 0 means 1,024.
	// Any more are reset.
	Connections int
	// Deciding is the maximum number being decided at a time; 0 means 128. Beyond that,
	// the sandbox's kernel retries by itself.
	Deciding int
	// Queries is the maximum number of open queries; 0 means 64. Any more are dropped,
	// and the resolver in the sandbox retries.
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

// A Link is the running gateway end of one sandbox's network link.
type Link struct {
	config  Config
	handler Handler
	stack   *stack.Stack
	fd      int
	gate    *frameFilter
	wire    *linkEndpoint
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

// New starts to answer on a duplicate of tap. The caller may close tap.
func New(tap *os.File, c Config, h Handler) (*Link, error) {
	c = c.withDefaults()
	if err := c.Segment.Check(); err != nil {
		return nil, err
	}
	fd, err := duplicateDescriptor(tap)
	if err != nil {
		return nil, fmt.Errorf("cannot keep the wire: %v", err)
	}
	l := &Link{
		config: c, handler: h, fd: fd, epoch: newEpoch(),
		open:    make(chan struct{}, c.Connections),
		wide:    make(chan struct{}, wideConnections),
		queries: make(chan struct{}, c.Queries),
	}
	if err := l.startStack(); err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot start the network stack: %v", err)
	}
	return l, nil
}

// duplicateDescriptor copies f's descriptor without making it blocking, as f.Fd would.
func duplicateDescriptor(f *os.File) (int, error) {
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

// joinEpoch enters the current epoch; done leaves it.
func (l *Link) joinEpoch() (ctx context.Context, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.epoch
	e.work.Add(1)
	return e.ctx, e.work.Done
}

// CutConnections ends every connection, open or undecided, at once with a reset. Later ones are
// passed to the Handler as before. It returns when each Session has returned.
func (l *Link) CutConnections() {
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

// Close cuts everything and releases the link.
func (l *Link) Close() error {
	l.close.Do(func() {
		if l.gate != nil {
			l.gate.closeFilter()
		}
		if l.wire != nil {
			l.wire.stopReader()
		}
		if l.stack != nil {
			l.CutConnections()
			l.CutConnections() // anything that came in meanwhile finds the gate shut
			_ = l.stack.RemoveNIC(nic)
			l.stack.Destroy()
		}
		unix.Close(l.fd)
	})
	return nil
}
