// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

const chunk = 1 << 20

// source sends the requested number of bytes; sink reads everything.
func source(_ context.Context, c Conn) {
	b := make([]byte, chunk)
	for {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

func sink(_ context.Context, c Conn) {
	b := make([]byte, chunk)
	for {
		if _, err := c.Read(b); err != nil {
			return
		}
	}
}

// BenchmarkStream compares one stream through the link with one over loopback.
func BenchmarkStream(b *testing.B) {
	for _, way := range []struct {
		name  string
		serve func(context.Context, Conn)
		step  func(net.Conn, []byte) error
	}{
		{"download", source, func(c net.Conn, p []byte) error { _, err := io.ReadFull(c, p); return err }},
		{"upload", sink, func(c net.Conn, p []byte) error { _, err := c.Write(p); return err }},
	} {
		stream := func(b *testing.B, c net.Conn) {
			p := make([]byte, chunk)
			b.SetBytes(chunk)
			for b.Loop() {
				if err := way.step(c, p); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(way.name+"/link", func(b *testing.B) {
			w := newWorld(b, &world{admit: func(context.Context, netip.AddrPort, netip.AddrPort) Session {
				return session{serve: way.serve}
			}}, Config{})
			stream(b, w.mustDial(b, "tcp", "198.18.0.77:443"))
		})
		b.Run(way.name+"/loopback", func(b *testing.B) { stream(b, loopback(b, way.serve)) })
	}
}

// loopback returns a connection to a server of this process.
func loopback(b testing.TB, serve func(context.Context, Conn)) net.Conn {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { serve(context.Background(), c.(*net.TCPConn)); c.Close() }()
		}
	}()
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// BenchmarkConnect opens a connection, sends one byte each way and closes it.
func BenchmarkConnect(b *testing.B) {
	once := func(c net.Conn, err error) error {
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 1))
		return err
	}
	b.Run("link", func(b *testing.B) {
		w := newWorld(b, &world{admit: admitEcho}, Config{})
		w.inside(b, func() error {
			for b.Loop() {
				if err := once(net.Dial("tcp", "198.18.0.77:443")); err != nil {
					return err
				}
			}
			return nil
		})
	})
	b.Run("loopback", func(b *testing.B) {
		address := loopback(b, echo).RemoteAddr().String()
		for b.Loop() {
			if err := once(net.Dial("tcp", address)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// resident returns this process's resident memory.
func resident(t testing.TB) int {
	t.Helper()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal(errors.New("no VmRSS"))
	return 0
}

// A thousand open connections (fewer without the tag nightly), then all filled with unread bytes, stay
// within the documented bounds.
func TestManyConnectionsStayBounded(t *testing.T) {
	lanetest.SkipShort(t)
	many := sample.Rounds(t, 1000, 300, 100)
	stuck, answer := make(chan struct{}), make([]byte, 8<<20)
	w := newWorld(t, &world{admit: func(context.Context, netip.AddrPort, netip.AddrPort) Session {
		return session{serve: func(ctx context.Context, c Conn) {
			select {
			case <-stuck:
			case <-ctx.Done():
				return
			}
			// Neither side reads: both buffers of the link fill.
			_, _ = c.Write(answer)
		}}
	}}, Config{})
	before := resident(t)
	connections := make([]net.Conn, 0, many)
	w.inside(t, func() error {
		for range many {
			c, err := net.Dial("tcp", "198.18.0.77:443")
			if err != nil {
				return err
			}
			// The kernel's share of the unread data is not measured.
			_ = c.(*net.TCPConn).SetReadBuffer(8 << 10)
			_ = c.(*net.TCPConn).SetWriteBuffer(8 << 10)
			connections = append(connections, c)
		}
		return nil
	})
	eventually(t, "all are open", func() bool { return w.Stats().Open == many })
	idle := resident(t) - before
	block := make([]byte, 1<<20)
	var group sync.WaitGroup
	for _, c := range connections {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		group.Go(func() {
			for err := error(nil); err == nil; {
				_, err = c.Write(block)
			}
		})
	}
	group.Wait()
	close(stuck)
	time.Sleep(time.Second)
	full := resident(t) - before
	t.Logf("%d connections: %d KiB each when idle, %d KiB each when stuffed", many, idle/many>>10, full/many>>10)
	if idle > many*raceFactor*(64<<10) {
		t.Errorf("%d MiB for %d idle connections", idle>>20, many)
	}
	if full > many*raceFactor*(512<<10) {
		t.Errorf("%d MiB for %d stuffed connections", full>>20, many)
	}
	w.CutConnections()
	for _, c := range connections {
		c.Close()
	}
	if open := w.Stats().Open; open != 0 {
		t.Errorf("%d are still open", open)
	}
}
