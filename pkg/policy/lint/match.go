// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
)

// matches finds conditions that let more through than their author read into them, in
// rules that widen what is allowed. In a rule that denies they only deny more.
func (x *linter) matches(m *ast.Module, r *ast.Rule, u use) {
	x.eachExpr(r.Body, u, func(e *ast.Expr, u use) {
		if u&widens != 0 {
			x.match(m, e)
		}
		x.missing(e, u)
	})
}

func (x *linter) match(m *ast.Module, e *ast.Expr) {
	if e.IsCall() {
		x.call(m, e.Location, e.Operator().String(), e.Operands())
	}
	for _, t := range termsOf(e) { // a call within another: count(split(x, "/")) and the like
		ast.WalkTerms(t, func(t *ast.Term) bool {
			switch v := t.Value.(type) {
			case ast.Call:
				x.call(m, t.Location, v[0].String(), v[1:])
			case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
				return true // eachExpr comes by
			}
			return false
		})
	}
}

// call looks at one call that searches a text.
func (x *linter) call(m *ast.Module, at *ast.Location, name string, args []*ast.Term) {
	if len(args) < 2 {
		return
	}
	switch name {
	case "regex.match", "re_match":
		x.eachText(m, args[0], func(pattern string) { x.pattern(at, pattern) })
	case "startswith", "strings.any_prefix_match":
		x.eachText(m, args[1], func(text string) {
			if last, _ := utf8.DecodeLastRuneInString(text); wordly(last) || text == "" {
				x.say(at, Wrong, lintBoundary, fmt.Sprintf("what begins with %q may go on: %q does, too", text, text+"x"),
					"end it with the separator, or compare the whole, or use split")
			}
		})
	case "endswith", "strings.any_suffix_match":
		x.eachText(m, args[1], func(text string) {
			if first, _ := utf8.DecodeRuneInString(text); wordly(first) || text == "" {
				x.say(at, Wrong, lintBoundary, fmt.Sprintf("what ends with %q may have begun otherwise: %q does, too", text, "x"+text),
					fmt.Sprintf("begin it with the separator (%q), and compare the whole where it may stand alone", "."+text))
			}
		})
	case "contains":
		x.eachText(m, args[1], func(text string) {
			if strings.ContainsFunc(text, wordly) || text == "" { // else it asks how the text is made
				x.say(at, Wrong, lintBoundary, fmt.Sprintf("%q may stand anywhere in it", text), "compare the whole, or one part of split")
			}
		})
	}
}

// pattern says where a text that holds more than the pattern describes matches it.
func (x *linter) pattern(at *ast.Location, pattern string) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return // regex.match fails, and the policy with it
	}
	begins, ends := held(re, first), held(re, last)
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
	hint := "write ^(?:…)$ around it; where any text may follow, say so: .*"
	if re.Op == syntax.OpAlternate {
		hint = "an alternative stands outside the anchors: write ^(?:a|b)$"
	}
	x.say(at, Wrong, lintRegex, fmt.Sprintf("the pattern %q is not held by %s: it matches within longer texts", pattern, lacks), hint)
}

// A side is one end of a pattern.
type side struct {
	op    syntax.Op
	final bool
}

var (
	first = side{syntax.OpBeginText, false}
	last  = side{syntax.OpEndText, true}
)

// of is the place of the end among n parts.
func (s side) of(n int) int {
	if s.final {
		return n - 1
	}
	return 0
}

// How an end of a pattern is held: loosely, by a separator, or by an anchor or .* that
// says that anything may stand there.
const (
	loose = iota
	separated
	anchored
)

// held is how all that re matches is held at the side, the worst alternative counting.
func held(re *syntax.Regexp, s side) int {
	switch re.Op {
	case s.op:
		return anchored
	case syntax.OpStar:
		if op := re.Sub[0].Op; op == syntax.OpAnyChar || op == syntax.OpAnyCharNotNL {
			return anchored
		}
	case syntax.OpLiteral:
		if r := re.Rune; !wordly(r[0]) && s == first || !wordly(r[len(r)-1]) && s == last {
			return separated
		}
	case syntax.OpCapture, syntax.OpPlus:
		return held(re.Sub[0], s)
	case syntax.OpConcat:
		return held(re.Sub[s.of(len(re.Sub))], s)
	case syntax.OpAlternate:
		worst := anchored
		for _, sub := range re.Sub {
			worst = min(worst, held(sub, s))
		}
		return worst
	}
	return loose
}

// wordly reports whether r stands within words, so that a word may go on after it.
func wordly(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// eachText hands do each text that t is known to be: a constant, one of a constant set,
// or what a rule of the layer without conditions says.
func (x *linter) eachText(m *ast.Module, t *ast.Term, do func(string)) {
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
		rules := x.graph.Rules[x.graph.Target(m, ref).Rule]
		if len(rules) == 1 && rules[0].Rule.Head.Value != nil && rules[0].Rule.Head.Value.IsGround() && len(rules[0].Rule.Head.Args) == 0 {
			x.eachText(m, ast.NewTerm(rules[0].Rule.Head.Value.Value), do)
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

// missing finds not of a word that may not be there. Without an argument at that place
// the condition holds, whatever the author thought of.
func (x *linter) missing(e *ast.Expr, u use) {
	negated := e.Negated && u&narrows != 0 // u is of what stands below not: above it the rule widens
	unequal := !e.Negated && u&narrows != 0 && e.IsCall() && e.Operator().String() == ast.NotEqual.Name
	if !negated && !unequal {
		return
	}
	ast.WalkRefs(e, func(ref ast.Ref) bool {
		if !byNumber(ref) {
			return false
		}
		if negated {
			x.say(e.Location, Wrong, lintMissing, fmt.Sprintf("where there is no %s, this holds", ref), "look at each by some, or ask for count first")
		} else {
			x.say(e.Location, Doubtful, lintMissing, fmt.Sprintf("where there is no %s, this does not hold", ref), "write not … == … where a missing one is meant, too")
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
