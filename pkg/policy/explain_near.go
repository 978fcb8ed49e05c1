// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/fumehood/fumehood/pkg/policy/facts"
	"github.com/fumehood/fumehood/pkg/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds on what is said of one rule.
const (
	mostFailed  = 3
	mostStrange = 2 // commands without a rule of which the near ones are looked for
	mostNear    = 5
	mostValue   = 80
	deepest     = 2 // helpers of helpers that are looked into
)

// aboutProgram are conditions that choose the program: a rule of which one holds and none
// fails is a rule for it.
var aboutProgram = regexp.MustCompile(`\binput\.command\.program\b`)

// near are the rules that allow doc's program, and do not allow doc.
func (l *layer) near(ctx context.Context, doc Document) []Near {
	if !l.may(Allows) || l.points[doc.Point] == nil {
		return nil
	}
	compiler := l.compiler(doc.Point)
	if compiler == nil {
		return nil
	}
	var all []Near
	for _, d := range l.book.about(wholly) {
		if d.set != "allow" || d.point != doc.Point || len(all) == mostNear {
			continue
		}
		t := trial{ctx: ctx, layer: l, compiler: compiler, input: doc.Input, point: doc.Point, imports: d.imports}
		if failed, about := t.body(d.rule.Body, 0); about && len(failed) > 0 {
			all = append(all, Near{Spoken: d.spoken(doc.Command), Failed: failed, Examples: []string{}})
		}
	}
	return all
}

// compiler compiles the point's modules once more as they are written: what decides may
// hold rules in another order.
func (l *layer) compiler(point string) *ast.Compiler {
	b := l.book
	b.compile.Lock()
	defer b.compile.Unlock()
	if _, done := b.compilers[point]; !done {
		b.compilers[point] = l.asWritten(point)
	}
	return b.compilers[point]
}

func (l *layer) asWritten(point string) *ast.Compiler {
	modules, err := parseModules(context.Background(), Layer{Name: l.name, Files: l.book.files})
	if err != nil {
		return nil
	}
	c := module.Compile(point, documentOf(point), module.ForPoint(point, modules, module.NewGraph(modules)), false)
	if c.Failed() {
		return nil
	}
	return c
}

// A trial evaluates bodies of rules condition by condition.
type trial struct {
	ctx      context.Context
	layer    *layer
	compiler *ast.Compiler
	input    ast.Value
	point    string
	imports  []*ast.Import
}

// body returns the conditions of b that fail, each beside those before it that hold, and
// whether b is about the input's program.
func (t trial) body(b ast.Body, depth int) (failed []Condition, about bool) {
	var held ast.Body
	for _, expr := range b {
		if !aboutProgram.MatchString(exprText(expr)) {
			continue
		}
		if holds, sound := t.holds(ast.Body{expr}); sound && !holds {
			return nil, false // most rules are for other programs
		}
	}
	for _, expr := range b {
		chooses := aboutProgram.MatchString(exprText(expr))
		with := append(slices.Clone(held), expr)
		holds, sound := t.holds(with)
		switch {
		case !sound && len(failed) > 0:
			return failed, about // it needs what a condition before it would have found
		case !sound, holds:
			held = with
			about = about || chooses
		case chooses:
			return nil, false
		case len(failed) < mostFailed:
			failed = append(failed, t.condition(expr))
			failed = append(failed, t.inside(expr, depth)...)
		}
	}
	return failed[:min(len(failed), mostFailed)], about
}

