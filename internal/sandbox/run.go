// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/internal/watch/monitor"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// shell runs decided text: no profile, no rc file, no functions or options from the
// environment (-p), so that only the text determines what happens.
var shell = []string{"/bin/bash", "--noprofile", "--norc", "-p", "-c"}

// A command is one Execution in progress.
type command struct {
	s      *instance
	x      Execution
	conn   *control.Conn
	stdout *outputDrain
	stderr *outputDrain
	total  atomic.Int64
	before usage
	held   proposal.Bytes // memory in use before the command
	began  time.Time
	flood  atomic.Bool      // too many events
	facts  *monitor.Command // what the gate knows about it
	by     string           // who killed it, a Killed constant
	detail string           // more about it; see recordMark
	// background says that it runs beside others: see Runner.Start. shared says that it did so at some time;
	// backgrounds.mu protects it.
	background, shared bool
	clock              *wallClock // of its time

	processes, written proposal.Figure // counted by gVisor's kernel

	displays        []proposal.Display // of a cell
	displaysOmitted int
	exception       *proposal.Exception
	lost            string // of a shell's cell: which state was lost

	once  sync.Once
	ended chan struct{} // closed when something other than the command itself ends it
	cause proposal.Status
}

func (s *instance) runCommand(ctx context.Context, x Execution) (proposal.Result, error) {
	s.backgrounds.markShared()
	defer s.goOn()
	c, err := s.takeCommand(x, false)
	if err != nil {
		return failedResult(err), err
	}
	defer c.conn.Close()
	defer c.x.Notes.Show(nil)
	if err := s.resumeServices(x); err != nil {
		c.closeOutput()
		return failedResult(err), err
	}
	if x.Cell != nil {
		return c.runCell(ctx)
	}
	pid, err := c.startProcess()
	if err != nil {
		return c.notStarted(err)
	}
	status, waitErr := c.waitForEnd(ctx, pid)
	return c.finishResult(ctx, status, waitErr)
}

// prepareCommand opens the streams of a command, and makes it the one that new processes belong to. It starts none.
func (s *instance) prepareCommand(x Execution, background bool) (*command, error) {
	c := &command{s: s, x: x, ended: make(chan struct{}), background: background,
		shared: background && len(s.backgroundIDs()) > 0}
	if err := c.openStreams(); err != nil {
		return nil, s.describeStartError(err)
	}
	if err := s.gate.beginCommand(c); err != nil {
		c.closeOutput()
		return nil, errors.Join(err, c.conn.Close())
	}
	c.measureBefore()
	return c, nil
}

// takeCommand returns the command that was prepared for x, or prepares it.
func (s *instance) takeCommand(x Execution, background bool) (c *command, err error) {
	c, s.prepared = s.prepared, nil
	if c != nil && (c.background != background || !c.isFor(x)) {
		c.discard()
		c = nil
	}
	if c == nil {
		if c, err = s.prepareCommand(x, background); err != nil {
			return nil, err
		}
	}
	c.x = x
	if x.Cell == nil { // showCellEvent passes on what a cell prints, in order with its displays
		c.stdout.live, c.stderr.live = c.chunkFunc(proposal.ChunkStdout), c.chunkFunc(proposal.ChunkStderr)
	}
	x.Notes.Show(c.stderr.writeNote)
	s.gate.startCommand(c)
	return c, nil
}

// isFor reports whether c was prepared for x. What it reads, its time, and who sees its output are of no importance
// for that.
func (c *command) isFor(x Execution) bool {
	mine := c.x
	for _, x := range []*Execution{&mine, &x} {
		x.Input, x.Output, x.Notes, x.Grant.Limits.Wall = nil, nil, nil, 0
	}
	return reflect.DeepEqual(mine, x)
}

// discard ends a command of which nothing was started.
func (c *command) discard() {
	c.closeOutput()
	_ = c.conn.Close()
	_ = c.s.gate.endCommand(c, &proposal.Result{}) // if it fails, the next command fails, too
}

