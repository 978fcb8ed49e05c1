// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"path"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// ofFloor are the rules that apply whatever the layers say.
var ofFloor = []string{"default.no-rule", "egress.no-rule", "egress.secret", "env.name", "exec.no-rule", "floor.",
	"network.none", "output.", "trigger.no-rule"}

// reportUnknownRule reports that no rule has this id. Such a rule never holds, so "must not hold"
// would always pass. A layer with a rule whose id cannot be read may have any id.
func (t *trial) reportUnknownRule(id string) (message, hint string) {
	known, all := t.ruleIDs()
	if !all || slices.ContainsFunc(known, func(k string) bool {
		return module.CoversID(k, id) || module.CoversID(id, k)
	}) {
		return "", ""
	}
	return "unknown rule " + id + ": that it did not hold proves nothing", module.SuggestName(id, known)
}

// ruleIDs are the ids of the rules of all layers, and whether all could be read.
func (t *trial) ruleIDs() ([]string, bool) {
	if t.known != nil {
		return t.known, t.readable
	}
	t.known, t.readable = slices.Clone(ofFloor), true
	shipped, err := policy.ShippedLayer()
	for _, l := range slices.Concat(t.Tried, t.Beside, []policy.Layer{shipped}) {
		for _, f := range l.Files {
			if !f.IsTest() && path.Ext(f.Name) == ".rego" {
				t.readable = t.readIDs(l, f) && t.readable
			}
		}
	}
	t.readable = t.readable && err == nil
	return t.known, t.readable
}

func (t *trial) readIDs(l policy.Layer, f policy.File) bool {
	m, err := module.Parse(l.Name, f.Name, f.Content, true)
	if err != nil {
		return false
	}
	all := true
	for _, r := range m.Rules {
		if _, means := module.RuleAt(l.Name, r); !means {
			continue
		}
		d := describeRule(r)
		t.known = append(t.known, d.id, headID(r))
		all = all && (d.id != "" || slices.Contains(silent, string(r.Head.Ref()[0].Value.(ast.Var))))
	}
	t.known = slices.DeleteFunc(t.known, func(id string) bool { return id == "" })
	return all
}
