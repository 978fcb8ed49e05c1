// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/frame"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A kernel plays the sandbox's side in a test: it sends what the test specifies.
type kernel struct {
	t     *testing.T
	conn  *net.UnixConn
	seq   uint64
	order wire.Order // the last one
	alive uint32     // what the next Mark says, one less each time
	// command is the one that was begun first.
	command *Command
}

// dialed returns a served Monitor and the other end of its connection.
func dialed(t *testing.T, o Options) (*Monitor, *kernel) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	m, err := Listen(path, o)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { m.Serve(os.Getpid(), time.Minute); close(served) }()
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(); conn.Close(); <-served })
	return m, &kernel{t: t, conn: conn}
}

func (k *kernel) send(message []byte) { _, _ = k.conn.Write(message) }

// widen lets the kernel send messages longer than allowed, as the real one's socket
// does.
func (k *kernel) widen() {
	raw, err := k.conn.SyscallConn()
	if err != nil {
		k.t.Fatal(err)
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4*wire.MaxMessage)
	}); err != nil || set != nil {
		k.t.Fatal(err, set)
	}
}

func (k *kernel) next() uint64 { k.seq++; return k.seq }

// greet starts a command on the Monitor, as the kernel does.
func (k *kernel) greet(m *Monitor, c *Command) {
	k.t.Helper()
	k.command = c
	k.send(wire.AppendHello(nil, k.next()))
	if err := m.Ready(time.Minute); err != nil {
		k.t.Fatal(err)
	}
	if err := m.Begin(c, k.obey); err != nil {
		k.t.Fatal(err)
	}
}

// obey answers an Order.
func (k *kernel) obey() error {
	h, body := k.receive()
	order, err := wire.DecodeOrder(body)
	if err != nil || h.Kind != wire.KindOrder {
		return errors.New("no order")
	}
	k.order = order
	k.send((&wire.Mark{Token: order.Token, Generation: order.Generation, Alive: k.alive, Processes: 2, Bytes: 3}).Append(nil, k.next()))
	k.alive = max(k.alive, 1) - 1
	return nil
}

func (k *kernel) receive() (frame.Header[wire.Kind], []byte) {
	var b [100]byte
	_ = k.conn.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := k.conn.Read(b[:])
	if err != nil {
		return frame.Header[wire.Kind]{}, nil
	}
	h, body, err := wire.Open(b[:n])
	if err != nil {
		k.t.Fatal(err)
	}
	return h, body
}

// ask sends e and returns the answer, if there is one.
func (k *kernel) ask(e wire.Exec) (wire.Verdict, bool) {
	seq := k.next()
	k.send(e.Append(nil, seq))
	h, body := k.receive()
	v, err := wire.DecodeVerdict(body)
	if h.Kind != wire.KindVerdict || h.Seq != seq || err != nil {
		return wire.Verdict{}, false
	}
	return v, true
}

func program(path string) wire.Exec {
	return wire.Exec{ExecKey: wire.ExecKey{Generation: 1, Files: []wire.File{{Path: path, Layer: wire.LayerRootfs, Digest: [32]byte{1}}}}, Pid: 7, Argv: []string{"x"}}
}

func only(path string) func(proposal.Exec) proposal.ExecDecision {
	return func(x proposal.Exec) proposal.ExecDecision {
		if x.Path == path {
			return proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{"r"}, Cacheable: true}
		}
		return proposal.ExecDecision{Effect: proposal.Deny, Cacheable: true}
	}
}

