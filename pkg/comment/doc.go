// SPDX-License-Identifier: Apache-2.0

// Package comment keeps exactly one fumehood comment on a pull request, and keeps
// it current.
//
// It promises, also for concurrent jobs:
//
//   - one comment. Fumehood's comment is one whose first line is the marker and
//     whose author is the account that the token writes as. It is searched for on
//     all pages. Comments by other authors that contain the marker are ignored and
//     counted. If two jobs created a comment each, the one with the lower id is kept
//     and gets the newest content; the others are deleted;
//   - the newest content. A run of the pull request's current head replaces one of
//     another head; otherwise the larger run id does, then the larger attempt.
//     Content older than the comment's is not written (Superseded);
//   - content of other jobs is not lost: the bot's answer, the results and the
//     counts are merged, whichever job wrote them;
//   - no panic: for a locked conversation, a missing right, a deleted comment or an
//     unreachable GitHub, the Outcome has a code and a hint, which the caller shows
//     in the step summary.
//
// # Format
//
//	<!-- fumehood:report -->
//	<!-- fumehood:state {"v":1,…} -->
//	<!-- fumehood:notice -->
//	the bot's last answer; may be empty
//	<!-- fumehood:review -->
//	the summary of the newest review; only if there is one
//	<!-- fumehood:results -->
//	the results of the newest run
//
// The second line is a State as JSON in its one canonical spelling, at most 8,000
// UTF-16 units, in which neither "--" nor ">" can occur. A state that is spelled
// differently, or that has a value out of bounds, is treated as absent. The whole
// comment has at most 65,536 units. Results have ResultsRoom of them, so that a
// notice of NoticeRoom and a review of ReviewRoom always fit too. A section cannot contain the beginning of
// one of these lines: its "<" is escaped.
//
// # What it does not protect against
//
// Marker and state are not signed. Every workflow of the same repository that has a
// write token writes as the same bot, and one that can be made to post untrusted
// text as a comment can be made to post a state. So a State is only a hint: a
// caller that acts on a Pending must get the run and the artifact from GitHub and
// check the digests. A budget counted here is lost if the comment is deleted.
// Anyone who can write to the repository can edit or delete the comment.
//
// # Why
//
// GitHub has no conditional write, so a job could overwrite what another job wrote after
// the first one read. Instead, every job reads, writes within Settle of reading or not at
// all, waits for Settle, reads again, and rewrites what is missing. A job that overwrote
// it had read before it wrote, so by then it has written; and each job keeps the content
// of others that it has seen. So the last job to write a text notices its loss. The
// package's tests run two and three jobs through every order of their requests. The
// promise requires that GitHub executes a request within Settle of its being sent.
package comment
