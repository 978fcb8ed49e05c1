// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of what is generated: values of one field, inputs of one rule and of all, and rules that one rule reaches
// of which the constants are read.
const (
	maxValues    = 8
	maxPerRule   = 200
	maxGenerated = 4000
	maxReached   = 50
)

// generateInputs are inputs made of what the changed rules compare: words, hosts, and values of fields.
func generateInputs(changed []digested) (inputs []input) {
	seen := map[string]bool{}
	for _, r := range changed {
		if len(inputs) >= maxGenerated {
			break
		}
		c := &comparisons{graph: r.graph, reached: map[string]bool{}}
		c.readRule(r.module, r.rule)
		n := 0
		for _, in := range c.makeInputs(r.Point, trial.RuleInputs(r.graph, r.module, r.rule)) {
			if n < maxPerRule && in.isNew(seen) {
				inputs, n = append(inputs, in), n+1
			}
		}
	}
	return inputs
}

// factInputs are inputs that read and write what matches patterns of places.
func factInputs(added []Rule) (inputs []input) {
	for _, r := range added[:min(len(added), maxGenerated/4)] {
		if r.Set == setOptions {
			continue
		}
		name := strings.NewReplacer("*", "x", "?", "x", "[", "", "]", "", `\`, "", "'", "").Replace(r.ID)
		for _, text := range []string{"cat '%s'", "echo x > '%s'"} {
			p, err := trial.NewInput("proposal", map[string]any{"run": fmt.Sprintf(text, name)})
			if err == nil {
				inputs = append(inputs, input{value: p})
			}
		}
	}
	return inputs
}

// A field is a part of the input with values for it. In its path, "[]" is each element of a list.
type field struct {
	path   []string // below input
	values []any
}

// comparisons collects the constants with which a rule, and the rules that it reaches, compare fields of the input.
type comparisons struct {
	graph   *module.Graph
	reached map[string]bool
	fields  []field
	hosts   []string // texts that may be hosts
}

func (c *comparisons) readRule(m *ast.Module, r *ast.Rule) {
	bound := map[ast.Var][]string{}
	ast.WalkNodes(r, func(n ast.Node) bool {
		if e, ok := n.(*ast.Expr); ok {
			c.readExpr(e, bound)
		}
		return false
	})
	ast.WalkTerms(r, func(t *ast.Term) bool {
		if text, ok := t.Value.(ast.String); ok && len(c.hosts) < maxValues && isHost(string(text)) &&
			!slices.Contains(c.hosts, string(text)) {
			c.hosts = append(c.hosts, string(text))
		}
		return false
	})
	c.graph.Walk(m, r, func(to module.Target) {
		if to.Rule == "" || c.reached[to.Rule] || len(c.reached) >= maxReached {
			return
		}
		c.reached[to.Rule] = true
		for _, used := range c.graph.Rules[to.Rule] {
			c.readRule(used.Module, used.Rule)
		}
	})
}

// isHost reports whether text may be what a rule grants.
func isHost(text string) bool {
	return strings.HasPrefix(text, "registry:") || strings.Contains(text, ".") && !strings.ContainsAny(text, "/ \n")
}

// readExpr reads the constants of e, and which variables are fields.
func (c *comparisons) readExpr(e *ast.Expr, bound map[ast.Var][]string) {
	if some, ok := e.Terms.(*ast.SomeDecl); ok {
		if call, ok := some.Symbols[0].Value.(ast.Call); ok && len(call) >= 3 {
			if v, isVar := call[len(call)-2].Value.(ast.Var); isVar {
				if path := pathOf(call[len(call)-1], bound); path != nil {
					bound[v] = append(slices.Clone(path), "[]")
				}
			}
		}
		return
	}
	if t, ok := e.Terms.(*ast.Term); ok {
		c.addValues(pathOf(t, bound), true, false)
		return
	}
	if !e.IsCall() || len(e.Operands()) != 2 {
		return
	}
	left, right := e.Operand(0), e.Operand(1)
	operator := e.Operator().String()
	if v, isVar := left.Value.(ast.Var); isVar && operator == ast.Assign.Name {
		if path := pathOf(right, bound); path != nil {
			bound[v] = path
		}
		return
	}
	if operator == ast.Member.Name {
		if path := pathOf(right, bound); path != nil { // a constant in a list
			c.addValues(append(slices.Clone(path), "[]"), valuesLike(left.Value, operator)...)
			return
		}
		eachMember(right.Value, func(v ast.Value) { c.addValues(pathOf(left, bound), valuesLike(v, operator)...) })
		return
	}
	c.addValues(pathOf(left, bound), valuesLike(right.Value, operator)...)
	c.addValues(pathOf(right, bound), valuesLike(left.Value, operator)...)
}

// valuesLike are values for which a comparison with v holds, and for numbers some for which it does not.
func valuesLike(v ast.Value, operator string) []any {
	switch v := v.(type) {
	case ast.String:
		switch operator {
		case ast.StartsWith.Name:
			return []any{string(v) + "x"}
		case ast.EndsWith.Name:
			return []any{"x" + string(v)}
		}
		return []any{string(v)}
	case ast.Boolean:
		return []any{bool(v)}
	case ast.Number:
		if n, ok := v.Int(); ok {
			return []any{n, n + 1, n - 1}
		}
	}
	return nil
}

func (c *comparisons) addValues(path []string, values ...any) {
	if path == nil || len(values) == 0 {
		return
	}
	i := slices.IndexFunc(c.fields, func(f field) bool { return slices.Equal(f.path, path) })
	if i < 0 {
		i = len(c.fields)
		c.fields = append(c.fields, field{path: path})
	}
	for _, v := range values {
		if f := &c.fields[i]; len(f.values) < maxValues && !slices.Contains(f.values, v) {
			f.values = append(f.values, v)
		}
	}
}

// pathOf is the path of the field that t is, or nil. bound are the variables that are fields.
func pathOf(t *ast.Term, bound map[ast.Var][]string) (path []string) {
	ref, ok := t.Value.(ast.Ref)
	if !ok {
		if v, isVar := t.Value.(ast.Var); isVar {
			return bound[v]
		}
		return nil
	}
	head, _ := ref[0].Value.(ast.Var)
	if path = slices.Clone(bound[head]); path == nil && !ref[0].Equal(ast.InputRootDocument) {
		return nil
	}
	for _, part := range ref[1:] {
		name, isName := part.Value.(ast.String)
		if !isName {
			name = "[]"
		}
		path = append(path, string(name))
	}
	return path
}

// combine returns assignments of values to fields: none, the values with the same number of all fields, each value of
// one with the first of the others, and without one of them.
func combine(fields []field) (all []map[string]any) {
	all = append(all, map[string]any{})
	assign := func(pick func(i int) int) {
		m := map[string]any{}
		for i, f := range fields {
			if n := pick(i); n >= 0 {
				setPath(m, f.path, f.values[min(n, len(f.values)-1)])
			}
		}
		all = append(all, m)
	}
	for n := range maxValues {
		if slices.ContainsFunc(fields, func(f field) bool { return n < len(f.values) }) {
			assign(func(int) int { return n })
		}
	}
	for i, f := range fields {
		for n := -1; n < len(f.values) && len(fields) > 1; n++ {
			assign(func(k int) int {
				if k == i {
					return n
				}
				return 0
			})
		}
	}
	return all
}

// setPath sets the value at path in m. A list gets one element, to which later paths add.
func setPath(m map[string]any, path []string, value any) {
	for len(path) > 0 {
		name, list := path[0], len(path) > 1 && path[1] == "[]"
		rest := path[1:]
		if list {
			rest = path[2:]
		}
		below, _ := m[name].(map[string]any)
		if elements, ok := m[name].([]any); ok && len(elements) > 0 {
			below, _ = elements[0].(map[string]any)
		}
		if below == nil {
			below = map[string]any{}
		}
		var v any = below
		if len(rest) == 0 {
			v = value
		}
		if m[name] = v; list {
			m[name] = []any{v}
		}
		m, path = below, rest
	}
}

// below are the fields below a name, with their paths from there.
func below(fields []field, name string) (some []field) {
	for _, f := range fields {
		if f.path[0] == name && len(f.path) > 1 {
			some = append(some, field{f.path[1:], f.values})
		}
	}
	return some
}

// makeInputs are inputs for a rule of point. words are those that are made of its words.
func (c *comparisons) makeInputs(point string, words []any) (inputs []input) {
	c.fields = slices.DeleteFunc(c.fields, func(f field) bool { return len(f.path) == 0 || f.path[0] == "[]" })
	var values []any
	if point == module.PointCommand || point == module.PointProposal || point == module.PointSnippet {
		values = c.proposals(words)
	} else {
		values = append(c.otherInputs(strings.TrimPrefix(point, module.OwnPackage+".")), words...)
		for _, v := range slices.Clone(values) {
			if x, ok := v.(*proposal.Exec); ok && x.Grants == nil { // of a command that may start what it built
				built := *x
				built.Grants = []string{"built"}
				values = append(values, &built)
			}
		}
	}
	contexts := combine(below(c.fields, "context"))
	for _, v := range values {
		for _, patch := range contexts {
			in := input{value: v}
			if data, err := json.Marshal(patch); err != nil {
				continue
			} else if in.about = string(data); len(patch) == 0 {
				in.about = ""
			} else if in.context, err = points.ReadContext(data); err != nil {
				continue // no run has such a context
			}
			inputs = append(inputs, in)
		}
	}
	return inputs
}

// proposals are proposals with each of the texts, and with what the rules compare with fields of a proposal.
func (c *comparisons) proposals(texts []any) (values []any) {
	patches := combine(below(c.fields, "proposal"))
	for _, host := range c.hosts {
		for _, phase := range []string{proposal.PhaseRun, proposal.PhaseSetup} {
			patches = append(patches, map[string]any{"network": []any{host}, "phase": phase})
		}
	}
	for _, text := range slices.Concat([]any{"ls"}, texts) {
		for _, patch := range patches {
			all := map[string]any{"run": text}
			maps.Copy(all, patch)
			if v, err := trial.NewInput("proposal", all); err == nil {
				values = append(values, v)
			}
		}
	}
	return values
}

// otherInputs are inputs of a point that is not of a proposal.
func (c *comparisons) otherInputs(point string) (values []any) {
	fields := slices.DeleteFunc(slices.Clone(c.fields), func(f field) bool { return f.path[0] == "context" })
	for _, patch := range combine(fields) {
		for _, more := range stepsOf(point, patch) {
			if v, err := trial.NewInput(point, more); err == nil {
				values = append(values, v)
			}
		}
	}
	return values
}

// stepsOf returns patch as it is; for a connection as each step of one that was granted, unless it says which.
func stepsOf(point string, patch map[string]any) []map[string]any {
	if point != "egress" {
		return []map[string]any{patch}
	}
	name, _ := patch["name"].(string)
	if name == "" {
		name = "api.example.com"
	}
	var steps []map[string]any
	for _, step := range []map[string]any{
		{"kind": points.EgressLookup, "protocol": "", "port": 0, "address": ""},
		{"kind": points.EgressConnect, "protocol": "tcp"},
		{"kind": points.EgressHello, "protocol": "tls", "sni": name},
		{"kind": points.EgressRequest, "protocol": "https", "sni": name, "method": "GET", "path": "/"},
	} {
		if kind := patch["kind"]; kind != nil && kind != step["kind"] {
			continue
		}
		step["name"], step["grants"] = name, []any{name}
		maps.Copy(step, patch)
		steps = append(steps, step)
	}
	return steps
}