func TestAnswers(t *testing.T) {
	var mu sync.Mutex
	var events []proposal.Event
	m, k := dialed(t, Options{Exec: only("/bin/ok"), AnswerWithin: time.Minute, Events: 100, Init: "/init",
		Event: func(e proposal.Event) { mu.Lock(); defer mu.Unlock(); events = append(events, e) }})
	k.greet(m, &Command{ID: "unit", Grants: []string{"built"}})

	ok, no := program("/bin/ok"), program("/bin/no")
	ok.From = "/init"
	if v, answered := k.ask(ok); !answered || !v.Allow || !v.Keep {
		t.Errorf("allowed: %+v, %v", v, answered)
	}
	asked := k.seq
	if v, answered := k.ask(no); !answered || v.Allow || !v.Keep {
		t.Errorf("refused: %+v, %v", v, answered)
	}
	steered := program("/bin/ok")
	steered.Env = []string{"LD_PRELOAD"}
	if v, _ := k.ask(steered); !v.Allow || v.Keep {
		t.Errorf("with a steering variable: %+v", v)
	}
	script := program("/bin/ok")
	script.Named = "./s"
	script.Files = append(script.Files, wire.File{Named: "/bin/no", Arg: "-e", Path: "/usr/bin/no", Layer: wire.LayerWritten})
	if v, _ := k.ask(script); v.Allow {
		t.Error("a script of a refused interpreter is allowed")
	}
	again := ok
	again.Of, again.Allowed = asked, true
	k.send(again.Append(nil, k.next()))
	k.send((&wire.Event{Generation: 1, Event: wire.EventConnect, Pid: 7, Address: "tcp 192.0.2.1:443", Errno: 101}).Append(nil, k.next()))
	fault := wire.Exec{ExecKey: wire.ExecKey{Generation: 1, Files: []wire.File{{Path: "/bin/odd"}}}, Fault: "cannot read"}
	k.send(fault.Append(nil, k.next()))
	mark, err := m.End(k.command, k.obey)
	if err != nil || mark.Processes != 2 || mark.Dropped != 0 {
		t.Errorf("end: %+v, %v", mark, err)
	}
	mu.Lock()
	defer mu.Unlock()
	var got []string
	for _, e := range events {
		line := e.Command + " " + e.Kind + " " + e.Path + e.Address + e.Errno
		if e.Exec != nil && e.Exec.Script != "" {
			line += " of " + e.Exec.Script + " as " + strings.Join(e.Exec.Argv, " ")
		}
		got = append(got, line)
	}
	want := []string{
		"unit exec /bin/ok", "unit refused /bin/no", "unit exec /bin/ok", "unit refused /usr/bin/no of /bin/ok as /bin/no -e ./s",
		"unit exec /bin/ok", "unit connect tcp 192.0.2.1:443ENETUNREACH", "unit refused /bin/odd",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if x := events[0].Exec; !x.First || x.Grants[0] != "built" || x.Layer != proposal.LayerRootfs || len(x.Digest) != 71 {
		t.Errorf("exec %+v", x)
	}
	if x := events[1].Exec; x.First {
		t.Error("what was not begun by init is first")
	}
}

// Whatever the other end sends, only what was decided is allowed, the connection ends,
// and the error has its code.
func TestHostile(t *testing.T) {
	ok := program("/bin/ok")
	later, other := ok, program("/bin/other")
	later.Generation = 9
	replayed := ok
	replayed.Of, replayed.Allowed = 77, true
	flipped := program("/bin/no")
	bad := ok.Append(nil, 0)
	for _, test := range []struct {
		name string
		send func(k *kernel)
		code string
	}{
		{"garbage", func(k *kernel) { k.send([]byte("GET / HTTP/1.1\r\n\r\n")) }, "gate.protocol"},
		{"empty", func(k *kernel) { k.send([]byte{wire.Version}) }, "gate.protocol"},
		{"half", func(k *kernel) { k.send(ok.Append(nil, k.next())[:40]) }, "gate.protocol"},
		{"half and gone", func(k *kernel) { k.send(wire.AppendHello(nil, k.next())[:5]); k.conn.Close() }, "gate.protocol"},
		{"gone", func(k *kernel) { k.conn.Close() }, "gate.gone"},
		{"too much", func(k *kernel) { k.widen(); k.send(make([]byte, wire.MaxMessage+100)) }, "gate.protocol"},
		{"huge length", func(k *kernel) {
			b := ok.Append(nil, k.next())
			for i := 30; i < 60; i++ {
				b[i] = 0xff
			}
			k.send(b)
		}, "gate.protocol"},
		{"another version", func(k *kernel) { b := ok.Append(nil, k.next()); b[0]++; k.send(b) }, "gate.protocol"},
		{"unknown kind", func(k *kernel) { b := ok.Append(nil, k.next()); b[1] = 99; k.send(b) }, "gate.protocol"},
		{"a verdict", func(k *kernel) { k.send(wire.Verdict{Allow: true, Keep: true}.Append(nil, k.next())) }, "gate.protocol"},
		{"reads that were not asked for", func(k *kernel) { k.send(wire.Reads{List: []wire.Read{{Path: "a"}}}.Append(nil, k.next())) }, "gate.protocol"},
		{"second greeting", func(k *kernel) { k.send(wire.AppendHello(nil, k.next())) }, "gate.protocol"},
		{"gap", func(k *kernel) { k.next(); k.send(ok.Append(nil, k.next())) }, "gate.protocol"},
		{"replay", func(k *kernel) { k.send(ok.Append(nil, k.seq)) }, "gate.protocol"},
		{"number zero", func(k *kernel) { k.send(bad) }, "gate.protocol"},
		{"another generation", func(k *kernel) { k.send(later.Append(nil, k.next())) }, "gate.protocol"},
		{"an answer that was not given", func(k *kernel) { k.send(replayed.Append(nil, k.next())) }, "gate.protocol"},
		{"another's answer", func(k *kernel) {
			k.ask(ok)
			other.Of, other.Allowed = k.seq, true
			k.send(other.Append(nil, k.next()))
		}, "gate.protocol"},
		{"an answer used for a text's process", func(k *kernel) {
			k.ask(ok)
			text := ok
			text.Of, text.Allowed, text.Lineage = k.seq, true, wire.LineageFirst
			k.send(text.Append(nil, k.next()))
		}, "gate.protocol"},
		{"a refusal turned", func(k *kernel) {
			k.ask(flipped)
			flipped.Of, flipped.Allowed = k.seq, true
			k.send(flipped.Append(nil, k.next()))
		}, "gate.protocol"},
		{"unasked mark", func(k *kernel) { k.send((&wire.Mark{Token: 1}).Append(nil, k.next())) }, "gate.protocol"},
		{"unknown event", func(k *kernel) { k.send((&wire.Event{Generation: 1, Event: 99}).Append(nil, k.next())) }, "gate.protocol"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, k := dialed(t, Options{Exec: only("/bin/ok"), AnswerWithin: time.Minute, Events: 100})
			k.greet(m, &Command{ID: "x"})
			test.send(k)
			select {
			case <-m.Failed():
			case <-time.After(time.Minute):
				t.Fatal("it goes on")
			}
			var stop *proposal.StopError
			if !errors.As(m.Err(), &stop) || stop.Code != test.code {
				t.Errorf("error %v; want %s", m.Err(), test.code)
			}
			if v, answered := k.ask(program("/bin/ok")); answered || v.Allow {
				t.Error("something is allowed afterwards")
			}
			if err := m.Begin(&Command{ID: "y"}, k.obey); err == nil {
				t.Error("another command begins")
			}
		})
	}
}

