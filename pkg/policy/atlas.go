// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/open-policy-agent/opa/v1/ast"

// An atlas finds the rules that a reference reaches.
type atlas struct {
	rules    map[string][]ruleIn // by path: data.fumehood.exec.name
	packages map[*ast.Module]string
}

type ruleIn struct {
	module *ast.Module
	rule   *ast.Rule
}

func newAtlas(modules map[string]*ast.Module) *atlas {
	a := &atlas{map[string][]ruleIn{}, map[*ast.Module]string{}}
	for _, m := range modules {
		a.packages[m] = m.Package.Path.String() + "."
		for _, r := range m.Rules {
			path := a.packages[m] + ruleName(r)
			a.rules[path] = append(a.rules[path], ruleIn{m, r})
		}
	}
	return a
}

// A target is what a reference reaches: one of its fields, or nothing of the policy.
type target struct {
	input bool
	field string // of the input; "" is more than one
	rule  string // the path of a rule
	all   bool   // it may be any rule
}

// walk hands take each target of n, a part of m. A local variable that has the name of
// a rule counts as the rule, so that there may be too many and never too few.
func (a *atlas) walk(m *ast.Module, n any, take func(target)) {
	var look func(*ast.Term) bool
	look = func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Var:
			take(a.target(m, ast.Ref{t}))
		case ast.Ref:
			take(a.target(m, v))
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

func (a *atlas) target(m *ast.Module, ref ast.Ref) target {
	head, ok := ref[0].Value.(ast.Var)
	if !ok {
		return target{} // walk looks into it
	}
	if imported := importOf(m, head); imported != nil {
		ref = append(imported[:len(imported):len(imported)], ref[1:]...)
		head, _ = ref[0].Value.(ast.Var)
	}
	switch head {
	case ast.InputRootDocument.Value:
		if len(ref) < 2 {
			return target{input: true}
		}
		return target{input: true, field: text(ref[1])}
	case ast.DefaultRootDocument.Value:
		return a.data(ref)
	}
	if path := a.packages[m] + string(head); a.rules[path] != nil {
		return target{rule: path}
	}
	return target{}
}

// data follows a reference to the layer's own rules. One that names no rule may be to
// all of them.
func (a *atlas) data(ref ast.Ref) target {
	if len(ref) > 1 && text(ref[1]) != "" && text(ref[1]) != ownPackage {
		return target{} // the layer's data file, which is always the same
	}
	path := "data"
	for _, part := range ref[1:] {
		path += "." + text(part)
		if a.rules[path] != nil {
			return target{rule: path}
		}
	}
	return target{all: true}
}

// known reports whether v is the name of something outside the rules of m.
func (a *atlas) known(m *ast.Module, v ast.Var) bool {
	return a.rules[a.packages[m]+string(v)] != nil || importOf(m, v) != nil || ast.RootDocumentNames.Contains(ast.NewTerm(v))
}

// importOf is what m imports under name.
func importOf(m *ast.Module, name ast.Var) ast.Ref {
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

func text(t *ast.Term) string {
	s, _ := t.Value.(ast.String)
	return string(s)
}
