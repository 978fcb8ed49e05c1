// SPDX-License-Identifier: Apache-2.0

package module

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// An answer about an exec may be reused for the same key: file, command and grants. It
// must not be reused if a rule that depends on more than the key (argv, cwd, the parent)
// could hold for that file.
//
// The modules show which rules do: a rule depends on more than the key if it, or any rule
// or function that it reaches, names another input field, or the input as a whole. For
// each such rule a guard is made from those of its conditions that depend only on the key
// and share no variable with one that does not. A rule holds only if all of its conditions
// do, so if its guard does not hold, the rest does not matter. A guard with fewer
// conditions holds more often, never less: in doubt a condition is omitted, and an answer
// is not reused. If a condition outside the key fails with an error while the guard does
// not hold, the rule would not have had an answer about this file.
//
// GuardSet is the set that is not empty if an answer must not be reused.
const GuardSet = "beyond_key"

// KeyFields are the fields of the input that are made from a points.ExecKey: those on which
// a reusable answer may depend. Env is one of them because an answer about an Exec with an
// Env is never reused; context is one because it is constant for as long as answers are kept. A
// test of package policy compares the others with what the input is made of.
var KeyFields = []string{"command", "path", "asked", "loaded", "name", "names", "many", "same", "layer", "digest",
	"elf", "grants", "env", "context"}

// childFields are set only for what a tool starts, and answers about that are never reused.
var childFields = []string{"chain", "under", "listed"}

// A keyGraph finds the rules of some modules that depend on more than the key.
type keyGraph struct {
	*Graph
	far map[string]bool // of rules
}

func newKeyGraph(modules map[string]*ast.Module) *keyGraph {
	g := &keyGraph{Graph: NewGraph(modules), far: map[string]bool{}}
	for changed := true; changed; {
		changed = false
		for path, rules := range g.Rules {
			if g.far[path] {
				continue
			}
			if slices.ContainsFunc(rules, func(r ruleIn) bool { return g.dependsBeyondKey(r.Module, r.Rule) }) {
				g.far[path], changed = true, true
			}
		}
	}
	return g
}

// dependsBeyondKey reports whether n, a part of m, depends on more than the key, as far as is known.
func (g *keyGraph) dependsBeyondKey(m *ast.Module, n any) bool {
	found := false
	g.Walk(m, n, func(t Target) {
		found = found || t.All || g.far[t.Rule] ||
			t.input && !slices.Contains(KeyFields, t.field) && !slices.Contains(childFields, t.field)
	})
	return found
}

// AddGuards adds to modules, which are copies, the guards of the exec rules that depend on
// more than the key, and returns their number. It fails if a rule already has the name.
func AddGuards(modules map[string]*ast.Module) (int, bool) {
	g := newKeyGraph(modules)
	if _, taken := g.Rules["data."+PointExec+"."+GuardSet]; taken {
		return 0, false
	}
	guards := 0
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m := modules[name]
		for _, r := range slices.Clone(m.Rules) {
			set, _ := WrittenSet(RuleName(r))
			if PackageOf(m) != PointExec || !slices.Contains(sets[PointExec], set) ||
				!g.dependsBeyondKey(m, r) {
				continue
			}
			m.Rules = append(m.Rules, guardOf(r, g.keyConditions(m, r.Body), guards))
			guards++
		}
	}
	return guards, true
}

func guardOf(r *ast.Rule, body ast.Body, n int) *ast.Rule {
	head := ast.NewHead(GuardSet, ast.IntNumberTerm(n))
	head.SetLoc(r.Location)
	for i, expr := range body {
		expr.Index = i
	}
	return &ast.Rule{Head: head, Body: body, Module: r.Module, Location: r.Location}
}

// keyConditions copies the conditions of body that depend only on the key and share no variable with
// one that does not. A body that declares a variable with the name of a rule or an import
// is not read: without the declaration, the name would mean the rule.
func (g *keyGraph) keyConditions(m *ast.Module, body ast.Body) ast.Body {
	kept, open := slices.Clone(body), map[ast.Var]bool{}
	if slices.ContainsFunc(declaredVars(body), func(v ast.Var) bool { return g.isOutsideName(m, v) }) {
		kept = nil
	}
	for left := -1; left != len(kept); {
		left = len(kept)
		kept = slices.DeleteFunc(kept, func(e *ast.Expr) bool {
			if !g.dependsBeyondKey(m, e) && !slices.ContainsFunc(varsOf(e), func(v ast.Var) bool { return open[v] }) {
				return false
			}
			for _, v := range varsOf(e) {
				open[v] = !g.isOutsideName(m, v)
			}
			return true
		})
	}
	if len(kept) == 0 {
		return ast.NewBody(ast.NewExpr(ast.BooleanTerm(true)))
	}
	return ast.Body(kept).Copy()
}

// declaredVars are the variables that body declares by :=, some and every.
func declaredVars(body ast.Body) []ast.Var {
	var vars []ast.Var
	add := func(t *ast.Term) {
		if t != nil {
			vars = append(vars, varsOf(t)...)
		}
	}
	ast.WalkNodes(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Expr:
			if n.IsAssignment() {
				add(n.Operand(0))
			}
		case *ast.Every:
			add(n.Key)
			add(n.Value)
		case *ast.SomeDecl:
			for _, s := range n.Symbols {
				if call, ok := s.Value.(ast.Call); ok { // some x in xs: all but the last are declared
					for _, t := range call[1 : len(call)-1] {
						add(t)
					}
					continue
				}
				add(s)
			}
		}
		return false
	})
	return vars
}

// varsOf are the variables of n, without wildcards, which are never shared, and without
// the names of called functions.
func varsOf(n any) []ast.Var {
	visitor := ast.NewVarVisitor().WithParams(ast.VarVisitorParams{SkipRefCallHead: true})
	visitor.Walk(n)
	var vars []ast.Var
	for v := range visitor.Vars() {
		if !strings.HasPrefix(string(v), ast.WildcardPrefix) {
			vars = append(vars, v)
		}
	}
	return vars
}
