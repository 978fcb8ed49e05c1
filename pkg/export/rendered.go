// SPDX-License-Identifier: Apache-2.0

package export

import "github.com/fumehood/fumehood/pkg/proposal"

// Report returns the run as a report, for its forms. What a log does not have is empty: what
// commands printed (only its length and digest are there), why a command could not run, and
// lists of programs and connections. A command that had begun when the log was cut off has the
// status SandboxFailed.
func (s Story) Report() proposal.Report {
	r := proposal.Report{Schema: proposal.ReportSchema, Run: s.Run, Error: s.Error, Records: []proposal.Record{}}
	for _, step := range s.Steps {
		if _, onBase := proposal.OfBaseID(step.Proposal.ID); onBase {
			if r.Base == nil {
				r.Base = &proposal.BaseRun{Commit: s.Base}
			}
			r.Base.Records = append(r.Base.Records, step.record(nil))
			continue
		}
		r.Records = append(r.Records, step.record(s.Run.Approval))
	}
	r.Totals = proposal.Total(r.Records)
	return r
}

func (s Step) record(approval *proposal.Approval) proposal.Record {
	r := proposal.Record{Proposal: s.Proposal, Analysis: s.Analysis, Decision: s.Decision, Result: s.Result, Entry: s.Entry}
	if r.Result == nil && !s.Started.IsZero() {
		r.Result = &proposal.Result{Status: proposal.SandboxFailed, Detail: "the log ends while it ran"}
	}
	switch {
	case !s.Approved:
	case approval != nil:
		r.Approval = approval
	default:
		r.ClientApproval = &proposal.ClientApproval{}
	}
	return r
}
