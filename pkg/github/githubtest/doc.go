// SPDX-License-Identifier: Apache-2.0

// Package githubtest is a GitHub for tests: a stateful server on loopback that
// speaks the part of the REST API that fumehood uses, and a git server beside it.
//
// Every request is checked against GitHub's own description of its API
// (testdata/github), and so is every answer of the fake. What GitHub would refuse
// or silently ignore (a query parameter that it does not document, a field that it
// does not know, a comment sorted where sorting is not to be had) is a [Violation],
// and a violation fails the test.
//
// On top stand the rules that the description does not tell: rights by scope (a
// missing right to write is 403 "Resource not accessible by integration", a missing
// right to read is 404), 65,536 characters in a comment, locked conversations,
// 50 annotations, rate limits with their headers, conditional requests, pages with
// Link headers, redirects to a blob store that takes no token. And it can be told to
// misbehave: see [Fault].
//
// It is no oracle for what it does not implement: an operation outside its table is
// a violation and 501. It knows nothing of branch protection, organisations, SAML,
// webhooks or workflow execution, and it never renders anything.
package githubtest
