// SPDX-License-Identifier: Apache-2.0

package proposal

import "testing"

func allowed(r Result) Record {
	return Record{Decision: Decision{Effect: Allow}, Result: &r}
}

// Only a plain declaration at the beginning turns a failure into a success.
func TestExpectsFailure(t *testing.T) {
	for expect, want := range map[string]bool{
		"fails": true, "Fails: index out of range": true, "it fails with a TypeError": true, "should fail": true, "failure": true, "this must fail because Parse is wrong": true,
		"exits with 1": true, "exit code 2": true, "exit 1": true, "exits non-zero": true, "non-zero exit code": true, "fails, and prints the line": true,
		"": false, "passes": false, "exit 0": false, "exits with code 0": false, "no test fails": false, "fails no test": false, "does not fail": false,
		"fails if the bug is there": false, "fails on main, passes here": false, "fails or passes": false, "failure is not an option": false, "fails unless fixed": false,
		"TestX fails": false, "failed before": false, "failures: none": false, "exits with 1000": false, "fails the opposite": false,
	} {
		if got := (Proposal{Expect: expect}).ExpectsFailure(); got != want {
			t.Errorf("%q: %v, want %v", expect, got, want)
		}
	}
	if (Proposal{Expect: "fails", Origin: OriginSetup}).ExpectsFailure() {
		t.Error("set-up may fail")
	}
}

// Each record has one outcome, totals count each once, and a failure is only something else for
// a reason that nothing contradicts.
func TestOutcome(t *testing.T) {
	failed, fine := Result{Status: Exited, ExitCode: 1}, Result{Status: Exited}
	refused := failed
	refused.Observations = &Observations{Counts: Counts{Refused: 1}}
	killed := Result{Status: Signaled, Signal: "SIGKILL", Killed: KilledInterrupted, Detail: "the run was interrupted"}
	same := &Comparison{Verdict: BaseSame}
	for name, test := range map[string]struct {
		change func(*Record)
		result Result
		want   Outcome
	}{
		"succeeded":                       {func(*Record) {}, fine, OutcomeSucceeded},
		"failed":                          {func(*Record) {}, failed, OutcomeFailed},
		"cancelled":                       {func(*Record) {}, killed, OutcomeCancelled},
		"not run":                         {func(*Record) {}, Result{Status: NotRun, ExitCode: -1}, OutcomeNotRun},
		"unknown":                         {func(*Record) {}, Result{}, OutcomeFailed},
		"could not run":                   {func(r *Record) { r.Cause = &Cause{} }, failed, OutcomeCouldNotRun},
		"a cause of a success":            {func(r *Record) { r.Cause = &Cause{} }, fine, OutcomeSucceeded},
		"failed before":                   {func(r *Record) { r.Base = same }, failed, OutcomeFailedBefore},
		"failed before, and succeeds":     {func(r *Record) { r.Base = same }, fine, OutcomeSucceeded},
		"failed before, and was refused":  {func(r *Record) { r.Base = same }, refused, OutcomeFailed},
		"failed before, and was killed":   {func(r *Record) { r.Base = same }, killed, OutcomeCancelled},
		"failed before, and not run":      {func(r *Record) { r.Base = same }, Result{Status: NotRun}, OutcomeNotRun},
		"needs what failed before":        {func(r *Record) { r.Base = &Comparison{Verdict: BaseSame, After: "a"} }, Result{Status: NotRun}, OutcomeFailedBefore},
		"passes on the base":              {func(r *Record) { r.Base = &Comparison{Verdict: BasePasses} }, failed, OutcomeFailed},
		"an unknown verdict":              {func(r *Record) { r.Base = &Comparison{} }, failed, OutcomeFailed},
		"fails, as expected":              {func(r *Record) { r.Proposal.Expect = "fails" }, failed, OutcomeSucceeded},
		"fails, with the code":            {func(r *Record) { r.Proposal.Expect = "exits with 1" }, failed, OutcomeSucceeded},
		"fails, with another code":        {func(r *Record) { r.Proposal.Expect = "exits with 2" }, failed, OutcomeFailed},
		"fails, another status":           {func(r *Record) { r.Proposal.Expect = "fails with exit status 3" }, failed, OutcomeFailed},
		"fails, one of its codes":         {func(r *Record) { r.Proposal.Expect = "exit code 1: the tool has exit code 7" }, failed, OutcomeSucceeded},
		"fails, code of a signal":         {func(r *Record) { r.Proposal.Expect = "exits with 139" }, Result{Status: Signaled, Signal: "SIGSEGV", ExitCode: -1}, OutcomeSucceeded},
		"fails, and is signaled":          {func(r *Record) { r.Proposal.Expect = "exits with 1" }, Result{Status: Signaled, Signal: "SIGSEGV", ExitCode: -1}, OutcomeFailed},
		"fails, code of a success":        {func(r *Record) { r.Proposal.Expect = "fails: exit 0 is wrong" }, failed, OutcomeSucceeded},
		"expected a failure":              {func(r *Record) { r.Proposal.Expect = "fails" }, fine, OutcomeFailed},
		"expected, and was refused":       {func(r *Record) { r.Proposal.Expect = "fails" }, refused, OutcomeFailed},
		"expected, and was killed":        {func(r *Record) { r.Proposal.Expect = "fails" }, killed, OutcomeCancelled},
		"expected, and no such program":   {func(r *Record) { r.Proposal.Expect = "fails" }, Result{Status: Exited, ExitCode: 127}, OutcomeFailed},
		"expected, and reached its limit": {func(r *Record) { r.Proposal.Expect = "fails" }, Result{Status: TimedOut, Limit: "wall 1s", ExitCode: 1}, OutcomeFailed},
		"expected, and could not run":     {func(r *Record) { r.Proposal.Expect, r.Cause = "fails", &Cause{} }, failed, OutcomeCouldNotRun},
		"denied":                          {func(r *Record) { r.Decision.Effect, r.Cause, r.Base = Deny, &Cause{}, same }, failed, OutcomeDenied},
		"asked":                           {func(r *Record) { r.Decision.Effect, r.Base = Ask, same }, failed, OutcomeAsked},
	} {
		r := allowed(test.result)
		test.change(&r)
		if got := r.Outcome(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		n := Total([]Record{r})
		if n.Denied+n.Asked+n.Allowed != 1 || n.Succeeded+n.Failed+n.CouldNotRun+n.FailedBefore+n.NotRun != n.Allowed {
			t.Errorf("%s is counted as %+v", name, n)
		}
		if n.Add(n).Proposed != 2 || (n.AsExpected == 1) != r.AsExpected() {
			t.Errorf("%s: %+v", name, n)
		}
	}
}
