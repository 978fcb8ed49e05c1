// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of what is reported about one rule.
const (
	maxFailed  = 3
	maxStrange = 2 // commands without a rule, for which near rules are looked for
	maxNear    = 5
	maxValue   = 80
	deepest    = 2 // nesting of helper rules that are evaluated
)

// aboutProgram matches conditions on the program: if one holds and none fails, the rule is
// about this program.
var aboutProgram = pattern.New(`\binput\.command\.program\b`)

// nearMatches are the rules that allow the programs of docs, but not docs.
func (v *Adviser) nearMatches(ctx context.Context, docs []policy.Document) []Near {
	var all []Near
	for _, doc := range docs[:min(len(docs), maxStrange)] {
		for i := range v.indexes {
			all = append(all, v.nearIn(ctx, i, doc)...)
		}
	}
	return all
}

func (v *Adviser) nearIn(ctx context.Context, layer int, doc policy.Document) []Near {
	b := v.indexes[layer]
	if b.layer.Role < policy.Allows {
		return nil
	}
	conditions := v.layerConditions(ctx, layer, doc.Point)
	if conditions == nil {
		return nil
	}
	var all []Near
	for _, d := range b.definitionsIn(allFiles) {
		if d.set != "allow" || d.point != doc.Point || len(all) == maxNear {
			continue
		}
		t := bodyTrial{ctx: ctx, layer: b.layer, conditions: conditions, input: doc.Input, imports: d.imports}
		if failed, about := t.failedConditions(d.rule.Body, 0); about && len(failed) > 0 {
			all = append(all, Near{HeldRule: d.heldRule(doc.Command), Failed: failed, Examples: []string{}})
		}
	}
	return all
}

// layerConditions are those of a layer's rules at a point. They are compiled once.
func (v *Adviser) layerConditions(ctx context.Context, layer int, point string) *policy.Conditions {
	v.compiling.Lock()
	defer v.compiling.Unlock()
	key := layerPoint{layer, point}
	if _, done := v.compiled[key]; !done {
		v.compiled[key] = v.engine.CompileConditions(ctx, layer, point)
	}
	return v.compiled[key]
}

// A bodyTrial evaluates bodies of rules condition by condition.
type bodyTrial struct {
	ctx        context.Context
	layer      policy.LoadedLayer
	conditions *policy.Conditions
	input      ast.Value
	imports    []*ast.Import
}

// failedConditions returns the conditions of b that fail, each together with those before it that
// hold, and whether b is about the input's program.
func (t bodyTrial) failedConditions(b ast.Body, depth int) (failed []Condition, about bool) {
	var held ast.Body
	for _, expr := range b {
		if !aboutProgram.MatchString(exprText(expr)) {
			continue
		}
		if holds, sound := t.evaluateBody(ast.Body{expr}); sound && !holds {
			return nil, false // most rules are for other programs
		}
	}
	for _, expr := range b {
		chooses := aboutProgram.MatchString(exprText(expr))
		with := append(slices.Clone(held), expr)
		holds, sound := t.evaluateBody(with)
		switch {
		case !sound && len(failed) > 0:
			return failed, about // it needs a variable of a condition before it
		case !sound, holds:
			held = with
			about = about || chooses
		case chooses:
			return nil, false
		case len(failed) < maxFailed:
			failed = append(failed, t.conditionOf(expr))
			failed = append(failed, t.evaluateNamedRule(expr, depth)...)
		}
	}
	return failed[:min(len(failed), maxFailed)], about
}

func (t bodyTrial) evaluateBody(b ast.Body) (holds, sound bool) {
	return t.conditions.EvaluateBody(t.ctx, t.imports, b, t.input)
}

// evaluateNamedRule evaluates the bodies of a condition that is only the name of another rule.
func (t bodyTrial) evaluateNamedRule(expr *ast.Expr, depth int) []Condition {
	term, ok := expr.Terms.(*ast.Term)
	if !ok || expr.Negated || depth == deepest {
		return nil
	}
	name, ok := term.Value.(ast.Var)
	if !ok {
		return nil
	}
	var all []Condition
	for _, r := range t.conditions.Rules(string(name)) {
		if len(r.Head.Args) == 0 && r.Else == nil {
			all = append(all, t.evaluateSourceRule(r, depth+1)...)
		}
	}
	return all
}

// evaluateSourceRule finds r in the source, since the compiler has rewritten its conditions.
func (t bodyTrial) evaluateSourceRule(r *ast.Rule, depth int) []Condition {
	for _, f := range t.layer.Files {
		if f.Name != r.Location.File {
			continue
		}
		m, err := module.Parse(t.layer.Name, f.Name, f.Content, false)
		if err != nil {
			return nil
		}
		for _, as := range m.Rules {
			if as.Location.Row == r.Location.Row {
				t.imports = m.Imports
				failed, _ := t.failedConditions(as.Body, depth)
				return failed
			}
		}
	}
	return nil
}

func (t bodyTrial) conditionOf(expr *ast.Expr) Condition {
	return Condition{Text: shortenText(exprText(expr), 3*maxValue), File: expr.Location.File, Line: expr.Location.Row,
		Col: expr.Location.Col, Values: t.inputValues(expr)}
}

func exprText(expr *ast.Expr) string {
	if len(expr.Location.Text) > 0 {
		return strings.Join(strings.Fields(string(expr.Location.Text)), " ")
	}
	return expr.String()
}

// inputValues are the parts of the input that expr names.
func (t bodyTrial) inputValues(expr *ast.Expr) []Value {
	all := []Value{}
	ast.WalkRefs(expr, func(r ast.Ref) bool {
		if !r.HasPrefix(ast.InputRootRef) || !r.IsGround() || len(all) == 2 {
			return false
		}
		found, err := t.input.Find(r[1:])
		if v := (Value{Path: r.String()}); err == nil {
			v.Value = shortenText(found.String(), maxValue)
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
		return true
	})
	return all
}

// shortenText cuts s to at most max bytes.
func shortenText(s string, max int) string {
	if len(s) <= max {
		return s
	}
	end := max
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// examplesOf are examples of the rule n that are allowed, for the command's program.
func (v *Adviser) examplesOf(ctx context.Context, a proposal.Analysis, n Near) []string {
	program := ""
	if n.Command >= 0 && n.Command < len(a.Commands) {
		program = facts.ToolName(path.Base(a.Commands[n.Command].Program))
	}
	found := []string{}
	for _, b := range v.indexes {
		if b.layer.Label != n.Layer {
			continue
		}
		for _, d := range b.definitionsIn(func(f policy.File) bool { return f.Name == n.File }) {
			if d.row != n.Line {
				continue
			}
			for _, text := range d.match[:min(len(d.match), maxExamples)] {
				if t := v.tryText(ctx, text); t.allowed && t.program == program && len(found) < valid.MaxAlternatives {
					found = append(found, t.canonical)
				}
			}
		}
	}
	return found
}
