// SPDX-License-Identifier: Apache-2.0

package module

import (
	"encoding/binary"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The parser and the compiler need ten times as long to make and rewrite rules as to index
// them. Record writes rules as they are just before they are indexed, and Restore reads and
// indexes them. Restore checks nothing: rules must be from Record in the same version of
// this program. Rules and expressions keep file, row and column, terms do not.
//
// Equal terms are written once, and shared when they are read: no later stage and no
// evaluation changes a term. Comprehensions are not shared: OPA identifies them by address.

// The kinds of terms.
const (
	termNull = iota
	termFalse
	termTrue
	termNumber
	termString
	termVar
	termRef
	termArray
	termSet
	termObject
	termCall
	termArrayOf
	termSetOf
	termObjectOf
)

// The flags of expressions and rules.
const (
	exprNegated = 1 << iota
	exprGenerated
	exprIndexOnly
	exprTerms
	exprEvery
)

const (
	ruleDefault = 1 << iota
	ruleAssign
	ruleElse
)

// RecordRules compiles modules as Compile does, and returns the rules for Restore.
func RecordRules(
	point string, document reflect.Type, modules map[string]*ast.Module, strict bool, spared ...ast.StageID,
) (*ast.Compiler, []byte, error) {
	var rules []byte
	var err error
	compiler, x := newCompiler(point, document, strict, spared...)
	compiler.WithStageAfterID(ast.StageCheckDeprecatedBuiltins,
		ast.CompilerStageDefinition{Name: "Record", MetricName: "compile_stage_record",
			Stage: func(c *ast.Compiler) *ast.Error {
				rules, err = encodeModules(c.Modules, x.added)
				return nil
			}}).Compile(modules)
	if err == nil && compiler.Failed() {
		err = compiler.Errors
	}
	return compiler, rules, err
}

// restoredStages are the stages that rules from Record still need. Custom stages follow
// the first of them, which has no work of its own.
var restoredStages = []ast.StageID{ast.StageCheckUnusedImports, ast.StageSetModuleTree, ast.StageSetRuleTree,
	ast.StageBuildRuleIndices, ast.StageBuildComprehensionIndices}

// RestoreRules is the compiler of the rules that Record wrote. It panics if Record did not write
// them.
func RestoreRules(point, rules string) (*ast.Compiler, error) {
	modules, indexOnly := decodeModules(rules)
	skipped := slices.DeleteFunc(ast.AllStages(),
		func(s ast.StageID) bool { return slices.Contains(restoredStages, s) })
	// The compiler would copy the modules: it gets empty ones, which a stage replaces.
	empty := map[string]*ast.Module{}
	for name, m := range modules {
		empty[name] = &ast.Module{Package: m.Package}
	}
	compiler := ast.NewCompiler().
		WithSkipStages(skipped...).
		WithCapabilities(CapabilitiesAt(point)).
		WithDefaultRegoVersion(ast.RegoV1).
		WithStageAfterID(ast.StageCheckUnusedImports,
			ast.CompilerStageDefinition{Name: "Restore", MetricName: "compile_stage_restore",
				Stage: func(c *ast.Compiler) *ast.Error {
					maps.Copy(c.Modules, modules)
					return nil
				}}).
		WithStageAfterID(ast.StageBuildRuleIndices,
			ast.CompilerStageDefinition{Name: "RemoveIndex", MetricName: "compile_stage_remove_index",
				Stage: func(c *ast.Compiler) *ast.Error {
					return eachRule(c, func(r *ast.Rule) {
						removeExprs(r, func(e *ast.Expr) bool { return indexOnly[e] })
					})
				}})
	if compiler.Compile(empty); compiler.Failed() {
		return nil, compiler.Errors
	}
	return compiler, nil
}

// A ruleWriter writes modules. Terms are numbered in the order in which they are written; the
// parts of a term come before it.
type ruleWriter struct {
	names     map[string]uint64 // by text
	texts     []string
	known     map[string]uint64 // by what is written
	terms     []byte
	count     uint64
	indexOnly map[*ast.Location]bool
	err       error
}

func encodeModules(modules map[string]*ast.Module, indexOnly map[*ast.Location]bool) ([]byte, error) {
	w := &ruleWriter{names: map[string]uint64{}, known: map[string]uint64{}, indexOnly: indexOnly}
	body := binary.AppendUvarint(nil, uint64(len(modules)))
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m := modules[name]
		body = binary.AppendUvarint(body, w.internText(name))
		body = w.appendTerms(body, m.Package.Path)
		body = binary.AppendUvarint(body, uint64(len(m.Rules)))
		for _, r := range m.Rules {
			body = w.appendRule(body, r)
		}
	}
	out := binary.AppendUvarint(nil, uint64(len(w.texts)))
	for _, text := range w.texts {
		out = binary.AppendUvarint(out, uint64(len(text)))
		out = append(out, text...)
	}
	out = binary.AppendUvarint(out, w.count)
	return slices.Concat(out, w.terms, body), w.err
}

