// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// compileProblem converts an error of OPA's parser or compiler, with a hint.
func compileProblem(layer string, e *ast.Error) Problem {
	p := problemAt(layer, e.Location, Refused, module.CodeCompile, trimErrorCode(e.Message), "")
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
		if instead, ok := module.WithheldBuiltin(module.PointExec, name); ok {
			p.Code, p.Message, p.Hint = module.CodeBuiltin, "policies must not use "+name, instead
		} else {
			p.Message, p.Hint = noFunction(name), module.SuggestName(name, module.BuiltinNames())
		}
	}
	return p
}

// slips are hints for common mistakes, by words in OPA's message. No message contains two
// of them.
var slips = map[string]string{
	"`if` keyword is required":       "write if before the body: deny contains {…} if {…}. Rego before v1 did not need it",
	"`contains` keyword is required": "write deny contains {…} if {…} instead of deny[…] {…}, the syntax before v1",
	"package expected":               "begin the file with its package, for example: package fumehood.command",
	"empty module":                   "write a package and rules into it, or remove the file",
	"yaml: ":                         "METADATA is YAML: indent with spaces, and quote values that contain a colon",
	"illegal utf-8 character":        "save the file as UTF-8",
}

// wrongField returns the field that does not exist, and a similar one.
func wrongField(p Problem, d *ast.RefErrInvalidDetail) Problem {
	wrong := strings.Trim(d.Ref[d.Pos].String(), `"`)
	var known []string
	for _, v := range d.OneOf {
		known = append(known, strings.Trim(v.String(), `"`))
	}
	p.Message = noField(d.Ref[:d.Pos], wrong)
	p.Hint = module.SuggestName(wrong, known)
	return p
}

// trimErrorCode is OPA's message without the code of its kind.
func trimErrorCode(message string) string {
	for _, kind := range []string{"rego_parse_error: ", "rego_compile_error: ", "rego_type_error: "} {
		message = strings.TrimPrefix(message, kind)
	}
	return message
}
