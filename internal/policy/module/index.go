// SPDX-License-Identifier: Apache-2.0

package module

import (
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// OPA finds the rules that could hold by the values that their conditions compare an
// input field with, and evaluates no others. It reads literals only: of
//
//	input.command.program in lib.runners
//	publishing[input.command.program]
//	some r in input.command.redirects
//
// it does not know that the rule is not about cat, and tries it. So while a rule is
// compiled, conditions that follow from its own are added in a form that the index reads:
//
//	input.command.program in {"pytest", "tox", …}
//	input.command.redirects[0]
//
// A rule holds only if all of its conditions do, so a condition that follows from one of
// them changes no answer. Values that are not known to be constant, and conditions that
// need not hold (below not, every or in a comprehension), add nothing.

// maxIndexed limits the values in one condition.
const maxIndexed = 1000

// An indexer rewrites the rules of one point, whose input is document.
type indexer struct {
	document  reflect.Type
	rules     map[string][]*ast.Rule // by path: data.fumehood.lib.runners
	constants map[string]ast.Value   // of those rules
	added     map[*ast.Location]bool // the locations of conditions that only the index reads
}

// addIndexing makes compiler rewrite the rules. The stage is after names are resolved, so that
// a local variable is never taken for a rule, and before bodies are split.
func addIndexing(compiler *ast.Compiler, document reflect.Type) (*ast.Compiler, *indexer) {
	x := &indexer{document, map[string][]*ast.Rule{}, map[string]ast.Value{}, map[*ast.Location]bool{}}
	compiler.WithStageAfterID(ast.StageCheckUnusedImports,
		ast.CompilerStageDefinition{Name: "AddIndex", MetricName: "compile_stage_add_index", Stage: x.addConditions}).
		WithStageAfterID(ast.StageBuildRuleIndices,
			ast.CompilerStageDefinition{Name: "RemoveIndex", MetricName: "compile_stage_remove_index",
				Stage: x.removeConditions})
	return compiler, x
}

func (x *indexer) addConditions(c *ast.Compiler) *ast.Error {
	for _, m := range c.Modules {
		for _, r := range m.Rules {
			path := m.Package.Path.String() + "." + RuleName(r)
			x.rules[path] = append(x.rules[path], r)
		}
	}
	return eachRule(c, x.reorderConditions)
}

// removeConditions removes the added conditions: the index has read them, and they need not be
// evaluated.
func (x *indexer) removeConditions(c *ast.Compiler) *ast.Error {
	return eachRule(c, func(r *ast.Rule) { removeExprs(r, func(e *ast.Expr) bool { return x.added[e.Location] }) })
}

func removeExprs(r *ast.Rule, indexOnly func(*ast.Expr) bool) {
	r.Body = slices.DeleteFunc(r.Body, indexOnly)
	for i, e := range r.Body {
		e.Index = i
	}
}

func eachRule(c *ast.Compiler, do func(*ast.Rule)) *ast.Error {
	for _, m := range c.Modules {
		for _, r := range m.Rules {
			for ; r != nil; r = r.Else {
				do(r)
			}
		}
	}
	return nil
}

// reorderConditions puts the conditions that the index reads first. A condition that says the same
// with the name of a table is removed.
func (x *indexer) reorderConditions(r *ast.Rule) {
	var added, body ast.Body
	for _, e := range r.Body {
		x.foldConcat(e)
		if e.Negated || len(e.With) > 0 {
			body = append(body, e)
			continue
		}
		if same := x.expandMembership(e); same != nil {
			same.SetLoc(e.Location)
			body = append(body, same)
			continue
		}
		body = append(body, e)
		for _, found := range x.impliedConditions(e) {
			if at := *e.Location; !slices.ContainsFunc(added, found.Equal) {
				x.added[&at] = true
				found.SetLoc(&at)
				added = append(added, found)
			}
		}
	}
	r.Body = append(added, body...)
	for i, e := range r.Body {
		e.Index = i
	}
}

// impliedConditions returns the conditions that follow from e.
func (x *indexer) impliedConditions(e *ast.Expr) []*ast.Expr {
	var added []*ast.Expr
	var terms []*ast.Term
	switch t := e.Terms.(type) {
	case *ast.Term:
		terms = []*ast.Term{t}
	case []*ast.Term:
		terms = e.Operands()
	case *ast.SomeDecl:
		if call, ok := t.Symbols[0].Value.(ast.Call); ok { // some x in xs
			terms = []*ast.Term{call[len(call)-1]}
			added = x.nonEmptyCondition(ast.Ref{}, terms[0])
		}
	}
	for _, t := range terms {
		added = append(added, x.requiredReferences(t)...)
	}
	return added
}

// requiredReferences finds references in t that must be defined if t is.
func (x *indexer) requiredReferences(t *ast.Term) []*ast.Expr {
	var added []*ast.Expr
	ast.WalkTerms(t, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
			return true
		case ast.Ref:
			added = append(added, x.tableKeyConditions(v)...)
			for i, part := range v[1:] {
				if _, open := part.Value.(ast.Var); open { // input.command.options[_].name
					added = append(added, x.nonEmptyCondition(v[:1+i], nil)...)
				}
			}
		}
		return false
	})
	return added
}

// tableKeyConditions reads table[input.field] for a constant table.
func (x *indexer) tableKeyConditions(ref ast.Ref) []*ast.Expr {
	for i := 1; i < len(ref); i++ {
		if _, ok := ref[i].Value.(ast.Ref); ok {
			if e := x.membershipOf(ref[i], constantKeys(x.constantValue(ast.NewTerm(ref[:i])))); e != nil {
				return []*ast.Expr{e}
			}
		}
	}
	return nil
}

