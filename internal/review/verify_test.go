// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A script is Trees whose commands end as their text says: "head base suggested", each a
// comma-separated list of endings for one run after the other, of which the last repeats.
type script struct {
	batch int
	ran   map[string]int // by side and text
	plans []string       // side and number of commands of each
	fail  string         // the side whose runs fail
}

func (s *script) Batch() int { return s.batch }

func (s *script) Run(_ context.Context, side string, plan proposal.Plan) (proposal.Report, error) {
	s.plans = append(s.plans, fmt.Sprintf("%s %d", side, len(plan.Proposals)))
	r := proposal.Report{Run: proposal.Run{ID: fmt.Sprintf("run-%d", len(s.plans))}, Audit: &proposal.Audit{File: "audit.jsonl"}}
	if side == s.fail {
		return r, errors.New("the sandbox is down")
	}
	for i, p := range plan.Proposals {
		part := map[string]int{SideHead: 0, SideBase: 1, SideSuggested: 2}[side]
		endings := strings.Split(strings.Fields(p.Run)[part], ",")
		key := side + p.Run
		r.Records = append(r.Records, ending(p, endings[min(s.ran[key], len(endings)-1)], int64(i)))
		s.ran[key]++
	}
	return r, nil
}

func (s *script) Suggested(ctx context.Context, f proposal.ReviewFinding, plan proposal.Plan) (proposal.Report, error) {
	if *f.Suggestion == "unsuitable" {
		return proposal.Report{}, &Unsuitable{"it cannot be applied"}
	}
	return s.Run(ctx, SideSuggested, plan)
}

// ending returns the record of a command that ended in one of the ways that a report can have.
func ending(p proposal.Proposal, how string, entry int64) proposal.Record {
	r := proposal.Record{Proposal: p, Entry: entry, Decision: proposal.Decision{Effect: proposal.Allow}}
	o := &proposal.Observations{Complete: true}
	result := &proposal.Result{Status: proposal.Exited, Observations: o}
	r.Result = result
	switch how {
	case "ok":
	case "fail":
		result.ExitCode = 1
	case "hangs":
		result.Status = proposal.TimedOut
	case "crash":
		result.Status, result.Signal = proposal.Signaled, "SIGSEGV"
	case "missing":
		result.ExitCode = exitNotFound
	case "refused":
		result.ExitCode, o.Counts.Refused = 1, 1
	case "partly":
		result.ExitCode, o.Complete = 1, false
	case "unseen":
		result.ExitCode, result.Observations = 1, nil
	case "budget":
		result.Status, result.Killed = proposal.TimedOut, proposal.KilledBudget
	case "lost":
		result.Status = proposal.SandboxFailed
	case "cause":
		result.ExitCode, r.Cause = 1, &proposal.Cause{Kind: "tool", Reason: "no such tool"}
	case "denied":
		r.Result, r.Decision = nil, proposal.Decision{Reasons: []proposal.Reason{{Rule: "net.x", Message: "no network"}}}
	case "asked":
		r.Result, r.Decision = nil, proposal.Decision{Effect: proposal.Ask, Reasons: []proposal.Reason{{Effect: proposal.Ask, Message: "ask first"}}}
	default:
		panic(how)
	}
	return r
}

func finding(id, run string) proposal.ReviewFinding {
	return proposal.ReviewFinding{ID: id, File: "a.go", Line: 2, Claim: "c", Reproducer: &proposal.Proposal{ID: id, Run: run}}
}

var small = must(ParseDiff([]byte("diff --git a/a.go b/a.go\nindex 1..2 100644\n--- a/a.go\n+++ b/a.go\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n")))

func must(d *Diff, err error) *Diff {
	if err != nil {
		panic(err)
	}
	return d
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		run  string
		want Verdict
		why  string
	}{
		{"fail ok", Verified, "3 times each"},
		{"crash ok", Verified, ""},
		{"hangs ok", Verified, ""},
		{"fail fail", PreExisting, ""},
		{"ok ok", NotReproduced, ""},
		{"ok fail", NotReproduced, ""},
		{"fail,ok ok", Flaky, "on head"},
		{"fail,fail,ok ok", Flaky, "on head"},
		{"fail ok,fail", Flaky, "on base"},
		{"fail ok,ok,fail", Flaky, "on base"},
		{"missing ok", NotRun, "was not found"},
		{"refused ok", NotRun, "policy refused a program"},
		{"partly ok", NotRun, ""},
		{"unseen ok", NotRun, ""},
		{"budget ok", NotRun, ""},
		{"lost ok", NotRun, ""},
		{"cause ok", NotRun, "no such tool"},
		{"denied denied", NotRun, "policy: no network"},
		{"asked asked", NotRun, "policy: ask first"},
		{"fail missing", NotRun, "on base"},
		{"fail refused", NotRun, "on base"},
		{"fail denied", NotRun, "on base"},
		{"fail,refused ok", NotRun, "on head"},
		{"fail ok,lost", NotRun, "on base"},
	} {
		for _, batch := range []int{1, 2, 50} {
			s := &script{batch: batch, ran: map[string]int{}}
			d, err := Verify(t.Context(), s, small, proposal.ReviewFindings{Findings: []proposal.ReviewFinding{finding("x", c.run)}})
			if err != nil {
				t.Fatal(err)
			}
			if r := d.Results[0]; r.Verdict != c.want || !strings.Contains(r.Why, c.why) {
				t.Errorf("%s: %s: %s", c.run, r.Verdict, r.Why)
			}
			if d.Reviewed != (c.want != NotRun) {
				t.Errorf("%s: reviewed %v: %s", c.run, d.Reviewed, d.Reason)
			}
		}
	}
}

