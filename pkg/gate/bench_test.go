// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ownTimes is a cell that starts /bin/true often, and returns the median time of one start in
// milliseconds.
const ownTimes = `import subprocess, time
def one():
    begin = time.perf_counter()
    subprocess.run(['/bin/true'])
    return time.perf_counter() - begin
sorted(one() for _ in range(101))[50] * 1000`

// BenchmarkNext measures the next cell and the next command of a session, with everything on.
// The kinds alternate. own-ms is what /bin/true takes when a cell starts it. Budgets: 3 ms for
// a cell, and 5 ms more than its own time for a command.
//
//	go test ./pkg/gate -run '^$' -bench Next -benchtime 300x
func BenchmarkNext(b *testing.B) {
	s := open(b, newGateAlone(b, gate.Options{}), gate.SessionOptions{})
	n := 0
	do := func(p proposal.Proposal) (proposal.Record, time.Duration) {
		n++
		p.ID = fmt.Sprint("p", n)
		begin := time.Now()
		r, err := s.Do(b.Context(), p)
		took := time.Since(begin)
		if err != nil || r.Result == nil || !r.Result.Succeeded() {
			b.Fatalf("%v: %v", described(r), err)
		}
		return r, took
	}
	kinds := []struct {
		name string
		p    proposal.Proposal
	}{
		{"cell", cell("", "python", "x = 1")}, {"argv", proposal.Proposal{Argv: []string{"/bin/true"}}}, {"text", proposal.Proposal{Run: "echo hi"}},
	}
	for _, k := range kinds {
		do(k.p)
	}
	took, cpu := make([][]time.Duration, len(kinds)), make([]time.Duration, len(kinds))
	for b.Loop() {
		for i, k := range kinds {
			before := processorTime(b)
			_, one := do(k.p)
			cpu[i] += processorTime(b) - before
			took[i] = append(took[i], one)
		}
	}
	for i, k := range kinds {
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/2].Seconds()*1000, k.name+"-p50-ms")
		b.ReportMetric(took[i][len(took[i])/10].Seconds()*1000, k.name+"-p10-ms")
		b.ReportMetric(cpu[i].Seconds()*1000/float64(len(took[i])), k.name+"-cpu-ms")
	}
	r, _ := do(cell("", "python", ownTimes))
	own, err := strconv.ParseFloat(strings.TrimSpace(r.Result.Displays[0].Forms["text/plain"]), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(own, "own-ms")
	b.ReportMetric(0, "ns/op")
}

// processorTime returns what this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &at); err != nil {
		b.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// kernel starts an ipykernel outside of a sandbox, executes a cell, and prints how long that
// took in milliseconds.
const kernel = `import jupyter_client.manager as jupyter, time
begin = time.perf_counter()
manager, client = jupyter.start_new_kernel(kernel_name='python3')
client.execute_interactive('x = 1', timeout=60)
print((time.perf_counter() - begin) * 1000)
manager.shutdown_kernel(now=True)`

// BenchmarkSession measures, in turn, what a session takes from Open to the result of its first
// cell of Python; an ipykernel on the host, without a sandbox, to the same; the start of a
// python3 on the host; and how long a cell that is cancelled takes to end. At the end there are
// eight idle sessions, whose memory it measures together with that of this process. Budgets:
// 200 ms for the end, 1 GB for the memory. It needs Debian's python3-ipykernel.
//
//	go test ./pkg/gate -run '^$' -bench Session -benchtime 8x
func BenchmarkSession(b *testing.B) {
	var ready, jupyter, python, ended []time.Duration
	var sessions []gate.Session
	g := make([]*gate.Gate, 8)
	for i := range g {
		g[i] = newGateAlone(b, gate.Options{})
	}
	for b.Loop() {
		at := len(ready) % len(g)
		if len(ready) >= len(g) {
			_, _ = sessions[at].Close()
			sessions = slices.Delete(sessions, at, at+1)
		}
		begin := time.Now()
		s := open(b, g[at], gate.SessionOptions{})
		if r, err := s.Do(b.Context(), cell("first", "python", "x = 1")); err != nil || !r.Result.Succeeded() {
			b.Fatalf("%+v, %v", r.Result, err)
		}
		ready = append(ready, time.Since(begin))
		sessions = slices.Insert(sessions, at, s)
		jupyter = append(jupyter, printed(b, "/usr/bin/python3", "-c", kernel))
		begin = time.Now()
		printed(b, "/usr/bin/python3", "-c", "print(0)")
		python = append(python, time.Since(begin))
		ended = append(ended, cancelled(b, s))
	}
	for name, took := range map[string][]time.Duration{"ready": ready, "ipykernel": jupyter, "python3": python, "cancelled": ended} {
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds()*1000, name+"-p50-ms")
	}
	b.ReportMetric(float64(proportional(b, os.TempDir(), os.Getpid()))/1024, strconv.Itoa(len(sessions))+"-sessions-MB")
	b.ReportMetric(0, "ns/op")
	for _, s := range sessions {
		_, _ = s.Close()
	}
}

// printed returns the milliseconds that a program prints.
func printed(b *testing.B, name string, args ...string) time.Duration {
	b.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	ms, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// cancelled returns how long a cell takes to end after it was cancelled.
func cancelled(b *testing.B, s gate.Session) time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var at time.Time
	time.AfterFunc(300*time.Millisecond, func() { at = time.Now(); cancel() })
	r, err := s.Do(ctx, cell("long", "python", "import time\ntime.sleep(600)"))
	took := time.Since(at)
	if err != nil || r.Result.Detail != "the run was interrupted" {
		b.Fatalf("%+v, %v", r.Result, err)
	}
	return took
}

// proportional is the memory in kB of processes that name dir, and of one more; shared pages
// are divided among those that share them.
func proportional(b *testing.B, dir string, pid int) (kb int) {
	b.Helper()
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if data, _ := os.ReadFile(path); !bytes.Contains(data, []byte(filepath.Dir(dir))) && path != fmt.Sprintf("/proc/%d/cmdline", pid) {
			continue
		}
		sums, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "smaps_rollup"))
		_, rest, _ := strings.Cut(string(sums), "\nPss:")
		var n int
		_, _ = fmt.Sscan(rest, &n)
		kb += n
	}
	return kb
}
