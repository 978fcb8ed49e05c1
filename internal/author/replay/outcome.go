// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/terminal"
)

// failures are what FailOn knows.
var failures = map[string]func(Change) bool{
	"any":         func(Change) bool { return true },
	"stricter":    Change.IsStricter,
	"allow->deny": func(c Change) bool { return c.From.Effect == "allow" && c.To.Effect != "allow" },
	"looser":      func(c Change) bool { return !c.IsStricter() },
	"deny->allow": func(c Change) bool { return c.From.Effect == "deny" && c.To.Effect == "allow" },
	"none":        func(Change) bool { return false },
}

// FailOn returns the changes that a name means: any, stricter (or allow->deny), looser
// (or deny->allow) or none; nil for any other name.
func FailOn(name string) func(Change) bool { return failures[name] }

// Speed describes how fast the decisions were made; "" if nothing was measured.
func (o Outcome) Speed() string {
	if o.Took <= 0 {
		return ""
	}
	return fmt.Sprintf("%d decisions in %v: %.0f a second", o.Decisions, o.Took.Round(time.Millisecond),
		float64(o.Decisions)/o.Took.Seconds())
}

// Notes returns a line for each file that is not verified and each item that was not used.
func (p Past) Notes() []string {
	var lines []string
	for _, source := range p.UnverifiedFiles() {
		lines = append(lines, terminal.EscapeLine(source)+": it is not verified")
	}
	for _, l := range p.Left {
		at := l.Source
		if l.ID != "" {
			at += ", proposal " + l.ID
		}
		lines = append(lines, terminal.EscapePart(at, 300)+": left out: "+terminal.EscapePart(l.Why, 300))
	}
	return lines
}

// Write writes o for people: totals, then the changes by what they have in common. Its
// error is w's.
func (o Outcome) Write(w io.Writer) error {
	b := &strings.Builder{}
	o.writeTotals(b)
	o.WriteChanges(b)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteChanges writes the changes by what they have in common, and how much was not decided.
func (o Outcome) WriteChanges(b *strings.Builder) {
	for _, g := range groupChanges(o.Changes) {
		g.writeGroup(b)
	}
	if o.Moot > 0 {
		fmt.Fprintf(b, "\nnot decided: %s of commands that would not run\n", countNoun(o.Moot, "program or connection"))
	}
	if o.Omitted > 0 {
		fmt.Fprintf(b, "\nnot decided: %s that are not recorded in full\n",
			countNoun(o.Omitted, "program or connection"))
	}
}

func (o Outcome) writeTotals(w io.Writer) {
	changed, granted := map[string]int{}, ""
	for _, change := range o.Changes {
		changed[change.Kind]++
	}
	if n := changed[KindGrant]; n > 0 {
		granted = "; " + countNoun(n, "grant") + " would"
	}
	fmt.Fprintf(w, "of %s in %s, %s would change%s%s\n", countNoun(o.Proposals, "proposal"), countNoun(o.Runs, "run"),
		noneOr(changed[KindProposal]), granted, lineEnding(len(o.Changes)))
	if others := changed[KindExec] + changed[KindEgress]; o.Execs+o.Egress > 0 {
		fmt.Fprintf(w, "of %s and %s, %s would change%s\n", countNoun(o.Execs, "program"),
			countNoun(o.Egress, "step")+" of connections", noneOr(others), lineEnding(others))
	}
}

func countNoun(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if rest, ok := strings.CutPrefix(what, "program or "); ok {
		return fmt.Sprintf("%d programs or %ss", n, rest)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func noneOr(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func lineEnding(changes int) string {
	if changes == 0 {
		return ""
	}
	return ":"
}

// A group is changes of one kind, from one effect to another, by one rule.
type group struct {
	kind, from, to, rule, message string
	stricter                      bool
	changes                       []Change
}

// groupChanges puts what becomes stricter first, and the largest groups first.
func groupChanges(changes []Change) []group {
	var groups []group
	for _, c := range changes {
		rule := c.To.Rule
		if !c.IsStricter() {
			rule = c.From.Rule
		}
		if c.Kind == KindGrant {
			rule = c.From.Message + " → " + c.To.Message
		}
		i := slices.IndexFunc(groups, func(g group) bool {
			return g.kind == c.Kind && g.from == c.From.Effect && g.to == c.To.Effect && g.rule == rule
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{c.Kind, c.From.Effect, c.To.Effect, rule, c.To.Message, c.IsStricter(), nil})
		}
		groups[i].changes = append(groups[i].changes, c)
	}
	slices.SortStableFunc(groups, func(a, b group) int {
		switch {
		case a.stricter != b.stricter && a.stricter:
			return -1
		case a.stricter != b.stricter:
			return 1
		}
		return cmp.Compare(len(b.changes), len(a.changes))
	})
	return groups
}

// maxShown bounds the different commands that are shown of one group; --json has all.
const maxShown = 20

func (g group) writeGroup(w io.Writer) {
	by := "by"
	if !g.stricter {
		by = "no longer by"
	}
	if g.kind == KindGrant {
		fmt.Fprintf(w, "\n%s: %s", countNoun(len(g.changes), g.kind), terminal.EscapePart(g.rule, 400))
	} else {
		fmt.Fprintf(w, "\n%s %s → %s, %s %s", countNoun(len(g.changes), g.kind), g.from, g.to, by,
			terminal.EscapePart(g.rule, 100))
	}
	if g.kind != KindGrant && g.stricter && g.message != "" {
		fmt.Fprintf(w, " (%s)", terminal.EscapePart(g.message, 200))
	}
	fmt.Fprintln(w)
	type command struct {
		text, at string
		times    int
	}
	var list []command
	at := map[string]int{}
	for _, c := range g.changes {
		if i, known := at[c.Text]; known {
			list[i].times += c.Times
			continue
		}
		at[c.Text] = len(list)
		list = append(list, command{c.Text, strings.TrimSpace(c.Run + " " + c.ID), c.Times})
	}
	for i, t := range list {
		if i == maxShown {
			fmt.Fprintf(w, "  and %d more: --json shows them\n", len(list)-i)
			break
		}
		times := ""
		if t.times > 1 {
			times = fmt.Sprintf(", %d times", t.times)
		}
		fmt.Fprintf(w, "  %s\n      %s%s\n",
			terminal.EscapePart(strings.ReplaceAll(strings.TrimSpace(t.text), "\n", "⏎ "), 200),
			terminal.EscapePart(t.at, 120), times)
	}
}