// A process that goes on by itself starts nothing as a part of a command whose start is not recorded yet.
func TestCommandWaits(t *testing.T) {
	m, k := dialed(t, Options{Exec: only("/bin/ok"), AnswerWithin: time.Minute, Events: 100})
	k.greet(m, &Command{ID: "x", Waits: true})
	if v, answered := k.ask(program("/bin/ok")); !answered || v.Allow {
		t.Errorf("an exec before the start: %+v, %v", v, answered)
	}
	m.Start(k.command)
	if v, answered := k.ask(program("/bin/ok")); !answered || !v.Allow {
		t.Errorf("an exec after the start: %+v, %v", v, answered)
	}
}

// Whatever comes of a command that has ended is its own, and is not allowed; what comes of
// none ends the connection.
func TestOutsideCommand(t *testing.T) {
	var seen []string
	o := Options{Exec: only("/bin/ok"), AnswerWithin: time.Minute, Events: 100, Event: func(e proposal.Event) { seen = append(seen, e.Command+" "+e.Kind) }}
	m, k := dialed(t, o)
	k.greet(m, &Command{ID: "x"})
	k.ask(program("/bin/ok"))
	used := program("/bin/ok")
	used.Of, used.Allowed = k.seq, true
	if _, err := m.End(k.command, k.obey); err != nil {
		t.Fatal(err)
	}
	if v, answered := k.ask(program("/bin/ok")); !answered || v.Allow {
		t.Errorf("an exec after the end: %+v, %v", v, answered)
	}
	k.send((&wire.Event{Generation: 1, Event: wire.EventExit}).Append(nil, k.next()))
	if err := m.Begin(&Command{ID: "y"}, k.obey); err != nil {
		t.Fatal(err)
	}
	want := []string{"x exec", "x refused", "x exit"}
	if d := cmp.Diff(want, seen); d != "" {
		t.Error(d)
	}
	k.send(used.Append(nil, k.next())) // the kernel allowed it although its command has ended
	<-m.Failed()
	seen = nil
	for _, generation := range []uint32{wire.None, 2, 1 << 31} {
		m, k := dialed(t, o)
		k.greet(m, &Command{ID: "x"})
		if generation == wire.None {
			x := program("/bin/ok")
			x.Generation = generation
			if v, answered := k.ask(x); !answered || v.Allow {
				t.Errorf("an exec of no command: %+v", v)
			}
			if _, err := m.End(k.command, k.obey); err != nil || seen[0] != " refused" {
				t.Errorf("%v, seen %q", err, seen)
			}
			continue
		}
		x := program("/bin/ok")
		x.Generation = generation
		if v, answered := k.ask(x); answered || v.Allow {
			t.Errorf("an exec of generation %d is answered", generation)
		}
		<-m.Failed()
	}
}

