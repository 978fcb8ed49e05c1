// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// poolOptions returns options with a Pool of the size, whose files are in a directory of
// their own. When the test ends, nothing of its sandboxes may be left.
func poolOptions(t testing.TB, size int) (Options, *recorder) {
	t.Helper()
	o, rec := gatedOptions(t)
	rec.reset(allow)
	o.StateDir, o.Pool = t.TempDir(), NewPool(size)
	t.Cleanup(func() {
		if err := o.Pool.Close(); err != nil {
			t.Error(err)
		}
		checkNoneLeft(t, o.StateDir)
	})
	return o, rec
}

// checkNoneLeft checks that no process names dir, and that nothing is in it.
func checkNoneLeft(t testing.TB, dir string) {
	t.Helper()
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte(dir)) {
			t.Errorf("a process is left: %q", data)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the state directory: %v, %v", left, err)
	}
}

// filled waits until size sandboxes wait, and returns them.
func filled(t testing.TB, p *Pool, size int) []*waitingSandbox {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		p.mu.Lock()
		list := append([]*waitingSandbox{}, p.list...)
		p.mu.Unlock()
		ready := 0
		for _, w := range list {
			if w.isStarted() && w.err != nil {
				t.Fatal(w.err)
			}
			if w.isStarted() {
				ready++
			}
		}
		if ready == size {
			return list
		}
	}
	t.Fatal("no sandbox waits")
	return nil
}

func (s *instance) cgroupDirs() (dirs []string) {
	for _, dir := range s.cgroup.dirs {
		dirs = append(dirs, dir)
	}
	return dirs
}

// THREATS 70: a sandbox that waited is like one that was started for its command, and what one
// Runner leaves is not in the sandbox of the next.
func TestPool(t *testing.T) {
	o, rec := poolOptions(t, 1)
	var starts []time.Duration
	ended := 0
	o.Started, o.Ended = func(took time.Duration, err error) { starts = append(starts, took) }, func() { ended++ }
	o.Pool.Keep(o)
	list := filled(t, o.Pool, 1)
	if err := os.WriteFile(filepath.Join(o.Workspace, "later"), []byte("written while it waited\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		want := list[0].s
		rec.reset(allow)
		o.Env, o.Artifacts = map[string]string{"ROUND": fmt.Sprint(i)}, t.TempDir()
		r := testRunner(t, o)
		result := runText(t, r, "cat later; echo $ROUND; id -u; ls -A . /tmp /dev/shm ~; grep -c . /proc/[0-9]*/comm | wc -l; touch left /tmp/left /dev/shm/left ~/left; setsid sleep 1000 &")
		if r.current != want {
			t.Error("the waiting sandbox was not used")
		}
		const files = "1000\n.:\nlater\n\n/dev/shm:\n\n/home/fumehood:\n\n/tmp:\n"
		if out := string(result.Stdout.Head); !result.Succeeded() || !result.NewSandbox || !strings.HasPrefix(out, fmt.Sprintf("written while it waited\n%d\n%s", i, files)) || !result.Observations.Complete {
			t.Errorf("%+v\n%s", result, out)
		}
		if starts, events := len(starts), len(rec.kind(proposal.EventExec)); starts != i+1 || events == 0 {
			t.Errorf("%d starts and %d programs are reported", starts, events)
		}
		if result := runText(t, r, "ls left /tmp/left ~/left"); !result.Succeeded() || result.NewSandbox {
			t.Errorf("the next command has another sandbox: %+v", result)
		}
		list = filled(t, o.Pool, 1)
		if err := r.Close(); err != nil || ended != i+1 {
			t.Errorf("%v, %d ended", err, ended)
		}
		for _, dir := range want.cgroupDirs() {
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a cgroup is left: %v", err)
			}
		}
	}
}

