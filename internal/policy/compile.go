// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/fumehood/fumehood/internal/policy/bounds"
	"github.com/fumehood/fumehood/internal/policy/lint"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// A layer is one compiled policy with its prepared queries.
type layer struct {
	name      string
	label     string // as in Reason.Layer
	role      Role
	shipped   bool          // it is the shipped policy, and needs no bounds
	candidate bool          // it would grant, and is only observed
	now       time.Time     // when exceptions expire
	data      storage.Store // the content of its data files
	counts    []RuleCount
	programs  []string          // only of layers that may allow
	points    map[string]*point // only points at which the layer has rules
	labels    map[string]label  // by rule, or by how rules begin: "code."
	textOnly  bool              // its METADATA says that fumehood.command is not about starts
	files     []File
	reads     contextReads
	observed  map[string][]string        // the sets with observed rules, by point
	trials    map[string][]string        // the names of observed rules and packages, by date
	revisions map[string]string          // of rules that are observed, by id
	revision  string                     // of the layer
	overrides map[string]module.Override // by place
	marks     func() map[string]string   // see module.MarkRules; only of the shipped layer
}

// A point is where a layer has rules.
type point struct {
	// compiled compiles them at its first call.
	compiled func() (compiled, error)
}

type compiled struct {
	query rego.PreparedEvalQuery
	// beyond means that no answer about an exec may be reused.
	beyond bool
}

// usageMeter counts what evaluations of l use, or is nil.
func (l *layer) usageMeter(ctx context.Context) *bounds.Meter {
	if l.shipped {
		return nil
	}
	return bounds.MeterOf(ctx)
}

// hasRole reports whether l has the role, or one that includes it.
func (l *layer) hasRole(role Role) bool { return l.role >= role }

// compileLayers compiles every layer and point separately and in parallel. Layers other
// than the shipped one may use limit of processor time.
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
			errs[i] = runWithinLimit(ctx, limit, s.Name, func(ctx context.Context) (err error) {
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
	labelLayers(layers)
	return layers, nil
}

// shippedState is the shipped layer, shared by all engines of the process: it is always the
// same, and compiling it takes longer than all decisions of a run.
var shippedState struct {
	once  sync.Once
	layer *layer
	err   error
}

func shippedOnce() (*layer, error) {
	s := &shippedState
	s.once.Do(func() { s.layer, s.err = openShipped() })
	return s.layer, s.err
}

func openShipped() (l *layer, err error) {
	defer module.RecoverPanic(DefaultLayer, &err)
	s, err := shipped()
	if err != nil {
		return nil, err
	}
	l, err = restoreLayer(s, policies.Compiled)
	switch {
	case err != nil:
		return nil, err
	case l == nil:
		l, err = compileLayer(context.Background(), s)
	default:
		err = l.compilePoints(initialPoints...)
	}
	if err == nil {
		labelLayers([]*layer{l})
	}
	return l, err
}

// initialPoints are the points of the shipped policy that nearly every command needs.
var initialPoints = []string{module.PointCommand, module.PointProposal}

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
	l := &layer{name: s.Name, role: s.Role, shipped: s.shipped, now: s.readTime(), points: map[string]*point{}}
	meter := bounds.MeterOf(ctx)
	if meter.Run(func() { err = l.readSource(s, modules) }); err != nil {
		return nil, err
	}
	module.DisableExpired(modules, l.now)
	l.observeRules(modules)
	l.readOverrides(modules)
	l.marks = sync.OnceValue(func() map[string]string { return markRules(s) })
	all := module.NewGraph(modules)
	if !l.shipped { // a test holds that it reads none
		l.reads = readsOf(all)
	}
	for _, name := range module.Points() {
		query := l.pointQuery(name)
		if query == "" {
			continue
		}
		l.points[name] = &point{sync.OnceValues(func() (c compiled, err error) {
			defer module.RecoverPanic(s.Name, &err)
			meter.Run(func() { c, err = l.compilePoint(ctx, name, query, modules, all) })
			return c, err
		})}
	}
	if l.shipped { // a test compiles the others; a command needs only some
		return l, l.compilePoints(initialPoints...)
	}
	return l, l.compilePoints(module.Points()...)
}

