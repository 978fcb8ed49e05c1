// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/internal/shell/snippet"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func decide(t testing.TB, e *policy.Engine, text string) proposal.Decision {
	t.Helper()
	p := proposal.Proposal{ID: "t", Run: text}
	d, err := e.Decide(t.Context(), p, analysis(p))
	if err != nil {
		t.Fatalf("cannot decide %q: %v", text, err)
	}
	return d
}

func shipped(t testing.TB) *policy.Engine {
	t.Helper()
	e, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatalf("cannot make an engine: %v", err)
	}
	return e
}

func TestShippedPolicyAllowsAndDenies(t *testing.T) {
	e := shipped(t)
	if d := decide(t, e, "go test ./... 2>&1 | tail -n 20"); d.Effect != proposal.Allow || d.Grant == nil {
		t.Errorf("go test: %+v", d)
	}
	if d := decide(t, e, "sort -o /etc/x y"); d.Effect != proposal.Deny {
		t.Errorf("sort: %+v", d)
	}
}

func analysis(p proposal.Proposal) proposal.Analysis {
	a := parse.Analyze(p)
	a.Snippets = snippet.ReadSnippets(p, a)
	return a
}

// granting is an engine of which dir alone is the policy.
func granting(t testing.TB, dir string) *policy.Engine {
	t.Helper()
	e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Grants, dir)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// layersOf reads directories as layers of one role.
func layersOf(t testing.TB, role policy.Role, dirs ...string) []policy.Layer {
	t.Helper()
	var layers []policy.Layer
	for _, dir := range dirs {
		l, err := policy.ReadDirectory(dir)
		if err != nil {
			t.Fatal(err)
		}
		l.Role = role
		layers = append(layers, l)
	}
	return layers
}
