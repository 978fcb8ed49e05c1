// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxShells is how many contexts of bash and sh a sandbox has at a time. Each is a process.
const MaxShells = interpreter.MaxContexts

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

func shellKey(cell *Cell) string { return cell.Language + " " + cell.Context }

// Earlier returns what the live shell of a context has run, or nil if there is none.
func (r *Runner) Earlier(language, name string) *proposal.Earlier {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil || r.current.isDead() {
		return nil
	}
	shell := r.current.interpreters[shellKey(&Cell{Language: language, Context: name})]
	if shell == nil || shell.shell == nil || shell.shell.earlier.Cells == 0 {
		return nil
	}
	earlier := shell.shell.earlier
	return &earlier
}

// shellPID returns the process of the shell that runs x, or 0.
func (s *instance) shellPID(x Execution) int32 {
	if x.Cell != nil && s.interpreters[shellKey(x.Cell)] != nil {
		return s.interpreters[shellKey(x.Cell)].pid
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
		return r.endInterpreter()
	}
	e := &r.shell.earlier
	e.Cells, e.Text = e.Cells+1, c.x.Text
	return processEnd{status: syscall.WaitStatus(outcome.Status << 8)}
}

// shellOf returns the shell of the cell's context. An error means that it is not in the state for
// which the cell was decided.
func (c *command) shellOf(ctx context.Context) (*liveInterpreter, error) {
	key := shellKey(c.x.Cell)
	r, earlier := c.s.interpreters[key], c.x.Cell.Earlier
	switch {
	case r == nil && earlier != "":
		return nil, errors.New("the context's shell ended after the code was decided: send the code again")
	case r != nil && strings.TrimRight(earlier, "\n") != strings.TrimRight(r.shell.earlier.Text, "\n"):
		return nil, errors.New("the context's shell has run something else than the code was decided with: send the code again")
	case r != nil && !maps.Equal(r.shell.env, c.x.Grant.Env):
		return nil, errors.New("the environment variables are not those that the context's shell began with: use a new context, or assign them in the code")
	case r != nil:
		return r, nil
	case c.s.shellCount() >= MaxShells:
		return nil, fmt.Errorf("the sandbox already has %d contexts of bash and sh: use one of them, or another session", MaxShells)
	}
	r, err := c.startShell(ctx)
	if err != nil {
		return nil, err
	}
	if c.s.lostShells[key] {
		c.lost = lostBefore
		delete(c.s.lostShells, key)
	}
	c.s.keepInterpreter(key, r)
	return r, nil
}

func (s *instance) shellCount() (n int) {
	for _, r := range s.interpreters {
		if r.shell != nil {
			n++
		}
	}
	return n
}

// startShell starts a shell as the command's first program, which the exec gate decides.
func (c *command) startShell(ctx context.Context) (*liveInterpreter, error) {
	r := newResident(c.s)
	r.shell = &shellState{env: maps.Clone(c.x.Grant.Env)}
	ours, err := r.execShell(c)
	if err != nil {
		return nil, err
	}
	go r.waitForExit()
	ours.Ended = r.gone
	ctx, cancel := context.WithTimeout(ctx, interpreterStart)
	defer cancel()
	r.Interpreter, err = interpreter.StartShell(ctx, ours,
		interpreter.Options{Language: interpreter.Bash, Grace: time.Millisecond,
			Interrupt: func() error { return nil }})
	if err != nil {
		return nil, err
	}
	c.s.onClose(r.Close)
	return r, nil
}

// execShell starts the shell with its pipes, and returns this end of them.
func (r *liveInterpreter) execShell(c *command) (ours interpreter.Shell, err error) {
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return ours, err
	}
	var read, write [4]*os.File // script, done, stdout, stderr
	var errs [4]error
	for i := range read {
		read[i], write[i], errs[i] = os.Pipe()
	}
	err = errors.Join(errs[:]...)
	if err == nil {
		err = r.startProcess(c, c.x.Grant, interpreter.ShellArgv(shell[0]),
			control.Process{Stdin: stdin, Stdout: write[2], Stderr: write[3],
				More: map[int]*os.File{interpreter.ScriptFD: read[0], interpreter.DoneFD: write[1]}})
	}
	closed := []*os.File{stdin, read[0], write[1], write[2], write[3]} // the process has its own now
	if err != nil {
		closed = append(closed, write[0], read[1], read[2], read[3])
	}
	for _, f := range closed {
		_ = f.Close() // some may be nil, which Close accepts
	}
	return interpreter.Shell{Script: write[0], Done: read[1], Stdout: read[2], Stderr: read[3]}, err
}
