// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/lint"
	"github.com/fumehood/fumehood/internal/policy/module"
)

const (
	inOld = "old"
	inNew = "new"
)

// effective are the keys of METADATA's custom that change what the rule below it does, besides text_only.
var effective = []string{module.KeyMode, module.KeyUntil, module.KeyExpires, module.KeyDigest, "retry"}

// A digested is a rule with the digest of all that its answer depends on.
type digested struct {
	Rule
	rule   *ast.Rule
	module *ast.Module
	graph  *module.Graph // of its layer
	digest string
	effect string // of METADATA
}

// digestRules lists the rules of l that belong to a set with a meaning.
func digestRules(l policy.Layer, in string) (rules []digested) {
	modules := trial.ParseModules(l)
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
			rules = append(rules, digested{rule: r, module: m, graph: graph, effect: effect,
				digest: fmt.Sprint(module.PackageOf(m), graph.DigestRule(m, r), effect),
				Rule: Rule{In: in, Point: module.PackageOf(m), Set: module.RuleName(r), ID: lint.IDOf(r),
					File: at.File, Line: at.Row}})
		}
	}
	return rules
}

// effectOf is what METADATA says about what r does: its own, that of packages, the ends of rules that are in no set,
// which r may use, and what is text_only by the id of r.
func effectOf(modules map[string]*ast.Module, r *ast.Rule) string {
	said := map[string]bool{}
	add := func(a *ast.Annotations, about string) {
		for _, key := range effective {
			if a.Custom[key] != nil {
				said[fmt.Sprint(about, " ", key, " ", a.Custom[key])] = true
			}
		}
	}
	for _, m := range modules {
		for _, a := range m.Annotations {
			if a.Scope == "package" {
				add(a, "package "+module.PackageOf(m))
			}
			if id, _ := a.Custom["rule"].(string); a.Custom[module.KeyTextOnly] == true &&
				(a.Scope == "package" || isAbout(id, lint.IDOf(r)) || isAbout(lint.IDOf(r), id)) {
				said[module.KeyTextOnly+" "+id] = true
			}
		}
		for _, other := range m.Rules {
			if _, inSet := module.RuleAt("", other); !inSet {
				for _, a := range other.Annotations {
					add(a, "rule "+module.RuleName(other))
				}
			}
		}
	}
	for _, a := range r.Annotations {
		add(a, a.Scope)
	}
	return strings.Join(slices.Sorted(maps.Keys(said)), "\n")
}

// isAbout reports whether METADATA of an id, which may be a prefix, is about a rule with another one. An id that is not
// known may be any.
func isAbout(id, of string) bool {
	return id == "" || module.CoversID(id, of)
}

// changedRules are the rules that only one of the versions has. If their data differs, all rules are.
func changedRules(before, after policy.Layer) (changed []digested) {
	was, is := digestRules(before, inOld), digestRules(after, inNew)
	if !bytes.Equal(dataOf(before), dataOf(after)) {
		return append(was, is...)
	}
	return append(withoutThose(was, is), withoutThose(is, was)...)
}

// setOptions is the set of options that a layer adds.
const setOptions = "options"

// pointFacts is the point of a Rule that is no rule, but something that a layer adds to places or options.
const pointFacts = "data." + module.OwnPackage

// changedFacts are the additions to places and options that only one of the versions has.
func changedFacts(before, after policy.Layer) (changed []Rule, err error) {
	was, err := before.AddedFacts()
	if err != nil {
		return nil, err
	}
	is, err := after.AddedFacts()
	for in, list := range map[string][2][]policy.AddedFact{inOld: {was, is}, inNew: {is, was}} {
		for _, f := range list[0] {
			if slices.Contains(list[1], f) {
				continue
			}
			r := Rule{In: in, Point: pointFacts, Set: f.Set, ID: f.Text}
			if f.Set == setOptions {
				r.ID = "(text)"
			}
			changed = append(changed, r)
		}
	}
	slices.SortFunc(changed, func(a, b Rule) int { return strings.Compare(b.In+a.Set+a.ID, a.In+b.Set+b.ID) })
	return changed, err
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

// dataOf is the data that rules of l read. An error of it is one of newSide, before this.
func dataOf(l policy.Layer) []byte {
	data, _ := l.RuleData()
	text, _ := json.Marshal(data)
	return text
}
