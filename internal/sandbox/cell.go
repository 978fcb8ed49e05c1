// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// How long an interpreter may take to start, and a cell to stop: on a busy machine the
// state is worth more than the seconds that a cell gains which does not want to stop.
const (
	interpreterStart = 30 * time.Second
	cellGrace        = 5 * time.Second
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

// A liveInterpreter is an interpreter that lives from cell to cell. Between commands it is stopped,
// so that what the kernel sees it do belongs to a command.
type liveInterpreter struct {
	*interpreter.Interpreter
	s     *instance
	pid   int32
	conn  *control.Conn
	ended chan processEnd // holds how it ended
	gone  chan struct{}   // closed when it has ended
	shell *shellState     // of a shell, which has one context
}

// A processEnd is how a process ended, or why that is not known.
type processEnd struct {
	status syscall.WaitStatus
	err    error
}

// runCell runs c's code in the interpreter of its language, after starting that if there is none.
// If it does not stop in time, or ends itself, the interpreter and its state are gone.
func (c *command) runCell(ctx context.Context) (proposal.Result, error) {
	go c.stdout.readLoop()
	go c.stderr.readLoop()
	c.measureBefore()
	inner, cancel := c.withCommandEnd(ctx)
	how, err := c.executeCell(inner)
	cancel()
	_ = errors.Join(c.stdout.write.Close(), c.stderr.write.Close())
	if err != nil {
		return c.notStarted(err)
	}
	if c.s.isDead() && how.err == nil {
		how.err = errors.New("the sandbox ended") // whatever the interpreter's last words were
	}
	result, err := c.finishResult(ctx, how.status, how.err)
	result.Detail = cmp.Or(result.Detail, c.lost)
	return result, err
}

// withCommandEnd returns a context that ends when the command must.
func (c *command) withCommandEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	wall := time.AfterFunc(c.x.Grant.Limits.Wall.Std(), func() { c.endFor(proposal.TimedOut) })
	go func() {
		defer wall.Stop()
		defer cancel()
		select {
		case <-inner.Done():
		case <-c.s.gone:
		case <-c.s.gate.failedChan():
		case <-c.ended:
		case <-ctx.Done():
			c.endFor(proposal.NotRun)
		}
	}()
	return inner, cancel
}

// executeCell returns the cell's outcome as that of a process. An error means that no interpreter
// could be started, or that the code is not accepted.
func (c *command) executeCell(ctx context.Context) (processEnd, error) {
	r, err := c.openInterpreter(ctx)
	if err != nil {
		return processEnd{}, err
	}
	if r.shell != nil {
		return c.executeShell(ctx, r), nil
	}
	outcome, err := r.Execute(ctx, interpreter.Cell{Context: c.x.Cell.Context, Code: c.x.Cell.Code, Env: c.cellEnv(),
		SyntaxOnly: c.x.Cell.SyntaxOnly}, c.showCellEvent)
	c.displaysOmitted = outcome.ResultsOmitted
	var died *interpreter.DiedError
	var refused *proposal.StopError
	switch {
	case errors.As(err, &refused) && refused.Code == "interpreter.cell":
		return processEnd{}, err
	case errors.As(err, &died), refused != nil:
		return r.endInterpreter(), nil
	case outcome.Error != nil:
		c.exception = &proposal.Exception{Name: outcome.Error.Name, Value: outcome.Error.Value,
			Traceback: outcome.Error.Traceback}
		return processEnd{status: 1 << 8}, nil
	case err != nil:
		return processEnd{status: 1 << 8}, nil
	}
	return processEnd{}, nil
}

// cellEnv returns the variables that the cell has and its interpreter has not. What no grant
// changes is not among them.
func (c *command) cellEnv() map[string]string {
	vars := maps.Clone(c.x.Grant.Env)
	for _, fixed := range []map[string]string{c.guardVars(), c.fixedEnv()} {
		for name := range fixed {
			delete(vars, name)
		}
	}
	return vars
}

// showCellEvent takes what a cell shows.
func (c *command) showCellEvent(e interpreter.Event) {
	chunk := proposal.Chunk{Data: []byte(e.Text)}
	switch e.Kind {
	case interpreter.Stdout:
		_, _ = c.stdout.write.WriteString(e.Text) // the drain counts, and ends the command at its limit
		chunk.Stream = proposal.ChunkStdout
	case interpreter.Stderr:
		_, _ = c.stderr.write.WriteString(e.Text)
		chunk.Stream = proposal.ChunkStderr
	case interpreter.Display, interpreter.Result:
		d := proposal.Display{Value: e.Kind == interpreter.Result, Forms: e.Data, Omitted: e.FormsOmitted}
		c.displays = append(c.displays, d)
		chunk.Stream, chunk.Display = proposal.ChunkDisplay, &d
	}
	if c.x.Output != nil && chunk.Stream != "" {
		c.x.Output(chunk)
	}
}

