// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// findNeverHolding finds conditions that hold for no input.
func (x *linter) findNeverHolding(r *ast.Rule) {
	said := map[string]*ast.Term{} // what a field of the input must be
	for _, e := range r.Body {
		if constant, ok := constantResult(e); ok && !constant {
			x.addProblem(e.Location, Wrong, lintNever, "this never holds", "remove the rule, or fix the condition")
			continue
		}
		field, value, ok := comparedField(e)
		if !ok || e.Negated {
			continue
		}
		if before := said[field.String()]; before != nil && !before.Equal(value) {
			x.addProblem(e.Location, Wrong, lintNever, fmt.Sprintf("%s cannot be %s and %s", field, before, value),
				"write two rules, or in {…}")
		}
		said[field.String()] = value
	}
}

// findScalarSearches finds in with a field of the input that is one value and not a list: it never holds.
func (x *linter) findScalarSearches(m *ast.Module, r *ast.Rule) {
	document := x.Document(module.PackageOf(m))
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if !e.IsCall() || e.Operator().String() != ast.Member.Name || document == nil {
			return false
		}
		field, ok := e.Operand(1).Value.(ast.Ref)
		if ok && field[0].Equal(ast.InputRootDocument) && isScalar(document, field[1:]) {
			x.addProblem(e.Location, Wrong, lintNever, fmt.Sprintf("%s is not a list, so nothing is in it", field),
				fmt.Sprintf("write %s == …", field))
		}
		return false
	})
}

// isScalar reports whether path leads to a text, a number or a truth value.
func isScalar(t reflect.Type, path ast.Ref) bool {
	for _, part := range path {
		name, isName := part.Value.(ast.String)
		switch {
		case t.Kind() == reflect.Slice:
			t = t.Elem()
		case t.Kind() == reflect.Struct && isName:
			var ok bool
			if t, ok = module.FieldOf(t, string(name)); !ok {
				return false
			}
		default:
			return false
		}
	}
	return !slices.Contains([]reflect.Kind{reflect.Slice, reflect.Struct, reflect.Map, reflect.Interface,
		reflect.Pointer}, t.Kind())
}

// constantResult is the value of e if no input changes it.
func constantResult(e *ast.Expr) (holds, ok bool) {
	switch t := e.Terms.(type) {
	case *ast.Term:
		b, is := t.Value.(ast.Boolean)
		return bool(b) != e.Negated, is
	case []*ast.Term:
		operands := e.Operands()
		if len(operands) != 2 || slices.ContainsFunc(operands,
			func(t *ast.Term) bool { return !ast.IsConstant(t.Value) }) {
			return false, false
		}
		switch e.Operator().String() {
		case ast.Equal.Name, ast.Equality.Name:
			return operands[0].Equal(operands[1]) != e.Negated, true
		case ast.NotEqual.Name:
			return operands[0].Equal(operands[1]) == e.Negated, true
		}
	}
	return false, false
}

// comparedField is a field of the input, without variables, and the constant it must equal.
func comparedField(e *ast.Expr) (ast.Ref, *ast.Term, bool) {
	if !e.IsCall() || len(e.Operands()) != 2 {
		return nil, nil, false
	}
	if name := e.Operator().String(); name != ast.Equal.Name && name != ast.Equality.Name {
		return nil, nil, false
	}
	for i, t := range e.Operands() {
		ref, ok := t.Value.(ast.Ref)
		if other := e.Operand(1 - i); ok && ref.IsGround() && ref[0].Equal(ast.InputRootDocument) &&
			ast.IsConstant(other.Value) {
			return ref, other, true
		}
	}
	return nil, nil, false
}

// The flags that give a directory the role that a set needs to have an effect.
const (
	flagOpens  = "--hosts"
	flagAllows = "--organization"
)

// needs is the flag for each set that needs one.
var needs = map[string]string{
	"many_names": flagOpens, "network": flagOpens, "private": flagOpens, "raw": flagOpens, "redact": flagOpens,
	"allow": flagAllows, "cache": flagAllows, "env": flagAllows, "exec": flagAllows, "programs": flagAllows,
}

// hasRoleOf reports whether the layer has the role that flag gives, or a higher one.
func (l Layer) hasRoleOf(flag string) bool {
	return flag == "" || flag == flagOpens && l.Opens || flag == flagAllows && l.Allows
}

// findIgnoredSets finds sets that the layer's role does not permit. Rules about connections are
// always accepted: with --hosts they have an effect.
func (x *linter) findIgnoredSets(m *ast.Module, r *ast.Rule) {
	need, pkg, name := needs[module.RuleName(r)], module.PackageOf(m), module.RuleName(r)
	if pkg == module.PointEgress && name == "allow" {
		need = flagOpens
	}
	if x.hasRoleOf(need) {
		return
	}
	x.addProblem(r.Location, Wrong, lintIgnored,
		fmt.Sprintf("%s of %s is ignored: this layer must not grant it", name, pkg),
		fmt.Sprintf("pass the directory with %s to allow it", need))
}

// findConstantLoops finds a loop over constants that are compared with a field: if the field is
// alone, OPA's index finds the rule without trying it.
func (x *linter) findConstantLoops(r *ast.Rule) {
	for _, e := range r.Body {
		some, ok := e.Terms.(*ast.SomeDecl)
		if !ok || len(some.Symbols) != 1 {
			continue
		}
		call, ok := some.Symbols[0].Value.(ast.Call)
		if !ok || len(call) != 3 || !ast.IsConstant(call[2].Value) {
			continue
		}
		v, ok := call[1].Value.(ast.Var)
		if !ok || countUses(r, v) != 2 {
			continue
		}
		for _, other := range r.Body {
			if field, ok := comparedWith(other, v); ok {
				x.addProblem(e.Location, Doubtful, lintIteration, fmt.Sprintf("this tries each of %s", call[2]),
					fmt.Sprintf("write %s in %s", field, call[2]))
			}
		}
	}
}

// countUses counts where r names v.
func countUses(r *ast.Rule, v ast.Var) int {
	n := 0
	ast.WalkVars(r, func(other ast.Var) bool {
		if other == v {
			n++
		}
		return false
	})
	return n
}

// comparedWith is a field of the input that e compares with v.
func comparedWith(e *ast.Expr, v ast.Var) (ast.Ref, bool) {
	if e.Negated || !e.IsCall() || len(e.Operands()) != 2 || e.Operator().String() != ast.Equal.Name {
		return nil, false
	}
	for i, t := range e.Operands() {
		if ref, ok := t.Value.(ast.Ref); ok && ref.IsGround() && ref[0].Equal(ast.InputRootDocument) &&
			e.Operand(1-i).Value.Compare(v) == 0 {
			return ref, true
		}
	}
	return nil, false
}
