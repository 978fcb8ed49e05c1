// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// The codes of valid Rego that probably does not do what its author intended.
const (
	lintRegex      = "lint.regex"      // a pattern that a longer text matches, too
	lintBoundary   = "lint.boundary"   // a prefix, suffix or part that a longer word has, too
	lintMissing    = "lint.missing"    // not with a value that may be missing
	lintNever      = "lint.never"      // a rule that can never hold
	lintIgnored    = "lint.ignored"    // an effect that the layer's role does not give
	lintID         = "lint.id"         // a rule id that is missing, malformed or ambiguous
	lintTitle      = "lint.title"      // no title in METADATA
	lintMetadata   = "lint.metadata"   // METADATA that contradicts itself
	lintShape      = "lint.shape"      // a member that is not a valid answer
	lintSuggestion = "lint.suggestion" // a denial without a message or a suggestion
	lintExamples   = "lint.examples"   // a rule about commands without examples
	lintStart      = "lint.start"      // a denial of a program without one of its starts
	lintUnused     = "lint.unused"     // a rule that nothing uses
	lintIteration  = "lint.iteration"  // a loop that OPA's index could avoid
	lintPrint      = "lint.print"      // print left in
	lintConflict   = "lint.conflict"   // two rules that may give one name different values
	lintFormat     = "lint.format"     // a format with another number of values
	lintAny        = "lint.any"        // a condition that holds for any other element, or for none
	lintWhole      = "lint.whole"      // a grant of whatever is requested
	lintAsk        = "lint.ask"        // a question that no person can answer
	lintAll        = "lint.all"        // a denial of everything
	lintLonger     = "lint.longer"     // a pattern that longer names match, too
	lintArgv       = "lint.argv"       // argv[0] in place of the program
	lintData       = "lint.data"       // data that is missing, or that nothing uses
	lintFloor      = "lint.floor"      // a limit with which nothing can run
)

// A linter checks one layer. It reports Wrong if a policy allows more than it seems to or
// has no effect, and Doubtful if it is only hard to read or slow.
type linter struct {
	Layer
	graph    *module.Graph
	used     map[string]ruleUse // by path of the rule
	problems []Problem
}

// Lint returns Wrong and Doubtful problems. The modules must be parsed with METADATA.
func (l Layer) Lint() []Problem {
	x := &linter{Layer: l, graph: module.NewGraph(l.Modules)}
	x.used = x.findUses()
	for _, name := range slices.Sorted(maps.Keys(l.Modules)) {
		m := l.Modules[name]
		x.findExpiring(m)
		x.findEndingModes(m)
		x.findVoidOverrides(m)
		x.findInvalidLabels(m)
		for _, r := range m.Rules {
			for ; r != nil; r = r.Else {
				x.lintRule(m, r)
			}
		}
	}
	x.findConflicts()
	x.findDataProblems()
	x.lintHeads()
	return x.problems
}

func (x *linter) addProblem(where *ast.Location, severity Severity, code, message, hint string) {
	x.problems = append(x.problems, problemAt(x.Name, where, severity, code, message, hint))
}

// lintRule checks one rule, or one else of it.
func (x *linter) lintRule(m *ast.Module, r *ast.Rule) {
	path := x.graph.Packages[m] + module.RuleName(r)
	u := x.used[path]
	if u == 0 && !r.Default && r.Head.RuleKind() != ast.MultiValue { // an unused set is refused
		x.addProblem(r.Location, Doubtful, lintUnused, fmt.Sprintf("nothing uses %s", module.RuleName(r)),
			"remove it, or use it in a rule of a decision point")
	}
	x.findNeverHolding(r)
	x.findImpossible(m, r)
	x.findSlips(m, r, u)
	x.findScalarSearches(m, r)
	x.findConstantLoops(r)
	x.findLooseMatches(m, r, u)
	x.findPrints(r)
	if slices.Contains(module.Sets(module.PackageOf(m)), module.RuleName(r)) {
		x.findIgnoredSets(m, r)
	}
}

// findPrints finds print, which has no effect in a run.
func (x *linter) findPrints(r *ast.Rule) {
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if e.IsCall() && e.Operator().String() == ast.Print.Name {
			x.addProblem(e.Location, Doubtful, lintPrint, "print has no effect in a run",
				"remove it, or print in a test")
		}
		return false
	})
}
