// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// check refuses what would compile and then silently mean nothing, or more than
// its author sees: unknown packages, sets with a mistyped name, sets that are not
// sets, with outside tests, data from elsewhere, and layers without any rule. It
// counts the rules.
func (l *layer) check(s Layer, modules map[string]*ast.Module) error {
	return refusal(tidied(l.problems(s, modules, false)))
}

// A checker looks through one layer's modules.
type checker struct {
	*layer
	*atlas
	modules  map[string]*ast.Module
	data     []string // the first names of the layer's own data
	problems []Problem
}

func (c *checker) say(at *ast.Location, code, message, hint string) {
	c.problems = append(c.problems, c.at(at, Refused, code, message, hint))
}

// problems finds all that check refuses. Where some files could not be read, what the
// others seem to lack is not said. Of the shipped layer, in which a test finds nothing,
// only the rules are counted.
func (l *layer) problems(s Layer, modules map[string]*ast.Module, unread bool) []Problem {
	c := &checker{layer: l, atlas: newAtlas(modules), modules: modules}
	if data, err := s.Data(); err == nil { // New says it where it fails
		c.data = slices.Collect(maps.Keys(data))
	}
	count := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		c.module(modules[name], unread, count)
	}
	total := 0
	l.counts = nil
	for _, point := range points {
		for _, set := range sets[point] {
			n := count[point+"."+set]
			total += n
			l.counts = append(l.counts, RuleCount{Layer: l.name, Point: point, Set: set, Rules: n})
		}
	}
	if total == 0 && !unread && len(c.problems) == 0 {
		c.say(nil, codeMissing, "it holds no rule at any decision point", "write deny contains {…} if {…} in package "+pointCommand)
	}
	return c.problems
}

func (c *checker) module(m *ast.Module, unread bool, count map[string]int) {
	pkg := packageOf(m)
	if _, ok := sets[pkg]; !ok && !inLib(pkg) {
		c.say(m.Package.Location, codeUnknownKey, fmt.Sprintf("package %s is no decision point", pkg), packageHint(pkg))
		return
	}
	for _, r := range m.Rules {
		count[pkg+"."+ruleName(r)]++
	}
	if c.shipped {
		return
	}
	c.annotations(m)
	c.bodies(m)
	c.inputs(m)
	c.numbers(m)
	if !unread {
		c.references(m)
		c.calls(m)
	}
	if inLib(pkg) {
		return
	}
	for _, r := range m.Rules {
		c.rule(pkg, r)
	}
}

func packageHint(pkg string) string {
	if near := nearest(pkg, append(slices.Clone(points), packageLib)); near != "" {
		return "did you mean " + near + "?"
	}
	return "write package " + strings.Join(points, ", ") + " or " + packageLib
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

func (c *checker) rule(pkg string, r *ast.Rule) {
	name := ruleName(r)
	isSet := r.Head.RuleKind() == ast.MultiValue
	known := slices.Contains(sets[pkg], name)
	switch {
	case known && (!isSet || len(r.Head.Ref()) != 1 || r.Default):
		c.say(r.Location, codeCompile, name+" must be a set", "write "+name+" contains {…} if {…}")
	case !known && isSet && !referred(name, c.modules):
		hint := "use one of " + strings.Join(sets[pkg], ", ")
		if near := nearest(name, sets[pkg]); near != "" {
			hint = "did you mean " + near + "?"
		}
		c.say(r.Location, codeUnknownKey, fmt.Sprintf("the set %q has no meaning in package %s", name, pkg), hint)
	}
}

// annotations refuses METADATA that changes what the compiler checks: schemas replace
// the input's, and could name files or addresses to read them from.
func (c *checker) annotations(m *ast.Module) {
	for _, a := range m.Annotations {
		if len(a.Schemas) > 0 {
			c.say(a.Location, codeCompile, "METADATA may give no schemas: the input has its own", "leave schemas out")
		}
	}
}

// bodies refuses with, which would judge another input than the real one.
func (c *checker) bodies(m *ast.Module) {
	ast.WalkNodes(m, func(n ast.Node) bool {
		if e, ok := n.(*ast.Expr); ok && len(e.With) > 0 {
			c.say(e.Location, codeCompile, "with is for tests only", "write the condition itself")
			return true
		}
		return false
	})
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
