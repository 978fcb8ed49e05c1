// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/fumehood/fumehood/pkg/policy"
)

// A suite is a layer's rules and its tests in Rego, compiled together.
type suite struct {
	layer    string
	compiler *ast.Compiler
	store    storage.Store
}

// rego makes a test of each rule test_… in a layer.
func (t *trial) rego(ctx context.Context, f files) {
	if len(f.tests) == 0 || t.meddles(f) {
		return
	}
	modules := maps.Clone(f.rules)
	for _, name := range slices.Sorted(maps.Keys(f.tests)) {
		m := f.tests[name]
		if !slices.ContainsFunc(m.Rules, isTest) {
			t.broken(KindRego, f.layer.Name, name, 1, "the file holds no test", "write test_something if {…}")
		}
		t.checkWith(f.layer.Name, m)
		spellOut(m)
		modules[name] = m
	}
	for _, m := range modules {
		m.Annotations = nil // a schema named there would be read
		for _, r := range m.Rules {
			r.Annotations = nil
		}
	}
	s, err := compile(ctx, f.layer, modules, t.Deadline)
	if err != nil {
		t.wrong(KindRego, f.layer.Name, slices.Sorted(maps.Keys(f.tests))[0], err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.tests)) {
		t.testsOf(s, s.compiler.Modules[name], name)
	}
}

// compile has OPA's tester compile the modules, which rewrites tests as it runs them.
func compile(ctx context.Context, l policy.Layer, modules map[string]*ast.Module, limit time.Duration) (*suite, error) {
	store, err := l.Store()
	if err != nil {
		return nil, err
	}
	s := &suite{layer: l.Name, store: store, compiler: ast.NewCompiler().WithCapabilities(capabilities()).
		WithDefaultRegoVersion(ast.RegoV1).WithEnablePrintStatements(true)}
	failed, err := within(ctx, 4*limit, func(ctx context.Context) error {
		results, err := s.runner().SetModules(modules).Filter(nothing).RunTests(ctx, nil)
		if err == nil {
			channel.Collect(results)
		}
		return err
	})
	return s, errors.Join(err, failed)
}

// nothing is no test's name.
const nothing = `^$`

func (s *suite) runner() *tester.Runner {
	return tester.NewRunner().SetCompiler(s.compiler).SetStore(s.store).SetParallel(1).CapturePrintOutput(true)
}

func isTest(r *ast.Rule) bool { return testRef(r) != nil }

