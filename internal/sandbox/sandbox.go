// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs decided commands inside gVisor. It is the only package
// that starts runsc.
//
// One Runner serves one run: its commands share one sandbox and one overlay over the
// workspace, so that npm ci followed by npm test works. Run runs one command after the other,
// Start some in the background beside them. No process outlives its command, except for
// services: see Execution. They have a user of their own, and commands
// can neither signal nor trace them.
// The host's tree is mounted read-only on the host's side and is never written to.
//
// For every command:
//
//   - gVisor's kernel (platform systrap) is between it and the host's, checked from
//     inside and outside before the first command; there is no other runtime and no
//     fallback.
//   - No network: the sandbox has a loopback device and no route, unless
//     Options.Netns gives it the devices of a namespace. No host socket, fifo or device.
//   - An unprivileged user, no capabilities, no_new_privs, and an environment that
//     is built from nothing.
//   - Limits apply to wall time, processor, memory, processes, disk, open files and
//     output. The one that ended a command is determined from kernel counters, gVisor's
//     own refusals and our own clocks, never from an exit code. Programs inside see the
//     limits as their processors and memory, not the host's: the processors of the largest
//     limit of the run, but at least two, and the command's own memory limit if the
//     sandbox is watched, otherwise the run's.
//   - No program starts, whatever starts it, unless Options.Exec has allowed it (see
//     package monitor); a refused one fails with EACCES. Options.Event receives what a
//     command did before Run returns, and Observations say whether it is complete. A gate
//     that fails ends the run: gate.slow, gate.gone, gate.protocol.
//
// It does not protect one command of a run from another, and it does not defend against
// vulnerabilities in gVisor or side channels of the processor.
//
// # Why
//
// What commands write is stored in a host file behind gVisor's tmpfs, not in memory, so
// that disk and memory have separate limits. A small init inside (package guest) answers
// in 50 µs what would take a command 5 ms.
package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Workspace is where commands see the workspace, and UserHome where those of Options.UserHome see it.
const (
	Workspace = guest.Workspace
	UserHome  = guest.UserHome
)

// A Bind makes a host path visible inside the sandbox.
type Bind struct {
	Source string // absolute, on the host
	Target string // absolute, inside
}

