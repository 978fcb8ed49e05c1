// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// parsing are the built-ins that parse arguments, with valid ones. With an argument that is not valid
// they fail, and each evaluation with them.
var parsing = map[string][]*ast.Term{
	"regex.match":                      {ast.StringTerm(""), ast.StringTerm("")},
	"regex.find_n":                     {ast.StringTerm(""), ast.StringTerm(""), ast.IntNumberTerm(1)},
	"regex.find_all_string_submatch_n": {ast.StringTerm(""), ast.StringTerm(""), ast.IntNumberTerm(1)},
	"regex.replace":                    {ast.StringTerm(""), ast.StringTerm(""), ast.StringTerm("")},
	"regex.split":                      {ast.StringTerm(""), ast.StringTerm("")},
	"glob.match":                       {ast.StringTerm(""), ast.ArrayTerm(), ast.StringTerm("")},
	"net.cidr_contains":                {ast.StringTerm("::/0"), ast.StringTerm("::")},
	"semver.compare":                   {ast.StringTerm("1.0.0"), ast.StringTerm("1.0.0")},
	"units.parse":                      {ast.StringTerm("1")},
	"units.parse_bytes":                {ast.StringTerm("1")},
	"time.parse_rfc3339_ns":            {ast.StringTerm("2000-01-01T00:00:00Z")},
	"time.parse_duration_ns":           {ast.StringTerm("1s")},
	"json.unmarshal":                   {ast.StringTerm("1")},
	"base64.decode":                    {ast.StringTerm("")},
	"hex.decode":                       {ast.StringTerm("")},
}

// checkConstants refuses constant arguments that no built-in can parse, such as an invalid pattern: the
// first decision that reaches one would stop the run.
func (c *checker) checkConstants(m *ast.Module) {
	check := func(at *ast.Location, name string, operands []*ast.Term) {
		valid := parsing[name]
		for i := range min(len(valid), len(operands)) {
			if _, isText := valid[i].Value.(ast.String); !isText {
				continue
			}
			eachText(c.graph, m, operands[i], func(text string) {
				if err := callWith(name, valid, i, text); err != nil {
					c.addProblem(at, module.CodeCompile, fmt.Sprintf("%s cannot read %q: %v", name, text, err),
						"correct it: as it is, every decision that reaches it stops the run")
				}
			})
		}
	}
	ast.WalkNodes(m, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Expr:
			if n.IsCall() {
				check(n.Location, n.Operator().String(), n.Operands())
			}
		case *ast.Term:
			if call, ok := n.Value.(ast.Call); ok {
				check(n.Location, call[0].String(), call[1:])
			}
		}
		return false
	})
}

// callWith is the error of a built-in with one argument, and valid ones otherwise.
func callWith(name string, valid []*ast.Term, at int, text string) error {
	operands := append([]*ast.Term{}, valid...)
	operands[at] = ast.StringTerm(text)
	ignore := func(*ast.Term) error { return nil }
	err := topdown.GetBuiltin(name)(topdown.BuiltinContext{}, operands, ignore)
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), "eval_builtin_error: "))
}
