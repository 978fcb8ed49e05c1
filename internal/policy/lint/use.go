// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// A ruleUse is the effect of more matches of a rule. A condition that holds too often is
// harmless in a deny and a hole in an allow, and the other way around below not.
type ruleUse int

const (
	narrows ruleUse = 1 << iota // if it holds, less is allowed
	widens                      // if it holds, more is allowed
)

func (u ruleUse) flipUse() ruleUse { return u&narrows<<1 | u&widens>>1 }

// findUses finds all rules that the sets of decision points reach, with their uses.
func (x *linter) findUses() map[string]ruleUse {
	used := map[string]ruleUse{}
	var follow func(path string, u ruleUse)
	follow = func(path string, u ruleUse) {
		if used[path]&u == u {
			return
		}
		used[path] |= u
		for _, in := range x.graph.Rules[path] {
			for r := in.Rule; r != nil; r = r.Else {
				x.walkReached(in.Module, r, u, follow)
			}
		}
	}
	for _, m := range x.Modules {
		for _, r := range m.Rules {
			name := module.RuleName(r)
			switch {
			case !slices.Contains(module.Sets(module.PackageOf(m)), name):
			case module.IsWidening(name):
				follow(x.graph.Packages[m]+name, widens)
			default:
				follow(x.graph.Packages[m]+name, narrows)
			}
		}
	}
	return used
}

// walkReached calls follow with each rule that r reaches, and its use there.
func (x *linter) walkReached(m *ast.Module, r *ast.Rule, u ruleUse, follow func(string, ruleUse)) {
	x.eachExpr(r.Body, u, func(e *ast.Expr, u ruleUse) {
		x.graph.Walk(m, e, func(t module.Target) { x.followEach(t, u, follow) })
	})
	for _, part := range headTerms(r) {
		x.graph.Walk(m, part, func(t module.Target) { x.followEach(t, u, follow) })
	}
}

// followAll follows a target; one that may be any rule is all of them.
func (x *linter) followEach(t module.Target, u ruleUse, follow func(string, ruleUse)) {
	switch {
	case t.Rule != "":
		follow(t.Rule, u)
	case t.All:
		for path := range x.graph.Rules {
			follow(path, narrows|widens)
		}
	}
}

// eachExpr calls do with each condition of body, including nested ones, and its use. A
// value that is counted, collected or compared with false may have either use.
func (x *linter) eachExpr(body ast.Body, u ruleUse, do func(*ast.Expr, ruleUse)) {
	for _, e := range body {
		here := u
		switch {
		case e.Negated:
			here = u.flipUse()
		case isNegating(e):
			here = narrows | widens
		}
		do(e, here)
		x.eachNested(e, here, do)
	}
}

func (x *linter) eachNested(n any, u ruleUse, do func(*ast.Expr, ruleUse)) {
	ast.WalkClosures(n, func(c any) bool {
		switch c := c.(type) {
		case *ast.Every:
			x.eachExpr(c.Body, u, do)
		case *ast.ArrayComprehension:
			x.eachExpr(c.Body, narrows|widens, do)
		case *ast.SetComprehension:
			x.eachExpr(c.Body, narrows|widens, do)
		case *ast.ObjectComprehension:
			x.eachExpr(c.Body, narrows|widens, do)
		}
		return true
	})
}

// isNegating reports whether e holds where its parts do not.
func isNegating(e *ast.Expr) bool {
	if !e.IsCall() {
		return false
	}
	operator := e.Operator().String()
	if operator == ast.NotEqual.Name { // for plain fields it is like any other comparison
		return slices.ContainsFunc(e.Operands(), func(t *ast.Term) bool {
			ref, field := t.Value.(ast.Ref)
			return !ast.IsConstant(t.Value) && !(field && ref[0].Equal(ast.InputRootDocument))
		})
	}
	return (operator == ast.Equal.Name || operator == ast.Equality.Name) &&
		slices.ContainsFunc(e.Operands(), func(t *ast.Term) bool { return t.Equal(ast.BooleanTerm(false)) })
}

// headTerms are the terms of a rule's head, without its name.
func headTerms(r *ast.Rule) []*ast.Term {
	var terms []*ast.Term
	for _, t := range append([]*ast.Term{r.Head.Key, r.Head.Value}, r.Head.Ref()[1:]...) {
		if t != nil {
			terms = append(terms, t)
		}
	}
	return terms
}
