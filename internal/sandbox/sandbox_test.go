// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/internal/watch/monitor"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// inShort is the test that starts a sandbox with -short.
const inShort = "TestFirst"

// testOptions returns options for a sandbox with the host's /usr, as the commands make
// it, and the tests' programs in /opt/bin, as part of the root.
func testOptions(t testing.TB) Options {
	t.Helper()
	if t.Name() != inShort {
		lanetest.SkipShort(t)
	}
	runsc := installtest.Runsc(t)
	return Options{
		Verify: runsc.CheckUnchanged, Runsc: runsc.Path, Init: runsc.Init,
		Binds:     []Bind{{"/usr", "/usr"}, {"/etc/alternatives", "/etc/alternatives"}, {programsDir(t), "/opt/bin"}},
		Links:     map[string]string{"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"},
		Files:     map[string][]byte{"/etc/resolv.conf": []byte("nameserver " + guest.Resolver + "\n")},
		Path:      "/usr/bin:/bin",
		Workspace: t.TempDir(), Artifacts: t.TempDir(), Limits: testLimits(), UnwatchedUnsafe: true,
	}
}

func testRunner(t testing.TB, o Options) *Runner {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func runText(t testing.TB, r *Runner, text string) proposal.Result {
	t.Helper()
	result, err := r.Run(t.Context(), Execution{ID: "x", Text: text, Grant: proposal.Grant{Limits: testLimits()}})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return result
}

// once calls f when the running command, which has an artifacts directory, has printed
// text.
func once(t testing.TB, o Options, id, text string, f func()) {
	t.Helper()
	printed := func() bool {
		out, err := os.ReadFile(filepath.Join(o.Artifacts, id+".stdout"))
		return err == nil && strings.Contains(string(out), text)
	}
	go func() {
		for !printed() {
			if t.Context().Err() != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		f()
	}()
}

// gVisor's control protocol is internal to it. This runs every call that package
// control makes, so that incompatible versions are found here.
func TestProtocol(t *testing.T) {
	t.Parallel()
	r := testRunner(t, testOptions(t))
	runText(t, r, "true")
	conn, err := control.Dial(r.current.controlSocketPath())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sessions, err := conn.TraceSessions()
	if err != nil || len(sessions) != 1 || sessions[0] != monitor.TraceSession {
		t.Errorf("trace sessions %q, %v", sessions, err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	pid, err := conn.Exec(r.current.id, control.Process{
		Argv: []string{"/bin/sh", "-c", "echo $VALUE $PWD; id -u; exit 7"}, Env: []string{"VALUE=v"}, Dir: "/usr",
		UID: 4321, GID: 4321, Stdin: null, Stdout: write, Stderr: write,
	})
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	status, err := conn.Wait(r.current.id, pid)
	if err != nil || status.ExitStatus() != 7 {
		t.Errorf("wait status %v, %v; want exit 7", status, err)
	}
	out := make([]byte, 100)
	n, _ := read.Read(out)
	if got := string(out[:n]); !strings.HasPrefix(got, "v /usr\n") {
		t.Errorf("output %q", got)
	}
	if _, err := conn.Exec(r.current.id, control.Process{Argv: []string{"/no/such"}, Dir: "/", Stdin: null, Stdout: null, Stderr: null}); err == nil {
		t.Error("a program that is not there was started")
	}
}

// forks starts n processes that keep running. sh exits if it cannot fork, while bash
// waits and retries.
func forks(n int) string { return fmt.Sprintf("sh -c 'for i in $(seq %d); do sleep 1000 & done'", n) }

// Each way of ending must produce the same verdict, with its limit's name.
func TestStatuses(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Limits.Pids = 40
	r := testRunner(t, o)
	for _, test := range []struct {
		name, text string
		change     func(*proposal.Limits)
		want       proposal.Status
		exit       int
		signal     string
		limit      string
	}{
		{name: "zero", text: "true", want: proposal.Exited},
		{name: "exit 2", text: "exit 2", want: proposal.Exited, exit: 2},
		{name: "exit 137 is no kill", text: "exit 137", want: proposal.Exited, exit: 137},
		{name: "exit 128", text: "exit 128", want: proposal.Exited, exit: 128},
		{name: "segv", text: "kill -SEGV $$", want: proposal.Signaled, exit: -1, signal: "SIGSEGV"},
		{name: "kills itself", text: "kill -KILL $$", want: proposal.Signaled, exit: -1, signal: "SIGKILL"},
		{name: "wall", text: "trap '' TERM INT HUP; while :; do :; done", change: func(l *proposal.Limits) { l.Wall = proposal.Duration(300 * time.Millisecond) },
			want: proposal.TimedOut, exit: -1, limit: "wall 300ms"},
		{name: "output", text: "yes", change: func(l *proposal.Limits) { l.Output = proposal.MiB }, want: proposal.OutputLimit, exit: -1, limit: "output 1 MiB"},
		{name: "processes", text: forks(60), want: proposal.ProcessLimit, exit: -2, limit: "processes 40"},
		{name: "fewer processes", text: forks(40), change: func(l *proposal.Limits) { l.Pids = 20 },
			want: proposal.ProcessLimit, exit: -2, limit: "processes 20"},
		{name: "disk", text: "head -c 70000000 /dev/zero > big", want: proposal.DiskLimit, exit: 1, limit: "disk 64 MiB"},
		{name: "disk freed", text: "rm -f big; echo fine > small", want: proposal.Exited},
		{name: "fork refused but succeeded", text: forks(40) + "; true", want: proposal.Exited, change: func(l *proposal.Limits) { l.Pids = 20 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := o.Limits
			if test.change != nil {
				test.change(&l)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for a limit that is ignored
			defer cancel()
			result, err := r.Run(ctx, Execution{ID: test.name, Text: test.text, Grant: proposal.Grant{Limits: l}})
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != test.want || result.Signal != test.signal || result.Limit != test.limit {
				t.Errorf("got %s, signal %q, limit %q; want %s, %q, %q", result.Status, result.Signal, result.Limit, test.want, test.signal, test.limit)
			}
			if test.exit != -2 && result.ExitCode != test.exit {
				t.Errorf("exit code %d, want %d", result.ExitCode, test.exit)
			}
		})
	}
}

// A command that uses up the memory of gVisor's own process takes the sandbox with it;
// one that uses up its own dies alone. Both are reported, and the next command has a
// sandbox.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Limits.Memory = 160 * proposal.MiB
	r := testRunner(t, o)
	for i, text := range []string{
		"/opt/bin/testprogram alloc 1024",
		"head -c 400000000 /dev/zero | tail -c 300000000 | wc -c; exit 3",
		"head -c 60000000 /dev/zero > /dev/shm/a; /opt/bin/testprogram alloc 1024",
	} {
		x := Execution{ID: fmt.Sprint(i), Text: text, Grant: proposal.Grant{Limits: o.Limits}}
		if result, err := r.Run(t.Context(), x); err != nil || result.Status != proposal.OutOfMemory || result.Limit != "memory 160 MiB" {
			t.Errorf("%s: %s, limit %q, %v", text, result.Status, result.Limit, err)
		}
		if result := runText(t, r, "echo next"); !result.Succeeded() {
			t.Errorf("after %s: %s %s", text, result.Status, result.Detail)
		}
	}
}

func TestNothingOutlivesItsCommand(t *testing.T) {
	t.Parallel()
	r := testRunner(t, testOptions(t))
	result := runText(t, r, "setsid sleep 1000 & (setsid sh -c 'trap \"\" TERM HUP; sleep 1000' &) ; unshare -Upf sleep 1000 & sleep 0.3; exit 0")
	if !result.Succeeded() || result.Leftover == 0 {
		t.Errorf("%s, leftover %d; want some", result.Status, result.Leftover)
	}
	result = runText(t, r, "grep -l sleep /proc/[0-9]*/comm | grep -v self")
	if len(result.Stdout.Head) != 0 {
		t.Errorf("left behind: %s", result.Stdout.Head)
	}
}

func TestEndedProcessesAreNotLeftBehind(t *testing.T) {
	t.Parallel()
	r := testRunner(t, testOptions(t))
	text := "/opt/bin/testprogram zombie > ready & until [ -s ready ]; do sleep 0.05; done"
	if result := runText(t, r, text); !result.Succeeded() || result.Leftover != 1 {
		t.Errorf("%s, %d left behind; want the parent alone", result.Status, result.Leftover)
	}
}

func TestMemoryIsOfTheCommand(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Limits.Memory = 512 << 20
	r := testRunner(t, o)
	for _, test := range []struct {
		text        string
		least, most int64 // MiB
	}{
		{"true", 0, 40},
		{"/opt/bin/testprogram alloc 150", 150, 220},
		{"true", 0, 40},
		{"head -c 40000000 /dev/zero > /tmp/x", 35, 90},
		{"true", 0, 40},
	} {
		result := runText(t, r, test.text)
		if mib := result.Usage.PeakMemory.Value >> 20; !result.Succeeded() || mib < test.least || mib > test.most {
			t.Errorf("%s: %s, %d MiB; want %d to %d", test.text, result.Status, mib, test.least, test.most)
		}
	}
}

func TestFresh(t *testing.T) {
	t.Parallel()
	r := testRunner(t, testOptions(t))
	runText(t, r, "echo one > state")
	if result := runText(t, r, "cat state"); !result.Succeeded() || result.NewSandbox {
		t.Errorf("state is gone: %s %d", result.Status, result.ExitCode)
	}
	result, err := r.Run(t.Context(), Execution{ID: "x", Text: "cat state", Grant: proposal.Grant{Limits: testLimits(), Fresh: true}})
	if err != nil || result.Succeeded() || !result.NewSandbox {
		t.Errorf("a fresh sandbox has old state: %v %+v", err, result.Status)
	}
}

// What was prepared starts nothing, and only the command that it was prepared for uses it.
func TestPrepare(t *testing.T) {
	t.Parallel()
	r, seen := gated(t)
	describe := func(id, text string) Execution {
		return Execution{ID: id, Text: text, Grant: proposal.Grant{Limits: testLimits()}}
	}
	run := func(x Execution) {
		t.Helper()
		out := &printed{}
		x.Output = out.take
		result, err := r.Run(t.Context(), x)
		if err != nil || !result.Succeeded() || !result.Observations.Complete || out.String() != x.ID+"\n" {
			t.Errorf("%s: %s %q, %q, %v", x.ID, result.Outcome(), result.Detail, out.String(), err)
		}
		if r.current.prepared != nil {
			t.Errorf("%s: the sandbox still has what was prepared", x.ID)
		}
	}
	first := describe("first", "echo first")
	r.Prepare(first, false) // without a sandbox it does nothing
	run(first)
	used, other := describe("used", "echo used > /tmp/used; cat /tmp/used"), describe("other", "echo other > /tmp/other; cat /tmp/other")
	r.Prepare(used, false)
	ready := r.current.prepared
	if ready == nil || len(seen.of("used")) > 0 {
		t.Fatalf("%+v, %q", ready, seen.of("used"))
	}
	run(used)
	if !slices.Contains(seen.of("used"), "write /tmp/used") || ready.began.IsZero() {
		t.Errorf("the command did not use what was prepared: %q", seen.of("used"))
	}
	changed := used
	changed.ID, changed.Text = "changed", "echo wrong"
	r.Prepare(changed, true)
	changed.Text = "echo changed"
	run(changed)
	r.Prepare(used, false)
	run(other)
	if got := seen.of("other"); !slices.Contains(got, "write /tmp/other") {
		t.Errorf("the command has no events of its own: %q", got)
	}
	beside := describe("beside", "echo beside; sleep 1000")
	r.Prepare(beside, true)
	p, out := startPrinting(t, r, beside)
	p.Kill(proposal.KilledClosed)
	if result := outcomeOf(t, p); result.Killed != proposal.KilledClosed || out.String() != "beside\n" {
		t.Errorf("%s, %q", result.Outcome(), out.String())
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	r := testRunner(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	once(t, o, "x", "before", cancel)
	result, err := r.Run(ctx, Execution{ID: "x", Text: "echo before; sleep 1000", Grant: proposal.Grant{Limits: testLimits()}})
	if !errors.Is(err, context.Canceled) || result.Detail != "the run was interrupted" || string(result.Stdout.Head) != "before\n" {
		t.Errorf("%v, %s %q, output %q", err, result.Status, result.Detail, result.Stdout.Head)
	}
}

// A command that is interrupted before its sandbox is ready has the result of one that was
// killed before it wrote anything.
func TestInterruptedBeforeItsStart(t *testing.T) {
	t.Parallel()
	r := testRunner(t, testOptions(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	result, err := r.Run(ctx, Execution{ID: "x", Text: "echo one", Grant: proposal.Grant{Limits: testLimits()}})
	if !errors.Is(err, context.Canceled) || result.Status != proposal.Signaled || result.Detail != "the run was interrupted" || result.Stdout.SHA256 != nothing || result.Stderr.SHA256 != nothing {
		t.Errorf("%v, %+v", err, result)
	}
	if result := runText(t, r, "echo two"); !result.Succeeded() {
		t.Errorf("the next command: %+v", result)
	}
}

// The sandbox's kernel is killed from outside while a command runs: the command's
// result is not certain, and nothing runs after it.
func TestCrash(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	r := testRunner(t, o)
	runText(t, r, "true")
	cgroup := r.current.cgroup
	once(t, o, "x", "running", func() { cgroup.killProcesses() })
	result, err := r.Run(t.Context(), Execution{ID: "x", Text: "echo running; sleep 1000", Grant: proposal.Grant{Limits: testLimits()}})
	var stopped *proposal.StopError
	if !errors.As(err, &stopped) || stopped.Code != "sandbox.crashed" || result.Status != proposal.SandboxFailed {
		t.Errorf("%v, %s", err, result.Status)
	}
	if _, err := r.Run(t.Context(), Execution{ID: "y", Text: "true", Grant: proposal.Grant{Limits: testLimits()}}); err == nil {
		t.Error("the runner ran on")
	}
}

// No grant changes what the shell reads or how it reads it.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	r := testRunner(t, testOptions(t))
	grant := proposal.Grant{Limits: testLimits(), Env: map[string]string{"LC_ALL": "zh_TW.BIG5", "HOME": "/workspace", "PATH": ".", "OWN": "x y"}}
	result, err := r.Run(t.Context(), Execution{ID: "x", Text: `echo "$LC_ALL|$HOME|$PATH|$OWN"`, Grant: grant})
	if got := string(result.Stdout.Head); err != nil || got != "C.UTF-8|/home/fumehood|/usr/bin:/bin|x y\n" {
		t.Errorf("%v: environment %q", err, got)
	}
	for _, name := range []string{"BASH_ENV", "ENV", "LD_PRELOAD", "BASH_FUNC_ls%%", "SHELLOPTS", "IFS", "A=B", ""} {
		grant.Env = map[string]string{name: "x"}
		if _, err := r.Run(t.Context(), Execution{ID: "x", Text: "true", Grant: grant}); err == nil {
			t.Errorf("a grant of %q was accepted", name)
		}
	}
	if result := runText(t, r, "true"); !result.Succeeded() {
		t.Errorf("a refused grant ended the runner: %s", result.Detail)
	}
}

func TestVerifyBeforeStart(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	changed := errors.New("changed")
	o.Verify = func() error { return changed }
	r := testRunner(t, o)
	if _, err := r.Run(t.Context(), Execution{ID: "x", Text: "true", Grant: proposal.Grant{Limits: testLimits()}}); !errors.Is(err, changed) {
		t.Errorf("started with a runsc that had changed: %v", err)
	}
}

// Incomplete options start no sandbox.
func TestIncompleteOptions(t *testing.T) {
	whole := Options{Verify: func() error { return nil }, Exec: allow, Event: func(proposal.Event) {}}
	if _, err := New(whole); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"runsc is not verified": func(o *Options) { o.Verify = nil },
		"Exec is missing":       func(o *Options) { o.Exec = nil },
		"Event is missing":      func(o *Options) { o.Event = nil },
		"neither":               func(o *Options) { o.Exec, o.Event = nil, nil },
		"a contradiction":       func(o *Options) { o.UnwatchedUnsafe = true },
	} {
		o := whole
		change(&o)
		if r, err := New(o); r != nil || proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != "sandbox.options" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// After Close nothing of the sandbox is left on the host.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.StateDir = t.TempDir()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	runText(t, r, "sleep 100 & echo x > y")
	r.Prepare(Execution{ID: "never", Text: "true", Grant: proposal.Grant{Limits: testLimits()}}, true)
	id, root := r.current.id, r.current.root.Path
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, pattern := range []string{filepath.Join(o.StateDir, "*"), cgroupMount + "/*/fumehood-" + id, cgroupMount + "/fumehood-" + id, root} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, found...)
	}
	if len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), o.StateDir) {
		t.Errorf("a mount of the sandbox is seen outside it: %v", err)
	}
}

func TestNotStarted(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	r := testRunner(t, testOptions(t))
	for _, x := range []Execution{
		{ID: "a", Argv: []string{"no-such-program"}},
		{ID: "b", Argv: []string{"true"}, Cwd: "no/such/folder"},
	} {
		x.Grant.Limits = testLimits()
		result, err := r.Run(t.Context(), x)
		if err != nil || result.Status != proposal.Exited || result.ExitCode != 127 || !strings.Contains(result.Detail, "cannot start") {
			t.Errorf("%s: %v, %s %d %q", x.ID, err, result.Status, result.ExitCode, result.Detail)
		}
	}
}

// Another program in place of the sentry is detected before the first command.
func TestAttest(t *testing.T) {
	t.Parallel()
	r := testRunner(t, testOptions(t))
	runText(t, r, "true")
	runsc, real := r.current.o.Runsc, r.current.cgroup
	r.current.o.Runsc = "/bin/true"
	if err := r.current.checkGVisor("Linux version 4.19.0-gvisor #1"); err == nil {
		t.Error("processes that are not the verified runsc were accepted")
	}
	r.current.o.Runsc = runsc
	if err := r.current.checkGVisor("Linux version 6.18.0-generic #1"); err == nil {
		t.Error("a kernel that is not gVisor's was accepted")
	}
	for name, dir := range map[string]string{"empty": controlFiles(t, "cgroup.procs"), "unreadable": t.TempDir()} {
		r.current.cgroup = &cgroup{dirs: map[string]string{"pids": dir}}
		r.current.watch.fifo.Write([]byte{sinkHello})
		if err := r.current.checkGVisor("Linux version 4.19.0-gvisor #1"); err == nil {
			t.Errorf("a cgroup that is %s was taken for checked", name)
		}
	}
	r.current.cgroup = real
	r.current.watch.fifo.Write([]byte{sinkHello})
	if err := r.current.checkGVisor("Linux version 4.19.0-gvisor #1"); err != nil {
		t.Errorf("the real one was refused: %v", err)
	}
}

// Next command in the same run: budget < 5 ms more than the command itself.
func BenchmarkNext(b *testing.B) {
	r := testRunner(b, testOptions(b))
	x := Execution{ID: "x", Argv: []string{"/bin/true"}, Grant: proposal.Grant{Limits: testLimits()}}
	if _, err := r.Run(b.Context(), x); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.Run(b.Context(), x); err != nil {
			b.Fatal(err)
		}
	}
}

// Without a network, a name does not exist, and names below localhost are this machine. An answer
// that no server was reached would make programs try again.
func TestNames(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	rec.reset(allow)
	for name, want := range map[string]string{
		"x.invalid:80":        "lookup x.invalid on " + guest.Resolver + ":53: no such host",
		"api.localhost:9":     "connect: connection refused",
		guest.Resolver + ":9": "connect: connection refused",
	} {
		out, result := play(t, r, "/opt/bin/testprogram connect "+name)
		if result.ExitCode != 1 || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d, %q; want %q", name, result.ExitCode, out, want)
		}
	}
}
