// SPDX-License-Identifier: Apache-2.0

// Package review verifies what a reviewer claims about a pull request.
//
// A finding has a reproducer: a command that fails where the claim is true. The Verifier runs
// it on the pull request's code (head) and on the code before it (base, the merge base), each
// time in a sandbox of its own, through the gate: policy decides it and the log has it, like
// any other command. What the runs show is the verdict, and nothing that the reviewer says:
//
//   - verified: it failed on head and succeeded on base, three times each
//   - pre-existing: it failed on both
//   - flaky: the three runs of a side differ
//   - not reproduced: it succeeded on head
//   - not run: policy denied it, or what it needs is missing, or there is no reproducer
//
// A suggestion is applied to a copy of head. It is offered only if the finding is verified,
// the reproducer succeeds there, and every test that succeeded on head does so still.
//
// A finding's position is used only if the diff has it: see Diff.
//
// Findings are untrusted, and a reviewer can write a reproducer that fails for another reason
// than it claims. A verdict says what a command did, with the text of the command; it never
// says that the claim is true, and no verdict approves anything.
package review
