// SPDX-License-Identifier: Apache-2.0

// Package progress prints what is running while it runs.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

// A Printer prints progress on a terminal only: in CI the report is enough, and a log
// full of progress lines hides it. The zero Printer is not usable.
type Printer struct {
	w     io.Writer
	on    bool
	color bool
	steps bool
}

// New returns a Printer to w.
func New(w io.Writer) Printer {
	return Printer{w: w, on: terminal.Is(w), color: terminal.Colors(w)}
}

// WithSteps returns a Printer whose Step prints the end of each command on a pipe, too.
func (p Printer) WithSteps() Printer {
	p.steps = true
	return p
}

// Notice prints a line about work that takes a minute, in CI as well.
func (p Printer) Notice(text string) {
	fmt.Fprintf(p.w, "fumehood: %s\n", terminal.Line(text))
}

// Detail is Notice on a terminal only.
func (p Printer) Detail(text string) {
	if p.on {
		p.Notice(text)
	}
}

// Step prints that a command begins, how it ended, or that it does not begin. On a terminal
// the end of a command replaces its begin.
func (p Printer) Step(s hood.Step) {
	name := fmt.Sprintf("[%d/%d] %s", s.Number, s.Of, terminal.Line(s.Proposal))
	begins := s.Result == nil && !s.Refused
	switch {
	case p.on && begins:
		fmt.Fprintf(p.w, "%s\r", p.paint("2", "…  "+name))
	case p.on:
		fmt.Fprintf(p.w, "\x1b[K%s %s: %s\n", p.mark(s), name, ended(s))
	case p.steps && !begins:
		p.Notice(name + ": " + ended(s))
	}
}

// paint colors text, if the terminal's user wants colors.
func (p Printer) paint(color, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Test prints which test of a policy runs.
func (p Printer) Test(number, of int, name string) {
	if !p.on {
		return
	}
	if name = terminal.Line(name); len(name) > 60 {
		name = name[:60]
	}
	fmt.Fprintf(p.w, "\x1b[2K%s\r", p.paint("2", fmt.Sprintf("[%d/%d] %s", number, of, name)))
	if number == of {
		fmt.Fprint(p.w, "\x1b[2K")
	}
}

// Proposals returns a function that prints how many of the proposals are decided. It is
// safe for concurrent use. Without a terminal it is nil.
func (p Printer) Proposals(of int) func(done int) {
	if !p.on {
		return nil
	}
	var mu sync.Mutex
	var last time.Time
	return func(done int) {
		mu.Lock()
		defer mu.Unlock()
		if done == of {
			fmt.Fprint(p.w, "\x1b[K")
		} else if time.Since(last) > 100*time.Millisecond {
			last = time.Now()
			fmt.Fprintf(p.w, "%s\x1b[K\r", p.paint("2", fmt.Sprintf("fumehood: %d of %d proposals …", done, of)))
		}
	}
}

// ended describes how a command ended, and after what time, or why it did not begin.
func ended(s hood.Step) string {
	if s.Refused {
		return refusedBy(s.Decision)
	}
	r := s.Result
	if r.Status == proposal.NotRun || r.FromLayer() {
		return terminal.Line(r.Outcome())
	}
	if r.Cached != nil {
		return "succeeded, from cache, run " + terminal.Line(r.Cached.Run)
	}
	outcome := r.Outcome()
	if r.Succeeded() {
		outcome = "succeeded"
	}
	return fmt.Sprintf("%s in %s%s", outcome, (time.Duration(r.WallMS) * time.Millisecond).Round(time.Millisecond), refusals(r))
}

// refusedBy describes a refusal, with its first rule.
func refusedBy(d proposal.Decision) string {
	text := "denied"
	if d.Effect == proposal.Ask {
		text = "needs approval"
	}
	for _, reason := range d.Reasons {
		if reason.Effect == d.Effect && !reason.Observed {
			return text + " by " + terminal.Line(reason.Rule)
		}
	}
	return text
}

// refusals returns what a success may hide.
func refusals(r *proposal.Result) string {
	text := ""
	if a := r.Retried; a != nil {
		text = terminal.Line(fmt.Sprintf(" in the second run; in the first, %s crashed with %s", a.Program, a.Crash))
	}
	if r.Observations == nil {
		return text
	}
	c := r.Observations.Counts
	switch {
	case c.Refused == 1:
		text += ", 1 program refused"
	case c.Refused > 1:
		text += fmt.Sprintf(", %d programs refused", c.Refused)
	}
	if c.NetRefused > 0 {
		text += fmt.Sprintf(", network refused %d×", c.NetRefused)
	}
	return text
}

// mark returns the mark of a step, two columns wide as terminals show it.
func (p Printer) mark(s hood.Step) string {
	switch {
	case s.Refused && s.Decision.Effect == proposal.Ask:
		return p.paint("33", "✋")
	case s.Refused:
		return p.paint("31", "⛔")
	case s.Result.Status == proposal.NotRun:
		return p.paint("2", "–") + " "
	case s.Result.Succeeded():
		return p.paint("32", "✓") + " "
	}
	return p.paint("31", "✗") + " "
}
