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

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/module"
)

// files are a layer's, sorted out.
type files struct {
	layer policy.Layer
	rules map[string]*ast.Module // by name: what decides
	tests map[string]*ast.Module
	cases []policy.File
}

// collect finds a layer's tests. What is wrong with a file is a test that erred.
func (t *trial) collect(ctx context.Context, l policy.Layer) {
	f := files{layer: l, rules: map[string]*ast.Module{}, tests: map[string]*ast.Module{}}
	for _, file := range slices.SortedFunc(slices.Values(l.Files), func(a, b policy.File) int { return strings.Compare(a.Name, b.Name) }) {
		switch {
		case file.IsCases():
			f.cases = append(f.cases, file)
		case path.Ext(file.Name) == ".rego":
			m, err := module.Parse(l.Name, file.Name, file.Content, true)
			switch {
			case err != nil: // of rules, judge would have said it
				t.wrong(KindRego, l.Name, file.Name, err)
			case file.IsTest():
				f.tests[file.Name] = m
			default:
				f.rules[file.Name] = m
			}
		case (path.Ext(file.Name) == ".yaml" || path.Ext(file.Name) == ".yml") && !file.HoldsData():
			t.broken(KindCase, l.Name, file.Name, 1, "nothing reads this file", "call it cases.yaml if it holds cases, or let its name end in _cases.yaml")
		}
	}
	t.misplaced(f)
	t.examples(f)
	for _, file := range f.cases {
		t.cases(l.Name, file)
	}
	t.rego(ctx, f)
}

// misplaced finds tests in files that decide, where nobody would run them.
func (t *trial) misplaced(f files) {
	for _, name := range slices.Sorted(maps.Keys(f.rules)) {
		for _, r := range f.rules[name].Rules {
			if isTest(r) {
				t.broken(KindRego, f.layer.Name, name, r.Location.Row, fmt.Sprintf("the test %s stands in a file that decides", r.Head.Ref()), "move it to a file that ends in _test.rego")
			}
		}
	}
}

// broken adds a test that erred before it could run.
func (t *trial) broken(kind, layer, file string, line int, message, hint string) {
	t.tests = append(t.tests, test{result: Result{
		Name: fmt.Sprintf("%s:%d", file, line), Kind: kind, Layer: layer, File: file, Line: line, Status: Erred, Message: message, Hint: hint, broken: true,
	}})
}

// wrong adds one for each mistake that OPA tells.
func (t *trial) wrong(kind, layer, file string, err error) {
	var all ast.Errors
	if !errors.As(err, &all) {
		t.broken(kind, layer, file, 1, err.Error(), "")
		return
	}
	for _, e := range all {
		if e.Location == nil {
			t.broken(kind, layer, file, 1, e.Message, "")
			continue
		}
		t.broken(kind, layer, cmp.Or(e.Location.File, file), e.Location.Row, told(e), hintOf(e.Message))
	}
}

// told is e's message, with what OPA knows besides.
func told(e *ast.Error) string {
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
		return module.Meant(name, []string{nameParse, nameDecide})
	}
	if advice, removed := module.Removed(name); found && removed {
		return "policies and their tests may not use it: " + advice
	}
	return ""
}
