// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func cell(id, language, code string) proposal.Proposal {
	return proposal.Proposal{ID: id, Language: language, Code: code, Context: "main"}
}

// described is what a cell did, for people.
func described(r proposal.Record) string {
	if r.Result == nil {
		return fmt.Sprintf("%v %v", r.Decision.Effect, r.Decision.Rules)
	}
	words := []string{r.Result.Outcome()}
	if out := strings.TrimSpace(string(r.Result.Stdout.Head)); out != "" {
		words = append(words, out)
	}
	for _, d := range r.Result.Displays {
		words = append(words, "= "+d.Forms["text/plain"])
	}
	if e := r.Result.Exception; e != nil {
		words = append(words, e.Name)
	}
	return strings.Join(words, "; ")
}

// Code keeps its state, with every decision and record that other commands have.
func TestCells(t *testing.T) {
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

// A cell that takes too long is interrupted and keeps its state; an interpreter that ends, or
// does not stop, loses it. Nothing of that ends the session.
func TestCellEnds(t *testing.T) {
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
func TestCellsSurviveSweep(t *testing.T) {
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
func TestCellEnv(t *testing.T) {
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
		"exit code 0; = 'true'", "exit code 0; = 'undefined'", "exit code 0; = '/home/fumehood'"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
}

// Code of a shell's context is decided as the end of the script that begins with the earlier
// cells, and runs in the same shell. What a denied cell would have left is not there.
func TestShellsKeepState(t *testing.T) {
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	for i, step := range []struct{ language, text, want string }{
		{"bash", "greet() { echo \"$1 mine\"; }; x=1; cd /tmp; set -f", "exit code 0"},
		{"bash", "greet $x; pwd; echo $-", "exit code 0; 1 mine\n/tmp\nfhpB"},
		{"bash", "false", "exit code 1"},
		{"bash", "echo $?; printf 'a\\0b' | wc -c; exec 3>made; echo to three >&3", "exit code 0; 1\n3"},
		{"bash", "cat made; readonly r=1; break; return; echo on", "exit code 0; to three\non"},
		{"sh", "echo ${x-unset}; pwd", "exit code 0; unset\n/workspace"},
		{"bash", "curl https://x.example; y=1", "deny"},
		{"bash", "echo ${y-unset} $r", "exit code 0; unset 1"},
		{"bash", "cat <<EOF\n$x\nEOF", "exit code 0; 1"},
		{"bash", "sleep 600 & echo started", "exit code 0; started"},
		{"bash", "exit 3", "exit code 3"},
		{"bash", "greet $x", "deny"},
		{"bash", "echo ${x-unset}; pwd", "exit code 0; unset\n/workspace"},
	} {
		r := do(t, s, cell(fmt.Sprint("p", i), step.language, step.text))
		if got := described(r); !strings.HasPrefix(got, step.want) {
			t.Errorf("%q: %s, want %s", step.text, got, step.want)
		}
		if r.Result != nil {
			t.Logf("%q: %s %d left %q", step.text, r.Result.Detail, r.Result.Leftover, r.Result.Stderr.Head)
		}
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
}

// What an earlier cell of a shell left cannot make the words of a later one mean what was not
// decided.
func TestShellsHostileState(t *testing.T) {
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	if _, err := s.Put(t.Context(), "bin/ls", []byte("#!/bin/sh\ncurl https://x.example\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "evil", []byte("echo evil; touch made-by-evil\n")); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct{ context, text, want string }{
		{"function", "deploy() { curl https://x.example; }", "deny"}, // nothing of it is there
		{"function", "deploy", "deny"},
		{"shadow", "ls() { echo mine; }", "deny"},
		{"order", "f() { echo one; }", "exit code 0"},
		{"order", "f; f() { curl https://x.example; }", "deny"},
		{"order", "f", "exit code 0; one"},
		{"cd", "cd /proc/self", "deny"},
		{"cd", "cat environ", "exit code 1"}, // there is no such file in the workspace
		{"path", "PATH=/workspace/bin:$PATH", "deny"},
		{"path", "ls evil", "exit code 0; evil"},
		{"alias", "alias ls='echo evil'", "deny"},
		{"trap", "trap 'curl https://x.example' EXIT", "deny"},
		{"ifs", "IFS=/", "deny"},
		{"unset", "unset -f ls", "deny"},
		{"source", ". ./evil", "deny"},
		{"value", "x=https://x.example", "exit code 0"},
		{"value", "git clone $x", "deny"},
		{"value", "x=evil", "exit code 0"},
		{"value", "ls $x", "exit code 0; evil"},
		{"script", "exec 255<evil", "exit code 0"},
		{"script", "echo as decided", "exit code 0; as decided"},
		{"script", "ls made-by-evil", "exit code 2"},
		{"debug", "trap 'read -t 1 -N 40 -u 255 line' DEBUG", "exit code 0"},
		{"debug", "echo as decided", "exit code 0; as decided"},
		{"closes", "exec 61>&- 10>&-", ""}, // the shell goes on or has ended
		{"closes", "echo as decided", "exit code 0; as decided"},
		{"half", "cat <<E", "deny [parse.syntax]"},
		{"half", "echo 'a", "deny [parse.syntax]"},
	} {
		p := proposal.Proposal{ID: fmt.Sprint("p", i), Language: "bash", Code: step.text, Context: step.context}
		r := do(t, s, p)
		if got := described(r); !strings.HasPrefix(got, step.want) || step.want == "deny" && r.Decision.Effect == proposal.Allow {
			t.Errorf("%s: %q: %s, want %s", step.context, step.text, got, step.want)
		}
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
}

// A shell that is interrupted, killed or cancelled ends with its state, and so does one that
// does not run what it is sent. The next cell begins another and says so; other contexts and
// languages keep theirs.
func TestShellEnds(t *testing.T) {
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	short := func(p proposal.Proposal) proposal.Proposal {
		p.Timeout = proposal.Duration(time.Second)
		return p
	}
	in := func(context, text string) proposal.Proposal {
		return proposal.Proposal{Language: "bash", Code: text, Context: context}
	}
	for i, step := range []struct {
		p            proposal.Proposal
		want, detail string
	}{
		{in("other", "x=other"), "exit code 0", ""},
		{cell("", "python", "x = 'python'"), "exit code 0", ""},
		{in("main", "x=1"), "exit code 0", ""},
		{short(in("main", "sleep 100")), "timed out", "has ended"},
		{in("main", "echo ${x-unset}"), "exit code 0; unset", "had ended"},
		{in("main", "echo ${x-unset}"), "exit code 0; unset", ""},
		{in("main", "kill -9 $$"), "SIGKILL", "has ended"},
		{in("main", "set -e"), "exit code 0", "had ended"},
		{in("main", "false"), "exit code 1", "has ended"},
		{in("main", "exec true"), "exit code 0", "has ended"},
		{in("main", "sleep 600 & disown; echo ok"), "exit code 0; ok", "had ended"},
		{in("other", "echo $x"), "exit code 0; other", ""},
		{cell("", "python", "x"), "exit code 0; = 'python'", ""},
	} {
		step.p.ID = fmt.Sprint("p", i)
		r := do(t, s, step.p)
		if got := described(r); !strings.HasPrefix(got, step.want) || r.Result == nil || !strings.Contains(r.Result.Detail, step.detail) || step.detail == "" && r.Result.Detail != "" {
			t.Errorf("%q: %s, %+v; want %s, %s", step.p.Code, got, r.Result, step.want, step.detail)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	p := in("other", "y=1; sleep 100")
	p.ID = "cancelled"
	if r, err := s.Do(ctx, p); err != nil && !errors.Is(err, context.DeadlineExceeded) || r.Result == nil || !strings.Contains(r.Result.Detail, "interrupted") {
		t.Errorf("%+v, %v", r.Result, err)
	}
	p = in("other", "echo ${y-unset} ${x-unset}")
	p.ID = "after"
	if got := described(do(t, s, p)); got != "exit code 0; unset unset" {
		t.Errorf("after a cancelled cell: %s", got)
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
}

// The record has the whole text that was decided, and which part of it is the new cell's.
func TestShellRecord(t *testing.T) {
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	for i, text := range []string{"f() { echo f; }", "# a comment\nf", "f; ls /nonexistent"} {
		r := do(t, s, cell(fmt.Sprint("p", i), "bash", text))
		e := r.Proposal.Earlier
		switch {
		case i == 0 && e == nil && r.Analysis.Begins == 0:
		case i == 1 && e.Cells == 1 && e.Text == "f() { echo f; }\n" && r.Analysis.Own() == "f\n" && r.Analysis.Begins >= len(e.Text):
		case i == 2 && e.Cells == 2 && strings.HasSuffix(e.Text, "}\n\nf\n") && r.Analysis.Own() == "f\nls /nonexistent\n":
		default:
			t.Errorf("%q: %+v, %+v", text, e, r.Analysis)
		}
		if diff := cmp.Diff(r.Analysis, gate.Analyze(r.Proposal)); diff != "" {
			t.Errorf("the record is not decided again as it was:\n%s", diff)
		}
	}
	env := cell("env", "bash", "echo $SEED")
	env.Env = map[string]string{"SEED": "true"}
	if r := do(t, s, env); r.Result == nil || r.Result.Succeeded() || !strings.Contains(r.Result.Detail+string(r.Result.Stderr.Head), "environment variables") {
		t.Errorf("other variables: %s %+v", described(r), r.Result)
	}
	env.ID, env.Context = "env2", "with"
	if got := described(do(t, s, env)); got != "exit code 0; true" {
		t.Errorf("variables: %s", got)
	}
	long := ": " + strings.Repeat("x", 9<<10)
	for i, want := range []string{"exit code 0", "deny"} {
		p := proposal.Proposal{ID: fmt.Sprint("long", i), Language: "bash", Code: long, Context: "long"}
		r := do(t, s, p)
		if got := described(r); !strings.HasPrefix(got, want) || i == 1 && !strings.Contains(r.Decision.Reasons[0].Suggestion, "new context") {
			t.Errorf("%s: %s %+v", p.ID, got, r.Decision.Reasons)
		}
	}
	if _, err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A call that is cancelled before the sandbox has started ends the call, and not the session.
func TestCancelledAtTheStart(t *testing.T) {
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	for i, after := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		r, err := s.Do(ctx, cell(fmt.Sprint("early", i), "python", "import time\ntime.sleep(600)"))
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || r.Result != nil && r.Result.Succeeded() {
			t.Errorf("after %s: %s, %v", after, described(r), err)
		}
		cancel()
	}
	if got := described(do(t, s, cell("after", "python", "1 + 1"))); got != "exit code 0; = 2" {
		t.Errorf("the next cell: %s", got)
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
}
