// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The decision points of this version.
const (
	pointCommand  = "fumehood.command"
	pointEgress   = "fumehood.egress"
	pointEvent    = "fumehood.event"
	pointExec     = "fumehood.exec"
	pointOutput   = "fumehood.output"
	pointProposal = "fumehood.proposal"
	pointSnippet  = "fumehood.snippet"
	pointTrigger  = "fumehood.trigger"
	packageLib    = "fumehood.lib"
)

var points = []string{pointCommand, pointEgress, pointEvent, pointExec, pointOutput, pointProposal, pointSnippet, pointTrigger}

// sets are the rule names with a meaning, and at which points they have it.
var sets = map[string][]string{
	pointCommand:  {"allow", "ask", "deny", "exec", "limits"},
	pointEgress:   {"allow", "budget", "deny", "filter", "intercept", "private", "raw", "redact"},
	pointEvent:    {"note"},
	pointExec:     {"allow", "ask", "deny"},
	pointOutput:   {"deny", "redact"},
	pointProposal: {"ask", "deny", "env", "limits", "network", "programs"},
	pointSnippet:  {"ask", "deny"},
	pointTrigger:  {"allow", "ask", "deny"},
}

// A layer is one compiled policy with its prepared queries.
type layer struct {
	name      string
	label     string // as reasons have it
	role      Role
	shipped   bool          // it is what fumehood ships, and needs no bounds
	candidate bool          // it would grant, and is only observed
	data      storage.Store // what its data files say
	counts    []RuleCount
	programs  []string                  // only of layers that may allow
	points    map[string]*point         // only points at which the layer has rules
	retries   map[string]proposal.Retry // by rule, or by how rules begin: "code."
	book      *book
}

// A point is where a layer has rules.
type point struct {
	// compiled compiles them at its first call.
	compiled func() (compiled, error)
}

type compiled struct {
	query rego.PreparedEvalQuery
	// beyond says that no answer about an exec may be reused.
	beyond bool
}

// meter counts what evaluations of l use, or is nil.
func (l *layer) meter(ctx context.Context) *meter {
	if l.shipped {
		return nil
	}
	return meterOf(ctx)
}

// may reports whether l has the role, or one that includes it.
func (l *layer) may(role Role) bool { return l.role >= role }

