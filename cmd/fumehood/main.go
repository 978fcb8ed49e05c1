// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command fumehood decides and runs what an AI reviewer proposes on code that
// nobody trusts. See README.md, or fumehood help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/process"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

// Exit codes. Denied and failed are answers; only exitStopped is our own failure.
const (
	exitOK      = 0 // everything was allowed and succeeded
	exitRefused = 1 // something was denied, asked or did not succeed
	exitUsage   = 2 // the command line or the plan is wrong
	exitStopped = 3 // fumehood could not do its work, and ran nothing (more)
)

// A door is one subcommand.
type door struct {
	name     string
	synopsis string
	usage    string // what follows the name, then examples
	run      func(*call) int
}

// A call is one invocation of a door.
type call struct {
	ctx    context.Context
	args   []string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	door   *door
}

func doors() []*door {
	return []*door{demoDoor(), runDoor(), checkDoor(), policyDoor(), actionDoor(), verifyDoor(), showDoor(), proveDoor(), exportDoor(), doctorDoor()}
}

func main() {
	if err := process.CloseOnExec(); err != nil {
		fmt.Fprintf(os.Stderr, "fumehood: cannot read which files are open: %v\nfumehood: hint: mount /proc\n", err)
		os.Exit(exitStopped)
	}
	if !isGateway(os.Args[1:]) { // which has no environment, and makes sure of it
		process.SetHome()
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	cancel()
	os.Exit(code)
}

// run is main without the process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &call{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	if len(args) == 0 {
		printHelp(stderr)
		return exitUsage
	}
	name := args[0]
	switch {
	case isGateway(args):
		return runGateway(stderr)
	case name == "help" && len(args) > 1:
		name, args = args[1], []string{args[1], "--help"}
	case slices.Contains([]string{"help", "-h", "-help", "--help"}, name):
		printHelp(stdout)
		return exitOK
	case slices.Contains([]string{"version", "-version", "--version"}, name):
		printVersion(stdout)
		return exitOK
	}
	for _, d := range doors() {
		if d.name == name {
			c.door, c.args = d, args[1:]
			return c.enter()
		}
	}
	fmt.Fprintf(stderr, "fumehood: unknown command %q\nfumehood: hint: fumehood help lists the commands\n", name)
	return exitUsage
}

// A printer keeps the first error of those that printing to a terminal or a file meets.
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

// enter runs the door. An answer that was not written in full is none: who reads a file
// that the disk had no room for must not take it for one.
func (c *call) enter() int {
	out := &printer{Writer: c.stdout}
	c.stdout = out
	code := c.door.run(c)
	if out.err != nil && code != exitStopped {
		return c.stopped(out.err)
	}
	return code
}

// unprinted says where err comes from when standard output gave it.
func (c *call) unprinted(err error) error {
	if out, ok := c.stdout.(*printer); ok && out.err != nil && errors.Is(err, out.err) {
		return &proposal.StopError{Code: "output.not-writable", Message: "cannot write all of the answer to standard output", Hint: "is there room where it leads?", Err: err}
	}
	return err
}

func printHelp(w io.Writer) {
	fmt.Fprint(w, `fumehood runs what an AI reviewer proposes on code that nobody trusts: each
command is decided by policy, run inside gVisor without credentials and without
network, but for hosts that policy grants, and recorded in a log that cannot be
changed unseen.

usage: fumehood COMMAND [flags]

`)
	for _, d := range doors() {
		fmt.Fprintf(w, "  %-8s %s\n", d.name, d.synopsis)
	}
	fmt.Fprint(w, `
examples:
  fumehood demo                                    the whole way, on a small pull request
  fumehood check --plan plan.yaml                  decide only, run nothing
  fumehood run --plan plan.yaml --workspace .      decide, run, report
  fumehood run --plan plan.yaml --hosts DIR        the same, with hosts that DIR grants
  fumehood verify audit.jsonl                      is this log whole and unchanged?
  fumehood show audit.jsonl                        what happened, in order

exit codes: 0 allowed and succeeded, 1 denied or a command failed, 2 usage,
3 fumehood could not do its work and ran nothing (more)

fumehood COMMAND --help says more about one command.
`)
}

// flags returns the door's flag set; its usage goes where the caller reads it.
func (c *call) flags() *flag.FlagSet {
	f := flag.NewFlagSet(c.door.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// parse reads the flags. A false means that the call is over with this exit code.
func (c *call) parse(f *flag.FlagSet) (int, bool) {
	err := f.Parse(c.args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.usage(f, c.stdout)
		return exitOK, false
	case err != nil:
		return c.misuse(err.Error()), false
	}
	return exitOK, true
}

// parseMixed reads flags before, between and after arguments, which package flag alone
// does not do.
func (c *call) parseMixed(f *flag.FlagSet) (args []string, code int, ok bool) {
	for {
		if code, ok := c.parse(f); !ok {
			return nil, code, false
		}
		if f.NArg() == 0 {
			return args, exitOK, true
		}
		args = append(args, f.Arg(0))
		c.args = f.Args()[1:]
	}
}

// parseArgs is parseMixed for a command that takes n arguments.
func (c *call) parseArgs(f *flag.FlagSet, n int, what string) (args []string, code int, ok bool) {
	args, code, ok = c.parseMixed(f)
	if ok && len(args) != n {
		return nil, c.misuse(c.door.name + " needs " + what), false
	}
	return args, code, ok
}

func (c *call) usage(f *flag.FlagSet, w io.Writer) {
	fmt.Fprintf(w, "%s\n\nusage: fumehood %s %s\nflags:\n", c.door.synopsis, c.door.name, c.door.usage)
	f.SetOutput(w)
	f.PrintDefaults()
	f.SetOutput(io.Discard)
}

func (c *call) misuse(message string) int {
	fmt.Fprintf(c.stderr, "fumehood: %s\nfumehood: hint: fumehood %s --help\n", message, c.door.name)
	return exitUsage
}

// misuseOf is misuse with the code and hint of err.
func (c *call) misuseOf(err error) int {
	c.printFailure("", err)
	return exitUsage
}

// stopped says why fumehood could not do its work.
func (c *call) stopped(err error) int {
	c.printFailure("", c.unprinted(err))
	return exitStopped
}

// printFailure prints err and its hint. kind is "" or "warning: ".
func (c *call) printFailure(kind string, err error) {
	f := proposal.FailureOf(err)
	fmt.Fprintf(c.stderr, "fumehood: %s%s: %s\n", kind, f.Code, terminal.Line(f.Message))
	if f.Hint != "" {
		fmt.Fprintf(c.stderr, "fumehood: hint: %s\n", terminal.Line(f.Hint))
	}
}

// A list is a flag that may be given several times.
type list []string

func (l *list) String() string         { return fmt.Sprint([]string(*l)) }
func (l *list) Set(value string) error { *l = append(*l, value); return nil }
