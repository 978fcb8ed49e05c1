// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Code keeps its state, with every decision and record that other commands have.
func TestE2ECells(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	var got []string
	for i, p := range []proposal.Proposal{
		cell("", "python", "x = 40\nprint('hello')"),
		cell("", "python", "x + 2"),
		cell("", "python", "1 / 0"),
		{Language: "python", Code: "x", Context: "other"},
		{Run: "echo between; cat /proc/1/comm"},
		cell("", "python", "import subprocess; subprocess.run(['echo', 'child']).returncode"),
		cell("", "python", "open('made', 'w').write('by a cell'); x"),
		{Run: "cat made"},
		cell("", "javascript", "const a = [1, 2]; console.log(a.length)"),
		cell("", "javascript", "a.concat(3)"),
		cell("", "javascript", "console.log(a.length + 5)"),
		cell("", "javascript", "console.log('again', a.length); throw new TypeError('x')"),
		cell("", "python", "import os; os.system('curl https://x.example')"),
		cell("", "python", "x * 2"),
	} {
		p.ID = fmt.Sprint("p", i)
		got = append(got, described(do(t, s, p)))
	}
	want := []string{
		"exit code 0; hello", "exit code 0; = 42", "exit code 1; ZeroDivisionError", "exit code 1; NameError", "exit code 0; between\ninit",
		"exit code 0; child; = 0", "exit code 0; = 40", "exit code 0; by a cell", "exit code 0; 2", "exit code 0; = [ 1, 2, 3 ]",
		"exit code 0; 7", "exit code 1; again 2; TypeError", "", "exit code 0; = 80",
	}
	want[12] = got[12]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	t.Log(got[12])
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
	for _, r := range report.Records {
		if r.Result != nil && !r.Result.Observations.Complete {
			t.Errorf("%s: what it did is not completely recorded", r.Proposal.ID)
		}
	}
}

// An interpreter that another context's code has woken is stopped again when that ends, and starts no program.
func TestE2EWokenCell(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	for i, step := range []struct{ context, code, want string }{
		{"a", `import os, subprocess, threading, time
def tick():
    while True:
        open('/tmp/tick', 'a').write('x')
        if os.path.exists('/tmp/go'):
            try: subprocess.run(['touch', '/tmp/started'])
            except OSError: pass
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
open('/tmp/pid', 'w').write(str(os.getpid()))`, "exit code 0; = "},
		{"b", "import os, time\nos.kill(int(open('/tmp/pid').read()), 18)\ntime.sleep(0.3)\nopen('/tmp/go', 'w').close()\nticks = os.path.getsize('/tmp/tick')",
			"exit code 0"},
		{"b", "os.path.getsize('/tmp/tick') - ticks < 10", "exit code 0; = True"},
		{"b", "1", "exit code 0; = 1"},
		{"b", "os.path.exists('/tmp/started')", "exit code 0; = False"},
	} {
		p := proposal.Proposal{ID: fmt.Sprint("woken", i), Language: "python", Code: step.code, Context: step.context}
		if got := described(do(t, s, p)); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: %s, want %s", step.code, got, step.want)
		}
		time.Sleep(500 * time.Millisecond)
	}
	if _, err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Contexts of one language run beside each other, each with its own process, variables and directory. What an
