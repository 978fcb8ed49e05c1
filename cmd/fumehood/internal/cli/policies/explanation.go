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
	return pen{o.color}.explanation(x, o.deep)
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

func (p pen) in(color, text string) string {
	if !p.color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

var effectColors = map[proposal.Effect]string{proposal.Deny: red, proposal.Ask: yellow, proposal.Allow: green}

func (p pen) effect(e proposal.Effect) string { return p.in(effectColors[e], e.String()) }

// Bounds of what is shown of one decision.
const (
	maxReasons = 6
	maxColumns = 100
)

func (p pen) explanation(x explain.Explanation, deep bool) string {
	var b strings.Builder
	first, _, more := strings.Cut(cmp.Or(x.Source, x.Text, x.ID), "\n")
	if first = clip(terminal.Line(first), maxColumns); more {
		first += " …"
	}
	fmt.Fprintf(&b, "%s  %s\n", p.effect(x.Decision.Effect), p.in(strong, first))
	for i, r := range x.Decision.Reasons {
		if i == maxReasons {
			fmt.Fprintf(&b, "\nand %d more reasons: see --json\n", len(x.Decision.Reasons)-i)
			break
		}
		b.WriteString("\n" + p.reason(x, r))
	}
	if deep {
		b.WriteString(p.near(x) + p.rewrites(x))
	}
	if spoke := p.spoke(x, deep); spoke != "" {
		b.WriteString("\n" + spoke)
	}
	if g := x.Decision.Grant; g != nil {
		b.WriteString("\n" + p.grant(*g))
	}
	for _, note := range x.Notes {
		fmt.Fprintf(&b, "\n%s %s\n", p.in(yellow, "note:"), terminal.Line(note))
	}
	return b.String()
}

// reason is one diagnostic.
func (p pen) reason(x explain.Explanation, r proposal.Reason) string {
	var b strings.Builder
	says := r.Effect.String()
	if r.Observed {
		says = "observed, would " + says
	}
	fmt.Fprintf(&b, "%s%s %s\n", p.in(effectColors[r.Effect], says), p.in(strong, "["+terminal.Line(r.Rule)+"]:"), p.in(strong, terminal.Line(r.Message)))
	gutter := p.snippet(&b, x.Source, r.Span)
	note := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s%s %s: %s\n", gutter, p.in(blue, "="), p.in(strong, name), text)
		}
	}
	note("instead", terminal.Line(r.Suggestion))
	for i, text := range r.Alternatives {
		if i == 0 {
			note("allowed", p.in(green, clip(terminal.Line(text), maxColumns)))
		} else {
			fmt.Fprintf(&b, "%s           %s\n", gutter, p.in(green, clip(terminal.Line(text), maxColumns)))
		}
	}
	note("retry", retries[r.Retry])
	note("severity", terminal.Line(r.Severity))
	note("category", terminal.Line(r.Category))
	note("rule", p.where(x, r))
	return b.String()
}

var retries = map[proposal.Retry]string{
	proposal.RetryVary:      "vary (it may be allowed if written differently)",
	proposal.RetryNever:     "never (rewriting it does not help)",
	proposal.RetryApproval:  "approval (a person must approve it)",
	proposal.RetryTransient: "transient (try the same again later)",
}

// where returns the rules that gave r.
func (p pen) where(x explain.Explanation, r proposal.Reason) string {
	var places []string
	title := ""
	for _, s := range x.Held {
		fits := s.Rule == r.Rule || strings.HasSuffix(s.Rule, ".") && strings.HasPrefix(r.Rule, s.Rule)
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
		return terminal.Line(r.Layer)
	}
	if title != "" {
		title = " — " + terminal.Line(title)
	}
	return p.in(faint, strings.Join(places, ", ")) + title
}

// placeOf is the place of a rule, in the form that editors read, after its layer's name.
func placeOf(s explain.HeldRule) string {
	switch {
	case s.Policy == s.Layer:
		return terminal.Line(fmt.Sprintf("%s %s:%d", s.Layer, s.File, s.Line))
	case strings.Contains(s.Policy, ":"): // not a directory
		return terminal.Line(fmt.Sprintf("%s %s %s:%d", s.Layer, s.Policy, s.File, s.Line))
	}
	return terminal.Line(fmt.Sprintf("%s %s:%d", s.Layer, path.Join(s.Policy, s.File), s.Line))
}

