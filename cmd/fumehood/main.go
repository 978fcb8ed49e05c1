// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command fumehood decides and runs what an AI reviewer proposes on code that
// nobody trusts. See README.md, or fumehood help.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/process"
)

const (
	exitOK      = cli.OK
	exitRefused = cli.Refused
	exitUsage   = cli.Usage
	exitStopped = cli.Stopped
)

// A command is one subcommand.
type command struct {
	name     string
	synopsis string
	usage    string // what follows the name, then examples
	run      func(*invocation) int
}

// An invocation is one run of a command.
type invocation struct{ cli.Invocation }

// start makes c an invocation of d.
func (c *invocation) start(d *command, args []string) {
	c.Description, c.Args = cli.Description{Name: d.name, Synopsis: d.synopsis, Usage: d.usage}, args
}

func commands() []*command {
	return []*command{demoCommand(), runCommand(), checkCommand(), policyCommand(), actionCommand(), verifyCommand(), showCommand(), proveCommand(), exportCommand(), doctorCommand()}
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
	c := &invocation{cli.Invocation{Ctx: ctx, Stdin: stdin, Stdout: stdout, Stderr: stderr}}
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
	for _, d := range commands() {
		if d.name == name {
			c.start(d, args[1:])
			return c.Watch(func() int { return d.run(c) })
		}
	}
	fmt.Fprintf(stderr, "fumehood: unknown command %q\nfumehood: hint: fumehood help lists the commands\n", name)
	return exitUsage
}

func printHelp(w io.Writer) {
	fmt.Fprint(w, `fumehood runs what an AI reviewer proposes on code that nobody trusts: each
command is decided by policy, run inside gVisor without credentials and without
network, but for hosts that policy grants, and recorded in a log that cannot be
changed unseen.

usage: fumehood COMMAND [flags]

`)
	for _, d := range commands() {
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