// compileLayers compiles every layer and point by itself, side by side. A layer that we
// did not write may use limit of processor time.
func compileLayers(ctx context.Context, given []Layer, limit time.Duration) ([]*layer, error) {
	layers := make([]*layer, len(given))
	errs := make([]error, len(given))
	var group sync.WaitGroup
	for i, s := range given {
		group.Go(func() {
			if s.shipped {
				layers[i], errs[i] = compileShipped()
				return
			}
			errs[i] = bounded(ctx, limit, s.Name, func(ctx context.Context) (err error) {
				layers[i], err = compileLayer(ctx, s) // not used after an error
				return err
			})
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	labelled(layers)
	return layers, nil
}

// shippedOnce is the shipped layer of all engines of the process: it is always the same,
// and compiling it takes longer than all decisions of a run.
var shippedOnce = sync.OnceValues(func() (l *layer, err error) {
	defer guard(DefaultLayer, &err)
	s, err := shipped()
	if err != nil {
		return nil, err
	}
	l, err = compileLayer(context.Background(), s)
	if err == nil {
		labelled([]*layer{l})
	}
	return l, err
})

// compileShipped is a copy of the shipped layer: each engine labels its own.
func compileShipped() (*layer, error) {
	l, err := shippedOnce()
	if err != nil {
		return nil, err
	}
	own := *l
	return &own, nil
}

func compileLayer(ctx context.Context, s Layer) (*layer, error) {
	modules, err := parseModules(ctx, s)
	if err != nil {
		return nil, err
	}
	l := &layer{name: s.Name, role: s.Role, shipped: s.shipped, points: map[string]*point{}}
	meter := meterOf(ctx)
	if meter.run(func() { err = l.read(s, modules) }); err != nil {
		return nil, err
	}
	all := newAtlas(modules)
	for _, name := range points {
		query := l.query(name)
		if query == "" {
			continue
		}
		l.points[name] = &point{sync.OnceValues(func() (c compiled, err error) {
			defer guard(s.Name, &err)
			meter.run(func() { c, err = l.compilePoint(ctx, name, query, modules, all) })
			return c, err
		})}
	}
	if l.shipped { // a test compiles the others, of which a command asks some
		return l, l.compile(pointCommand, pointProposal)
	}
	return l, l.compile(points...)
}

// compile compiles some points, side by side.
func (l *layer) compile(names ...string) error {
	errs := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		if p := l.points[name]; p != nil {
			group.Go(func() { _, errs[i] = p.compiled() })
		}
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// read fills in what needs no compiler.
func (l *layer) read(s Layer, modules map[string]*ast.Module) (err error) {
	if err = l.check(s, modules); err != nil {
		return err
	}
	l.book = newBook(l, s.Files)
	if err = l.readRetries(modules); err != nil {
		return err
	}
	l.data, err = s.store()
	return err
}

// parseModules parses the files on two lanes: parsing is a third of a cold start.
func parseModules(ctx context.Context, s Layer) (map[string]*ast.Module, error) {
	parsed := make([]*ast.Module, len(s.Files))
	errs := make([]error, len(s.Files))
	var group sync.WaitGroup
	for lane := range 2 {
		group.Go(func() {
			meterOf(ctx).run(func() {
				for i := lane; i < len(s.Files); i += 2 {
					parsed[i], errs[i] = parseModule(s.Name, s.Files[i])
				}
			})
		})
	}
	group.Wait()
	modules := map[string]*ast.Module{}
	for i, m := range parsed {
		if errs[i] != nil {
			return nil, compileStop(s.Name, errs[i])
		}
		if m != nil {
			modules[s.Files[i].Name] = m
		}
	}
	return modules, nil
}

func parseModule(layer string, f File) (*ast.Module, error) {
	return parseWith(layer, f, saysRetry(f.Content))
}

// parseWith reads METADATA where it is asked to: it is half of the work.
func parseWith(layer string, f File, annotations bool) (m *ast.Module, err error) {
	defer guard(layer, &err)
	if !strings.HasSuffix(f.Name, ".rego") {
		return nil, nil
	}
	if err := tooDeep(f); err != nil {
		return nil, err
	}
	o := parserOptions()
	o.ProcessAnnotation = annotations
	if m, err = ast.ParseModuleWithOpts(f.Name, string(f.Content), o); err != nil {
		return nil, err
	}
	return m, deepTerms(m)
}

// guard turns a panic of the compiler on an odd policy into an error: in a
// goroutine it would take the process down.
func guard(layer string, err *error) {
	if r := recover(); r != nil {
		*err = stop(codeCompile, fmt.Sprintf("the policy layer %q makes the compiler panic: %v", layer, r), "report this as a defect", nil)
	}
}

func parserOptions() ast.ParserOptions {
	return ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()}
}

// compilePoint compiles the point's modules with the library, and prepares the one
// query that fetches all its sets.
func (l *layer) compilePoint(ctx context.Context, name, query string, modules map[string]*ast.Module, all *atlas) (c compiled, err error) {
	own := modulesOf(name, modules, all)
	compiler := compileModules(name, own, true, l.spared()...)
	if compiler.Failed() {
		return c, compileStop(l.name, compiler.Errors)
	}
	if name == pointExec {
		compiler, query, c.beyond = guarded(compiler, copies(own), query, l.spared()...)
	}
	c.query, err = rego.New(
		rego.Compiler(compiler),
		rego.Query(query),
		rego.Store(l.data),
		rego.Capabilities(capabilitiesAt(name)),
		rego.SetRegoVersion(ast.RegoV1),
		rego.StrictBuiltinErrors(true),
		rego.Strict(true),
		rego.GenerateJSON(plainValue),
	).PrepareForEval(ctx)
	if err != nil {
		return c, compileStop(l.name, err)
	}
	if l.may(Allows) && name == pointProposal {
		err = l.askPrograms(ctx, compiler)
	}
	return c, err
}

// spared are the compiler's stages that only find mistakes. The shipped layer, in which a
// test finds none, starts without them.
func (l *layer) spared() []ast.StageID {
	if !l.shipped {
		return nil
	}
	return []ast.StageID{ast.StageCheckKeywordOverrides, ast.StageCheckVoidCalls, ast.StageCheckRuleConflicts, ast.StageCheckUndefinedFuncs,
		ast.StageCheckSafetyRuleHeads, ast.StageCheckRecursion, ast.StageCheckTypes}
}

func compileModules(point string, modules map[string]*ast.Module, strict bool, spared ...ast.StageID) *ast.Compiler {
	compiler := ast.NewCompiler().
		WithSkipStages(spared...).
		WithCapabilities(capabilitiesAt(point)).
		WithStrict(strict).
		WithDefaultRegoVersion(ast.RegoV1).
		WithSchemas(inputSchema(point))
	indexed(compiler, point).Compile(modules)
	return compiler
}

// guarded compiles the exec point once more with its guards, whose left-over
// variables strictness would refuse, and has the query ask for them. Where that
// cannot be done no answer is reused.
func guarded(plain *ast.Compiler, modules map[string]*ast.Module, query string, spared ...ast.StageID) (*ast.Compiler, string, bool) {
	guards, ok := addGuards(modules)
	if !ok || guards == 0 {
		return plain, query, !ok
	}
	compiler := compileModules(pointExec, modules, false, spared...)
	if compiler.Failed() {
		return plain, query, true
	}
	return compiler, strings.TrimSuffix(query, "}") + fmt.Sprintf(", %q: data.%s.%s}", guardSet, pointExec, guardSet), false
}

// copies are for what changes modules; a compiler changes copies of its own.
func copies(modules map[string]*ast.Module) map[string]*ast.Module {
	c := maps.Clone(modules)
	for file, m := range c {
		c[file] = m.Copy()
	}
	return c
}

// modulesOf are the point's modules, and those of the library that they reach: it
// is larger than the rules of a small point.
func modulesOf(point string, modules map[string]*ast.Module, all *atlas) map[string]*ast.Module {
	own, reached, left := map[string]*ast.Module{}, []*ast.Module{}, map[*ast.Module]string{}
	for file, m := range modules {
		switch {
		case packageOf(m) == point:
			own[file], reached = m, append(reached, m)
		case inLib(packageOf(m)):
			left[m] = file
		}
	}
	reach := func(m *ast.Module) {
		if file, ok := left[m]; ok {
			delete(left, m)
			own[file], reached = m, append(reached, m)
		}
	}
	for len(reached) > 0 && len(left) > 0 {
		m := reached[0]
		reached = reached[1:]
		for _, r := range m.Rules { // imports alone reach nothing
			all.walk(m, r, func(t target) {
				for _, found := range all.rules[t.rule] {
					reach(found.module)
				}
				for other := range left {
					if t.all {
						reach(other)
					}
				}
			})
		}
	}
	return own
}

// askPrograms asks once which programs the layer knows; they depend on no input and
// serve only to name what lies near a refused one.
func (l *layer) askPrograms(ctx context.Context, compiler *ast.Compiler) error {
	rs, err := rego.New(rego.Compiler(compiler), rego.Query("data."+pointProposal+".programs"),
		rego.Store(l.data), rego.Capabilities(capabilities()), rego.StrictBuiltinErrors(true)).Eval(ctx)
	if err != nil {
		return evalStop(ctx, l.name, pointProposal, err)
	}
	if len(rs) == 0 {
		return nil // the layer names none
	}
	names, _ := rs[0].Expressions[0].Value.([]any)
	for _, name := range names {
		text, ok := name.(string)
		if !ok {
			return stop(codeUnknownKey, fmt.Sprintf("layer %q: a member of programs is not a string", l.name), "write programs contains \"name\"", nil)
		}
		l.programs = append(l.programs, text)
	}
	return nil
}

// query asks for the sets that have rules: one without would leave all undefined.
func (l *layer) query(point string) string {
	var fields []string
	for _, c := range l.counts {
		if c.Point == point && c.Rules > 0 && c.Set != "programs" {
			fields = append(fields, fmt.Sprintf("%q: data.%s.%s", c.Set, point, c.Set))
		}
	}
	if fields == nil {
		return ""
	}
	sort.Strings(fields)
	return "result := {" + strings.Join(fields, ", ") + "}"
}

func packageOf(m *ast.Module) string {
	return strings.TrimPrefix(m.Package.Path.String(), "data.")
}

func inLib(pkg string) bool {
	return pkg == packageLib || strings.HasPrefix(pkg, packageLib+".")
}

var undefinedFunction = regexp.MustCompile(`undefined function ([a-z0-9_.]+)`)

// mostErrors bounds the compiler's words in one error: policy check has more.
const mostErrors = 10

// compileStop tells a removed built-in from other mistakes.
func compileStop(layer string, err error) error {
	if already := (*proposal.StopError)(nil); errors.As(err, &already) {
		return err
	}
	var many ast.Errors
	if errors.As(err, &many) && len(many) > mostErrors {
		err = many[:mostErrors]
	}
	message := fmt.Sprintf("the policy layer %q does not compile", layer)
	for _, name := range undefinedFunctions(err) {
		if advice, ok := withheld(pointExec, name); ok {
			return stop(codeBuiltin, fmt.Sprintf("the policy layer %q uses %s, which policies may not", layer, name), advice, err)
		}
	}
	return stop(codeCompile, message, "mend the places named: fumehood policy check says of each what to write instead, fumehood policy input 'COMMAND' which fields input has", err)
}

func undefinedFunctions(err error) []string {
	var all ast.Errors
	texts := []string{err.Error()}
	if errors.As(err, &all) {
		for _, e := range all {
			texts = append(texts, e.Message)
		}
	}
	var names []string
	for _, text := range texts {
		for _, m := range undefinedFunction.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	return names
}
