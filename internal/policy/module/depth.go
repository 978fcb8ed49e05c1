// SPDX-License-Identifier: Apache-2.0

package module

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// maxNested limits how deep brackets nest. The compiler recurses for each level, in many
// places, and a Go stack overflow ends the process.
const maxNested = 200

// maxDeep limits the same for parsed terms, where each bracket is a few levels.
const maxDeep = 2000

// deepTerms finds nesting without brackets: long chains of operators and of else, and
// strings that contain expressions.
func deepTerms(m *ast.Module) error {
	depth, deepest := 0, 0
	var where *ast.Location
	before := func(n any) bool {
		if depth++; depth > deepest {
			deepest = depth
			if t, ok := n.(*ast.Term); ok {
				where = t.Location
			}
		}
		return deepest > maxDeep
	}
	v := ast.NewBeforeAfterVisitor(before, func(any) { depth-- })
	v.Walk(m)
	if deepest > maxDeep {
		return ast.Errors{ast.NewError(ast.ParseErr, where, "expressions nest deeper than %d levels", maxDeep)}
	}
	return nil
}

// tooDeep reads content as Rego's scanner does, as far as needed to find brackets: those in
// strings and comments do not count.
func tooDeep(name string, content []byte) error {
	depth, row, column := 0, 1, 0
	var in byte // the quote or # that is open
	for i := 0; i < len(content); i++ {
		c := content[i]
		if column++; c == '\n' {
			row, column = row+1, 0
		}
		switch {
		case in == '#' || in == '"':
			if c == '\n' {
				in = 0 // a string ends on its line, or the parser refuses it
			} else if in == '"' && c == '\\' {
				i, column = i+1, column+1
			} else if c == in && in == '"' {
				in = 0
			}
		case in == '`':
			if c == in {
				in = 0
			}
		case c == '#' || c == '"' || c == '`':
			in = c
		case c == '(' || c == '[' || c == '{':
			if depth++; depth > maxNested {
				where := &ast.Location{File: name, Row: row, Col: column}
				return ast.Errors{ast.NewError(ast.ParseErr, where, "brackets nest deeper than %d levels", maxNested)}
			}
		case c == ')' || c == ']' || c == '}':
			depth = max(0, depth-1)
		}
	}
	return nil
}
