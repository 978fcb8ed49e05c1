// SPDX-License-Identifier: Apache-2.0

//go:build e2e || nightly

package interpreter

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var languages = []Language{Python, Node}

// words are pieces of code with the same meaning in each language.
var words = map[Language]map[string]string{
	Python: {
		"set": "x = 42", "get": "print(x)", "loop": "while True: pass", "sleep": "import time\ntime.sleep(30)",
		"late": "import subprocess\np = subprocess.Popen(['sh', '-c', 'until [ -e go ]; do sleep 0.01; done; echo after; touch written'])", "wait": "open('go', 'w').close()\np.wait()",
		"long": "for n in range(20000): print('line', n)", "background": "import subprocess\np = subprocess.Popen(['sh', '-c', 'yes'])",
		"syntax": "a = 1\nb = = 2", "where": "line 2", "die": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
	},
	Node: {
		"set": "var x = 42", "get": "console.log(x)", "loop": "for (;;) {}", "sleep": "await new Promise((r) => setTimeout(r, 30000))",
		"late": "var p = require('child_process').spawn('sh', ['-c', 'until [ -e go ]; do sleep 0.01; done; echo after; touch written'], {stdio: 'inherit'}); 0", "wait": "const over = new Promise((r) => p.on('exit', r)); require('fs').writeFileSync('go', ''); await over",
		"long":       "for (let n = 0; n < 20000; n++) process.stdout.write('line ' + n + '\\n')",
		"background": "const q = require('child_process').spawn('sh', ['-c', 'yes'], {stdio: 'inherit'}); 0",
		"syntax":     "let a = 1\nlet b = = 2", "where": ":2:", "die": "process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})",
	},
}

func each(t *testing.T, test func(t *testing.T, l Language, word map[string]string)) {
	for _, l := range languages {
		t.Run(string(l), func(t *testing.T) { t.Parallel(); test(t, l, words[l]) })
	}
}

// A session is an interpreter whose program runs on this host.
type session struct {
	*Interpreter
	pid    int
	work   string // its directory
	events []Event
}

// newSession starts the program of a language with real pipes. command replaces the
// interpreter's name if it is not empty.
func newSession(t testing.TB, language Language, command string, change ...func(*Options)) *session {
	t.Helper()
	program, found := ProgramOf(language)
	if !found {
		t.Fatalf("no program for %s", language)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, program.File)
	if err := os.WriteFile(path, program.Text, 0o644); err != nil {
		t.Fatal(err)
	}
	argv := program.Argv(path)
	if command != "" {
		argv[0] = command
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.Dir = work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	inside, in := pipe(t)
	out, outside := pipe(t)
	cmd.Stdin, cmd.Stdout = inside, outside
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inside.Close()
	outside.Close()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	o := Options{Language: language, Interrupt: func() error { return cmd.Process.Signal(syscall.SIGINT) },
		Status: func() string { <-ended; return cmd.ProcessState.String() }}
	for _, c := range change {
		c(&o)
	}
	i, err := Start(timeout(t, 20*time.Second), in, out, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		i.Close()
		endSession(cmd.Process.Pid)
		<-ended
	})
	return &session{Interpreter: i, pid: cmd.Process.Pid, work: work}
}

// endSession ends all processes of a session, which what cells start does not leave.
func endSession(id int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, _ := os.ReadFile(path)
		fields := strings.Fields(string(data[1+bytes.LastIndexByte(data, ')'):]))
		if len(fields) > 3 && fields[3] == strconv.Itoa(id) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// try runs a cell and keeps its events.
func (s *session) try(t testing.TB, code string, d time.Duration) (Outcome, error) {
	t.Helper()
	s.events = nil
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return s.Execute(ctx, Cell{Code: code}, func(e Event) { s.events = append(s.events, e) })
}

// run is try for a cell that must end.
func (s *session) run(t testing.TB, code string) Outcome {
	t.Helper()
	outcome, err := s.try(t, code, 20*time.Second)
	if err != nil {
		t.Fatalf("%q: %v", code, err)
	}
	return outcome
}

// text is what the last cell showed of a kind.
func (s *session) text(kind Kind) (all string) {
	for _, e := range s.events {
		if e.Kind == kind {
			all += e.Text + e.Data["text/plain"]
		}
	}
	return all
}

// checkGrowth checks that many cells, with results and errors, leave no memory
// behind: neither in the interpreter nor here.
func checkGrowth(t *testing.T, rounds int) {
	cells := map[Language][]string{
		Python: {"x = 1", "x + 1", "def f(): return [x] * 100\nf()", "1 / 0", "print('line')"},
		Node:   {"var x = 1", "x + 1", "const o = { x }; o", "missing", "console.log('line')"},
	}
	each(t, func(t *testing.T, l Language, _ map[string]string) {
		s := newSession(t, l, "")
		var early, late int
		for n := range rounds {
			s.run(t, cells[l][n%len(cells[l])])
			if n == rounds/4 {
				early = memory(s.pid)
			}
		}
		late = memory(s.pid)
		t.Logf("%d KB after %d cells, %d KB after %d", early, rounds/4, late, rounds)
		if early == 0 || late-early > 16<<10 {
			t.Errorf("from %d to %d KB", early, late)
		}
		if n := runtime.NumGoroutine(); n > 60 {
			t.Errorf("%d goroutines", n)
		}
	})
}

// memory is the resident memory in KB of a process and its children.
func memory(pid int) (total int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS:") {
			total, _ = strconv.Atoi(strings.Fields(line)[1])
		}
	}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	for _, child := range strings.Fields(string(children)) {
		n, _ := strconv.Atoi(child)
		total += memory(n)
	}
	return total
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}
