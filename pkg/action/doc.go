// SPDX-License-Identifier: Apache-2.0

// Package action is the runner's side of fumehood: it reads the inputs, the
// runner's variables and the event, decides what this job may do, and writes the
// job's log, outputs and step summary.
//
// It promises:
//
//   - an input, a variable or an event that it does not understand wholly is
//     refused, with the place and with the YAML that mends it; nothing is guessed;
//   - no text of a stranger becomes a workflow command, an output or a verdict:
//     [Console.Untrusted] prefixes each line, breaks both grammars of commands and
//     stands inside stop-commands; [Outputs] uses a delimiter that does not occur
//     in the value; [Summary] stays within the runner's limit;
//   - [Admit] never lets one job hold what a fork's code must not come near.
//
// It does not protect against a step that ran before ours in the same job: such a
// step may have changed files, variables and PATH. It cannot see which permissions
// the job's token has. And problem matchers that an earlier step registered
// (actions/setup-go, actions/setup-node) read every line of ours too, inside
// stop-commands as well: the prefix defeats those that begin at a line's start, but
// a stranger can still bring the runner to annotate text that a loose matcher
// accepts.
//
// # Why one event leads to one phase
//
//	event                     phase: auto does
//	pull_request              run and report, when the code is of this repository
//	pull_request, fork        run: the token of a fork's job can only read, so there
//	                          is no comment; the workflow_run workflow posts it
//	pull_request, Dependabot  run, for the same reason
//	workflow_run              report: it has a writing token, so it runs no code
//	issue_comment             run and report, when the code is of this repository
//	issue_comment, fork       refused: this event's token can write, so the fork's
//	                          code needs a job of its own (trigger, run, report)
//	workflow_dispatch         like issue_comment; without a pull request, run
//	pull_request_target       refused, always: it gives secrets and a writing token
//	                          to a job about code that nobody has read
//
// phase: run, report and trigger name one of these steps, for workflows that split
// them into jobs. Whatever is asked for, fork code does not run in a job that can
// ask for an OIDC token or that was given a classic personal token, and nothing runs
// where it cannot be sandboxed.
//
// # Why so little of go-githubactions
//
// Inputs are read and commands are escaped by github.com/sethvargo/go-githubactions,
// which follows the runner's toolkit. Its SetOutput, SetEnv and SaveState are not
// used: they write every value with the same delimiter, so that a value which holds
// that line forges further outputs. Nor are Infof, which prints raw, and Context,
// which reads numbers that are missing as 0.
package action
