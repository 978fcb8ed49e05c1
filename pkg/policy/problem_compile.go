// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// compileProblem says what OPA's parser or compiler says, with what may have been meant.
func (l *layer) compileProblem(e *ast.Error) Problem {
	p := l.at(e.Location, Refused, codeCompile, plainly(e.Message), "")
	switch d := e.Details.(type) {
	case *ast.RefErrInvalidDetail:
		return l.wrongField(p, d)
	case *ast.UnificationErrDetail:
		p.Hint = "compare values of one type: left is " + d.Left.String() + ", right is " + d.Right.String()
	}
	for _, name := range undefinedFunctions(e) {
		if instead, ok := withheld(pointExec, name); ok {
			p.Code, p.Message, p.Hint = codeBuiltin, "policies may not use "+name, instead
		} else {
			p.Message, p.Hint = noFunction(name), meant(name, builtinNames())
		}
	}
	return p
}

// wrongField says which field is not there, and which could be meant.
func (l *layer) wrongField(p Problem, d *ast.RefErrInvalidDetail) Problem {
	wrong := strings.Trim(d.Ref[d.Pos].String(), `"`)
	var known []string
	for _, v := range d.OneOf {
		known = append(known, strings.Trim(v.String(), `"`))
	}
	p.Message = noField(d.Ref[:d.Pos], wrong)
	p.Hint = meant(wrong, known)
	return p
}

// plainly is OPA's message without the mark of its kind.
func plainly(message string) string {
	for _, kind := range []string{"rego_parse_error: ", "rego_compile_error: ", "rego_type_error: "} {
		message = strings.TrimPrefix(message, kind)
	}
	return message
}
