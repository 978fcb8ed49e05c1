// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// findLooseMatches finds conditions that match more than they seem to, in rules that allow more when
// they hold. In a rule that denies, such conditions only deny more.
func (x *linter) findLooseMatches(m *ast.Module, r *ast.Rule, u ruleUse) {
	x.eachExpr(r.Body, u, func(e *ast.Expr, u ruleUse) {
		if u&widens != 0 {
			x.lintMatch(m, e)
		}
		x.findMissingWords(e, u)
	})
}

func (x *linter) lintMatch(m *ast.Module, e *ast.Expr) {
	if e.IsCall() {
		x.lintSearchCall(m, e.Location, e.Operator().String(), e.Operands())
	}
	for _, t := range termsOf(e) { // a call within another: count(split(x, "/")) and the like
		ast.WalkTerms(t, func(t *ast.Term) bool {
			switch v := t.Value.(type) {
			case ast.Call:
				x.lintSearchCall(m, t.Location, v[0].String(), v[1:])
			case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
				return true // eachExpr visits it
			}
			return false
		})
	}
}

// lintSearchCall checks one call that searches a text.
func (x *linter) lintSearchCall(m *ast.Module, at *ast.Location, name string, args []*ast.Term) {
	if len(args) < 2 {
		return
	}
	switch name {
	case "regex.match", "re_match":
		eachText(x.graph, m, args[0], func(pattern string) { x.lintPattern(at, pattern) })
	case "startswith", "strings.any_prefix_match":
		eachText(x.graph, m, args[1], func(text string) {
			if last, _ := utf8.DecodeLastRuneInString(text); isWordRune(last) || text == "" {
				x.addProblem(at, Wrong, lintBoundary,
					fmt.Sprintf("longer texts also begin with %q, for example %q", text, text+"x"),
					"end it with the separator, compare the whole text, or use split")
			}
		})
	case "endswith", "strings.any_suffix_match":
		eachText(x.graph, m, args[1], func(text string) {
			if first, _ := utf8.DecodeRuneInString(text); isWordRune(first) || text == "" {
				x.addProblem(at, Wrong, lintBoundary,
					fmt.Sprintf("longer texts also end with %q, for example %q", text, "x"+text),
					fmt.Sprintf("begin it with the separator (%q), and compare the whole text if it may be alone",
						"."+text))
			}
		})
	case "contains":
		eachText(x.graph, m, args[1], func(text string) {
			if strings.ContainsFunc(text, isWordRune) || text == "" { // otherwise it checks the form of the text
				x.addProblem(at, Wrong, lintBoundary, fmt.Sprintf("%q may be anywhere in the text", text),
					"compare the whole text, or one part of split")
			}
		})
	}
}

// lintPattern reports a pattern that also matches within longer texts.
func (x *linter) lintPattern(at *ast.Location, pattern string) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return // regex.match fails, and the policy with it
	}
	begins, ends := anchoringAt(re, first), anchoringAt(re, last)
	if begins > 0 && ends > 0 && begins+ends > 2*separated {
		return
	}
	lacks := "^ and $"
	switch {
	case begins > 0 && ends == 0:
		lacks = "$"
	case ends > 0 && begins == 0:
		lacks = "^"
	}
	hint := "write ^(?:…)$ around it; if any text may follow, add .*"
	if re.Op == syntax.OpAlternate {
		hint = "put all alternatives between the anchors: write ^(?:a|b)$"
	}
	x.addProblem(at, Wrong, lintRegex,
		fmt.Sprintf("the pattern %q is not anchored with %s: it matches within longer texts", pattern, lacks), hint)
}

// A patternSide is one end of a pattern.
type patternSide struct {
	op    syntax.Op
	final bool
}

var (
	first = patternSide{syntax.OpBeginText, false}
	last  = patternSide{syntax.OpEndText, true}
)

// endIndex is the index of the end among n parts.
func (s patternSide) endIndex(n int) int {
	if s.final {
		return n - 1
	}
	return 0
}