// Commands overlap: each message is decided with the facts of its own command.
func TestOverlap(t *testing.T) {
	var asked []string
	m, k := dialed(t, Options{AnswerWithin: time.Minute, Events: 3, Event: func(proposal.Event) {}, Exec: func(x proposal.Exec) proposal.ExecDecision {
		asked = append(asked, fmt.Sprintf("%s%v%v", x.Command, x.Grants, x.Changed))
		return proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{}, Cacheable: true}
	}})
	floods := ""
	k.greet(m, &Command{ID: "a", Grants: []string{"built"}, Env: []string{"V=a"}, Flood: func() { floods += "a" }})
	first := k.command
	if err := m.Detach(first, 7, k.obey); err != nil || k.order.Act != wire.ActDetach || k.order.Pid != 7 {
		t.Fatal(err, k.order)
	}
	second := &Command{ID: "b", Env: []string{"V=b"}, Flood: func() { floods += "b" }}
	if err := m.Begin(second, k.obey); err != nil || k.order.Generation != 2 {
		t.Fatal(err, k.order)
	}
	for _, generation := range []uint32{2, 1, 2, 1} {
		x := program("/bin/ok")
		x.Generation, x.Lineage, x.Vars = generation, wire.LineageFirst, []string{"V=a"}
		if v, answered := k.ask(x); !answered || !v.Allow {
			t.Errorf("generation %d: %+v", generation, v)
		}
	}
	// An answer to one command is not one to the other.
	plain := program("/bin/ok")
	k.ask(plain)
	for range 4 {
		k.send((&wire.Event{Generation: 2, Event: wire.EventWrite}).Append(nil, k.next()))
	}
	if mark, err := m.End(second, k.obey); err != nil || mark.Dropped != 3 || floods != "b" {
		t.Errorf("%+v, %v, floods %q", mark, err, floods)
	}
	k.alive = 3
	found, mark, err := m.Kill(first, k.obey, time.Minute)
	if err != nil || found != 3 || k.order.Act != wire.ActEnd {
		t.Errorf("%d found, %v", found, err)
	}
	// The kernel forgets a command without processes when another one begins.
	if err := m.Begin(&Command{ID: "c"}, k.obey); err != nil {
		t.Fatal(err)
	}
	again, same, err := m.Kill(first, k.obey, time.Minute)
	if signal := m.Signal(first, 0, 2, k.obey); err != nil || signal != nil || again != 0 || same != mark || k.order.Act != wire.ActBegin {
		t.Errorf("%d found, %+v, %v, %v, order %+v", again, same, err, signal, k.order)
	}
	if _, err := m.EndWithMark(first, mark, err); err != nil {
		t.Error(err)
	}
	assign := func(v string) string {
		return fmt.Sprint([]proposal.Assign{{Name: "V", Value: proposal.Word{Value: v, Static: true}, Exported: true}})
	}
	want := []string{"b[]" + assign("a"), "a[built][]", "b[]" + assign("a"), "a[built][]", "a[built][]"}
	if d := cmp.Diff(want, asked); d != "" || m.Err() != nil {
		t.Errorf("%v\n%s", m.Err(), d)
	}
	stolen := plain
	stolen.Generation, stolen.Of, stolen.Allowed = 1, k.seq, true
	k.send(stolen.Append(nil, k.next()))
	<-m.Failed()
}