// resumeServices lets the services go on, which are stopped while no command runs, so that what the
// kernel sees them do belongs to a command. A shell goes on only for its own cells. x may be
// another service.
func (s *instance) resumeServices(x Execution) error {
	var err error
	s.interpreters.mu.Lock()
	live := len(s.interpreters.list)
	s.interpreters.mu.Unlock()
	if s.services+live > 0 {
		err = s.init.resumeServices(sweepGrace, s.shellPID(x))
	}
	if x.Service {
		s.services++
	}
	if s.services > guest.MaxServices {
		err = errors.Join(err, errors.New("too many services"))
	}
	if err != nil {
		return newStopError("sandbox.services", "cannot resume the services", "run fumehood doctor",
			errors.Join(err, s.killSandbox()))
	}
	return nil
}

func (c *command) openStreams() error {
	var err error
	if c.x.Cell == nil { // an interpreter has its own
		if c.conn, err = control.Dial(c.s.controlSocketPath()); err != nil {
			return err
		}
	}
	over := func() { c.endFor(proposal.OutputLimit) }
	maximum := int64(c.x.Grant.Limits.Output)
	if c.stdout, err = newDrain(c.streamPath("stdout"), &c.total, maximum, over); err != nil {
		return errors.Join(err, c.conn.Close())
	}
	if c.stderr, err = newDrain(c.streamPath("stderr"), &c.total, maximum, over); err != nil {
		c.stdout.closePipes()
		return errors.Join(err, c.conn.Close())
	}
	if err = c.s.setCgroupLimits(c.x.Grant.Limits); err != nil {
		c.closeOutput()
		return errors.Join(err, c.conn.Close())
	}
	return nil
}

// closeOutput closes the streams of a command that was not started.
func (c *command) closeOutput() {
	c.stdout.closePipes()
	c.stderr.closePipes()
}

// chunkFunc returns a function that passes on what is written to a stream, or nil.
func (c *command) chunkFunc(stream string) func([]byte) {
	if c.x.Output == nil {
		return nil
	}
	return func(p []byte) { c.x.Output(proposal.Chunk{Stream: stream, Data: p}) }
}

// streamPath returns the path of a stream's file, or "" without Artifacts. Proposal ids
// contain no separator. An existing file is not overwritten: the stream then has no
// file.
func (c *command) streamPath(stream string) string {
	if c.s.o.Artifacts == "" {
		return ""
	}
	return filepath.Join(c.s.o.Artifacts, c.fileBaseName()+"."+stream)
}

// fileBaseName returns the base name of the command's files: the files of a second run must
// not collide with those of the first. Proposal ids contain no tilde.
func (c *command) fileBaseName() string {
	if c.x.Again {
		return filepath.Base(c.x.ID) + "~2"
	}
	return filepath.Base(c.x.ID)
}

// endFor stops the command for a reason other than its own exit. Only the first reason
// is kept.
func (c *command) endFor(cause proposal.Status) {
	c.once.Do(func() { c.cause = cause; close(c.ended) })
}

// endKilledBy is endFor for a command that is killed by someone, a Killed constant.
func (c *command) endKilledBy(by, detail string) {
	c.once.Do(func() { c.cause, c.by, c.detail = proposal.Signaled, by, detail; close(c.ended) })
}

func (c *command) startProcess() (int32, error) {
	go c.stdout.readLoop()
	go c.stderr.readLoop()
	defer func() { _ = errors.Join(c.stdout.write.Close(), c.stderr.write.Close()) }()
	stdin, err := c.openStdin()
	if err != nil {
		return 0, err
	}
	defer stdin.Close()
	program, argv, started, err := c.s.gate.decideFirstProgram(c)
	if err != nil {
		return 0, err
	}
	c.began = time.Now()
	pid, err := c.conn.Exec(c.s.id, control.Process{
		Path: program, Argv: argv, Env: c.environ(), Dir: c.workingDir(),
		UID: c.userFor(c.s.layout.UID), GID: c.userFor(c.s.layout.GID),
		Stdin: stdin, Stdout: c.stdout.write, Stderr: c.stderr.write,
	})
	started(int(pid))
	return pid, err
}

// measureBefore notes what is in use before the command.
func (c *command) measureBefore() {
	if !c.background || c.x.Cell != nil && !c.shared { // else the peak is that of others, too
		if c.s.heavy.Load() {
			c.s.cgroup.waitForReclaim()
		}
		c.held = c.s.cgroup.measurePeak()
	}
	c.before = c.s.cgroup.readUsage()
}

