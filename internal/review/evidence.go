// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// evidenceOf says what a record shows about the code. Only an allowed command that ended by
// itself or at its own limit shows anything.
func evidenceOf(side string, report proposal.Report, r proposal.Record) Evidence {
	e := Evidence{Side: side, Run: report.Run.ID, Entry: r.Entry, ID: r.Proposal.ID}
	if why := unknownReason(r); why != "" {
		e.Outcome, e.Ended = Unknown, why
		return e
	}
	e.Outcome, e.Ended = Failed, r.Result.Outcome()
	if r.Result.Succeeded() {
		e.Outcome = Passed
	}
	return e
}

// Exit codes of a shell for a program that is not there, or cannot be run.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// unknownReason returns why a record shows nothing about the code, or "".
func unknownReason(r proposal.Record) string {
	switch {
	case r.Result == nil || !r.Runnable():
		return notAllowed(r)
	case r.CouldNotRun():
		return r.Cause.Reason
	case r.Result.Status == proposal.NotRun || r.Result.Status == proposal.SandboxFailed || r.Result.Killed != "":
		return cmp.Or(r.Result.Detail, r.Result.Outcome())
	case r.Result.Succeeded():
		return ""
	case hasRefusedAccess(r.Result.Observations):
		return "policy refused a program that it started"
	case r.Result.ExitCode == exitNotFound || r.Result.ExitCode == exitNotExecutable:
		return "a program was not found, or could not be run (" + r.Result.Outcome() + ")"
	}
	return ""
}

func hasRefusedAccess(o *proposal.Observations) bool {
	return o == nil || !o.Complete || o.Counts.Refused > 0
}

// notAllowed returns why policy did not let a command run.
func notAllowed(r proposal.Record) string {
	for _, reason := range r.Decision.Reasons {
		if reason.Effect == r.Decision.Effect {
			return "policy: " + reason.Message
		}
	}
	return "policy did not allow it"
}
