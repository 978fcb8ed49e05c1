// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// Expires is the code of an exception that is over or soon will be.
const Expires = "lint.expires"

const lintException = "lint.exception" // an exception that does not say whose it is, and why

// soon is how long before its date an exception is reported.
const soon = 14 * 24 * time.Hour

// checkExceptions refuses dates that would not end what the author expects: an invalid one, one
// that OPA does not attach to a single rule, and one on a rule that restricts, whose end
// would allow more.
func (c *checker) checkExceptions(m *ast.Module) {
	for _, a := range m.Annotations {
		for key := range a.Custom {
			c.expiryKey(a, key)
		}
	}
	for _, x := range module.Exceptions(m) {
		if message, hint := c.checkException(m, x); message != "" {
			c.addProblem(x.Rule.Location, module.CodeUnknownKey, message, hint)
		}
	}
}

func (c *checker) expiryKey(a *ast.Annotations, key string) {
	switch {
	case key == module.KeyExpires && a.Scope != "rule":
		c.addProblem(a.Location, module.CodeUnknownKey, "custom.expires applies to one rule, not to a scope",
			"write it in the METADATA of each rule, without scope")
	case key != module.KeyExpires && strings.HasPrefix(strings.ToLower(key), "expir"):
		c.addProblem(a.Location, module.CodeUnknownKey,
			fmt.Sprintf("unknown key %q in METADATA's custom: the rule would never expire", key),
			"write expires: "+c.suggestDate())
	}
}

// suggestDate is an end that is neither over nor soon.
func (c *checker) suggestDate() string { return c.Now.AddDate(0, 3, 0).Format(time.DateOnly) }

// checkException returns what is wrong with x, or "".
func (c *checker) checkException(m *ast.Module, x module.Exception) (message, hint string) {
	switch {
	case x.Date.IsZero():
		return "custom.expires is not a date", "write expires: " + c.suggestDate()
	case x.Rule.Default || x.Rule.Else != nil:
		return "a rule with custom.expires must not be a default or have an else, which would apply instead",
			"write separate rules"
	}
	if c.used == nil {
		c.used = (&linter{Layer: c.Layer, graph: c.graph}).findUses()
	}
	if c.used[c.graph.Packages[m]+module.RuleName(x.Rule)]&narrows != 0 {
		return "custom.expires on a rule that restricts: its end would allow more",
			"write it on a rule that allows, or on one that a denial negates: not excepted"
	}
	return "", ""
}

// findExpiring reports those that are over or soon will be, and those without an owner.
func (x *linter) findExpiring(m *ast.Module) {
	for _, e := range module.Exceptions(m) {
		if e.Owner == "" || e.Reason == "" || e.Ticket == "" {
			x.addProblem(e.Rule.Location, Doubtful, lintException, "an exception needs an owner, a reason and a ticket",
				"write in custom: owner, reason and ticket")
		}
		what := fmt.Sprintf("the exception %s (owner %s, ticket %s)", orNone(e.ID), orNone(e.Owner), orNone(e.Ticket))
		switch left := e.Date.Sub(x.Now); {
		case e.IsOver(x.Now):
			x.addProblem(e.Rule.Location, Doubtful, Expires,
				fmt.Sprintf("%s expired on %s and does not apply", what, e.Until()),
				"remove it, or give it a later date")
		case left <= soon:
			x.addProblem(e.Rule.Location, Doubtful, Expires,
				fmt.Sprintf("%s expires on %s", what, e.Until()),
				"prepare for its end, or give it a later date")
		}
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