func (w *ruleWriter) internText(s string) uint64 {
	n, ok := w.names[s]
	if !ok {
		n = uint64(len(w.texts))
		w.names[s], w.texts = n, append(w.texts, s)
	}
	return n
}

// writeTerm writes t, unless it is already written, and returns its number.
func (w *ruleWriter) writeTerm(t *ast.Term) uint64 {
	var b []byte
	shared := true
	switch v := t.Value.(type) {
	case ast.Null:
		b = []byte{termNull}
	case ast.Boolean:
		b = []byte{termFalse}
		if v {
			b[0] = termTrue
		}
	case ast.Number:
		b = binary.AppendUvarint([]byte{termNumber}, w.internText(string(v)))
	case ast.String:
		b = binary.AppendUvarint([]byte{termString}, w.internText(string(v)))
	case ast.Var:
		b = binary.AppendUvarint([]byte{termVar}, w.internText(string(v)))
	case ast.Ref:
		b = w.appendTerms([]byte{termRef}, v)
	case ast.Call:
		b = w.appendTerms([]byte{termCall}, v)
	case *ast.Array:
		var parts []*ast.Term
		v.Foreach(func(t *ast.Term) { parts = append(parts, t) })
		b = w.appendTerms([]byte{termArray}, parts)
	case ast.Set:
		b = w.appendTerms([]byte{termSet}, v.Slice())
	case ast.Object:
		var parts []*ast.Term
		v.Foreach(func(key, value *ast.Term) { parts = append(parts, key, value) })
		b = w.appendTerms([]byte{termObject}, parts)
	case *ast.ArrayComprehension:
		b, shared = w.appendBody(w.appendTerms([]byte{termArrayOf}, []*ast.Term{v.Term}), v.Body), false
	case *ast.SetComprehension:
		b, shared = w.appendBody(w.appendTerms([]byte{termSetOf}, []*ast.Term{v.Term}), v.Body), false
	case *ast.ObjectComprehension:
		b, shared = w.appendBody(w.appendTerms([]byte{termObjectOf}, []*ast.Term{v.Key, v.Value}), v.Body), false
	default:
		w.err = fmt.Errorf("cannot write a term of type %T", v)
	}
	if n, ok := w.known[string(b)]; ok && shared {
		return n
	}
	n := w.count
	w.known[string(b)], w.count = n, n+1
	w.terms = append(w.terms, b...)
	return n
}

// appendTerms appends how many terms there are, and their numbers.
func (w *ruleWriter) appendTerms(b []byte, terms []*ast.Term) []byte {
	b = binary.AppendUvarint(b, uint64(len(terms)))
	for _, t := range terms {
		b = binary.AppendUvarint(b, w.writeTerm(t))
	}
	return b
}

// appendOptional appends t, which may be nil, as a list of at most one.
func (w *ruleWriter) appendOptional(b []byte, t *ast.Term) []byte {
	if t == nil {
		return w.appendTerms(b, nil)
	}
	return w.appendTerms(b, []*ast.Term{t})
}

func (w *ruleWriter) appendBody(b []byte, body ast.Body) []byte {
	b = binary.AppendUvarint(b, uint64(len(body)))
	for _, e := range body {
		b = w.appendExpr(b, e)
	}
	return b
}

