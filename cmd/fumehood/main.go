// SPDX-License-Identifier: Apache-2.0

// Command fumehood decides AI-proposed commands by policy and runs the allowed ones in
// gVisor. See README.md, or fumehood help.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/kit/process"
)

const (
	exitOK      = cli.OK
	exitRefused = cli.Refused
	exitUsage   = cli.Usage
	exitStopped = cli.Stopped
)

// An invocation is one run of the program. The functions that make commands are its
// methods, so that the commands print to its streams.
type invocation struct{ cli.Invocation }

func main() {
	if err := process.CloseOnExec(); err != nil {
		fmt.Fprintf(os.Stderr, "fumehood: cannot list open files: %v\nfumehood: hint: mount /proc\n", err)
		os.Exit(exitStopped)
	}
	if !isGateway(os.Args[1:]) { // which checks that its environment is empty
		process.SetHome()
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runCommandLine(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	cancel()
	os.Exit(code)
}

// runCommandLine is main without the process.
func runCommandLine(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if isGateway(args) {
		return runGateway(stderr)
	}
	c := &invocation{cli.Invocation{Ctx: ctx, Stdin: stdin, Stdout: stdout, Stderr: stderr, Version: fumehoodVersion()}}
	return c.Execute(c.rootCommand(), args)
}
