// SPDX-License-Identifier: Apache-2.0

// Package action implements the GitHub Actions side of fumehood: it reads the
// inputs, the runner's variables and the event, decides what this job may do, and
// writes the job's log, outputs and step summary.
//
// It promises:
//
//   - an input, a variable or an event that it does not fully understand is refused,
//     with the location and the YAML that fixes it; nothing is guessed;
//   - no untrusted text becomes a workflow command, an output or a verdict:
//     [Console.PrintUntrusted] prefixes each line, breaks both grammars of commands and
//     writes inside stop-commands; [Outputs] uses a delimiter that does not occur in
//     the value; [Summary] stays within the runner's limit;
//   - [Admit] never gives a job that runs a fork's code anything that the code must
//     not be able to reach.
//
// It does not protect against an earlier step of the same job: such a step may have
// changed files, variables and PATH. It cannot see which permissions the job's
// token has. Problem matchers that an earlier step registered (actions/setup-go,
// actions/setup-node) also read every line that fumehood prints, even inside
// stop-commands. The prefix defeats those that match at a line's start, but
// untrusted text can still make the runner create an annotation if a loose matcher
// accepts it.
//
// # Why each event has one phase
//
//	event                     phase: auto does
//	pull_request              run and report, when the code is of this repository
//	pull_request, fork        run: a fork's job has a read-only token, so it posts no
//	                          comment; the workflow_run workflow does
//	pull_request, Dependabot  run, for the same reason
//	workflow_run              report: its token can write, so it runs no code
//	issue_comment             run and report, when the code is of this repository
//	issue_comment, fork       refused: this event's token can write, so the fork's
//	                          code needs a separate job (trigger, run, report)
//	pull_request_review,      like issue_comment, when the code is of this repository; for
//	  …_review_comment        a fork nothing, because the token is read-only
//	merge_group               run and report, in a check run and the summary: its code was
//	                          reviewed, but may be a fork's, so the job can have neither an
//	                          OIDC token nor a person's
//	push                      run, for the default branch only: its code was merged, and what
//	                          set-up leaves may be kept for pull requests
//	workflow_dispatch         like issue_comment; without a pull request, run
//	pull_request_target       always refused: it gives secrets and a write token
//	                          to a job about unreviewed code
//
// phase: review verifies a reviewer's findings instead of running a plan, and posts them in the
// same job when pull_request or workflow_dispatch is about code of this repository.
//
// phase: run, report and trigger select one of these steps, for workflows that
// split them into jobs. Whatever the phase, fork code does not run in a job that
// can request an OIDC token or that was given a person's token, and nothing
// runs where it cannot be sandboxed.
//
// # Why only parts of go-githubactions are used
//
// github.com/sethvargo/go-githubactions, which follows the runner's toolkit, is
// used to read inputs and to escape commands. Its SetOutput, SetEnv and SaveState
// are not used: they write every value with the same delimiter, so a value that
// contains that line can forge further outputs. Nor are Infof, which prints
// unescaped text, and Context, which reads missing numbers as 0.
package action
