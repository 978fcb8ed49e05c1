// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package cli reads the flags of one invocation of a command, and prints its answer and
// its failures.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

// Exit codes. Refused is an answer; only Stopped is fumehood's own failure.
const (
	OK      = 0 // everything was allowed and succeeded
	Refused = 1 // something was denied, asked or did not succeed
	Usage   = 2 // the command line or the plan is wrong
	Stopped = 3 // fumehood could not do its work, and ran nothing (more)
)

// A Description is what the help says of a command.
type Description struct {
	Name     string
	Synopsis string
	Usage    string // what follows the name, then examples
}

// An Invocation is one run of a command.
type Invocation struct {
	Description
	Ctx    context.Context
	Args   []string // after the command's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
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

// Watch runs the command and returns its exit code. An answer that was not written in full
// is Stopped, also where the command did not notice: half of a file must not be taken for
// the whole.
func (c *Invocation) Watch(run func() int) int {
	out := &printer{Writer: c.Stdout}
	c.Stdout = out
	code := run()
	if out.err != nil && code != Stopped {
		return c.Stop(out.err)
	}
	return code
}

// unprinted says where err comes from when standard output returned it.
func (c *Invocation) unprinted(err error) error {
	if out, ok := c.Stdout.(*printer); ok && out.err != nil && errors.Is(err, out.err) {
		return &proposal.StopError{Code: "output.not-writable", Message: "cannot write all of the answer to standard output", Hint: "is there room where it leads?", Err: err}
	}
	return err
}

// Flags returns an empty set of flags.
func (c *Invocation) Flags() *flag.FlagSet {
	f := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// Parse reads the flags. A false means that the invocation is over with this exit code.
func (c *Invocation) Parse(f *flag.FlagSet) (int, bool) {
	err := f.Parse(c.Args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.help(f)
		return OK, false
	case err != nil:
		return c.Misuse(err.Error()), false
	}
	return OK, true
}

// ParseMixed reads flags before, between and after arguments, which package flag alone
// does not do. A false means that the invocation is over with this exit code.
func (c *Invocation) ParseMixed(f *flag.FlagSet) (args []string, code int, ok bool) {
	for {
		if code, ok := c.Parse(f); !ok {
			return nil, code, false
		}
		if f.NArg() == 0 {
			return args, OK, true
		}
		args = append(args, f.Arg(0))
		c.Args = f.Args()[1:]
	}
}

// ParseArgs is ParseMixed for a command that takes n arguments.
func (c *Invocation) ParseArgs(f *flag.FlagSet, n int, what string) (args []string, code int, ok bool) {
	args, code, ok = c.ParseMixed(f)
	if ok && len(args) != n {
		return nil, c.Misuse(c.Name + " needs " + what), false
	}
	return args, code, ok
}

func (c *Invocation) help(f *flag.FlagSet) {
	fmt.Fprintf(c.Stdout, "%s\n\nusage: fumehood %s %s\nflags:\n", c.Synopsis, c.Name, c.Usage)
	f.SetOutput(c.Stdout)
	f.PrintDefaults()
	f.SetOutput(io.Discard)
}

// Misuse prints what is wrong with the command line, and returns Usage.
func (c *Invocation) Misuse(message string) int {
	fmt.Fprintf(c.Stderr, "fumehood: %s\nfumehood: hint: fumehood %s --help\n", message, c.Name)
	return Usage
}

// MisuseOf is Misuse with the code and hint of err.
func (c *Invocation) MisuseOf(err error) int {
	c.failure("", err)
	return Usage
}

// Stop prints why fumehood could not do its work, and returns Stopped.
func (c *Invocation) Stop(err error) int {
	c.failure("", c.unprinted(err))
	return Stopped
}

// Warn prints what did not stop the command, a line each.
func (c *Invocation) Warn(warnings ...string) {
	for _, text := range warnings {
		c.Note("warning: " + terminal.Line(text))
	}
}

// WarnOf prints a failure that did not stop the command.
func (c *Invocation) WarnOf(err error) { c.failure("warning: ", err) }

// Note prints lines that are fit for a terminal to standard error.
func (c *Invocation) Note(lines ...string) {
	for _, line := range lines {
		fmt.Fprintf(c.Stderr, "fumehood: %s\n", line)
	}
}

// failure prints err and its hint. kind is "" or "warning: ".
func (c *Invocation) failure(kind string, err error) {
	f := proposal.FailureOf(err)
	fmt.Fprintf(c.Stderr, "fumehood: %s%s: %s\n", kind, f.Code, terminal.Line(f.Message))
	if f.Hint != "" {
		fmt.Fprintf(c.Stderr, "fumehood: hint: %s\n", terminal.Line(f.Hint))
	}
}

// PrintJSON prints data as one line of JSON and escapes what a terminal would interpret.
func (c *Invocation) PrintJSON(data []byte, err error) error {
	if err != nil {
		return err
	}
	return c.Print(append(terminal.JSON(data), '\n'), nil)
}

// Print prints data, which is fit for a terminal.
func (c *Invocation) Print(data []byte, err error) error {
	if err == nil {
		_, err = c.Stdout.Write(data)
	}
	return err
}

// A List is a flag that may be given several times.
type List []string

// String implements flag.Value.
func (l *List) String() string { return fmt.Sprint([]string(*l)) }

// Set implements flag.Value.
func (l *List) Set(value string) error { *l = append(*l, value); return nil }
