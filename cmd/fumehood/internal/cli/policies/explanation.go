// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/explain"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An explanationStyle selects the format of an explanation.
type explanationStyle struct {
	deep  bool // for a denial: rules that nearly matched, and literal ways to write the command
	color bool
}

// renderExplanation writes x like a compiler's diagnostics: the text, a caret under the relevant
// part, the reason, and what to do. Untrusted text is escaped.
func renderExplanation(x explain.Explanation, o explanationStyle) string {
	return pen{o.color}.explanationText(x, o.deep)
}

// writeExplanations writes all to w, with an empty line between two.
func writeExplanations(w io.Writer, all []explain.Explanation, o explanationStyle) error {
	for i, x := range all {
		between := ""
		if i > 0 {
			between = "\n"
		}
		if _, err := fmt.Fprint(w, between, renderExplanation(x, o)); err != nil {
			return err
		}
	}
	return nil
}

// A pen adds colors to text, if they are on.
type pen struct{ color bool }

// Colors, by purpose.
const (
	red, green, yellow, blue, faint, strong = "31;1", "32;1", "33;1", "34;1", "2", "1"
)

func (p pen) colorText(color, text string) string {
	if !p.color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

var effectColors = map[proposal.Effect]string{proposal.Deny: red, proposal.Ask: yellow, proposal.Allow: green}

func (p pen) effectText(e proposal.Effect) string { return p.colorText(effectColors[e], e.String()) }

// Bounds of what is shown of one decision.
const (
	maxReasons = 6
	maxColumns = 100
)

func (p pen) explanationText(x explain.Explanation, deep bool) string {
	var b strings.Builder
	first, _, more := strings.Cut(cmp.Or(x.Source, x.Text, x.ID), "\n")
	if first = clipText(terminal.EscapeLine(first), maxColumns); more {
		first += " …"
	}
	fmt.Fprintf(&b, "%s  %s\n", p.effectText(x.Decision.Effect), p.colorText(strong, first))
	for i, r := range x.Decision.Reasons {
		if i == maxReasons {
			fmt.Fprintf(&b, "\nand %d more reasons: see --json\n", len(x.Decision.Reasons)-i)
			break
		}
		b.WriteString("\n" + p.reasonText(x, r))
	}
	if deep {
		b.WriteString(p.nearRules(x) + p.rewriteLines(x))
	}
	if spoke := p.heldRules(x, deep); spoke != "" {
		b.WriteString("\n" + spoke)
	}
	if g := x.Decision.Grant; g != nil {
		b.WriteString("\n" + p.grantText(*g))
	}
	for _, note := range x.Notes {
		fmt.Fprintf(&b, "\n%s %s\n", p.colorText(yellow, "note:"), terminal.EscapeLine(note))
	}
	return b.String()
}

// reasonText is one diagnostic.
func (p pen) reasonText(x explain.Explanation, r proposal.Reason) string {
	var b strings.Builder
	says := r.Effect.String()
	if r.Observed {
		says = "observed, would " + says
	}
	fmt.Fprintf(&b, "%s%s %s\n", p.colorText(effectColors[r.Effect], says),
		p.colorText(strong, "["+terminal.EscapeLine(r.Rule)+"]:"), p.colorText(strong, terminal.EscapeLine(r.Message)))
	gutter := p.drawSnippet(&b, x.Source, r.Span)
	note := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s%s %s: %s\n", gutter, p.colorText(blue, "="), p.colorText(strong, name), text)
		}
	}
	note("instead", terminal.EscapeLine(r.Suggestion))
	for i, text := range r.Alternatives {
		if i == 0 {
			note("allowed", p.colorText(green, clipText(terminal.EscapeLine(text), maxColumns)))
		} else {
			fmt.Fprintf(&b, "%s           %s\n", gutter,
				p.colorText(green, clipText(terminal.EscapeLine(text), maxColumns)))
		}
	}
	note("retry", retries[r.Retry])
	note("severity", terminal.EscapeLine(r.Severity))
	note("category", terminal.EscapeLine(r.Category))
	note("rule", p.ruleLocations(x, r))
	return b.String()
}

var retries = map[proposal.Retry]string{
	proposal.RetryVary:      "vary (it may be allowed if written differently)",
	proposal.RetryNever:     "never (rewriting it does not help)",
	proposal.RetryApproval:  "approval (a person must approve it)",
	proposal.RetryTransient: "transient (try the same again later)",
}

// ruleLocations returns the rules that gave r.
func (p pen) ruleLocations(x explain.Explanation, r proposal.Reason) string {
	var places []string
	title := ""
	for _, s := range x.Held {
		fits := module.CoversID(s.Rule, r.Rule)
		if !fits || s.Command != r.Command || s.Set == "allow" || s.Layer != r.Layer && r.Layer != "" {
			continue
		}
		title = cmp.Or(title, s.Title)
		if at := placeOf(s); !slices.Contains(places, at) && len(places) < 3 {
			places = append(places, at)
		}
	}
	if len(places) == 0 {
		if r.Layer == policy.LayerFloor {
			return "the floor, which applies whatever policies say"
		}
		return terminal.EscapeLine(r.Layer)
	}
	if title != "" {
		title = " — " + terminal.EscapeLine(title)
	}
	return p.colorText(faint, strings.Join(places, ", ")) + title
}

// placeOf is the place of a rule, in the form that editors read, after its layer's name.
func placeOf(s explain.HeldRule) string {
	switch {
	case s.Policy == s.Layer:
		return terminal.EscapeLine(fmt.Sprintf("%s %s:%d", s.Layer, s.File, s.Line))
	case strings.Contains(s.Policy, ":"): // not a directory
		return terminal.EscapeLine(fmt.Sprintf("%s %s %s:%d", s.Layer, s.Policy, s.File, s.Line))
	}
	return terminal.EscapeLine(fmt.Sprintf("%s %s:%d", s.Layer, path.Join(s.Policy, s.File), s.Line))
}

