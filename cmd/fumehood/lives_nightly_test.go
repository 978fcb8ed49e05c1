// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/gate/order"
)

// lives returns how often a test of long lives repeats its work: whole times with
// FUMEHOOD_LIVES=all, which takes an hour.
func lives(whole, part int) int {
	if os.Getenv("FUMEHOOD_LIVES") == "all" {
		return whole
	}
	return part
}

// call calls a tool, waits for the answer, and returns it as text.
func (w wire) call(t *testing.T, id int, tool string, args map[string]any) string {
	t.Helper()
	w.request(t, id, tool, args)
	return fmt.Sprint(w.answer(t, id))
}

func (w wire) request(t *testing.T, id int, tool string, args map[string]any) {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	w.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, data))
}

// A livesStep is one call of a long session, and what its answer must contain.
type livesStep struct {
	tool, language, text, want string
}

var livesSteps = []livesStep{
	{"run_code", "python", "n = n + 1 if 'n' in globals() else 1\nn", "exit code 0"},
	{"run_code", "python", "print('line'); [n] * 100", "line"},
	{"run_code", "javascript", "var k = (globalThis.k || 0) + 1; k", "exit code 0"},
	{"run_code", "python", "1 / 0", "ZeroDivisionError"},
	{"run_code", "python", "import subprocess; subprocess.run(['true']).returncode", "exit code 0"},
	{"run", "", "echo hi >> grows; wc -l < grows", "exit code 0"},
	{"run", "", "curl https://evil.example", "network.client"},
	{"run_code", "javascript", "display({ k }); missing", "ReferenceError"},
}

func (s livesStep) args() map[string]any {
	if s.tool == "run" {
		return map[string]any{"command": s.text}
	}
	return map[string]any{"language": s.language, "code": s.text}
}

// A session that has as many calls as it may have is as quick at its end as at its beginning,
// and neither the server nor the sandbox has grown.
func TestNightlyMCPLivesLong(t *testing.T) {
	t.Parallel()
	d := newMCPDesk(t)
	w := newWire(t, d.command())
	n := lives(order.MaxProposals-1, 480) // one is the set-up's
	part := n / 8
	var took, used []time.Duration // of each call, and until it
	var server, sandbox, crashes int
	for id := 1; id <= n; id++ {
		step := livesSteps[id%len(livesSteps)]
		begin := time.Now()
		got := w.call(t, id, step.tool, step.args())
		if step.language == "javascript" && strings.Contains(got, "exit code 139") {
			crashes++ // docs/LIMITS.md: the next cell has a new interpreter
		} else if !strings.Contains(got, step.want) {
			t.Fatalf("call %d, %q: %s", id, step.text, got)
		}
		took, used = append(took, time.Since(begin)), append(used, processorTime(t, w.cmd.Process.Pid))
		if id == part {
			server, sandbox = resident(t, w.cmd.Process.Pid), d.sandboxMemory(t)
		}
	}
	early, late := (used[2*part]-used[part])/time.Duration(part), (used[n-1]-used[n-1-part])/time.Duration(part)
	t.Logf("%d calls: p50 %s at the beginning, %s at the end, of which %s and %s processor time; server %d kB, then %d; sandbox %d kB, then %d", n,
		median(took[part:2*part]), median(took[n-part:]), early, late, server, resident(t, w.cmd.Process.Pid), sandbox, d.sandboxMemory(t))
	if crashes > 1+n/1000 {
		t.Errorf("Node crashed %d times", crashes)
	}
	if late > early*3/2 {
		t.Errorf("a call took %s processor time at the beginning and %s at the end", early, late)
	}
	if now := resident(t, w.cmd.Process.Pid); now > server+n*10+32<<10 { // a report has 10 kB of each call
		t.Errorf("the server grew from %d to %d kB", server, now)
	}
	if now := d.sandboxMemory(t); now > sandbox+64<<10 {
		t.Errorf("the sandbox grew from %d to %d kB", sandbox, now)
	}
	w.in.Close()
	_ = w.cmd.Wait()
	d.verify(t, true)
	d.nothingLeft(t)
}

func median(took []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(took))[len(took)/2].Round(10 * time.Microsecond)
}

// processorTime is what a process has used, in ticks of 10 ms. Other work on the machine hardly
// changes it.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// sandboxMemory is the resident memory of the sandbox's processes in kB, each page as often as
// it is mapped.
func (d mcpDesk) sandboxMemory(t *testing.T) (kb int) {
	t.Helper()
	for pid := range jobtest.FindProcesses(d.dir) {
		kb += resident(t, pid)
	}
	return kb
}

// nothingLeft waits for the end of all processes, and looks for mounts, control groups,
// network namespaces and directories of sandboxes.
func (d mcpDesk) nothingLeft(t *testing.T) {
	t.Helper()
	jobtest.CheckNothingRuns(t, d.dir)
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), d.dir) {
		t.Errorf("mounts are left: %v\n%s", err, mounts)
	}
	known := []string{"ws", "policy", "fumehood.yml", "state", "audit.jsonl", "home", "report.json"}
	files, err := os.ReadDir(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(known, f.Name()) && !strings.HasPrefix(f.Name(), "audit-") && !strings.HasPrefix(f.Name(), "fumehood-artifacts") {
			t.Errorf("left: %s", f.Name())
		}
	}
}

