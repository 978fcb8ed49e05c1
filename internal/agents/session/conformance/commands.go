// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func testCommands(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	doSuccessfully(t, s, shellProposal("made", "mkdir sub && echo in sub > sub/here"))
	for _, c := range []struct {
		p    proposal.Proposal
		want string // outcome, stdout and stderr
	}{
		{shellProposal("ok", "echo out; echo err >&2"), "exit code 0|out\n|err\n"},
		{shellProposal("fails", "echo out; exit 3"), "exit code 3|out\n|"},
		{proposal.Proposal{ID: "argv", Argv: []string{"echo", "a  b", "$HOME"}}, "exit code 0|a  b $HOME\n|"},
		{proposal.Proposal{ID: "stdin", Run: "cat; echo end", Stdin: "typed\n"}, "exit code 0|typed\nend\n|"},
		{proposal.Proposal{ID: "env", Language: "bash", Code: "echo $CI", Env: map[string]string{"CI": "1"}}, "exit code 0|1\n|"},
		{proposal.Proposal{ID: "cwd", Run: "cat here", Cwd: "sub"}, "exit code 0|in sub\n|"},
		{proposal.Proposal{ID: "code", Language: "bash", Code: "echo $((6 * 7))"}, "exit code 0|42\n|"},
		{proposal.Proposal{ID: "slow", Run: "echo a; sleep 600", Timeout: proposal.Duration(2 * time.Second)}, "timed out|a\n|"},
		{proposal.Proposal{ID: "needs", Run: "echo", Needs: []string{"fails"}}, "not run||"},
		{shellProposal("left", "cat sub/here"), "exit code 0|in sub\n|"},
	} {
		r := doSuccessfully(t, s, c.p)
		if got := fmt.Sprintf("%s|%s|%s", outcomeOrLimit(r), r.Stdout.Head, r.Stderr.Head); got != c.want {
			t.Errorf("%s: %q, want %q", c.p.ID, got, c.want)
		}
	}
	if _, err := s.Do(t.Context(),
		proposal.Proposal{ID: "two", Run: "true", Argv: []string{"true"}}); errorCode(err) != "session.proposal" {
		t.Errorf("an invalid proposal: %v", err)
	}
	closeSession(t, s)
}

// outcomeOrLimit is Result.Outcome, except for what was killed at a limit.
func outcomeOrLimit(r *proposal.Result) string {
	if r.Status == proposal.TimedOut {
		return "timed out"
	}
	return r.Outcome()
}

// The end of the context of a command interrupts it. The session goes on.
func testInterrupt(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := s.Do(gate.WithOutput(ctx, func(proposal.Chunk) { cancel() }),
		shellProposal("long", "echo began; sleep 600"))
	if err != nil || r.Result == nil || r.Result.Killed != proposal.KilledInterrupted {
		t.Fatalf("%+v, %v", r.Result, err)
	}
	if _, err := s.Do(ctx, shellProposal("never", "echo")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if r := doSuccessfully(t, s, shellProposal("on", "echo on")); !r.Succeeded() {
		t.Errorf("%+v", r)
	}
	closeSession(t, s)
}

// received is output as it came.
type received struct {
	mu   sync.Mutex
	text map[string]string
	lost int64
}

func (r *received) withOutput(ctx context.Context) context.Context {
	r.text = map[string]string{}
	return gate.WithOutput(ctx, func(c proposal.Chunk) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if c.Display != nil {
			c.Data = []byte(c.Display.Forms["text/plain"])
		}
		r.text[c.Stream] += string(c.Data)
		r.lost += c.Dropped
	})
}

func (r *received) has(stream, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.text[stream], text)
}