func TestSlowDecision(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	m, k := dialed(t, Options{AnswerWithin: 50 * time.Millisecond, Events: 100, Exec: func(proposal.Exec) proposal.ExecDecision {
		<-release
		return proposal.ExecDecision{Effect: proposal.Allow}
	}})
	k.greet(m, &Command{ID: "x"})
	if v, _ := k.ask(program("/bin/ok")); v.Allow {
		t.Error("allowed without a decision")
	}
	<-m.Failed()
	var stop *proposal.StopError
	if !errors.As(m.Err(), &stop) || stop.Code != "gate.slow" {
		t.Errorf("error %v", m.Err())
	}
}

// A flood is reported up to the budget, the rest is counted, and Flood is called once.
func TestFlood(t *testing.T) {
	lanetest.SkipShort(t)
	var told, floods atomic.Int64
	m, k := dialed(t, Options{Events: 1000, Event: func(proposal.Event) { told.Add(1) }})
	k.greet(m, &Command{ID: "x", Flood: func() { floods.Add(1) }})
	e := wire.Event{Generation: 1, Event: wire.EventWrite, Path: strings.Repeat("/x", 2000)}
	for range 20_000 {
		k.send(e.Append(nil, k.next()))
	}
	mark, err := m.End(k.command, k.obey)
	if err != nil {
		t.Fatal(err)
	}
	if told.Load() != 1000 || floods.Load() != 1 || mark.Dropped != 19_000 {
		t.Errorf("told %d, floods %d, dropped %d", told.Load(), floods.Load(), mark.Dropped)
	}
}

func TestOnlyTheSandboxMayConnect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	m, err := Listen(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	go m.Serve(os.Getpid()+1, time.Minute)
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var stop *proposal.StopError
	if err := m.Ready(time.Minute); !errors.As(err, &stop) || stop.Code != "gate.start" {
		t.Errorf("error %v", err)
	}
	if _, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"}); err == nil {
		t.Error("a second connection is taken")
	}
}

