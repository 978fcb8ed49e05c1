// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// starts is the number of programs that the command below starts.
const starts = 120

// startingScript starts one program after another: either a new one each time,
// which has not been decided before, or the same one repeatedly. When a program
// starts, it opens its mark, a file of the workspace on the host, where it is
// observed without fumehood's help. The script ends after three refusals. Meanwhile it
// opens other marks, pulses, which needs no program.
const startingScript = `
exec 9<> <(:)
(for mark in marks/pulse-*; do : < "$mark"; read -t 0.05 -u 9; done) &
pulse=$! refused=0 code=0
for i in $(seq -f %%03.0f 0 %d); do
	"programs/${1:-$i}" "$i"
	if [ $? = 126 ]; then
		echo "refused $i"
		refused=$((refused + 1))
	fi
	if [ $refused = 3 ]; then
		: < marks/refused
		code=1
		break
	fi
done
kill $pulse
exit $code
`

// refusedMark is the mark that the command writes after three refusals.
const refusedMark = "refused"

// A startingRun is the real main of fumehood, while its command starts programs.
type startingRun struct {
	killedRun
	marks *marks
}

// stoppedEarly starts it, waits until a few programs have started, which are new ones
// or "the-same", and sends it sig. On a busy machine the command may be faster than this
// test. It is then started again, because a late signal would have a different outcome.
func stoppedEarly(t *testing.T, which string, sig syscall.Signal) (r startingRun, at time.Time) {
	t.Helper()
	long(t)
	for range 20 {
		r = startStarting(t, which)
		if err := r.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if sig == syscall.SIGKILL {
			_ = r.cmd.Wait()
		} else {
			jobtest.WaitUntil(t, "all threads to stop", func() bool { return standsStill(r.cmd.Process.Pid) })
		}
		if at = r.marks.settled(t); len(r.marks.times()) < starts/2 {
			return r, at
		}
		_ = r.cmd.Process.Signal(syscall.SIGCONT)
		_ = r.cmd.Process.Kill()
	}
	t.Fatal("the command was always faster than this test")
	return r, at
}

func startStarting(t *testing.T, which string) startingRun {
	t.Helper()
	cache, dir := jobtest.BuildCache(t), t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const program = "#!/bin/sh\n: < /workspace/marks/$1\necho ran $1\n"
	for i := range starts {
		write(fmt.Sprintf("ws/marks/%03d", i), "")
		write(fmt.Sprintf("ws/programs/%03d", i), program)
	}
	write("ws/programs/the-same", program)
	for i := range 1000 {
		write(fmt.Sprintf("ws/marks/%s%03d", pulseMark, i), "")
	}
	write("ws/marks/"+refusedMark, "")
	write("ws/marks/"+settledMark, "")
	write("ws/start.sh", fmt.Sprintf(startingScript, starts-1))
	write("plan.yaml", "schema: fumehood.plan/v1\nproposals:\n  - {id: starts, run: bash start.sh "+which+"}\n  - {id: after, run: echo after}\n")
	k := killedRun{dir: dir, log: filepath.Join(dir, "audit.jsonl")}
	k.cmd = exec.Command(os.Args[0], "run", "--plan", filepath.Join(dir, "plan.yaml"), "--workspace", filepath.Join(dir, "ws"),
		"--audit", k.log, "--report", filepath.Join(dir, "report.json"))
	// Programs that open files of an image open nothing on the host.
	k.cmd.Env = append(os.Environ(), "FUMEHOOD_CACHE="+cache, asFumehood+"=1", "TMPDIR="+dir, testImages+"=")
	r := startingRun{k, watchMarks(t, filepath.Join(dir, "ws/marks"))}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
	jobtest.WaitUntil(t, "a few programs", func() bool { return len(r.marks.times()) >= 5 })
	return r
}

// goOn continues the process, and returns the time at which it did.
func (r startingRun) goOn(t *testing.T) time.Time {
	t.Helper()
	at := time.Now()
	if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	return at
}

// standsStill reports whether all threads of a process are stopped, or it has ended.
func standsStill(pid int) bool {
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil && !bytes.Contains(data, []byte(") T ")) && !bytes.Contains(data, []byte(") Z ")) {
			return false
		}
	}
	return true
}

