// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A View selects what Write shows.
type View struct {
	Passed   bool // include tests that passed
	Coverage bool // list the rules that no test reaches
	Filtered bool // only some tests ran, so coverage is not meaningful
	Color    bool
}

// Write writes the results of the tests for people, with details of those that did not
// pass.
func (r Report) Write(w io.Writer, v View) { page{w, v.Color}.printReport(r, v) }

// A page is what is written to.
type page struct {
	w     io.Writer
	color bool
}

// maxLines limits the lines that are shown of a test's output.
const maxLines = 20

func (p page) printReport(r Report, v View) {
	for _, t := range r.Tests {
		if t.Status != Passed || v.Passed || t.Print != "" {
			p.writeTest(t, len(r.Layers) > 1)
		}
	}
	if v.Coverage {
		p.writeUnreachedRules(r)
	}
	p.writeShadows(r)
	p.writeTotal(r, v)
}

var statusColors = map[Status]string{
	Passed: "32", Failed: "31", Erred: "31", Endless: "31", Skipped: "33",
}

func (p page) statusText(s Status) string {
	if !p.color {
		return fmt.Sprintf("%-7s", s)
	}
	return fmt.Sprintf("\x1b[%sm%-7s\x1b[0m", statusColors[s], s)
}

func (p page) writeTest(t Result, several bool) {
	where := fmt.Sprintf("%s:%d", t.File, t.Line)
	if several {
		where = t.Layer + ": " + where
	}
	fmt.Fprintf(p.w, "%s %s\n", p.statusText(t.Status), terminal.EscapeLine(t.Name))
	if t.Status == Passed || t.Status == Skipped {
		p.writeLines("print", t.Print)
		return
	}
	if t.File != "" {
		p.writeLine("at", where)
	}
	if t.Kind != KindRego && t.Subject != "" && t.Kind != KindExample {
		p.writeLine("about", t.Subject)
	}
	p.writeLine("why", t.Message)
	if t.Got != "" {
		p.writeLine("got", t.Got)
	}
	if t.Kind != KindRego && t.Status == Failed {
		p.writeLine("rules", strings.Join(t.Rules, ", "))
	}
	for _, reason := range t.Reasons {
		p.writeReason(reason)
	}
	p.writeExpression(t.Failure)
	for _, part := range t.Parts {
		if part.Status != Passed {
			p.writeLine("case", part.Name)
			p.writeExpression(part.Failure)
		}
	}
	p.writeLines("print", t.Print)
	p.writeLine("hint", t.Hint)
}

func (p page) writeLine(name, text string) {
	if text != "" {
		fmt.Fprintf(p.w, "        %-6s %s\n", name, terminal.EscapeLine(text))
	}
}

// writeLines writes untrusted output of a test.
func (p page) writeLines(name, text string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines[:min(len(lines), maxLines)] {
		p.writeLine(name, line)
	}
	if more := len(lines) - maxLines; more > 0 {
		p.writeLine(name, fmt.Sprintf("… and %d more lines: see --json", more))
	}
}

func (p page) writeReason(r proposal.Reason) {
	p.writeLine(r.Effect.String(), r.Rule+": "+r.Message)
}

func (p page) writeExpression(e *Expression) {
	if e == nil {
		return
	}
	p.writeLine("fails", fmt.Sprintf("%s:%d", e.File, e.Line))
	for line := range strings.Lines(e.Text) {
		fmt.Fprintf(p.w, "          %s\n", printableCode(strings.TrimRight(line, "\n")))
	}
}

// printableCode keeps tabs, which align values below their names.
func printableCode(line string) string {
	return terminal.EscapeLine(strings.ReplaceAll(line, "\t", "    "))
}

// writeUnreachedRules lists the rules that no test reaches.
func (p page) writeUnreachedRules(r Report) {
	w := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, rule := range r.Rules {
		if rule.Tests > 0 {
			continue
		}
		id := rule.Rule
		if id == "" {
			id = "(no id)"
		}
		fmt.Fprintf(w, "never\t%s %s\t%s:%d\t%s\n", rule.Set, terminal.EscapeLine(id), terminal.EscapeLine(rule.File),
			rule.Line, terminal.EscapeLine(rule.Title))
	}
	w.Flush()
	fmt.Fprintf(p.w, "%.1f%% of %d rules were reached; those listed were not seen to hold in %d tests\n", r.Coverage(),
		len(r.Rules), r.CountRan())
}

// writeShadows lists rules that were not seen to have an effect.
func (p page) writeShadows(r Report) {
	for _, s := range r.Shadows {
		fmt.Fprintf(p.w, "shadow  %s %s  %s:%d  %s\n", s.Set, terminal.EscapeLine(s.Rule), terminal.EscapeLine(s.File),
			s.Line, s.Seen)
	}
}

func (p page) writeTotal(r Report, v View) {
	text := fmt.Sprintf("%d passed, %d failed", r.Passed, r.Failed)
	if r.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", r.Skipped)
	}
	if !v.Coverage && !v.Filtered {
		text += fmt.Sprintf("; %.0f%% of %d rules reached", r.Coverage(), len(r.Rules))
	}
	fmt.Fprintf(p.w, "%s; %v\n", text, (time.Duration(r.WallMS) * time.Millisecond).Round(10*time.Millisecond))
}
