// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// pair returns both ends of a connection.
func pair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]*net.UnixConn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = c.(*net.UnixConn)
	}
	return conns[0], conns[1]
}

// FuzzHandle sends messages of a hostile kernel to a Monitor in a command. Each
// input message is a two-byte length and its bytes, whose sequence number may be
// corrected. Never may more be allowed than was decided, nor more be reported than
// the budget.
func FuzzHandle(f *testing.F) {
	ok, no := program("/bin/ok"), program("/bin/no")
	kept := ok
	kept.Of, kept.Allowed = 3, true
	event := wire.Event{Generation: 1, Event: wire.EventWrite, Path: "/x"}
	mark := wire.Mark{Token: 1}
	frame := func(messages ...[]byte) (b []byte) {
		for _, m := range messages {
			b = append(b, byte(len(m)), byte(len(m)>>8))
			b = append(b, m...)
		}
		return b
	}
	f.Add(true, frame(ok.Append(nil, 3), kept.Append(nil, 4), no.Append(nil, 5)))
	f.Add(true, frame(event.Append(nil, 3), mark.Append(nil, 4), wire.AppendHello(nil, 5)))
	f.Add(false, frame(ok.Append(nil, 9)))
	f.Fuzz(func(t *testing.T, number bool, data []byte) {
		a, theirs := pair(t)
		defer theirs.Close()
		ours, err := newConn(a, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer ours.close()
		var allowed, told atomic.Int64
		m := &Monitor{ready: make(chan struct{}), failed: make(chan struct{}), conn: ours, sequence: 2}
		m.o = Options{AnswerWithin: time.Minute, Events: 50, Event: func(proposal.Event) { told.Add(1) }, Exec: func(x proposal.Exec) proposal.ExecDecision {
			d := only("/bin/ok")(x)
			if d.Effect == proposal.Allow {
				allowed.Add(1)
			}
			return d
		}}
		m.living = map[uint32]*Command{1: {ID: "x", generation: 1, kept: map[uint64]rememberedAnswer{}}}
		m.ended = []*Command{{ID: "w", generation: 7}}
		answers := 0
		for len(data) >= 2 {
			n := min(int(data[0])|int(data[1])<<8, len(data)-2)
			message := append([]byte(nil), data[2:2+n]...)
			data = data[2+n:]
			if number && n >= 10 {
				message[0] = wire.Version
				seq := m.sequence + 1
				for i := range 8 {
					message[2+i] = byte(seq >> (8 * i))
				}
			}
			if m.handleMessage(message) != nil {
				break
			}
			answers += allows(t, theirs)
		}
		if int64(answers) > allowed.Load() {
			t.Fatalf("%d execs allowed, %d decided so", answers, allowed.Load())
		}
		if told.Load() > 2*50 {
			t.Fatalf("%d events told", told.Load())
		}
	})
}

// allows reads the pending answers and counts those that allow.
func allows(t *testing.T, conn *net.UnixConn) (n int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Read(func(fd uintptr) bool {
		var b [100]byte
		for {
			size, err := unix.Read(int(fd), b[:])
			if err != nil || size <= 0 {
				return true
			}
			if h, body, err := wire.Open(b[:size]); err == nil && h.Kind == wire.KindVerdict {
				if v, err := wire.DecodeVerdict(body); err == nil && v.Allow {
					n++
				}
			}
		}
	})
	return n
}
