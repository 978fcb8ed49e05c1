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
//   - a section for each source: workflow, job and name, and for a command in a comment its
//     requester. Only newer results of the same source replace a section: of the same run those of a
//     later attempt, else those of the run that was started later by GitHub's clock, whatever the ids of
//     the runs are. Two results of one attempt of one source leave the worse;
//   - a verdict on the newest commit: the heading is over all sections of it, the worst first. Results of
//     another commit are listed as earlier ones. Where there are no others, they are shown, marked as
//     of an older commit, below a heading that says that the newest has none;
//   - a bounded number of sections, by pool: 10 of the repository's workflows, 6 of persons who request
//     runs, 4 of workflows that the pull request can change. A pool's best sections are left out, and
//     never those of another pool. The heading then counts the worst of what was left out, and is no
//     success, until there is a newer commit;
//   - content of other jobs is not lost: the bot's answer, the sections and the
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
//	<!-- fumehood:results -->
//	the heading over all sections; only if one section's own is not enough
//	<!-- fumehood:section -->
//	the heading of a section, derived from the state, and below it the section's text; for each section
//	<!-- fumehood:end -->
//	earlier results; only if there are any
//
// The second line is a State as JSON in its one canonical spelling, at most 28,000
// UTF-16 units, in which neither "--" nor ">" can occur. A state that is spelled
// differently, is of another version, or has a value out of bounds, is treated as absent, and texts
// without a state are removed. All headings are derived from the state and from the pull request's head.
//
// The whole comment has at most 65,536 units. What the state, the headings and a notice of NoticeRoom
// leave is shared by the texts of sections, so that a short one is not cut because of a long one. A
// heading is never cut, and neither is a section with a plan that waits for approval: where
// there is no room to show everything that waits, it cannot be approved. A text cannot contain the
// beginning of one of these lines: its "<" is escaped.
//
// # What it does not protect against
//
// Marker and state are not signed. Every workflow of the same repository that has a
// write token writes as the same bot, and one that can be made to post untrusted
// text as a comment can be made to post a state. So a State is only a hint: a
// caller that acts on a Pending must get the run and the artifact from GitHub and
// check the digests. A budget counted here is lost if the comment is deleted.
// Anyone who can write to the repository can edit or delete the comment. What a workflow reports
// that the pull request can change may be made up: its sections have no mark, and no heading over one
// is a success.
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
