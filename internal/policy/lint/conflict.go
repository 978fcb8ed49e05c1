// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// A completeRule is one rule that gives a name its only value.
type completeRule struct {
	rule  *ast.Rule
	value *ast.Term
}

// What is compared of one name's rules, and of a rule's conditions: a layer may have many.
const (
	maxValues     = 50
	maxConditions = 50
)

// eachConflict calls do with each two rules without arguments that give one name different values, and may
// both hold: then every decision that reads the name stops the run. certain means that they always do.
func eachConflict(g *module.Graph, do func(a, b *ast.Rule, certain bool)) {
	for _, path := range slices.Sorted(maps.Keys(g.Rules)) {
		var all []completeRule
		for _, in := range g.Rules[path] {
			r := in.Rule
			if r.Default || r.Head.RuleKind() != ast.SingleValue || len(r.Head.Ref()) > 1 || len(r.Head.Args) > 0 {
				continue
			}
			all = append(all, completeRule{r, r.Head.Value})
		}
		slices.SortFunc(all, func(a, b completeRule) int { return a.rule.Location.Compare(b.rule.Location) })
		all = all[:min(maxValues, len(all))]
		for i, b := range all {
			for _, a := range all[:i] {
				if haveOneValue(a.value, b.value) || areExclusive(a.rule.Body, b.rule.Body) {
					continue
				}
				certain := ast.IsConstant(a.value.Value) && ast.IsConstant(b.value.Value) &&
					isUnconditional(a.rule.Body) && isUnconditional(b.rule.Body)
				do(a.rule, b.rule, certain)
			}
		}
	}
}

func haveOneValue(a, b *ast.Term) bool { return a != nil && b != nil && a.Equal(b) }

func isUnconditional(body ast.Body) bool {
	return len(body) == 0 || len(body) == 1 && body[0].Equal(ast.NewExpr(ast.BooleanTerm(true)))
}

// areExclusive reports whether two bodies are seen not to hold together: one negates a condition of the
// other, or they compare a field with different constants. Long bodies are not compared.
func areExclusive(a, b ast.Body) bool {
	if len(a) > maxConditions || len(b) > maxConditions {
		return true
	}
	for _, one := range a {
		for _, other := range b {
			negated := one.Copy()
			negated.Negated, negated.Index = !one.Negated, other.Index
			if negated.Equal(other) || compareOppositely(one, other) {
				return true
			}
			field, value, ok := comparedField(one)
			field2, value2, ok2 := comparedField(other)
			if ok && ok2 && !one.Negated && !other.Negated && field.Equal(field2) && !value.Equal(value2) {
				return true
			}
		}
	}
	return false
}

// opposites are the operators that never hold for the same operands.
var opposites = map[string][]string{
	ast.Equal.Name:         {ast.NotEqual.Name, ast.LessThan.Name, ast.GreaterThan.Name},
	ast.Equality.Name:      {ast.NotEqual.Name, ast.LessThan.Name, ast.GreaterThan.Name},
	ast.NotEqual.Name:      {ast.Equal.Name, ast.Equality.Name},
	ast.LessThan.Name:      {ast.GreaterThanEq.Name, ast.GreaterThan.Name, ast.Equal.Name},
	ast.GreaterThan.Name:   {ast.LessThanEq.Name, ast.LessThan.Name, ast.Equal.Name},
	ast.LessThanEq.Name:    {ast.GreaterThan.Name},
	ast.GreaterThanEq.Name: {ast.LessThan.Name},
}

func compareOppositely(a, b *ast.Expr) bool {
	if !a.IsCall() || !b.IsCall() || a.Negated || b.Negated || len(a.Operands()) != len(b.Operands()) ||
		!slices.Contains(opposites[a.Operator().String()], b.Operator().String()) {
		return false
	}
	return slices.EqualFunc(a.Operands(), b.Operands(), (*ast.Term).Equal)
}

const conflictHint = "keep one of them, or write the second as else of the first"

func conflictMessage(a, b *ast.Rule, may string) string {
	return fmt.Sprintf("%s has another value at %s:%d: %s every decision that reads it stops the run",
		module.RuleName(b), a.Location.File, a.Location.Row, may)
}

// checkConflicts refuses two rules that always give one name different values.
func (c *checker) checkConflicts() {
	eachConflict(c.graph, func(a, b *ast.Rule, certain bool) {
		if certain {
			c.addProblem(b.Location, module.CodeCompile, conflictMessage(a, b, "so"), conflictHint)
		}
	})
}

// findConflicts finds rules that may give one name different values.
func (x *linter) findConflicts() {
	eachConflict(x.graph, func(a, b *ast.Rule, certain bool) {
		if !certain {
			x.addProblem(b.Location, Wrong, lintConflict, conflictMessage(a, b, "if both hold,"), conflictHint)
		}
	})
}
