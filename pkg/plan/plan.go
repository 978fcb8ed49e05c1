// SPDX-License-Identifier: Apache-2.0

// Package plan reads plans: it decodes untrusted, AI-written bytes into a
// proposal.Plan, in which each proposal with a mistake is Invalid, or into a list of
// problems with their positions.
//
// A plan is one JSON or YAML document of at most MaxDocument bytes:
//
//	schema: fumehood.plan/v1
//	proposals:
//	  - id: unit
//	    run: go test ./internal/shell/parse -run TestHeredoc -count=1
//	    why: the PR touches heredocs
//	    timeout: 2m
//
// Both formats become one tree of nodes with positions (internal/kit/document), and one
// table (fields.go) defines what it may contain. The published JSON Schema is generated
// from the same table, so the two cannot drift apart.
//
// The reader promises that an accepted proposal means the same to every reader, people
// included: no unknown or repeated field, no YAML word that another
// parser takes for a boolean or a number, no anchor, alias, tag or second
// document, only valid UTF-8, no control character except newline and tab, and no
// character that hides or reorders its neighbors. A command is the text that its author
// wrote: a proposal is Invalid if YAML drops or joins a part of it. Every size is bounded
// before the content is read. Nothing in a rejected plan may be run, and nothing of a
// proposal that is Invalid.
//
// testdata/models.txtar shows what happens to plans as models write them.
//
// An optional field of a proposal may be null or empty, which means that it is left out:
// models whose answer must fit a strict schema give every field.
//
// It does not judge what a proposal does: an accepted plan is as hostile as
// before. internal/shell/parse, policy and the sandbox handle that.
package plan

import (
	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of a plan.
const (
	MaxDocument  = 1 << 20 // bytes
	maxProposals = 200
	maxProblems  = document.MaxProblems // listed; a plan with more is rejected as well
)

// Decode reads the plan in data.
//
// A name that ends in .json, .yaml or .yml determines the format. For any other
// name the content does: JSON begins with a brace.
//
// A proposal with a mistake is refused alone: it is Invalid, which says why, and keeps its
// ID if no earlier proposal has that. Proposals with the same id are all Invalid. The
// document as a whole is accepted only if no Problem is returned. Otherwise the Plan holds
// only the document's Digest, and the Problems, at most MaxProblems, are in document order.
// That is for what makes the rest doubtful: a document that is not one JSON or YAML value
// in UTF-8, is too large, or is wrong outside its proposals. YAML that is invalid only
// inside a proposal in block style is a mistake of that proposal.
//
// The proposals of set-up come first, otherwise in document order. Columns count
// characters from 1. Messages and paths quote what they repeat of the document, so they
// are safe to print; paths count proposals in document order.
func Decode(data []byte, name string) (proposal.Plan, []proposal.Problem) {
	rejected := proposal.Plan{Digest: document.Digest(data)}
	var ps problems
	root := readPlan(data, name, &ps)
	if len(ps.List) > 0 {
		addRefused(root, &ps)
		return rejected, ps.SortedProblems()
	}
	accepted := planOf(root)
	accepted.Digest = rejected.Digest
	return accepted, nil
}

// Warnings returns, about a document that Decode accepts, each set-up proposal that runs
// before proposals that precede it.
func Warnings(data []byte, name string) []proposal.Problem {
	var ps, found problems
	if root := readPlan(data, name, &ps); len(ps.List) == 0 {
		warnMoved(root.Get("proposals").Items, &found)
	}
	return found.SortedProblems()
}

// readPlan reads a plan and checks it, except for its proposals. The tree is usable only
// if there is no problem.
func readPlan(data []byte, name string, ps *problems) *node {
	ps.About = "plan"
	root := document.Read(data, name, MaxDocument, ps)
	if root != nil {
		document.Check(root, &envelope, "", ps)
	}
	return root
}

// addRefused adds the problems of proposals to those of the document, so that its author
// sees all at once.
func addRefused(root *node, ps *problems) {
	items := root.Get("proposals") // root may be nil
	if items == nil || len(items.Items) > maxProposals {
		return
	}
	for _, p := range planOf(root).Refused() {
		ps.Add(document.Position{Line: p.Line, Col: p.Col}, p.Path, "%s", p.Message)
	}
}

// Describe formats p in one line, as compilers do: "plan.yaml:7:5: proposals[0].timeout: …".
func Describe(name string, p proposal.Problem) string { return document.DescribeProblem(name, p) }
