// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

var ways = []struct{ name, network, address string }{
	{"IPv4", "tcp4", "198.18.7.9:443"},
	{"IPv6", "tcp6", "[fd66:756d:6568::709]:443"},
	{"an address of no pool", "tcp4", "203.0.113.5:8443"},
	{"an IPv6 address of no pool", "tcp6", "[2001:db8::5]:8443"},
}

func TestAdmittedConnection(t *testing.T) {
	lanetest.SkipShort(t)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w := newWorld(t, &world{admit: func(_ context.Context, from, to netip.AddrPort) Session {
				return session{serve: func(ctx context.Context, c Conn) {
					if got := c.LocalAddr().String(); got != to.String() {
						t.Errorf("LocalAddr is %s, want %s", got, to)
					}
					if got := c.RemoteAddr().String(); got != from.String() {
						t.Errorf("RemoteAddr is %s, want %s", got, from)
					}
					echo(ctx, c)
				}}
			}}, Config{})
			c := w.mustDial(t, way.network, way.address)
			sent := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // more than all buffers
			go func() {
				_, _ = c.Write(sent)
				_ = c.(*net.TCPConn).CloseWrite()
			}()
			got, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, sent) {
				t.Errorf("%d bytes came back, want the %d that were sent", len(got), len(sent))
			}
			if asked := w.askedFor(); !slices.Equal(asked, []string{way.address}) {
				t.Errorf("asked for %q, want %q", asked, way.address)
			}
			eventually(t, "no connection is open", func() bool { return w.Stats().Open == 0 })
		})
	}
}

func TestRefusedConnectionFailsFast(t *testing.T) {
	w := newWorld(t, &world{}, Config{})
	for _, way := range ways {
		// A lost refusal, or none, would be retried until it times out.
		if _, err := w.dial(t, way.network, way.address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: dial says %v, want refused", way.name, err)
		}
	}
}

