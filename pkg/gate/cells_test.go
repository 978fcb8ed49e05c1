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
