// SPDX-License-Identifier: Apache-2.0

// Package policies is the policy that fumehood ships: deny by default, allow what
// reviewers run, one small file a tool.
//
// Interpreters and build tools run the repository's code by nature. The policy
// allows them as such and leaves containment to the sandbox; it promises only that
// what runs is what the text shows.
//
// What begins in the sandbox is judged by the same table of names as the text: a
// command that runs none of the repository's code starts none of its programs, and
// some programs begin for nobody.
//
// No host is granted. A policy that grants some says so in fumehood.proposal, as the
// folders of examples show, which are no part of what is shipped; the rules of
// fumehood.egress then hold each connection to what was granted.
//
// What looks like a secret in what a command prints or leaves is replaced before it
// leaves; a file that is no text is withheld for it.
//
// Who may start, approve or ask about a run is decided by the role that GitHub's API
// reports, and bots are known by id.
package policies

import "embed"

// FS holds the Rego modules, and their data. Files ending in _test.rego are tests.
//
//go:embed command egress event exec lib output proposal registries snippet trigger
var FS embed.FS

// Options says which options each tool has and which of them take a value. It is
// knowledge about tools, not judgement; see the comment at its top.
//
//go:embed options.txt
var Options string
