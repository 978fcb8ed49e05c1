// SPDX-License-Identifier: Apache-2.0

// Package policies is the policy that fumehood ships: deny by default, allow what
// reviewers run, one small file for each tool.
//
// Interpreters and build tools run the repository's code. The policy allows them and
// leaves containment to the sandbox. It promises only that the programs that run are the
// ones that the text shows.
//
// Programs that start in the sandbox are decided with the same table of names as the
// text. A command that does not run the repository's code cannot start its programs, and
// no command can start certain others.
//
// No host is granted. A policy grants hosts in fumehood.proposal, as the directories of
// examples show; they are not part of the shipped policy. The rules of fumehood.egress
// then limit each connection to the granted hosts.
//
// Text that looks like a secret is redacted in a command's output and files. A binary
// file that contains such text is withheld.
//
// The role that GitHub's API reports decides who may start, approve or ask about a run.
// Bots are identified by id.
package policies

import "embed"

// FS holds the Rego modules, and their data. Files ending in _test.rego are tests.
//
//go:embed command egress event exec lib output proposal registries snippet trigger
var FS embed.FS

// Options lists the options of each tool and which of them take a value. It contains facts
// about tools and no decisions; see the comment at its top.
//
//go:embed options.txt
var Options string

// Compiled is the compiled form of FS and Options, for package policy. It is made by
// go test ./internal/policy -run TestCompiled -update.
//
//go:embed compiled.bin
var Compiled string
