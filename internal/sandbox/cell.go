// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
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

// interpreters are an instance's, by language and context. A cell begins while the Runner is locked, and may end at
// any time.
type interpreters struct {
	mu   sync.Mutex
	list map[string]*liveInterpreter
	lost map[string]bool // keys of shells that have ended
}

// A liveInterpreter is the interpreter of one context, which lives from cell to cell. Between its cells it is stopped,
// except while a command runs in the foreground, so that what the kernel sees it do belongs to a command.
type liveInterpreter struct {
	*interpreter.Interpreter // nil until connect has returned it
	connect                  func(context.Context) (*interpreter.Interpreter, error)

	s     *instance
	key   string
	pid   int32
	conn  *control.Conn
	ended chan processEnd // holds how it ended
	gone  chan struct{}   // closed when it has ended
	shell *shellState     // of a shell
	cell  *command        // that runs in it; nil between cells. interpreters.mu protects it
}

func contextKey(cell *Cell) string { return cell.Language + " " + cell.Context }

// A processEnd is how a process ended, or why that is not known.
type processEnd struct {
	status syscall.WaitStatus
	err    error
}

// runCell runs c's code in the foreground. If it does not stop in time, or its interpreter ends, the state is lost.
func (c *command) runCell(ctx context.Context) (proposal.Result, error) {
	r, err := c.beginCell()
	var how processEnd
	if err == nil {
		how, err = c.executeCell(ctx, r)
		r.endCell()
	}
	if err != nil {
		return c.notStarted(err)
	}
	return c.finishResult(ctx, how.status, how.err)
}

// beginCell returns the interpreter of the cell's context, which it starts if there is none. Until endCell, no other
// cell can begin in it.
func (c *command) beginCell() (*liveInterpreter, error) {
	go c.stdout.readLoop()
	go c.stderr.readLoop()
	c.began = time.Now()
	r, err := c.openInterpreter()
	if err != nil {
		c.closeStreams()
	}
	return r, err
}

// closeStreams ends the command's own output.
func (c *command) closeStreams() { _ = errors.Join(c.stdout.write.Close(), c.stderr.write.Close()) }

// executeCell runs the code in r. An error means that it was not accepted.
func (c *command) executeCell(ctx context.Context, r *liveInterpreter) (processEnd, error) {
	inner, cancel := c.withCommandEnd(ctx)
	how, err := r.execute(inner, c)
	cancel()
	c.closeStreams()
	if c.s.isDead() && err == nil && how.err == nil {
		how.err = errors.New("the sandbox ended") // whatever the interpreter's last words were
	}
	return how, err
}

// endCell lets the next cell begin in r.
func (r *liveInterpreter) endCell() {
	r.s.interpreters.mu.Lock()
	defer r.s.interpreters.mu.Unlock()
	r.cell = nil
}

