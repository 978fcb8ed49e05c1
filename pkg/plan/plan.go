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
// Both formats become one tree of nodes with positions, and one table (fields.go)
// defines what it may contain. The published JSON Schema is generated from the
// same table, so the two cannot drift apart.
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
//
// # Why
//
// go.yaml.in/yaml parses YAML, but this package decides what plain words mean:
// YAML 1.1 and 1.2 disagree about on, 012 and 1:30, and a person approving a plan
// should not need to know which one a program follows.
package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"sort"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of a plan.
const (
	MaxDocument  = 1 << 20 // bytes
	MaxDepth     = 16      // nested objects and lists
	MaxProposals = 200
	MaxProblems  = 20 // listed; a plan with more is rejected as well
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
	rejected := proposal.Plan{Digest: digest(data)}
	var ps problems
	root := readPlan(data, name, &ps)
	if len(ps.list) > 0 {
		return rejected, ps.sorted()
	}
	accepted := planOf(root)
	accepted.Digest = rejected.Digest
	return accepted, nil
}

// Warnings returns the first use of each deprecated field in a document that Decode
// accepts. They do not change what the plan means.
func Warnings(data []byte, name string) []proposal.Problem {
	var ps, found problems
	if root := readPlan(data, name, &ps); len(ps.list) == 0 {
		warnDeprecated(root, &found)
	}
	return found.sorted()
}

// readPlan reads a plan and checks it. The tree is usable only if there is no problem.
func readPlan(data []byte, name string, ps *problems) *node {
	root := read(data, name, ps)
	if root != nil {
		check(root, &planShape, "", ps)
		checkPlan(root, ps)
	}
	return root
}

// read returns nil if there is no tree to check; a problem then says why.
func read(data []byte, name string, ps *problems) *node {
	if len(data) > MaxDocument {
		ps.add(position{1, 1}, "", "the %s is %d bytes long; at most %d are allowed", ps.document(), len(data), MaxDocument)
		return nil
	}
	if scanDocument(data, ps); len(ps.list) > 0 {
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		ps.add(position{1, 1}, "", "the %s is empty", ps.document())
		return nil
	}
	if isJSON(data, name) {
		return readJSON(data, ps)
	}
	root := readYAML(data, ps)
	if root != nil && root.kind == null {
		ps.add(root.at, "", "the %s is empty", ps.document())
		return nil
	}
	return root
}

func isJSON(data []byte, name string) bool {
	switch path.Ext(name) {
	case ".json":
		return true
	case ".yaml", ".yml":
		return false
	}
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Describe formats p in one line, as compilers do: "plan.yaml:7:5: proposals[0].timeout: …".
func Describe(name string, p proposal.Problem) string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", name, p.Line, p.Col, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", name, p.Line, p.Col, p.Path, p.Message)
}

// problems collects up to MaxProblems problems.
type problems struct {
	list  []proposal.Problem
	about string // the document's name, "" for a plan
}

func (ps *problems) document() string {
	if ps.about == "" {
		return "plan"
	}
	return ps.about
}

func (ps *problems) full() bool { return len(ps.list) >= MaxProblems }

func (ps *problems) add(at position, path, format string, args ...any) {
	if ps.full() {
		return
	}
	ps.list = append(ps.list, proposal.Problem{
		Path: path, Line: at.line, Col: at.col, Message: fmt.Sprintf(format, args...),
	})
}

func (ps *problems) sorted() []proposal.Problem {
	sort.SliceStable(ps.list, func(i, j int) bool {
		a, b := ps.list[i], ps.list[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	return ps.list
}
