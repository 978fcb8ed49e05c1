// SPDX-License-Identifier: Apache-2.0

// Package lint finds mistakes in the rules of one layer.
//
// Check finds rules that compile and have no effect, or more effect than is visible: such a
// layer is refused. Lint finds rules that are loaded but probably do not do what their
// author intended. Both only read the modules; package policy compiles them.
package lint

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/spelling"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// A Layer is the part of a layer that is needed to check its rules.
type Layer struct {
	Name    string
	Opens   bool // it may grant hosts
	Grants  bool // it replaces the shipped policy
	Allows  bool // it may allow commands
	Adds    bool // it adds places or options, and needs no rules
	Shipped bool // it is the shipped policy; a test shows that it has no problems
	Modules map[string]*ast.Module
	Data    map[string]any  // the layer's own data
	Taken   map[string]bool // ids of the shipped policy's rules, or nil
	Unread  bool            // some files could not be read: names that the others seem to lack are not a problem
	Now     time.Time       // when exceptions expire
	// Document returns the type of the input at a decision point.
	Document func(point string) reflect.Type
	// Marks returns the shipped policy's rules as module.MarkRules does.
	Marks func() map[string]string
}

// A checker checks one layer's modules.
type checker struct {
	Layer
	graph    *module.Graph
	used     map[string]ruleUse // by path of the rule; nil until it is needed
	problems []Problem
}

func (c *checker) addProblem(where *ast.Location, code, message, hint string) {
	c.problems = append(c.problems, problemAt(c.Name, where, Refused, code, message, hint))
}

// Check refuses policy that compiles but silently has no effect, or more than is visible:
// unknown packages, sets with a mistyped name, sets that are not sets, with outside tests,
// data from elsewhere, and layers without any rule. It counts the rules of each set, by
// point.set. For the shipped layer it only counts.
func (l Layer) Check() (problems []Problem, rules map[string]int) {
	c := &checker{Layer: l, graph: module.NewGraph(l.Modules)}
	rules = map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(l.Modules)) {
		c.checkModule(l.Modules[name], rules)
	}
	if !l.Shipped {
		c.checkConflicts()
	}
	if !l.Unread && !l.Adds && len(c.problems) == 0 && !hasDecidingRule(rules) {
		c.addProblem(nil, module.CodeMissing, "the layer has no rule at any decision point",
			"write deny contains {…} if {…} in package "+module.PointCommand)
	}
	return c.problems, rules
}

// hasDecidingRule reports whether any of the rules belongs to a set with a meaning.
func hasDecidingRule(rules map[string]int) bool {
	for _, point := range module.Points() {
		if slices.ContainsFunc(module.Sets(point), func(set string) bool { return rules[point+"."+set] > 0 }) {
			return true
		}
	}
	return false
}

func (c *checker) checkModule(m *ast.Module, count map[string]int) {
	pkg := module.PackageOf(m)
	if module.Sets(pkg) == nil && !module.InLib(pkg) {
		c.addProblem(m.Package.Location, module.CodeUnknownKey, fmt.Sprintf("package %s is not a decision point", pkg),
			packageHint(pkg))
		return
	}
	for _, r := range m.Rules {
		count[pkg+"."+module.RuleName(r)]++
	}
	if c.Shipped {
		return
	}
	c.checkAnnotations(m)
	c.checkExceptions(m)
	c.checkModes(m)
	c.checkOverrides(m)
	c.checkBodies(m)
	c.checkInputs(m)
	c.checkNumbers(m)
	c.checkConstants(m)
	if !c.Unread {
		c.checkReferences(m)
		c.checkCalls(m)
	}
	if module.InLib(pkg) {
		return
	}
	for _, r := range m.Rules {
		c.checkRule(pkg, r)
	}
}

func packageHint(pkg string) string {
	if near := spelling.NearestName(pkg, append(module.Points(), module.PackageLib)); near != "" {
		return "did you mean " + near + "?"
	}
	return "write package " + strings.Join(module.Points(), ", ") + " or " + module.PackageLib
}

func (c *checker) checkRule(pkg string, r *ast.Rule) {
	name := module.RuleName(r)
	isSet := r.Head.RuleKind() == ast.MultiValue
	known := slices.Contains(module.Sets(pkg), name)
	switch {
	case known && (!isSet || len(r.Head.Ref()) != 1 || r.Default):
		c.addProblem(r.Location, module.CodeCompile, name+" must be a set", "write "+name+" contains {…} if {…}")
	case !known && isSet && !isReferred(name, c.Modules):
		hint := "use one of " + strings.Join(module.Sets(pkg), ", ")
		if near := spelling.NearestName(name, module.Sets(pkg)); near != "" {
			hint = "did you mean " + near + "?"
		}
		c.addProblem(r.Location, module.CodeUnknownKey,
			fmt.Sprintf("the set %q has no meaning in package %s", name, pkg), hint)
	}
}

// checkAnnotations refuses METADATA that changes what the compiler checks: schemas replace
// the input's, and could name files or addresses to read them from.
func (c *checker) checkAnnotations(m *ast.Module) {
	for _, a := range m.Annotations {
		if len(a.Schemas) > 0 {
			c.addProblem(a.Location, module.CodeCompile, "METADATA must not set schemas: the input has its own",
				"remove schemas")
		}
	}
}

// checkBodies refuses with, which would evaluate another input than the real one.
func (c *checker) checkBodies(m *ast.Module) {
	ast.WalkNodes(m, func(n ast.Node) bool {
		if e, ok := n.(*ast.Expr); ok && len(e.With) > 0 {
			c.addProblem(e.Location, module.CodeCompile, "with is for tests only", "write the condition without with")
			return true
		}
		return false
	})
}

// isReferred reports whether a rule of modules reads name.
func isReferred(name string, modules map[string]*ast.Module) bool {
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
