// SPDX-License-Identifier: Apache-2.0

package action

import "github.com/fumehood/fumehood/pkg/proposal"

// The values of Inputs.FailOn, in the order of how many outcomes fail the job. A
// proposal that waits for approval never fails it.
const (
	FailOnNever  = "never"  // the job is green whatever happens, even if fumehood stops with an error
	FailOnError  = "error"  // fumehood stopped with an error, or the run was cancelled; for a job that reports: in this job
	FailOnDenied = "denied" // as FailOnError, or a proposal was denied
	// as FailOnDenied, or a command did not succeed for a reason that is the pull request's; the default
	FailOnFailed = "failed"
	// FailOnCouldNotRun is as FailOnFailed, or a command could not run for a reason that
	// is not the pull request's.
	FailOnCouldNotRun = "could-not-run"
)

// The conclusions, which are the values of the output "conclusion".
const (
	Success   = "success"   // everything was allowed and succeeded
	Failure   = "failure"   // a command did not succeed
	Denied    = "denied"    // a proposal was denied
	Asked     = "asked"     // a proposal waits for approval
	Neutral   = "neutral"   // a command could not run, or fails on the base of the pull request, too
	Stopped   = "error"     // fumehood stopped with an error
	Cancelled = "cancelled" // the run was cancelled before it finished
	Skipped   = "skipped"   // there was nothing to do
)

// An Outcome is the basis of a conclusion.
type Outcome struct {
	Totals    proposal.Totals
	Stopped   bool
	Cancelled bool
	Skipped   bool // this event requests nothing
}

// OutcomeOf sums up reports. Without any report, the run counts as stopped.
func OutcomeOf(reports ...proposal.Report) Outcome {
	o := Outcome{Stopped: len(reports) == 0}
	for _, r := range reports {
		o.Totals = o.Totals.Add(proposal.Total(r.Records))
		if r.Error != nil && r.Error.Code == "run.cancelled" {
			o.Cancelled = true
		} else if r.Error != nil {
			o.Stopped = true
		}
	}
	return o
}

// ConcludeJob returns the conclusion, which is the worst outcome, and whether the job
// fails because of it. An unknown failOn is treated as FailOnFailed.
func ConcludeJob(o Outcome, failOn string) (conclusion string, fails bool) {
	switch {
	case o.Skipped:
		return Skipped, false
	case o.Stopped:
		conclusion = Stopped
	case o.Cancelled:
		conclusion = Cancelled
	case o.Totals.Unsuccessful() > 0:
		conclusion = Failure
	case o.Totals.Denied > 0:
		conclusion = Denied
	case o.Totals.Asked > 0:
		conclusion = Asked
	case o.Totals.Neutral() > 0:
		conclusion = Neutral
	default:
		conclusion = Success
	}
	return conclusion, o.failsJob(failOn)
}

// failsJob checks the totals, not the conclusion: if one command failed and another
// was denied, a job that fails only on denials must fail too.
func (o Outcome) failsJob(failOn string) bool {
	broken := o.Stopped || o.Cancelled
	switch failOn {
	case FailOnNever:
		return false
	case FailOnError:
		return broken
	case FailOnDenied:
		return broken || o.Totals.Denied > 0
	case FailOnCouldNotRun:
		return broken || o.Totals.Denied > 0 || o.Totals.Unsuccessful()+o.Totals.CouldNotRun > 0
	}
	return broken || o.Totals.Denied > 0 || o.Totals.Unsuccessful() > 0
}