// interpreter has started goes on in its next cell, and what has left it ends.
func TestE2ECellsBesideEachOther(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	in := func(id, language, context, code string) proposal.Proposal {
		return proposal.Proposal{ID: id, Language: language, Code: code, Context: context}
	}
	for i, language := range []string{"python", "python", "javascript", "javascript"} { // they start
		do(t, s, in(fmt.Sprint("start", i), language, fmt.Sprint("c", i), "1"))
	}
	var cells sync.WaitGroup
	begin := time.Now()
	for i, language := range []string{"python", "python", "javascript", "javascript"} {
		code := "import os, time\nos.chdir('/tmp')\ntime.sleep(2)\nx = %d\nx"
		if language == "javascript" {
			code = "x = %d; await new Promise(r => setTimeout(r, 2000)); x"
		}
		cells.Go(func() {
			p := in(fmt.Sprint("long", i), language, fmt.Sprint("c", i), fmt.Sprintf(code, i))
			if r, err := s.Do(t.Context(), p); err != nil || described(r) != fmt.Sprint("exit code 0; = ", i) {
				t.Errorf("%s: %s, %v", p.ID, described(r), err)
			}
		})
	}
	cells.Wait()
	if took := time.Since(begin); took > 6*time.Second { // one after the other: 8 s
		t.Errorf("four cells took %s", took)
	}
	for i, step := range []struct{ context, code, want string }{
		{"c0", "import subprocess\nchild = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\nchild.poll()", "exit code 0"},
		{"c1", "import os\nos.getcwd(), x", "exit code 0; = ('/tmp', 1)"},
		{"new", "import os\nos.getcwd()", "exit code 0; = '/workspace'"},
		{"c0", "child.communicate(b'echoed', timeout=20)[0]", "exit code 0; = b'echoed'"},
		{"c0", "import subprocess\nfor i in range(30): subprocess.run(['true'])\nx", "exit code 0; = 0"},
		// a chain of processes, each of which leaves its parent; the first has left when the cell ends
		{"c1", "import os\nfirst = os.fork()\nif first == 0:\n  os.setsid()\n  while True:\n    try:\n      if os.fork(): os._exit(0)\n    except OSError: pass\nos.waitpid(first, 0)[1]", "exit code 0; = 0"},
		// init, three processes of Python and two times two of Node are left
		{"c1", "import glob\ndef state(p):\n  try: return open(p).read().split(') ')[-1][0]\n  except OSError: return 'X'\nsum(state(p) not in 'ZX' for p in glob.glob('/proc/[0-9]*/stat'))", "exit code 0; = 8"},
	} {
		if got := described(do(t, s, in(fmt.Sprint("after", i), "python", step.context, step.code))); got != step.want {
			t.Errorf("%s: %s, want %s", step.code, got, step.want)
		}
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
}

// A cell that starts programs goes on while files are read and other commands end, for which everything is stopped.
func TestE2ECellStartsProgramsWhileStopped(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	done := make(chan string)
	go func() {
		r, err := s.Do(t.Context(), cell("long", "python", "import subprocess\nfor i in range(60): subprocess.run(['cat', '/dev/null'], check=True)\n'all'"))
		done <- fmt.Sprint(described(r), err)
	}()
	for i := 0; ; i++ {
		select {
		case got := <-done:
			if got != "exit code 0; = 'all'<nil>" || i == 0 {
				t.Errorf("after %d calls: %s", i, got)
			}
			report, err := s.Close()
			if err != nil {
				t.Fatal(err)
			}
			checkLog(t, report, true)
			return
		default:
		}
		if _, err := s.List(t.Context(), "*"); err != nil {
			t.Fatal(err)
		}
		if i%4 == 0 {
			do(t, s, proposal.Proposal{ID: fmt.Sprint("run", i), Run: "true"})
		}
	}
}

// A cell that takes too long is interrupted and keeps its state; an interpreter that ends, or
// does not stop, loses it. Nothing of that ends the session.
func TestE2ECellEnds(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	slow := cell("slow", "python", "x = 1\nimport time\ntime.sleep(100)")
	slow.Timeout = proposal.Duration(time.Second)
	stuck := cell("stuck", "python", "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass")
	stuck.Timeout = proposal.Duration(time.Second)
	for _, step := range []struct {
		p    proposal.Proposal
		want string
	}{
		{slow, "timed out"},
		{cell("kept", "python", "x"), "exit code 0; = 1"},
		{cell("dies", "python", "import os; os._exit(7)"), "exit code 7"},
		{cell("lost", "python", "x"), "exit code 1; NameError"},
		{cell("again", "python", "x = 2"), "exit code 0"},
		{stuck, "timed out"},
		{cell("gone", "python", "x"), "exit code 1; NameError"},
		{cell("killed", "python", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), "SIGKILL"},
		{cell("on", "python", "print(1)"), "exit code 0; 1"},
	} {
		if got := described(do(t, s, step.p)); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: %s, want %s", step.p.ID, got, step.want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	r, err := s.Do(ctx, cell("cancelled", "python", "y = 1\nimport time\ntime.sleep(100)"))
	if err != nil && !errors.Is(err, context.DeadlineExceeded) || r.Result == nil || r.Result.Detail != "the run was interrupted" {
		t.Errorf("%+v, %v", r.Result, err)
	}
	if got := described(do(t, s, cell("after", "python", "y"))); got != "exit code 0; = 1" {
		t.Errorf("after a cancelled cell: %s", got)
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
}

// headless is a program whose first thread ends while another writes, which gVisor shows as a
// zombie.
const headless = `import ctypes, threading, time
def beat():
    while True:
        open('beat', 'a').write('.')
        time.sleep(0.01)
threading.Thread(target=beat).start()
ctypes.CDLL(None).syscall(60, 0)`

// What a command leaves behind ends with it, also beside interpreters, which live on.
func TestE2ECellsSurviveSweep(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	if _, err := s.Put(t.Context(), "headless.py", []byte(headless)); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		p    proposal.Proposal
		left int
		want string
	}{
		{cell("", "python", "x = 40"), 0, "exit code 0"},
		{cell("", "python", "import subprocess\nchild = subprocess.Popen(['sleep', '600'])"), 0, "exit code 0"},
		{proposal.Proposal{Run: "python3 headless.py & until [ -s beat ]; do sleep 0.05; done; sleep 600 & exit 3"}, 2, "exit code 3"},
		{proposal.Proposal{Run: "cat beat > first; sleep 0.3; cmp first beat && echo quiet"}, 0, "exit code 0; quiet"},
		{cell("", "python", "child.poll(), x"), 0, "exit code 0; = (None, 40)"},
		{cell("", "python", "child.kill(); child.wait()"), 0, "exit code 0; = -9"},
	} {
		step.p.ID = fmt.Sprint("p", i)
		r := do(t, s, step.p)
		if got := described(r); got != step.want || r.Result.Leftover != step.left {
			t.Errorf("%s: %s, %d left; want %s, %d", step.p.ID, got, r.Result.Leftover, step.want, step.left)
		}
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
}

// Variables of a cell are policy's to decide, and are there only while the cell runs, even if
// it is the one that starts the interpreter.
func TestE2ECellEnv(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	with := func(p proposal.Proposal, name, value string) proposal.Proposal {
		p.Env = map[string]string{name: value}
		return p
	}
	var got []string
	for i, p := range []proposal.Proposal{
		with(cell("", "python", "import os, subprocess\nsubprocess.run(['printenv', 'SEED'])\nos.environ['SEED']"), "SEED", "true"),
		cell("", "python", "os.environ.get('SEED')"),
		with(cell("", "python", "os.environ['SEED'] = 'changed'; 1 / 0"), "SEED", "1"),
		cell("", "python", "str(os.environ.get('SEED'))"),
		with(cell("", "python", "1"), "LD_PRELOAD", "/workspace/x.so"),
		with(cell("", "javascript", "process.env.SEED"), "SEED", "true"),
		cell("", "javascript", "String(process.env.SEED)"),
		with(cell("", "javascript", "process.env.HOME"), "HOME", "/tmp"),
	} {
		p.ID = fmt.Sprint("p", i)
		got = append(got, described(do(t, s, p)))
	}
	want := []string{"exit code 0; true; = 'true'", "exit code 0", "exit code 1; ZeroDivisionError", "exit code 0; = 'None'", "deny [code.run env.name]",
		"exit code 0; = 'true'", "exit code 0; = 'undefined'", "deny [code.run env.home]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
}

// What a cell shows comes while it runs, in order.
func TestE2EOutputComes(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	defer s.Close()
	var code arrivals
	do(t, s, cell("start", "python", "1"))
	if _, err := s.Do(code.in(t.Context()), cell("cell", "python", "import time\nprint('a')\ndisplay('shown')\ntime.sleep(1)\nprint('b')\n6*7")); err != nil {
		t.Fatal(err)
	}
	if got, want := code.text(""), "a\n'shown'b\n42"; got != want {
		t.Errorf("came %q, want %q", got, want)
	}
	if first, last := code.list[0].at, code.list[len(code.list)-1].at; last-first < 500*time.Millisecond {
		t.Errorf("all came at the end: %+v", code.list)
	}
}

// Libraries of Debian's packages find their settings in /etc, where nothing of the host's own is.
func TestE2ELibrariesHaveTheirSettings(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	defer s.Close()
	for i, step := range []struct{ code, want string }{
		{"import matplotlib.pyplot as plt, matplotlib as mpl\nplt.plot([1, 2])\nmpl.matplotlib_fname()", "exit code 0; = '/etc/matplotlibrc'; = <Figure size 640x480 with 1 Axes>"},
		{"import pandas as pd\nax = pd.DataFrame({'a': [1, 2]}).plot()\nax.figure.savefig('a.png')\nopen('a.png', 'rb').read(4)", "exit code 0; = b'\\x89PNG'; = <Figure size 640x480 with 1 Axes>"},
		{"import mimetypes\nmimetypes.guess_type('a.webmanifest')", "exit code 0; = ('application/manifest+json', None)"},
		{"import ssl\nlen(ssl.create_default_context().get_ca_certs()) > 10", "exit code 0; = True"},
		{"import socket\nsocket.getservbyname('https'), socket.getprotobyname('udp')", "exit code 0; = (443, 17)"},
		{"import os\nsorted({'shadow', 'gshadow', 'machine-id', 'sudoers', 'mysql', 'apt', 'ssh', 'fstab', 'systemd', 'pam.d', 'cron.d'} & set(os.listdir('/etc')))", "exit code 0; = []"},
		{"sorted(os.listdir('/etc/ssl'))", "exit code 0; = ['certs', 'openssl.cnf']"},
	} {
		r := do(t, s, cell(fmt.Sprint("p", i), "python", step.code))
		if got := described(r); got != step.want {
			t.Errorf("%q: %s; want %s\n%s", step.code, got, step.want, r.Result.Stderr.Head)
		}
	}
}