// Nothing of the handshake is answered while the Handler decides.
func TestUndecidedConnectionIsNotEstablished(t *testing.T) {
	decide := make(chan Session)
	w := newWorld(t, &world{admit: func(context.Context, netip.AddrPort, netip.AddrPort) Session { return <-decide }, query: answerAll}, Config{})
	var dialed atomic.Bool
	done := make(chan error, 1)
	go w.run(func() error {
		c, err := net.DialTimeout("tcp", "198.18.0.77:443", time.Minute)
		dialed.Store(true)
		if err == nil {
			c.Close()
		}
		done <- err
		return nil
	})
	eventually(t, "the handler is asked", func() bool { return len(w.askedFor()) == 1 })
	waitForAnswer(t, w)
	if dialed.Load() || !isDialing(t, w, 443) {
		t.Fatal("the connection is established before it was decided")
	}
	if open := w.Stats().Open; open != 1 {
		t.Errorf("%d connections are open or being decided, want 1", open)
	}
	decide <- session{serve: echo}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestHalfClose(t *testing.T) {
	got := make(chan string, 1)
	w := newWorld(t, &world{admit: func(context.Context, netip.AddrPort, netip.AddrPort) Session {
		return session{serve: func(_ context.Context, c Conn) {
			question, _ := io.ReadAll(c) // until the client closes
			got <- string(question)
			_, _ = io.WriteString(c, "answer")
		}}
	}}, Config{})
	c := w.mustDial(t, "tcp", "198.18.0.77:80")
	_, _ = io.WriteString(c, "question")
	_ = c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	if question := <-got; err != nil || string(answer) != "answer" || question != "question" {
		t.Errorf("question %q, answer %q, %v", question, answer, err)
	}
}

// What was written before the close arrives, however slowly it is read.
func TestCloseKeepsWhatWasWritten(t *testing.T) {
	lanetest.SkipShort(t)
	const size = 3 << 20
	w := newWorld(t, &world{admit: func(context.Context, netip.AddrPort, netip.AddrPort) Session {
		return session{serve: func(_ context.Context, c Conn) { _, _ = c.Write(make([]byte, size)) }}
	}}, Config{})
	c := w.mustDial(t, "tcp", "198.18.0.77:80")
	time.Sleep(300 * time.Millisecond)
	n, err := io.Copy(io.Discard, c)
	if n != size || err != nil {
		t.Errorf("%d bytes came, want %d: %v", n, size, err)
	}
}

func TestCut(t *testing.T) {
	ended, served := make(chan string, 3), make(chan string, 2)
	w := newWorld(t, &world{admit: func(ctx context.Context, _, to netip.AddrPort) Session {
		if to.Port() == 1 {
			<-ctx.Done() // undecided until it is cut
			ended <- "undecided"
			return nil
		}
		return session{serve: func(ctx context.Context, c Conn) {
			served <- "begun"
			if to.Port() == 3 {
				_, _ = io.Copy(c, zeros{}) // a blocked write
			} else {
				_, _ = c.Read(make([]byte, 1)) // a blocked read
			}
			ended <- "served"
		}}
	}}, Config{})
	reading, writing := w.mustDial(t, "tcp", "198.18.0.77:2"), w.mustDial(t, "tcp", "198.18.0.77:3")
	go w.run(func() error {
		if c, err := net.DialTimeout("tcp", "198.18.0.77:1", time.Minute); err == nil {
			c.Close()
			t.Error("an undecided connection was established by a cut")
		}
		return nil
	})
	// The sandbox's end is connected before the gateway has its answer: a cut in between abandons.
	eventually(t, "three connections", func() bool { return w.Stats().Open == 3 && len(served) == 2 })
	w.CutConnections()
	if len(ended) != 3 {
		t.Errorf("%d of 3 sessions have returned", len(ended))
	}
	for _, c := range []net.Conn{reading, writing} {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a cut connection says %v, want reset", err)
		}
	}
	// The next command's connections work as before.
	w.mu.Lock()
	w.admit = admitEcho
	w.mu.Unlock()
	c := w.mustDial(t, "tcp", "198.18.0.77:4")
	if _, err := io.WriteString(c, "x"); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Errorf("after a cut: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestCloseEndsEverything(t *testing.T) {
	w := newWorld(t, &world{admit: admitEcho}, Config{})
	c := w.mustDial(t, "tcp", "198.18.0.77:2")
	_, _ = io.WriteString(c, "x")
	_, _ = io.ReadFull(c, make([]byte, 1))
	done := make(chan struct{})
	go func() { w.Close(); w.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("Close does not return")
	}
	if open := w.Stats().Open; open != 0 || isReadable(t, c) {
		t.Errorf("%d connections outlive their link", open)
	}
	w.inside(t, func() error {
		if _, err := net.InterfaceByName("eth0"); err == nil {
			t.Error("the device outlives the link")
		}
		return nil
	})
}

// A handshake in progress delays neither the close nor a cut.
func TestHalfOpenConnectionEnds(t *testing.T) {
	abandoned := make(chan struct{}, 2)
	w, peer := newPiped(t, &world{admit: func(context.Context, netip.AddrPort, netip.AddrPort) Session {
		return session{abandon: func() { abandoned <- struct{}{} }}
	}}, Config{})
	for _, end := range []func(){w.CutConnections, func() { w.Close() }} {
		if _, err := peer.Write(syn(w.Link)); err != nil {
			t.Fatal(err)
		}
		for reply := make([]byte, 200); reply[14+20+13] != byte(header.TCPFlagSyn|header.TCPFlagAck); {
			if !receives(peer, reply) {
				t.Fatal("no answer to a handshake")
			}
		}
		end()
		if len(abandoned) != 1 {
			t.Fatalf("%d sessions were abandoned, want 1", len(abandoned))
		}
		<-abandoned
	}
}

// A session that is blocked in a read notices its own close.
func TestConnCloseWakesReader(t *testing.T) {
	woken := make(chan error, 1)
	w := newWorld(t, &world{admit: func(context.Context, netip.AddrPort, netip.AddrPort) Session {
		return session{serve: func(_ context.Context, c Conn) {
			go func() { time.Sleep(10 * time.Millisecond); c.Close() }()
			_, err := c.Read(make([]byte, 1))
			woken <- err
		}}
	}}, Config{})
	w.mustDial(t, "tcp", "198.18.0.77:2")
	select {
	case err := <-woken:
		if err == nil {
			t.Error("the read says nothing of the close")
		}
	case <-time.After(time.Minute):
		t.Error("the read waits for ever")
	}
}

func TestTooManyConnectionsAreReset(t *testing.T) {
	w := newWorld(t, &world{admit: admitEcho}, Config{Connections: 3})
	for range 3 {
		w.mustDial(t, "tcp", "198.18.0.77:2")
	}
	if _, err := w.dial(t, "tcp", "198.18.0.77:2"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("one too many says %v, want refused", err)
	}
	if busy := w.Stats().Busy; busy != 1 {
		t.Errorf("%d were refused for being too many, want 1", busy)
	}
}

func TestUndecidedConnectionsAreBounded(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, &world{admit: func(context.Context, netip.AddrPort, netip.AddrPort) Session {
		<-release
		return nil
	}}, Config{Deciding: 4})
	ctx, cancel := context.WithCancel(t.Context())
	before := w.Stats().Frames
	var group sync.WaitGroup
	for range 12 {
		group.Go(func() {
			_ = w.run(func() error {
				_, _ = (&net.Dialer{}).DialContext(ctx, "tcp", "198.18.0.77:2")
				return nil
			})
		})
	}
	eventually(t, "all have come, and four are put to the handler", func() bool {
		return w.Stats().Frames-before >= 12 && len(w.askedFor()) >= 4
	})
	cancel()
	group.Wait()
	if n := len(w.askedFor()); n != 4 {
		t.Errorf("%d were put to the handler at a time, want 4", n)
	}
	close(release)
}

