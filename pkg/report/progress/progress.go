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
// full of progress lines hides it.
type Printer struct {
	w     io.Writer
	on    bool
	steps bool
}

// New returns a Printer to w.
func New(w io.Writer) Printer { return Printer{w: w, on: terminal.Is(w)} }

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

// Step prints that a command begins, or how it ended.
func (p Printer) Step(s hood.Step) {
	name := fmt.Sprintf("[%d/%d] %s", s.Number, s.Of, terminal.Line(s.Proposal))
	switch {
	case p.on && s.Result == nil:
		fmt.Fprintf(p.w, "\x1b[2mfumehood: %s …\x1b[0m\r", name)
	case p.on:
		fmt.Fprintf(p.w, "\x1b[K%s %s: %s\n", mark(s.Result), name, ended(s.Result))
	case p.steps && s.Result != nil:
		p.Notice(name + ": " + ended(s.Result))
	}
}

// Test prints which test of a policy runs.
func (p Printer) Test(number, of int, name string) {
	if !p.on {
		return
	}
	if name = terminal.Line(name); len(name) > 60 {
		name = name[:60]
	}
	fmt.Fprintf(p.w, "\x1b[2K\x1b[2m[%d/%d] %s\x1b[0m\r", number, of, name)
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
			fmt.Fprintf(p.w, "\x1b[2mfumehood: %d of %d proposals …\x1b[0m\x1b[K\r", done, of)
		}
	}
}

// ended returns how a command ended and how long it took.
func ended(r *proposal.Result) string {
	return fmt.Sprintf("%s in %s%s", r.Outcome(), (time.Duration(r.WallMS) * time.Millisecond).Round(time.Millisecond), refusals(r))
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

func mark(r *proposal.Result) string {
	if r.Succeeded() {
		return "\x1b[32m✓\x1b[0m"
	}
	return "\x1b[31m✗\x1b[0m"
}
