// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/util/channel"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// A suite is a layer's rules and its Rego tests, compiled together.
type suite struct {
	layer    string
	compiler *ast.Compiler
	store    storage.Store
}

// addRegoTests makes a test of each rule test_… in a layer.
func (t *trial) addRegoTests(ctx context.Context, f files) {
	if len(f.tests) == 0 || t.changesDecisions(f) {
		return
	}
	modules := maps.Clone(f.rules)
	for _, name := range slices.Sorted(maps.Keys(f.tests)) {
		m := f.tests[name]
		if !slices.ContainsFunc(m.Rules, isTest) {
			t.addBroken(KindRego, f.layer.Name, name, 1, "the file contains no test", "write test_something if {…}")
		}
		t.checkWith(f.layer.Name, m)
		spellOut(m)
		modules[name] = m
	}
	module.DisableExpired(modules, time.Now()) // as in a run
	for _, m := range modules {
		m.Annotations = nil // OPA would read a schema that they name
		for _, r := range m.Rules {
			r.Annotations = nil
		}
	}
	s, err := compileModules(ctx, f.layer, modules, t.Deadline)
	if err != nil {
		t.addErrors(KindRego, f.layer.Name, slices.Sorted(maps.Keys(f.tests))[0], err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.tests)) {
		t.testsOf(s, s.compiler.Modules[name], name)
	}
}

// compileModules compiles the modules with OPA's tester, which rewrites tests.
func compileModules(
	ctx context.Context, l policy.Layer, modules map[string]*ast.Module, limit time.Duration,
) (*suite, error) {
	store, err := l.Store()
	if err != nil {
		return nil, err
	}
	s := &suite{layer: l.Name, store: store, compiler: ast.NewCompiler().WithCapabilities(testCapabilities()).
		WithDefaultRegoVersion(ast.RegoV1).WithEnablePrintStatements(true)}
	failed, err := runWithin(ctx, 4*limit, func(ctx context.Context) error {
		results, err := s.newRunner(s.compiler).SetModules(modules).Filter(nothing).RunTests(ctx, nil)
		if err == nil {
			channel.Collect(results)
		}
		return err
	})
	return s, errors.Join(err, failed)
}

// nothing is not the name of any test.
const nothing = `^$`

func (s *suite) newRunner(compiler *ast.Compiler) *tester.Runner {
	return tester.NewRunner().SetCompiler(compiler).SetStore(s.store).SetParallel(1).CapturePrintOutput(true)
}

// A regoTest is one rule of a suite.
type regoTest struct {
	*suite
	rule *ast.Rule
	path string // data.fumehood.command.test_x
}

// compilerForRule is the suite's compiler with only this rule: for each test that it runs, the
// tester searches all rules.
func (x *regoTest) compilerForRule() *ast.Compiler {
	c := *x.compiler
	c.Modules = map[string]*ast.Module{x.rule.Location.File: {Package: x.rule.Module.Package,
		Rules: []*ast.Rule{x.rule}}}
	return &c
}

func isTest(r *ast.Rule) bool { return testRef(r) != nil }

// testRef is r's name up to the part that makes it a test, or nil.
func testRef(r *ast.Rule) ast.Ref {
	ref := r.Head.Ref().GroundPrefix()
	for i, term := range ref {
		if name := partOf(term); strings.HasPrefix(name, tester.TestPrefix) ||
			strings.HasPrefix(name, tester.SkipTestPrefix) {
			return ref[:i+1]
		}
	}
	return nil
}

func partOf(t *ast.Term) string {
	switch v := t.Value.(type) {
	case ast.Var:
		return string(v)
	case ast.String:
		return string(v)
	}
	return ""
}

func (t *trial) testsOf(s *suite, m *ast.Module, file string) {
	for _, r := range m.Rules {
		ref := testRef(r)
		if ref == nil {
			continue
		}
		x := &regoTest{s, r, m.Package.Path.Extend(ref).String()}
		t.tests = append(t.tests, test{
			result: Result{Name: strings.TrimPrefix(x.path, "data."), Kind: KindRego, Layer: s.layer, File: file,
				Line: r.Location.Row},
			run: func(ctx context.Context, result *Result) { t.tryRego(ctx, x, result) },
		})
	}
}

// tryRego runs one test, and a second time to find where it fails.
func (t *trial) tryRego(ctx context.Context, x *regoTest, r *Result) {
	listener := module.Listener{Layer: x.layer, Held: t.newReporter()}
	found, printed, err := t.runTest(ctx, x, listener)
	r.Print = printed
	switch {
	case err != nil:
		r.setError(err)
	case found == nil:
		r.setError(errors.New("OPA's tester did not run it"))
	case found.Skip:
		r.Status = Skipped
	case found.Error != nil:
		r.setError(asEndless(found.Error))
	case found.Pass():
		r.Status = Passed
	default:
		r.Status, r.Message = Failed, "it is not true"
		t.explainFailure(ctx, x, r)
	}
}

func asEndless(err error) error {
	if topdown.IsCancel(err) {
		return errEndless
	}
	return err
}

// explainFailure finds the expression that did not hold, and its variables.
func (t *trial) explainFailure(ctx context.Context, x *regoTest, r *Result) {
	f := &failureTracer{parts: map[string]*topdown.Event{}}
	found, _, err := t.runTest(ctx, x, f)
	if err != nil || found == nil {
		return
	}
	if len(found.SubResults) == 0 {
		r.Failure = readableExpression(f.last)
		return
	}
	for names, sub := range found.SubResults.Iter {
		if len(sub.SubResults) > 0 {
			continue
		}
		p := Part{Name: strings.Join(names, " / "), Status: Passed}
		if sub.Fail {
			p.Status, p.Failure = Failed, readableExpression(f.parts[strings.Join(names, "\x00")])
		}
		r.Parts = append(r.Parts, p)
	}
	r.Message = "some of its cases are not true"
}

// runTest runs one test with OPA's tester.
func (t *trial) runTest(ctx context.Context, x *regoTest, tracer topdown.QueryTracer) (*tester.Result, string, error) {
	type ran struct {
		results []*tester.Result
		err     error
	}
	out := &printed{}
	r, err := runWithin(ctx, t.Deadline, func(ctx context.Context) ran {
		// The tester adds its functions to each query after its own settings, and has no
		// setting for them.
		settings := append(t.testBuiltins(ctx), rego.StrictBuiltinErrors(true), rego.PrintHook(out))
		var given []*tester.Builtin
		for _, set := range settings {
			given = append(given, &tester.Builtin{Func: set})
		}
		// Its deadline is wall time; within limits the test's processor time.
		results, err := x.newRunner(x.compilerForRule()).AddCustomBuiltins(given).
			SetTimeout(time.Hour).SetCoverageQueryTracer(tracer).
			Filter("^"+regexp.QuoteMeta(x.path)+"$").RunTests(ctx, nil)
		if err != nil {
			return ran{err: err}
		}
		return ran{results: channel.Collect(results)}
	})
	if err == nil {
		err = r.err
	}
	if err == nil && len(r.results) == 1 {
		return r.results[0], out.printedText(), nil
	}
	return nil, out.printedText(), err
}