func constantKeys(table ast.Value) *ast.Term {
	switch table := table.(type) {
	case ast.Set:
		return ast.NewTerm(table)
	case ast.Object:
		return ast.SetTerm(table.Keys()...)
	}
	return nil
}

// expandMembership is e, if it is "field in collection", with the collection's members.
func (x *indexer) expandMembership(e *ast.Expr) *ast.Expr {
	if !e.IsCall() || !e.Operator().Equal(ast.Member.Ref()) || len(e.Operands()) != 2 {
		return nil
	}
	return x.membershipOf(e.Operand(0), e.Operand(1))
}

func (x *indexer) membershipOf(field, collection *ast.Term) *ast.Expr {
	if collection == nil || x.fieldOf(field) == nil {
		return nil
	}
	set, ok := x.constantValue(collection).(ast.Set)
	if !ok || set.Len() > maxIndexed || set.Until(func(t *ast.Term) bool { return !ast.IsScalar(t.Value) }) {
		return nil
	}
	return ast.Member.Expr(field.Copy(), ast.NewTerm(set))
}

// nonEmptyCondition is the condition that a list of the input, of which a member is used, is not empty.
func (x *indexer) nonEmptyCondition(ref ast.Ref, term *ast.Term) []*ast.Expr {
	if term != nil {
		ref, _ = term.Value.(ast.Ref)
	}
	if t := x.fieldOf(ast.NewTerm(ref)); t == nil || t.Kind() != reflect.Slice {
		return nil
	}
	zero := ast.NewTerm(ast.Number("0")) // not shared: the compilers of other points would rewrite it
	return []*ast.Expr{ast.NewExpr(ast.NewTerm(ref.Copy().Append(zero)))}
}

// FieldOf is the type of the input's field that t names, or nil. A field below a list does
// not count: it belongs to one member.
func (x *indexer) fieldOf(t *ast.Term) reflect.Type {
	ref, ok := t.Value.(ast.Ref)
	if !ok || len(ref) < 2 || !ref[0].Equal(ast.InputRootDocument) {
		return nil
	}
	document := x.document
	for _, part := range ref[1:] {
		if document.Kind() != reflect.Struct {
			return nil
		}
		i := slices.IndexFunc(reflect.VisibleFields(document),
			func(f reflect.StructField) bool { return FieldName(f) == stringOf(part) })
		if i < 0 {
			return nil
		}
		document = document.Field(i).Type
	}
	return document
}

// constantValue is the value of t if it does not depend on the input, or nil. For an object,
// only the keys are the same.
func (x *indexer) constantValue(t *ast.Term) ast.Value {
	switch v := t.Value.(type) {
	case ast.String:
		return v
	case ast.Set:
		if !v.Until(func(t *ast.Term) bool { return !ast.IsScalar(t.Value) }) {
			return v
		}
	case ast.Object:
		if !v.Until(func(key, _ *ast.Term) bool { return !ast.IsScalar(key.Value) }) {
			return v
		}
	case ast.Call:
		return x.computeSetOperation(v)
	case ast.Ref:
		if v.IsGround() && v.HasPrefix(ast.DefaultRootRef) {
			return x.constantRule(v.String())
		}
	}
	return nil
}

// Rule is the constant value of the one rule at path, or nil.
func (x *indexer) constantRule(path string) ast.Value {
	if v, known := x.constants[path]; known {
		return v
	}
	x.constants[path] = nil // also for a recursive rule
	if len(x.rules[path]) != 1 {
		return nil
	}
	r := x.rules[path][0]
	if r.Default || r.Else != nil || len(r.Head.Args) > 0 || len(r.Head.Ref()) != 1 ||
		r.Head.RuleKind() != ast.SingleValue || r.Head.Value == nil || !isUnconditional(r.Body) {
		return nil
	}
	x.constants[path] = x.constantValue(r.Head.Value)
	return x.constants[path]
}

// isUnconditional reports whether body is the body of a rule without conditions.
func isUnconditional(body ast.Body) bool {
	return len(body) == 1 && body[0].Equal(ast.NewExpr(ast.BooleanTerm(true)))
}

// foldConcat replaces concat("", ["(?m)", pattern]) with its value.
func (x *indexer) foldConcat(e *ast.Expr) {
	if !e.IsCall() {
		return
	}
	for _, t := range e.Operands() {
		call, ok := t.Value.(ast.Call)
		if !ok || len(call) != 3 || !call[0].Equal(ast.NewTerm(ast.Concat.Ref())) {
			continue
		}
		between, ok := call[1].Value.(ast.String)
		list, also := call[2].Value.(*ast.Array)
		if !ok || !also {
			continue
		}
		var parts []string
		list.Foreach(func(t *ast.Term) {
			if part, ok := x.constantValue(t).(ast.String); ok {
				parts = append(parts, string(part))
			}
		})
		if len(parts) == list.Len() {
			t.Value = ast.String(strings.Join(parts, string(between)))
		}
	}
}

// computeSetOperation reads a | b, a & b and a - b of constant sets.
func (x *indexer) computeSetOperation(call ast.Call) ast.Value {
	if len(call) != 3 {
		return nil
	}
	a, ok := x.constantValue(call[1]).(ast.Set)
	b, also := x.constantValue(call[2]).(ast.Set)
	if !ok || !also {
		return nil
	}
	switch operator, _ := call[0].Value.(ast.Ref); {
	case operator.Equal(ast.Or.Ref()):
		return a.Union(b)
	case operator.Equal(ast.And.Ref()):
		return a.Intersect(b)
	case operator.Equal(ast.Minus.Ref()):
		return a.Diff(b)
	}
	return nil
}