func (w *ruleWriter) appendExpr(b []byte, e *ast.Expr) []byte {
	var flags byte
	for flag, is := range map[byte]bool{exprNegated: e.Negated, exprGenerated: e.Generated,
		exprIndexOnly: w.indexOnly[e.Location]} {
		if is {
			flags |= flag
		}
	}
	var terms []byte
	switch t := e.Terms.(type) {
	case *ast.Term:
		terms = w.appendTerms(nil, []*ast.Term{t})
	case []*ast.Term:
		flags |= exprTerms
		terms = w.appendTerms(nil, t)
	case *ast.Every:
		flags |= exprEvery
		terms = w.appendLocation(nil, t.Location)
		for _, part := range []*ast.Term{t.Key, t.Value, t.Domain} {
			terms = w.appendOptional(terms, part)
		}
		terms = w.appendBody(terms, t.Body)
	default:
		w.err = fmt.Errorf("cannot write an expression of type %T", t)
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(e.Index))
	b = append(w.appendLocation(b, e.Location), terms...)
	b = binary.AppendUvarint(b, uint64(len(e.With)))
	for _, with := range e.With {
		b = w.appendTerms(w.appendLocation(b, with.Location), []*ast.Term{with.Target, with.Value})
	}
	return b
}

// appendLocation appends a row and what belongs to it. Row 0 is no location.
func (w *ruleWriter) appendLocation(b []byte, l *ast.Location) []byte {
	if l == nil {
		return append(b, 0)
	}
	if l.Row < 1 {
		w.err = fmt.Errorf("cannot write the location %v", l)
	}
	b = binary.AppendUvarint(b, uint64(l.Row))
	b = binary.AppendUvarint(b, uint64(l.Col))
	return binary.AppendUvarint(b, w.internText(l.File))
}

func (w *ruleWriter) appendRule(b []byte, r *ast.Rule) []byte {
	var flags byte
	for flag, is := range map[byte]bool{ruleDefault: r.Default, ruleAssign: r.Head.Assign, ruleElse: r.Else != nil} {
		if is {
			flags |= flag
		}
	}
	b = w.appendLocation(append(b, flags), r.Location)
	b = binary.AppendUvarint(w.appendLocation(b, r.Head.Location), w.internText(string(r.Head.Name)))
	b = w.appendTerms(w.appendTerms(b, r.Head.Reference), r.Head.Args)
	b = w.appendOptional(w.appendOptional(b, r.Head.Key), r.Head.Value)
	b = w.appendBody(b, r.Body)
	if r.Else != nil {
		b = w.appendRule(b, r.Else)
	}
	return b
}

// A ruleReader reads what a ruleWriter wrote. It panics if it finds anything else.
type ruleReader struct {
	in        string
	texts     []string
	terms     []ast.Term
	lists     slab[*ast.Term]
	exprs     slab[ast.Expr]
	bodies    slab[*ast.Expr]
	locations slab[ast.Location]
	indexOnly map[*ast.Expr]bool
}

// A slab is room for many values: one allocation for each would take most of the time.
type slab[T any] struct{ free []T }