// drawSnippet draws the line of text that contains span, with a caret under it, and returns the
// gutter for the next lines.
func (p pen) drawSnippet(b *strings.Builder, text string, span *proposal.Span) string {
	if span == nil || span.Start < 0 || span.End < span.Start || span.End > len(text) {
		return "  "
	}
	from := strings.LastIndexByte(text[:span.Start], '\n') + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	start := span.Start - from
	end := min(span.End-from, len(line))
	before, marked, after := terminal.EscapeLine(line[:start]), terminal.EscapeLine(line[start:max(start, end)]),
		terminal.EscapeLine(line[max(start, end):])
	if over := textWidth(before) - maxColumns/2; over > 0 && textWidth(before)+textWidth(marked) > maxColumns {
		before = "…" + string([]rune(before)[over+1:])
	}
	marked = clipText(marked, maxColumns)
	after = clipText(after, max(0, maxColumns-textWidth(before)-textWidth(marked)))
	number := fmt.Sprint(span.Line)
	gutter := strings.Repeat(" ", len(number)+1)
	fmt.Fprintf(b, "%s%s\n", gutter, p.colorText(blue, "|"))
	fmt.Fprintf(b, "%s %s%s%s\n", p.colorText(blue, number+" |"), before, marked, after)
	fmt.Fprintf(b, "%s%s %s%s\n", gutter, p.colorText(blue, "|"), strings.Repeat(" ", textWidth(before)),
		p.colorText(red, strings.Repeat("^", max(1, textWidth(marked)))))
	return gutter
}

func textWidth(s string) int { return len([]rune(s)) }

func clipText(s string, most int) string {
	if textWidth(s) <= most {
		return s
	}
	if most < 1 {
		return ""
	}
	return string([]rune(s)[:most-1]) + "…"
}

// nearRules lists the rules that would have allowed a command.
func (p pen) nearRules(x explain.Explanation) string {
	var b strings.Builder
	shown := map[string]bool{}
	for _, n := range x.Near {
		fmt.Fprintf(&b, "\n%s %s%s\n", p.colorText(blue, "nearly"),
			p.colorText(strong, "["+terminal.EscapeLine(n.Rule)+"]"), titleSuffix(n.Title))
		fmt.Fprintf(&b, "  %s\n", p.colorText(faint, placeOf(n.HeldRule)))
		for _, f := range n.Failed {
			fmt.Fprintf(&b, "  %s does not hold: %s\n",
				p.colorText(faint, terminal.EscapeLine(fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Col))),
				p.colorText(strong, terminal.EscapeLine(f.Text)))
			for _, v := range f.Values {
				fmt.Fprintf(&b, "    %s is %s\n", terminal.EscapeLine(v.Path), terminal.EscapeLine(v.Value))
			}
		}
		for _, text := range n.Examples {
			if shown[text] {
				continue
			}
			shown[text] = true
			fmt.Fprintf(&b, "  it allows: %s\n", p.colorText(green, clipText(terminal.EscapeLine(text), maxColumns)))
		}
	}
	return b.String()
}

func titleSuffix(title string) string {
	if title == "" {
		return ""
	}
	return " " + terminal.EscapeLine(title)
}

func (p pen) rewriteLines(x explain.Explanation) string {
	var b strings.Builder
	for _, w := range x.Rewrites {
		fmt.Fprintf(&b, "\n%s %s\n", p.colorText(blue, "plainly:"), w.Hint)
		if w.After != "" {
			fmt.Fprintf(&b, "  %s\n", p.colorText(green, clipText(terminal.EscapeLine(w.After), maxColumns)))
		}
	}
	return b.String()
}

// heldRules lists the rules that held. An explanation of a denial has already listed the ones
// that count.
func (p pen) heldRules(x explain.Explanation, deep bool) string {
	if deep && x.Decision.Effect != proposal.Allow || len(x.Held) == 0 {
		return ""
	}
	rows := make([][3]string, len(x.Held))
	var wide [2]int
	for i, s := range x.Held {
		rows[i] = [3]string{s.Set, terminal.EscapeLine(cmp.Or(s.Rule, "–")), placeOf(s) + dashedTitle(s.Title)}
		for j := range wide {
			wide[j] = max(wide[j], textWidth(rows[i][j]))
		}
	}
	var b strings.Builder
	fmt.Fprintln(&b, "rules that held:")
	for _, r := range rows {
		fmt.Fprintf(&b, "  %s  %s  %s\n", padText(r[0], wide[0]), padText(r[1], wide[1]), r[2])
	}
	return b.String()
}

func dashedTitle(title string) string {
	if title == "" {
		return ""
	}
	return " — " + terminal.EscapeLine(title)
}

func padText(s string, to int) string { return s + strings.Repeat(" ", max(0, to-textWidth(s))) }

func (p pen) grantText(g proposal.Grant) string {
	l := g.Limits
	s := fmt.Sprintf("grant: %s, %g cpus, %s memory, %d processes, %s disk, %s output", l.Wall, l.CPUs, l.Memory,
		l.Pids, l.Disk, l.Output)
	for _, more := range []struct {
		name string
		list []string
	}{{"hosts", g.Network}, {"programs", g.Exec}} {
		if len(more.list) > 0 {
			s += "; " + more.name + " " + terminal.EscapeLine(strings.Join(more.list, ", "))
		}
	}
	return s + "\n"
}
