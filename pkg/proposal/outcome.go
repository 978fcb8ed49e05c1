// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"regexp"
	"strconv"
)

// An Outcome is what a Record amounts to, the worst first. Every report, total, conclusion and
// exit code is made from it. The zero Outcome is a failure.
type Outcome int

// The outcomes.
const (
	OutcomeFailed       Outcome = iota // ran and did not succeed, or succeeded where Expect says that it fails
	OutcomeCancelled                   // ended because the run was interrupted
	OutcomeDenied                      //
	OutcomeAsked                       // waits for a person's approval
	OutcomeCouldNotRun                 // see Record.Cause
	OutcomeFailedBefore                // fails on the base of the pull request, too: see Record.Base
	OutcomeNotRun                      // allowed and not started
	OutcomeSucceeded                   // also if it failed where Expect says so
)

var outcomeNames = [...]string{"failed", "cancelled", "denied", "waiting for approval", "could not run",
	"failed before", "not run", "succeeded"}

func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomeNames) {
		return outcomeNames[OutcomeFailed]
	}
	return outcomeNames[o]
}

// Outcome returns the outcome of r.
func (r Record) Outcome() Outcome {
	switch {
	case r.Runnable():
	case r.Decision.Effect == Ask:
		return OutcomeAsked
	default:
		return OutcomeDenied
	}
	switch {
	case r.CouldNotRun():
		return OutcomeCouldNotRun
	case r.FailedBefore():
		return OutcomeFailedBefore
	case r.Result == nil || r.Result.Status == NotRun:
		return OutcomeNotRun
	case r.Proposal.ExpectsFailure() && r.Result.FailedByItself() && r.UnexpectedCode() == 0,
		!r.Proposal.ExpectsFailure() && r.Result.Succeeded():
		return OutcomeSucceeded
	case r.Result.Detail == details[KilledInterrupted]:
		return OutcomeCancelled
	}
	return OutcomeFailed
}

// AsExpected reports whether r failed and its proposal says that it fails: it then counts as
// succeeded.
func (r Record) AsExpected() bool {
	return r.Outcome() == OutcomeSucceeded && !r.Result.Succeeded()
}

// Exit codes of a shell for a program that is not there, or cannot be run.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// FailedByItself is EndedByItself without the exit codes that a shell has for a program that is
// not there, or cannot be run.
func (r Result) FailedByItself() bool {
	return r.EndedByItself() && !(r.Status == Exited && (r.ExitCode == exitNotExecutable || r.ExitCode == exitNotFound))
}

// EndedByItself reports whether the command ran to its end and failed: no limit was reached,
// nothing killed it, and nothing that it tried was refused.
func (r Result) EndedByItself() bool {
	switch {
	case r.Killed != "" || r.Limit != "" || r.Detail != "":
		return false
	case r.Observations != nil && r.Observations.Counts.Refused+r.Observations.Counts.NetRefused > 0:
		return false
	case r.Status == Exited:
		return r.ExitCode > 0
	}
	return r.Status == Signaled
}

// What Expect must begin with to mean that the command fails, and the words that make it a
// condition or the opposite.
var (
	expectFailure   = regexp.MustCompile(`(?i)^\s*(?:(?:it|this|the (?:command|tests?|reproducer))\s+)?(?:(?:should|must|will)\s+)?(?:fails?|failure|exits? (?:(?:with|code|status) )*(?:non-?zero|[1-9][0-9]{0,2})|non-?zero exit(?: (?:code|status))?)(?:\s*$|\s*[:;.,(-]|\s+(?:with|because|in|at|as|due|since|here|and)\b)`)
	expectCondition = regexp.MustCompile(`(?i)\b(?:if|unless|only|when|until|except|or|may|might|could|would|pass(?:es|ed)?|succeeds?|success|no longer)\b`)
)

// expectCode matches each exit code that Expect names.
var expectCode = regexp.MustCompile(`(?i)\bexit(?:s|ed)?(?: (?:with|code|status))* ([1-9][0-9]{0,2})\b`)

// UnexpectedCode returns the exit code that r's Expect names first, if r failed and its own is none of
// those that are named, or 0.
func (r Record) UnexpectedCode() int {
	if r.Result == nil || !r.Proposal.ExpectsFailure() || r.Result.Succeeded() {
		return 0
	}
	first := 0
	for _, m := range expectCode.FindAllStringSubmatch(r.Proposal.Expect[:min(len(r.Proposal.Expect), 500)], -1) {
		code, _ := strconv.Atoi(m[1])
		if r.Result.Status == Signaled && code > 128 || r.Result.Status == Exited && code == r.Result.ExitCode {
			return 0 // a shell adds 128 to the number of a signal
		}
		if first == 0 {
			first = code
		}
	}
	return first
}

// ExpectsFailure reports whether Expect says, at its beginning and without a condition, that
// the command fails: "fails", "fails: index out of range", "exits with 1". An exit code that it names
// must be the command's: see UnexpectedCode. Other words than
// these mean nothing, so that a sentence that is read wrongly does not turn a failure into a
// success.
func (p Proposal) ExpectsFailure() bool {
	s := p.Expect[:min(len(p.Expect), 500)]
	return p.Origin == "" && expectFailure.MatchString(s) && !expectCondition.MatchString(s)
}
