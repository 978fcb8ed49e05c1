// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/pkg/interpreter"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox/control"
)

// cellGrace is how long an interpreter may take to start, and a cell to stop.
const (
	interpreterStart = 30 * time.Second
	cellGrace        = 2 * time.Second
)

// InterpreterFiles are the files that interpreters are, by path inside. A root file system
// for sessions has them: see Options.Files.
func InterpreterFiles() map[string][]byte {
	files := map[string][]byte{}
	for _, p := range interpreter.Programs() {
		files[programPath(p)] = p.Text
	}
	return files
}

func programPath(p interpreter.Program) string { return path.Join("/.fumehood", p.File) }

// A resident is an interpreter that lives from cell to cell. Between commands it is stopped,
// so that what the kernel sees it do belongs to a command.
type resident struct {
	*interpreter.Interpreter
	s     *instance
	pid   int32
	conn  *control.Conn
	ended chan ending // holds how it ended
}

// An ending is how a process ended, or why that is not known.
type ending struct {
	status syscall.WaitStatus
	err    error
}

// cell runs c's code in the interpreter of its language, after starting that if there is none.
// If it does not stop in time, or ends itself, the interpreter and its state are gone.
func (c *command) cell(ctx context.Context) (proposal.Result, error) {
	go c.stdout.run()
	go c.stderr.run()
	c.measure()
	inner, cancel := c.until(ctx)
	how, err := c.execute(inner)
	cancel()
	_ = errors.Join(c.stdout.write.Close(), c.stderr.write.Close())
	if err != nil {
		return c.notStarted(err)
	}
	if c.s.dead() && how.err == nil {
		how.err = errors.New("the sandbox ended") // whatever the interpreter's last words were
	}
	return c.finish(ctx, how.status, how.err)
}

// until returns a context that ends when the command must.
func (c *command) until(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	wall := time.AfterFunc(c.x.Grant.Limits.Wall.Std(), func() { c.end(proposal.TimedOut) })
	go func() {
		defer wall.Stop()
		defer cancel()
		select {
		case <-inner.Done():
		case <-c.s.gone:
		case <-c.s.gate.failed():
		case <-c.ended:
		case <-ctx.Done():
			c.end(proposal.NotRun)
		}
	}()
	return inner, cancel
}

// execute returns the cell's outcome as that of a process. An error means that no interpreter
// could be started, or that the code is not accepted.
func (c *command) execute(ctx context.Context) (ending, error) {
	r, err := c.resident(ctx)
	if err != nil {
		return ending{}, err
	}
	outcome, err := r.Execute(ctx, interpreter.Cell{Context: c.x.Cell.Context, Code: c.x.Cell.Code}, c.show)
	c.displaysOmitted = outcome.ResultsOmitted
	var died *interpreter.DiedError
	var refused *proposal.StopError
	switch {
	case errors.As(err, &refused) && refused.Code == "interpreter.cell":
		return ending{}, err
	case errors.As(err, &died), refused != nil:
		return r.end(), nil
	case outcome.Error != nil:
		c.exception = &proposal.Exception{Name: outcome.Error.Name, Value: outcome.Error.Value, Traceback: outcome.Error.Traceback}
		return ending{status: 1 << 8}, nil
	case err != nil:
		return ending{status: 1 << 8}, nil
	}
	return ending{}, nil
}

// show takes what a cell shows.
func (c *command) show(e interpreter.Event) {
	switch e.Kind {
	case interpreter.Stdout:
		_, _ = c.stdout.write.WriteString(e.Text) // the drain counts, and ends the command at its limit
	case interpreter.Stderr:
		_, _ = c.stderr.write.WriteString(e.Text)
	case interpreter.Display, interpreter.Result:
		c.displays = append(c.displays, proposal.Display{Value: e.Kind == interpreter.Result, Forms: e.Data, Omitted: e.FormsOmitted})
	}
}