// compilePoints compiles some points in parallel.
func (l *layer) compilePoints(names ...string) error {
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

// readSource fills in what needs no compiler.
func (l *layer) readSource(s Layer, modules map[string]*ast.Module) (err error) {
	if l.data, err = s.Store(); err != nil {
		return err
	}
	problems, counts := l.forLint(s, modules, false).Check()
	if err = lint.Refusal(lint.SortProblems(problems)); err != nil {
		return err
	}
	l.countRules(counts)
	l.files = s.Files
	if err = l.readLabels(modules); err != nil {
		return err
	}
	return nil
}

// parseModules parses the files in two goroutines: parsing is a third of a cold start.
func parseModules(ctx context.Context, s Layer) (map[string]*ast.Module, error) {
	parsed := make([]*ast.Module, len(s.Files))
	errs := make([]error, len(s.Files))
	var group sync.WaitGroup
	for lane := range 2 {
		group.Go(func() {
			bounds.MeterOf(ctx).Run(func() {
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
	return parseWith(layer, f, saysMore(f.Content))
}

// parseWith returns nil for a file that is not Rego.
func parseWith(layer string, f File, annotations bool) (*ast.Module, error) {
	if !strings.HasSuffix(f.Name, ".rego") {
		return nil, nil
	}
	return module.Parse(layer, f.Name, f.Content, annotations)
}

// compilePoint compiles the point's modules with the library, and prepares the one
// query that fetches all its sets.
func (l *layer) compilePoint(
	ctx context.Context, name, query string, modules map[string]*ast.Module, all *module.Graph,
) (c compiled, err error) {
	own := module.ForPoint(name, modules, all)
	compiler := module.Compile(name, documentOf(name), own, true, l.sparedStages()...)
	if compiler.Failed() {
		return c, compileStop(l.name, compiler.Errors)
	}
	if name == module.PointExec {
		compiler, query, c.beyond = compileWithGuards(compiler, module.CopyModules(own), query, l.sparedStages()...)
	}
	if c.query, err = l.prepareQuery(ctx, name, query, compiler); err != nil {
		return c, err
	}
	if l.hasRole(Allows) && name == module.PointProposal {
		err = l.askPrograms(ctx, compiler)
	}
	return c, err
}

// prepareQuery prepares a point's query.
func (l *layer) prepareQuery(
	ctx context.Context, name, query string, compiler *ast.Compiler,
) (rego.PreparedEvalQuery, error) {
	prepared, err := rego.New(
		rego.Compiler(compiler),
		rego.Query(query),
		rego.Store(l.data),
		rego.Capabilities(module.CapabilitiesAt(name)),
		rego.SetRegoVersion(ast.RegoV1),
		rego.StrictBuiltinErrors(true),
		rego.Strict(true),
		rego.GenerateJSON(plainValue),
	).PrepareForEval(ctx)
	if err != nil {
		return prepared, compileStop(l.name, err)
	}
	return prepared, nil
}

// sparedStages are the compiler's stages that only find mistakes. The shipped layer skips them:
// a test shows that they find nothing in it.
func (l *layer) sparedStages() []ast.StageID {
	if !l.shipped {
		return nil
	}
	return []ast.StageID{ast.StageCheckKeywordOverrides, ast.StageCheckVoidCalls, ast.StageCheckRuleConflicts,
		ast.StageCheckUndefinedFuncs,
		ast.StageCheckSafetyRuleHeads, ast.StageCheckRecursion, ast.StageCheckTypes}
}

// compileWithGuards compiles the exec point again with its guards, and adds them to the query.
// Strict mode would refuse the guards' unused variables. If it cannot, no answer is
// reused.
func compileWithGuards(
	plain *ast.Compiler, modules map[string]*ast.Module, query string, spared ...ast.StageID,
) (*ast.Compiler, string, bool) {
	guards, ok := module.AddGuards(modules)
	if !ok || guards == 0 {
		return plain, query, !ok
	}
	compiler := module.Compile(module.PointExec, documentOf(module.PointExec), modules, false, spared...)
	if compiler.Failed() {
		return plain, query, true
	}
	return compiler, strings.TrimSuffix(query, "}") +
		fmt.Sprintf(", %q: data.%s.%s}", module.GuardSet, module.PointExec, module.GuardSet), false
}

// askPrograms asks once which programs the layer knows. They depend on no input and are
// only used to suggest names similar to a denied one.
func (l *layer) askPrograms(ctx context.Context, compiler *ast.Compiler) error {
	rs, err := rego.New(rego.Compiler(compiler), rego.Query("data."+module.PointProposal+".programs"),
		rego.Store(l.data), rego.Capabilities(module.Capabilities()), rego.StrictBuiltinErrors(true)).Eval(ctx)
	if err != nil {
		return evalStop(ctx, l.name, module.PointProposal, err)
	}
	if len(rs) == 0 {
		return nil // the layer has none
	}
	names, _ := rs[0].Expressions[0].Value.([]any)
	for _, name := range names {
		text, ok := name.(string)
		if !ok {
			return module.Stop(module.CodeUnknownKey,
				fmt.Sprintf("layer %q: a member of programs is not a string", l.name),
				"write programs contains \"name\"", nil)
		}
		l.programs = append(l.programs, text)
	}
	return nil
}

// pointQuery asks for the sets that have rules: a set without rules would leave all undefined.
func (l *layer) pointQuery(point string) string {
	var fields []string
	for _, c := range l.counts {
		if c.Point == point && c.Rules > 0 && c.Set != "programs" {
			fields = append(fields, fmt.Sprintf("%q: data.%s.%s", c.Set, point, c.Set))
		}
	}
	for _, set := range l.observed[point] {
		fields = append(fields, fmt.Sprintf("%q: data.%s[%q]", module.ObservedSet(set), point, module.ObservedSet(set)))
	}
	if fields == nil {
		return ""
	}
	sort.Strings(fields)
	return "result := {" + strings.Join(fields, ", ") + "}"
}

// maxErrors limits the compiler errors in one error: policy check shows all.
const maxErrors = 10

// compileStop distinguishes a removed built-in from other mistakes.
func compileStop(layer string, err error) error {
	if already := (*proposal.StopError)(nil); errors.As(err, &already) {
		return err
	}
	var many ast.Errors
	if errors.As(err, &many) && len(many) > maxErrors {
		err = many[:maxErrors]
	}
	message := fmt.Sprintf("the policy layer %q does not compile", layer)
	for _, name := range module.UndefinedFunctions(err) {
		if advice, ok := module.WithheldBuiltin(module.PointExec, name); ok {
			return module.Stop(module.CodeBuiltin,
				fmt.Sprintf("the policy layer %q uses %s, which policies must not use", layer, name), advice, err)
		}
	}
	return module.Stop(module.CodeCompile, message,
		"fix these places: fumehood policy check prints a fix for each, and fumehood policy explain --input 'COMMAND' the fields of input", err)
}