// withCommandEnd returns a context that ends when the command must.
func (c *command) withCommandEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if c.clock == nil {
		c.startClock()
	}
	go func() {
		defer c.clock.stop()
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

// execute returns the outcome of c's code as that of a process. An error means that the interpreter did not start, or
// that it does not accept the code.
func (r *liveInterpreter) execute(ctx context.Context, c *command) (processEnd, error) {
	if r.Interpreter == nil {
		start, cancel := context.WithTimeout(ctx, interpreterStart)
		i, err := r.connect(start)
		cancel()
		if err != nil {
			r.endInterpreter(c)
			return processEnd{}, err
		}
		r.Interpreter = i
	}
	if r.shell != nil {
		return c.executeShell(ctx, r), nil
	}
	outcome, err := r.Execute(ctx, interpreter.Cell{Code: c.x.Cell.Code, Env: c.cellEnv(),
		SyntaxOnly: c.x.Cell.SyntaxOnly}, c.showCellEvent)
	c.displaysOmitted = outcome.ResultsOmitted
	var died *interpreter.DiedError
	var refused *proposal.StopError
	switch {
	case errors.As(err, &refused) && refused.Code == "interpreter.cell":
		return processEnd{}, err
	case errors.As(err, &died), refused != nil:
		return r.endInterpreter(c), nil
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

// showCell adds to r what the cell has shown.
func (c *command) showCell(r *proposal.Result) {
	r.Displays, r.DisplaysOmitted, r.Exception = c.displays, c.displaysOmitted, c.exception
}

// openInterpreter returns the interpreter of the cell's context. The caller has locked the Runner.
func (c *command) openInterpreter() (*liveInterpreter, error) {
	language, known := interpreter.LanguageOf(c.x.Cell.Language)
	if !known {
		return nil, errors.New("there is no interpreter for " + c.x.Cell.Language)
	}
	r, err := c.takeInterpreter(language)
	if r != nil || err != nil {
		return r, err
	}
	// The interpreters are not locked, since cells of other contexts end meanwhile. The Runner is: no other starts.
	all, key := &c.s.interpreters, contextKey(c.x.Cell)
	r = &liveInterpreter{s: c.s, key: key, cell: c, ended: make(chan processEnd, 1), gone: make(chan struct{})}
	if err := r.start(c, language); err != nil {
		return nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.list == nil {
		all.list = map[string]*liveInterpreter{}
	}
	all.list[key] = r
	c.s.onClose(r.closeStreams)
	return r, nil
}

// takeInterpreter gives the live interpreter of the cell's context to the cell. It returns nil if there is none and
// one may start.
func (c *command) takeInterpreter(language interpreter.Language) (*liveInterpreter, error) {
	all := &c.s.interpreters
	all.mu.Lock()
	defer all.mu.Unlock()
	r := all.list[contextKey(c.x.Cell)]
	if r != nil && r.cell != nil {
		return nil, errors.New("other code runs in the context: wait for its end")
	}
	if language == interpreter.Bash {
		if err := c.checkShell(r); err != nil {
			return nil, err
		}
	}
	if r == nil && len(all.list) >= interpreter.MaxContexts {
		return nil, fmt.Errorf("the sandbox already has %d contexts: use one of them, or another session",
			interpreter.MaxContexts)
	}
	if r != nil {
		r.cell = c
	}
	return r, nil
}

// start starts the interpreter as the command's first program, which the exec gate decides.
func (r *liveInterpreter) start(c *command, language interpreter.Language) error {
	o := interpreter.Options{Language: language, Grace: cellGrace, Interrupt: r.interrupt}
	if p, found := interpreter.ProgramOf(language); found {
		in, out, err := r.startWithPipes(c, p.Argv(programPath(p)))
		if err != nil {
			return err
		}
		r.connect = func(ctx context.Context) (*interpreter.Interpreter, error) {
			return interpreter.Start(ctx, in, out, o)
		}
	} else if err := r.startShell(c, o); err != nil {
		return err
	}
	go r.waitForExit()
	return nil
}

// closeStreams closes what leads to the process, if it was ever connected.
func (r *liveInterpreter) closeStreams() error {
	if r.Interpreter == nil {
		return nil
	}
	return r.Close()
}

// interrupt sends SIGINT to the interpreter, in which a cell runs.
func (r *liveInterpreter) interrupt() error {
	r.s.interpreters.mu.Lock()
	c := r.cell
	r.s.interpreters.mu.Unlock()
	if c != nil && c.background {
		return r.s.gate.signalCommand(c, r.pid, syscall.SIGINT)
	}
	return r.s.init.interruptProcess(sweepGrace, r.pid)
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
// the command c, and returns how it ended.
func (r *liveInterpreter) endInterpreter(c *command) processEnd {
	all := &r.s.interpreters
	all.mu.Lock()
	if delete(all.list, r.key); r.shell != nil {
		if all.lost == nil {
			all.lost = map[string]bool{}
		}
		all.lost[r.key] = true
	}
	all.mu.Unlock()
	_ = r.closeStreams()
	if c.background {
		_ = r.s.gate.killCommand(c)
	} else {
		_, _ = r.s.sweepProcesses()
	}
	select {
	case how := <-r.ended:
		return how
	case <-time.After(drainGrace):
		return processEnd{err: errors.New("cannot determine how the interpreter ended")}
	}
}

// holdBackground tells init which processes a sweep only stops: interpreters and commands in the
// background. What a shell has started is among them while its cell runs in the background.
func (s *instance) holdBackground() error {
	ids, shells := s.backgroundIDs(), []int32{}
	s.interpreters.mu.Lock()
	for _, r := range s.interpreters.list {
		switch {
		case slices.Contains(ids, r.pid):
		case r.shell != nil:
			shells = append(shells, r.pid)
		default:
			ids = append(ids, r.pid)
		}
	}
	s.interpreters.mu.Unlock()
	slices.Sort(ids)
	slices.Sort(shells)
	all := slices.Concat(ids, []int32{0}, shells)
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
