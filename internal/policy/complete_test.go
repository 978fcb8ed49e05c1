// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A field that is missing is undefined in Rego, and a deny that looks at it is silent.
// So no input lacks any, whatever was proposed: each document has exactly the fields
// that rules may name.
func TestDocumentsAreComplete(t *testing.T) {
	e := shipped(t)
	for _, p := range append([]proposal.Proposal{{}, {Run: ""}, {Argv: []string{""}}, {Run: "\x00"}, {Code: "x", Language: "?"}}, trials...) {
		for _, d := range e.Documents(p, analysis(p)) {
			complete(t, d.Point, d.Input)
		}
	}
}

func FuzzDocumentsAreComplete(f *testing.F) {
	for _, p := range trials {
		f.Add(p.Run, p.Cwd, p.Phase)
	}
	e := shipped(f)
	f.Fuzz(func(t *testing.T, run, cwd, phase string) {
		p := proposal.Proposal{ID: "t", Run: run, Cwd: cwd, Phase: phase}
		for _, d := range e.Documents(p, analysis(p)) {
			complete(t, d.Point, d.Input)
		}
	})
}

// complete reports fields that are missing or unexpected at point.
func complete(t *testing.T, point string, input ast.Value) {
	t.Helper()
	var walk func(path []string, v ast.Value)
	walk = func(path []string, v ast.Value) {
		switch v := v.(type) {
		case *ast.Array:
			v.Foreach(func(e *ast.Term) { walk(append(path[:len(path):len(path)], "0"), e.Value) })
		case ast.Object:
			_, known := policy.InputField(point, append(path[:len(path):len(path)], "no such field"))
			for _, name := range known {
				if v.Get(ast.StringTerm(name)) == nil {
					t.Errorf("%s: input.%v lacks %s", point, path, name)
				}
			}
			if known != nil && len(known) != v.Len() {
				t.Errorf("%s: input.%v has %d fields, want %q", point, path, v.Len(), known)
			}
			v.Foreach(func(k, e *ast.Term) { walk(append(path[:len(path):len(path)], string(k.Value.(ast.String))), e.Value) })
		case ast.Null:
			t.Errorf("%s: input.%v is null", point, path)
		}
	}
	walk(nil, input)
}
