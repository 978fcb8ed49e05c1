// SPDX-License-Identifier: Apache-2.0

// Package post keeps the comments of a review on the lines of a pull request current.
//
// It promises:
//
//   - nothing but comments. A review is created with the event COMMENT, which neither approves nor
//     blocks: github.NewReview has no field for another one;
//   - only verified findings, on positions of the diff, at the head that was reviewed. If the head
//     has moved, nothing new is posted. A review is one request, so it is never half. If GitHub
//     refuses a position, those outside its own hunks are left out, and then all of them: the
//     findings are in the summary in any case;
//   - of a document that review.LintsOf made: only what linters report on lines that the pull
//     request changes, at most MaxLints in a run. One that is not reported any more says so, if
//     every command of the run ended by itself, and its thread is resolved;
//   - one comment for a finding. Our comments are those whose first line is a marker and whose
//     author is the account that the token writes as. They are listed first, so that a job that
//     was killed at any point can be run again. Of two comments on one finding, which two jobs
//     created at once, the one with the higher id is deleted;
//   - comments that stay true. One whose finding is no longer reproduced, or fails before the pull
//     request too, says so. One that GitHub calls outdated says where its lines are now;
//   - threads that follow. The thread of a comment is resolved when its finding is no longer
//     reproduced, and unresolved when it is verified again: once for each such change, and not if a
//     person has resolved it. That GitHub refuses this is no failure. If it does not answer, the
//     marker says that it is pending, and the next run does it.
//
// # What it does not protect against
//
// Markers are not signed: everything that writes as the same account can write one, and then a
// finding counts as posted. A comment whose finding is not in the Document stays as it is: its
// reproducer did not run.
package post
