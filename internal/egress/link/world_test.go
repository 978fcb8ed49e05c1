// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/netns"
	"github.com/fumehood/fumehood/internal/egress/segment"
)

// A world is a network with a link at its other end, and that link's Handler.
type world struct {
	*Link
	space *netns.Namespace

	// admit decides; nil refuses everything.
	admit func(ctx context.Context, from, to netip.AddrPort) Session
	query func(ctx context.Context, protocol string, message []byte) []byte

	mu        sync.Mutex
	asked     []string
	datagrams []string
}

func (w *world) Admit(ctx context.Context, from, to netip.AddrPort) Session {
	w.mu.Lock()
	w.asked = append(w.asked, to.String())
	admit := w.admit
	w.mu.Unlock()
	if admit == nil {
		return nil
	}
	return admit(ctx, from, to)
}

func (w *world) Query(ctx context.Context, protocol string, message []byte) []byte {
	if w.query == nil {
		return nil
	}
	return w.query(ctx, protocol, message)
}

func (w *world) Datagram(protocol string, to netip.AddrPort) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.datagrams = append(w.datagrams, protocol+" "+to.String())
}

func (w *world) reported() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.datagrams)
}

func (w *world) askedFor() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// takeAsked returns askedFor and clears it.
func (w *world) takeAsked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// session is a Session made of two functions.
type session struct {
	serve   func(ctx context.Context, c Conn)
	abandon func()
}

func (s session) Serve(ctx context.Context, c Conn) { s.serve(ctx, c) }

func (s session) Abandon() {
	if s.abandon != nil {
		s.abandon()
	}
}

// newWorld makes a network and answers on it as w's fields specify.
func newWorld(t testing.TB, w *world, c Config) *world {
	t.Helper()
	n, err := netns.Make(netns.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	c.Segment = n.Segment
	link, err := New(n.Tap, c, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	if err := n.Tap.Close(); err != nil {
		t.Fatal(err)
	}
	w.Link, w.space = link, n
	return w
}

// inside calls f in a thread in the sandbox's network, where the host's kernel acts as
// the sandbox's.
func (w *world) inside(t testing.TB, f func() error) {
	t.Helper()
	if err := w.run(f); err != nil {
		t.Fatal(err)
	}
}

// run is inside for goroutines of a test.
func (w *world) run(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if unix.Gettid() != unix.Getpid() {
			done <- w.enter(f)
			return
		}
		done <- w.run(f) // the first thread cannot end; see netns
		runtime.UnlockOSThread()
	}()
	return <-done
}

func (w *world) enter(f func() error) error {
	if err := unix.Setns(int(w.space.File.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	return f()
}

// dial connects from inside.
func (w *world) dial(t testing.TB, network, address string) (c net.Conn, err error) {
	t.Helper()
	w.inside(t, func() error {
		c, err = (&net.Dialer{Timeout: time.Minute}).Dial(network, address)
		return nil
	})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func (w *world) mustDial(t testing.TB, network, address string) net.Conn {
	t.Helper()
	c, err := w.dial(t, network, address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answerAll answers every question.
func answerAll(context.Context, string, []byte) []byte { return []byte("answer") }

// waitForAnswer asks the gateway a question, which answerAll answers. Frames arrive in their order:
// what the link sent before has arrived too.
func waitForAnswer(t testing.TB, w *world) {
	t.Helper()
	c := w.mustDial(t, "udp", at(w.space.Segment.Gateway.V4, 53))
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, err := io.WriteString(c, "question")
	if err == nil {
		_, err = c.Read(make([]byte, 100))
	}
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
}

// isReadable reports whether data has arrived on c. It does not wait.
func isReadable(t testing.TB, c net.Conn) (readable bool) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
			readable = n > 0 && err == nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return readable
}

// isDialing reports whether the kernel inside has sent a SYN to a port that was not answered.
func isDialing(t testing.TB, w *world, port int) (dialing bool) {
	t.Helper()
	w.inside(t, func() error {
		table, err := os.ReadFile("/proc/thread-self/net/tcp")
		dialing = strings.Contains(string(table), fmt.Sprintf(":%04X 02 ", port)) // TCP_SYN_SENT
		return err
	})
	return dialing
}

// eventually waits until the condition holds; what describes it.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// pipe returns a link without a device: each write to peer arrives at the link as one
// frame, and vice versa.
func pipe(t testing.TB) (tap, peer *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20)
	}
	return os.NewFile(uintptr(fds[0]), "tap"), os.NewFile(uintptr(fds[1]), "peer")
}

// newPiped answers on a pipe.
func newPiped(t testing.TB, w *world, c Config) (*world, *os.File) {
	t.Helper()
	tap, peer := pipe(t)
	c.Segment = segment.Default()
	link, err := New(tap, c, w)
	if err != nil {
		t.Fatal(err)
	}
	tap.Close()
	t.Cleanup(func() { link.Close(); peer.Close() })
	w.Link = link
	return w, peer
}

// echo sends back what arrives, until its end.
func echo(ctx context.Context, c Conn) {
	b := make([]byte, 32<<10)
	for {
		n, err := c.Read(b)
		if _, werr := c.Write(b[:n]); werr != nil {
			return
		}
		if err != nil {
			_ = c.CloseWrite()
			return
		}
	}
}

func admitEcho(context.Context, netip.AddrPort, netip.AddrPort) Session {
	return session{serve: echo}
}

func at(a netip.Addr, port int) string { return net.JoinHostPort(a.String(), fmt.Sprint(port)) }
