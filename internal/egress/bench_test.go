// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/egress/netns/netnstest"
)

// ways are the ways in which a client reaches port 7 outside: directly from the host,
// from the host through a small CONNECT proxy, and from the sandbox through the gateway.
func ways(b *testing.B) map[string]func() (net.Conn, error) {
	_, g, _ := open(b, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go proxy(l)
	found, err := g.lookup(b.Context(), "fat.example")
	if err != nil {
		b.Fatal(err)
	}
	const to = allowedAddr + ":7"
	return map[string]func() (net.Conn, error){
		"direct": func() (net.Conn, error) { return net.Dial("tcp", to) },
		"proxy": func() (net.Conn, error) {
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return nil, err
			}
			const ok = "HTTP/1.1 200 OK\r\n\r\n"
			fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
			_, err = io.ReadFull(conn, make([]byte, len(ok)))
			return conn, err
		},
		"gateway": resident(b, g, net.JoinHostPort(found[0], "7")),
	}
}

// resident returns a dialer on a thread that stays in the sandbox's namespace, because
// entering the namespace takes longer than connecting.
func resident(b *testing.B, g *Gateway, to string) func() (net.Conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	please, done := make(chan struct{}), make(chan dialed)
	b.Cleanup(func() { close(please) })
	go netnstest.RunInNamespace(g.inside(), func() error {
		for range please {
			conn, err := net.Dial("tcp", to)
			done <- dialed{conn, err}
		}
		return nil
	})
	return func() (net.Conn, error) {
		please <- struct{}{}
		d := <-done
		return d.conn, d.err
	}
}

var wayNames = []string{"direct", "proxy", "gateway"}

// BenchmarkStream reads one stream. The budget through the gateway is 400 MB/s.
func BenchmarkStream(b *testing.B) {
	dial := ways(b)
	for _, name := range wayNames {
		b.Run(name, func(b *testing.B) {
			conn, err := dial[name]()
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			_, _ = conn.Write([]byte("z"))
			const chunk = 64 << 20
			b.SetBytes(chunk)
			for b.Loop() {
				if _, err := io.CopyN(io.Discard, struct{ io.Reader }{conn}, chunk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkConnect opens a connection and has one byte echoed. The gateway may add a
// millisecond. It pauses between two connections so that closing one is not measured
// with the next.
func BenchmarkConnect(b *testing.B) {
	dial := ways(b)
	for _, name := range wayNames {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				conn, err := dial[name]()
				if err != nil {
					b.Fatal(err)
				}
				_, _ = conn.Write([]byte("ex"))
				if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
				conn.Close()
				time.Sleep(2 * time.Millisecond)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
			b.ReportMetric(float64(took[len(took)*9/10].Microseconds()), "µs-p90")
		})
	}
}

// memory returns a process's resident memory, in bytes.
func memory(tb testing.TB, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		tb.Fatal(err)
	}
	return kib * 1024
}

// BenchmarkOpen measures the memory that the gateway's process needs for a thousand open
// connections, each of which has carried some data.
func BenchmarkOpen(b *testing.B) {
	_, g, _ := open(b, nil)
	found, err := g.lookup(b.Context(), "fat.example")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		before := memory(b, g.process.Pid())
		conns := hold(b, g, net.JoinHostPort(found[0], "7"), 1000)
		after := memory(b, g.process.Pid())
		b.ReportMetric(before/1e6, "MB-idle")
		b.ReportMetric(after/1e6, "MB-1000-open")
		for _, c := range conns {
			c.Close()
		}
		if err := g.End(); err != nil {
			b.Fatal(err)
		}
		if err := g.Begin(b.Context(), "next", granted); err != nil {
			b.Fatal(err)
		}
		if found, err = g.lookup(b.Context(), "fat.example"); err != nil {
			b.Fatal(err)
		}
	}
}

// hold opens n connections, a few at a time, and has a chunk echoed on each.
func hold(b *testing.B, g *Gateway, to string, n int) []net.Conn {
	conns, few := make([]net.Conn, n), make(chan struct{}, 32)
	var all sync.WaitGroup
	for i := range conns {
		few <- struct{}{}
		all.Go(func() {
			defer func() { <-few }()
			conn, err := g.dialAddr(b.Context(), "tcp", to)
			if err != nil {
				b.Error(i, err)
				return
			}
			conns[i] = conn
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			chunk := make([]byte, 16<<10)
			chunk[0] = 'e'
			_, _ = conn.Write(chunk)
			if _, err := io.ReadFull(conn, chunk[1:]); err != nil {
				b.Error(i, err)
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return conns
}

// BenchmarkStart measures what a gateway adds to a run: network, process and confinement
// at the start, and the teardown, most of which the kernel spends on the network.
func BenchmarkStart(b *testing.B) {
	w, r := outside(b), &record{failed: make(chan error, 1)}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		g, err := Start(b.Context(), optionsFor(w, r))
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // the kernel is still removing the previous one
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[0].Microseconds()), "µs-start-least")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-start-p50")
}