// Options configure a Runner's sandboxes. Every field without a default is required;
// nothing is ever taken from the host's environment.
type Options struct {
	Runsc string // verified fumehood-runsc
	Init  string // verified guest init
	// Verify is called before every start and must return an error if either has changed
	// since it was verified.
	Verify func() error

	Binds []Bind // files and directories of the host, or of RootImage if there is one, read-only
	// RootImage is an image whose files Binds show: their sources are absolute paths in it. Its
	// Target is not used. A zero RootImage means that Binds are the host's.
	RootImage Image
	Links     map[string]string // symbolic links in the root, "/bin" → "usr/bin"
	Files     map[string][]byte // generated files in the root, "/etc/passwd" …
	Home      map[string]string // generated files in HOME, ".npmrc" …, which commands may change
	Path      string            // PATH inside

	Workspace string // host directory, visible at /workspace under an overlay
	// UserHome shows the workspace at /home/user, which is HOME. /workspace is a link to it.
	UserHome bool
	Trees    []Bind  // further host directories, each under its own overlay, such as caches
	Images   []Image // further trees from images, each under its own overlay
	// ImageFrom is the number of files from which Workspace is copied into an image before
	// the first command. Reading files is faster then, and 10,000 cost about 0.2 s. What
	// the host changes later is not seen. A workspace of more than 1 GiB, or with sockets,
	// pipes or files that change meanwhile, is not copied. 0 means DefaultImageFrom.
	ImageFrom int
	// Layer is an image of what an Export gave, open and verified, nil for none: every sandbox
	// has it between what commands write and the trees below, and changes are those since. It
	// must stay open as long as the Runner. Trees must be those of the Export.
	Layer *os.File
	// Recorded makes each sandbox record what commands read of the workspace: see Runner.Reads.
	Recorded bool
	Env      map[string]string
	// Guard are variables for commands without the grant "built", which run none of the
	// repository's code, and for the shells of contexts. No grant changes them.
	Guard map[string]string

	// Netns is the path of a network namespace, a gateway's, whose devices, addresses and
	// routes the sandbox's own network stack takes over. Without it there is only a
	// loopback device; the sandbox never gets the host's own network.
	Netns string
	// NetnsReady, if set, is called before each sandbox starts: the one before has taken the addresses.
	NetnsReady func() error

	// Limits are the run's: no command gets more, and all commands together write at most
	// Disk.
	Limits proposal.Limits

	// Artifacts is an existing directory that receives streams and outputs. Without it
	// streams are kept only in part, and outputs are not copied.
	Artifacts string

	// Exec decides every program before it starts. gVisor's kernel asks it and, for what
	// Run starts itself, Run does; a program starts only on Allow. Exec must answer
	// within AnswerWithin and may be called from any goroutine. Required.
	Exec func(proposal.Exec) proposal.ExecDecision
	// Event receives everything that gVisor's kernel saw of the running command, in order
	// and one event at a time, all of it before Run returns. A slow Event blocks the
	// command; no event is dropped. Required.
	Event func(proposal.Event)
	// Events is the maximum number for a command; when it is exceeded, the command is
	// ended with OutputLimit. 0 means DefaultEvents.
	Events int
	// UnwatchedUnsafe replaces Exec and Event and turns the gate and the monitor off: no
	// program is refused, and Results have no Observations. It is for fixed commands that
	// test whether a sandbox starts, and for measurements.
	UnwatchedUnsafe bool

	// Started, if set, is called when a sandbox has started, or could not because of err,
	// with the time that took. Ended, if set, is called when one that started is gone.
	Started func(took time.Duration, err error)
	Ended   func()

	// Pool, if set, is asked for a sandbox before one is started. Started is then called with
	// the time that the claim took.
	Pool *Pool

	// Saved, if set, is what the Runner's first sandbox is restored from, unless the first command needs a new one.
	// The Options must otherwise be those of the Runner that saved it, except for callbacks, Artifacts, Env and Guard.
	// Layer is that of the saved sandbox. It must stay open until a command has run.
	Saved *Saved

	workspace *snapshot // of all sandboxes of a Runner
	files     files     // of Binds
	rootFile  *os.File  // of RootImage
	closeRoot func()

	// answerWithin and patience replace the constants in tests.
	answerWithin, patience time.Duration

	// Cgroup is the parent of the sandbox's cgroup: a path below the mount of the cgroup file
	// systems, such as "kubepods/burstable/pod1/c1", whose limits apply, too. It exists for every
	// controller, and on version 2 has no processes of its own. "" is the root cgroup.
	Cgroup string

	// StateDir is the directory for short-lived state; empty means os.TempDir(). It must
	// be on a file system with room for Limits.Disk.
	StateDir string
}

// A Runner runs the commands of one run: one at a time, and some in the background.
type Runner struct {
	o  Options
	mu sync.Mutex
	// current is nil before the first command and after a sandbox had to be killed.
	current *instance
	ended   error
}

// New returns a Runner; its first sandbox starts with the first Run. Close must be
// called. New returns a *proposal.StopError (sandbox.options) if Verify, Exec or Event is
// missing, or if Exec or Event is set together with UnwatchedUnsafe.
func New(o Options) (*Runner, error) {
	switch {
	case o.Verify == nil:
		return nil, newStopError("sandbox.options", "runsc is not verified", "set Options.Verify", nil)
	case o.UnwatchedUnsafe && (o.Exec != nil || o.Event != nil):
		return nil, newStopError("sandbox.options", "UnwatchedUnsafe contradicts Exec and Event", "remove one of them",
			nil)
	case !o.UnwatchedUnsafe && (o.Exec == nil || o.Event == nil):
		return nil, newStopError("sandbox.options", "Exec or Event is missing",
			"set Options.Exec and Options.Event, as package gate does", nil)
	}
	o.closeRoot = func() {}
	if err := o.openRoot(); err != nil {
		return nil, err
	}
	o.workspace, o.ImageFrom = &snapshot{}, cmp.Or(o.ImageFrom, DefaultImageFrom)
	if err := o.useSaved(); err != nil {
		o.closeRoot()
		return nil, errors.Join(err, o.workspace.close())
	}
	o.answerWithin, o.patience = o.answerTimeouts()
	return &Runner{o: o}, nil
}