// What connects for the sandbox may have ended: of a pod's only the user counts.
func TestOnlyThisUserMayConnect(t *testing.T) {
	dir, err := os.MkdirTemp("", "fumehood-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for uid, want := range map[int]string{os.Geteuid(): "", 65534: "gate.start"} {
		path := filepath.Join(dir, strconv.Itoa(uid))
		m, err := Listen(path, Options{})
		if err == nil {
			err = os.Chmod(path, 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() { defer close(served); m.ServeUser(time.Minute) }()
		conn := make(chan *net.UnixConn, 1)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
			c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
			if errno != 0 || err != nil {
				t.Error(errno, err)
			}
			conn <- c
		}()
		if c := <-conn; c != nil && want == "" {
			time.AfterFunc(100*time.Millisecond, func() { c.Close() })
		}
		<-served
		if got := proposal.FailureOf(m.Err()); want != "" && (got == nil || got.Code != want) || want == "" && got != nil && got.Code == "gate.start" {
			t.Errorf("user %d: %v", uid, m.Err())
		}
	}
}

func TestNobodyConnects(t *testing.T) {
	m, err := Listen(filepath.Join(t.TempDir(), "s"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	go m.Serve(os.Getpid(), 20*time.Millisecond)
	var stop *proposal.StopError
	if err := m.Ready(time.Minute); !errors.As(err, &stop) || stop.Code != "gate.start" {
		t.Errorf("error %v", err)
	}
}

// A text's process is decided with its whole argv and environment, every time, and
// gets the lineage of the answer.
func TestTextsProcess(t *testing.T) {
	var asked []proposal.Exec
	m, k := dialed(t, Options{AnswerWithin: time.Minute, Events: 100, Exec: func(x proposal.Exec) proposal.ExecDecision {
		asked = append(asked, x)
		return proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{}, Cacheable: true, Lineage: 9}
	}})
	k.greet(m, &Command{ID: "x", Env: []string{"KEPT=1", "CHANGED=1", "GONE=1", "PWD=/", "PATH=/bin"}})
	long := strings.Repeat("x", wire.MaxWord+1)
	e := program("/usr/bin/wc")
	e.Lineage, e.Named, e.Argv = wire.LineageFirst, "/usr/bin/wc", []string{"wc", long}
	e.Vars = []string{"KEPT=1", "CHANGED=2", "NEW=", "PWD=/x", "SHLVL=1", "_=/x", "KEPT=2"}
	for range 2 {
		if v, answered := k.ask(e); !answered || !v.Allow || v.Keep || v.Lineage != 9 {
			t.Errorf("answer %+v, %v", v, answered)
		}
	}
	if _, err := m.End(k.command, k.obey); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 2 {
		t.Fatalf("asked %d times, want each time", len(asked))
	}
	x := asked[0]
	if !x.Text || x.Lineage != wire.LineageFirst || x.Named != "/usr/bin/wc" || x.Partial || x.EnvCut || x.Whole[1] != long || x.Argv[1] == long || !x.ArgvCut {
		t.Errorf("%+v", x)
	}
	var changed []string
	for _, c := range x.Changed {
		changed = append(changed, c.Name+"="+c.Value.Value)
	}
	if d := cmp.Diff([]string{"CHANGED=2", "NEW=", "KEPT=2", "PATH="}, changed); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"CHANGED", "NEW", "KEPT", "PATH"}, x.Variables); d != "" {
		t.Error(d)
	}
}

// Git is not started without the configuration that guards it, and other programs may be.
func TestMissingVariables(t *testing.T) {
	c := &Command{base: map[string]string{"GIT_CONFIG_COUNT": "1", "CARGO_NET_OFFLINE": "true", "PATH": "/bin"}}
	for program, want := range map[string]int{"/usr/bin/git": 1, "/usr/lib/git-core/git-diff": 1, "/usr/bin/wc": 0, "/usr/bin/git-lfs": 0} {
		if got := c.changedVariables([]string{"PATH=/bin"}, program); len(got) != want || want > 0 && got[0].Name != "GIT_CONFIG_COUNT" {
			t.Errorf("%s: %+v", program, got)
		}
	}
}

// The kernel is sent the lineage of a command's first process.
func TestFirstLineage(t *testing.T) {
	for _, test := range []struct {
		command *Command
		want    uint32
	}{{&Command{}, wire.LineageFirst}, {&Command{Program: true}, wire.LineageTool}, {&Command{Program: true, Free: true}, wire.LineageProgram}} {
		m, k := dialed(t, Options{Events: 1})
		k.greet(m, test.command)
		if k.order.First != test.want {
			t.Errorf("%d: the order says %+v", test.want, k.order)
		}
	}
}
