// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// files are a layer's files, by kind.
type files struct {
	layer policy.Layer
	rules map[string]*ast.Module // by name: the modules that decide
	tests map[string]*ast.Module
	cases []policy.File
}

// collectTests finds a layer's tests. A mistake in a file is a test with an error.
func (t *trial) collectTests(ctx context.Context, l policy.Layer) {
	f := files{layer: l, rules: map[string]*ast.Module{}, tests: map[string]*ast.Module{}}
	for _, file := range slices.SortedFunc(slices.Values(l.Files),
		func(a, b policy.File) int { return strings.Compare(a.Name, b.Name) }) {
		switch {
		case file.IsCases():
			f.cases = append(f.cases, file)
		case path.Ext(file.Name) == ".rego":
			m, err := module.Parse(l.Name, file.Name, file.Content, true)
			switch {
			case err != nil: // judge has reported errors in rules
				t.addErrors(KindRego, l.Name, file.Name, err)
			case file.IsTest():
				f.tests[file.Name] = m
			default:
				f.rules[file.Name] = m
			}
		case (path.Ext(file.Name) == ".yaml" || path.Ext(file.Name) == ".yml") && !file.HoldsData():
			t.addBroken(KindCase, l.Name, file.Name, 1, "this file is not used",
				"if it contains cases, rename it to cases.yaml or to a name that ends in _cases.yaml")
		}
	}
	t.findMisplaced(f)
	t.addExamples(f)
	for _, file := range f.cases {
		t.addCases(l.Name, file)
	}
	t.addRegoTests(ctx, f)
}

// findMisplaced finds tests in files that decide, where they would not run.
func (t *trial) findMisplaced(f files) {
	for _, name := range slices.Sorted(maps.Keys(f.rules)) {
		for _, r := range f.rules[name].Rules {
			if isTest(r) {
				t.addBroken(KindRego, f.layer.Name, name, r.Location.Row,
					fmt.Sprintf("the test %s is not in a test file", r.Head.Ref()),
					"move it to a file that ends in _test.rego")
			}
		}
	}
}

// addBroken adds a test with an error from before it could run.
func (t *trial) addBroken(kind, layer, file string, line int, message, hint string) {
	t.tests = append(t.tests, test{result: Result{
		Name: fmt.Sprintf("%s:%d", file, line), Kind: kind, Layer: layer, File: file, Line: line, Status: Erred,
		Message: message, Hint: hint, broken: true,
	}})
}

// addErrors adds one for each of OPA's errors.
func (t *trial) addErrors(kind, layer, file string, err error) {
	var all ast.Errors
	if !errors.As(err, &all) {
		t.addBroken(kind, layer, file, 1, err.Error(), "")
		return
	}
	for _, e := range all {
		if e.Location == nil {
			t.addBroken(kind, layer, file, 1, e.Message, "")
			continue
		}
		t.addBroken(kind, layer, cmp.Or(e.Location.File, file), e.Location.Row, messageOf(e), hintOf(e.Message))
	}
}

// messageOf is e's message, with OPA's details.
func messageOf(e *ast.Error) string {
	text := e.Message
	if e.Details != nil {
		if lines := e.Details.Lines(); len(lines) > 0 {
			text += ": " + strings.Join(lines, "; ")
		}
	}
	return text
}

func hintOf(message string) string {
	name, found := strings.CutPrefix(message, "undefined function ")
	if found && strings.HasPrefix(name, "fumehood.") {
		return module.SuggestName(name, forTests)
	}
	if advice, removed := module.RemovedBuiltin(name); found && removed {
		return "policies and their tests must not use it: " + advice
	}
	return ""
}