// workingDir returns the command's working directory inside.
func (c *command) workingDir() string {
	if c.x.Service {
		return "/tmp" // its user may be unable to enter the workspace
	}
	return path.Join(c.s.o.WorkspaceInside(), c.x.Cwd)
}

// userFor returns the user or group of the command: id, unless it starts a service.
func (c *command) userFor(id int) uint32 {
	if c.x.Service {
		return uint32(c.s.layout.firstServiceID() + c.s.services - 1)
	}
	return uint32(id)
}

func (c *command) openStdin() (*os.File, error) {
	if c.x.Input != nil {
		return c.x.Input, nil
	}
	if c.x.Stdin == "" {
		return os.Open(os.DevNull)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go writeStdin(w, c.x.Stdin)
	return r, nil
}

// decidedArgv returns what was decided.
func (c *command) decidedArgv() []string {
	if len(c.x.Argv) > 0 {
		return c.x.Argv
	}
	return append(append([]string{}, shell...), c.x.Text)
}

// hasLoweredLimits reports whether the grant is below the run's limits. The command then goes
// through init, which lowers its own limits and execs it.
func (c *command) hasLoweredLimits() bool {
	run, l := c.s.o.Limits, c.x.Grant.Limits
	return l.Pids < run.Pids || l.Files < run.Files
}

// argvThroughInit returns the argv that starts the command through init.
func (c *command) argvThroughInit() []string {
	l := c.x.Grant.Limits
	return append([]string{guest.Init, "limit", fmt.Sprint(l.Pids), fmt.Sprint(l.Files)}, c.decidedArgv()...)
}

// environ returns the whole environment of the command.
func (c *command) environ() []string {
	vars := map[string]string{}
	for _, more := range []map[string]string{c.s.o.Env, c.x.Grant.Env, c.guardVars(), c.fixedEnv()} {
		for name, value := range more {
			vars[name] = value
		}
	}
	list := make([]string, 0, len(vars))
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	sort.Strings(list)
	return list
}

// guardVars returns the guard's variables, if the command has them. The shell of a context has them
// whatever its first code was granted: it keeps its environment for all later code, and only
// one that all code has can be compared with what its programs get.
func (c *command) guardVars() map[string]string {
	if slices.Contains(c.x.Grant.Exec, points.ExecBuilt) && !c.inShell() {
		return nil
	}
	return c.s.o.Guard
}

// inShell reports whether the command is code for the shell of a context.
func (c *command) inShell() bool {
	if c.x.Cell == nil {
		return false
	}
	language, _ := interpreter.LanguageOf(c.x.Cell.Language)
	return language == interpreter.Bash
}

// fixedEnv returns what no grant changes. The locale is fixed for shell text, because
// it affects how a shell splits text into words, and that has been decided.
func (c *command) fixedEnv() map[string]string {
	vars := map[string]string{
		"PATH": c.s.o.Path, "HOME": guest.Home, "TMPDIR": "/tmp", "USER": "fumehood", "LOGNAME": "fumehood",
		"SHELL": "/bin/bash", "TERM": "dumb",
	}
	if c.s.o.UserHome {
		vars["HOME"] = UserHome
	}
	if c.x.Service {
		vars["HOME"], vars["USER"], vars["LOGNAME"] = "/tmp", "service", "service"
		// The pull request's programs must not run as this user.
		vars["PATH"] = strings.Join(slices.DeleteFunc(strings.Split(c.s.o.Path, ":"),
			func(dir string) bool {
				return isWithinDir(dir, guest.Workspace) || isWithinDir(dir, c.s.o.WorkspaceInside())
			}), ":")
	}
	if c.x.Text != "" || c.x.Cell != nil || c.x.Grant.Env["LC_ALL"] == "" {
		vars["LC_ALL"], vars["LANG"] = "C.UTF-8", "C.UTF-8"
	}
	return vars
}

// steersShell reports whether a variable would make bash read files, options or
// functions that were not decided. Policy refuses them too; this check does not
// depend on policy.
func steersShell(name string) bool {
	for _, prefix := range []string{"BASH", "LD_", "SHELLOPTS"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"ENV", "IFS", "PS4", "POSIXLY_CORRECT", "GLOBIGNORE", "CDPATH"}, name)
}

