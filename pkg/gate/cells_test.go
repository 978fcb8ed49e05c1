// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/testprogram"
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

// What a command leaves behind ends with it, also beside shells, which live on, and also if it is
// a process whose first thread has ended, which gVisor shows as a zombie.
func TestCellsSurviveSweep(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	testprogram.Install(t, workspace)
	s := open(t, newGate(t, gate.Options{Workspace: workspace}), gate.SessionOptions{})
	for i, step := range []struct {
		p    proposal.Proposal
		left int
		want string
	}{
		{cell("", "bash", "x=40"), 0, "exit code 0"},
		{proposal.Proposal{Run: "./testprogram headless beat & until [ -s beat ]; do sleep 0.05; done; sleep 600 & exit 3"}, 2, "exit code 3"},
		{proposal.Proposal{Run: "cat beat > first; sleep 0.3; cmp first beat && echo quiet"}, 0, "exit code 0; quiet"},
		{cell("", "bash", "echo $x"), 0, "exit code 0; 40"},
		// A program of the workspace has another grant than the code with which the shell began, and the reverse.
		{cell("", "bash", "./testprogram print $x"), 0, "exit code 0; 40"},
		{proposal.Proposal{Language: "bash", Code: "./testprogram print built", Context: "built"}, 0, "exit code 0; built"},
		{proposal.Proposal{Language: "bash", Code: "basename first", Context: "built"}, 0, "exit code 0; first"},
	} {
		step.p.ID = fmt.Sprint("p", i)
		r := do(t, s, step.p)
		if got := described(r); got != step.want || r.Result.Leftover != step.left {
			t.Errorf("%s: %s, want %s, %d", step.p.ID, got, step.want, step.left)
		}
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
	t.Parallel()
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
	t.Parallel()
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
		{"path", "PATH=/tmp/bin:$PATH", "deny"},
		{"path", "ls evil", "exit code 0; evil"},
		{"searched", "PATH=/workspace/bin:$PATH", "exit code 0"}, // which later cells have
		{"searched", "ls evil", "deny [env.search"},
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
		{"debug", "trap 'read -t 0.2 -N 40 -u 255 line' DEBUG", "exit code 0"},
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
// does not run what it is sent. The next cell begins another and says so; other contexts keep
// theirs.
func TestShellEnds(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	short := func(p proposal.Proposal) proposal.Proposal {
		p.Timeout = proposal.Duration(500 * time.Millisecond)
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
	} {
		step.p.ID = fmt.Sprint("p", i)
		r := do(t, s, step.p)
		if got := described(r); !strings.HasPrefix(got, step.want) || r.Result == nil || !strings.Contains(r.Result.Detail, step.detail) || step.detail == "" && r.Result.Detail != "" {
			t.Errorf("%q: %s, %+v; want %s, %s", step.p.Code, got, r.Result, step.want, step.detail)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := in("other", "y=1; echo up; sleep 100")
	p.ID = "cancelled"
	ctx = gate.WithOutput(ctx, func(proposal.Chunk) { cancel() })
	if r, err := s.Do(ctx, p); err != nil && !errors.Is(err, context.Canceled) || r.Result == nil || !strings.Contains(r.Result.Detail, "interrupted") {
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
	t.Parallel()
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
		if diff := cmp.Diff(r.Analysis, order.AnalyzeProposal(r.Proposal)); diff != "" {
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

// A cell blocks only its own context: commands, files and cells of other contexts come to their end while it runs, in
// the foreground and beside it, and what it has started goes on. Later code of the context waits for it. Each has its
// own record.
func TestCellsBesideOthers(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	in := func(id, context, text string) proposal.Proposal {
		return proposal.Proposal{ID: id, Language: "bash", Code: text, Context: context}
	}
	long := make(chan string)
	var came, last arrivals
	go func() {
		r, err := s.Do(came.in(t.Context()), in("long", "long", "x=1; echo up; sleep 60 & until [ -e go ]; do sleep 0.05; done; kill $! && echo end"))
		long <- fmt.Sprint(described(r), err)
	}()
	for !came.has("up") {
		time.Sleep(5 * time.Millisecond)
	}
	if got := described(do(t, s, in("b1", "other", "y=2; sleep 600 & echo b"))); got != "exit code 0; b" {
		t.Errorf("a cell of another context: %s", got)
	}
	if got := described(do(t, s, proposal.Proposal{ID: "run", Run: "echo run > made; cat made"})); got != "exit code 0; run" {
		t.Errorf("a command: %s", got)
	}
	if files, err := s.List(t.Context(), "made"); err != nil || len(files.Files) != 1 {
		t.Errorf("files: %v, %v", files, err)
	}
	server, _ := startProcess(t, s, proposal.Proposal{ID: "server", Run: "echo up; sleep 600"})
	if got := described(do(t, s, in("b2", "other", "echo $y"))); got != "exit code 0; 2" {
		t.Errorf("the state of another context: %s", got)
	}
	next := make(chan string)
	go func() {
		r, err := s.Do(t.Context(), in("next", "long", "echo next $x"))
		next <- fmt.Sprint(described(r), err)
	}()
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error)
	go func() { _, err := s.Do(ctx, in("waits", "long", "echo no")); waiting <- err }()
	time.Sleep(20 * time.Millisecond)
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("code that is cancelled while it waits: %v", err)
	}
	select {
	case got := <-next:
		t.Errorf("code ran beside other code of its context: %s", got)
	default:
	}
	if _, err := s.Put(t.Context(), "go", nil); err != nil {
		t.Error(err)
	}
	if got := <-long; got != "exit code 0; up\nend<nil>" {
		t.Errorf("the long cell: %s", got)
	}
	if got := <-next; got != "exit code 0; next 1<nil>" {
		t.Errorf("the next cell: %s", got)
	}
	server.Kill()
	wait(t, server)
	go func() {
		r, err := s.Do(last.in(t.Context()), in("closed", "long", "echo up; sleep 600"))
		long <- fmt.Sprint(r.Result != nil && r.Result.Killed == proposal.KilledClosed, err)
	}()
	for !last.has("up") {
		time.Sleep(5 * time.Millisecond)
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	if got := <-long; got != "true <nil>" {
		t.Errorf("the cell that the session's end killed: %s", got)
	}
	checkLog(t, report, true)
	for _, r := range report.Records {
		if r.Result != nil && !r.Result.Observations.Complete {
			t.Errorf("%s: what it did is not completely recorded", r.Proposal.ID)
		}
	}
}

// A call that is cancelled before the sandbox has started ends the call, and not the session.
func TestCancelledAtTheStart(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	for i, after := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		r, err := s.Do(ctx, cell(fmt.Sprint("early", i), "bash", "sleep 600"))
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || r.Result != nil && r.Result.Succeeded() {
			t.Errorf("after %s: %s, %v", after, described(r), err)
		}
		cancel()
	}
	if got := described(do(t, s, cell("after", "bash", "echo on"))); got != "exit code 0; on" {
		t.Errorf("the next cell: %s", got)
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, report, true)
}