// holds evaluates conditions; it is not sound where they do not stand for themselves.
func (t trial) holds(b ast.Body) (holds, sound bool) {
	fresh := make(ast.Body, len(b))
	for i, expr := range b {
		fresh[i] = expr.Copy()
		fresh[i].Index = i
	}
	// A query gives a value for what is false, too; a comprehension does not.
	query := ast.NewBody(ast.Assign.Expr(ast.VarTerm("held"), ast.ArrayComprehensionTerm(ast.BooleanTerm(true), fresh)))
	rs, err := rego.New(
		rego.Compiler(t.compiler), rego.Store(t.layer.data), rego.ParsedQuery(query), rego.ParsedPackage(&ast.Package{Path: ast.MustParseRef("data." + t.point)}),
		rego.ParsedImports(t.imports), rego.ParsedInput(t.input), rego.Capabilities(module.Capabilities()), rego.SetRegoVersion(ast.RegoV1),
	).Eval(t.ctx)
	if err != nil || len(rs) != 1 {
		return false, false
	}
	found, _ := rs[0].Bindings["held"].([]any)
	return len(found) > 0, true
}

// inside looks into a condition that is nothing but the name of another rule.
func (t trial) inside(expr *ast.Expr, depth int) []Condition {
	term, ok := expr.Terms.(*ast.Term)
	if !ok || expr.Negated || depth == deepest {
		return nil
	}
	name, ok := term.Value.(ast.Var)
	if !ok {
		return nil
	}
	var all []Condition
	for _, m := range t.compiler.Modules {
		if module.PackageOf(m) != t.point {
			continue
		}
		for _, r := range m.Rules {
			if module.RuleName(r) == string(name) && len(r.Head.Args) == 0 && r.Else == nil {
				all = append(all, t.written(r, depth+1)...)
			}
		}
	}
	return all
}

// written finds r as it is written, for the compiler has rewritten its conditions.
func (t trial) written(r *ast.Rule, depth int) []Condition {
	for _, f := range t.layer.book.files {
		if f.Name != r.Location.File {
			continue
		}
		m, err := parseWith("", f, false)
		if err != nil {
			return nil
		}
		for _, as := range m.Rules {
			if as.Location.Row == r.Location.Row {
				t.imports = m.Imports
				failed, _ := t.body(as.Body, depth)
				return failed
			}
		}
	}
	return nil
}

func (t trial) condition(expr *ast.Expr) Condition {
	return Condition{Text: short(exprText(expr), 3*mostValue), File: expr.Location.File, Line: expr.Location.Row, Col: expr.Location.Col, Values: t.values(expr)}
}

func exprText(expr *ast.Expr) string {
	if len(expr.Location.Text) > 0 {
		return strings.Join(strings.Fields(string(expr.Location.Text)), " ")
	}
	return expr.String()
}

// values are the parts of the input that expr names.
func (t trial) values(expr *ast.Expr) []Value {
	all := []Value{}
	ast.WalkRefs(expr, func(r ast.Ref) bool {
		if !r.HasPrefix(ast.InputRootRef) || !r.IsGround() || len(all) == 2 {
			return false
		}
		found, err := t.input.Find(r[1:])
		if v := (Value{Path: r.String()}); err == nil {
			v.Value = short(found.String(), mostValue)
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
		return true
	})
	return all
}

// short cuts s to at most max bytes.
func short(s string, max int) string {
	if len(s) <= max {
		return s
	}
	end := max
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// examplesOf are examples of the rule n that are allowed, those of the command's program
// before others.
func (v *Adviser) examplesOf(ctx context.Context, a proposal.Analysis, n Near) []string {
	program := ""
	if n.Command >= 0 && n.Command < len(a.Commands) {
		program = facts.ToolName(path.Base(a.Commands[n.Command].Program))
	}
	found := []string{}
	for _, l := range v.engine.layers {
		if l.label != n.Layer {
			continue
		}
		for _, d := range l.book.about(wholly) {
			if d.file != n.File || d.row != n.Line {
				continue
			}
			for _, text := range d.match[:min(len(d.match), mostExamples)] {
				if t := v.try(ctx, text); t.allowed && t.program == program && len(found) < proposal.MaxAlternatives {
					found = append(found, t.canonical)
				}
			}
		}
	}
	return found
}
