// SPDX-License-Identifier: Apache-2.0

// Package comment keeps exactly one comment of ours on a pull request, and keeps it
// current.
//
// It promises, for jobs that run at the same time as well:
//
//   - one comment. Ours is one whose first line is the marker and whose author is
//     the one that our token writes as, looked for over all pages; the marker in
//     anybody else's comment is passed over and counted. Where two jobs made two,
//     the lowest id stays and takes the newest content, the others are deleted;
//   - the newest content. A run of the pull request's present head beats one of
//     another head; else the larger run id does, then the larger attempt. What is
//     older than what stands is not written (Superseded);
//   - nothing of another job is lost: an answer of the bot, the results and the
//     counts are joined, whoever wrote them;
//   - nothing breaks: a locked conversation, a missing right, a deleted comment or a
//     GitHub that does not answer is an Outcome with a code and a hint, never a
//     panic, so that the caller says it in the step summary.
//
// # Format
//
//	<!-- fumehood:report -->
//	<!-- fumehood:state {"v":1,…} -->
//	<!-- fumehood:notice -->
//	what the bot answered last; may be empty
//	<!-- fumehood:results -->
//	what the newest run found
//
// The second line is a State as JSON in its one canonical spelling, at most 8,000
// UTF-16 units, in which neither "--" nor ">" can occur. A state that is not spelled
// exactly so, or that says something out of bounds, counts as absent. The whole has
// at most 65,536 units; results have ResultsRoom of them, so that a notice of
// NoticeRoom always fits beside them. A section cannot hold the beginning of one of
// our lines: its "<" is escaped.
//
// # What it does not protect against
//
// Marker and state are not signed. Every workflow of the same repository that holds
// a write token writes as the same bot, and one that can be made to post a
// stranger's text as a comment can be made to post a state. So a State only says
// what to look for: whoever acts on a Pending asks GitHub for the run and the
// artifact and checks the digests, and a budget counted here is lost with the
// comment. Who may write to the repository may edit or delete the comment.
//
// # Why
//
// GitHub has no write that depends on what is there, so a job could overwrite what
// another wrote after it looked. Instead every job looks, writes within Settle of
// looking or not at all, waits for Settle, looks again, and writes again what it finds
// missing. Whoever overwrote it had looked before it wrote, so has written by then;
// and a job carries on what it saw of others. The last to write a text therefore
// sees its loss. The package's tests run two and three jobs through every order of
// their requests. The promise needs GitHub to carry out a request, once it is
// sent, within Settle.
package comment
