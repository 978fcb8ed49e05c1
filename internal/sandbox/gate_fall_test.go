// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// stopped runs text, which must end the run with a code, without the canary
// running and without a further command.
func stopped(t *testing.T, r *Runner, text, code string) {
	t.Helper()
	begin := time.Now()
	result, err := r.Run(t.Context(), Execution{ID: "x", Text: text, Grant: proposal.Grant{Limits: testLimits()}})
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != code || result.Status != proposal.SandboxFailed {
		t.Errorf("status %s, error %v after %s; want %s", result.Status, err, time.Since(begin), code)
	}
	if out := string(result.Stdout.Head); strings.Contains(out, "CANARY") {
		t.Errorf("it ran: %q", out)
	}
	if result.Observations != nil && result.Observations.Complete {
		t.Error("the record calls itself complete")
	}
	if _, err := r.Run(t.Context(), Execution{ID: "y", Text: "true", Grant: proposal.Grant{Limits: testLimits()}}); err == nil {
		t.Error("another command runs")
	}
}

// A decider that stalls lets nothing run and ends the run.
func TestDeciderStalls(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	o.answerWithin = time.Second
	release := make(chan struct{})
	defer close(release)
	o.Exec = func(x proposal.Exec) proposal.ExecDecision {
		if x.Path == canary {
			<-release
		}
		return allow(x)
	}
	stopped(t, testRunner(t, o), "/opt/bin/canary; echo code $?; sleep 1000", "gate.slow")
}

// A decider that stalls on the first program does the same.
func TestDeciderStallsFirst(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	o.answerWithin = time.Second
	release := make(chan struct{})
	defer close(release)
	o.Exec = func(x proposal.Exec) proposal.ExecDecision { <-release; return allow(x) }
	stopped(t, testRunner(t, o), "/opt/bin/canary", "gate.slow")
}

// A gate that goes away in the middle of a command ends the run.
func TestGateDies(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	var r *Runner
	o.Exec = func(x proposal.Exec) proposal.ExecDecision {
		if x.Path == "/usr/bin/true" {
			_ = r.current.gate.monitor.Close()
		}
		return allow(x)
	}
	r = testRunner(t, o)
	stopped(t, r, "/usr/bin/true; /opt/bin/canary; sleep 1000", "gate.gone")
}

// A recorder that stops reading ends the run when the kernel's time limit passes:
// nothing is dropped silently.
func TestRecorderStalls(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	o.patience = time.Second
	release := make(chan struct{})
	var stalled atomic.Bool
	o.Exec = allow
	o.Event = func(e proposal.Event) {
		if e.Kind == proposal.EventWrite && !stalled.Swap(true) {
			<-release
		}
	}
	r := testRunner(t, o)
	once(t, o, "x", "code 126", func() { close(release) })
	stopped(t, r, "/opt/bin/tricks flood 5000; /opt/bin/canary; echo code $?; sleep 1000", "gate.slow")
}

// A flood of events ends the command, not the run.
func TestEventFlood(t *testing.T) {
	t.Parallel()
	o, rec := gatedOptions(t)
	o.Events = 500
	r := testRunner(t, o)
	rec.reset(allow)
	result, err := r.Run(t.Context(), Execution{ID: "x", Text: "/opt/bin/tricks flood 1000000", Grant: proposal.Grant{Limits: testLimits()}})
	if err != nil || result.Status != proposal.OutputLimit || result.Limit != "events 500" {
		t.Errorf("status %s, limit %q, %v", result.Status, result.Limit, err)
	}
	if o := result.Observations; o == nil || o.Complete || o.Counts.Dropped == 0 {
		t.Errorf("observations %+v", o)
	}
	if len(rec.events) != 500 {
		t.Errorf("%d events were reported", len(rec.events))
	}
	if out, _ := play(t, r, "/usr/bin/id"); !strings.Contains(out, "uid=") {
		t.Errorf("the next command: %q", out)
	}
}

