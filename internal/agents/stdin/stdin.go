// SPDX-License-Identifier: Apache-2.0

// Package stdin is what a client writes to a command of a session while the command runs. Nothing of it is decided or
// logged; what the command starts because of it is.
package stdin

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Later replaces, as a proposal's Stdin, the input that a client writes while the command runs: policy
// decides the command as if it read this text, and the log has it. A shell that reads its commands from there is
// denied.
const Later = "(sent while the command runs)\n"

// inputTime is how long a command has to read what was written.
const inputTime = 5 * time.Second

// A Pipe is the standard input of one command in the background.
type Pipe struct{ read, write *os.File }

// Open returns a Pipe for one command of g's session, whose Stdin must be Later. Only a session of this
// process can have one (session.input). Close must be called.
func Open(g gate.Opener) (*Pipe, error) {
	if _, here := g.(*gate.Gate); !here {
		return nil, &proposal.StopError{Code: "session.input",
			Message: "standard input while a command runs, and pseudo-terminals, are not supported by a session of another process",
			Hint:    "propose the command with all of its input as stdin"}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &Pipe{read, write}, nil
}

// WithInput returns a context for the Session.Start of the Pipe's command.
func (p *Pipe) WithInput(ctx context.Context) context.Context { return gate.WithInput(ctx, p.read) }

// Errors of Write.
var (
	ErrNotRead = errors.New("it does not read its input") // a part may have been written
	ErrClosed  = errors.New("its input is closed")
)

// Write writes data, for which the command has inputTime.
func (p *Pipe) Write(data []byte) error {
	_ = p.write.SetWriteDeadline(time.Now().Add(inputTime))
	switch _, err := p.write.Write(data); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrNotRead
	case err != nil:
		return ErrClosed
	}
	return nil
}

// CloseWrite ends what the command can read.
func (p *Pipe) CloseWrite() { _ = p.write.Close() }

// Close closes both ends. The command has its own.
func (p *Pipe) Close() { _ = errors.Join(p.read.Close(), p.write.Close()) }
