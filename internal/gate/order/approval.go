// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"errors"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// applyApproval marks the proposals that policy asked about as approved. An approval of
// another commit, plan or policy stops the run: the approver saw something else.
func applyApproval(records []proposal.Record, plan proposal.Plan, run proposal.Run) error {
	if run.Approval == nil {
		return nil
	}
	if !run.Approval.Covers(run) || plan.Digest != run.PlanDigest {
		return &proposal.StopError{Code: "approval.void",
			Message: "the approval is for another commit, plan or policy",
			Hint:    "review the current request, and approve it"}
	}
	for i := range records {
		if records[i].Decision.Effect == proposal.Ask {
			records[i].Approval = run.Approval
		}
	}
	return nil
}

// lowerGrant limits a grant to the ceiling; a zero field of the ceiling means no limit.
func lowerGrant(g *proposal.Grant, ceiling proposal.Limits) {
	if g != nil {
		g.Limits = g.Limits.Under(ceiling)
	}
}

// InterruptionError returns, as a coded error, why ctx ended; nil if it has not.
func InterruptionError(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &proposal.StopError{Code: "run.timeout", Message: "the run reached its time limit",
			Hint: "give the run a longer timeout, or propose less"}
	}
	return &proposal.StopError{Code: "run.cancelled", Message: "the run was cancelled before it was done"}
}