// What comes while a command runs is what the Record has, and a slow receiver loses no byte
// that Dropped does not count.
func testOutput(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	var came received
	r, err := s.Do(came.withOutput(t.Context()),
		shellProposal("a", "for i in $(seq 1 500); do echo line $i; done; echo err >&2"))
	if err != nil || r.Result == nil ||
		came.text["stdout"] != string(r.Result.Stdout.Head)+string(r.Result.Stdout.Tail) ||
		came.text["stderr"] != "err\n" || came.lost != 0 {
		t.Errorf("%d bytes came: %+v, %v", len(came.text["stdout"]), r.Result, err)
	}
	var shown received
	code := proposal.Proposal{ID: "cell", Language: "bash", Code: "echo hi; echo err >&2", Context: "main"}
	if _, err := s.Do(shown.withOutput(t.Context()), code); err != nil || shown.text["stdout"] != "hi\n" ||
		shown.text["stderr"] != "err\n" {
		t.Errorf("%q, %v", shown.text, err)
	}
	var much received
	r, err = s.Do(much.withOutput(t.Context()), shellProposal("b", "seq 1 300000"))
	if err != nil || r.Result == nil || int64(len(much.text["stdout"]))+much.lost != r.Result.Stdout.Bytes ||
		!r.Result.Stdout.Truncated {
		t.Errorf("%d bytes came, %d lost: %v", len(much.text["stdout"]), much.lost, err)
	}
	closeSession(t, s)
}

// A cell is code of a language, and what comes of it.
type cell struct{ language, context, code, want string }

func runCells(t *testing.T, s gate.Session, cells []cell) {
	t.Helper()
	for i, c := range cells {
		r := doSuccessfully(t, s, proposal.Proposal{ID: fmt.Sprint("c", i), Language: c.language, Context: c.context,
			Code: c.code})
		if got := r.Outcome() + "|" + string(r.Stdout.Head); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.language, c.code, got, c.want)
		}
	}
}

// Code keeps the state of its context, and of no other.
func testShells(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	runCells(t, s, []cell{
		{"bash", "main", "x=40", "exit code 0|"},
		{"bash", "main", "echo $((x + 2))", "exit code 0|42\n"},
		{"bash", "main", "false", "exit code 1|"},
		{"bash", "main", "echo $x", "exit code 0|40\n"},
		{"bash", "other", "echo ${x-unset}", "exit code 0|unset\n"},
	})
	closeSession(t, s)
}

func testLanguages(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	runCells(t, s, []cell{
		{"python", "main", "x = 40", "exit code 0|"},
		{"python", "main", "print(x + 2)", "exit code 0|42\n"},
		{"python", "main", "1 / 0", "exit code 1|"},
		{"python", "main", "print(x)", "exit code 0|40\n"},
		{"python", "other", "print('x' in globals())", "exit code 0|False\n"},
		{"javascript", "main", "const a = [1, 2]", "exit code 0|"},
		{"javascript", "main", "console.log(a.length)", "exit code 0|2\n"},
	})
	var shown received
	p := proposal.Proposal{ID: "shown", Language: "python", Code: "print('hi')\n1 + 1", Context: "main"}
	if _, err := s.Do(shown.withOutput(t.Context()), p); err != nil || shown.text["stdout"] != "hi\n" ||
		shown.text["display"] != "2" {
		t.Errorf("%q, %v", shown.text, err)
	}
	if r := doSuccessfully(t, s, proposal.Proposal{ID: "fails", Language: "python", Context: "main",
		Code: "{}['k']"}); r.Exception == nil || r.Exception.Name != "KeyError" {
		t.Errorf("%+v", r.Exception)
	}
	closeSession(t, s)
}

func startProcess(t *testing.T, s gate.Session, id, text string) (gate.Process, *received) {
	t.Helper()
	var came received
	p, err := s.Start(came.withOutput(t.Context()), shellProposal(id, text))
	if err != nil {
		t.Fatal(err)
	}
	return p, &came
}

