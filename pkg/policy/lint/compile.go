// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/pkg/policy/module"
)

// compileProblem says what OPA's parser or compiler says, with what may have been meant.
func compileProblem(layer string, e *ast.Error) Problem {
	p := at(layer, e.Location, Refused, module.CodeCompile, plainly(e.Message), "")
	switch d := e.Details.(type) {
	case *ast.RefErrInvalidDetail:
		return wrongField(p, d)
	case *ast.UnificationErrDetail:
		p.Hint = "compare values of one type: left is " + d.Left.String() + ", right is " + d.Right.String()
	}
	for words, hint := range slips {
		if strings.Contains(p.Message, words) {
			p.Hint = hint
		}
	}
	for _, name := range module.UndefinedFunctions(e) {
		if instead, ok := module.Withheld(module.PointExec, name); ok {
			p.Code, p.Message, p.Hint = module.CodeBuiltin, "policies may not use "+name, instead
		} else {
			p.Message, p.Hint = noFunction(name), module.Meant(name, module.BuiltinNames())
		}
	}
	return p
}

// slips are what people who know another Rego, or little of it, write, by words of OPA's
// complaint. No two of these stand in one.
var slips = map[string]string{
	"`if` keyword is required":       "write if before the body: deny contains {…} if {…}. Rego before v1 did without",
	"`contains` keyword is required": "write deny contains {…} if {…} in place of deny[…] {…}, which was Rego before v1",
	"package expected":               "begin the file with its package, for example: package fumehood.command",
	"empty module":                   "write a package and rules into it, or remove the file",
	"yaml: ":                         "METADATA is YAML: indent it with blanks, and quote what holds a colon",
	"illegal utf-8 character":        "save the file as UTF-8",
}

// wrongField says which field is not there, and which could be meant.
func wrongField(p Problem, d *ast.RefErrInvalidDetail) Problem {
	wrong := strings.Trim(d.Ref[d.Pos].String(), `"`)
	var known []string
	for _, v := range d.OneOf {
		known = append(known, strings.Trim(v.String(), `"`))
	}
	p.Message = noField(d.Ref[:d.Pos], wrong)
	p.Hint = module.Meant(wrong, known)
	return p
}

// plainly is OPA's message without the mark of its kind.
func plainly(message string) string {
	for _, kind := range []string{"rego_parse_error: ", "rego_compile_error: ", "rego_type_error: "} {
		message = strings.TrimPrefix(message, kind)
	}
	return message
}
