// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// The compiler also finds most of these mistakes. It stops at the first stage that finds
// any; these checks report all of them.

// checkInputs refuses fields that the input of a decision point does not have. A library is for
// several points: a field of any of them is valid there.
func (c *checker) checkInputs(m *ast.Module) {
	pkg := module.PackageOf(m)
	for _, r := range m.Rules {
		ast.WalkRefs(r, func(ref ast.Ref) bool {
			if !ref[0].Equal(ast.InputRootDocument) || module.InLib(pkg) {
				return false
			}
			if at, known := unknownField(c.Document(pkg), ref); at > 0 {
				wrong := strings.Trim(ref[at].String(), `"`)
				c.addProblem(ref[0].Location, module.CodeCompile, noField(ref[:at], wrong),
					module.SuggestName(wrong, known))
			}
			return false
		})
	}
}

func noField(of ast.Ref, wrong string) string { return fmt.Sprintf("%s has no field %q", of, wrong) }

// unknownField is the index in ref of the first name that no input has, and the valid names
// there; 0 means none.
func unknownField(document reflect.Type, ref ast.Ref) (int, []string) {
	for i, t := range ref[1:] {
		if document.Kind() == reflect.Slice {
			document = document.Elem()
			continue
		}
		name, ok := t.Value.(ast.String)
		if !ok || document.Kind() != reflect.Struct {
			return 0, nil
		}
		field, ok := module.FieldOf(document, string(name))
		if !ok {
			return i + 1, module.FieldNames(document)
		}
		document = field
	}
	return 0, nil
}

// checkNumbers refuses numbers whose digits would fill memory.
func (c *checker) checkNumbers(m *ast.Module) {
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if n, ok := t.Value.(ast.Number); ok && !module.PlainNumber(string(n)) {
			c.addProblem(t.Location, module.CodeCompile, "a number is too large",
				fmt.Sprintf("write at most %d digits", module.MaxDigits))
		}
		return false
	})
}

// checkCalls refuses functions that are neither built-ins that policies may use nor the layer's.
func (c *checker) checkCalls(m *ast.Module) {
	ast.WalkNodes(m, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Expr:
			if n.IsCall() {
				c.checkCall(m, n.Location, n.Operator())
			}
		case *ast.Term:
			if call, ok := n.Value.(ast.Call); ok {
				c.checkCall(m, n.Location, call[0].Value.(ast.Ref))
			}
		}
		return false
	})
}

func (c *checker) checkCall(m *ast.Module, at *ast.Location, operator ast.Ref) {
	name := operator.String()
	if instead, ok := module.WithheldBuiltin(module.PackageOf(m), name); ok {
		c.addProblem(at, module.CodeBuiltin, "policies must not use "+name, instead)
		return
	}
	if ast.BuiltinMap[name] != nil || c.graph.Target(m, operator) != (module.Target{}) {
		return
	}
	if head, ok := operator[0].Value.(ast.Var); ok && module.ImportOf(m, head) != nil {
		return // references reports it
	}
	c.addProblem(at, module.CodeCompile, noFunction(name),
		module.SuggestName(name, append(c.functionNames(m), module.BuiltinNames()...)))
}

func noFunction(name string) string { return fmt.Sprintf("there is no function %q", name) }

// functionNames are the names of m's package's rules.
func (c *checker) functionNames(m *ast.Module) []string {
	var names []string
	for path := range c.graph.Rules {
		if name, ok := strings.CutPrefix(path, c.graph.Packages[m]); ok && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