// Every run is in the document, and only failures are run again.
func TestRuns(t *testing.T) {
	s := &script{batch: 50, ran: map[string]int{}}
	d, err := Verify(t.Context(), s, small, proposal.ReviewFindings{Findings: []proposal.ReviewFinding{
		finding("a", "fail ok"), finding("b", "ok ok"), finding("c", "fail fail"), {ID: "d", File: "a.go", Line: 1, Claim: "no command"},
		{ID: "e", Invalid: &proposal.Invalid{Problems: []proposal.Problem{{Message: "no file"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"head 3", "base 2", "head 2", "base 2"}
	if !slices.Equal(s.plans, want) || len(d.Runs) != 4 || len(d.Results[0].Evidence) != 6 {
		t.Errorf("%v, %d runs, %+v", s.plans, len(d.Runs), d.Results[0].Evidence)
	}
	for _, e := range d.Results[0].Evidence {
		if !slices.ContainsFunc(d.Runs, func(r Run) bool { return r.ID == e.Run && r.Side == e.Side }) {
			t.Errorf("%+v is from no run of the document", e)
		}
	}
	var got []Verdict
	for _, r := range d.Results {
		got = append(got, r.Verdict)
	}
	if want := []Verdict{Verified, NotReproduced, PreExisting, NotRun, NotRun}; !slices.Equal(got, want) {
		t.Error(got)
	}
}

// What is not certain is not verified, whichever run it is that fails.
func TestSandboxDown(t *testing.T) {
	for _, side := range []string{SideHead, SideBase} {
		s := &script{batch: 50, ran: map[string]int{}, fail: side}
		d, err := Verify(t.Context(), s, small, proposal.ReviewFindings{Findings: []proposal.ReviewFinding{finding("a", "fail ok")}})
		if err == nil || d.Reviewed || d.Reason == "" || d.Results[0].Verdict != NotRun || !strings.HasPrefix(d.Headline(), "Not reviewed: ") {
			t.Errorf("%s: %v, %+v", side, err, d)
		}
	}
	d, err := Verify(t.Context(), &script{batch: 1}, small, proposal.ReviewFindings{})
	if err != nil || !d.Reviewed || d.Headline() != "The reviewer has no findings" {
		t.Errorf("%v, %+v", err, d)
	}
}

func TestSuggestions(t *testing.T) {
	fix, unsuitable := "two\n", "unsuitable"
	for _, c := range []struct {
		run, test string
		text      *string
		side      string
		offered   bool
		why       string
	}{
		{"fail ok ok", "", &fix, "", true, ""},
		{"fail ok ok", "ok ok ok", &fix, "", true, ""},
		{"fail ok ok", "ok ok fail", &fix, "", false, "the test test-1 does not succeed"},
		{"fail ok ok", "ok ok denied", &fix, "", false, "the test test-1 does not succeed"},
		{"fail ok ok", "fail ok fail", &fix, "", true, ""}, // it failed before
		{"fail ok fail", "", &fix, "", false, "the reproducer does not succeed"},
		{"fail ok missing", "", &fix, "", false, "the reproducer does not succeed"},
		{"fail ok ok", "", &unsuitable, "", false, "cannot be applied"},
		{"fail fail ok", "", &fix, "", false, "not verified"},
		{"fail ok ok", "", &fix, SideBase, false, "not in the diff of the pull request's code"},
	} {
		f := finding("x", c.run)
		f.Suggestion, f.Side = c.text, c.side
		in := proposal.ReviewFindings{Findings: []proposal.ReviewFinding{f}}
		if c.test != "" {
			in.Tests = []proposal.Proposal{{ID: "test-1", Run: c.test}}
		}
		d, err := Verify(t.Context(), &script{batch: 50, ran: map[string]int{}}, small, in)
		if err != nil {
			t.Fatal(err)
		}
		if s := d.Results[0].Suggestion; s == nil || s.Offered != c.offered || !strings.Contains(s.Why, c.why) {
			t.Errorf("%+v: %+v", c, s)
		}
	}
}