// Commands in the background run beside others, and end when they are killed or the session ends.
func testProcesses(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	wait := func(p gate.Process) proposal.Record {
		t.Helper()
		r, err := p.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	long, came := startProcess(t, s, "long", "while :; do echo tick; sleep 0.05; done")
	for end := time.Now().Add(time.Minute); !came.has("stdout", "tick\ntick\n"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("its output does not come")
		}
	}
	if r := doSuccessfully(t, s, shellProposal("beside", "echo beside")); !r.Succeeded() {
		t.Errorf("%+v", r)
	}
	short, _ := startProcess(t, s, "short", "echo done; exit 3")
	if r := wait(short); r.Result == nil || r.Result.Outcome() != "exit code 3" ||
		string(r.Result.Stdout.Head) != "done\n" {
		t.Errorf("%+v", r.Result)
	}
	denied, _ := startProcess(t, s, "denied", "shuf x")
	if r := wait(denied); r.Result != nil || firstRule(r) != "conformance.shuf" {
		t.Errorf("%+v", r)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := long.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was given up: %v", err)
	}
	// It waits for no child: bash drops a SIGINT that comes when a child of it ends by itself.
	trapped, came := startProcess(t, s, "trapped", "trap 'echo interrupted; exit 0' INT; echo up; while :; do :; done")
	for end := time.Now().Add(time.Minute); !came.has("stdout", "up\n") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := trapped.Interrupt(); err != nil {
		t.Error(err)
	}
	if r := wait(trapped); r.Result == nil || !r.Result.Succeeded() ||
		string(r.Result.Stdout.Head) != "up\ninterrupted\n" {
		t.Errorf("%+v", r.Result)
	}
	<-trapped.Done()
	long.Kill()
	if r := wait(long); r.Result == nil || r.Result.Killed != proposal.KilledCaller {
		t.Errorf("%+v", r.Result)
	}
	left, _ := startProcess(t, s, "left", "sleep 600")
	closeSession(t, s)
	if r, err := left.Wait(t.Context()); err == nil && (r.Result == nil || r.Result.Killed != proposal.KilledClosed) {
		t.Errorf("%+v", r.Result)
	}
}

// While a session is paused, nothing in it runs, and no time of its commands passes. Files can be moved.
func testPause(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	printed := func(r *received) int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.text["stdout"])
	}
	eventually := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	if r := doProposal(t, s, shellCell("set", "x=kept")); r.Result == nil {
		t.Fatalf("%+v", r.Decision)
	}
	cell := make(chan proposal.Record, 1)
	go func() {
		other := proposal.Proposal{ID: "cell", Language: "bash", Code: "sleep 1; echo slept", Context: "other"}
		r, _ := s.Do(t.Context(), other)
		cell <- r
	}()
	ticking, came := startProcess(t, s, "ticking", "while :; do echo tick; sleep 0.02; done")
	killed, _ := startProcess(t, s, "killed", "sleep 600")
	eventually("its output does not come", func() bool { return printed(came) > 0 })
	for range 2 { // the second changes nothing
		if err := s.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	putFile(t, s, "f", "x")
	time.Sleep(100 * time.Millisecond) // what was printed before comes
	before := printed(came)
	killed.Kill()
	if r, err := killed.Wait(t.Context()); err != nil || r.Result == nil || r.Result.Killed != proposal.KilledCaller {
		t.Errorf("%+v, %v", r.Result, err)
	}
	time.Sleep(200 * time.Millisecond)
	if after := printed(came); after != before {
		t.Errorf("a command printed %d bytes while the session was paused", after-before)
	}
	for range 2 {
		if err := s.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	eventually("it does not go on", func() bool { return printed(came) > before })
	if err := s.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := doProposal(t, s, shellCell("get", "echo $x; cat f"))
	if r.Result == nil || string(r.Result.Stdout.Head) != "kept\nx" {
		t.Errorf("%+v", r.Result)
	}
	before = printed(came)
	eventually("a proposal does not resume it", func() bool { return printed(came) > before })
	if err := s.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-cell; r.Result == nil || string(r.Result.Stdout.Head) != "slept\n" {
		t.Errorf("code that ran during pauses: %+v", r.Result)
	}
	if err := s.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	report := closeSession(t, s)
	for _, moved := range report.Transfers {
		kinds = append(kinds, moved.Kind)
	}
	if want := "pause put resume pause resume pause resume pause"; strings.Join(kinds, " ") != want {
		t.Errorf("%q, want %q", kinds, want)
	}
	entryKinds(t, report)
	r, err := ticking.Wait(t.Context())
	if err == nil && (r.Result == nil || r.Result.Killed != proposal.KilledClosed) {
		t.Errorf("%+v", r.Result)
	}
	if err := s.Pause(t.Context()); errorCode(err) != "session.closed" {
		t.Errorf("after the end: %v", err)
	}
}

func shellCell(id, code string) proposal.Proposal {
	return proposal.Proposal{ID: id, Language: "bash", Code: code, Context: "main"}
}