// How an end of a pattern is anchored: not at all, by a separator, or by an anchor or an
// explicit .*.
const (
	loose = iota
	separated
	anchored
)

// anchoringAt is how re is anchored at the side. The worst alternative counts.
func anchoringAt(re *syntax.Regexp, s patternSide) int {
	switch re.Op {
	case s.op:
		return anchored
	case syntax.OpStar:
		if op := re.Sub[0].Op; op == syntax.OpAnyChar || op == syntax.OpAnyCharNotNL {
			return anchored
		}
	case syntax.OpLiteral:
		if r := re.Rune; !isWordRune(r[0]) && s == first || !isWordRune(r[len(r)-1]) && s == last {
			return separated
		}
	case syntax.OpCapture, syntax.OpPlus:
		return anchoringAt(re.Sub[0], s)
	case syntax.OpConcat:
		return anchoringAt(re.Sub[s.endIndex(len(re.Sub))], s)
	case syntax.OpAlternate:
		worst := anchored
		for _, sub := range re.Sub {
			worst = min(worst, anchoringAt(sub, s))
		}
		return worst
	}
	return loose
}

// isWordRune reports whether r is a character of words, so that a word may continue after it.
func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// eachText calls do with each known value of t: a constant, a member of a constant set, or
// the value of a rule of the layer without conditions.
func eachText(graph *module.Graph, m *ast.Module, t *ast.Term, do func(string)) {
	take := func(t *ast.Term) {
		if text, ok := t.Value.(ast.String); ok {
			do(string(text))
		}
	}
	switch v := t.Value.(type) {
	case ast.String:
		take(t)
	case *ast.Array:
		v.Foreach(take)
	case ast.Set:
		v.Foreach(take)
	case ast.Var, ast.Ref:
		ref, ok := v.(ast.Ref)
		if !ok {
			ref = ast.Ref{t}
		}
		rules := graph.Rules[graph.Target(m, ref).Rule]
		if len(rules) == 1 && rules[0].Rule.Head.Value != nil && rules[0].Rule.Head.Value.IsGround() &&
			len(rules[0].Rule.Head.Args) == 0 {
			eachText(graph, m, ast.NewTerm(rules[0].Rule.Head.Value.Value), do)
		}
	}
}

func termsOf(e *ast.Expr) []*ast.Term {
	switch t := e.Terms.(type) {
	case *ast.Term:
		return []*ast.Term{t}
	case []*ast.Term:
		return t[1:]
	case *ast.SomeDecl:
		return t.Symbols
	case *ast.Every:
		return []*ast.Term{t.Domain}
	}
	return nil
}

// findMissingWords finds not with a word that may be missing. Without an argument at that position
// the condition holds, which the author may not expect.
func (x *linter) findMissingWords(e *ast.Expr, u ruleUse) {
	negated := e.Negated && u&narrows != 0 // u is for the condition below not: above it the rule widens
	unequal := !e.Negated && u&narrows != 0 && e.IsCall() && e.Operator().String() == ast.NotEqual.Name
	if !negated && !unequal {
		return
	}
	ast.WalkRefs(e, func(ref ast.Ref) bool {
		if !byNumber(ref) {
			return false
		}
		if negated {
			x.addProblem(e.Location, Wrong, lintMissing, fmt.Sprintf("this holds if there is no %s", ref),
				"check each with some, or check count first")
		} else {
			x.addProblem(e.Location, Doubtful, lintMissing, fmt.Sprintf("this does not hold if there is no %s", ref),
				"write not … == … to include a missing one")
		}
		return true
	})
}

// byNumber reports whether ref names one element of a list of the input.
func byNumber(ref ast.Ref) bool {
	if !ref[0].Equal(ast.InputRootDocument) {
		return false
	}
	for _, t := range ref[1:] {
		if _, ok := t.Value.(ast.Number); ok {
			return true
		}
	}
	return false
}
