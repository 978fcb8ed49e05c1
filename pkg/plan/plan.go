// SPDX-License-Identifier: Apache-2.0

// Package plan reads plans: it decodes untrusted, AI-written bytes into a
// proposal.Plan, or into a list of problems with their positions.
//
// A plan is one JSON or YAML document of at most MaxDocument bytes:
//
//	schema: fumehood.plan/v1
//	proposals:
//	  - id: unit
//	    run: go test ./pkg/parse -run TestHeredoc -count=1
//	    why: the PR touches heredocs
//	    timeout: 2m
//
// Both formats become one tree of nodes with positions (pkg/internal/document), and one
// table (fields.go) defines what it may contain. The published JSON Schema is generated
// from the same table, so the two cannot drift apart.
//
// The reader promises that an accepted plan means the same to every reader, people
// included: no unknown or repeated field, no null, no YAML word that another
// parser takes for a boolean or a number, no anchor, alias, tag or second
// document, only valid UTF-8, no control character except newline and tab, and no
// character that hides or reorders its neighbors. Every size is bounded before the
// content is read. Nothing in a rejected plan may be run.
//
// It does not judge what a proposal does: an accepted plan is as hostile as
// before. pkg/parse, policy and the sandbox handle that.
package plan

import (
	"github.com/fumehood/fumehood/pkg/internal/document"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of a plan.
const (
	MaxDocument  = 1 << 20           // bytes
	MaxDepth     = document.MaxDepth // nested objects and lists
	MaxProposals = 200
	MaxProblems  = document.MaxProblems // listed; a plan with more is rejected as well
)

// Decode reads the plan in data.
//
// A name that ends in .json, .yaml or .yml determines the format. For any other
// name the content does: JSON begins with a brace.
//
// The plan is accepted only if no Problem is returned. Otherwise the Plan holds
// only the document's Digest, and the Problems, at most MaxProblems, are in
// document order. Their columns count characters from 1. Messages and paths quote
// what they repeat of the document, so they are safe to print.
func Decode(data []byte, name string) (proposal.Plan, []proposal.Problem) {
	rejected := proposal.Plan{Digest: document.Digest(data)}
	var ps problems
	root := readPlan(data, name, &ps)
	if len(ps.List) > 0 {
		return rejected, ps.Sorted()
	}
	accepted := planOf(root)
	accepted.Digest = rejected.Digest
	return accepted, nil
}

// Warnings returns the first use of each deprecated field in a document that Decode
// accepts. They do not change what the plan means.
func Warnings(data []byte, name string) []proposal.Problem {
	var ps, found problems
	if root := readPlan(data, name, &ps); len(ps.List) == 0 {
		warnDeprecated(root, &found)
	}
	return found.Sorted()
}

// readPlan reads a plan and checks it. The tree is usable only if there is no problem.
func readPlan(data []byte, name string, ps *problems) *node {
	ps.About = "plan"
	root := document.Read(data, name, MaxDocument, ps)
	if root != nil {
		document.Check(root, &planShape, "", ps)
		checkPlan(root, ps)
	}
	return root
}

// Describe formats p in one line, as compilers do: "plan.yaml:7:5: proposals[0].timeout: …".
func Describe(name string, p proposal.Problem) string { return document.Describe(name, p) }
