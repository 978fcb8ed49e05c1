// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The codes of what is legal Rego and hardly does what its author meant.
const (
	lintRegex      = "lint.regex"      // a pattern that a longer text slips through
	lintBoundary   = "lint.boundary"   // a beginning, end or part that a longer word has, too
	lintMissing    = "lint.missing"    // not of what may be missing
	lintNever      = "lint.never"      // a rule that can never hold
	lintIgnored    = "lint.ignored"    // an effect that the layer's role does not give
	lintID         = "lint.id"         // a rule id that is missing, malformed or ambiguous
	lintTitle      = "lint.title"      // no title in METADATA
	lintMetadata   = "lint.metadata"   // METADATA that contradicts itself
	lintShape      = "lint.shape"      // a member that no decision can be made of
	lintSuggestion = "lint.suggestion" // a refusal that does not help
	lintExamples   = "lint.examples"   // a rule about commands without examples
	lintUnused     = "lint.unused"     // a rule that nothing uses
	lintIteration  = "lint.iteration"  // a loop where OPA's index would do
	lintPrint      = "lint.print"      // print left in
)

// A linter looks through one layer. It says what is Wrong where a policy lets more
// pass than it seems to or does nothing, and what is Doubtful where it only reads or
// runs badly.
type linter struct {
	*layer
	*atlas
	modules  map[string]*ast.Module
	used     map[string]use // by path of the rule
	problems []Problem
}

// lint needs modules that were parsed with METADATA.
func (l *layer) lint(modules map[string]*ast.Module) []Problem {
	x := &linter{layer: l, atlas: newAtlas(modules), modules: modules}
	x.used = x.uses()
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m := modules[name]
		for _, r := range m.Rules {
			for ; r != nil; r = r.Else {
				x.rule(m, r)
			}
		}
	}
	x.heads()
	return x.problems
}

func (x *linter) say(at *ast.Location, severity Severity, code, message, hint string) {
	x.problems = append(x.problems, x.at(at, severity, code, message, hint))
}

// rule looks at one rule, or one else of it.
func (x *linter) rule(m *ast.Module, r *ast.Rule) {
	path := x.packages[m] + ruleName(r)
	u := x.used[path]
	if u == 0 && !r.Default && r.Head.RuleKind() != ast.MultiValue { // an unused set is refused
		x.say(r.Location, Doubtful, lintUnused, fmt.Sprintf("nothing uses %s", ruleName(r)), "remove it, or use it in a rule of a decision point")
	}
	x.never(r)
	x.iterations(r)
	x.matches(m, r, u)
	x.prints(r)
	if slices.Contains(sets[packageOf(m)], ruleName(r)) {
		x.ignored(m, r)
	}
}

// prints finds print, which says nothing in a run.
func (x *linter) prints(r *ast.Rule) {
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if e.IsCall() && e.Operator().String() == ast.Print.Name {
			x.say(e.Location, Doubtful, lintPrint, "print is left in; a run does not print", "remove it, or print in a test")
		}
		return false
	})
}

// style tells in one line what policy check would say of a layer that is loaded all the
// same: its author may not be stopped by style, and is told.
func (e *Engine) style(given []Layer) {
	for _, s := range given {
		if s.Name == DefaultLayer && s.Role == Grants {
			continue // held to it before it ships
		}
		_, problems := (&layer{name: s.Name, role: s.Role}).linted(s)
		if len(problems) > 0 {
			p := problems[0]
			e.warn(fmt.Sprintf("policy.lint: layer %q, %s:%d:%d: %s (fumehood policy check shows all that is wrong with it: %d)", s.Name, p.File, p.Line, p.Column, p.Message, len(problems)))
		}
	}
}

// linted is what is Wrong with a layer that compiles.
func (l *layer) linted(s Layer) (modules map[string]*ast.Module, problems []Problem) {
	modules, problems = parseAll(s)
	problems = append(problems, l.lint(modules)...)
	return modules, slices.DeleteFunc(tidied(problems), func(p Problem) bool { return p.Severity == Doubtful })
}