// testRef is r's name up to the part that makes it a test, or nil.
func testRef(r *ast.Rule) ast.Ref {
	ref := r.Head.Ref().GroundPrefix()
	for i, term := range ref {
		if name := partOf(term); strings.HasPrefix(name, tester.TestPrefix) || strings.HasPrefix(name, tester.SkipTestPrefix) {
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
		path := m.Package.Path.Extend(ref).String()
		t.tests = append(t.tests, test{
			result: Result{Name: strings.TrimPrefix(path, "data."), Kind: KindRego, Layer: s.layer, File: file, Line: r.Location.Row},
			run:    func(ctx context.Context, result *Result) { t.tryRego(ctx, s, path, result) },
		})
	}
}

// tryRego runs one test, and once more to see where it fails.
func (t *trial) tryRego(ctx context.Context, s *suite, path string, r *Result) {
	listener := policy.Listener{Layer: s.layer, Tell: t.teller()}
	found, printed, err := t.runTest(ctx, s, path, listener)
	r.Print = printed
	switch {
	case err != nil:
		r.erred(err)
	case found == nil:
		r.erred(errors.New("OPA's tester did not run it"))
	case found.Skip:
		r.Status = Skipped
	case found.Error != nil:
		r.erred(asEndless(found.Error))
	case found.Pass():
		r.Status = Passed
	default:
		r.Status, r.Message = Failed, "it is not true"
		t.explain(ctx, s, path, r)
	}
}

func asEndless(err error) error {
	if topdown.IsCancel(err) {
		return errEndless
	}
	return err
}

// explain finds what did not hold, and what its variables were.
func (t *trial) explain(ctx context.Context, s *suite, path string, r *Result) {
	f := &failures{parts: map[string]*topdown.Event{}}
	found, _, err := t.runTest(ctx, s, path, f)
	if err != nil || found == nil {
		return
	}
	if len(found.SubResults) == 0 {
		r.Failure = expression(f.last)
		return
	}
	for names, sub := range found.SubResults.Iter {
		if len(sub.SubResults) > 0 {
			continue
		}
		p := Part{Name: strings.Join(names, " / "), Status: Passed}
		if sub.Fail {
			p.Status, p.Failure = Failed, expression(f.parts[strings.Join(names, "\x00")])
		}
		r.Parts = append(r.Parts, p)
	}
	r.Message = "some of its cases are not true"
}

// runTest has OPA's tester run the one test at path.
func (t *trial) runTest(ctx context.Context, s *suite, path string, tracer topdown.QueryTracer) (*tester.Result, string, error) {
	type ran struct {
		results []*tester.Result
		err     error
	}
	out := &printed{}
	r, err := within(ctx, t.Deadline, func(ctx context.Context) ran {
		// The tester gives its functions to each query after its own settings: it has no
		// setting for these.
		settings := append(t.builtins(ctx), rego.StrictBuiltinErrors(true), rego.PrintHook(out))
		var given []*tester.Builtin
		for _, set := range settings {
			given = append(given, &tester.Builtin{Func: set})
		}
		results, err := s.runner().AddCustomBuiltins(given).SetTimeout(t.Deadline).SetCoverageQueryTracer(tracer).
			Filter("^"+regexp.QuoteMeta(path)+"$").RunTests(ctx, nil)
		if err != nil {
			return ran{err: err}
		}
		return ran{results: channel.Collect(results)}
	})
	if err == nil {
		err = r.err
	}
	if err == nil && len(r.results) == 1 {
		return r.results[0], out.text(), nil
	}
	return nil, out.text(), err
}

// meddles reports whether a test file would change what the layer decides: with it the
// tests would pass, and the policy do something else.
func (t *trial) meddles(f files) bool {
	decided := map[string]string{}
	for name, m := range f.rules {
		for _, r := range m.Rules {
			decided[fullName(m, r)] = name
		}
	}
	data, _ := f.layer.Data() // judge has read it
	for name := range data {
		decided[name] = "the layer's data"
	}
	meddles := false
	for _, name := range slices.Sorted(maps.Keys(f.tests)) {
		for _, r := range f.tests[name].Rules {
			full := fullName(f.tests[name], r)
			in := ""
			for other, file := range decided {
				if within := strings.HasPrefix(full+".", other+".") || strings.HasPrefix(other+".", full+"."); within {
					in = file
				}
			}
			if in == "" && !means(full) {
				continue
			}
			meddles = true
			message := fmt.Sprintf("the test file adds to %s, which decides", full)
			if in != "" {
				message = fmt.Sprintf("the test file adds to %s of %s", full, in)
			}
			t.broken(KindRego, f.layer.Name, name, r.Location.Row, message, "give it another name: no test in Rego of this layer runs until then")
		}
	}
	return meddles
}

func fullName(m *ast.Module, r *ast.Rule) string {
	var names []string
	for _, term := range m.Package.Path.Extend(r.Head.Ref().GroundPrefix())[1:] {
		names = append(names, partOf(term))
	}
	return strings.Join(names, ".")
}

// means reports whether full is a set at a decision point.
func means(full string) bool {
	return slices.ContainsFunc(policy.Points(), func(point string) bool {
		name, below := strings.CutPrefix(full, point+".")
		name, _, _ = strings.Cut(name, ".")
		return full == point || below && slices.Contains(policy.Sets(point), name)
	})
}

// checkWith finds with input.… as … of fields that no input has: what is set there,
// nothing reads.
func (t *trial) checkWith(layer string, m *ast.Module) {
	points := policy.Points()
	if point := strings.TrimSuffix(policy.PackageOf(m), "_test"); slices.Contains(points, point) {
		points = []string{point}
	}
	ast.WalkExprs(m, func(e *ast.Expr) bool {
		for _, w := range e.With {
			if ref, ok := w.Target.Value.(ast.Ref); ok && ref[0].Equal(ast.InputRootDocument) {
				t.checkField(layer, m, ref, points)
			}
		}
		return false
	})
}

func (t *trial) checkField(layer string, m *ast.Module, ref ast.Ref, points []string) {
	var path []string
	for _, term := range ref[1:] {
		name, ok := term.Value.(ast.String)
		if !ok {
			break
		}
		path = append(path, string(name))
	}
	wrong, known := "", []string(nil)
	for _, point := range points {
		if wrong, known = policy.InputField(point, path); wrong == "" {
			return
		}
	}
	at := ref[0].Location
	if at == nil {
		at = m.Package.Location
	}
	t.broken(KindRego, layer, m.Package.Location.File, at.Row, fmt.Sprintf("%s: no input has %q", ref, wrong), policy.Meant(wrong, known))
}