// resident returns the interpreter of the cell's language, with the cell's context.
func (c *command) resident(ctx context.Context) (*resident, error) {
	language, name := c.x.Cell.Language, c.x.Cell.Context
	r := c.s.interpreters[language]
	if r == nil {
		var err error
		if r, err = c.startInterpreter(ctx); err != nil {
			return nil, err
		}
		if c.s.interpreters == nil {
			c.s.interpreters = map[string]*resident{}
		}
		c.s.interpreters[language] = r
	}
	if slices.Contains(r.Contexts(), name) {
		return r, nil
	}
	return r, r.CreateContext(name)
}

// startInterpreter starts the interpreter as the command's first program, which the exec
// gate decides.
func (c *command) startInterpreter(ctx context.Context) (*resident, error) {
	language, known := interpreter.LanguageOf(c.x.Cell.Language)
	p, found := interpreter.ProgramOf(language)
	if !known || !found {
		return nil, errors.New("there is no interpreter for " + c.x.Cell.Language)
	}
	r := &resident{s: c.s, ended: make(chan ending, 1)}
	in, out, err := r.exec(c, p.Argv(programPath(p)))
	if err != nil {
		return nil, err
	}
	go func() { // a connection cannot be closed during a call
		status, err := r.conn.Wait(c.s.id, r.pid)
		r.ended <- ending{status, err}
		_ = r.conn.Close()
	}()
	ctx, cancel := context.WithTimeout(ctx, interpreterStart)
	defer cancel()
	r.Interpreter, err = interpreter.Start(ctx, in, out, interpreter.Options{Language: language, Grace: cellGrace,
		Interrupt: func() error { return c.s.init.interrupt(sweepGrace, r.pid) }})
	if err != nil {
		return nil, err
	}
	c.s.onClose(r.Close)
	return r, nil
}

// exec starts argv with pipes, which it makes first: between the gate's decision and the
// start, the kernel's events wait.
func (r *resident) exec(c *command, argv []string) (in, out *os.File, err error) {
	files, err := openPipes()
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		closed := files[:3] // the process has its own now
		if err != nil {
			closed = files[:]
		}
		for _, f := range closed {
			_ = f.Close()
		}
	}()
	if r.conn, err = control.Dial(r.s.socket()); err != nil {
		return nil, nil, err
	}
	starter := &command{s: c.s, x: c.x}
	starter.x.Text, starter.x.Argv, starter.x.Launches = "", argv, false
	program, argv, started, err := r.s.gate.first(starter)
	if err == nil {
		r.pid, err = r.conn.Exec(r.s.id, control.Process{Path: program, Argv: argv, Env: c.env(), Dir: c.dir(),
			UID: uint32(r.s.layout.UID), GID: uint32(r.s.layout.GID), Stdin: files[0], Stdout: files[1], Stderr: files[2]})
		started(int(r.pid))
	}
	if err != nil {
		return nil, nil, errors.Join(err, r.conn.Close())
	}
	return files[3], files[4], nil
}

// openPipes returns a process's stdin, stdout and stderr, of which the last goes nowhere, and
// the other ends of the first two.
func openPipes() (files [5]*os.File, err error) {
	var errs [3]error
	files[0], files[3], errs[0] = os.Pipe()
	files[4], files[1], errs[1] = os.Pipe()
	files[2], errs[2] = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err = errors.Join(errs[:]...); err != nil {
		for _, f := range files {
			_ = f.Close() // some are nil, which Close accepts
		}
	}
	return files, err
}

// end forgets an interpreter that ended, or that does not stop, kills what is left of it and of
// the command, and returns how it ended.
func (r *resident) end() ending {
	for language, other := range r.s.interpreters {
		if other == r {
			delete(r.s.interpreters, language)
		}
	}
	_ = r.Close()
	if err := r.s.hold(); err == nil {
		_, _ = r.s.init.sweep(sweepGrace)
	}
	select {
	case how := <-r.ended:
		return how
	case <-time.After(drainGrace):
		return ending{err: errors.New("cannot determine how the interpreter ended")}
	}
}

// hold tells init which processes are interpreters.
func (s *instance) hold() error {
	var ids []int32
	for _, r := range s.interpreters {
		ids = append(ids, r.pid)
	}
	slices.Sort(ids)
	return s.init.hold(sweepGrace, ids)
}
