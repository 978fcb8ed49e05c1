// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// check refuses what would compile and then silently mean nothing, or more than
// its author sees: unknown packages, sets with a mistyped name, sets that are not
// sets, with outside tests, and layers without any rule. It counts the rules.
func (l *layer) check(modules map[string]*ast.Module) error {
	count := map[string]int{}
	for _, m := range modules {
		pkg := packageOf(m)
		if _, ok := sets[pkg]; !ok && !inLib(pkg) {
			return l.refuse(m.Package.Location, codeUnknownKey, fmt.Sprintf("package %s is no decision point", pkg),
				"write package "+strings.Join(points, ", ")+" or "+packageLib)
		}
		if err := l.checkBodies(m); err != nil {
			return err
		}
		if inLib(pkg) {
			continue
		}
		for _, r := range m.Rules {
			if err := l.checkRule(pkg, r, modules); err != nil {
				return err
			}
			count[pkg+"."+ruleName(r)]++
		}
	}
	total := 0
	for _, point := range points {
		for _, set := range sets[point] {
			n := count[point+"."+set]
			total += n
			l.counts = append(l.counts, RuleCount{Layer: l.name, Point: point, Set: set, Rules: n})
		}
	}
	if total == 0 {
		return stop(codeMissing, fmt.Sprintf("the policy layer %q holds no rule at any decision point", l.name),
			"write deny contains {…} if {…} in package "+pointCommand, nil)
	}
	return nil
}

// count is the number of rules of one set.
func (l *layer) count(point, set string) int {
	for _, c := range l.counts {
		if c.Point == point && c.Set == set {
			return c.Rules
		}
	}
	return 0
}

func (l *layer) checkRule(pkg string, r *ast.Rule, modules map[string]*ast.Module) error {
	name := ruleName(r)
	isSet := r.Head.RuleKind() == ast.MultiValue
	known := slices.Contains(sets[pkg], name)
	switch {
	case known && (!isSet || len(r.Head.Ref()) != 1):
		return l.refuse(r.Location, codeCompile, name+" must be a set", "write "+name+" contains {…} if {…}")
	case !known && isSet && !referred(name, modules):
		return l.refuse(r.Location, codeUnknownKey, fmt.Sprintf("the set %q has no meaning in package %s", name, pkg),
			"use one of "+strings.Join(sets[pkg], ", "))
	}
	return nil
}

// checkBodies refuses with, which would judge another input than the real one, and
// data that does not come from the layer.
func (l *layer) checkBodies(m *ast.Module) (err error) {
	ast.WalkNodes(m, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Expr:
			if len(n.With) > 0 && err == nil {
				err = l.refuse(n.Location, codeCompile, "with is for tests only", "write the condition itself")
			}
		case *ast.Import:
			if path := n.Path.String(); strings.HasPrefix(path, "data.") && !inLib(strings.TrimPrefix(path, "data.")) && err == nil {
				err = l.refuse(n.Location, codeCompile, "import "+path+" reaches outside the library", "import data."+packageLib)
			}
		}
		return err != nil
	})
	return err
}

// referred reports whether a rule of modules reads name.
func referred(name string, modules map[string]*ast.Module) bool {
	found := false
	look := func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Var:
			found = found || string(v) == name
		case ast.String: // data.fumehood.command.name
			found = found || string(v) == name
		}
		return found
	}
	for _, m := range modules {
		for _, r := range m.Rules {
			for ; r != nil; r = r.Else {
				ast.WalkTerms(r.Body, look)
				for _, t := range []*ast.Term{r.Head.Key, r.Head.Value} {
					if t != nil {
						ast.WalkTerms(t, look)
					}
				}
			}
		}
	}
	return found
}

func ruleName(r *ast.Rule) string { return string(r.Head.Ref()[0].Value.(ast.Var)) }

func (l *layer) refuse(at *ast.Location, code, message, hint string) error {
	where := fmt.Sprintf("%s:%d:%d", at.File, at.Row, at.Col)
	return stop(code, fmt.Sprintf("policy layer %q, %s: %s", l.name, where, message), hint, nil)
}
