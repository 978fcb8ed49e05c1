// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy/bounds"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/policies"
)

// recordLayer is the content of policies.Compiled for s.
func recordLayer(t testing.TB, s Layer) []byte {
	t.Helper()
	modules, err := parseModules(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for file, m := range modules {
		if len(module.Exceptions(m)) > 0 {
			t.Fatalf("%s: a rule expires: its date is not in the compiled form", file)
		}
	}
	l := &layer{name: s.Name, role: s.Role, shipped: s.shipped, now: s.readTime()}
	if err := l.readSource(s, modules); err != nil {
		t.Fatal(err)
	}
	b := builtinLayer{Of: builtinKey(s), Counts: l.counts, Labels: map[string]builtinLabel{}}
	for rule, one := range l.labels {
		b.Labels[rule] = builtinLabel{one.retry, one.severity, one.category}
	}
	var all []byte
	graph := module.NewGraph(modules)
	for _, name := range module.Points() {
		query := l.pointQuery(name)
		if query == "" {
			continue
		}
		own := module.ForPoint(name, modules, graph)
		compiler, rules, err := module.RecordRules(name, documentOf(name), own, true, l.sparedStages()...)
		if err != nil {
			t.Fatal(err)
		}
		p := builtinPoint{Name: name, Query: query}
		if name == module.PointExec {
			copies := module.CopyModules(own)
			if _, p.Query, p.Beyond = compileWithGuards(compiler, copies, query, l.sparedStages()...); p.Query != query {
				if _, rules, err = module.RecordRules(name, documentOf(name), copies, false, l.sparedStages()...); err != nil {
					t.Fatal(err)
				}
			}
		}
		if name == module.PointProposal {
			if err := l.askPrograms(context.Background(), compiler); err != nil {
				t.Fatal(err)
			}
		}
		p.Size = len(rules)
		b.Points, all = append(b.Points, p), append(all, rules...)
	}
	b.Programs = l.programs
	head, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	marks, err := json.Marshal(markRules(s))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, "%s\n%s\n%s", head, marks, all)
}

// The compiled form of the shipped policy is that of its files.
func TestCompiled(t *testing.T) {
	lanetest.SkipShort(t)
	s, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../../policies/compiled.bin", recordLayer(t, s))
}

// Restored rules are the compiled ones: equal, at the same places, generated or not.
func TestRestored(t *testing.T) {
	lanetest.SkipShort(t)
	s, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := parseModules(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules { // the compiled form has no METADATA
		m.Annotations = nil
		for _, r := range m.Rules {
			r.Annotations = nil
		}
	}
	graph := module.NewGraph(modules)
	for _, name := range module.Points() {
		own := module.ForPoint(name, modules, graph)
		want, rules, err := module.RecordRules(name, documentOf(name), own, true, (&layer{shipped: true}).sparedStages()...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := module.RestoreRules(name, string(rules))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Modules) != len(want.Modules) || len(want.Modules) == 0 {
			t.Fatalf("%s: %d modules, want %d", name, len(got.Modules), len(want.Modules))
		}
		for file, m := range want.Modules {
			if m.Imports = nil; m.Compare(got.Modules[file]) != 0 {
				t.Errorf("%s: %s differs", name, file)
			}
			if diff := cmp.Diff(placesIn(m), placesIn(got.Modules[file])); diff != "" {
				t.Errorf("%s: %s: -compiled +restored:\n%s", name, file, diff)
			}
		}
	}
}

// placesIn describes what Compare does not compare.
func placesIn(m *ast.Module) (all []string) {
	ast.WalkNodes(m, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Rule:
			all = append(all, fmt.Sprint("rule ", n.Loc(), n.Module.Package, n.Head.Loc(), n.Head.Name, n.Head.Assign))
		case *ast.Expr:
			all = append(all, fmt.Sprint("expr ", n.Loc(), n.Generated))
		case *ast.Every:
			all = append(all, fmt.Sprint("every ", n.Loc()))
		case *ast.With:
			all = append(all, fmt.Sprint("with ", n.Loc()))
		}
		return false
	})
	return all
}

// The compiled form is only of exactly the files that it was made from: any other policy is
// compiled, and what is not a compiled form is an error, not a policy without rules.
func TestCompiledOfOthers(t *testing.T) {
	s, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := restoreLayer(s, policies.Compiled); l == nil || err != nil {
		t.Fatalf("the shipped policy is compiled from its files: %v", err)
	}
	for _, text := range []string{"", "{}\n", strings.Replace(policies.Compiled, `"of":"`, `"of":"0`, 1)} {
		if l, err := restoreLayer(s, text); l != nil || err != nil {
			t.Errorf("%.20q is a compiled form: %v", text, err)
		}
	}
	for i := range s.Files {
		other := s
		other.Files = slices.Clone(s.Files)
		other.Files[i].Content = append(slices.Clone(s.Files[i].Content), '\n')
		if l, err := restoreLayer(other, policies.Compiled); l != nil || err != nil {
			t.Errorf("a changed %s does not matter: %v", s.Files[i].Name, err)
		}
	}
	l, err := restoreLayer(s, policies.Compiled[:len(policies.Compiled)-1])
	if err == nil {
		err = l.compilePoints(module.Points()...)
	}
	if err == nil {
		t.Error("a compiled form without its end is one")
	}
}

// A start with the shipped policy does a small part of the work of compiling it: 63,000
// allocations, and not 600,000.
func TestStartIsCheap(t *testing.T) {
	got := testing.AllocsPerRun(1, func() { startCompiled(t) })
	if got > 70_000 {
		t.Errorf("%v allocations", got)
	}
}

func startCompiled(t testing.TB) {
	t.Helper()
	s, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	l, err := restoreLayer(s, policies.Compiled)
	if err == nil {
		err = l.compilePoints(initialPoints...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkStart is what the first New of a process costs with the compiled form of the
// shipped policy, and what it costs without: 8 and 80 ms of processor time.
func BenchmarkStart(b *testing.B) {
	for name, start := range map[string]func(*testing.B){
		"compiled": func(b *testing.B) { startCompiled(b) },
		"files": func(b *testing.B) {
			s, err := shipped()
			if err == nil {
				_, err = compileLayer(b.Context(), s)
			}
			if err != nil {
				b.Fatal(err)
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			began := bounds.ProcessorTime()
			for b.Loop() {
				start(b)
			}
			b.ReportMetric(float64((bounds.ProcessorTime()-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
