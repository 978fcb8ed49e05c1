// SPDX-License-Identifier: Apache-2.0

package hood

import "github.com/fumehood/fumehood/pkg/proposal"

// The audit log's entries of one run, in order: "run" (proposal.Run), a "decision"
// for each proposal, then for each one that runs a "start" and a "result", and
// "end". A log with a start and no result was cut off while that command ran.

type decisionOf struct {
	ID       string            `json:"id"`
	Proposal proposal.Proposal `json:"proposal"`
	Analysis proposal.Analysis `json:"analysis"`
	Decision proposal.Decision `json:"decision"`
	Approved bool              `json:"approved,omitempty"` // by the approval in the "run" entry
}

type startEntry struct {
	ID       string `json:"id"`
	Decision int64  `json:"decision"` // number of the decision's entry
}

type resultOf struct {
	ID       string          `json:"id"`
	Decision int64           `json:"decision"`
	Result   proposal.Result `json:"result"`
}

type endEntry struct {
	Totals proposal.Totals   `json:"totals"`
	Error  *proposal.Failure `json:"error"`
}

func decisionEntry(r proposal.Record) decisionOf {
	return decisionOf{r.Proposal.ID, r.Proposal, r.Analysis, r.Decision, r.Approval != nil}
}

// resultEntry leaves out the streams' bytes: their lengths and digests bind them.
func resultEntry(r proposal.Record) resultOf {
	result := *r.Result
	for _, s := range []*proposal.Stream{&result.Stdout, &result.Stderr} {
		s.Head, s.Tail = nil, nil
	}
	return resultOf{r.Proposal.ID, r.Entry, result}
}