// openFiles counts the open files of a process.
func openFiles(pid int) int {
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(files)
}

// groups returns the names of the sandbox's control groups.
func (d mcpDesk) groups() (names []string) {
	for pid := range jobtest.FindProcesses(d.dir) {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		names = append(names, sandboxGroup.FindAllString(string(data), -1)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var sandboxGroup = regexp.MustCompile(`fumehood-[0-9a-f]+`)

// One server has many sessions one after the other, each with a log that verifies.
func TestNightlyMCPLivesMany(t *testing.T) {
	t.Parallel()
	d := newMCPDesk(t)
	cmd := d.command()
	cmd.Args = slices.DeleteFunc(cmd.Args, func(arg string) bool { // no set-up, and a log for each session
		return slices.Contains([]string{"--audit", "audit.jsonl", "--config", "fumehood.yml"}, arg)
	})
	cmd.Args = append(cmd.Args, "--ready", "0") // no sandbox waits for the next session
	w := newWire(t, cmd)
	n := lives(1000, 10)
	var memory, files int
	for i := 1; i <= n; i++ {
		for j, step := range livesSteps[:4] {
			if got := w.call(t, 10*i+j, step.tool, step.args()); !strings.Contains(got, step.want) {
				t.Fatalf("session %d, %q: %s", i, step.text, got)
			}
		}
		groups := d.groups()
		if got := w.call(t, 10*i+9, "end_session", nil); !strings.Contains(got, "the session has ended") {
			t.Fatalf("session %d: %s", i, got)
		}
		if left := jobtest.FindProcesses(d.dir); len(left) > 0 {
			t.Errorf("after session %d: processes %v", i, left)
		}
		for _, group := range groups {
			if left, _ := filepath.Glob("/sys/fs/cgroup/*/" + group); len(left) > 0 || len(groups) != 1 {
				t.Errorf("after session %d: control groups %v of %v", i, left, groups)
			}
		}
		if i%100 == 0 {
			t.Logf("%d sessions: %d kB", i, resident(t, w.cmd.Process.Pid))
		}
		if i == min(n/2, 50) {
			memory, files = resident(t, w.cmd.Process.Pid), openFiles(w.cmd.Process.Pid)
		}
	}
	now, open := resident(t, w.cmd.Process.Pid), openFiles(w.cmd.Process.Pid)
	t.Logf("%d sessions: %d kB, then %d; %d files, then %d", n, memory, now, files, open)
	if now > memory+48<<10 || open > files {
		t.Errorf("the server grew from %d to %d kB, and from %d to %d open files", memory, now, files, open)
	}
	w.in.Close()
	_ = w.cmd.Wait()
	logs, _ := filepath.Glob(filepath.Join(d.dir, "state/fumehood/*/audit.jsonl"))
	if len(logs) != n {
		t.Errorf("%d logs", len(logs))
	}
	for _, log := range logs {
		verify := exec.Command(os.Args[0], "verify", log, "--untrusted-key")
		verify.Env = d.env
		if out, err := verify.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	d.nothingLeft(t)
}

// Sixteen servers at once end in every way while a cell runs.
func TestNightlyMCPLivesTogether(t *testing.T) {
	t.Parallel()
	ends := []struct {
		name   string
		do     func(w wire)
		sealed bool
	}{
		{"end of input", func(w wire) { w.in.Close() }, true},
		{"SIGTERM", func(w wire) { _ = w.cmd.Process.Signal(syscall.SIGTERM) }, true},
		{"SIGKILL", func(w wire) { _ = w.cmd.Process.Kill() }, false},
		{"cancelled call", func(w wire) {
			w.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
			if got := w.call(t, 3, "run_code", map[string]any{"language": "python", "code": "x"}); !strings.Contains(got, "42") {
				t.Errorf("the state after a cancelled call: %s", got)
			}
			w.in.Close()
		}, true},
	}
	var all sync.WaitGroup
	for i := range 16 {
		end := ends[i%len(ends)]
		all.Go(func() {
			d := newMCPDesk(t)
			w := newWire(t, d.command())
			w.call(t, 1, "run_code", map[string]any{"language": "python", "code": "x = 42"})
			w.request(t, 2, "run_code", map[string]any{"language": "python", "code": "open('began', 'w')\nimport time\ntime.sleep(600)"})
			jobtest.WaitUntil(t, "the cell", func() bool { return d.starts() == 3 })
			time.Sleep(300 * time.Millisecond)
			end.do(w)
			_ = w.cmd.Wait()
			d.verify(t, end.sealed)
			jobtest.CheckNothingRuns(t, d.dir)
			if end.sealed {
				d.nothingLeft(t)
			}
		})
	}
	all.Wait()
}

// starts is how many commands the log says were started.
func (d mcpDesk) starts() int {
	data, _ := os.ReadFile(filepath.Join(d.dir, "audit.jsonl"))
	return strings.Count(string(data), `"kind":"start"`)
}
