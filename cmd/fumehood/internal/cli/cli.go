// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands of fumehood have in common: flags in named groups,
// help, completion, output formats, warnings, failures and exit codes. It configures
// cobra and pflag. The commands themselves are in packages runs and policies, and in
// package main.
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Exit codes. Refused is an answer; only Stopped is fumehood's own failure.
const (
	OK      = 0 // everything was allowed and succeeded
	Refused = 1 // a command was denied, needs approval or did not succeed
	Usage   = 2 // the command line or the plan is invalid
	Stopped = 3 // fumehood could not do its work; nothing (more) ran
	// Observed is the end of a run whose network was only observed, however its commands ended.
	Observed = 4
	// Neutral is the end of a run in which commands could not run, and nothing was denied or failed:
	// the conclusion neutral of a job.
	Neutral = 5
)

// An Invocation is one run of a command.
type Invocation struct {
	Name   string // the command without the program's name: "policy check"
	Ctx    context.Context
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Version is fumehood's own, for reports.
	Version string
	args    []string // all of them, from the command's name on
	code    int      // exit code of the command that ran
}

// A printer keeps the first error that printing to a terminal or a file meets.
type printer struct {
	io.Writer
	err error
}

func (p *printer) Write(data []byte) (int, error) {
	n, err := p.Writer.Write(data)
	if p.err == nil {
		p.err = err
	}
	return n, err
}

// Unwrap returns the writer below, which may be a terminal.
func (p *printer) Unwrap() io.Writer { return p.Writer }

// RunWatched runs the command and returns its exit code. If the answer could not be written in
// full, that is Stopped, even if the command did not notice: half of a document must not be
// mistaken for all of it.
func (c *Invocation) RunWatched(run func() int) int {
	out := &printer{Writer: c.Stdout}
	c.Stdout = out
	code := run()
	if out.err != nil && code != Stopped {
		return c.Stop(out.err)
	}
	return code
}

// nameStdoutCause names standard output as the cause if err came from there.
func (c *Invocation) nameStdoutCause(err error) error {
	if out, ok := c.Stdout.(*printer); ok && out.err != nil && errors.Is(err, out.err) {
		return &proposal.StopError{Code: "output.not-writable", Message: "cannot write to standard output",
			Hint: "check the free space of the file or disk that it is redirected to", Err: err}
	}
	return err
}

// ReportMisuse prints what is wrong with the command line, and returns Usage.
func (c *Invocation) ReportMisuse(message string) int {
	c.PrintNotes(message, "hint: see "+c.helpCommand())
	return Usage
}

// helpCommand is the command that prints the help of this one.
func (c *Invocation) helpCommand() string {
	return strings.Join(strings.Fields("fumehood "+c.Name+" --help"), " ")
}

// MisuseOf is ReportMisuse with the code and hint of err.
func (c *Invocation) MisuseOf(err error) int {
	c.printFailure("", err)
	return Usage
}

// Stop prints why fumehood could not do its work, and returns Stopped.
func (c *Invocation) Stop(err error) int {
	c.printFailure("", c.nameStdoutCause(err))
	return Stopped
}

// PrintWarnings prints warnings, one per line. They do not stop the command.
func (c *Invocation) PrintWarnings(warnings ...string) {
	for _, text := range warnings {
		c.PrintNotes("warning: " + terminal.EscapeLine(text))
	}
}

// WarnOf prints a failure that did not stop the command.
func (c *Invocation) WarnOf(err error) { c.printFailure("warning: ", err) }

// PrintNotes prints lines to standard error. They must be safe for a terminal.
func (c *Invocation) PrintNotes(lines ...string) {
	for _, line := range lines {
		fmt.Fprintf(c.Stderr, "fumehood: %s\n", line)
	}
}

// printFailure prints err and its hint. kind is "" or "warning: ".
func (c *Invocation) printFailure(kind string, err error) {
	f := proposal.FailureOf(err)
	fmt.Fprintf(c.Stderr, "fumehood: %s%s: %s\n", kind, f.Code, terminal.EscapeLine(f.Message))
	if f.Hint != "" {
		fmt.Fprintf(c.Stderr, "fumehood: hint: %s\n", terminal.EscapeLine(f.Hint))
	}
}

// PrintJSON prints data as one line of JSON and escapes what a terminal would interpret.
func (c *Invocation) PrintJSON(data []byte, err error) error {
	if err != nil {
		return err
	}
	return c.Print(append(terminal.EscapeJSON(data), '\n'), nil)
}

// Print prints data, which must be safe for a terminal.
func (c *Invocation) Print(data []byte, err error) error {
	if err == nil {
		_, err = c.Stdout.Write(data)
	}
	return err
}

// PrintAnswer prints the answer of a command in the format o: what json prints, or what text
// writes, for Markdown in a fence.
func (c *Invocation) PrintAnswer(o Format, json func() error, text func(io.Writer) error) error {
	switch {
	case o.Is(JSON):
		return json()
	case o.Is(Markdown):
		var b bytes.Buffer
		if err := text(&b); err != nil {
			return err
		}
		return c.Print([]byte(fencedBlock(b.String())), nil)
	}
	return text(c.Stdout)
}

// fencedBlock returns text as a fenced block of Markdown that it cannot end.
func fencedBlock(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

// ExitCode is the exit code of a command that has answered: Stopped if err is not nil.
func (c *Invocation) ExitCode(code int, err error) int {
	if err != nil {
		return c.Stop(err)
	}
	return code
}
