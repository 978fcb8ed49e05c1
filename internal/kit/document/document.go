// SPDX-License-Identifier: Apache-2.0

// Package document reads the documents that people and models write: plans, cases and
// configuration files. Untrusted bytes, JSON or YAML, become one tree of nodes with
// positions; a Shape defines what the tree may contain, and the JSON Schema of a format
// is generated from the same Shape.
//
// The reader promises that an accepted value means the same to every reader, people
// included: no unknown or repeated field, no null, no YAML word that another parser takes
// for a boolean or a number, no anchor, alias, tag or second document, only valid UTF-8,
// no control character except newline and tab, and no character that hides or reorders its
// neighbors. A command is the text that its author wrote: a YAML value of which YAML drops
// or joins a part is invalid. Every size is bounded before the content is read. Messages
// and paths quote what they repeat of the document, so they are safe to print.
//
// A mistake belongs to the smallest value that contains it, and Check reports it there. The
// caller decides whether the rest is usable. In block style, so does invalid YAML inside an
// item of the document's first list: see salvageItems.
//
// A document may be the only block of code in a Markdown text, or follow sentences, as models answer.
//
// # Why
//
// go.yaml.in/yaml parses YAML, but this package decides what plain words mean:
// YAML 1.1 and 1.2 disagree about on, 012 and 1:30, and a person approving a document
// should not need to know which one a program follows.
package document

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"sort"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of every document.
const (
	MaxDepth    = 16 // nested objects and lists
	MaxProblems = 20 // listed; a document with more is rejected as well
)

// Read parses a document of at most limit bytes. A name that ends in .json, .yaml or .yml
// determines the format; for any other name the content does: JSON begins with a brace.
// A byte order mark at the begin is ignored, and so is what surrounds the only block of code
// in a Markdown text, and sentences before the first field. It returns nil if there is no tree to check; ps then
// has the reason.
func Read(data []byte, name string, limit int, ps *Problems) *Node {
	if len(data) > limit {
		ps.Add(Position{1, 1}, "", "the %s is %d bytes long; at most %d are allowed", ps.documentName(), len(data),
			limit)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data, language := extractCodeBlock(data, ps)
	data, hidden := scanDocument(data, ps)
	if len(ps.List) > 0 {
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		ps.Add(Position{1, 1}, "", "the %s is empty", ps.documentName())
		return nil
	}
	var root *Node
	if language == "json" || language == "" && isJSON(data, name) {
		root = readJSON(data, ps)
	} else if root = readYAML(data, ps); root != nil && root.Kind == Null {
		ps.Add(root.At, "", "the %s is empty", ps.documentName())
	} else if line := findStrayText(data); root == nil && line > 0 {
		ps.List = nil
		ps.Add(Position{line, 1}, "", "this line is not a part of the %s: indent it if a command has it; otherwise remove it, or put the %s between lines with ```", ps.documentName(), ps.documentName())
	}
	placeHidden(root, hidden, ps)
	if len(ps.List) > 0 {
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

// Digest returns "sha256:" and the SHA-256 of data in lower-case hex.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// DescribeProblem formats p in one line, as compilers do: "plan.yaml:7:5: proposals[0].timeout: …".
func DescribeProblem(name string, p proposal.Problem) string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", name, p.Line, p.Col, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", name, p.Line, p.Col, p.Path, p.Message)
}

// Problems collects up to MaxProblems problems.
type Problems struct {
	List  []proposal.Problem
	About string // what the document is, for messages: "plan"
}

func (ps *Problems) documentName() string {
	if ps.About == "" {
		return "document"
	}
	return ps.About
}

// IsFull reports whether ps takes no more problems.
func (ps *Problems) IsFull() bool { return len(ps.List) >= MaxProblems }

// Add adds a problem, unless ps is full.
func (ps *Problems) Add(at Position, path, format string, args ...any) {
	if ps.IsFull() {
		return
	}
	ps.List = append(ps.List, proposal.Problem{
		Path: path, Line: at.Line, Col: at.Col, Message: fmt.Sprintf(format, args...),
	})
}

// SortedProblems returns the problems in the order of the document.
func (ps *Problems) SortedProblems() []proposal.Problem {
	sort.SliceStable(ps.List, func(i, j int) bool {
		a, b := ps.List[i], ps.List[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	return ps.List
}