// answerTimeouts returns how long Exec may take, and how long gate and kernel wait for each other.
func (o Options) answerTimeouts() (answerWithin, patient time.Duration) {
	return cmp.Or(o.answerWithin, AnswerWithin), cmp.Or(o.patience, patience)
}

// Prepare makes a sandbox that runs ready for x, for which the next Run is, or if beside is set the next Start: they
// take less time then. It starts nothing. What fails, they do again and return why.
func (r *Runner) Prepare(x Execution, beside bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current
	if r.ended != nil || s == nil || s.isDead() || x.Grant.Fresh && s.used || checkGrant(r.o, x.Grant) != nil {
		return
	}
	s.discardPrepared()
	s.prepared, _ = s.prepareCommand(x, beside)
}

// discardPrepared ends the command that was prepared, if there is one.
func (s *instance) discardPrepared() {
	if s.prepared != nil {
		s.prepared.discard()
		s.prepared = nil
	}
}

// Run starts x and waits until none of its processes is left.
//
// A non-zero exit, a kill or a reached limit is a Result. An error means that it is not
// certain what happened: the Result's status is then SandboxFailed, and every later Run
// fails too. When ctx ends, the command is killed, the Result says so, and the error is
// ctx's.
func (r *Runner) Run(ctx context.Context, x Execution) (proposal.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return failedResult(r.ended), r.ended
	}
	if err := checkGrant(r.o, x.Grant); err != nil {
		return failedResult(err), err
	}
	fresh, err := r.ensureRunning(ctx, x.Grant.Fresh)
	if err != nil && ctx.Err() != nil {
		return neverStarted(ctx), ctx.Err() // the next Run starts another sandbox
	}
	if err != nil {
		r.ended = err
		return failedResult(err), err
	}
	result, err := r.current.runCommand(ctx, x)
	r.current.used = r.current.used || !x.Service
	result.NewSandbox = fresh
	if err != nil && ctx.Err() == nil {
		r.ended = err
	}
	if r.current.isDead() {
		err = errors.Join(err, r.closeCurrent())
	}
	return result, err
}

// neverStarted is the Result of a command that was interrupted before its sandbox was ready.
func neverStarted(ctx context.Context) proposal.Result {
	r := failedResult(ctx.Err())
	r.Status, r.Signal, r.Killed = proposal.Signaled, "SIGKILL", KilledBy(context.Cause(ctx))
	r.Detail = r.KilledDetail()
	nothing := proposal.Stream{SHA256: fmt.Sprintf("%x", sha256.Sum256(nil))}
	r.Stdout, r.Stderr = nothing, nothing // or readers of reports refuse it
	return r
}

// ensureRunning makes sure that a sandbox is running, and reports whether it is a new one: one in
// which at most services were started.
func (r *Runner) ensureRunning(ctx context.Context, fresh bool) (bool, error) {
	if r.current != nil && !r.current.isDead() && (!fresh || !r.current.used) {
		return !r.current.used, nil
	}
	if err := r.closeCurrent(); err != nil {
		return false, err
	}
	if fresh {
		r.o.Saved = nil
	}
	s, err := r.startInstance(ctx)
	if err != nil {
		return false, err
	}
	r.current = s
	return !s.used, nil
}