// If a supervisor sends anything other than the answer to the question, the kernel
// refuses everything from then on, and reports why on the FIFO.
func TestKernelFailsClosed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		answer func(conn *net.UnixConn, seq uint64)
		latch  byte
		want   string
	}{
		{"allows", func(c *net.UnixConn, seq uint64) { c.Write(wire.Verdict{Allow: true}.Append(nil, seq)) }, 0, "uid=uid="},
		{"refuses", func(c *net.UnixConn, seq uint64) { c.Write(wire.Verdict{}.Append(nil, seq)) }, 0, "126126"},
		{"nonsense", func(c *net.UnixConn, _ uint64) { c.Write([]byte("yes")) }, sinkProtocol, "126126"},
		{"much", func(c *net.UnixConn, seq uint64) {
			c.Write(append(wire.Verdict{Allow: true}.Append(nil, seq), make([]byte, 100)...))
		}, sinkProtocol, "126126"},
		{"another's answer", func(c *net.UnixConn, seq uint64) { c.Write(wire.Verdict{Allow: true}.Append(nil, seq-1)) }, sinkProtocol, "126126"},
		{"an order", func(c *net.UnixConn, seq uint64) { c.Write(wire.Order{Token: 1}.Append(nil, seq)) }, sinkProtocol, "126126"},
		{"not quite true", func(c *net.UnixConn, seq uint64) {
			b := wire.Verdict{Allow: true}.Append(nil, seq)
			b[len(b)-6] = 3
			c.Write(b)
		}, sinkProtocol, "126126"},
		{"gone", func(c *net.UnixConn, _ uint64) { c.Close() }, sinkGone, "126126"},
		{"silence", func(*net.UnixConn, uint64) {}, sinkSlow, "126126"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			patience := time.Minute
			if test.latch == sinkSlow {
				patience = time.Second
			}
			out, reported := bare(t, patience, test.answer)
			if out != test.want {
				t.Errorf("output %q, want %q", out, test.want)
			}
			if test.latch != 0 && !reported[test.latch] {
				t.Errorf("the FIFO reported %v, want %q", reported, test.latch)
			}
		})
	}
}

// bare runs two execs in a sandbox whose gate is the test's and whose kernel waits
// for patience.
func bare(t *testing.T, patience time.Duration, answer func(*net.UnixConn, uint64)) (string, map[byte]bool) {
	t.Helper()
	o := testOptions(t)
	bundle := plainBundle(t, o, []string{"PATH=/usr/bin:/bin"}, "/bin/sh", "-c",
		`x() { out=$(/usr/bin/id 2>/dev/null); code=$?; case $code in 0) printf uid=;; *) printf $code;; esac; }; x; x`)
	dir := filepath.Dir(bundle)
	w, err := newWatch(dir, filepath.Join(dir, "g"), patience, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, "g"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go supervise(listener, answer)
	cmd := exec.Command(o.Runsc, "--root="+dir, "--network=none", "--pod-init-config="+w.configPath(dir), "--ignore-cgroups", "run", "--bundle="+bundle, filepath.Base(dir))
	cmd.Env = []string{}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && stdout.Len() == 0 {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return stdout.String(), w.reportedLimits()
}

func supervise(listener *net.UnixListener, answer func(*net.UnixConn, uint64)) {
	conn, err := listener.AcceptUnix()
	if err != nil {
		return
	}
	defer conn.Close()
	buf := make([]byte, wire.MaxMessage)
	for {
		n, err := conn.Read(buf)
		if err != nil || n == 0 {
			return
		}
		if h, _, err := wire.Open(buf[:n]); err == nil && h.Kind == wire.KindExec {
			answer(conn, h.Seq)
		}
	}
}

// A sandbox does not start if a sink cannot connect, or if a session has a point
// that does not exist.
func TestNoGateNoRun(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	r := testRunner(t, o)
	s := &instance{o: r.o, owner: &callbackHolder{}, gone: make(chan struct{}), stderr: &tailBuffer{}, backgrounds: &backgrounds{}}
	defer s.close()
	if err := s.prepareRunsc(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.gate.socketPath()); err != nil {
		t.Fatal(err)
	}
	if err := s.launchRunsc(); err != nil {
		return
	}
	if _, err := s.init.waitUntilReady(t.Context(), startGrace); err == nil {
		t.Error("a sandbox starts without its gate")
	}
}

// All points of the session exist: otherwise runsc would run the sandbox
// unwatched.
func TestPoints(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(testOptions(t).Runsc, "trace", "metadata").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(traceConfig("f", "g", time.Second, nil))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Session struct {
			Points []struct{ Name string } `json:"points"`
		} `json:"trace_session"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	for _, p := range config.Session.Points {
		if !strings.Contains(string(out), "Name: "+p.Name+",") {
			t.Errorf("gVisor has no point %q", p.Name)
		}
	}
	if len(config.Session.Points) < 80 {
		t.Errorf("%d points", len(config.Session.Points))
	}
}