// A sandbox that abandons its handshake leaves no connection, and its session is
// notified.
func TestAbandonedHandshake(t *testing.T) {
	abandoned := make(chan bool, 1)
	decide := make(chan bool)
	w := newWorld(t, &world{admit: func(context.Context, netip.AddrPort, netip.AddrPort) Session {
		<-decide
		return session{serve: func(context.Context, Conn) { abandoned <- false }, abandon: func() { abandoned <- true }}
	}}, Config{})
	w.inside(t, func() error {
		_, err := net.DialTimeout("tcp", "198.18.0.77:2", 100*time.Millisecond)
		if err == nil {
			t.Error("established before it was decided")
		}
		return nil
	})
	close(decide)
	if !<-abandoned {
		t.Error("an abandoned connection was served")
	}
	eventually(t, "no connection is open", func() bool { return w.Stats().Open == 0 })
}

func TestQueries(t *testing.T) {
	w := newWorld(t, &world{query: func(_ context.Context, protocol string, message []byte) []byte {
		return []byte(protocol + " " + string(message))
	}}, Config{})
	for _, gateway := range []netip.Addr{w.space.Segment.Gateway.V4, w.space.Segment.Gateway.V6} {
		c := w.mustDial(t, "udp", at(gateway, 53))
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c, "question")
		b := make([]byte, 100)
		n, err := c.Read(b)
		if got := string(b[:n]); got != "udp question" {
			t.Errorf("%s over UDP says %q, %v", gateway, got, err)
		}
		stream := w.mustDial(t, "tcp", at(gateway, 53))
		_ = stream.SetDeadline(time.Now().Add(time.Minute))
		for _, q := range []string{"first", "second"} {
			_, _ = stream.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...))
			var length [2]byte
			_, _ = io.ReadFull(stream, length[:])
			b := make([]byte, binary.BigEndian.Uint16(length[:]))
			_, err := io.ReadFull(stream, b)
			if got := string(b); got != "tcp "+q {
				t.Errorf("%s over TCP says %q, %v", gateway, got, err)
			}
		}
	}
	if asked := w.askedFor(); len(asked) > 0 {
		t.Errorf("questions were put as connections: %q", asked)
	}
}

func TestQueriesAreBounded(t *testing.T) {
	var limit, now atomic.Int32
	release := make(chan struct{})
	w := newWorld(t, &world{query: func(ctx context.Context, _ string, _ []byte) []byte {
		n := now.Add(1)
		for old := limit.Load(); n > old && !limit.CompareAndSwap(old, n); old = limit.Load() {
		}
		<-release
		now.Add(-1)
		return nil
	}}, Config{Queries: 5})
	c := w.mustDial(t, "udp", at(w.space.Segment.Gateway.V4, 53))
	for range 50 {
		_, _ = io.WriteString(c, "question")
	}
	eventually(t, "five are open and the rest is refused", func() bool { return w.Stats().Busy == 45 && now.Load() == 5 })
	close(release)
	eventually(t, "all are answered", func() bool { return now.Load() == 0 })
	if limit.Load() != 5 {
		t.Errorf("%d questions were open at a time, want 5", limit.Load())
	}
}

func TestLongQueryOverTCP(t *testing.T) {
	w := newWorld(t, &world{query: func(context.Context, string, []byte) []byte { return []byte("no") }}, Config{})
	for _, length := range []int{0, longestQuery + 1, 1<<16 - 1} {
		c := w.mustDial(t, "tcp", at(w.space.Segment.Gateway.V4, 53))
		_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(length)), make([]byte, length)...))
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a question of %d bytes is answered, or never refused: %v", length, err)
		}
	}
}