func (r *Runner) startInstance(ctx context.Context) (s *instance, err error) {
	begin := time.Now()
	saved := r.o.Saved
	if err = r.o.Verify(); err == nil && saved == nil {
		s = r.o.Pool.claimSandbox(ctx, r.o)
	}
	if err == nil && saved != nil {
		s, err = restoreSandbox(ctx, r.o, saved)
	}
	if err == nil {
		r.o.Saved = nil
	}
	if err == nil && s == nil && r.o.NetnsReady != nil {
		err = r.o.NetnsReady()
	}
	if err == nil && s == nil {
		s, err = startSandbox(ctx, r.o)
	}
	if err != nil {
		err = errors.Join(err, ctx.Err())
	}
	if r.o.Started != nil {
		r.o.Started(time.Since(begin), err)
	}
	return s, err
}

func (r *Runner) closeCurrent() error {
	if r.current == nil {
		return nil
	}
	s := r.current
	r.current = nil
	if r.o.Ended != nil {
		defer r.o.Ended()
	}
	s.discardPrepared()
	return errors.Join(s.endBackground(), s.close())
}

// Close ends the sandbox and removes everything that it left on the host.
func (r *Runner) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended == nil {
		r.ended = errors.New("the runner is closed")
	}
	err := errors.Join(r.closeCurrent(), r.o.workspace.close())
	r.o.closeRoot()
	r.o.closeRoot = func() {}
	return err
}

// checkGrant returns an error for what no policy may grant.
func checkGrant(o Options, g proposal.Grant) error {
	for name := range g.Env {
		if steersShell(name) || strings.ContainsAny(name, "=\x00") || name == "" {
			return newStopError("sandbox.env",
				fmt.Sprintf("the grant sets the variable %q, which controls the shell or the loader", name),
				"make policy refuse it", nil)
		}
	}
	if g.Limits.Disk < o.Limits.Disk && !o.isWatched() {
		return newStopError("sandbox.limits",
			"a command's disk limit can be lower than the run's only where the sandbox is watched", "remove Options.UnwatchedUnsafe", nil)
	}
	return checkLimitsCovered(o.Limits, g.Limits)
}

// WorkspaceInside is where commands see the workspace.
func (o Options) WorkspaceInside() string {
	if o.UserHome {
		return UserHome
	}
	return Workspace
}

// isWatched reports whether gVisor's kernel is connected to the supervisor.
func (o Options) isWatched() bool { return !o.UnwatchedUnsafe }

// checkLimitsCovered returns an error for a grant that exceeds the sandbox's limits or leaves a limit
// open.
func checkLimitsCovered(run, l proposal.Limits) error {
	if l.Open() {
		return newStopError("sandbox.limits", fmt.Sprintf("the grant does not set every limit: %+v", l),
			"set every limit", nil)
	}
	if l.Pids > run.Pids || l.Disk > run.Disk || l.Files > run.Files {
		return newStopError("sandbox.limits", "the grant exceeds the run's limits",
			"start the run with the largest limits that it grants", nil)
	}
	return nil
}

func failedResult(err error) proposal.Result {
	return proposal.Result{Status: proposal.SandboxFailed, ExitCode: -1, Detail: err.Error(),
		Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
}

func newStopError(code, message, hint string, err error) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}

// DefaultEvents is the maximum number of events for a command. An npm install writes some
// thousands of files outside the workspace, a build of Go's standard library ten
// thousand.
const DefaultEvents = 200_000

// AnswerWithin is how long Options.Exec may take; exceeding it ends the run. It is meant
// for a stalled policy, not a slow one: a decision takes about a millisecond, and only on
// an overloaded host does it take seconds.
const AnswerWithin = 30 * time.Second

// How long to wait for things that normally take milliseconds. These are not speed
// limits: if the other side is gone, that is noticed at once.
const (
	startGrace  = 2 * time.Minute
	sweepGrace  = time.Minute
	drainGrace  = 30 * time.Second
	askGrace    = 2 * time.Minute
	killGrace   = time.Minute
	fallGrace   = 10 * time.Second // to learn why the gate failed
	removeGrace = 30 * time.Second // for a cgroup whose last process is gone
)

// patience is how long gVisor's kernel and the gate wait for each other. It is longer
// than AnswerWithin, so that our own deadline ends the run first and gives the reason,
// and far shorter than the time limit of gVisor's own watchdog.
const patience = time.Minute
