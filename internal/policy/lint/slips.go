// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// The checks below find rules of which OPA and the engine take a meaning that is rarely the author's.

// findSlips checks one rule.
func (x *linter) findSlips(m *ast.Module, r *ast.Rule, u ruleUse) {
	document := x.Document(module.PackageOf(m))
	parts := map[ast.Var]inputPart{}
	if document != nil {
		parts = partsByVar(document, r)
	}
	x.findFormats(r)
	if module.PackageOf(m) != module.PointEgress { // one of several grants is often meant there
		x.findAnyUnequal(r, parts)
	}
	if slices.Contains(module.Sets(module.PackageOf(m)), module.RuleName(r)) {
		x.findEmptyEvery(r, document, parts, u)
		x.findWholeRequest(m, r)
		x.findUnansweredAsk(m, r)
		x.findDenialOfAll(m, r)
	}
	if document != nil && u&narrows != 0 {
		x.findLongerNames(m, r, document, parts)
	}
	x.findFirstArgument(m, r)
}

// findFormats finds sprintf with another number of values than its format has verbs.
func (x *linter) findFormats(r *ast.Rule) {
	check := func(at *ast.Location, operands []*ast.Term) {
		if len(operands) < 2 {
			return
		}
		format, isText := operands[0].Value.(ast.String)
		values, isArray := operands[1].Value.(*ast.Array)
		if !isText || !isArray {
			return
		}
		if verbs := countVerbs(string(format)); verbs >= 0 && verbs != values.Len() {
			x.addProblem(at, Wrong, lintFormat,
				fmt.Sprintf("the format %q has %d verbs, and %d values", string(format), verbs, values.Len()),
				"give each verb one value")
		}
	}
	ast.WalkNodes(r, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Expr:
			if n.IsCall() && n.Operator().String() == ast.Sprintf.Name {
				check(n.Location, n.Operands())
			}
		case *ast.Term:
			if call, ok := n.Value.(ast.Call); ok && call[0].String() == ast.Sprintf.Name {
				check(n.Location, call[1:])
			}
		}
		return false
	})
}

// countVerbs is the number of values that a format takes, or -1 if it names them by number or width.
func countVerbs(format string) int {
	n := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format) && strings.IndexByte("+-# 0123456789.", format[i]) >= 0; i++ {
		}
		switch {
		case i == len(format) || format[i] == '[' || format[i] == '*':
			return -1
		case format[i] != '%':
			n++
		}
	}
	return n
}

// findAnyUnequal finds some x in LIST with x != VALUE as the only condition about x: one other element is
// enough for it to hold.
func (x *linter) findAnyUnequal(r *ast.Rule, parts map[ast.Var]inputPart) {
	for _, e := range r.Body {
		if e.Negated || !e.IsCall() || e.Operator().String() != ast.NotEqual.Name {
			continue
		}
		for i, t := range e.Operands() {
			v, isVar := t.Value.(ast.Var)
			if _, isPart := parts[v]; !isVar || !isPart || !ast.IsConstant(e.Operand(1-i).Value) ||
				countUses(r, v) != 2 || !declaresElement(r.Body, v) {
				continue
			}
			x.addProblem(e.Location, Wrong, lintAny,
				fmt.Sprintf("this holds if any element is not %s, whatever the others are", e.Operand(1-i)),
				fmt.Sprintf("write not %s in …, if none may be", e.Operand(1-i)))
		}
	}
}

// declaresElement reports whether body has some v in LIST.
func declaresElement(body ast.Body, v ast.Var) bool {
	return slices.ContainsFunc(body, func(e *ast.Expr) bool {
		some, ok := e.Terms.(*ast.SomeDecl)
		if !ok || len(some.Symbols) != 1 {
			return false
		}
		call, ok := some.Symbols[0].Value.(ast.Call)
		return ok && call[len(call)-2].Value.Compare(v) == 0
	})
}

// findEmptyEvery finds a rule that holds because of every over a list of the input alone: it also holds if
// the list is empty.
func (x *linter) findEmptyEvery(r *ast.Rule, document reflect.Type, parts map[ast.Var]inputPart, u ruleUse) {
	if document == nil || u&narrows == 0 {
		return
	}
	for _, e := range r.Body {
		every, ok := e.Terms.(*ast.Every)
		if !ok || partOf(document, parts, every.Domain).typ == nil {
			continue
		}
		others := 0
		for _, other := range r.Body {
			ast.WalkTerms(other, func(t *ast.Term) bool {
				if t.Equal(every.Domain) {
					others++
				}
				return false
			})
		}
		if others == 1 {
			x.addProblem(e.Location, Doubtful, lintAny, fmt.Sprintf("this holds if %s is empty, too", every.Domain),
				fmt.Sprintf("add count(%s) > 0, or write some", every.Domain))
		}
	}
}

