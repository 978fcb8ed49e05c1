// SPDX-License-Identifier: Apache-2.0

// Package github is a REST client for the parts of GitHub that fumehood uses: pull
// requests, their comments, check runs, workflow runs and artifacts. It uses
// go-github and returns plain values of its own types. The GraphQL API is used for what REST
// lacks: the threads of reviews, and the account of an app's token.
//
// It promises:
//   - The token goes only to the API's own scheme and host: not along a redirect,
//     and not to the storage that holds an artifact.
//   - A list is complete or an error. Pages are read in order and their number is
//     bounded. A response that is truncated, empty where content is required, or
//     not of the expected shape is an error, never an empty result.
//   - A request is repeated only if it is idempotent or if the first one certainly
//     had no effect. If it is unknown whether a write took place, the error's Kind
//     is Uncertain, and the caller must check.
//   - Waiting times that GitHub asks for are respected, within Options.MaxWait.
//     Every response and every request is bounded in bytes and in time.
//   - Errors are a *proposal.StopError with a stable code and a hint (for a missing
//     right, the YAML that grants it). It wraps an *Error with the Kind. The server's
//     text in it is bounded and has no invisible characters.
//
// It does not protect against GitHub itself: the API's responses are trusted.
// Titles, branch names, logins and comments are other people's text and are
// returned unchanged. GitHub answers 404 for anything a token may not see, so
// NotFound never proves that something does not exist. A list can change while it
// is being read: an item that appears twice is dropped, but an item can be missed
// if one before it is removed at that moment.
//
// # Why
//
// A conditional request that GitHub answers with "not modified" does not count
// against the rate limit, so responses with an ETag are kept in memory and
// revalidated. go-github tracks rate limits by the real clock and then refuses
// requests itself. Here, waiting is decided in one place, so those headers are
// removed from the responses that it sees. Pages are followed by the number in
// GitHub's Link header, never by its URL, so a Link cannot lead to another host.
package github
