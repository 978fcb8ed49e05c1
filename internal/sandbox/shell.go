// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A shellState is what a shell has run. Its next cell runs only if it was decided as the end of
// a script that begins with that.
type shellState struct {
	earlier proposal.Earlier
	env     map[string]string // with which it began
}

// The words about state that was lost, in the result of a cell.
const (
	lostNow    = "the context's shell has ended: its variables, functions and working directory are lost; the next code in this context begins a new shell"
	lostBefore = "the context's earlier shell had ended: its variables, functions and working directory are lost; this code began a new shell"
)

// Earlier returns what the live shell of a context has run, or nil if there is none.
func (r *Runner) Earlier(language, name string) *proposal.Earlier {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil || r.current.isDead() {
		return nil
	}
	all := &r.current.interpreters
	all.mu.Lock()
	defer all.mu.Unlock()
	shell := all.list[contextKey(&Cell{Language: language, Context: name})]
	if shell == nil || shell.shell == nil || shell.shell.earlier.Cells == 0 {
		return nil
	}
	earlier := shell.shell.earlier
	return &earlier
}

// shellPID returns the process of the shell that runs x, or 0.
func (s *instance) shellPID(x Execution) int32 {
	if x.Cell == nil {
		return 0
	}
	s.interpreters.mu.Lock()
	defer s.interpreters.mu.Unlock()
	if r := s.interpreters.list[contextKey(x.Cell)]; r != nil {
		return r.pid
	}
	return 0
}

// executeShell runs the cell's code in its shell. A shell that ends, or is interrupted, is gone.
func (c *command) executeShell(ctx context.Context, r *liveInterpreter) processEnd {
	outcome, err := r.Execute(ctx, interpreter.Cell{Code: c.x.Cell.Code}, c.showCellEvent)
	if err == nil && c.wasStopped() {
		err = context.Canceled
	}
	if err != nil {
		c.lost = lostNow
		return r.endInterpreter(c)
	}
	c.s.interpreters.mu.Lock()
	defer c.s.interpreters.mu.Unlock()
	e := &r.shell.earlier
	e.Cells, e.Text = e.Cells+1, c.x.Text
	return processEnd{status: syscall.WaitStatus(outcome.Status << 8)}
}

// checkShell returns why the shell of the cell's context, nil if there is none, is not in the state for which the cell
// was decided.
func (c *command) checkShell(r *liveInterpreter) error {
	earlier := c.x.Cell.Earlier
	switch {
	case r == nil && earlier != "":
		return errors.New("the context's shell ended after the code was decided: send the code again")
	case r != nil && strings.TrimRight(earlier, "\n") != strings.TrimRight(r.shell.earlier.Text, "\n"):
		return errors.New("the context's shell has run something else than the code was decided with: send the code again")
	case r != nil && !maps.Equal(r.shell.env, c.x.Grant.Env):
		return errors.New("the environment variables are not those that the context's shell began with: use a new context, or assign them in the code")
	}
	return nil
}

// startShell starts a shell.
func (r *liveInterpreter) startShell(c *command, o interpreter.Options) error {
	r.shell = &shellState{env: maps.Clone(c.x.Grant.Env)}
	ours, err := r.execShell(c)
	if err != nil {
		return err
	}
	ours.Ended = r.gone
	r.connect = func(ctx context.Context) (*interpreter.Interpreter, error) {
		return interpreter.StartShell(ctx, ours, shellOptions(o))
	}
	all := &c.s.interpreters
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.lost[r.key] {
		c.lost = lostBefore
		delete(all.lost, r.key)
	}
	return nil
}

// shellOptions returns the options of a shell: one that is interrupted is ended.
func shellOptions(o interpreter.Options) interpreter.Options {
	o.Grace, o.Interrupt = time.Millisecond, func() error { return nil }
	return o
}

// execShell starts the shell with its pipes, and returns this end of them.
func (r *liveInterpreter) execShell(c *command) (ours interpreter.Shell, err error) {
	ours, theirs, err := openShellPipes()
	if err != nil {
		return ours, err
	}
	defer func() {
		for _, f := range theirs { // the process has its own now
			_ = f.Close()
		}
		if err != nil {
			_ = errors.Join(ours.Script.Close(), ours.Done.Close(), ours.Stdout.Close(), ours.Stderr.Close())
		}
	}()
	err = r.startProcess(c, c.x.Grant, interpreter.ShellArgv(shell[0]), control.Process{
		Stdin: theirs[0], Stdout: theirs[1], Stderr: theirs[2], More: map[int]*os.File{
			interpreter.ScriptFD: theirs[interpreter.ScriptFD], interpreter.DoneFD: theirs[interpreter.DoneFD]}})
	return ours, err
}

// openShellPipes returns this end of a shell's pipes, and the files that its process gets, by number.
func openShellPipes() (ours interpreter.Shell, theirs map[int]*os.File, err error) {
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return ours, nil, err
	}
	var read, write [4]*os.File // script, done, stdout, stderr
	var errs [4]error
	for i := range read {
		read[i], write[i], errs[i] = os.Pipe()
	}
	if err = errors.Join(errs[:]...); err != nil {
		for _, f := range append(append(read[:], write[:]...), stdin) {
			_ = f.Close() // some are nil, which Close accepts
		}
		return ours, nil, err
	}
	return interpreter.Shell{Script: write[0], Done: read[1], Stdout: read[2], Stderr: read[3]}, map[int]*os.File{
		0: stdin, 1: write[2], 2: write[3], interpreter.ScriptFD: read[0], interpreter.DoneFD: write[1]}, nil
}