// findWholeRequest finds a rule that grants each host that a proposal requests: its author decides then.
func (x *linter) findWholeRequest(m *ast.Module, r *ast.Rule) {
	if module.PackageOf(m) != module.PointProposal || module.RuleName(r) != "network" || r.Head.Key == nil {
		return
	}
	member, ok := r.Head.Key.Value.(ast.Object)
	if !ok {
		return
	}
	host := member.Get(ast.StringTerm("host"))
	if host == nil {
		return
	}
	requested := ast.MustParseRef("input.proposal.network")
	whole := false
	switch v := host.Value.(type) {
	case ast.Ref:
		whole = v.HasPrefix(requested)
	case ast.Var:
		whole = countUses(r, v) == 2 && slices.ContainsFunc(r.Body, func(e *ast.Expr) bool {
			found := false
			ast.WalkRefs(e, func(ref ast.Ref) bool { found = found || ref.HasPrefix(requested); return found })
			return found && declaresVar(e, v)
		})
	}
	if whole {
		x.addProblem(host.Location, Wrong, lintWhole,
			"this grants every host that the proposal names, *.example and registries too",
			"compare it with the hosts that are meant: host in {\"api.example.com\"}")
	}
}

// declaresVar reports whether e gives v its value.
func declaresVar(e *ast.Expr, v ast.Var) bool {
	found := false
	ast.WalkVars(e, func(other ast.Var) bool { found = found || other == v; return found })
	return found
}

// findUnansweredAsk finds questions where no person can answer: they deny.
func (x *linter) findUnansweredAsk(m *ast.Module, r *ast.Rule) {
	pkg := module.PackageOf(m)
	if module.RuleName(r) == "ask" && (pkg == module.PointExec || pkg == module.PointTrigger) {
		x.addProblem(r.Location, Wrong, lintAsk, "no person can be asked in "+pkg+": this denies",
			"write deny, or ask in "+module.PointCommand)
	}
}

// findDenialOfAll finds denials without a condition.
func (x *linter) findDenialOfAll(m *ast.Module, r *ast.Rule) {
	name := module.RuleName(r)
	if (name == "deny" || name == "ask") && isUnconditional(r.Body) && r.Head.Key != nil &&
		ast.IsConstant(r.Head.Key.Value) {
		verb := map[string]string{"deny": "denies", "ask": "asks about"}[name]
		x.addProblem(r.Location, Doubtful, lintAll, fmt.Sprintf("this %s everything at %s", verb, module.PackageOf(m)),
			"add a condition, if not everything is meant")
	}
}

// findLongerNames finds patterns without anchors that a denial compares with the name of a tool, and which
// longer names match, too.
func (x *linter) findLongerNames(m *ast.Module, r *ast.Rule, document reflect.Type, parts map[ast.Var]inputPart) {
	check := func(at *ast.Location, name string, operands []*ast.Term) {
		if name != ast.RegexMatch.Name || len(operands) < 2 {
			return
		}
		part := partOf(document, parts, operands[1])
		if form := part.field.Tag.Get("form"); form != "program" && form != "name" {
			return
		}
		eachText(x.graph, m, operands[0], func(pattern string) {
			re, err := syntax.Parse(pattern, syntax.Perl)
			if err == nil && anchoringAt(re, first) == loose && anchoringAt(re, last) == loose {
				x.addProblem(at, Doubtful, lintLonger,
					fmt.Sprintf("the pattern %q also matches within longer names, as rm does in terraform", pattern),
					"write ^(?:…)$ around it, or compare the name")
			}
		})
	}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if e.IsCall() {
			check(e.Location, e.Operator().String(), e.Operands())
		}
		return false
	})
}

// findFirstArgument finds argv[0] where it is not the program.
func (x *linter) findFirstArgument(m *ast.Module, r *ast.Rule) {
	command, exec := ast.MustParseRef("input.command.argv[0]"), ast.MustParseRef("input.argv[0]")
	for _, e := range r.Body {
		field, value, ok := comparedField(e)
		text, isText := ast.Value(ast.Null{}), false
		if ok {
			text = value.Value
			_, isText = text.(ast.String)
		}
		switch {
		case !ok || !isText || text == ast.String(""):
		case field.Equal(command) && knownTools()[string(text.(ast.String))] && !module.NamesProgram(r):
			x.addProblem(e.Location, Doubtful, lintArgv, "input.command.argv[0] is the first argument, not the program",
				fmt.Sprintf("write input.command.program == %s", value))
		case field.Equal(exec) && module.PackageOf(m) == module.PointExec:
			x.addProblem(e.Location, Wrong, lintArgv,
				"a program gets any argv[0] from the one that starts it, a path, too",
				fmt.Sprintf("write input.tool == %s, or compare input.path", value))
		}
	}
}
