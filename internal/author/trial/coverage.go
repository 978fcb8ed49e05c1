// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// ruleCoverage returns the number of tests in which each rule of l held, by file and line.
func (t *trial) ruleCoverage(l policy.Layer) []RuleReport {
	var all []RuleReport
	for _, m := range ParseModules(l) {
		for _, r := range m.Rules {
			at, ok := module.RuleAt(l.Name, r)
			if !ok {
				continue
			}
			d := describeRule(r)
			all = append(all, RuleReport{Layer: l.Name, File: at.File, Line: at.Row, Point: module.PackageOf(m),
				Set:  string(r.Head.Ref()[0].Value.(ast.Var)),
				Rule: d.id, Title: d.title, Tests: len(t.spoken[at])})
		}
	}
	slices.SortStableFunc(all, func(a, b RuleReport) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all
}

// A description is that of a rule from METADATA, or else from its head.
type description struct {
	id, title string
	custom    map[string]any
}

func describeRule(r *ast.Rule) description {
	d := description{id: headID(r)}
	for _, a := range r.Annotations {
		if a.Scope == "package" || a.Scope == "subpackages" {
			continue
		}
		d.title = cmp.Or(d.title, a.Title)
		if a.Custom != nil && d.custom == nil {
			d.custom = a.Custom
		}
		if id, ok := a.Custom["rule"].(string); ok && id != "" {
			d.id = id
		}
	}
	return d
}

// headID is the rule's id if it is literal in its head.
func headID(r *ast.Rule) string {
	if r.Head.Key == nil {
		return ""
	}
	switch v := r.Head.Key.Value.(type) {
	case ast.Object:
		return stringOf(v.Get(ast.StringTerm("rule")))
	case ast.Call:
		// the library's function: its first argument is the id
		if len(v) > 1 && strings.HasSuffix(v[0].Value.String(), "denial") {
			return stringOf(v[1])
		}
	}
	return ""
}

func stringOf(t *ast.Term) string {
	if t == nil {
		return ""
	}
	if s, ok := t.Value.(ast.String); ok {
		return string(s)
	}
	return ""
}