// snippet draws the line of text that contains span, with a caret under it, and returns the
// gutter for the next lines.
func (p pen) snippet(b *strings.Builder, text string, span *proposal.Span) string {
	if span == nil || span.Start < 0 || span.End < span.Start || span.End > len(text) {
		return "  "
	}
	from := strings.LastIndexByte(text[:span.Start], '\n') + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	start := span.Start - from
	end := min(span.End-from, len(line))
	before, marked, after := terminal.Line(line[:start]), terminal.Line(line[start:max(start, end)]), terminal.Line(line[max(start, end):])
	if over := width(before) - maxColumns/2; over > 0 && width(before)+width(marked) > maxColumns {
		before = "…" + string([]rune(before)[over+1:])
	}
	marked = clip(marked, maxColumns)
	after = clip(after, max(0, maxColumns-width(before)-width(marked)))
	number := fmt.Sprint(span.Line)
	gutter := strings.Repeat(" ", len(number)+1)
	fmt.Fprintf(b, "%s%s\n", gutter, p.in(blue, "|"))
	fmt.Fprintf(b, "%s %s%s%s\n", p.in(blue, number+" |"), before, marked, after)
	fmt.Fprintf(b, "%s%s %s%s\n", gutter, p.in(blue, "|"), strings.Repeat(" ", width(before)), p.in(red, strings.Repeat("^", max(1, width(marked)))))
	return gutter
}

func width(s string) int { return len([]rune(s)) }

func clip(s string, most int) string {
	if width(s) <= most {
		return s
	}
	if most < 1 {
		return ""
	}
	return string([]rune(s)[:most-1]) + "…"
}

// near lists the rules that would have allowed a command.
func (p pen) near(x explain.Explanation) string {
	var b strings.Builder
	shown := map[string]bool{}
	for _, n := range x.Near {
		fmt.Fprintf(&b, "\n%s %s%s\n", p.in(blue, "nearly"), p.in(strong, "["+terminal.Line(n.Rule)+"]"), titled(n.Title))
		fmt.Fprintf(&b, "  %s\n", p.in(faint, placeOf(n.HeldRule)))
		for _, f := range n.Failed {
			fmt.Fprintf(&b, "  %s does not hold: %s\n", p.in(faint, terminal.Line(fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Col))), p.in(strong, terminal.Line(f.Text)))
			for _, v := range f.Values {
				fmt.Fprintf(&b, "    %s is %s\n", terminal.Line(v.Path), terminal.Line(v.Value))
			}
		}
		for _, text := range n.Examples {
			if shown[text] {
				continue
			}
			shown[text] = true
			fmt.Fprintf(&b, "  it allows: %s\n", p.in(green, clip(terminal.Line(text), maxColumns)))
		}
	}
	return b.String()
}

func titled(title string) string {
	if title == "" {
		return ""
	}
	return " " + terminal.Line(title)
}

func (p pen) rewrites(x explain.Explanation) string {
	var b strings.Builder
	for _, w := range x.Rewrites {
		fmt.Fprintf(&b, "\n%s %s\n", p.in(blue, "plainly:"), w.Hint)
		if w.After != "" {
			fmt.Fprintf(&b, "  %s\n", p.in(green, clip(terminal.Line(w.After), maxColumns)))
		}
	}
	return b.String()
}

// spoke lists the rules that held. An explanation of a denial has already listed the ones
// that count.
func (p pen) spoke(x explain.Explanation, deep bool) string {
	if deep && x.Decision.Effect != proposal.Allow || len(x.Held) == 0 {
		return ""
	}
	rows := make([][3]string, len(x.Held))
	var wide [2]int
	for i, s := range x.Held {
		rows[i] = [3]string{s.Set, terminal.Line(cmp.Or(s.Rule, "–")), placeOf(s) + dashed(s.Title)}
		for j := range wide {
			wide[j] = max(wide[j], width(rows[i][j]))
		}
	}
	var b strings.Builder
	fmt.Fprintln(&b, "rules that held:")
	for _, r := range rows {
		fmt.Fprintf(&b, "  %s  %s  %s\n", pad(r[0], wide[0]), pad(r[1], wide[1]), r[2])
	}
	return b.String()
}

func dashed(title string) string {
	if title == "" {
		return ""
	}
	return " — " + terminal.Line(title)
}

func pad(s string, to int) string { return s + strings.Repeat(" ", max(0, to-width(s))) }

func (p pen) grant(g proposal.Grant) string {
	l := g.Limits
	s := fmt.Sprintf("grant: %s, %g cpus, %s memory, %d processes, %s disk, %s output", l.Wall, l.CPUs, l.Memory, l.Pids, l.Disk, l.Output)
	for _, more := range []struct {
		name string
		list []string
	}{{"hosts", g.Network}, {"programs", g.Exec}} {
		if len(more.list) > 0 {
			s += "; " + more.name + " " + terminal.Line(strings.Join(more.list, ", "))
		}
	}
	return s + "\n"
}
