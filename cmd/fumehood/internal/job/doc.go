// SPDX-License-Identifier: Apache-2.0

// Package job does what one step of a GitHub Actions job does: it judges a comment
// (Trigger), runs plans (Run), asks a model for findings (Find), verifies findings (Verify), reads
// what another job ran (Gather) and shows the results (Report). Do reads the environment, chooses
// among them and returns a Conclusion; the caller turns that into an exit code. Read and Job.Base
// make what they need, for callers that do one of them.
//
// # What it promises
//
// Policy and configuration are read at the tip of the default branch, which each step
// requests from the API, and policy from the organization's pinned bundle: never from the pull
// request, from the commit that its event calls its base, or from a branch that it chooses. A
// branch that the workflow names may add rules that restrict. An approval is bound to the commit, plan, policy
// and working directory that the comment showed, and is refused when any of them has changed. A run that another
// job made is decided again with this repository's policy before its results are shown; a log or report that
// does not verify is refused. A pull request is a fork's unless the API says that both of its repositories are
// the same one.
//
// An error is never "nothing to do": the Conclusion of a step that could not do its work
// is Stopped, and the zero Conclusion is that, too.
//
// # What it writes
//
// It writes workflow commands to Options.Stdout, and the files that the runner names:
// the step's outputs and its summary. It writes to no other stream. In RUNNER_TEMP it
// makes a directory with the artifact: of each plan the files plan, report.json and
// audit.jsonl, at the top for one plan and in numbered directories for several. A job that
// reports makes one with the cosigned checkpoints of the logs that it accepted, if it has a key
// for that, and leaves their digests in audit.sha256.
//
// # Limits
//
// Plans run in another process, as root and without the job's token; see Options.Program. Where a
// model is asked beside the code, that process asks through this one, which alone has the key.
// What that process enforces is described in package gate. A Request is as trustworthy
// as the job that made it, which must not run the pull request's code.
package job
