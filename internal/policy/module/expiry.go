// SPDX-License-Identifier: Apache-2.0

package module

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// KeyExpires is the key of METADATA's custom with the date from which on a rule does not
// apply.
const KeyExpires = "expires"

// An Exception is a rule that expires.
type Exception struct {
	Rule *ast.Rule
	// Date is the start of the day, in UTC, from which on the rule does not apply. It is
	// zero if the rule has an invalid one.
	Date time.Time
	// ID, Owner, Reason and Ticket are texts of METADATA's custom, or "".
	ID, Owner, Reason, Ticket string
}

// Exceptions are the rules of m that expire. m must be parsed with METADATA.
func Exceptions(m *ast.Module) []Exception {
	var all []Exception
	for _, r := range m.Rules {
		for _, a := range r.Annotations {
			if _, ok := a.Custom[KeyExpires]; ok {
				all = append(all, exceptionOf(r, a))
			}
		}
	}
	return all
}

func exceptionOf(r *ast.Rule, a *ast.Annotations) Exception {
	text := func(key string) string { s, _ := a.Custom[key].(string); return s }
	return Exception{r, dateOf(a.Custom[KeyExpires]), text("rule"), text("owner"), text("reason"), text("ticket")}
}

// Until is the day from which on x does not apply.
func (x Exception) Until() string { return x.Date.Format(time.DateOnly) }

// dateOf reads a date of YAML, or a string like 2026-12-31. Anything else is the zero time.
func dateOf(value any) time.Time {
	if t, ok := value.(time.Time); ok && t.Equal(t.Truncate(24*time.Hour)) {
		return t
	}
	t, _ := time.Parse(time.DateOnly, fmt.Sprint(value))
	return t
}

// IsOver reports whether x does not apply at now.
func (x Exception) IsOver(now time.Time) bool { return !now.Before(x.Date) }

// DisableExpired makes the exceptions in modules that are over at now hold never. The names of the
// rules remain, so that others may refer to them.
func DisableExpired(modules map[string]*ast.Module, now time.Time) {
	for _, m := range modules {
		for _, x := range Exceptions(m) {
			if x.IsOver(now) {
				x.disableRule(m)
			}
		}
	}
}

// disableRule adds a false condition to x's rule, and to the further bodies that follow it,
// {…} {…}, which the parser makes rules without METADATA.
func (x Exception) disableRule(m *ast.Module) {
	for i, r := range m.Rules[slices.Index(m.Rules, x.Rule):] {
		if i > 0 && !bytes.HasPrefix(r.Location.Text, []byte("{")) {
			return
		}
		disableBody(r)
	}
}

// disableBody adds a false condition to r.
func disableBody(r *ast.Rule) {
	never := ast.NewExpr(ast.BooleanTerm(false).SetLocation(r.Location)).SetLocation(r.Location)
	r.Body = ast.NewBody(append([]*ast.Expr{never}, r.Body...)...)
}