// waitForEnd waits until the command ends, or ends it.
func (c *command) waitForEnd(ctx context.Context, pid int32) (syscall.WaitStatus, error) {
	type exit struct {
		status syscall.WaitStatus
		err    error
	}
	done := make(chan exit, 1)
	go func() {
		status, err := c.conn.Wait(c.s.id, pid)
		done <- exit{status, err}
	}()
	if c.clock == nil {
		c.startClock()
	}
	defer c.clock.stop()
	select {
	case e := <-done:
		return e.status, e.err
	case <-c.s.gone:
	case <-c.s.gate.failedChan():
	case <-c.ended:
	case <-ctx.Done():
		c.endFor(proposal.NotRun)
	}
	c.killProcesses()
	select {
	case e := <-done:
		return e.status, e.err
	case <-time.After(killGrace):
		return 0, errors.New("cannot determine how the command ended")
	}
}

func (c *command) startClock() {
	c.clock = startClock(c.x.Grant.Limits.Wall.Std(), func() { c.endFor(proposal.TimedOut) })
}

// killProcesses ends every process of the command. If init cannot do so, it ends the sandbox.
func (c *command) killProcesses() {
	var err error
	if c.background {
		err = c.s.gate.killCommand(c)
	} else {
		_, err = c.s.sweepProcesses()
	}
	if err == nil {
		return
	}
	_ = c.s.killSandbox()
}

// sweepProcesses kills what the command left behind. A service that started lives.
func (c *command) sweepProcesses(status syscall.WaitStatus, waitErr error) (int, error) {
	if err := c.s.holdBackground(); err != nil {
		return 0, err
	}
	if !c.x.Service || waitErr != nil || !status.Exited() || status.ExitStatus() != 0 || c.wasStopped() {
		return c.s.init.sweepAndList(sweepGrace)
	}
	return 0, c.s.init.keepServices(sweepGrace)
}

// wasStopped reports whether something other than the command itself ended it.
func (c *command) wasStopped() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// finishResult sweeps, drains, and makes the result.
func (c *command) finishResult(ctx context.Context, status syscall.WaitStatus, waitErr error) (proposal.Result, error) {
	left, sweepErr := c.sweepProcesses(status, waitErr)
	if sweepErr != nil {
		_ = c.s.killSandbox()
	}
	r := proposal.Result{WallMS: time.Since(c.began).Milliseconds(), Leftover: left, Outputs: []proposal.Output{}}
	after, reported := c.s.cgroup.readUsage(), c.s.reportedLimits()
	r.CPUMS = (after.cpu - c.before.cpu).Milliseconds()
	r.PeakMem = c.s.cgroup.peakMemory()
	c.s.heavy.Store(r.PeakMem-c.held > heavyGrowth)
	c.x.Notes.Show(nil)
	r.Stdout, r.Stderr = c.stdout.finishStream(drainGrace), c.stderr.finishStream(drainGrace)
	c.showCell(&r)
	r.Changes = proposal.Changes{Files: []proposal.Change{}}
	gateErr := c.s.gate.endCommand(c, &r)
	c.recordUsage(&r, after)
	err := c.setEndStatus(&r, status, waitErr, after, reported)
	r.Detail = cmp.Or(r.Detail, c.lost)
	if r.Killed == proposal.KilledInterrupted {
		if r.Killed = KilledBy(context.Cause(ctx)); r.Killed == proposal.KilledRegistry {
			r.Detail = r.KilledDetail()
		}
	}
	if gateErr != nil && !c.s.isDead() {
		_ = c.s.killSandbox()
		r.Status, r.Detail, err = proposal.SandboxFailed, gateErr.Error(), gateErr
	}
	if !c.s.isDead() {
		err = errors.Join(err, c.collectChanges(&r))
	}
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	return r, err
}