// openInterpreter returns the interpreter of the cell's language, with the cell's context.
func (c *command) openInterpreter(ctx context.Context) (*liveInterpreter, error) {
	language, name := c.x.Cell.Language, c.x.Cell.Context
	if l, _ := interpreter.LanguageOf(language); l == interpreter.Bash {
		return c.shellOf(ctx)
	}
	r := c.s.interpreters[language]
	if r == nil {
		var err error
		if r, err = c.startInterpreter(ctx); err != nil {
			return nil, err
		}
		c.s.keepInterpreter(language, r)
	}
	if slices.Contains(r.Contexts(), name) {
		return r, nil
	}
	return r, r.CreateContext(name)
}

func (s *instance) keepInterpreter(key string, r *liveInterpreter) {
	if s.interpreters == nil {
		s.interpreters = map[string]*liveInterpreter{}
	}
	s.interpreters[key] = r
}

// startInterpreter starts the interpreter as the command's first program, which the exec
// gate decides.
func (c *command) startInterpreter(ctx context.Context) (*liveInterpreter, error) {
	language, known := interpreter.LanguageOf(c.x.Cell.Language)
	p, found := interpreter.ProgramOf(language)
	if !known || !found {
		return nil, errors.New("there is no interpreter for " + c.x.Cell.Language)
	}
	r := newResident(c.s)
	in, out, err := r.startWithPipes(c, p.Argv(programPath(p)))
	if err != nil {
		return nil, err
	}
	go r.waitForExit()
	ctx, cancel := context.WithTimeout(ctx, interpreterStart)
	defer cancel()
	r.Interpreter, err = interpreter.Start(ctx, in, out, interpreter.Options{Language: language, Grace: cellGrace,
		Interrupt: func() error { return c.s.init.interruptProcess(sweepGrace, r.pid) }})
	if err != nil {
		return nil, err
	}
	c.s.onClose(r.Close)
	return r, nil
}

func newResident(s *instance) *liveInterpreter {
	return &liveInterpreter{s: s, ended: make(chan processEnd, 1), gone: make(chan struct{})}
}

// waitForExit waits until the process ends: a connection cannot be closed during a call.
func (r *liveInterpreter) waitForExit() {
	status, err := r.conn.Wait(r.s.id, r.pid)
	r.ended <- processEnd{status, err}
	close(r.gone)
	_ = r.conn.Close()
}

// startWithPipes starts argv with pipes, which it makes first: between the gate's decision and the
// start, the kernel's events wait.
func (r *liveInterpreter) startWithPipes(c *command, argv []string) (in, out *os.File, err error) {
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
	grant := c.x.Grant
	grant.Env = nil // the cell has it, not the interpreter
	if err = r.startProcess(c, grant, argv,
		control.Process{Stdin: files[0], Stdout: files[1], Stderr: files[2]}); err != nil {
		return nil, nil, err
	}
	return files[3], files[4], nil
}

// startProcess starts argv with the streams of p as the command's first program.
func (r *liveInterpreter) startProcess(c *command, grant proposal.Grant, argv []string, p control.Process) (err error) {
	if r.conn, err = control.Dial(r.s.controlSocketPath()); err != nil {
		return err
	}
	starter := &command{s: c.s, x: c.x, facts: c.facts}
	starter.x.Text, starter.x.Argv, starter.x.Launches, starter.x.Grant = "", argv, false, grant
	program, argv, started, err := r.s.gate.decideFirstProgram(starter)
	if err == nil {
		p.Path, p.Argv, p.Env, p.Dir = program, argv, starter.environ(), c.workingDir()
		p.UID, p.GID = uint32(r.s.layout.UID), uint32(r.s.layout.GID)
		r.pid, err = r.conn.Exec(r.s.id, p)
		started(int(r.pid))
	}
	if err != nil {
		return errors.Join(err, r.conn.Close())
	}
	return nil
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

// endInterpreter forgets an interpreter that ended, or that does not stop, kills what is left of it and of
// the command, and returns how it ended.
func (r *liveInterpreter) endInterpreter() processEnd {
	for language, other := range r.s.interpreters {
		if other != r {
			continue
		}
		if delete(r.s.interpreters, language); r.shell != nil {
			addToSet(&r.s.lostShells, language)
		}
	}
	_ = r.Close()
	_, _ = r.s.sweepProcesses()
	select {
	case how := <-r.ended:
		return how
	case <-time.After(drainGrace):
		return processEnd{err: errors.New("cannot determine how the interpreter ended")}
	}
}

func addToSet(set *map[string]bool, key string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[key] = true
}

// holdBackground tells init which processes a sweep only stops: interpreters and commands in the
// background.
func (s *instance) holdBackground() error {
	ids, shells := s.backgroundIDs(), []int32{}
	for _, r := range s.interpreters {
		if r.shell != nil {
			shells = append(shells, r.pid)
		} else {
			ids = append(ids, r.pid)
		}
	}
	slices.Sort(ids)
	slices.Sort(shells)
	all := slices.Concat(ids, shells) // which of them are shells never changes
	if slices.Equal(all, s.held) {
		return nil
	}
	s.held = all
	return s.init.holdProcesses(sweepGrace, ids, shells)
}

// sweepProcesses kills all that is left of a command, and stops what hold names.
func (s *instance) sweepProcesses() (int, error) {
	if err := s.holdBackground(); err != nil {
		return 0, err
	}
	return s.init.killLeftProcesses(sweepGrace)
}
