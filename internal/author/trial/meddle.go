// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// changesDecisions reports whether a test file would change the layer's decisions: the tests would
// pass with it, but the policy without it would decide differently.
func (t *trial) changesDecisions(f files) bool {
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
			if in == "" && !isDecisionSet(full) {
				continue
			}
			meddles = true
			message := fmt.Sprintf("the test file adds to %s, which makes decisions", full)
			if in != "" {
				message = fmt.Sprintf("the test file adds to %s of %s", full, in)
			}
			t.addBroken(KindRego, f.layer.Name, name, r.Location.Row, message,
				"rename it: no Rego test of this layer runs before that")
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

// isDecisionSet reports whether full is a set with a meaning at a decision point.
func isDecisionSet(full string) bool {
	return slices.ContainsFunc(module.Points(), func(point string) bool {
		name, below := strings.CutPrefix(full, point+".")
		name, _, _ = strings.Cut(name, ".")
		return full == point || below && slices.Contains(module.Sets(point), name)
	})
}

// checkWith finds with input.… as … for fields that no input has, which would have no
// effect. It also finds faked decisions: tests with data.….deny as … and with
// fumehood.decide as … test only themselves.
func (t *trial) checkWith(layer string, m *ast.Module) {
	points := module.Points()
	if point := strings.TrimSuffix(module.PackageOf(m), "_test"); slices.Contains(points, point) {
		points = []string{point}
	}
	ast.WalkExprs(m, func(e *ast.Expr) bool {
		for _, w := range e.With {
			ref, ok := w.Target.Value.(ast.Ref)
			switch {
			case ok && ref[0].Equal(ast.InputRootDocument):
				t.checkField(layer, m, ref, points)
			case ok && madeUp(ref):
				t.addBroken(KindRego, layer, m.Package.Location.File, w.Location.Row,
					fmt.Sprintf("with %s as …: the test replaces the decision that it tests", ref),
					"replace the input, or the policy's own data: with input as fumehood.parse(\"go test ./...\")")
			}
		}
		return false
	})
}

// madeUp reports whether ref is a decision, or contains decisions.
func madeUp(ref ast.Ref) bool {
	var names []string
	for _, term := range ref.GroundPrefix() {
		names = append(names, partOf(term))
	}
	full := strings.Join(names, ".")
	if slices.Contains(forTests, full) {
		return true
	}
	name, below := strings.CutPrefix(full+".", "data.")
	return below && (isDecisionSet(strings.TrimSuffix(name, ".")) || name == "" || name == "fumehood.")
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
	t.addBroken(KindRego, layer, m.Package.Location.File, at.Row, fmt.Sprintf("%s: no input has %q", ref, wrong),
		module.SuggestName(wrong, known))
}
