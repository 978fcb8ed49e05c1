// SPDX-License-Identifier: Apache-2.0

// Package github reads and writes what fumehood needs of GitHub over REST: pull
// requests, their comments, check runs, workflow runs and artifacts. It speaks
// through go-github and gives back plain values in the house's words.
//
// It promises:
//   - The token goes to the API's own scheme and host and nowhere else: not along a
//     redirect, not to the place that an artifact lies at.
//   - A list is whole or an error. Pages are read in order and their number is
//     bounded; an answer that is cut off, empty where there must be something, or
//     not of the expected shape is an error, never "nothing there".
//   - No request is made twice unless doing it twice does no more than doing it once,
//     or the first surely did nothing. When it cannot be known whether a write took
//     place the error's Kind is Uncertain, and the caller must look.
//   - GitHub's own waiting times are kept to, within Options.MaxWait. Every answer
//     and every request has a bound in bytes and in time.
//   - Errors are a *proposal.StopError with a stable code and a hint (for a missing
//     right the YAML that grants it), and inside it an *Error with the Kind.
//     The server's text in them is bounded and has nothing invisible in it.
//
// It does not protect against GitHub itself: what the API says is taken for true.
// Titles, branch names, logins and comments are other people's text and are handed
// on as they are. GitHub answers 404 for what a token may not see, so NotFound never
// proves that something is not there. While a list is being read others can change
// it: an item twice is dropped, but when one before it is removed just then, one can
// be missed.
//
// # Why
//
// A conditional request that is answered "not modified" does not count against the
// rate limit, so answers with an ETag are kept in memory and asked for again by it.
// go-github keeps books of rate limits by the real clock and then refuses by itself;
// waiting is decided here, in one place, so those headers are taken out of the
// answers it sees. Pages are followed by the number in GitHub's Link header, never by
// its URL, so no Link can lead elsewhere.
package github
