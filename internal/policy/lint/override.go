// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// VoidOverride is the code of an override whose shipped rule has changed since it was written.
const VoidOverride = "lint.override"

// ruleDigest matches a digest as module.MarkRules makes them, with its algorithm.
var ruleDigest = pattern.New(`^sha256:[0-9a-f]{12}$`)

// checkOverrides refuses overrides of a layer that must not relax, of rules that there are not or that nothing
// relaxes, and those that do not say for whom, why, how long and for which rule they were written.
func (c *checker) checkOverrides(m *ast.Module) {
	for _, o := range module.Overrides(m) {
		if message, hint := c.checkOverride(o); message != "" {
			c.addProblem(o.Rule.Location, module.CodeOverride, message, hint)
		}
	}
}

// checkOverride returns what is wrong with o, or "".
func (c *checker) checkOverride(o module.Override) (message, hint string) {
	if !c.Allows || c.Grants {
		return "only the policy of an organization may override rules of the shipped policy",
			"pass the directory with --organization, or remove the rule"
	}
	if o.ID == "" || o.Effect != "allow" && o.Effect != "ask" || o.Rule.Default || o.Rule.Else != nil {
		return "an override names one rule and one effect, as constants",
			`write override contains {"rule": "judged.verb", "effect": "ask"} if {…}; the effect is ask or allow`
	}
	if o.Effect == "ask" && o.Point == module.PointExec {
		return "no person can be asked when a program starts", `write "effect": "allow", or remove the override`
	}
	marks := c.Marks()
	mark, elsewhere := module.MarkOf(marks, o.Point, o.ID)
	switch {
	case mark == "" && elsewhere != nil:
		return fmt.Sprintf("the rule %q of the shipped policy is not in %s", o.ID, o.Point),
			"move the override to package " + strings.Join(elsewhere, " or ")
	case mark == "":
		return fmt.Sprintf("the shipped policy has no rule %q in %s", o.ID, o.Point),
			cmp.Or(module.SuggestName(o.ID, module.MarkedIDs(marks, o.Point)), "list its rules: fumehood policy docs")
	case mark == module.Floor:
		return fmt.Sprintf("nothing overrides the rule %q: it is of the floor", o.ID),
			"remove the override: policies/RULES.md marks these rules"
	}
	var lacks []string
	for _, text := range [][2]string{{"owner", o.Owner}, {"reason", o.Reason}, {"ticket", o.Ticket}} {
		if strings.TrimSpace(text[1]) == "" {
			lacks = append(lacks, text[0])
		}
	}
	if o.Date.IsZero() {
		lacks = append(lacks, "expires: "+c.suggestDate())
	}
	if !ruleDigest.MatchString(o.Digest) {
		lacks = append(lacks, "digest: sha256:"+mark)
	}
	if lacks != nil {
		return "an override needs METADATA of its own with owner, reason, ticket, expires and digest",
			"write in custom: " + strings.Join(lacks, ", ")
	}
	return "", ""
}

// IsVoid reports whether the shipped rule of o is not the one for which it was written.
func IsVoid(o module.Override, marks map[string]string) bool {
	mark, _ := module.MarkOf(marks, o.Point, o.ID)
	return o.Digest != "sha256:"+mark
}

// findVoidOverrides reports overrides whose shipped rule has changed.
func (x *linter) findVoidOverrides(m *ast.Module) {
	for _, o := range module.Overrides(m) {
		mark, _ := module.MarkOf(x.Marks(), o.Point, o.ID)
		if mark == "" || mark == module.Floor || !ruleDigest.MatchString(o.Digest) || !IsVoid(o, x.Marks()) {
			continue // checkOverrides refuses it, or it is in force
		}
		x.addProblem(o.Rule.Location, Wrong, VoidOverride,
			fmt.Sprintf("the override of %s (owner %s, ticket %s) has no effect: the rule has changed since it was written",
				o.ID, orNone(o.Owner), orNone(o.Ticket)),
			"read the rule again, then write digest: sha256:"+mark)
	}
}
