// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// A LoadedLayer is one layer of an Engine.
type LoadedLayer struct {
	Name  string // where it was read from
	Label string // as in Reason.Layer
	Role  Role
	Files []File
}

// Layers are e's layers, in the order in which they decide.
func (e *Engine) Layers() []LoadedLayer {
	var all []LoadedLayer
	for _, l := range e.layers {
		all = append(all, LoadedLayer{l.name, l.label, l.role, l.files})
	}
	return all
}

// Workspace is where the sandbox has the workspace, with the places that an organization added.
func (e *Engine) Workspace() facts.Workspace { return e.workspace }

// reflecting is the processor time that an explanation may use, in multiples of a
// decision's deadline: it evaluates many times what a decision evaluates once.
const reflecting = 10

// RunExplanation runs work, which explains decisions, within ten times the processor time of one
// decision. Its error is a *proposal.StopError.
func (e *Engine) RunExplanation(ctx context.Context, work func(context.Context) error) error {
	_, err := judgeWithinLimit(ctx, e, reflecting*e.deadline,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, work(ctx) })
	return err
}

// HeldPlaces returns the places (file and row) of the layer's rules that hold for doc. layer is
// an index into Layers. It must be called within Reflect.
func (e *Engine) HeldPlaces(ctx context.Context, layer int, doc Document) (places []module.Place, err error) {
	l := e.layers[layer]
	l.usageMeter(ctx).Run(func() { places, err = l.heldPlaces(ctx, doc, "") })
	return places, err
}

// heldPlaces returns the places of the rules of a set that hold for doc; "" is every set.
func (l *layer) heldPlaces(ctx context.Context, doc Document, set string) ([]module.Place, error) {
	p := l.points[doc.Point]
	if p == nil {
		return nil, nil
	}
	c, err := p.compiled()
	if err != nil {
		return nil, err
	}
	var places []module.Place
	tell := func(at module.Place) {
		if !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	if _, err := c.query.Eval(ctx, rego.EvalParsedInput(doc.Input),
		rego.EvalQueryTracer(module.Listener{Layer: l.name, Set: set, Held: tell})); err != nil {
		return nil, evalStop(ctx, l.name, doc.Point, err)
	}
	slices.SortFunc(places, func(a, b module.Place) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return a.Row - b.Row
	})
	return places, nil
}

// Conditions evaluates the conditions of a layer's rules one by one, in the order in which
// they are written: the compiled rules that decide may have another order. It is safe for
// concurrent use.
type Conditions struct {
	layer    *layer
	point    string
	compiler *ast.Compiler
}

// CompileConditions compiles the rules of a layer at a point again. It returns nil if there
// are none. It must be called within Reflect.
func (e *Engine) CompileConditions(ctx context.Context, layer int, point string) (c *Conditions) {
	l := e.layers[layer]
	if l.points[point] == nil {
		return nil
	}
	l.usageMeter(ctx).Run(func() { c = l.compileConditions(ctx, point) })
	return c
}

func (l *layer) compileConditions(ctx context.Context, point string) *Conditions {
	modules := map[string]*ast.Module{}
	for _, f := range l.files {
		if m, err := parseModule(l.name, f); err != nil {
			return nil
		} else if m != nil {
			modules[f.Name] = m
		}
	}
	module.DisableExpired(modules, l.now)
	compiler := module.Compile(point, documentOf(point), module.ForPoint(point, modules, module.NewGraph(modules)),
		false, l.sparedStages()...)
	if compiler.Failed() {
		return nil
	}
	return &Conditions{l, point, compiler}
}

// Rules are the compiled rules with this name in the point's package.
func (c *Conditions) Rules(name string) []*ast.Rule {
	var all []*ast.Rule
	for _, m := range c.compiler.Modules {
		for _, r := range m.Rules {
			if module.PackageOf(m) == c.point && module.RuleName(r) == name {
				all = append(all, r)
			}
		}
	}
	return all
}

// EvaluateBody evaluates conditions of a file with these imports. sound is false if they cannot
// be evaluated without the conditions before them. It must be called within Reflect.
func (c *Conditions) EvaluateBody(
	ctx context.Context, imports []*ast.Import, conditions ast.Body, input ast.Value,
) (holds, sound bool) {
	fresh := make(ast.Body, len(conditions))
	for i, expr := range conditions {
		fresh[i] = expr.Copy()
		fresh[i].Index = i
	}
	// A query returns a value for a false condition, too; a comprehension does not.
	query := ast.NewBody(ast.Assign.Expr(ast.VarTerm("held"), ast.ArrayComprehensionTerm(ast.BooleanTerm(true), fresh)))
	var rs rego.ResultSet
	var err error
	c.layer.usageMeter(ctx).Run(func() {
		rs, err = rego.New(
			rego.Compiler(c.compiler), rego.Store(c.layer.data), rego.ParsedQuery(query),
			rego.ParsedPackage(&ast.Package{Path: ast.MustParseRef("data." + c.point)}),
			rego.ParsedImports(imports), rego.ParsedInput(input), rego.Capabilities(module.Capabilities()),
			rego.SetRegoVersion(ast.RegoV1),
		).Eval(ctx)
	})
	if err != nil || len(rs) != 1 {
		return false, false
	}
	found, _ := rs[0].Bindings["held"].([]any)
	return len(found) > 0, true
}