// end waits for the end of the run, and returns its report.
func (r startingRun) end(t *testing.T) (code int, report proposal.Report) {
	t.Helper()
	_ = r.cmd.Wait()
	data, err := os.ReadFile(filepath.Join(r.dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	return r.cmd.ProcessState.ExitCode(), report
}

// asked returns the times at which the kernel asked about programs, from the log,
// which must verify.
func (r startingRun) asked(t *testing.T) (times []time.Time, kinds map[string]int, summary audit.Summary) {
	t.Helper()
	log, err := os.Open(r.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	kinds = map[string]int{}
	summary, err = audit.Scan(log, audit.Trust{}, func(e audit.Entry) error {
		h, err := journal.Entry{Kind: e.Kind, Body: e.Body}.Decode()
		if err != nil || e.Unsigned {
			return err
		}
		kinds[e.Kind]++
		for _, event := range h.Events {
			if event.Kind == proposal.EventExec {
				times = append(times, event.Time)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("the log does not verify: %v", err)
	}
	return times, kinds, summary
}

func between(times []time.Time, from, until time.Time) (n int) {
	for _, at := range times {
		if at.After(from) && at.Before(until) {
			n++
		}
	}
	return n
}

// wantAll checks that every program started and nothing went wrong.
func (r startingRun) wantAll(t *testing.T, code int, report proposal.Report) {
	t.Helper()
	if n := len(r.marks.times()); n != starts {
		t.Errorf("%d programs began in all, want %d", n, starts)
	}
	if code != exitOK || report.Error != nil || report.Totals.Succeeded != 2 {
		t.Errorf("exit %d, error %+v, totals %+v", code, report.Error, report.Totals)
	}
	if o := report.Records[0].Result.Observations; o == nil || !o.Complete || o.Counts.Refused > 0 {
		t.Errorf("recorded %+v", o)
	}
}

// checkRemoved runs fumehood again and looks for remains of the killed one.
func (r startingRun) checkRemoved(t *testing.T) {
	t.Helper()
	left := func() []string {
		list, err := filepath.Glob(filepath.Join(r.dir, "fumehood-*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	// Another test's fumehood may be removing them.
	if len(left()) > 2 {
		t.Errorf("the killed one left %q, want the sandbox's folder and that of what no search has read", left())
	}
	plan := filepath.Join(r.dir, "next.yaml")
	if err := os.WriteFile(plan, []byte("schema: fumehood.plan/v1\nproposals: [{id: next, run: echo next}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	next := exec.Command(os.Args[0], "run", "--plan", plan, "--workspace", filepath.Join(r.dir, "ws"), "--audit", filepath.Join(r.dir, "next.jsonl"))
	next.Env = r.cmd.Env
	if out, err := next.CombinedOutput(); err != nil {
		t.Errorf("the next run: %v\n%s", err, out)
	}
	jobtest.WaitUntil(t, "the removal of what the killed one left", func() bool { return len(left()) == 0 })
}

// marks records when files of a directory are first opened, by any process.
type marks struct {
	dir  string
	mu   sync.Mutex
	seen map[string]time.Time
}

func watchMarks(t *testing.T, dir string) *marks {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "inotify") // non-blocking, so that Close ends a read
	t.Cleanup(func() { _ = events.Close() })
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	m := &marks{dir: dir, seen: map[string]time.Time{}}
	go m.read(events)
	return m
}

func (m *marks) read(events *os.File) {
	buf := make([]byte, 64<<10)
	for {
		n, err := events.Read(buf)
		if err != nil {
			return
		}
		now := time.Now()
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			m.note(string(bytes.TrimRight(b[unix.SizeofInotifyEvent:end], "\x00")), now)
			b = b[end:]
		}
	}
}

func (m *marks) note(name string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.seen[name]; name != "" && !known { // "" is the directory itself
		m.seen[name] = at
	}
}

// pulseMark begins the names of marks of which the command opens about twenty a second.
const pulseMark = "pulse-"

// waitForPulses waits until the command has run for so many pulses from now on.
func (m *marks) waitForPulses(t *testing.T, n int) {
	t.Helper()
	count := func() (n int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for name := range m.seen {
			if strings.HasPrefix(name, pulseMark) {
				n++
			}
		}
		return n
	}
	end := count() + n
	jobtest.WaitUntil(t, "the command's pulses", func() bool { return count() >= end })
}

func (m *marks) has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.seen[name].IsZero()
}

// settledMark is the mark that the test itself opens. When it has been recorded, so
// has everything opened before.
const settledMark = "settled"

// settled waits until all opened marks are recorded, and returns the time at which
// they were.
func (m *marks) settled(t *testing.T) time.Time {
	t.Helper()
	m.mu.Lock()
	delete(m.seen, settledMark)
	m.mu.Unlock()
	f, err := os.Open(filepath.Join(m.dir, settledMark))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	jobtest.WaitUntil(t, "the notes of what was opened", func() bool { return m.has(settledMark) })
	return time.Now()
}

// times returns the times at which programs first opened their marks.
func (m *marks) times() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	programs := maps.Clone(m.seen)
	delete(programs, refusedMark)
	delete(programs, settledMark)
	maps.DeleteFunc(programs, func(name string, _ time.Time) bool { return strings.HasPrefix(name, pulseMark) })
	return slices.SortedFunc(maps.Values(programs), time.Time.Compare)
}

// THREATS 34: while the decider is stopped, no program starts except for one that
// was allowed before. If the decider continues within the kernel's time limit, so
// does the command.
func TestE2EDeciderStopped(t *testing.T) {
	t.Parallel()
	r, from := stoppedEarly(t, "", syscall.SIGSTOP)
	r.marks.waitForPulses(t, 20) // during which the others would start
	until := r.goOn(t)
	code, report := r.end(t)
	if n := between(r.marks.times(), from, until); n > 1 || between(r.marks.times(), until, time.Now()) < starts/4 {
		t.Errorf("%d programs began meanwhile, %d after it", n, between(r.marks.times(), until, time.Now()))
	}
	r.wantAll(t, code, report)
	times, _, summary := r.asked(t)
	if n := between(times, from, until); n > 1 || summary.State != audit.Sealed || len(times) < starts {
		t.Errorf("of %d programs the log has %d meanwhile; %s", len(times), n, summary.State)
	}
	jobtest.CheckNothingRuns(t, r.dir)
}

// After the decider is killed, no further program starts. The log has everything
// that ran, up to a marked end, and the next fumehood removes what is left.
func TestE2EDeciderKilled(t *testing.T) {
	t.Parallel()
	r, dead := stoppedEarly(t, "", syscall.SIGKILL)
	jobtest.CheckNothingRuns(t, r.dir)
	r.marks.settled(t)
	if n, all := between(r.marks.times(), dead, time.Now()), len(r.marks.times()); n > 1 || all > starts*3/4 {
		t.Errorf("of %d programs %d began after the decider's death", all, n)
	}
	times, kinds, summary := r.asked(t)
	if between(times, dead, time.Now()) > 0 || summary.State == audit.Sealed || kinds["start"] != 1 || kinds["result"]+kinds["end"] > 0 {
		t.Errorf("entries %v; %s", kinds, summary.State)
	}
	r.checkRemoved(t)
}

// If the decider stops for longer than the kernel waits, which is a minute, no
// further program is ever started: every start is refused, and the run ends with
// the gate's code. TestDeciderStalls of internal/sandbox waits for a second.
func TestE2EDeciderStalled(t *testing.T) {
	t.Parallel()
	r, from := stoppedEarly(t, "", syscall.SIGSTOP)
	jobtest.WaitUntil(t, "the end of the kernel's patience", func() bool { return r.marks.has(refusedMark) })
	r.goOn(t)
	code, report := r.end(t)
	if n, all := between(r.marks.times(), from, time.Now()), len(r.marks.times()); n > 1 || all > starts*3/4 {
		t.Errorf("of %d programs %d began after the decider stood still", all, n)
	}
	if code != exitStopped || report.Error == nil || report.Error.Code != "gate.slow" {
		t.Errorf("exit %d, error %+v", code, report.Error)
	}
	first, after := report.Records[0].Result, report.Records[1].Result
	if first.Status != proposal.SandboxFailed || first.Observations == nil || first.Observations.Complete {
		t.Errorf("the command is %s, and what was recorded of it %+v", first.Status, first.Observations)
	}
	if out := string(first.Stdout.Head); strings.Count(out, "refused") < 3 || !strings.HasPrefix(out, "ran 000\n") {
		t.Errorf("it printed %q", out)
	}
	if after.Status != proposal.NotRun {
		t.Errorf("the next command is %s", after.Status)
	}
	times, kinds, summary := r.asked(t)
	if n := between(times, from, time.Now()); n > 1 || kinds["start"] != 1 || kinds["end"] != 1 || summary.State != audit.Sealed {
		t.Errorf("%d programs in the log after the decider stood still; entries %v; %s", n, kinds, summary.State)
	}
	jobtest.CheckNothingRuns(t, r.dir)
}

// A program that was allowed for this command by a cacheable decision needs no
// decider: it starts in the meantime, and is still in the log.
func TestE2EDeciderStoppedAfterItsAnswer(t *testing.T) {
	t.Parallel()
	r, from := stoppedEarly(t, "the-same", syscall.SIGSTOP)
	before := len(r.marks.times())
	jobtest.WaitUntil(t, "programs that need no decider", func() bool { return len(r.marks.times()) > before+10 })
	until := r.goOn(t)
	code, report := r.end(t)
	r.wantAll(t, code, report)
	times, _, summary := r.asked(t)
	marks := r.marks.times()
	began := between(marks, from, until)
	if began == 0 || len(times) < starts || summary.State != audit.Sealed {
		t.Errorf("%d programs began meanwhile, the log has %d in all; %s", began, len(times), summary.State)
	}
	for i, mark := range marks { // a program opens its mark a while after the kernel has seen it start
		if seen := between(times, time.Time{}, mark.Add(50*time.Millisecond)); seen <= i {
			t.Fatalf("%d programs had left their mark when the log had %d", i+1, seen)
		}
	}
	t.Logf("%d programs began meanwhile", began)
	jobtest.CheckNothingRuns(t, r.dir)
}
