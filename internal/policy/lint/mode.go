// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// checkModes refuses modes that would not do what they say: another word, no date, METADATA that OPA does not
// attach to one rule or one package, and a rule whose answers cannot be recorded in place of having an
// effect.
func (c *checker) checkModes(m *ast.Module) {
	check := func(a *ast.Annotations, set string) {
		if a.Custom[module.KeyMode] == nil && a.Custom[module.KeyUntil] == nil {
			return
		}
		if message, hint := c.modeProblem(a, set); message != "" {
			c.addProblem(a.Location, module.CodeMode, message, hint)
		}
	}
	for _, a := range m.Annotations {
		if a.Scope != "rule" {
			check(a, "")
		}
	}
	for _, r := range m.Rules {
		set := module.RuleName(r)
		if !slices.Contains(module.Sets(module.PackageOf(m)), set) {
			set = ""
		}
		for _, a := range r.Annotations {
			if a.Scope == "rule" {
				check(a, set)
			}
		}
	}
}

// modeProblem returns what is wrong with the mode in a, or "". set is that of its rule, or "".
func (c *checker) modeProblem(a *ast.Annotations, set string) (message, hint string) {
	write := "write mode: observe and until: " + c.suggestDate() + ", or remove both"
	mode, until, valid := module.ModeOf(a)
	switch {
	case a.Custom[module.KeyMode] == nil:
		return "custom.until without custom.mode", write
	case mode != module.ModeObserve && mode != module.ModeEnforce:
		return fmt.Sprintf("invalid custom.mode %q", fmt.Sprint(a.Custom[module.KeyMode])), write
	case mode == module.ModeObserve && until.IsZero():
		return "custom.mode: observe needs until, a date from which on the rule enforces", write
	case !valid:
		return "custom.mode: enforce has no end", "remove until"
	case a.Scope == "package" && a.Custom["rule"] != nil:
		return "custom.mode above package is about all rules of the package, and custom.rule about one",
			"move the METADATA below package, directly above the rule, or remove rule"
	case a.Scope == "package" && c.Grants:
		return "a package of the policy that grants cannot be observed: without it nothing would be allowed",
			"write the mode above each rule, or observe the whole policy with --observe"
	case a.Scope == "package":
		return "", ""
	case a.Scope != "rule":
		return "custom.mode is about one rule or one package, not about a scope",
			"write it in the METADATA of each rule, without scope"
	case !module.IsObservable(set):
		return "custom.mode is for rules of deny, ask and limits", "remove it, or write it above such a rule"
	}
	return "", ""
}

// findEndingModes reports the rules that are observed no more, or soon will enforce.
func (x *linter) findEndingModes(m *ast.Module) {
	for _, a := range m.Annotations {
		mode, until, valid := module.ModeOf(a)
		if !valid || mode != module.ModeObserve {
			continue
		}
		what := "the package " + module.PackageOf(m)
		if a.Scope != "package" {
			what = "the rule " + orNone(customRule(a))
		}
		switch left := until.Sub(x.Now); {
		case left <= 0:
			x.addProblem(a.Location, Doubtful, Expires,
				fmt.Sprintf("%s was observed until %s and enforces now", what, until.Format(time.DateOnly)),
				"remove mode and until, or give it a later date")
		case left <= soon:
			x.addProblem(a.Location, Doubtful, Expires,
				fmt.Sprintf("%s is observed until %s and enforces from then on", what, until.Format(time.DateOnly)),
				"prepare for it, or give it a later date")
		}
	}
}
