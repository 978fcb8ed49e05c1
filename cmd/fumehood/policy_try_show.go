// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fumehood/fumehood/pkg/policy/trial"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A trialPage shows people what became of tests: those that did not pass in full.
type trialPage struct {
	w      io.Writer
	colour bool
}

// mostLines bounds what is shown of what a test prints.
const mostLines = 20

func (p trialPage) print(r trial.Report, o tryout) {
	for _, t := range r.Tests {
		if t.Status != trial.Passed || o.verbose || t.Print != "" {
			p.test(t, len(r.Layers) > 1)
		}
	}
	if o.coverage {
		p.rules(r)
	}
	p.total(r, o)
}

var trialColours = map[trial.Status]string{
	trial.Passed: "32", trial.Failed: "31", trial.Erred: "31", trial.Endless: "31", trial.Skipped: "33",
}

func (p trialPage) status(s trial.Status) string {
	if !p.colour {
		return fmt.Sprintf("%-7s", s)
	}
	return fmt.Sprintf("\x1b[%sm%-7s\x1b[0m", trialColours[s], s)
}

func (p trialPage) test(t trial.Result, several bool) {
	where := fmt.Sprintf("%s:%d", t.File, t.Line)
	if several {
		where = t.Layer + ": " + where
	}
	fmt.Fprintf(p.w, "%s %s\n", p.status(t.Status), printable(t.Name))
	if t.Status == trial.Passed || t.Status == trial.Skipped {
		p.lines("print", t.Print)
		return
	}
	p.line("at", where)
	if t.Kind != trial.KindRego && t.Subject != "" && t.Kind != trial.KindExample {
		p.line("about", t.Subject)
	}
	p.line("why", t.Message)
	if t.Got != "" {
		p.line("got", t.Got)
	}
	if t.Kind != trial.KindRego && t.Status == trial.Failed {
		p.line("rules", strings.Join(t.Rules, ", "))
	}
	for _, reason := range t.Reasons {
		p.reason(reason)
	}
	p.expression(t.Failure)
	for _, part := range t.Parts {
		if part.Status != trial.Passed {
			p.line("case", part.Name)
			p.expression(part.Failure)
		}
	}
	p.lines("print", t.Print)
	p.line("hint", t.Hint)
}

func (p trialPage) line(name, text string) {
	if text != "" {
		fmt.Fprintf(p.w, "        %-6s %s\n", name, printable(text))
	}
}

// lines writes what an author printed, which may be anything.
func (p trialPage) lines(name, text string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines[:min(len(lines), mostLines)] {
		p.line(name, line)
	}
	if more := len(lines) - mostLines; more > 0 {
		p.line(name, fmt.Sprintf("… and %d lines more, which --json has", more))
	}
}

func (p trialPage) reason(r proposal.Reason) {
	p.line(r.Effect.String(), r.Rule+": "+r.Message)
}

func (p trialPage) expression(e *trial.Expression) {
	if e == nil {
		return
	}
	p.line("fails", fmt.Sprintf("%s:%d", e.File, e.Line))
	for line := range strings.Lines(e.Text) {
		fmt.Fprintf(p.w, "          %s\n", printableCode(strings.TrimRight(line, "\n")))
	}
}

// printableCode keeps tabs, by which values stand below their names.
func printableCode(line string) string {
	return printable(strings.ReplaceAll(line, "\t", "    "))
}

// rules lists those that no test reaches.
func (p trialPage) rules(r trial.Report) {
	w := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, rule := range r.Rules {
		if rule.Tests > 0 {
			continue
		}
		id := rule.Rule
		if id == "" {
			id = "(no id)"
		}
		fmt.Fprintf(w, "never\t%s %s\t%s:%d\t%s\n", rule.Set, printable(id), printable(rule.File), rule.Line, printable(rule.Title))
	}
	w.Flush()
	fmt.Fprintf(p.w, "%.1f%% of %d rules were reached\n", r.Coverage(), len(r.Rules))
}

func (p trialPage) total(r trial.Report, o tryout) {
	text := fmt.Sprintf("%d passed, %d failed", r.Passed, r.Failed)
	if r.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", r.Skipped)
	}
	if !o.coverage && o.only == "" {
		text += fmt.Sprintf("; %.0f%% of %d rules reached", r.Coverage(), len(r.Rules))
	}
	fmt.Fprintf(p.w, "%s; %v\n", text, (time.Duration(r.WallMS) * time.Millisecond).Round(10*time.Millisecond))
}
