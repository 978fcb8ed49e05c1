// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/confine"
	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// dead checks that a failed gateway passes nothing, on neither an open connection nor a
// new one, and that its process is gone.
func dead(t *testing.T, w *world, g *Gateway, conn net.Conn) {
	t.Helper()
	select {
	case <-g.process.Done():
	case <-time.After(time.Minute):
		t.Error("the process lives")
	}
	w.touched.Clear()
	if conn != nil {
		_, _ = conn.Write([]byte("x"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if conn, err := g.dialAddr(ctx, "tcp", "9.9.9.9:443"); err == nil {
		conn.Close()
		t.Error("a connection was opened")
	}
	if _, err := g.lookup(ctx, "allowed.example"); err == nil {
		t.Error("a name was answered")
	}
	if conn != nil && isReadable(t, conn) {
		t.Error("something passed on an open connection")
	}
	// What the world outside accepts in order ends with a connection of the host's own.
	own := evilAddr + ":443"
	c, err := net.Dial("tcp", own)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for end := time.Now().Add(time.Minute); !slices.Contains(w.connections(), own) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if got := w.connections(); !slices.Equal(got, []string{own}) {
		t.Errorf("connected to %v", got)
	}
	if err := g.End(); codeOfStop(err) == "" || err != g.Err() {
		t.Errorf("End says %v, Err %v", err, g.Err())
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// isReadable reports whether data, but no end, has arrived on conn. It does not wait.
func isReadable(t *testing.T, conn net.Conn) (readable bool) {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
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

// echoed opens a working connection through g.
func echoed(t *testing.T, g *Gateway) net.Conn {
	t.Helper()
	conn, err := g.dial(t.Context(), "tcp", "allowed.example:7")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_, _ = conn.Write([]byte("ex"))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestKilled(t *testing.T) {
	w, g, r := open(t, nil)
	conn := echoed(t, g)
	_ = unix.Kill(g.process.Pid(), unix.SIGKILL)
	wantFailure(t, r, "gateway.gone")
	if !strings.Contains(g.Err().Error(), "signal: killed") {
		t.Error(g.Err())
	}
	dead(t, w, g, conn)
}

func TestStalled(t *testing.T) {
	lanetest.SkipShort(t)
	w, g, r := open(t, func(o *Options) { o.Patience = 500 * time.Millisecond })
	conn := echoed(t, g)
	_ = unix.Kill(g.process.Pid(), unix.SIGSTOP)
	wantFailure(t, r, "gateway.slow")
	dead(t, w, g, conn)
}

// An idle gateway is not a stalled one.
func TestIdle(t *testing.T) {
	p, err := confine.Start([]string{"/proc/self/exe", DoorName}, nil) // which ends at once
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		var answers atomic.Bool
		answers.Store(true)
		c := newControl(answering{theirs, &answers})
		g := newGateway(Options{Patience: defaultPatience}, nil, ours, p)
		go func() {
			_ = c.send(wire.KindHello, &wire.Hello{})
			_ = c.serve(nil)
		}()
		time.Sleep(24 * time.Hour)
		if err := g.Err(); err != nil {
			t.Errorf("after a day: %v", err)
		}
		answers.Store(false)
		time.Sleep(2 * defaultPatience)
		if err := g.Err(); codeOfStop(err) != "gateway.slow" {
			t.Errorf("without answers: %v", err)
		}
		<-g.done
	})
}

// answering is the process's end of the control socket. It may keep what the process writes.
type answering struct {
	net.Conn
	passes *atomic.Bool
}

func (a answering) Write(b []byte) (int, error) {
	if !a.passes.Load() {
		return len(b), nil
	}
	return a.Conn.Write(b)
}

func TestClose(t *testing.T) {
	w, g, r := open(t, nil)
	conn := echoed(t, g)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-g.process.Done():
	default:
		t.Error("the process lives")
	}
	if isReadable(t, conn) {
		t.Error("the connection lives")
	}
	// What is found later, such as the end of the process, is not a failure either.
	if err := g.fail("gateway.gone", "found later", nil); err != g.Err() {
		t.Errorf("Close is replaced by a failure: %v", err)
	}
	select {
	case err := <-r.failed:
		t.Errorf("Close is reported as a failure: %v", err)
	default:
	}
	_ = w
}

// lifetime returns a context that ends when g fails: requests still open get no answer.
func (g *Gateway) lifetime(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		select {
		case <-g.Failed():
		case <-ctx.Done():
		}
	}()
	return ctx
}

// Policy that does not answer, or answers late, ends the gateway.
func TestUndecided(t *testing.T) {
	lanetest.SkipShort(t)
	tests := []struct {
		name   string
		decide func(context.Context, proposal.Egress) (proposal.EgressDecision, error)
		want   string
	}{
		{"error", func(context.Context, proposal.Egress) (proposal.EgressDecision, error) {
			return proposal.EgressDecision{Effect: proposal.Allow}, errors.New("rule fell over")
		}, "gateway.policy"},
		{"own code", func(context.Context, proposal.Egress) (proposal.EgressDecision, error) {
			return proposal.EgressDecision{}, &proposal.StopError{Code: "policy.deadline", Message: "x"}
		}, "policy.deadline"},
		{"late", func(ctx context.Context, _ proposal.Egress) (proposal.EgressDecision, error) {
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond)
			return proposal.EgressDecision{Effect: proposal.Allow}, nil
		}, "gateway.slow"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, g, r := open(t, func(o *Options) { o.Decide, o.AnswerWithin = test.decide, 300*time.Millisecond })
			if found, err := g.lookup(g.lifetime(t), "allowed.example"); err == nil {
				t.Errorf("found %v", found)
			}
			wantFailure(t, r, test.want)
			dead(t, w, g, nil)
		})
	}
}

// A command's actions are recorded up to a limit.
func TestFlood(t *testing.T) {
	w, g, r := open(t, func(o *Options) { o.Events = 50 })
	ctx := g.lifetime(t)
	for i := 0; i < 200 && g.Err() == nil; i++ {
		_, _ = g.lookup(ctx, fmt.Sprintf("x%d.example", i))
	}
	wantFailure(t, r, "gateway.flood")
	if n := len(r.lines()); n != 50 {
		t.Errorf("%d events reported", n)
	}
	dead(t, w, g, nil)
}

// rogues are compromised gateway processes.
var rogues = map[string]func(){
	"noise":        func() { rogue(func(c *control) { _, _ = c.conn.Write([]byte("noise, and no message at all")) }) },
	"empty":        func() { rogue(func(c *control) { _, _ = c.conn.Write(nil) }) },
	"large":        func() { rogue(func(c *control) { _, _ = c.conn.Write(make([]byte, wire.MaxMessage+100)) }) },
	"second hello": func() { rogue(func(c *control) { _ = c.send(wire.KindHello, &wire.Hello{}) }) },
	"gap":          func() { rogue(func(c *control) { c.seq++; c.reportFlow(proposal.Flow{Egress: someEgress}) }) },
	"other kind":   func() { rogue(func(c *control) { _ = c.send(wire.KindAnswer, &wire.Answer{}) }) },
	"done":         func() { rogue(func(c *control) { _ = c.sendAnswer(wire.KindDone, 99, &wire.Done{}) }) },
	"no kind":      func() { rogue(func(c *control) { c.reportFlow(proposal.Flow{}) }) },
	"forged": func() {
		rogue(func(c *control) {
			message, _ := wire.Encode(wire.KindFlow, 2, &wire.Flow{Flow: proposal.Flow{Egress: someEgress}})
			_, _ = c.conn.Write([]byte(strings.Replace(string(message), `"command":""`, `"command":"c9"`, 1)))
		})
	},
	"questions": func() {
		rogue(func(c *control) {
			for {
				if c.send(wire.KindAsk, &wire.Ask{Egress: someEgress}) != nil {
					return
				}
			}
		})
	},
	"flood": func() {
		rogue(func(c *control) {
			for {
				if c.send(wire.KindFlow, &wire.Flow{Flow: proposal.Flow{Egress: proposal.Egress{Kind: points.EgressLookup, Path: strings.Repeat("x", 4096)}}}) != nil {
					return
				}
			}
		})
	},
	"pongs": func() {
		rogue(func(c *control) {
			for c.sendAnswer(wire.KindPong, 0, nil) == nil {
			}
		})
	},
	"early": func() {
		c := rogueControl()
		c.reportFlow(proposal.Flow{Egress: someEgress})
		select {}
	},
	"deaf": func() {
		c := rogueControl()
		_ = c.send(wire.KindHello, &wire.Hello{})
		for { // alive, but it reads nothing
			_ = c.sendAnswer(wire.KindPong, 0, nil)
			time.Sleep(20 * time.Millisecond)
		}
	},
	"crash": func() { rogue(func(*control) { panic("a defect of ours") }) },
	"fault": func() {
		rogue(func(c *control) { _ = c.send(wire.KindFault, &wire.Fault{Text: "no more"}); select {} })
	},
}

var someEgress = proposal.Egress{Kind: points.EgressLookup, Name: "allowed.example", Type: "A"}

func rogueControl() *control {
	conn, err := connOf(os.NewFile(controlFile, "control"))
	if err != nil {
		panic(err)
	}
	return newControl(conn)
}

// rogue behaves correctly until the first command has begun, then does what f does.
func rogue(f func(*control)) {
	c := rogueControl()
	_ = c.send(wire.KindHello, &wire.Hello{})
	err := c.serve(func(kind wire.Kind) (wire.Done, error) {
		go func() {
			time.Sleep(50 * time.Millisecond) // after the answer
			f(c)
		}()
		return wire.Done{}, nil
	})
	fmt.Fprintln(os.Stderr, err)
}

func TestRogues(t *testing.T) {
	lanetest.SkipShort(t)
	want := map[string]string{"crash": "gateway.gone", "fault": "gateway.gone", "empty": "gateway.gone", "flood": "gateway.flood", "deaf": "gateway.slow", "early": "gateway.start"}
	for _, name := range sample.EveryNthKey(t, rogues, 1, 4) {
		t.Run(name, func(t *testing.T) {
			code := want[name]
			if code == "" {
				code = "gateway.protocol"
			}
			if name == "pongs" {
				code = "" // annoying but harmless
			}
			rogueRun(t, name, code)
		})
	}
}

func rogueRun(t *testing.T, name, code string) {
	w, r := outside(t), &record{failed: make(chan error, 1)}
	o := optionsFor(w, r)
	o.Argv, o.Events = []string{"/proc/self/exe", "rogue", name}, 1000
	switch name { // the end or its explanation depends on our timeout
	case "deaf":
		o.Patience = 100 * time.Millisecond
	case "empty":
		o.Patience = time.Second
	}
	o.Decide = func(ctx context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
		<-ctx.Done() // so that too many questions are open at a time, however slowly they arrive
		return house(ctx, e)
	}
	before := heap()
	g, err := Start(t.Context(), o)
	if code == "gateway.start" {
		if codeOfStop(err) != code {
			t.Error(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	err = g.Begin(t.Context(), "c1", granted)
	if code == "" {
		time.Sleep(500 * time.Millisecond)
		if err != nil || g.Err() != nil {
			t.Error(err, g.Err())
		}
	} else {
		wantFailure(t, r, code)
		dead(t, w, g, nil)
	}
	r.events = nil
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d MiB more in use", grown>>20)
	}
	for _, e := range r.events {
		if e.Command != "c1" {
			t.Errorf("reported of %+v", e)
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// supervise is a separate supervisor process that waits to be killed.
func supervise() {
	g, err := Start(context.Background(), Options{Decide: house, AnswerWithin: time.Second, Events: 1, Resolvers: []netip.AddrPort{netip.MustParseAddrPort(dnsAddr + ":53")}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(g.process.Pid())
	select {}
}

// The gateway's process does not outlive its supervisor, even when it is stopped.
func TestOrphan(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		cmd := exec.Command("/proc/self/exe", "supervisor")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 4096)
		n, _ := out.Read(line)
		pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
		if err != nil {
			t.Fatalf("%s", line[:n])
		}
		if stopped {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for end := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
			if state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); strings.Contains(string(state), ") Z ") {
				break // dead, but not reaped by its new parent
			}
			if time.Now().After(end) {
				t.Fatalf("process %d lives, stopped: %t", pid, stopped)
			}
		}
	}
}