// allocate returns room for n values.
func (s *slab[T]) allocate(n int) []T {
	if n > len(s.free) {
		s.free = make([]T, max(n, 512))
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

// decodeModules returns modules by file, and the expressions that only the index reads.
func decodeModules(in string) (map[string]*ast.Module, map[*ast.Expr]bool) {
	r := &ruleReader{in: in, indexOnly: map[*ast.Expr]bool{}}
	r.texts = make([]string, r.readNumber())
	for i := range r.texts {
		n := r.readNumber()
		r.texts[i], r.in = r.in[:n], r.in[n:]
	}
	r.terms = make([]ast.Term, r.readNumber())
	for i := range r.terms {
		r.terms[i].Value = r.readValue()
	}
	modules := map[string]*ast.Module{}
	for range r.readNumber() {
		name := r.readText()
		m := &ast.Module{Package: &ast.Package{Path: ast.Ref(r.readTerms())}}
		m.SetRegoVersionSpan(ast.RegoVersionSpanOf(ast.RegoV1))
		m.Rules = make([]*ast.Rule, r.readNumber())
		for i := range m.Rules {
			m.Rules[i] = r.readRule(m)
		}
		modules[name] = m
	}
	if r.in != "" {
		panic("there is more after the last rule")
	}
	return modules, r.indexOnly
}

func (r *ruleReader) readNumber() int {
	var n uint64
	for i := range len(r.in) {
		n |= uint64(r.in[i]&0x7f) << (7 * i)
		if r.in[i] < 0x80 {
			r.in = r.in[i+1:]
			return int(n)
		}
	}
	panic("it ends within a number")
}

func (r *ruleReader) readByte() byte {
	b := r.in[0]
	r.in = r.in[1:]
	return b
}

func (r *ruleReader) readText() string { return r.texts[r.readNumber()] }

func (r *ruleReader) readTerms() []*ast.Term {
	n := r.readNumber()
	if n == 0 {
		return nil
	}
	list := r.lists.allocate(n)
	for i := range list {
		list[i] = &r.terms[r.readNumber()]
	}
	return list
}

func (r *ruleReader) readOptionalTerm() *ast.Term {
	if list := r.readTerms(); list != nil {
		return list[0]
	}
	return nil
}

func (r *ruleReader) readValue() ast.Value {
	switch kind := r.readByte(); kind {
	case termNull:
		return ast.Null{}
	case termFalse, termTrue:
		return ast.Boolean(kind == termTrue)
	case termNumber:
		return ast.Number(r.readText())
	case termString:
		return ast.String(r.readText())
	case termVar:
		return ast.Var(r.readText())
	case termRef:
		return ast.Ref(r.readTerms())
	case termCall:
		return ast.Call(r.readTerms())
	case termArray:
		return ast.NewArray(r.readTerms()...)
	case termSet:
		return ast.NewSet(r.readTerms()...)
	case termObject:
		parts := r.readTerms()
		pairs := make([][2]*ast.Term, len(parts)/2)
		for i := range pairs {
			pairs[i] = [2]*ast.Term{parts[2*i], parts[2*i+1]}
		}
		return ast.NewObject(pairs...)
	case termArrayOf:
		return &ast.ArrayComprehension{Term: r.readOptionalTerm(), Body: r.readBody()}
	case termSetOf:
		return &ast.SetComprehension{Term: r.readOptionalTerm(), Body: r.readBody()}
	case termObjectOf:
		parts := r.readTerms()
		return &ast.ObjectComprehension{Key: parts[0], Value: parts[1], Body: r.readBody()}
	default:
		panic(fmt.Sprintf("there is no kind of term %d", kind))
	}
}

func (r *ruleReader) readBody() ast.Body {
	n := r.readNumber()
	if n == 0 {
		return nil
	}
	body, exprs := r.bodies.allocate(n), r.exprs.allocate(n)
	for i := range body {
		body[i] = &exprs[i]
		r.readExpr(body[i])
	}
	return body
}

func (r *ruleReader) readExpr(e *ast.Expr) {
	flags := r.readByte()
	e.Negated, e.Generated = flags&exprNegated != 0, flags&exprGenerated != 0
	if flags&exprIndexOnly != 0 {
		r.indexOnly[e] = true
	}
	e.Index, e.Location = r.readNumber(), r.readLocation()
	switch {
	case flags&exprEvery != 0:
		e.Terms = &ast.Every{Location: r.readLocation(), Key: r.readOptionalTerm(), Value: r.readOptionalTerm(),
			Domain: r.readOptionalTerm(), Body: r.readBody()}
	case flags&exprTerms != 0:
		e.Terms = r.readTerms()
	default:
		e.Terms = r.readOptionalTerm()
	}
	for range r.readNumber() {
		with := &ast.With{Location: r.readLocation()}
		parts := r.readTerms()
		with.Target, with.Value = parts[0], parts[1]
		e.With = append(e.With, with)
	}
}

func (r *ruleReader) readLocation() *ast.Location {
	row := r.readNumber()
	if row == 0 {
		return nil
	}
	l := &r.locations.allocate(1)[0]
	l.Row, l.Col, l.File = row, r.readNumber(), r.readText()
	return l
}

func (r *ruleReader) readRule(m *ast.Module) *ast.Rule {
	flags := r.readByte()
	rule := &ast.Rule{Module: m, Default: flags&ruleDefault != 0, Location: r.readLocation()}
	rule.Head = &ast.Head{Assign: flags&ruleAssign != 0, Location: r.readLocation(), Name: ast.Var(r.readText()),
		Reference: r.readTerms(), Args: r.readTerms(), Key: r.readOptionalTerm(), Value: r.readOptionalTerm()}
	rule.Body = r.readBody()
	if flags&ruleElse != 0 {
		rule.Else = r.readRule(m)
	}
	return rule
}
