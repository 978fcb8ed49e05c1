// SPDX-License-Identifier: Apache-2.0

package action

import "github.com/fumehood/fumehood/pkg/proposal"

// The values of Inputs.FailOn, from the least to the most that fails a job. A
// proposal that waits for approval fails none of them.
const (
	FailOnNever  = "never"  // the job is green whatever happened, even when fumehood could not do its work
	FailOnError  = "error"  // fumehood could not do its work, or the run was cancelled
	FailOnDenied = "denied" // that, or a proposal was denied
	FailOnFailed = "failed" // that, or a command did not succeed; the default
)

// The conclusions, which are the values of the output "conclusion".
const (
	Success   = "success"   // everything was allowed and succeeded
	Failure   = "failure"   // a command did not succeed
	Denied    = "denied"    // a proposal was denied
	Asked     = "asked"     // a proposal waits for approval
	Stopped   = "error"     // fumehood could not do its work
	Cancelled = "cancelled" // the run was cancelled before it was done
	Skipped   = "skipped"   // there was nothing to do
)

// An Outcome is what a conclusion is drawn from.
type Outcome struct {
	Totals    proposal.Totals
	Stopped   bool
	Cancelled bool
	Skipped   bool // this event asks for nothing
}

// OutcomeOf sums up reports. None at all is a run that stopped: nobody vouches for it.
func OutcomeOf(reports ...proposal.Report) Outcome {
	o := Outcome{Stopped: len(reports) == 0}
	for _, r := range reports {
		t := proposal.Total(r.Records)
		o.Totals.Proposed += t.Proposed
		o.Totals.Allowed += t.Allowed
		o.Totals.Denied += t.Denied
		o.Totals.Asked += t.Asked
		o.Totals.Succeeded += t.Succeeded
		o.Totals.Failed += t.Failed
		if r.Error != nil && r.Error.Code == "run.cancelled" {
			o.Cancelled = true
		} else if r.Error != nil {
			o.Stopped = true
		}
	}
	return o
}

// Conclude says in one word what happened, the worst first, and whether the job
// fails because of it. A failOn that is none of the words fails as FailOnFailed does.
func Conclude(o Outcome, failOn string) (conclusion string, fails bool) {
	switch {
	case o.Skipped:
		return Skipped, false
	case o.Stopped:
		conclusion = Stopped
	case o.Cancelled:
		conclusion = Cancelled
	case o.Totals.Failed > 0:
		conclusion = Failure
	case o.Totals.Denied > 0:
		conclusion = Denied
	case o.Totals.Asked > 0:
		conclusion = Asked
	default:
		conclusion = Success
	}
	return conclusion, o.fails(failOn)
}

// fails looks at the totals, not at the one word: a run in which one command failed
// and another was denied fails a job that only minds denials, too.
func (o Outcome) fails(failOn string) bool {
	broken := o.Stopped || o.Cancelled
	switch failOn {
	case FailOnNever:
		return false
	case FailOnError:
		return broken
	case FailOnDenied:
		return broken || o.Totals.Denied > 0
	}
	return broken || o.Totals.Denied > 0 || o.Totals.Failed > 0
}
