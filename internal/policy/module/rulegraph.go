// SPDX-License-Identifier: Apache-2.0

package module

import "github.com/open-policy-agent/opa/v1/ast"

// A Graph finds the rules that a reference reaches.
type Graph struct {
	Rules    map[string][]ruleIn // by path: data.fumehood.exec.name
	Packages map[*ast.Module]string
}

type ruleIn struct {
	Module *ast.Module
	Rule   *ast.Rule
}

// NewGraph reads the rules of modules, by file.
func NewGraph(modules map[string]*ast.Module) *Graph {
	a := &Graph{map[string][]ruleIn{}, map[*ast.Module]string{}}
	for _, m := range modules {
		a.Packages[m] = m.Package.Path.String() + "."
		for _, r := range m.Rules {
			path := a.Packages[m] + RuleName(r)
			a.Rules[path] = append(a.Rules[path], ruleIn{m, r})
		}
	}
	return a
}

// A Target is the target of a reference: a field of the input, a rule, or nothing in the
// policy.
type Target struct {
	input bool
	field string // of the input; "" means more than one
	below string // of field; "" means more than one
	Rule  string // the path of a rule
	All   bool   // it may be any rule
}

// Walk calls take with each target of n, a part of m. A local variable with the name of a
// rule counts as the rule, so there may be too many targets, but never too few.
func (a *Graph) Walk(m *ast.Module, n any, take func(Target)) {
	var look func(*ast.Term) bool
	look = func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Var:
			take(a.Target(m, ast.Ref{t}))
		case ast.Ref:
			take(a.Target(m, v))
			if _, named := v[0].Value.(ast.Var); !named {
				ast.WalkTerms(v[0], look)
			}
			for _, part := range v[1:] {
				ast.WalkTerms(part, look)
			}
			return true
		}
		return false
	}
	ast.WalkTerms(n, look)
}

// Target is the target of ref, a part of m.
func (a *Graph) Target(m *ast.Module, ref ast.Ref) Target {
	head, ok := ref[0].Value.(ast.Var)
	if !ok {
		return Target{} // walk looks into it
	}
	if imported := ImportOf(m, head); imported != nil {
		ref = append(imported[:len(imported):len(imported)], ref[1:]...)
		head, _ = ref[0].Value.(ast.Var)
	}
	switch head {
	case ast.InputRootDocument.Value:
		if len(ref) < 2 {
			return Target{input: true}
		}
		t := Target{input: true, field: stringOf(ref[1])}
		if len(ref) > 2 {
			t.below = stringOf(ref[2])
		}
		return t
	case ast.DefaultRootDocument.Value:
		return a.dataTarget(ref)
	}
	if path := a.Packages[m] + string(head); a.Rules[path] != nil {
		return Target{Rule: path}
	}
	return Target{}
}

// dataTarget follows a reference to the layer's own rules. A reference that names no rule may be
// to all of them.
func (a *Graph) dataTarget(ref ast.Ref) Target {
	if len(ref) > 1 && stringOf(ref[1]) != "" && stringOf(ref[1]) != OwnPackage {
		return Target{} // the layer's data file, which is always the same
	}
	path := "data"
	for _, part := range ref[1:] {
		path += "." + stringOf(part)
		if a.Rules[path] != nil {
			return Target{Rule: path}
		}
	}
	return Target{All: true}
}

// InputFields adds to names the fields of input's field object that the modules name. It reports
// whether they may read any of them: they use object or the input as a whole, or a name that is not
// constant.
func (a *Graph) InputFields(object string, names map[string]bool) (all bool) {
	for _, rules := range a.Rules {
		for _, r := range rules {
			a.Walk(r.Module, r.Rule, func(t Target) {
				switch {
				case !t.input || t.field != "" && t.field != object:
				case t.below == "":
					all = true
				default:
					names[t.below] = true
				}
			})
		}
	}
	return all
}

// isOutsideName reports whether v is the name of something outside the rules of m.
func (a *Graph) isOutsideName(m *ast.Module, v ast.Var) bool {
	return a.Rules[a.Packages[m]+string(v)] != nil || ImportOf(m, v) != nil ||
		ast.RootDocumentNames.Contains(ast.NewTerm(v))
}

// ImportOf is the path that m imports as name.
func ImportOf(m *ast.Module, name ast.Var) ast.Ref {
	for _, i := range m.Imports {
		if i.Name() != name {
			continue
		}
		if ref, ok := i.Path.Value.(ast.Ref); ok {
			return ref
		}
		return ast.Ref{i.Path}
	}
	return nil
}

func stringOf(t *ast.Term) string {
	s, _ := t.Value.(ast.String)
	return string(s)
}