// setEndStatus determines what ended the command. Our own clock and counter come first,
// because they kill the command; then the kernels' counters; the exit status last,
// because only it is ambiguous.
func (c *command) setEndStatus(
	r *proposal.Result, status syscall.WaitStatus, waitErr error, after usage, reported map[byte]bool,
) error {
	l := c.x.Grant.Limits
	r.ExitCode = -1
	if waitErr == nil && status.Exited() {
		r.ExitCode = status.ExitStatus()
	}
	cause := proposal.Exited
	if c.wasStopped() {
		cause = c.cause
	}
	switch {
	case cause == proposal.TimedOut:
		r.Status, r.Limit = cause, "wall "+l.Wall.String()
	case cause == proposal.OutputLimit && c.flood.Load():
		r.Status, r.Limit = cause, fmt.Sprintf("events %d", c.s.gate.eventBudget())
	case cause == proposal.OutputLimit:
		r.Status, r.Limit = cause, "output "+l.Output.String()
	case cause == proposal.NotRun:
		r.Status, r.Signal, r.Killed = proposal.Signaled, "SIGKILL", proposal.KilledInterrupted
		r.Detail = r.KilledDetail()
	case cause == proposal.Signaled:
		r.Status, r.Signal, r.Killed, r.Detail = cause, "SIGKILL", c.by, c.detail
	case after.oomKills > c.before.oomKills:
		r.Status, r.Limit = proposal.OutOfMemory, "memory "+l.Memory.String()
	case after.pidHits > c.before.pidHits, reported[sinkPids] && r.ExitCode != 0:
		r.Status, r.Limit = proposal.ProcessLimit, fmt.Sprintf("processes %d", l.Pids)
	case reported[sinkDisk] && r.ExitCode != 0:
		r.Status, r.Limit = proposal.DiskLimit, "disk "+l.Disk.String()
	case waitErr != nil && c.background && c.s.backgrounds.ending.Load():
		r.Status, r.Signal, r.Killed = proposal.Signaled, "SIGKILL", proposal.KilledSandbox
		r.Detail = r.KilledDetail()
	case waitErr != nil:
		return c.recordCrash(r, waitErr)
	case status.Signaled():
		r.Status, r.Signal = proposal.Signaled, unix.SignalName(status.Signal())
	default:
		r.Status = proposal.Exited
	}
	return nil
}

func (c *command) recordCrash(r *proposal.Result, err error) error {
	err = newStopError("sandbox.crashed", "the sandbox ended while a command ran"+c.s.runscOutput(),
		"run the command alone, to see whether a bug in gVisor causes it", err)
	r.Status, r.Detail = proposal.SandboxFailed, err.Error()
	return err
}

// notStarted handles an exec that gVisor refused, such as a missing program. It is
// the command's own failure, as long as the sandbox still answers.
func (c *command) notStarted(cause error) (proposal.Result, error) {
	if c.began.IsZero() { // it used nothing
		c.began = time.Now()
	}
	code := syscall.WaitStatus(127 << 8)
	if errors.Is(cause, errRefused) {
		code = 126 << 8
	}
	r, err := c.finishResult(context.Background(), code, nil)
	if err == nil && c.s.isDead() {
		err = newStopError("sandbox.crashed", "the sandbox ended"+c.s.runscOutput(), "run fumehood doctor", cause)
	}
	r.Detail = "cannot start: " + cause.Error()
	if c.x.Text != "" { // an image may not have the shell
		r.Detail = "cannot start " + shell[0] + ": " + cause.Error()
	}
	return r, err
}

// collectChanges asks init for the changes and copies the declared outputs.
func (c *command) collectChanges(r *proposal.Result) error {
	if err := c.s.addChanges(r); err != nil {
		return err
	}
	if c.x.Setup {
		if err := c.s.init.sendAndWait(askGrace, "mark"); err != nil {
			return err
		}
	}
	for _, pattern := range c.x.Outputs {
		r.Outputs = append(r.Outputs, c.s.copyOutputs(outputsOf(c.fileBaseName()), pattern)...)
	}
	return nil
}

// addChanges adds to r what has changed since the last time, and the test results that a failed command left.
func (s *instance) addChanges(r *proposal.Result) error {
	all, err := s.init.listChanges()
	if err != nil {
		_ = s.killSandbox()
		return newStopError("sandbox.changes", "cannot list what the command changed",
			"run the command with a smaller disk limit", err)
	}
	if !r.Succeeded() && r.Killed == "" {
		r.TestResults = s.readTestResults(all)
	}
	r.Changes = all
	if more := len(all.Files) - maxChanges; more > 0 {
		r.Changes = proposal.Changes{Files: slices.Clone(all.Files[:maxChanges]), Omitted: all.Omitted + more}
	}
	return nil
}
