// SPDX-License-Identifier: Apache-2.0

package hood

import (
	"context"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// probes is how often one rule refuses a plan before it is taken for probing.
const probes = 3

// advise has the alternatives of r's reasons found. Whatever Advise returns, nothing
// else of what was decided changes.
func (h *Hood) advise(ctx context.Context, r *proposal.Record) {
	if h.p.Advise == nil || r.Decision.Effect == proposal.Allow {
		return
	}
	advised := h.p.Advise(ctx, r.Proposal, r.Analysis, r.Decision)
	if len(advised.Reasons) != len(r.Decision.Reasons) {
		return
	}
	reasons := slices.Clone(r.Decision.Reasons)
	for i := range reasons {
		reasons[i].Alternatives = advised.Reasons[i].Alternatives
	}
	r.Decision.Reasons = reasons
}

// unprobed closes, for one who has met it often in a plan, each rule that may be tried
// otherwise: who writes the same thing in many ways looks for the one that passes. It
// counts a rule once a proposal. What says only that no rule fits counts by program, and
// what could not be read never: these say nothing of what was meant.
func unprobed(records []proposal.Record) {
	met := map[string]int{}
	for i := range records {
		r := &records[i]
		reasons, here := slices.Clone(r.Decision.Reasons), map[string]bool{}
		for j, reason := range reasons {
			key := probed(*r, reason)
			if key == "" {
				continue
			}
			if !here[key] {
				here[key] = true
				met[key]++
			}
			if met[key] >= probes {
				reasons[j].Retry = proposal.RetryNever
			}
		}
		r.Decision.Reasons = reasons
	}
}

// probed is what reason is counted by, or "".
func probed(r proposal.Record, reason proposal.Reason) string {
	if reason.Observed || reason.Retry != proposal.RetryVary {
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

// retryAfter is what to do about a plan that policy could not answer for: only a
// deadline passes by itself.
func retryAfter(code string) proposal.Retry {
	if code == "policy.deadline" {
		return proposal.RetryTransient
	}
	return proposal.RetryNever
}
