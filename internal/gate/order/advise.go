// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// probes is how often one rule may refuse in a plan before that counts as probing.
const probes = 3

// addAlternatives adds alternatives to r's reasons. Nothing else of the decision changes.
func (c Checker) addAlternatives(ctx context.Context, r *proposal.Record) {
	if c.Adviser != nil && r.Decision.Effect != proposal.Allow {
		r.Decision.Reasons = c.Adviser.AdviseReasons(ctx, r.Proposal, r.Analysis, r.Decision)
	}
}

// A probeCounter counts how often each rule that may be retried with a variation was met. An
// author who writes the same thing in many ways is looking for one that passes. It counts a
// rule once per proposal. Reasons that say only that no rule matches are counted per program;
// unparsable text and invalid proposals are never counted: they say nothing about intent.
type probeCounter map[string]int

// countReasons counts the reasons of r, and sets Retry to never for those that were met often.
func (m probeCounter) countReasons(r *proposal.Record) {
	reasons, here := slices.Clone(r.Decision.Reasons), map[string]bool{}
	for j, reason := range reasons {
		key := probingKey(*r, reason)
		if key == "" {
			continue
		}
		if !here[key] {
			here[key] = true
			m[key]++
		}
		if m[key] >= probes {
			reasons[j].Retry = proposal.RetryNever
		}
	}
	r.Decision.Reasons = reasons
}

// closeProbing calls countReasons for the records of a plan.
func closeProbing(records []proposal.Record) {
	m := probeCounter{}
	for i := range records {
		m.countReasons(&records[i])
	}
}

// probingKey returns the key under which reason is counted, or "".
func probingKey(r proposal.Record, reason proposal.Reason) string {
	if reason.Observed || reason.Retry != proposal.RetryVary || r.Proposal.Invalid != nil {
		return ""
	}
	for _, u := range r.Analysis.Unknowns {
		if u.Code == reason.Rule {
			return ""
		}
	}
	if reason.Rule != "default.no-rule" {
		return reason.Rule
	}
	if reason.Command < 0 || reason.Command >= len(r.Analysis.Commands) {
		return ""
	}
	return reason.Rule + " " + r.Analysis.Commands[reason.Command].Program
}

// retryAfter returns whether to retry a plan that policy could not decide: only a
// deadline is transient.
func retryAfter(code string) proposal.Retry {
	if code == "policy.deadline" {
		return proposal.RetryTransient
	}
	return proposal.RetryNever
}
