// SPDX-License-Identifier: Apache-2.0

// Package githubtest is a fake GitHub for tests: a stateful server on loopback that
// implements the part of the REST API that fumehood uses, and a separate git server.
//
// Every request is checked against GitHub's own description of its API
// (testdata/github), and so is every response of the fake. Anything that GitHub
// would refuse or silently ignore (a query parameter that it does not document, a
// field that it does not know, sorting comments where it does not support that) is
// a [Violation], and a violation fails the test.
//
// The fake also implements rules that the description does not contain: rights by
// scope (a missing right to write is 403 "Resource not accessible by integration",
// a missing right to read is 404), 65,536 characters in a comment, locked
// conversations, 50 annotations, rate limits with their headers, conditional
// requests, pages with Link headers, and redirects to a blob store that accepts no
// token. It can also be made to misbehave: see [Fault].
//
// Of the GraphQL API it serves exactly the documents that the client sends: who the token writes
// as, the threads of reviews, and resolving them. Others are a Violation. Faults and hooks for
// them have the Op "graphql".
//
// Operations that it does not implement are a violation and return 501. It does not
// model branch protection, organizations, SAML, webhooks or workflow execution, and
// it renders nothing.
package githubtest