// Of many claims at once, each gets a sandbox of its own, or none.
func TestPoolManyClaims(t *testing.T) {
	t.Parallel()
	o, _ := poolOptions(t, 2)
	o.Pool.Keep(o)
	filled(t, o.Pool, 2)
	var mu sync.Mutex
	var all sync.WaitGroup
	seen := map[string]bool{}
	for range 100 {
		all.Go(func() {
			s := o.Pool.claimSandbox(t.Context(), o)
			if s == nil {
				return
			}
			mu.Lock()
			if seen[s.id] {
				t.Error("a sandbox was claimed twice")
			}
			seen[s.id] = true
			mu.Unlock()
			if err := s.close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(seen) < 2 {
		t.Errorf("%d of 2 waiting sandboxes were claimed", len(seen))
	}
	for i := range 3 { // while the pool is filled again, and without one that waits
		if result := runText(t, testRunner(t, o), "echo ok"); !result.Succeeded() || !result.NewSandbox {
			t.Errorf("%d: %+v", i, result)
		}
	}
}

// A waiting sandbox that died, does not answer, is old, shows something else, or in which
// something happened, is not used.
func TestPoolRefuses(t *testing.T) {
	tests := map[string]func(t *testing.T, o *Options, w *waitingSandbox){
		"killed": func(t *testing.T, _ *Options, w *waitingSandbox) {
			if err := w.s.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-w.s.gone
		},
		"stopped": func(t *testing.T, _ *Options, w *waitingSandbox) {
			if err := w.s.cgroup.eachProcess(func(pid string) error { return signalText(pid, unix.SIGSTOP) }); err != nil {
				t.Fatal(err)
			}
		},
		"old": func(t *testing.T, o *Options, w *waitingSandbox) { o.Pool.replaceExpired(w) },
		"a program": func(t *testing.T, _ *Options, w *waitingSandbox) {
			started(t, w.s, "/usr/bin/sleep", "1000")
		},
		"a program that ended": func(t *testing.T, _ *Options, w *waitingSandbox) {
			started(t, w.s, "/bin/bash", "-c", "/usr/bin/true")
			for end := time.Now().Add(time.Minute); !w.s.owner.early.Load() && time.Now().Before(end); time.Sleep(time.Millisecond) {
			}
		},
		"the kernel's gate": func(t *testing.T, _ *Options, w *waitingSandbox) {
			if err := w.s.gate.monitor.Close(); err != nil {
				t.Log(err)
			}
		},
		"another workspace": func(t *testing.T, o *Options, _ *waitingSandbox) { o.Workspace = t.TempDir() },
		"a workspace that was replaced": func(t *testing.T, o *Options, _ *waitingSandbox) {
			if err := errors.Join(os.Rename(o.Workspace, o.Workspace+".old"), os.Mkdir(o.Workspace, 0o755)); err != nil {
				t.Fatal(err)
			}
		},
		"a workspace of another user": func(t *testing.T, o *Options, _ *waitingSandbox) {
			if err := os.Chown(o.Workspace, 1234, 1234); err != nil {
				t.Fatal(err)
			}
		},
		"other limits": func(t *testing.T, o *Options, _ *waitingSandbox) { o.Limits.Disk += proposal.MiB },
		"other files":  func(t *testing.T, o *Options, _ *waitingSandbox) { o.Files = map[string][]byte{"/etc/x": nil} },
	}
	for _, name := range sample.EveryNthKey(t, tests, 4, 11) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _ := poolOptions(t, 1)
			o.Pool.Keep(o)
			w := filled(t, o.Pool, 1)[0]
			test(t, &o, w)
			r := testRunner(t, o)
			result := runText(t, r, "stat -c %u .")
			if r.current == w.s || !result.Succeeded() || !result.NewSandbox {
				t.Errorf("the sandbox was used: %+v", result)
			}
			filled(t, o.Pool, 1)
		})
	}
}

func signalText(pid string, signal unix.Signal) error {
	var n int
	if _, err := fmt.Sscan(pid, &n); err != nil {
		return err
	}
	return unix.Kill(n, signal)
}

