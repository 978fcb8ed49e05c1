// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// refusing denies each proposal by the rule that is its id.
type refusing struct{ err error }

func (f refusing) Decide(_ context.Context, p proposal.Proposal, _ proposal.Analysis) (proposal.Decision, error) {
	d := points.DenyReason(p.ID, "m", "s")
	d.Reasons[0].Command, d.Reasons[0].Retry = 0, proposal.RetryVary
	return d, f.err
}

func checked(t *testing.T, c Checker, texts ...string) []proposal.Record {
	t.Helper()
	var plan proposal.Plan
	for _, text := range texts {
		plan.Proposals = append(plan.Proposals, proposal.Proposal{ID: text, Run: text})
	}
	records, _ := c.Check(t.Context(), plan)
	return records
}

func retriesOf(records []proposal.Record) []proposal.Retry {
	var all []proposal.Retry
	for _, r := range records {
		all = append(all, r.Decision.Reasons[0].Retry)
	}
	return all
}

// TestProbingIsClosed checks that a rule met three times in a plan is not to be
// retried, and that rules which say nothing about intent are not counted.
func TestProbingIsClosed(t *testing.T) {
	const vary, never = proposal.RetryVary, proposal.RetryNever
	h := Checker{Policy: refusing{}}
	for name, c := range map[string]struct {
		texts []string
		want  []proposal.Retry
	}{
		"one rule":    {[]string{"a.x", "a.x", "a.x", "a.x"}, []proposal.Retry{vary, vary, never, never}},
		"several":     {[]string{"a.x", "b.x", "a.x", "b.x"}, []proposal.Retry{vary, vary, vary, vary}},
		"one program": {[]string{"default.no-rule", "default.no-rule", "default.no-rule"}, []proposal.Retry{vary, vary, never}},
	} {
		if diff := cmp.Diff(c.want, retriesOf(checked(t, h, c.texts...))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var plan proposal.Plan
	for range 3 {
		plan.Proposals = append(plan.Proposals, proposal.Proposal{ID: "parse.eval", Run: `eval "$x"`})
	}
	records, _ := h.Check(t.Context(), plan)
	if diff := cmp.Diff([]proposal.Retry{vary, vary, vary}, retriesOf(records)); diff != "" {
		t.Errorf("what could not be read: %s", diff)
	}
}

// TestRetryOfFailures checks that only transient failures are to be retried.
func TestRetryOfFailures(t *testing.T) {
	for code, want := range map[string]proposal.Retry{"policy.deadline": proposal.RetryTransient, "policy.compile": proposal.RetryNever, "policy.eval": proposal.RetryNever} {
		h := Checker{Policy: refusing{err: &proposal.StopError{Code: code}}}
		if got := checked(t, h, "a.x")[0].Decision.Reasons[0].Retry; got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
	h := Checker{Policy: refusing{err: errors.New("x")}}
	if got := checked(t, h, "a.x")[0].Decision.Reasons[0].Retry; got != proposal.RetryNever {
		t.Errorf("an error without a code: %s", got)
	}
}
