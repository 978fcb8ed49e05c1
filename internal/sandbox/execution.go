// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"errors"
	"os"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Execution is an allowed Proposal, ready to run: the canonical text or argv
// that was decided, and nothing else of the Proposal that could change it.
type Execution struct {
	ID   string
	Text string   // shell text, run by the fixed shell; or
	Argv []string // program and arguments
	// Launches means that Argv's program only starts the command in its other words, as
	// for Command.StartsText.
	Launches bool
	// Free means that Argv's program may start any program that policy's fumehood.exec allows,
	// as make may; else what it starts is compared with policy's table.
	Free    bool
	Cwd     string // relative to the workspace
	Stdin   string
	Input   *os.File // replaces Stdin, if not nil; closed by Start
	Outputs []string
	Grant   proposal.Grant
	// Service means that the command starts a server: it runs as a user that no other
	// command has, and if it succeeds, what it started lives until its sandbox ends.
	Service bool
	// Setup means that a Diff leaves out what the command changes.
	Setup bool
	// Cell, if not nil, is code for an interpreter that keeps its state from cell to cell.
	// The first cell of a language starts it. Text and Argv are not used.
	Cell *Cell
	// Again reports that this is the second run of the same command, whose files get
	// different names.
	Again bool
	// Output, if set, receives what the command prints, as it comes and not redacted. It must
	// not block, keeps nothing of a Chunk's Data, and may be called concurrently.
	Output func(proposal.Chunk)

	// Notes, if set, are lines for the command's error output that are not its own.
	Notes *Notes
}

// A Process is a command that runs in the background.
type Process interface {
	// Done is closed when the command has ended and its Result is known.
	Done() <-chan struct{}
	// Result waits until Done is closed. An error means that it is not certain what happened.
	Result() (proposal.Result, error)
	// Interrupt sends SIGINT to every process of the command, as Ctrl-C does. It does nothing
	// if the command has ended.
	Interrupt() error
	// Kill kills the command. by, a Killed constant, is in the Result. It does not wait.
	Kill(by string)
}

// A Cell is a piece of code with the state of the cells before it.
type Cell struct {
	Language string // as in Proposal
	Context  string // a name space of its own
	Code     string
	// SyntaxOnly means that Code is not run: the interpreter says what is wrong with its syntax.
	SyntaxOnly bool
	// Earlier is what the shell of the context must have run so far, for a language in which the
	// Code was decided together with it.
	Earlier string
}

// KilledBy returns the Killed constant for a context's cause.
func KilledBy(cause error) string {
	var stop *proposal.StopError
	if !errors.As(cause, &stop) {
		return proposal.KilledInterrupted
	}
	known := map[string]string{"session.idle": proposal.KilledIdle, "session.closed": proposal.KilledClosed,
		"run.cancelled": proposal.KilledInterrupted, "run.timeout": proposal.KilledInterrupted,
		"network.unanswered": proposal.KilledRegistry}
	return cmp.Or(known[stop.Code], proposal.KilledRun)
}
