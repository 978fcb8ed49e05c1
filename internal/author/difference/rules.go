// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/lint"
	"github.com/fumehood/fumehood/internal/policy/module"
)

const (
	inOld = "old"
	inNew = "new"
)

// effective are the keys of METADATA's custom that change what a rule does.
var effective = []string{module.KeyMode, module.KeyUntil, module.KeyExpires, module.KeyDigest, module.KeyTextOnly,
	"retry"}

// A digested is a rule with the digest of all that its answer depends on.
type digested struct {
	Rule
	rule   *ast.Rule
	module *ast.Module
	digest string
	effect string // of METADATA
}

// digestRules lists the rules of l that belong to a set with a meaning.
func digestRules(l policy.Layer, in string) (rules []digested) {
	modules := modulesOf(l)
	graph := module.NewGraph(modules)
	for _, f := range l.Files {
		m := modules[f.Name]
		if m == nil {
			continue
		}
		for _, r := range m.Rules {
			at, ok := module.RuleAt(l.Name, r)
			if !ok {
				continue
			}
			effect := effectOf(modules, r)
			rules = append(rules, digested{rule: r, module: m, effect: effect,
				digest: fmt.Sprint(module.PackageOf(m), graph.DigestRule(m, r), effect),
				Rule: Rule{In: in, Point: module.PackageOf(m), Set: module.RuleName(r), ID: lint.IDOf(r),
					File: at.File, Line: at.Row}})
		}
	}
	return rules
}

// modulesOf are the modules of l that decide. policy.New has compiled them.
func modulesOf(l policy.Layer) map[string]*ast.Module {
	modules := map[string]*ast.Module{}
	for _, f := range l.Files {
		if path.Ext(f.Name) != ".rego" || f.IsTest() {
			continue
		}
		if m, err := module.Parse(l.Name, f.Name, f.Content, true); err == nil {
			modules[f.Name] = m
		}
	}
	return modules
}

// effectOf is what METADATA of r, and of all packages, says about what r does.
func effectOf(modules map[string]*ast.Module, r *ast.Rule) string {
	said := map[string]any{}
	add := func(list []*ast.Annotations, scope string) {
		for _, a := range list {
			for _, key := range effective {
				if a.Scope == scope && a.Custom[key] != nil {
					said[scope+" "+key] = fmt.Sprint(a.Custom[key])
				}
			}
		}
	}
	for _, m := range modules {
		for _, a := range m.Annotations {
			add([]*ast.Annotations{a}, "package")
		}
	}
	add(r.Annotations, "rule")
	data, err := json.Marshal(said)
	if err != nil {
		panic("difference: internal error: " + err.Error())
	}
	return string(data)
}

// changedRules are the rules that only one of the versions has. If their data differs, all rules are.
func changedRules(before, after policy.Layer) (changed []digested) {
	was, is := digestRules(before, inOld), digestRules(after, inNew)
	if !bytes.Equal(dataOf(before), dataOf(after)) {
		return append(was, is...)
	}
	return append(withoutThose(was, is), withoutThose(is, was)...)
}

// withoutThose are the rules that others do not have, or have less often.
func withoutThose(rules, others []digested) (own []digested) {
	left := map[string]int{}
	for _, r := range others {
		left[r.digest]++
	}
	for _, r := range rules {
		if left[r.digest]--; left[r.digest] < 0 {
			own = append(own, r)
		}
	}
	return own
}

// dataOf is the content of all data files of l.
func dataOf(l policy.Layer) (all []byte) {
	for _, f := range l.Files {
		if f.HoldsData() {
			all = fmt.Appendf(all, "%q %q\n", f.Name, f.Content)
		}
	}
	return all
}