func TestDatagramsAreToldAndRefused(t *testing.T) {
	tests := []struct{ name, network, to string }{
		{"UDP", "udp4", "198.18.7.9:443"},
		{"UDP over IPv6", "udp6", "[fd66:756d:6568::709]:443"},
		{"a foreign DNS server", "udp4", "192.0.2.53:53"},
		{"another port of the gateway", "udp4", "198.18.0.1:123"},
	}
	w := newWorld(t, &world{}, Config{})
	var want []string
	for _, test := range tests {
		c := w.mustDial(t, test.network, test.to)
		_, _ = io.WriteString(c, "hello")
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: says %v, want refused", test.name, err)
		}
		want = append(want, "udp "+test.to)
	}
	eventually(t, "all are reported", func() bool { return len(w.reported()) >= len(want) })
	if got := w.reported(); !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
}

func TestRawDatagramsAreToldAndNotAnswered(t *testing.T) {
	lanetest.SkipShort(t)
	echo4 := []byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1}
	echo6 := []byte{128, 0, 0, 0, 0, 1, 0, 1} // the kernel adds its checksum
	tests := []struct {
		name, network, to string
		message           []byte
		want              string
	}{
		{"ping", "ip4:icmp", "198.18.7.9", echo4, "icmp 198.18.7.9:0"},
		{"ping of the gateway", "ip4:icmp", "198.18.0.1", echo4, "icmp 198.18.0.1:0"},
		{"ping over IPv6", "ip6:ipv6-icmp", "fd66:756d:6568::709", echo6, "icmp [fd66:756d:6568::709]:0"},
		{"SCTP", "ip4:132", "198.18.7.9", make([]byte, 12), "ip 132 198.18.7.9:0"},
		{"GRE", "ip4:47", "198.18.7.9", make([]byte, 12), "ip 47 198.18.7.9:0"},
		{"IP in IP", "ip4:4", "198.18.7.9", make([]byte, 20), "ip 4 198.18.7.9:0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, &world{query: answerAll}, Config{})
			c := w.mustDial(t, test.network, test.to)
			if _, err := c.Write(test.message); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is reported", func() bool { return len(w.reported()) > 0 })
			waitForAnswer(t, w)
			if isReadable(t, c) {
				t.Error("it was answered")
			}
			if got := w.reported(); !slices.Equal(got, []string{test.want}) {
				t.Errorf("reported %q, want %q", got, test.want)
			}
		})
	}
}

func TestFloodOfDatagramsIsToldInPart(t *testing.T) {
	w := newWorld(t, &world{}, Config{})
	c := w.mustDial(t, "udp", "198.18.7.9:443")
	const flood = 2500
	start := time.Now()
	eventually(t, "all are counted", func() bool {
		for range 100 {
			_, _ = io.WriteString(c, "x") // refusals of earlier datagrams are returned as errors
		}
		return w.Stats().Datagrams >= flood
	})
	n, limit := len(w.reported()), 1+int(reportRate*(2+time.Since(start).Seconds())) // two seconds' worth at once
	if n < reportRate || n > limit {
		t.Errorf("%d of %d were reported, want at most %d", n, flood, limit)
	}
}

// A datagram larger than the MTU arrives in fragments, which are dropped.
func TestFragmentsAreDropped(t *testing.T) {
	w := newWorld(t, &world{query: answerAll}, Config{})
	w.inside(t, func() error { return setMTU(1400) })
	before := w.Stats().Odd
	c := w.mustDial(t, "udp", at(w.space.Segment.Gateway.V4, 53))
	if _, err := c.Write([]byte(strings.Repeat("x", 3000))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all are looked at", func() bool { return w.Stats().Odd-before >= 3 })
	waitForAnswer(t, w)
	if isReadable(t, c) {
		t.Error("a fragmented question was answered")
	}
	if odd := w.Stats().Odd - before; odd != 3 {
		t.Errorf("%d fragments were dropped, want 3", odd)
	}
}

func TestConfigIsChecked(t *testing.T) {
	tap, peer := pipe(t)
	defer tap.Close()
	defer peer.Close()
	if l, err := New(tap, Config{}, &world{}); err == nil {
		l.Close()
		t.Error("a link without a segment was made")
	}
	closed, other := pipe(t)
	other.Close()
	closed.Close()
	if _, err := New(closed, Config{}, &world{}); err == nil {
		t.Error("a link on a closed file was made")
	}
}
