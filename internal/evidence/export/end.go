// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The severities of a line, as OCSF names them.
const (
	Informational = "informational" // allowed, or the line that ends a run
	Low           = "low"           // a finding, a question to a person, or only observed
	Medium        = "medium"        // denied before anything ran
	High          = "high"          // refused while it ran: a program or a connection
	Critical      = "critical"      // only where a rule that denies says so
)

// worstSeverity is the worst that the rules that deny declare. Without one it follows from what was
// decided.
func worstSeverity(d Decision) string {
	if d.Result.Effect == Deny {
		for _, s := range valid.Severities {
			if slices.ContainsFunc(d.Result.Reasons,
				func(r proposal.Reason) bool { return r.Effect == proposal.Deny && !r.Observed && r.Severity == s }) {
				return s
			}
		}
	}
	switch {
	case d.Path == PathRun, d.Result.Effect == Allow && !d.Result.Observed:
		return Informational
	case d.Result.Effect != Deny:
		return Low
	case d.Path == PathExec, d.Path == PathEgress:
		return High
	}
	return Medium
}

// exportRunEnd exports the line that ends a run. Its sequence is the number of the run's lines, so
// that a reader sees if one is missing, and a run without any decision has it too.
func (t *emitter) exportRunEnd(s Story, entries int64, at time.Time) error {
	d := t.newDecision(&Step{}, -1, "", SpanRun, at)
	d.DecisionID = TruncateText(t.run.ID, maxName) + "/end"
	d.Path, d.Result = PathRun, Result{Effect: Note, Rules: []string{}, Reasons: []proposal.Reason{}}
	for _, p := range t.run.Policies[:min(len(t.run.Policies), maxLayers)] {
		for _, s := range []*string{&p.Kind, &p.Spec, &p.Role, &p.Commit, &p.Digest, &p.Revision, &p.SignedBy} {
			*s = TruncateText(*s, maxName)
		}
		d.Custom.Policies = append(d.Custom.Policies, p)
	}
	d.Metrics = map[string]int64{"log_entries": entries}
	if c := s.Totals; c != nil {
		for name, n := range map[string]int{"proposed": c.Proposed, "allowed": c.Allowed, "denied": c.Denied,
			"asked": c.Asked, "failed": c.Failed,
			"could_not_run": c.CouldNotRun, "failed_before": c.FailedBefore, "not_run": c.NotRun} {
			d.Metrics[name] = int64(n)
		}
	}
	if s.Error != nil {
		d.Result.Code = TruncateText(s.Error.Code, maxName)
	}
	return t.emitDecision(d, inputTruncator{})
}

// decidingFirst returns the reasons with those that decide first: the strictest, then those
// that were only observed.
func decidingFirst(list []proposal.Reason) []proposal.Reason {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b proposal.Reason) int { return effectRank(a) - effectRank(b) })
	return list
}

func effectRank(r proposal.Reason) int {
	if r.Observed {
		return int(proposal.Allow) + 1
	}
	return int(r.Effect)
}

// rulesOf returns rules with those of the reasons with this effect first, in their order.
func rulesOf(rules []string, sorted []proposal.Reason, effect proposal.Effect) []string {
	var out []string
	for _, r := range sorted {
		if !r.Observed && r.Effect == effect && slices.Contains(rules, r.Rule) && !slices.Contains(out, r.Rule) {
			out = append(out, r.Rule)
		}
	}
	for _, rule := range rules {
		if !slices.Contains(out, rule) {
			out = append(out, rule)
		}
	}
	return out
}