// started starts a program in a sandbox that waits, as only a defect could.
func started(t *testing.T, s *instance, argv ...string) {
	t.Helper()
	conn, err := control.Dial(s.controlSocketPath())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, err := conn.Exec(s.id, control.Process{Argv: argv, Dir: "/", UID: 1000, GID: 1000, Stdin: null, Stdout: null, Stderr: null}); err != nil {
		t.Fatal(err)
	}
}

// Nothing starts from an installation that was changed, although a sandbox waits.
func TestPoolVerifies(t *testing.T) {
	t.Parallel()
	o, _ := poolOptions(t, 1)
	o.Pool.Keep(o)
	filled(t, o.Pool, 1)
	o.Verify = func() error { return errors.New("changed") }
	if _, err := testRunner(t, o).Run(t.Context(), Execution{ID: "x", Text: "true", Grant: proposal.Grant{Limits: testLimits()}}); err == nil || err.Error() != "changed" {
		t.Error(err)
	}
}

// A sandbox with a network or without a monitor does not come from a Pool, and a Pool that was
// closed while it started sandboxes leaves nothing: see poolOptions.
func TestPoolClosed(t *testing.T) {
	t.Parallel()
	o, _ := poolOptions(t, 3)
	for _, other := range []Options{{Netns: "/proc/self/ns/net"}, {UnwatchedUnsafe: true}} {
		o.Pool.Keep(other)
	}
	if len(o.Pool.list) > 0 {
		t.Error("a sandbox that cannot wait is started")
	}
	o.Pool.Keep(o)
	time.Sleep(30 * time.Millisecond)
	if err := o.Pool.Close(); err != nil {
		t.Error(err)
	}
	checkNoneLeft(t, o.StateDir)
	o.Pool.Keep(o)
	if result := runText(t, testRunner(t, o), "true"); !result.Succeeded() {
		t.Errorf("%+v", result)
	}
}

// BenchmarkClaim measures how long a Runner takes to get its sandbox, from New to the result of
// its first command, with a Pool and without one, in turn. Budget: 5 ms for the claim. The
// memory is that of idle sandboxes, each page divided among the processes that have it.
//
//	go test ./internal/sandbox -run '^$' -bench Claim -benchtime 50x
func BenchmarkClaim(b *testing.B) {
	o, _ := poolOptions(b, 1)
	var claims, pooled, cold []time.Duration
	x := Execution{ID: "x", Argv: []string{"/bin/true"}, Grant: proposal.Grant{Limits: testLimits()}}
	one := func(o Options) time.Duration {
		begin := time.Now()
		r, err := New(o)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Run(b.Context(), x); err != nil {
			b.Fatal(err)
		}
		took := time.Since(begin)
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		return took
	}
	o.Pool.Keep(o)
	for b.Loop() {
		filled(b, o.Pool, 1)
		time.Sleep(100 * time.Millisecond)
		o.Started = func(took time.Duration, _ error) { claims = append(claims, took) }
		pooled = append(pooled, one(o))
		filled(b, o.Pool, 1)
		without := o
		without.Pool, without.Started = nil, nil
		time.Sleep(100 * time.Millisecond)
		cold = append(cold, one(without))
	}
	for name, took := range map[string][]time.Duration{"claim": claims, "pooled": pooled, "cold": cold} {
		b.ReportMetric(median(took), name+"-p50-ms")
		b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, name+"-p95-ms")
	}
	filled(b, o.Pool, 1)
	b.ReportMetric(float64(proportionalKB(o.StateDir))/1024, "idle-MB")
	b.ReportMetric(0, "ns/op")
}

// proportionalKB is the memory of the processes that name dir.
func proportionalKB(dir string) (kb int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if data, _ := os.ReadFile(path); !bytes.Contains(data, []byte(dir)) {
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
